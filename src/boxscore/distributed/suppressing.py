"""Suppression and fusion of detections in Parquet larger than memory: in partitions, files in, a file out.

Conventions
-----------
- A partition is a range of ids of images. Groups are inside images, so a partition alone decides its rows,
  and what is left has the bits of all at once.
- Rows are written ascending by image, in each in the order of all at once.
- Every column is read, those of the user too.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from boxscore._utils.pickling import PicklesFields
from boxscore.data.tables import Detections
from boxscore.data.vocabulary import Categories
from boxscore.distributed.engine import Engine
from boxscore.distributed.image_ranges import Cutter, IdRange
from boxscore.distributed.sides import Side, Source, located, side_of
from boxscore.distributed.streaming import RANGES, categories_of_groups
from boxscore.formats._format import ReadOptions
from boxscore.formats._rows import detections_of
from boxscore.formats._tables import rows_of
from boxscore.formats.parquet import FORMAT, write_joined
from boxscore.formats.parquet_groups import AT, KEY, ParquetGroups
from boxscore.suppression.tables import classes_of_all

Rewrite = Callable[..., Detections]
"""Takes tables of detections and options, and returns a table; pickles."""


@dataclasses.dataclass(frozen=True)
class RewriteTask(PicklesFields):
    """One partition: reads its detections of each file, writes what becomes of them.

    Attributes
    ----------
    number : int
    ids : IdRange
    sides : tuple of Side
    sources : tuple of Source
    categories : Categories
        Of all files.
    output : Path
    """

    number: int
    ids: IdRange
    sides: tuple[Side, ...]
    sources: tuple[Source, ...]
    categories: Categories
    output: Path

    def run(self, rewrite: Rewrite, options: Mapping[str, Any]) -> Counted:
        """Write what a function makes of the detections, and count."""
        tables = [self._table(*one) for one in zip(self.sides, self.sources, strict=True)]
        made = rewrite(tables, **options)
        FORMAT.save(made.take(np.argsort(made.image, kind="stable")), self.output)
        return Counted(len(made), sum(map(len, tables)))

    def _table(self, side: Side, source: Source) -> Detections:
        boxes = side.read(source, self.ids)
        if boxes is None:
            nothing: Any = []
            return Detections.from_arrays(
                nothing, nothing, np.empty((0, 4)), nothing, images=nothing, categories=self.categories
            )
        rows = rows_of(boxes, side.options, None, of_results=True, fractions=side.fractions)
        table = detections_of(rows, side.options, None)
        columns = {name: column for name, column in table.columns.items() if name not in (KEY, AT)}
        category = self.categories.rows(table.categories.ids)[table.category]
        return table.replaced(columns=columns, categories=self.categories, category=category)


class Counted(NamedTuple):
    """Detections that are written, and those that were read."""

    made: int
    given: int


def rewrite_tasks(
    every: Sequence[ParquetGroups], options: Sequence[ReadOptions], folder: Path, partition: int
) -> list[RewriteTask]:
    """Cut detections into partitions of about so many boxes.

    Parameters
    ----------
    every : sequence of ParquetGroups
        A file or folder each, opened with every column.
    options : sequence of ReadOptions
        Of each.
    folder : Path
        For what is regrouped or read from stores, and for what is made of each partition.
    partition : int
    """
    every = [groups.holding(folder / RANGES) for groups in every]
    classes = [categories_of_groups(*one) for one in zip(every, options, strict=True)]
    categories = classes_of_all(classes, [str(groups.path) for groups in every])
    sides = [side_of(*one, None, None, of_results=True) for one in zip(every, options, strict=True)]
    cutter = Cutter([side.groups for side in sides], None)
    ranges = cutter.cut(max(1, -(-cutter.boxes // partition)))
    sides = [
        dataclasses.replace(side, groups=groups) for side, groups in zip(sides, cutter.sides, strict=True)
    ]
    numbers = range(len(ranges.edges) + 1)
    sources = [
        located(side, ranges, numbers, folder / f"regrouped-{at}", partition) for at, side in enumerate(sides)
    ]
    return [
        RewriteTask(number, ids, tuple(sides), tuple(own), categories, folder / f"made-{number}.parquet")
        for number, (ids, *own) in enumerate(zip(ranges.all(), *sources, strict=True))
    ]


def rewrite_in_parts(
    engine: Engine, tasks: Sequence[RewriteTask], rewrite: Rewrite, options: Mapping[str, Any], output: Path
) -> Counted:
    """Rewrite every partition, and write one file of what is made."""
    calls = [engine.submit(f"partition {task.number}", _run, task, rewrite, options) for task in tasks]
    counts = engine.results(calls, shown="writing")
    write_joined([task.output for task in tasks], output, tasks[0].output.parent)
    return Counted(sum(one.made for one in counts), sum(one.given for one in counts))


def _run(task: RewriteTask, rewrite: Rewrite, options: Mapping[str, Any]) -> Counted:
    return task.run(rewrite, options)
