"""Detections larger than memory that are suppressed or fused, and written again: Parquet, or COCO results."""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from boxscore._utils.files import bytes_below, temporary_folder
from boxscore._utils.progress import stage
from boxscore.cli.inputs import readers
from boxscore.data.vocabulary import Categories
from boxscore.distributed.local import (
    LEAST,
    NAMED,
    Load,
    LocalEngine,
    Plan,
    bytes_of_text,
    check_partition,
    plan_within,
)
from boxscore.distributed.plan import MATCHED
from boxscore.distributed.spilling import Spilled, bucket_count, spilled
from boxscore.distributed.suppressing import (
    Counted,
    RewriteTask,
    fused_in_order,
    join_parquet,
    kept_in_order,
    parquet_tasks,
    rewritten,
    store_fused,
    store_kept,
    text_tasks,
)
from boxscore.errors import InputError
from boxscore.formats._format import Format, ReadOptions
from boxscore.formats._shares import ROW
from boxscore.formats._snapshots import Snapshot
from boxscore.formats._survivors import SurvivorsInOrder
from boxscore.formats._unpacking import Unpacked
from boxscore.formats.parquet_groups import ParquetGroups
from boxscore.formats.reading import read_options
from boxscore.formats.registry import format_at, format_named
from boxscore.formats.results import check_one_form, results_in_blocks
from boxscore.suppression.fusion import warn_of_scale
from boxscore.suppression.result import Changes
from boxscore.suppression.tables import fused_part, suppressed_table

BLOCK = 1 << 16
"""Rows of text that are read at a time."""

MASK = 12
"""Bytes that a mask takes in memory for each byte of its record."""


class Rewriting(NamedTuple):
    """What becomes of detections.

    Attributes
    ----------
    options : callable
        Takes the classes and returns what suppression or fusion is given beside the tables.
    changes : {"nothing", "scores", "boxes"} or None
        What suppression of one file changes in the rows that it keeps; None where several are fused.
    instances : sequence of str
        Instance columns that are compared.
    oriented : bool
        Whether oriented boxes are compared.
    """

    options: Callable[[Categories], Mapping[str, Any]]
    changes: Changes | None = None
    instances: Sequence[str] = ()
    oriented: bool = False


def rewritten_in_parts(arguments: argparse.Namespace, paths: Sequence[Path], rewriting: Rewriting) -> Counted:
    """Suppress the detections of a file, or fuse those of several, partition by partition, and write them."""
    formats = [format_at(path, side="detections") for path in paths]
    check_one_form([(path, each.name) for path, each in zip(paths, formats, strict=True)])
    if formats[0].name != "parquet" and not all(each.reads_blocks for each in formats):
        wrong = next(path for path, each in zip(paths, formats, strict=True) if not each.reads_blocks)
        cause = "boxscore convert --gt GT --dt DT --to parquet --output FILE writes it"
        rule = "be of detections in Parquet, or of COCO results"
        raise InputError("--memory-limit", rule, got=repr(str(wrong)), cause=cause)
    workers = 1 if arguments.workers is None else readers(arguments)
    read = read_options(instances=list(rewriting.instances), box_format=arguments.dt_box_format)
    limit = bytes_of_text(arguments.memory_limit)
    with temporary_folder() as folder, LocalEngine(folder, workers, sparing=True) as engine:
        if formats[0].name == "parquet":
            every = [ParquetGroups.open(path, read, further=None) for path in paths]
            plan = plan_within(limit, Load.of(every, None), workers)
            tasks = parquet_tasks(every, [read] * len(every), folder, plan.partition)
            function = fused_part if rewriting.changes is None else suppressed_table
            counts = rewritten(engine, tasks, function, rewriting.options(tasks[0].categories))
            if rewriting.changes is None:
                warn_of_scale(counts.largest)
            join_parquet(tasks, arguments.output)
            return counts
        load = _load_of(paths, formats, rewriting)
        text = _Text(read, rewriting, folder, engine, load, plan_within(limit, load, workers))
        rewrite = text.fused if rewriting.changes is None else text.suppressed
        return rewrite(paths, formats, arguments.output)


def _load_of(paths: Sequence[Path], formats: Sequence[Format], rewriting: Rewriting) -> Load:
    """Estimate how many rows texts have, and what they ask of memory."""
    files = [_unpacked(*one) for one in zip(paths, formats, strict=True)]
    first = [each.first_rows(path) for path, each in zip(paths, formats, strict=True)]
    rows = sum(bytes_below(file) // one.nbytes for file, one in zip(files, first, strict=True))
    box = MATCHED + NAMED * any(one.named for one in first)
    if "masks" in rewriting.instances:
        box += MASK * max(one.nbytes for one in first)
    return Load(rows, box, about=True, least=LEAST * MATCHED // box)


def _unpacked(path: Path, file_format: Format) -> Path:
    """Return the file that is read."""
    return file_format.folder if isinstance(file_format, Unpacked) else path


class _Text(NamedTuple):
    """Detections in text: rows are stored by image, and what is made of them is put in order again."""

    read: ReadOptions
    rewriting: Rewriting
    folder: Path
    engine: LocalEngine
    load: Load
    plan: Plan

    def suppressed(self, paths: Sequence[Path], formats: Sequence[Format], output: Path) -> Counted:
        """Write what suppression leaves of one file, each record as it stands unless it changes."""
        ((path, file_format),) = zip(paths, formats, strict=True)
        file = _unpacked(path, file_format)
        snapshot = Snapshot.after_wait(file)
        assert self.rewriting.changes is not None
        tasks = self._tasks(paths, functools.partial(store_kept, changes=self.rewriting.changes))
        counts = rewritten(self.engine, tasks, suppressed_table, self._options(tasks))
        stage(f"writing {output}")
        kept = kept_in_order(tasks)
        survivors = SurvivorsInOrder(kept, counts.made, counts.given, snapshot, self.read.written)
        format_named(file_format.name).rewrite_blocks(file, survivors, output)
        return counts

    def fused(self, paths: Sequence[Path], formats: Sequence[Format], output: Path) -> Counted:
        """Write the fused boxes of several files, best first."""
        tasks = self._tasks(paths, store_fused)
        fuse = functools.partial(fused_part, column=ROW)
        counts = rewritten(self.engine, tasks, fuse, self._options(tasks))
        warn_of_scale(counts.largest)
        stage(f"writing {output}")
        format_named(formats[0].name).save_blocks(fused_in_order(tasks), output)
        return counts

    def _options(self, tasks: Sequence[RewriteTask]) -> Mapping[str, Any]:
        return self.rewriting.options(tasks[0].categories)

    def _tasks(self, paths: Sequence[Path], store: Callable[..., None]) -> list[RewriteTask]:
        """Store the rows of all files by image, and make tasks of them."""
        buckets = bucket_count(self.load.boxes, self.plan.partition)
        every: list[Spilled] = []
        for number, path in enumerate(paths):
            stage(f"reading {path}")
            blocks = results_in_blocks(path, self.read, BLOCK, oriented=self.rewriting.oriented)
            first = sum(one.total for one in every)
            folder = self.folder / f"by-image-{number}"
            every.append(spilled(blocks, folder, buckets, held=self.plan.partition, first=first))
        tasks = text_tasks(every, [str(path) for path in paths], store, self.folder, self.plan.partition)
        check_partition(max(task.rows for task in tasks), self.load, self.plan)
        return tasks
