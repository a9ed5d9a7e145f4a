"""Suppression and fusion of detections larger than memory: in partitions, files in, a file out.

Conventions
-----------
- Groups are inside images, so the rows of some images decide what is left of them, which has the bits of all
  at once.
- Of Parquet a partition is a range of ids of images. Every column is read, those of the user too, and rows
  are written ascending by image, in each in the order of all at once.
- Of text the rows are first stored by image. What is written is byte for byte what all at once gives.
"""

from __future__ import annotations

import dataclasses
import functools
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from boxscore._utils.pickling import PicklesFields
from boxscore._utils.user_warnings import warn_user
from boxscore.data.operations import no_detections, under_classes
from boxscore.data.tables import Detections
from boxscore.data.vocabulary import Categories, Images
from boxscore.distributed.engine import Engine
from boxscore.distributed.image_ranges import Cutter, IdRange
from boxscore.distributed.sides import Side, Source, located, side_of
from boxscore.distributed.spilling import LEAST_PIECE, Spilled, merged, partitions, table_of, write_pieces
from boxscore.distributed.streaming import RANGES, categories_of_groups
from boxscore.errors import BoxscoreWarning
from boxscore.formats._format import ReadOptions
from boxscore.formats._rows import detections_of
from boxscore.formats._shares import ROW
from boxscore.formats._survivors import Kept
from boxscore.formats._tables import rows_of
from boxscore.formats.parquet import FORMAT, write_joined
from boxscore.formats.parquet_groups import AT, KEY, ParquetGroups
from boxscore.suppression.result import Changes
from boxscore.suppression.tables import classes_of_all

Rewrite = Callable[..., Detections]
"""Takes tables of detections and options, and returns a table; pickles."""

Store = Callable[[Detections, Sequence[Detections], Path], None]
"""Takes what is made of tables, and the tables, and writes it to a file; pickles."""


class Rows(Protocol):
    """The rows of a partition in one file; pickles."""

    def table(self, categories: Categories) -> Detections:
        """Read them, with the classes of all files."""


