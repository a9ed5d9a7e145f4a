"""Suppress or fuse detections in Parquet files larger than memory, and write Parquet."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from boxscore._utils.files import temporary_folder
from boxscore.cli.choices import group_options, readers, results_arguments
from boxscore.cli.nms import instances_of, say_kept
from boxscore.data.tables import Detections
from boxscore.data.vocabulary import Categories
from boxscore.errors import InputError
from boxscore.extensions.large.local import Load, LocalEngine, bytes_of_text, plan_within
from boxscore.extensions.large.parquet_groups import ParquetGroups
from boxscore.extensions.large.suppressing import Counted, Rewrite, join_parquet, parquet_tasks, rewritten
from boxscore.formats.reading import read_options
from boxscore.formats.registry import open_at
from boxscore.formats.results import check_one_form
from boxscore.suppression.result import Suppression
from boxscore.suppression.suppressing import suppress


def rewritten_in_parts(
    arguments: argparse.Namespace,
    paths: Sequence[Path],
    rewrite: Rewrite,
    options_of: Callable[[Categories], Mapping[str, Any]],
    *,
    instances: Sequence[str] = (),
    before_writing: Callable[[Counted], None] | None = None,
) -> Counted:
    """Suppress the detections of a file, or fuse those of several, partition by partition, and write them.

    Parameters
    ----------
    arguments : Namespace
    paths : sequence of Path
    rewrite : callable
        Makes the detections of one partition from those of each file.
    options_of : callable
        Takes the classes and returns the options of ``rewrite``.
    instances : sequence of str
        Instance columns to compare.
    before_writing : callable, optional
        Takes the counts before the result is written.
    """
    # Only Parquet can be read and written in partitions.
    formats = [open_at(path, side="detections").format for path in paths]
    check_one_form([(path, each.name) for path, each in zip(paths, formats, strict=True)])
    if formats[0].name != "parquet":
        cause = "convert them: boxscore convert --gt GT --dt DT --to parquet --output FILE"
        raise InputError(
            "--memory-limit", "be used with detections in Parquet", got=repr(str(paths[0])), cause=cause
        )
    # Plan how many boxes fit, as for an evaluation.
    workers = 1 if arguments.workers is None else readers(arguments)
    read = read_options(instances=list(instances), **results_arguments(arguments))
    limit = bytes_of_text(arguments.memory_limit)
    # Write each partition separately, and join the files in order at the end.
    with temporary_folder() as folder, LocalEngine(folder, workers, sparing=True) as engine:
        every = [ParquetGroups.open(path, read, further=None) for path in paths]
        plan = plan_within(limit, Load.of(every, None), workers)
        tasks = parquet_tasks(every, [read] * len(every), folder, plan.partition)
        counts = rewritten(engine, tasks, rewrite, options_of(tasks[0].categories))
        if before_writing is not None:
            before_writing(counts)
        join_parquet(tasks, arguments.output)
        return counts


def suppress_in_parts(arguments: argparse.Namespace, options: Mapping[str, Any]) -> None:
    """Run ``boxscore nms`` partition by partition."""
    options = {
        **options,
        **{name: getattr(arguments, name) for name in ("method", "sigma", "score_threshold")},
    }
    counts = rewritten_in_parts(
        arguments,
        [arguments.detections],
        suppressed_table,
        lambda categories: {**options, **group_options(arguments, categories)},
        instances=instances_of(options),
    )
    say_kept(counts.made, counts.given, arguments)


def suppressed_table(tables: Sequence[Detections], **options: Any) -> Detections:
    """Return the detections that :func:`boxscore.suppress` keeps of the only table, in table order."""
    (table,) = tables
    left: Suppression = suppress(table, **options)
    order = np.argsort(left.indices)
    kept, changes = table.take(left.indices[order]), {}
    if left.changes == "scores":
        changes["scores"] = left.scores[order]
    if left.changes == "boxes":
        boxes = left.boxes[order]
        moved = (kept.boxes != boxes).any(axis=1)
        changes["boxes"] = boxes
        changes["sizes"] = np.where(moved[:, None], boxes[:, 2:] - boxes[:, :2], kept.sizes)
    return kept.replaced(**changes)
