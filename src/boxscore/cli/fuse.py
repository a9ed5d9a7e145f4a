"""Merge the results of several models into one file: boxes they agree on become their weighted average.

Reads COCO results files, folders of VOC results or detections saved as columns (.npz), all in one format, and
writes that format. A fused box stands for several records, so it has the four keys of a COCO result and no
others. Coordinates are pixels and are not clipped.

Examples
--------
  boxscore fuse a.json b.json --weights 2 1 --output fused.json
  boxscore fuse a.json b.json c.json --method nmw --iou-threshold 0.6 --output fused.json
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, get_args

import numpy as np

from boxscore._utils import checks
from boxscore._utils.text import counted
from boxscore.cli.arguments import DETECTIONS, READERS, RESULTS_BOX_FORMAT, RESULTS_OUTPUT, Option
from boxscore.cli.inputs import readers
from boxscore.cli.streams import say
from boxscore.data.tables import Detections
from boxscore.data.vocabulary import Categories, Id, Images
from boxscore.errors import InputError
from boxscore.suppression._ranked import boxes_of
from boxscore.suppression.fusion import Confidence, nmw, weighted_boxes_fusion

OPTIONS = (
    DETECTIONS.but(help="results, one per model", many=True, metavar="FILE", key=""),
    RESULTS_OUTPUT,
    Option(
        "weights", "weight of each model (default: equal)", kind=float, many=True, commas=True, metavar="W"
    ),
    Option(
        "method",
        "weighted boxes fusion, or non-maximum weighted",
        default="wbf",
        metavar="wbf|nmw",
    ),
    Option(
        "iou-threshold",
        "fuse boxes that overlap by more than this",
        kind=float,
        default=0.55,
        metavar="T",
    ),
    Option(
        "score-threshold",
        "leave out detections that score below this",
        kind=float,
        default=0.0,
        metavar="S",
    ),
    Option(
        "confidence",
        f"wbf: score of a fused box, one of {', '.join(get_args(Confidence))} (default: average)",
        metavar="RULE",
    ),
    RESULTS_BOX_FORMAT,
    READERS,
)


def run(arguments: argparse.Namespace) -> int:
    """Read, fuse, write; return the exit status."""
    from boxscore.formats.reading import read_options
    from boxscore.formats.results import load_results, save_table

    checks.one_of(arguments.method, ("wbf", "nmw"), name="method")
    files: list[Path] = arguments.detections
    if arguments.weights is not None:
        checks.same_length(len(files), of="the files", **{"--weights": arguments.weights})
    options: dict[str, Any] = {}
    if arguments.confidence is not None:
        if arguments.method != "wbf":
            raise InputError("confidence", "be left out with method 'nmw'", got=repr(arguments.confidence))
        options["confidence"] = arguments.confidence
    how = read_options(processes=readers(arguments), box_format=arguments.dt_box_format)
    read = [load_results(file, how) for file in files]
    for results in read[1:]:
        if results.format != read[0].format:
            raise InputError(
                "what is fused",
                f"be of one form, {read[0].format} as {read[0].path}",
                got=results.format,
                place=str(results.path),
            )
    tables = [results.table for results in read]
    images = Images.build(list(dict.fromkeys(id_ for table in tables for id_ in table.images.ids.tolist())))
    categories = _all_classes(tables)
    groups = [
        images.rows(table.images.ids)[table.image].astype(np.int64) * len(categories)
        + categories.rows(table.categories.ids)[table.category]
        for table in tables
    ]
    fuse = weighted_boxes_fusion if arguments.method == "wbf" else nmw
    fused = fuse(
        [boxes_of(table) for table in tables],
        [table.scores for table in tables],
        groups,
        weights=arguments.weights,
        iou_threshold=arguments.iou_threshold,
        score_threshold=arguments.score_threshold,
        **options,
    )
    image, category = np.divmod(fused.groups.astype(np.int64), max(len(categories), 1))
    table = Detections(
        images=images,
        categories=categories,
        image=image.astype(np.int32),
        category=category.astype(np.int32),
        boxes=fused.boxes,
        sizes=fused.boxes[:, 2:] - fused.boxes[:, :2],
        scores=fused.scores,
    )
    save_table(table, arguments.output, like=read[0])
    total = sum(map(len, tables))
    made, given = counted(len(fused.scores), "box"), counted(total, "detection")
    say(f"{made} from {given} of {counted(len(files), 'model')}, written to {arguments.output}")
    return 0


def _all_classes(tables: list[Detections]) -> Categories:
    """Classes of all files, each once; an id has one name in all of them."""
    names: dict[Id, str] = {}
    for table in tables:
        for identifier, name in zip(
            table.categories.ids.tolist(), table.categories.names.tolist(), strict=True
        ):
            if names.setdefault(identifier, name) != name:
                raise InputError(
                    f"class {identifier}",
                    f"have one name in all files, {names[identifier]!r} as before",
                    got=repr(name),
                    place=table.source,
                    cause="results of another data set?",
                )
    return Categories.build(list(names), names=list(names.values()))
