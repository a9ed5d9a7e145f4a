"""Make one results file from those of several models: boxes they agree on become their weighted average.

Reads COCO results files. A fused box has no record of its own among those it was made from, so the output has
the four keys of a result and no others. Coordinates are pixels and are not clipped.

Examples
--------
  boxscore fuse a.json b.json --weights 2 1 --output fused.json
  boxscore fuse a.json b.json c.json --method nmw --iou-threshold 0.6 --output fused.json
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any, get_args

import numpy as np

from boxscore import _validate
from boxscore._files import write_atomically
from boxscore.cli._inputs import available_processors
from boxscore.errors import InputError
from boxscore.nms.fusion import Confidence, nmw, weighted_boxes_fusion
from boxscore.vocabulary import Categories, Images

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this subcommand's arguments."""
    parser.add_argument("detections", nargs="+", type=Path, metavar="FILE", help="COCO results, one a model")
    parser.add_argument("--output", required=True, type=Path, metavar="FILE", help="what to write")
    parser.add_argument(
        "--weights", nargs="+", type=float, metavar="W", help="trust in each model (default: equal)"
    )
    parser.add_argument(
        "--method",
        default="wbf",
        metavar="wbf|nmw",
        help="weighted boxes fusion, or non-maximum weighted (default: wbf)",
    )
    parser.add_argument(
        "--iou-threshold",
        type=float,
        default=0.55,
        metavar="T",
        help="fuse what overlaps more (default: .55)",
    )
    parser.add_argument(
        "--score-threshold", type=float, default=0.0, metavar="S", help="leave out lower scores (default: 0)"
    )
    parser.add_argument(
        "--confidence",
        metavar="RULE",
        help=f"wbf: score of a fused box, one of {', '.join(get_args(Confidence))} (default: average)",
    )
    parser.add_argument(
        "--workers", type=int, metavar="N", help="processes that read a large file (default: every processor)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Read, fuse, write; return the exit status."""
    from boxscore.datasets.results import load_results, results_records

    _validate.one_of(arguments.method, ("wbf", "nmw"), name="method")
    files: list[Path] = arguments.detections
    if arguments.weights is not None:
        _validate.same_length(len(files), of="the files", **{"--weights": arguments.weights})
    if arguments.workers is not None:
        _validate.whole_number(arguments.workers, 1, name="--workers")
    if arguments.output.is_dir():
        raise InputError(_validate.message("the output", "be a file", got=f"the folder {arguments.output}"))
    options: dict[str, Any] = {}
    if arguments.confidence is not None:
        if arguments.method != "wbf":
            raise InputError(
                _validate.message(
                    "confidence", "be left out with method 'nmw'", got=repr(arguments.confidence)
                )
            )
        options["confidence"] = arguments.confidence
    tables = []
    for file in files:
        results = load_results(file, workers=arguments.workers or available_processors())
        if results.format != "coco":
            raise InputError(
                _validate.message("what is fused", "be COCO results files", got=f"VOC results in {file}")
            )
        tables.append(results.table)
    images = Images.build(_all_ids([table.images.ids for table in tables]))
    categories = Categories.build(_all_ids([table.categories.ids for table in tables]))
    groups = [
        images.rows(table.images.ids)[table.image].astype(np.int64) * len(categories)
        + categories.rows(table.categories.ids)[table.category]
        for table in tables
    ]
    fuse = weighted_boxes_fusion if arguments.method == "wbf" else nmw
    fused = fuse(
        [table.boxes for table in tables],
        [table.scores for table in tables],
        groups,
        weights=arguments.weights,
        iou_threshold=arguments.iou_threshold,
        score_threshold=arguments.score_threshold,
        **options,
    )
    image, category = np.divmod(fused.groups.astype(np.int64), max(len(categories), 1))
    boxes = np.concatenate([fused.boxes[:, :2], fused.boxes[:, 2:] - fused.boxes[:, :2]], axis=1)
    text = results_records(images.ids[image], categories.ids[category], boxes, fused.scores)
    write_atomically(arguments.output, text)
    total = sum(map(len, tables))
    print(
        f"{len(fused.scores):,} boxes from {total:,} detections of {len(files)} models in {arguments.output}",
        file=sys.stderr,
    )
    return 0


def _all_ids(parts: list[np.ndarray[Any, Any]]) -> list[Any]:
    """Ids of all files, each once."""
    return list(dict.fromkeys(value for part in parts for value in part.tolist()))
