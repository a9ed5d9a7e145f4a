"""Merge the results of several models into one file: matching boxes become their weighted average.

Reads detections in any format, the same for all files, and writes this format; or, if --output has the
extension of another, that one, with the names of images and classes. A fused box has an image, a class, a box
and a score, because it combines several records; --iou-type fuses masks or rotated boxes, which it keeps.
Coordinates are not clipped. The merging methods also take a single file.

With --memory-limit, Parquet files larger than memory are fused in partitions of whole images, and written
sorted by image.

Examples
--------
  boxscore fuse a.json b.json --weights 2 1 --output fused.json
  boxscore fuse a.json b.json c.json --method nmw --iou-threshold 0.6 --output fused.json
  boxscore fuse a.json b.json --iou-type segm --output fused.json
  boxscore fuse tiles.json --method greedy-nmm --iou-type segm --overlap ios --output whole.json
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, get_args

from boxscore._utils import checks
from boxscore._utils.text import counted
from boxscore.cli.arguments import (
    DETECTIONS,
    IOU_TYPE,
    READERS,
    RESULTS_FILES,
    RESULTS_OUTPUT,
    Option,
)
from boxscore.cli.choices import readers, results_arguments
from boxscore.cli.streams import say
from boxscore.extensions.fusion.fusion import Confidence, warn_of_scale
from boxscore.extensions.fusion.tables import check_fusion, fuse, fused_part
from boxscore.extensions.large.options import MEMORY_LIMIT

SIMILARITIES = {"bbox": "box", "segm": "mask", "rotated": "rotated", "quadrilateral": "quadrilateral"}
"""Similarities by ``--iou-type``."""

OPTIONS = (
    DETECTIONS.but(help="results files, one per model", many=True, metavar="FILE", key=""),
    RESULTS_OUTPUT,
    Option(
        "weights", "weight of each model (default: equal)", kind=float, many=True, commas=True, metavar="W"
    ),
    Option(
        "method",
        "weighted boxes fusion (wbf), non-maximum weighted (nmw), or merging (greedy-nmm, in chains: nmm)",
        default="wbf",
        metavar="NAME",
        brief="one of wbf, nmw, greedy-nmm, nmm (default: wbf)",
    ),
    IOU_TYPE.but(
        help="what to fuse: boxes, masks, rotated boxes or four corners",
        default="bbox",
        choices=tuple(SIMILARITIES),
        group="",
        key="",
        brief=f"what to fuse: {', '.join(SIMILARITIES)}",
    ),
    Option(
        "iou-threshold",
        "fuse detections whose IoU exceeds this",
        kind=float,
        default=0.55,
        metavar="T",
        short="--iou",
    ),
    Option(
        "score-threshold",
        "drop detections that score below this",
        kind=float,
        default=0.0,
        metavar="S",
        short="--conf",
    ),
    Option(
        "confidence",
        f"wbf: score of a fused box, one of {', '.join(get_args(Confidence))} (default: average)",
        metavar="RULE",
    ),
    Option(
        "overlap",
        "merging: divide the intersection by the union (iou) or by the smaller box (ios)",
        brief="merging: divide by the union or the smaller box",
        default="iou",
        metavar="iou|ios",
    ),
    Option(
        "mask-threshold",
        "wbf of masks: keep pixels if the mean of the masks, weighted by score, exceeds this (default: 0.5)",
        brief="wbf of masks: keep pixels above this mean",
        kind=float,
        metavar="T",
    ),
    *RESULTS_FILES,
    READERS,
    MEMORY_LIMIT.but(
        help="for detections in Parquet: fuse partitions that fit in this much memory, e.g. 8GB"
    ),
)


def run(arguments: argparse.Namespace) -> int:
    """Read, fuse and write; return the exit status."""
    from boxscore.formats.reading import read_options
    from boxscore.formats.results import check_one_form, load_results, save_table

    # Check the options before reading large files.
    files: list[Path] = arguments.detections
    if arguments.weights is not None:
        checks.same_length(len(files), of="the files", **{"--weights": arguments.weights})
    options: dict[str, Any] = {
        name: getattr(arguments, name)
        for name in ("method", "weights", "overlap", "mask_threshold", "confidence")
    }
    options["similarity"] = SIMILARITIES[arguments.iou_type]
    check_fusion(**options)
    options = {name: value for name, value in options.items() if value is not None}
    options |= {name: getattr(arguments, name) for name in ("iou_threshold", "score_threshold")}
    instances = ["masks"] if arguments.iou_type == "segm" else []
    # Fuse in partitions, or in memory. All files must have one format, because the output has the format of
    # the first.
    if arguments.memory_limit is not None:
        from boxscore.extensions.large.rewriting_command import rewritten_in_parts

        counts = rewritten_in_parts(
            arguments,
            files,
            fused_part,
            lambda _: options,
            instances=instances,
            before_writing=lambda counts: warn_of_scale(counts.largest, counts.largest_made),
        )
        _say(counts.made, counts.given, len(files), arguments.output)
        return 0
    how = read_options(instances=instances, processes=readers(arguments), **results_arguments(arguments))
    oriented = arguments.iou_type in ("rotated", "quadrilateral")
    read = [load_results(file, how, oriented=oriented, output=arguments.output) for file in files]
    check_one_form((results.path, results.format) for results in read)
    tables = [results.table for results in read]
    table = fuse(tables, **options)
    save_table(table, arguments.output, like=read[0])
    _say(len(table), sum(map(len, tables)), len(files), arguments.output)
    return 0


def _say(made: int, given: int, models: int, output: Path) -> None:
    boxes, detections = counted(made, "box"), counted(given, "detection")
    say(f"{boxes} from {detections} of {counted(models, 'model')}, written to {output}")
