"""Turn raw detections into final ones: suppress, lower scores or merge boxes.

Ground truth is not needed. The input may be in any detection format. The remaining detections are written in
the same format and order, with all their keys; or, if --output has the extension of another format, in that,
with the names of images and classes. Soft methods write lowered scores, merging methods merged boxes. The
output is written atomically.

With --memory-limit, Parquet data larger than memory are processed in partitions of whole images, and written
in ascending order of images.

Examples
--------
  boxscore nms raw.json --output kept.json --method hard --iou-threshold 0.5
  boxscore nms raw.json --output kept.json --method soft-gaussian --score-threshold 0.01
  boxscore nms raw.parquet --output kept.parquet --iou-threshold 0.5 --memory-limit 2GB
  boxscore nms masks.json --output kept.json --iou-type segm --iou-threshold 0.5
  boxscore nms results_dir --output kept_dir --iou-threshold 0.45 --pixel-offset 1
  boxscore nms patches --output whole --merge-patches scaled --iou-type quadrilateral --iou-threshold 0.3
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from boxscore._utils.lazy import loaded
from boxscore._utils.text import counted, counted_of
from boxscore.cli.arguments import (
    DETECTIONS,
    GROUPS,
    IOU_TYPE,
    READERS,
    RESULTS_FILES,
    RESULTS_OUTPUT,
    Option,
    further,
    given,
)
from boxscore.cli.choices import group_options, readers, results_arguments
from boxscore.cli.streams import say, stderr_is_terminal
from boxscore.suppression.methods import METHODS, check_method
from boxscore.suppression.result import Suppression
from boxscore.suppression.suppressing import suppress

if TYPE_CHECKING:
    from boxscore.data.tables import Detections
    from boxscore.formats._survivors import Results

SIMILARITIES = {
    "bbox": "box",
    "segm": "mask",
    **{name: name for name in ("rotated", "quadrilateral", "probiou")},
}
"""Similarities by ``--iou-type``: the names of pycocotools, and names of similarities of rotated boxes."""


OPTIONS = (
    DETECTIONS.but(help="detections in any format"),
    RESULTS_OUTPUT,
    Option("method", f"one of {', '.join(METHODS)}", default="hard", metavar="NAME"),
    Option(
        "iou-threshold",
        "suppress boxes whose overlap with a higher-scoring box exceeds this",
        brief="suppress boxes whose overlap exceeds this",
        kind=float,
        metavar="T",
        short="--iou",
    ),
    Option(
        "overlap",
        "divide the intersection by the union (iou) or by the smaller box (ios)",
        brief="divide by the union or the smaller box (default: iou)",
        default="iou",
        metavar="iou|ios",
    ),
    IOU_TYPE.but(
        help="what overlaps: boxes, masks, or oriented boxes",
        default="bbox",
        choices=tuple(SIMILARITIES),
        group="",
        brief=f"what overlaps: {', '.join(SIMILARITIES)}",
    ),
    Option("sigma", "sigma of the Gaussian methods", kind=float, metavar="S"),
    Option(
        "score-threshold",
        "then drop detections that score below this",
        brief="then drop detections that score below this",
        kind=float,
        metavar="S",
        short="--conf",
    ),
    *GROUPS,
    *RESULTS_FILES,
    READERS,
    *further("nms"),
)


def run(arguments: argparse.Namespace) -> int:
    """Read, suppress, write; return the exit status."""
    options = options_of(arguments)  # check before reading a large file
    # If an extension option has an action, run it instead.
    for option in given(OPTIONS, arguments):
        if option.does:
            loaded(option.does)(arguments, options)
            return 0
    from boxscore.formats.results import save_results

    results = results_of(arguments, options)
    left = suppressed(results.table, arguments, options)
    # Write the remaining records in file order, with all their keys.
    order = np.argsort(left.indices)
    save_results(
        results,
        left.indices[order],
        arguments.output,
        scores=left.scores[order] if left.changes == "scores" else None,
        boxes=left.boxes[order] if left.changes == "boxes" else None,
    )
    say_kept(len(left.indices), len(results.table), arguments)
    return 0


def options_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the options of suppression, checked for the method."""
    options = {name: getattr(arguments, name) for name in ("iou_threshold", "overlap")}
    options["similarity"] = SIMILARITIES[arguments.iou_type]
    check_method(arguments.method, **options)
    return options


def instances_of(options: Mapping[str, Any]) -> list[str]:
    """Return the instance columns that suppression needs."""
    return ["masks"] if options["similarity"] == "mask" else []


def results_of(arguments: argparse.Namespace, options: Mapping[str, Any]) -> Results:
    """Read the file of detections."""
    from boxscore.formats.reading import read_options
    from boxscore.formats.results import load_results

    processes = readers(arguments)
    _progress(f"reading {arguments.detections}")
    path, oriented = arguments.detections, options["similarity"] not in ("box", "mask")
    how = read_options(instances=instances_of(options), processes=processes, **results_arguments(arguments))
    return load_results(path, how, oriented=oriented, output=arguments.output)


def suppressed(table: Detections, arguments: argparse.Namespace, options: Mapping[str, Any]) -> Suppression:
    """Suppress a table."""
    _progress(f"suppressing {counted(len(table), 'detection')} of {counted(len(table.images), 'image')}")
    left = suppress(
        table,
        method=arguments.method,
        sigma=arguments.sigma,
        score_threshold=arguments.score_threshold,
        **options,
        **group_options(arguments, table.categories),
    )
    _progress(f"writing {arguments.output}")
    return left


def say_kept(kept: int, given: int, arguments: argparse.Namespace) -> None:
    """Print how many detections are kept, and the output path."""
    say(f"{counted_of(kept, given, 'detection')} kept, written to {arguments.output}")


def _progress(text: str) -> None:
    """Print progress, if stderr is a terminal."""
    if stderr_is_terminal():
        say(text)
