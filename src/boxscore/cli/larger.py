"""Detections in Parquet, evaluated in partitions: where they are many, memory is limited, or workers help."""

from __future__ import annotations

import argparse
from pathlib import Path

from boxscore.cli.inputs import chosen, chosen_protocol, detection_arguments, ground_truth_arguments, readers
from boxscore.distributed.local import bytes_of_text, check_scoring, partition_within, process_map
from boxscore.distributed.merging import MergedEvaluation
from boxscore.distributed.parts import check_mergeable
from boxscore.distributed.scanning import merged_tasks, streamed
from boxscore.distributed.streaming import is_parquet
from boxscore.errors import InputError
from boxscore.formats.parquet_groups import ParquetGroups
from boxscore.formats.reading import read_options

__all__ = ["evaluate_larger", "is_larger"]

MANY = 1 << 23
"""Boxes of detections from which they are evaluated in partitions unless something needs all at once."""

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
        cause = "boxscore convert --gt GT --dt DT --to parquet --partitions 8 --output FOLDER writes it"
        raise InputError("--memory-limit", "be of detections in Parquet", got=repr(str(path)), cause=cause)
    if asked and needing:
        cause = "partitions are forgotten once they are matched: leave out one of the two"
        raise InputError(needing[0], "be left out with --memory-limit", got="both", cause=cause)
    if not in_parquet or needing:
        return False
    if asked or (arguments.workers or 1) > 1:
        return True
    return ParquetGroups.open(path, read_options(**detection_arguments(arguments))).boxes > MANY


def evaluate_larger(arguments: argparse.Namespace) -> MergedEvaluation:
    """Evaluate in partitions, by as many processes as ``--workers`` says."""
    protocol = chosen_protocol(arguments)
    check_mergeable(protocol)
    limit = None if arguments.memory_limit is None else bytes_of_text(arguments.memory_limit)
    workers = 1 if arguments.workers is None else readers(arguments)
    options = detection_arguments(arguments)
    options.pop("class_map")
    groups = ParquetGroups.open(arguments.detections, read_options(**options))
    images = sum(group.rows for group in groups.groups) // 4  # a guess, before a row is read
    with (
        streamed(
            arguments.ground_truth,
            arguments.detections,
            protocol,
            partition=partition_within(limit, groups.boxes, images, workers),
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
        result = merged_tasks(tasks, run_all)
        check_scoring(result.parts, limit)
        return result
