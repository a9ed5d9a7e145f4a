"""Detections in Parquet, evaluated in partitions: where they are many, memory is limited, or workers help."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator
from pathlib import Path

from boxscore._utils.files import temporary_folder
from boxscore.cli.inputs import (
    chosen,
    chosen_protocol,
    detection_arguments,
    evaluate_inputs,
    existing_folder,
    ground_truth_arguments,
    read_inputs,
    readers,
)
from boxscore.distributed.bounds import BoundedEvaluation, bounds_of, check_bounds
from boxscore.distributed.local import LocalEngine, bytes_of_text, check_scoring, plan_within
from boxscore.distributed.parts import check_mergeable
from boxscore.distributed.reduction import asked_keys
from boxscore.distributed.result import DistributedEvaluation, evaluation_of, headers_of, warn_of_classes
from boxscore.distributed.scanning import streamed
from boxscore.distributed.streaming import is_parquet
from boxscore.errors import InputError
from boxscore.evaluation import Evaluation
from boxscore.formats.parquet_groups import ParquetGroups
from boxscore.formats.reading import read_options

__all__ = ["evaluate_larger", "evaluation_in_parts", "is_larger"]

MANY = 1 << 23
"""Boxes of detections from which they are evaluated in partitions unless something needs all at once."""

NEEDS_ROWS = {"report": "--report", "verify": "--verify", "images": "--images", "save_part": "--save-part"}
"""Options that need all rows at once, and what they are called."""


ASKING = {"memory_limit": "--memory-limit", "bounds": "--bounds"}
"""Options that ask for partitions, and what they are called."""


def is_larger(arguments: argparse.Namespace) -> bool:
    """Whether the input is evaluated in partitions: as asked, or because it is Parquet and very long."""
    asked = next((name for name in ASKING if getattr(arguments, name, None) not in (None, False)), None)
    path: Path = arguments.detections
    in_parquet = path.exists() and arguments.dt_format in ("auto", "parquet") and is_parquet(path)
    needing = [
        name for dest, name in NEEDS_ROWS.items() if getattr(arguments, dest, None) not in (None, False)
    ]
    needing += ["--class-map"] if arguments.class_map is not None else []
    if asked and not in_parquet:
        cause = "boxscore convert writes it: --dt DETECTIONS --output FOLDER --partitions N"
        raise InputError(ASKING[asked], "be of detections in Parquet", got=repr(str(path)), cause=cause)
    if asked and needing:
        cause = "partitions are forgotten once they are matched: leave out one of the two"
        raise InputError(needing[0], f"be left out with {ASKING[asked]}", got="both", cause=cause)
    if not in_parquet or needing:
        return False
    if asked or (arguments.workers or 1) > 1:
        return True
    return ParquetGroups.open(path, read_options(**detection_arguments(arguments))).boxes > MANY


def evaluate_larger(arguments: argparse.Namespace) -> DistributedEvaluation | BoundedEvaluation:
    """Evaluate in partitions, by as many processes as ``--workers`` says."""
    with contextlib.ExitStack() as stack:
        return _evaluated(arguments, stack, bounds=arguments.bounds)


@contextlib.contextmanager
def evaluation_in_parts(arguments: argparse.Namespace) -> Iterator[Evaluation]:
    """Evaluate for a further question: in partitions that stay on disk, if ``--memory-limit`` asks for it."""
    if arguments.memory_limit is None or not is_larger(arguments):
        yield evaluate_inputs(read_inputs(arguments))
        return
    with contextlib.ExitStack() as stack:
        result = _evaluated(arguments, stack)
        assert isinstance(result, DistributedEvaluation)
        yield result


def _evaluated(
    arguments: argparse.Namespace, stack: contextlib.ExitStack, *, bounds: bool = False
) -> DistributedEvaluation | BoundedEvaluation:
    """Evaluate in partitions; parts are there until the stack is closed."""
    protocol = chosen_protocol(arguments)
    check_mergeable(protocol)
    if bounds:
        check_bounds(protocol)
    limit = None if arguments.memory_limit is None else bytes_of_text(arguments.memory_limit)
    workers = 1 if arguments.workers is None else readers(arguments)
    options = detection_arguments(arguments)
    options.pop("class_map")
    groups = ParquetGroups.open(arguments.detections, read_options(**options))
    images = sum(group.rows for group in groups.groups) // 4  # a guess, before a row is read
    plan = plan_within(limit, groups.boxes, images, workers)
    folder = stack.enter_context(
        temporary_folder(existing_folder(getattr(arguments, "scratch", None), name="--scratch"))
    )
    tasks = stack.enter_context(
        streamed(
            arguments.ground_truth,
            arguments.detections,
            protocol,
            partition=plan.partition,
            truth_options=ground_truth_arguments(arguments),
            options=options,
            classes=lambda categories: chosen(
                arguments.classes,
                names=categories.names.tolist(),
                integers=categories.ids.dtype != object,
            ),
            scratch=folder,
        )
    )
    engine = stack.enter_context(LocalEngine(folder, workers))
    parts = engine.match(tasks)
    if bounds:
        intervals = bounds_of(engine, parts)
        warn_of_classes(intervals.histogram.headers)
        return intervals
    headers = headers_of(engine, parts)
    warn_of_classes(headers)
    check_scoring(headers, plan)
    return evaluation_of(engine, parts, headers, most=plan.most, keys=asked_keys(protocol), room=plan.room)
