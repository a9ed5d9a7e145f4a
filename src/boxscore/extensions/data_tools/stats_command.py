"""Count images, objects, classes and sizes of a data set; compute anchors for its boxes.

Examples
--------
  boxscore stats instances.json
  boxscore stats VOC2007 --image-set test --output csv
  boxscore stats instances.json --output stats.json
  boxscore stats truth.parquet detections --memory-limit 2GB
  boxscore stats instances.json --anchors 9 --image-size 640
  boxscore stats instances.json --anchors 10,13 16,30 33,23 --image-size 416x416
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import re
from typing import Any

from boxscore._utils.checks import plain_number
from boxscore._utils.files import temporary_folder
from boxscore._utils.text import counted
from boxscore.cli.arguments import (
    DETECTION_FILES,
    DETECTIONS,
    FORMAT,
    GROUND_TRUTH,
    GROUND_TRUTH_FILES,
    IMAGE_SET,
    OUTPUT,
    ROWS,
    SHOW,
    WORKERS,
    Option,
)
from boxscore.cli.inputs import detection_arguments, ground_truth_arguments
from boxscore.cli.output import Section, rows_of, written
from boxscore.cli.streams import show
from boxscore.data.tables import Detections, GroundTruth
from boxscore.errors import InputError
from boxscore.extensions.data_tools.anchors import Anchors, table_anchors
from boxscore.extensions.data_tools.statistics import TableStatistics, table_statistics
from boxscore.extensions.large.options import MEMORY_LIMIT
from boxscore.formats.reading import read_detections, read_ground_truth, read_options
from boxscore.reports.rows import with_rows

OPTIONS = (
    Option(
        "anchors",
        "compute anchors by k-means with 1 - IoU: number of anchors, or widths and heights to evaluate, "
        "e.g. 10,13 16,30",
        many=True,
        metavar="K|W,H",
    ),
    Option(
        "image-size",
        "for --anchors: size of the longer image side after resizing, or WIDTHxHEIGHT",
        metavar="N|WxH",
    ),
    Option("seed", "random seed of --anchors", kind=int, default=0, metavar="N"),
    GROUND_TRUTH,
    DETECTIONS.but(
        help="count these detections instead, for the images and classes of the ground truth", required=False
    ),
    FORMAT,
    IMAGE_SET,
    WORKERS.but(help="processes that count partitions (default: 1)"),
    MEMORY_LIMIT.but(
        help="for detections in Parquet: count partitions that fit in this much memory, e.g. 8GB"
    ),
    *(*GROUND_TRUTH_FILES, *DETECTION_FILES),
    OUTPUT,
    *ROWS,
    SHOW,
)


def run(arguments: argparse.Namespace) -> int:
    """Read, count, print; return the exit status."""
    # Check the options before anything is read.
    rows = rows_of(arguments)
    wanted = None if arguments.anchors is None else _parse_anchors(arguments.anchors)
    image_size = None if arguments.image_size is None else _image_size(arguments.image_size)
    if image_size is not None and wanted is None:
        raise InputError(
            "--image-size",
            "be used together with --anchors",
            got=arguments.image_size,
            cause="did you mean --image-sizes?",
        )
    # Count in memory or by partition.
    if arguments.memory_limit is None:
        table = _table(arguments)
        statistics = table_statistics(table)
    else:
        statistics = _statistics_in_parts(arguments)
    # Select the classes to print; the counts include all classes.
    chosen, words = rows.of(statistics.per_class)
    classes = with_rows(statistics.per_class, chosen)
    counts: dict[str, list[Any]] = {
        "quantity": [name.replace("_", " ") for name in statistics.counts],
        "count": list(statistics.counts.values()),
    }
    # Print three tables, and anchors if requested.
    sections = [
        Section(statistics.source, counts),
        Section(f"Classes, {words}" if words else "Classes", classes),
        Section(
            f"Quantiles of sizes in {statistics.units}",
            statistics.sizes,
            digits=2,
            first_out=("5%", "95%", "25%", "75%"),
        ),
    ]
    value = dataclasses.replace(statistics, per_class=classes).to_dict()
    if wanted is not None:
        anchors = table_anchors(table, wanted, image_size=image_size, seed=arguments.seed)
        sections += _anchor_sections(anchors)
        value["anchors"] = anchors.to_dict()
    show(
        written(
            arguments.output,
            sections,
            value=value,
            table=classes if wanted is None else anchors.table,
            longest=60,
        )
    )
    return 0


def _table(arguments: argparse.Namespace) -> GroundTruth | Detections:
    """Read the table."""
    options = read_options(**ground_truth_arguments(arguments))
    truth = read_ground_truth(arguments.ground_truth, options)
    if arguments.detections is None:
        return truth
    return read_detections(arguments.detections, truth, read_options(**detection_arguments(arguments)))


def _statistics_in_parts(arguments: argparse.Namespace) -> TableStatistics:
    """Count partition by partition; partitions have whole images."""
    from boxscore.extensions.large.command_line import has_scores, is_larger, told_of_partitions
    from boxscore.extensions.large.statistics_in_parts import counted_part, statistics_of_parts
    from boxscore.extensions.validation.checking import judging_protocol

    if arguments.detections is None:
        cause = "ground truth alone is always read into memory"
        raise InputError("--memory-limit", "be used together with --detections", got="none", cause=cause)
    if arguments.anchors is not None:
        cause = "each round of k-means compares every box with every anchor"
        raise InputError("--anchors", "not be combined with --memory-limit", got="both", cause=cause)
    is_larger(arguments)  # raises an error if the files cannot be partitioned
    protocol = judging_protocol(None, scored=has_scores(arguments))
    with temporary_folder() as folder:
        parts = told_of_partitions(arguments, protocol, counted_part, {"folder": folder})
        return statistics_of_parts(parts, folder)


def _parse_anchors(texts: list[str]) -> int | list[list[float]]:
    """Parse ``--anchors``: a number of anchors, or the width and height of each."""
    if len(texts) == 1 and texts[0].isascii() and texts[0].isdecimal():
        return int(texts[0][:20])
    pairs = [text.split(",") for text in texts]
    with contextlib.suppress(ValueError):
        if all(len(pair) == 2 for pair in pairs):
            return [[plain_number(side) for side in pair] for pair in pairs]
    raise InputError(
        "--anchors",
        "be a whole number, or widths and heights W,H",
        got=repr(" ".join(texts)),
        cause="for example 9, or 10,13 16,30 33,23",
    )


def _image_size(text: str) -> float | tuple[float, float]:
    """Parse ``--image-size``: the longer side, or both sides."""
    match = re.fullmatch(r"(\d{1,7})(?:[xX](\d{1,7}))?", text, re.ASCII)
    if match is None:
        raise InputError("--image-size", "be a whole number or WIDTHxHEIGHT", got=repr(text))
    longer, other = match.groups()
    return float(longer) if other is None else (float(longer), float(other))


def _anchor_sections(anchors: Anchors) -> list[Section]:
    count = int(anchors.boxes.sum())
    left_out = ", ".join(f"{number:,} {name}" for name, number in anchors.left_out.items())
    note = f"of {counted(count, 'box')}" + (f"; left out: {left_out}" if left_out else "")
    size = anchors.image_size
    if size is not None:
        resized = f"{size[0]:g}x{size[1]:g}" if isinstance(size, tuple) else f"a longer side of {size:g}"
        note += f"; images resized to {resized}"
    return [
        Section(f"Anchors in {anchors.units}", anchors.table, note, digits=2),
        Section("Fit of the anchors", anchors.fit),
    ]
