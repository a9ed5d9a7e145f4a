"""Split a data set into ranges of image ids, so that no process holds the ids of all images.

Conventions
-----------
- Ids are ordered as in a vocabulary: whole numbers, then strings. Ranges are adjacent and cover every
  possible id: each ends where the next one starts.
- Ranges depend only on the files: splitting the same files into the same number of ranges gives the same
  ranges.
- If files are sorted by id, the minimum and maximum id of each row group, from the Parquet footers, are
  enough. Otherwise the image column is read, and a sample of it is kept.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import FloatArray, IntArray
from boxscore._utils.progress import progress
from boxscore.data.tables import GroundTruth
from boxscore.data.vocabulary import Id, as_ids, sort_key
from boxscore.extensions.large.parquet_groups import ParquetGroups, RowGroup
from boxscore.formats._tables import images_of

NEAR = 4.0
"""How often row groups may be read on average; above it, rows are regrouped first."""

SAMPLED = 1 << 16
"""Approximate number of ids in the sample."""

LEAST_SAMPLED = 16
"""Minimum number of sampled ids per row group."""

FINE = 4
"""Minimum number of row groups per range for splitting by their minimum ids alone."""


class IdRange(NamedTuple):
    """Ids in [``low``, ``below``); None means unbounded."""

    low: Id | None = None
    below: Id | None = None

    def __str__(self) -> str:
        ends = [f"from {self.low!r}"] if self.low is not None else []
        ends += [f"before {self.below!r}"] if self.below is not None else []
        return f"images {' and '.join(ends)}" if ends else "every image"

    def contains(self, ids: Sequence[Id]) -> NDArray[np.bool_]:
        """Return which ids are in the range."""
        edges = tuple(end for end in self if end is not None)
        inside: NDArray[np.bool_] = Ranges(edges).numbers(ids) == (self.low is not None)
        return inside


def are_between(ids: Sequence[Id], least: Id, largest: Id) -> NDArray[np.bool_]:
    """Return which ids are in [least, largest]."""
    values = as_ids(list(ids), name="image ids")
    if values.dtype != object and isinstance(least, int) and isinstance(largest, int):
        inside: NDArray[np.bool_] = (values >= least) & (values <= largest)
        return inside
    ends = sort_key(least), sort_key(largest)
    return np.array([ends[0] <= sort_key(one) <= ends[1] for one in values.tolist()], dtype=bool)


class Ranges(NamedTuple):
    """Adjacent ranges, given by the ascending ids between them; there is one more range than edges."""

    edges: tuple[Id, ...] = ()

    def all(self) -> list[IdRange]:
        """Return every range."""
        return [IdRange(*pair) for pair in itertools.pairwise([None, *self.edges, None])]

    def numbers(self, ids: Sequence[Id]) -> IntArray:
        """Return the number of the range of each id."""
        values, edges = (as_ids(list(some), name="image ids") for some in (ids, self.edges))
        if values.dtype != object and edges.dtype != object:
            return np.searchsorted(edges, values, side="right")
        keys = [sort_key(edge) for edge in self.edges]
        found = (bisect.bisect_right(keys, sort_key(one)) for one in values.tolist())
        return np.fromiter(found, np.int64, len(values))


class Sample(NamedTuple):
    """Sorted ids, each with the number of boxes up to the next id."""

    ids: list[Id]
    boxes: FloatArray

    @classmethod
    def joined(cls, samples: Sequence[Sample]) -> Sample:
        """Merge samples."""
        ids = [one for sample in samples for one in sample.ids]
        order = sorted(range(len(ids)), key=lambda at: sort_key(ids[at]))
        boxes = np.concatenate([np.zeros(0), *(sample.boxes for sample in samples)])
        return cls([ids[at] for at in order], boxes[order])

    def cut(self, count: int) -> Ranges:
        """Split into about ``count`` ranges with similar numbers of boxes; fewer if there are few ids."""
        before = np.cumsum(self.boxes) - self.boxes
        shares = np.arange(1, count) * (float(self.boxes.sum()) / count)
        at = np.searchsorted(before, shares)
        chosen = dict.fromkeys(self.ids[row] for row in at.tolist() if row < len(self.ids))
        return Ranges(tuple(one for one in chosen if sort_key(one) > sort_key(self.ids[0])))

    def within(self, part: IdRange) -> Sample:
        """Return the sampled ids in a range."""
        rows = np.flatnonzero(part.contains(self.ids)).tolist()
        return Sample([self.ids[row] for row in rows], self.boxes[rows])


class Cutter:
    """Split the images of files, and of an optional table, into ranges.

    Parameters
    ----------
    sides : sequence of ParquetGroups
        Files of one data set, with the same image ids.
    table : GroundTruth, optional
        Further images.
    """

    def __init__(self, sides: Sequence[ParquetGroups], table: GroundTruth | None) -> None:
        self.sides, self._table = list(sides), table
        self._rows: Sample | None = None

    @property
    def boxes(self) -> int:
        """Upper bound on the number of boxes; an image of the table counts as one more."""
        more = 0 if self._table is None else len(self._table) + len(self._table.images)
        return sum(side.boxes for side in self.sides) + more

    def cut(self, count: int, part: IdRange | None = None) -> Ranges:
        """Split everything, or a range, into about ``count`` ranges."""
        part = part or IdRange()
        if self._rows is None:
            ranges = self._by_ends(count, part)
            if ranges is not None:
                return ranges
            self._rows = self._sample_of_rows()
        return self._rows.within(part).cut(count)

    def _by_ends(self, count: int, part: IdRange) -> Ranges | None:
        """Split by the minimum ids of row groups; return None if these are too coarse."""
        samples = [_sample_of_table(self._table)] if self._table is not None else []
        for side in self.sides:
            filled = [group for group in side.groups if group.boxes]
            if any(group.least is None for group in filled):
                return None
            ids = [group.least for group in filled if group.least is not None]
            samples.append(Sample(ids, np.array([group.boxes for group in filled], dtype=float)))
        sample = Sample.joined(samples).within(part)
        if FINE * count * max(sample.boxes, default=0.0) > sample.boxes.sum():
            return None
        ranges = sample.cut(count)
        near = [groups_of_ranges(side.groups, ranges) for side in self.sides]
        return None if any(map(are_scattered, (side.groups for side in self.sides), near)) else ranges

    def _sample_of_rows(self) -> Sample:
        """Read the image columns, and record the minimum and maximum id of all row groups."""
        samples = [_sample_of_table(self._table)] if self._table is not None else []
        for number, side in enumerate(self.sides):
            self.sides[number], sample = _sample_of_rows(side)
            samples.append(sample)
        return Sample.joined(samples)


class Shard(NamedTuple):
    """Number of a shard, from 1, and the number of shards."""

    number: int = 1
    shares: int = 1

    def of(self, cutter: Cutter) -> IdRange:
        """Return the ids of the shard; an empty range if there are fewer shards with images."""
        every = cutter.cut(self.shares).all()
        if self.number > len(every):
            return IdRange(every[-1].low or 0, every[-1].low or 0)
        return every[self.number - 1]


WHOLE = Shard()


def _sample_of_table(truth: GroundTruth) -> Sample:
    """Return a sample of the images of a table; each image also counts as a box."""
    count = len(truth.images)
    first = np.arange(0, count, max(1, count // SAMPLED))
    each = 1 + np.bincount(truth.image, minlength=count)
    return Sample(truth.images.ids[first].tolist(), np.add.reduceat(each, first).astype(float))


def _sample_of_rows(groups: ParquetGroups) -> tuple[ParquetGroups, Sample]:
    """Return the row groups with minimum and maximum ids, and a sample."""
    each = max(LEAST_SAMPLED, SAMPLED // max(1, len(groups.groups)))
    known: list[RowGroup] = []
    samples = []
    for group in progress(groups.groups, desc=f"images of {groups.path.name}", unit="row group"):
        table = groups.read_columns(group, [groups.parts.image])
        values, positions = images_of(table, groups.parts)
        if len(positions):
            rows = positions[:: max(1, len(positions) // each)]
            weight = len(positions) / len(rows)
            samples.append(Sample([values[at] for at in rows.tolist()], np.full(len(rows), weight)))
            used = [values[at] for at in np.unique(positions).tolist()]
            group = group._replace(least=min(used, key=sort_key), largest=max(used, key=sort_key))
        known.append(group)
    return groups.with_groups(known), Sample.joined(samples)


def groups_of_ranges(groups: Sequence[RowGroup], ranges: Ranges) -> list[list[RowGroup]]:
    """Return the row groups that may have images of each range."""
    inside: list[list[RowGroup]] = [[] for _ in ranges.all()]
    filled = [group for group in groups if group.boxes]
    least = [group.least for group in filled if group.least is not None]
    largest = [group.largest for group in filled if group.largest is not None]
    numbers = ranges.numbers(least), ranges.numbers(largest)
    for group, first, last in zip(filled, *(side.tolist() for side in numbers), strict=True):
        for number in range(first, last + 1):
            inside[number].append(group)
    return inside


def are_scattered(groups: Sequence[RowGroup], inside: Sequence[Sequence[RowGroup]]) -> bool:
    """Return whether reading range by range would read the row groups too often."""
    return sum(map(len, inside)) > NEAR * len(groups) + len(inside)
