"""Turn raw detections into final ones: suppress, lower scores or merge boxes.

Needs no ground truth. Reads a COCO results file, a folder of VOC results or detections saved as columns
(.npz), and writes the rows that are left in the same form, in the same order, with every key they had. Soft
methods write the lowered scores, merging methods the merged boxes. The output appears when it is whole.

Examples
--------
  boxscore nms --detections raw.json --output kept.json --method hard --iou-threshold 0.5
  boxscore nms --detections raw.json --output kept.json --method soft-gaussian --score-threshold 0.01
  boxscore nms --detections masks.json --output kept.json --iou-type segm --iou-threshold 0.5
  boxscore nms --detections results_dir --output kept_dir --iou-threshold 0.45 --pixel-offset 1
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

from boxscore._utils import checks
from boxscore.cli._inputs import available_processors
from boxscore.cli._suppression import add_group_arguments, group_options, method_names
from boxscore.suppression.detections import nms_detections
from boxscore.suppression.methods import check_method

__all__ = ["add_arguments", "run"]

SIMILARITIES = {"bbox": "box", "segm": "mask"}
"""What is compared, by pycocotools' names."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this subcommand's arguments."""
    parser.add_argument(
        "--detections",
        "--dt",
        required=True,
        type=Path,
        metavar="PATH",
        help="COCO results file, folder of comp4_det_<set>_<class>.txt, or .npz",
    )
    parser.add_argument(
        "--output",
        required=True,
        type=Path,
        metavar="PATH",
        help="what to write: a file, or a folder for VOC",
    )
    parser.add_argument(
        "--method", default="hard", metavar="NAME", help=f"one of {method_names()} (default: hard)"
    )
    parser.add_argument(
        "--iou-threshold", type=float, metavar="T", help="a better box suppresses what overlaps it by more"
    )
    parser.add_argument(
        "--overlap", default="iou", metavar="iou|ios", help="over the union or the smaller box (default: iou)"
    )
    parser.add_argument(
        "--iou-type",
        default="bbox",
        choices=list(SIMILARITIES),
        help="what overlaps: boxes or masks (default: bbox)",
    )
    parser.add_argument("--sigma", type=float, metavar="S", help="of the Gaussian methods")
    parser.add_argument(
        "--score-threshold", type=float, metavar="S", help="keep what scores at least this, afterwards"
    )
    add_group_arguments(parser)
    parser.add_argument(
        "--workers", type=int, metavar="N", help="processes that read a large file (default: every processor)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Read, suppress, write; return the exit status."""
    from boxscore.formats.results import load_results, save_results

    options = {name: getattr(arguments, name) for name in ("iou_threshold", "overlap")}
    options["similarity"] = SIMILARITIES[arguments.iou_type]
    check_method(arguments.method, **options)  # before a large file is read
    if arguments.workers is not None:
        checks.whole_number(arguments.workers, 1, name="--workers")
    _progress(f"reading {arguments.detections}")
    results = load_results(
        arguments.detections,
        columns=["masks"] if options["similarity"] == "mask" else [],
        processes=arguments.workers or available_processors(),
    )
    table = results.table
    _progress(f"suppressing {len(table):,} detections of {len(table.images):,} images")
    left = nms_detections(
        table,
        method=arguments.method,
        sigma=arguments.sigma,
        score_threshold=arguments.score_threshold,
        **options,
        **group_options(arguments, table),
    )
    _progress(f"writing {arguments.output}")
    order = np.argsort(left.indices)
    save_results(
        results,
        left.indices[order],
        arguments.output,
        scores=left.scores[order] if left.changes == "scores" else None,
        boxes=left.boxes[order] if left.changes == "boxes" else None,
    )
    print(f"{len(left.indices):,} of {len(table):,} detections kept in {arguments.output}", file=sys.stderr)
    return 0


def _progress(text: str) -> None:
    """Say what is being done, to someone who watches."""
    if sys.stderr.isatty():
        print(text, file=sys.stderr)
