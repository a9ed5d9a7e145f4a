"""Suppress or fuse detections in Parquet files larger than memory, partition by partition.

Conventions
-----------
- Boxes compete only within an image, so partitions of whole images give the bits of a run in memory.
- A partition is a range of image ids. All columns are read, including user columns. Rows are written in
  ascending order of image, and within an image in the order of a run in memory.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from boxscore._utils.records import PicklesFields
from boxscore._utils.user_warnings import warn_user
from boxscore.data.tables import Detections
from boxscore.data.vocabulary import Categories
from boxscore.errors import BoxscoreWarning
from boxscore.extensions.fusion.tables import classes_of_all
from boxscore.extensions.large.engine import Engine
from boxscore.extensions.large.image_ranges import Cutter, IdRange
from boxscore.extensions.large.joining import no_detections, under_classes
from boxscore.extensions.large.parquet_groups import AT, KEY, ParquetGroups
from boxscore.extensions.large.sides import Side, Source, located, side_of
from boxscore.extensions.large.streaming import RANGES, categories_of_groups, with_class_columns
from boxscore.formats._format import ReadOptions
from boxscore.formats._rows import detections_of
from boxscore.formats._tables import rows_of
from boxscore.formats.parquet import FORMAT, write_joined

Rewrite = Callable[..., Detections]
"""Takes tables of detections and options, and returns a table; pickles."""


@dataclasses.dataclass(frozen=True)
class RangeRows(PicklesFields):
    """The rows of a range of images in one file."""

    ids: IdRange
    side: Side
    source: Source

    def table(self, categories: Categories) -> Detections:
        """Read the rows, with the classes of all files."""
        side, boxes = self.side, self.side.read(self.source, self.ids)
        if boxes is None:
            return no_detections(categories)
        rows = rows_of(boxes, side.options, None, of_results=True, fractions=side.fractions)
        table = detections_of(rows, side.options, None)
        columns = {name: column for name, column in table.columns.items() if name not in (KEY, AT)}
        return under_classes(table.replaced(columns=columns), categories)


@dataclasses.dataclass(frozen=True)
class RewriteTask(PicklesFields):
    """One partition: read its detections from each file, and write the result.

    Attributes
    ----------
    number : int
    sources : tuple of RangeRows
    categories : Categories
        Classes of all files.
    output : Path
    """

    number: int
    sources: tuple[RangeRows, ...]
    categories: Categories
    output: Path

    def run(self, rewrite: Rewrite, options: Mapping[str, Any]) -> Counted:
        """Apply a function to the detections, write the result sorted by image, and count."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            tables = [source.table(self.categories) for source in self.sources]
            made = rewrite(tables, **options)
        FORMAT.save(made.take(np.argsort(made.image, kind="stable")), self.output)
        largest = max(float(table.scores.max(initial=0)) for table in tables)
        messages = tuple(one.message for one in caught)
        return Counted(len(made), sum(map(len, tables)), largest, float(made.scores.max(initial=0)), messages)


class Counted(NamedTuple):
    """Number of detections written and read."""

    made: int
    given: int
    largest: float
    """Largest score read."""
    largest_made: float
    """Largest score written."""
    warnings: tuple[Warning | str, ...] = ()


def rewritten(
    engine: Engine, tasks: Sequence[RewriteTask], rewrite: Rewrite, options: Mapping[str, Any]
) -> Counted:
    """Rewrite every partition; repeat each distinct warning once."""
    calls = [engine.submit(f"partition {task.number}", _run, task, rewrite, options) for task in tasks]
    counts = engine.results(calls, shown="rewriting")
    for text, warning in {str(each): each for one in counts for each in one.warnings}.items():
        warn_user(warning if isinstance(warning, BoxscoreWarning) else text)
    return Counted(
        sum(one.made for one in counts),
        sum(one.given for one in counts),
        max(one.largest for one in counts),
        max(one.largest_made for one in counts),
    )


def _run(task: RewriteTask, rewrite: Rewrite, options: Mapping[str, Any]) -> Counted:
    return task.run(rewrite, options)


def parquet_tasks(
    every: Sequence[ParquetGroups], options: Sequence[ReadOptions], folder: Path, partition: int
) -> list[RewriteTask]:
    """Split detections into partitions of about ``partition`` boxes.

    Parameters
    ----------
    every : sequence of ParquetGroups
        Files or folders, opened with every column.
    options : sequence of ReadOptions
        Options of each.
    folder : Path
        Folder for regrouped rows, the cache of remote files, and the result of each partition.
    partition : int
    """
    # Use one list of classes for all files.
    decided = [
        with_class_columns(groups.holding(folder / RANGES), read, None, of_results=True)
        for groups, read in zip(every, options, strict=True)
    ]
    every, options = zip(*decided, strict=True)
    classes = [categories_of_groups(*one) for one in zip(every, options, strict=True)]
    categories = classes_of_all(classes, [str(groups.path) for groups in every])
    sides = [side_of(*one, None, None, of_results=True) for one in zip(every, options, strict=True)]
    # Split all files at the same ids, so that competing boxes are in one partition.
    cutter = Cutter([side.groups for side in sides], None)
    ranges = cutter.cut(max(1, -(-cutter.boxes // partition)))
    sides = [
        dataclasses.replace(side, groups=groups) for side, groups in zip(sides, cutter.sides, strict=True)
    ]
    numbers = range(len(ranges.edges) + 1)
    # Regroup scattered rows on disk first.
    sources = [
        located(side, ranges, numbers, folder / f"regrouped-{at}", partition) for at, side in enumerate(sides)
    ]
    return [
        RewriteTask(
            number,
            tuple(RangeRows(ids, *one) for one in zip(sides, own, strict=True)),
            categories,
            folder / f"made-{number}.parquet",
        )
        for number, (ids, *own) in enumerate(zip(ranges.all(), *sources, strict=True))
    ]


def join_parquet(tasks: Sequence[RewriteTask], output: Path) -> None:
    """Join the results of all partitions in one file."""
    write_joined([task.output for task in tasks], output, tasks[0].output.parent)
