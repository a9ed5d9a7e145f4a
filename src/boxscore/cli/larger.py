"""Detections in Parquet, evaluated in partitions: where they are many, memory is limited, or workers help."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from boxscore.cli.inputs import (
    chosen,
    chosen_protocol,
    detection_arguments,
    evaluate_inputs,
    ground_truth_arguments,
    read_inputs,
    readers,
)
from boxscore.distributed.bounds import (
    BoundedEvaluation,
    bounded,
    bounds_of_tasks,
    check_bounds,
    histogram_of,
)
from boxscore.distributed.local import bytes_of_text, check_scoring, partition_within, process_map
from boxscore.distributed.merging import MergedEvaluation
from boxscore.distributed.parts import check_mergeable, part_of
from boxscore.distributed.scanning import Task, merged_tasks, streamed
from boxscore.distributed.streaming import is_parquet
from boxscore.errors import InputError
from boxscore.formats.parquet_groups import ParquetGroups
from boxscore.formats.reading import read_options

__all__ = ["bounds_of", "evaluate_larger", "is_larger"]

MANY = 1 << 23
"""Boxes of detections from which they are evaluated in partitions unless something needs all at once."""

HISTOGRAMS = 1 << 25
"""Detections that parts hold in about the memory in which histograms are added up."""

NEEDS_ROWS = {"report": "--report", "verify": "--verify", "images": "--images", "save_part": "--save-part"}
"""Options that need all rows at once, and what they are called."""


def is_larger(arguments: argparse.Namespace) -> bool:
    """Whether the input is evaluated in partitions: as asked, or because it is Parquet and very long."""
    asked = arguments.memory_limit is not None
    path: Path = arguments.detections
    in_parquet = path.exists() and arguments.dt_format in ("auto", "parquet") and is_parquet(path)
    needing = [
        name for dest, name in NEEDS_ROWS.items() if getattr(arguments, dest, None) not in (None, False)
    ]
    needing += ["--class-map"] if arguments.class_map is not None else []
    if asked and not in_parquet:
        cause = "boxscore convert writes it: --dt DETECTIONS --output FOLDER --partitions N"
        raise InputError("--memory-limit", "be of detections in Parquet", got=repr(str(path)), cause=cause)
    if asked and needing:
        cause = "partitions are forgotten once they are matched: leave out one of the two"
        raise InputError(needing[0], "be left out with --memory-limit", got="both", cause=cause)
    if not in_parquet or needing:
        return False
    if asked or (arguments.workers or 1) > 1:
        return True
    return ParquetGroups.open(path, read_options(**detection_arguments(arguments))).boxes > MANY


def bounds_of(arguments: argparse.Namespace) -> BoundedEvaluation:
    """Bound the metrics: in partitions where detections are in Parquet, else of all rows at once."""
    check_bounds(chosen_protocol(arguments))
    for name in NEEDS_ROWS.keys() - {"images"}:
        if getattr(arguments, name, None) not in (None, False):
            cause = "counts are all that is kept"
            raise InputError(NEEDS_ROWS[name], "be left out with --bounds", got="both", cause=cause)
    path: Path = arguments.detections
    in_parquet = path.exists() and arguments.dt_format in ("auto", "parquet") and is_parquet(path)
    if not in_parquet or arguments.images is not None or arguments.class_map is not None:
        if arguments.memory_limit is not None:
            is_larger(arguments)  # which refuses it
        part = part_of(evaluate_inputs(read_inputs(arguments)))
        return bounded(histogram_of(dataclasses.replace(part, row_order="shared")))  # by no other part
    with _partitions(arguments, most_held=HISTOGRAMS) as (tasks, run_all, _):
        return bounds_of_tasks(tasks, run_all)


def evaluate_larger(arguments: argparse.Namespace) -> MergedEvaluation:
    """Evaluate in partitions, by as many processes as ``--workers`` says."""
    with _partitions(arguments) as (tasks, run_all, limit):
        result = merged_tasks(tasks, run_all)
        check_scoring(result.parts, limit)
        return result


@contextlib.contextmanager
def _partitions(
    arguments: argparse.Namespace, most_held: int | None = None
) -> Iterator[tuple[Sequence[Task], Callable[..., Iterable[Any]], int | None]]:
    """Cut the input into tasks; with what runs them, and the limit in bytes."""
    protocol = chosen_protocol(arguments)
    check_mergeable(protocol)
    limit = None if arguments.memory_limit is None else bytes_of_text(arguments.memory_limit)
    workers = 1 if arguments.workers is None else readers(arguments)
    options = detection_arguments(arguments)
    options.pop("class_map")
    groups = ParquetGroups.open(arguments.detections, read_options(**options))
    images = sum(group.rows for group in groups.groups) // 4  # a guess, before a row is read
    held = groups.boxes if most_held is None else min(groups.boxes, most_held)
    with (
        streamed(
            arguments.ground_truth,
            arguments.detections,
            protocol,
            partition=partition_within(limit, held, images, workers),
            truth_options=ground_truth_arguments(arguments),
            options=options,
            classes=lambda categories: chosen(
                arguments.classes,
                names=categories.names.tolist(),
                integers=categories.ids.dtype != object,
            ),
        ) as tasks,
        process_map(workers) as run_all,
    ):
        yield tasks, run_all, limit
