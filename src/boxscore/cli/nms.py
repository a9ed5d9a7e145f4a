"""Turn raw detections into final ones: suppress, lower scores or merge boxes.

Needs no ground truth. Reads a COCO results file, a folder of VOC or DOTA results or detections saved as
columns (.npz), and writes the remaining rows in the same format and order, with every key they had. Soft
methods write the lowered scores, merging methods the merged boxes. The output is written whole or not at all.

With --memory-limit Parquet larger than memory is suppressed in partitions of whole images, and written
ascending by image.

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
from typing import Any

import numpy as np

from boxscore._utils.text import counted, counted_of
from boxscore.cli.arguments import (
    DETECTIONS,
    GROUPS,
    IOU_TYPE,
    MEMORY_LIMIT,
    READERS,
    RESULTS_BOX_FORMAT,
    RESULTS_OUTPUT,
    Option,
)
from boxscore.cli.choices import group_options, readers
from boxscore.cli.sockets import extension
from boxscore.cli.streams import say, stderr_is_terminal
from boxscore.errors import InputError
from boxscore.suppression.methods import METHODS, check_method
from boxscore.suppression.suppressing import suppress

SIMILARITIES = {
    "bbox": "box",
    "segm": "mask",
    **{name: name for name in ("rotated", "quadrilateral", "probiou")},
}
"""What is compared: by pycocotools' names, and oriented boxes by those of the similarities."""


OPTIONS = (
    DETECTIONS.but(help="COCO results file, folder of VOC or DOTA results, or .npz"),
    RESULTS_OUTPUT,
    Option("method", f"one of {', '.join(METHODS)}", default="hard", metavar="NAME"),
    Option(
        "iou-threshold",
        "suppress boxes that overlap a higher-scoring one by more than this",
        kind=float,
        metavar="T",
    ),
    Option(
        "overlap",
        "intersection over the union, or over the smaller box",
        default="iou",
        metavar="iou|ios",
    ),
    IOU_TYPE.but(
        help="what overlaps: boxes, masks, or oriented boxes",
        default="bbox",
        choices=tuple(SIMILARITIES),
        group="",
    ),
    Option("sigma", "width of the Gaussian methods", kind=float, metavar="S"),
    Option(
        "score-threshold", "afterwards leave out detections that score below this", kind=float, metavar="S"
    ),
    Option(
        "merge-patches",
        "first map detections in patches <image>__<scale>__<x>___<y> back to their images: scaled divides by "
        "the scale (DOTA devkit), shifted does not (mmrotate)",
        choices=("scaled", "shifted"),
    ),
    *GROUPS,
    RESULTS_BOX_FORMAT,
    READERS,
    MEMORY_LIMIT.but(
        help="for detections in Parquet: suppress partitions that fit in this much memory, e.g. 8GB"
    ),
)


def run(arguments: argparse.Namespace) -> int:
    """Read, suppress, write; return the exit status."""
    from boxscore.formats.reading import read_options
    from boxscore.formats.results import load_results, save_results, save_table

    # Check the options before a large file is read.
    options = {name: getattr(arguments, name) for name in ("iou_threshold", "overlap")}
    options["similarity"] = SIMILARITIES[arguments.iou_type]
    check_method(arguments.method, **options)  # before a large file is read
    if arguments.memory_limit is not None:
        return _run_in_parts(arguments, options)
    # Read only what is compared.
    processes = readers(arguments)
    _progress(f"reading {arguments.detections}")
    results = load_results(
        arguments.detections,
        read_options(
            instances=["masks"] if options["similarity"] == "mask" else [],
            processes=processes,
            box_format=arguments.dt_box_format,
        ),
        oriented=options["similarity"] not in ("box", "mask"),
    )
    table = results.table
    if arguments.merge_patches is not None:
        table = extension("merge_patches")(table, arguments.merge_patches)
    _progress(f"suppressing {counted(len(table), 'detection')} of {counted(len(table.images), 'image')}")
    # Suppress, and keep the survivors in the order of the file.
    left = suppress(
        table,
        method=arguments.method,
        sigma=arguments.sigma,
        score_threshold=arguments.score_threshold,
        **options,
        **group_options(arguments, table.categories),
    )
    _progress(f"writing {arguments.output}")
    order = np.argsort(left.indices)
    # Merged patches are new records; else the file's own records are written again.
    if arguments.merge_patches is not None:
        save_table(left.apply(table), arguments.output, like=results)
        say(f"{counted_of(len(left.indices), len(table), 'detection')} kept, written to {arguments.output}")
        return 0
    save_results(
        results,
        left.indices[order],
        arguments.output,
        scores=left.scores[order] if left.changes == "scores" else None,
        boxes=left.boxes[order] if left.changes == "boxes" else None,
    )
    say(f"{counted_of(len(left.indices), len(table), 'detection')} kept, written to {arguments.output}")
    return 0


def _run_in_parts(arguments: argparse.Namespace, options: dict[str, Any]) -> int:
    """Suppress detections partition by partition."""
    from boxscore.suppression.tables import suppressed_table

    if arguments.merge_patches is not None:
        cause = "patches of an image are in several partitions"
        raise InputError("--merge-patches", "be left out with --memory-limit", got="both", cause=cause)
    options |= {name: getattr(arguments, name) for name in ("method", "sigma", "score_threshold")}
    counts = extension("rewritten_in_parts")(
        arguments,
        [arguments.detections],
        suppressed_table,
        lambda categories: {**options, **group_options(arguments, categories)},
        instances=["masks"] if options["similarity"] == "mask" else [],
    )
    say(f"{counted_of(counts.made, counts.given, 'detection')} kept, written to {arguments.output}")
    return 0


def _progress(text: str) -> None:
    """Print progress, if stderr is a terminal."""
    if stderr_is_terminal():
        say(text)