@dataclasses.dataclass(frozen=True)
class RewriteTask(PicklesFields):
    """One partition: reads its detections of each file, stores what becomes of them.

    Attributes
    ----------
    number : int
    sources : tuple of Rows
    categories : Categories
        Of all files.
    store : callable
    output : Path
    rows : int
        Of all files, about.
    """

    number: int
    sources: tuple[Rows, ...]
    categories: Categories
    store: Store
    output: Path
    rows: int = 0

    def run(self, rewrite: Rewrite, options: Mapping[str, Any]) -> Counted:
        """Store what a function makes of the detections, and count; with its warnings."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            tables = [source.table(self.categories) for source in self.sources]
            made = rewrite(tables, **options)
        self.store(made, tables, self.output)
        largest = max(float(table.scores.max(initial=0)) for table in tables)
        return Counted(len(made), sum(map(len, tables)), largest, tuple(one.message for one in caught))


class Counted(NamedTuple):
    """Detections that are written, and those that were read."""

    made: int
    given: int
    largest: float
    """Score of those that were read."""
    warnings: tuple[Warning | str, ...] = ()


def rewritten(
    engine: Engine, tasks: Sequence[RewriteTask], rewrite: Rewrite, options: Mapping[str, Any]
) -> Counted:
    """Rewrite every partition; what several of them warn of is said once."""
    calls = [engine.submit(f"partition {task.number}", _run, task, rewrite, options) for task in tasks]
    counts = engine.results(calls, shown="rewriting")
    for text, warning in {str(each): each for one in counts for each in one.warnings}.items():
        warn_user(warning if isinstance(warning, BoxscoreWarning) else text)
    return Counted(
        sum(one.made for one in counts),
        sum(one.given for one in counts),
        max(one.largest for one in counts),
    )


def _run(task: RewriteTask, rewrite: Rewrite, options: Mapping[str, Any]) -> Counted:
    return task.run(rewrite, options)


# ---------------------------------------------------------------- Parquet


@dataclasses.dataclass(frozen=True)
class _OfRange(PicklesFields):
    """Rows of a range of images in Parquet."""

    ids: IdRange
    side: Side
    source: Source

    def table(self, categories: Categories) -> Detections:
        """Read them, with the classes of all files."""
        side, boxes = self.side, self.side.read(self.source, self.ids)
        if boxes is None:
            return no_detections(categories)
        rows = rows_of(boxes, side.options, None, of_results=True, fractions=side.fractions)
        table = detections_of(rows, side.options, None)
        columns = {name: column for name, column in table.columns.items() if name not in (KEY, AT)}
        return under_classes(table.replaced(columns=columns), categories)


def parquet_tasks(
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
        RewriteTask(
            number,
            tuple(_OfRange(ids, *one) for one in zip(sides, own, strict=True)),
            categories,
            _store_by_image,
            folder / f"made-{number}.parquet",
        )
        for number, (ids, *own) in enumerate(zip(ranges.all(), *sources, strict=True))
    ]


def _store_by_image(made: Detections, tables: Sequence[Detections], output: Path) -> None:
    FORMAT.save(made.take(np.argsort(made.image, kind="stable")), output)


def join_parquet(tasks: Sequence[RewriteTask], output: Path) -> None:
    """Write one file of what was made."""
    write_joined([task.output for task in tasks], output, tasks[0].output.parent)


# ---------------------------------------------------------------- text


@dataclasses.dataclass(frozen=True)
class _InBuckets(PicklesFields):
    """Rows that are stored by image."""

    files: tuple[Path, ...]

    def table(self, categories: Categories) -> Detections:
        """Read them, with the classes of all files."""
        return table_of(self.files, categories)


def text_tasks(
    every: Sequence[Spilled], sources: Sequence[str], store: Callable[..., None], folder: Path, partition: int
) -> list[RewriteTask]:
    """Make tasks of about so many rows; ``sources`` are the files' names, ``folder`` is for what is made."""
    categories = classes_of_all([one.categories for one in every], sources)
    ranges = partitions(every, partition)
    stored = functools.partial(store, size=max(LEAST_PIECE, partition // len(ranges)))
    return [
        RewriteTask(
            number,
            tuple(_InBuckets(tuple(one.files[bucket] for bucket in buckets)) for one in every),
            categories,
            stored,
            folder / f"made-{number}.rows",
            sum(int(one.counts[buckets.start : buckets.stop].sum()) for one in every),
        )
        for number, buckets in enumerate(ranges)
    ]


def store_kept(
    made: Detections, tables: Sequence[Detections], output: Path, *, changes: Changes, size: int
) -> None:
    """Store which rows of a table are kept, and what changes in them, in pieces of so many rows."""
    (table,) = tables
    rows = made.columns[ROW]
    before = table.take(np.searchsorted(table.columns[ROW], rows))
    columns = {"row": rows}
    if changes == "scores":
        columns["score"] = np.where(made.scores != before.scores, made.scores, np.nan)
    if changes == "boxes":
        moved = (made.boxes != before.boxes).any(axis=1)
        columns["box"] = np.where(moved[:, None], made.boxes, np.nan)
    write_pieces(columns, output, size)


def kept_in_order(tasks: Sequence[RewriteTask]) -> Iterator[Kept]:
    """Yield what :func:`store_kept` stored, in the order of the rows."""
    for piece in merged([task.output for task in tasks], ["row"]):
        count = len(piece["row"])
        score, box = piece.get("score", np.full(count, np.nan)), piece.get("box", np.full((count, 4), np.nan))
        yield Kept(piece["row"], score, box)


def store_fused(made: Detections, tables: Sequence[Detections], output: Path, *, size: int) -> None:
    """Store fused boxes, which are best first, of equal ones by the row of the best member, in pieces."""
    columns = {
        "order": -made.scores,
        "row": made.columns[ROW],
        "image": made.images.ids[made.image],
        "category": made.category,
        "box": made.boxes,
    }
    write_pieces(columns, output, size)


def fused_in_order(tasks: Sequence[RewriteTask]) -> Iterator[Detections]:
    """Yield what :func:`store_fused` stored, best first."""
    for piece in merged([task.output for task in tasks], ["order", "row"]):
        images = Images.build(list(dict.fromkeys(piece["image"].tolist())))
        yield Detections(
            images=images,
            categories=tasks[0].categories,
            image=images.rows(piece["image"]),
            category=piece["category"],
            boxes=piece["box"],
            sizes=piece["box"][:, 2:] - piece["box"][:, :2],
            scores=-piece["order"],
        )
