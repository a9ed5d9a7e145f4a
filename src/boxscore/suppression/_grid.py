"""Find the boxes that can overlap at all by a grid over position and size, exactly for any threshold.

Goal
----
A superset of the pairs that overlap by more than a threshold, small enough that testing each one is cheap:
about 1.5 candidates per true pair, where sorting by ``x1`` alone gives fifty.

Method
------
The IoU of two boxes is at most the IoU of their extents along either axis. So IoU > t needs

- heights whose ratio exceeds t,
- centers no further apart in y than ``c * (h1 + h2) / 2`` with ``c = (1 - t) / (1 + t)``,
- the box further right to start before ``x1 + (1 - t) * w`` of the other.

Boxes are put in *levels* by height (a level spans a ratio of 1/t, so partners are at most one level apart)
and inside a level in *strips* by center. Level and strip, hashed together with the group, are the row of the
grid; a row is sorted by ``x1``, and a query is a range of it. Rows with equal hashes only add candidates. For
measures that may exceed the IoU the same windows are used with t = 0 (boxes that meet), where the ratio of
heights bounds nothing and every level is queried.

Rounding is covered by a slack, so a candidate is never missed: t is lowered by one part in 10^9, and
coordinates are given some units in the last place.

Conventions
-----------
Members are positions of a block; queries yield pairs in chunks, so that memory stays bounded.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from boxscore._utils.array_types import FloatArray, IntArray, KeyArray
from boxscore._utils.ordering import SMALL, radix_order
from boxscore.similarity.measures import Measure

Pairs = tuple[IntArray, IntArray]
_Ranges = tuple[IntArray, Any, Any, KeyArray]  # query, first and last key or index, row

CHUNK = 1 << 18
"""Candidate pairs processed together."""

LOWEST_BOUND = 0.05
"""Below this threshold the size bound excludes so little that all boxes that meet are candidates."""

HIGHEST_BOUND = 0.9
"""Above this threshold levels and strips become too thin to pay off."""

SLACK = 1e-9
"""Relative room for rounding in every bound."""

FARTHEST = 2.0**52
"""Strip numbers are clipped here, where floats stop being exact; clipping keeps their order."""

QUERIES = 1 << 15
"""Boxes that query together: their keys fit the cache."""

MOST_STRIPS = 256
"""Without a size bound a high box queries at most this many strips of low ones."""

ROW_BITS = 16
X_BITS, FINE_X_BITS = 16, 32
"""``x1`` is quantized to 16 bits, or to 32 when a typical box would be narrower than eight steps."""

LEVEL_FACTOR = np.uint64(0xD1B54A32D192ED03)
GROUP_FACTOR = np.uint64(0xAEF17502108EF2D9)
HASH_FACTOR = np.uint64(0x9E3779B97F4A7C15)


def expand(low: IntArray, high: IntArray, chunk: int = CHUNK) -> Iterator[Pairs]:
    """Yield (query number, table number) for ranges ``low[q] <= table < high[q]``, in chunks."""
    # ``ends[q]`` counts the pairs up to and including query q; an empty range counts 0.
    counts = high - low
    np.maximum(counts, 0, out=counts)
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    first = 0
    # A chunk takes as many whole queries as fit, at least one. The last chunk needs no search.
    while first < len(counts):
        done = int(ends[first - 1]) if first else 0
        if total - done <= chunk:
            last = len(counts)
        else:
            last = max(first + 1, int(np.searchsorted(ends, done + chunk, side="right")))
        # Count through all pairs of the chunk, and add one shift per query: low[q] less the pairs before it.
        # No Python loop runs over queries.
        some = counts[first:last]
        size = int(ends[last - 1]) - done
        if size:
            query = np.repeat(np.arange(first, last), some)
            shift = low[first:last] - (ends[first:last] - some - done)
            yield query, np.arange(size) + np.repeat(shift, some)
        first = last


class _Extents:
    """The columns that the grid reads: start, width, height, center, group and level."""

    __slots__ = ("center", "group", "height", "level", "width", "x1")

    def __init__(
        self,
        x1: FloatArray,
        width: FloatArray,
        height: FloatArray,
        center: FloatArray,
        level: IntArray,
        group: IntArray | None,
    ) -> None:
        self.x1, self.width, self.height, self.center = x1, width, height, center
        self.level, self.group = level, group

    @classmethod
    def of(cls, measure: Measure, members: IntArray, group: IntArray | None) -> _Extents:
        x1, y1 = measure.x1.take(members), measure.y1.take(members)
        x2, y2 = measure.x2.take(members), measure.y2.take(members)
        width, height = x2 - x1, y2 - y1
        if measure.offset:
            width += measure.offset
            height += measure.offset
        y1 += y2
        y1 *= 0.5
        return cls(x1, width, height, y1, members, None if group is None else group.take(members))

    def take(self, rows: IntArray) -> _Extents:
        """Select some boxes, in this order."""
        return _Extents(
            self.x1.take(rows),
            self.width.take(rows),
            self.height.take(rows),
            self.center.take(rows),
            self.level.take(rows),
            None if self.group is None else self.group.take(rows),
        )


class Grid:
    """Boxes of a block, sorted so that all boxes that one may overlap are in a few ranges.

    Parameters
    ----------
    measure : Measure
        Of the block.
    members : ndarray of int64, [M]
        Positions to put in; those without area are left out.
    iou_threshold : float
        Pairs that overlap no more than this may be missing.
    group : ndarray of int64, [N], optional
        Group of every position of the block; None when there is one.
    """

    def __init__(
        self, measure: Measure, members: IntArray, iou_threshold: float, group: IntArray | None = None
    ) -> None:
        self._measure, self._group = measure, group
        # A box without area never exceeds a threshold: leave it out.
        extents = _Extents.of(measure, members, group)
        good = np.minimum(extents.height, extents.width) > 0
        if not good.all():
            some = np.flatnonzero(good)
            members, extents = members.take(some), extents.take(some)
        if len(members) == 0:
            self._members = members
            return
        # Choose the bounds, then put each box [M] in the level of its height.
        reach = self._fit(extents, iou_threshold)
        self._set_levels(extents)
        lowest, highest = int(extents.level.min()), int(extents.level.max())
        # One empty level at either end, so that a level's neighbors need no bounds check.
        self._lowest = lowest - 1
        levels = np.arange(lowest - 1, highest + 2)
        # The top of a level bounds the heights in it, with room for the rounding of the logarithm.
        self._top: FloatArray = np.power(self._base, levels + 1.0) * (1 + SLACK)
        # A strip is twice as high as the centers of two partners of its level can be apart, so a box reaches
        # at most two strips of it, three by rounding. Without a size bound, a minimum height limits the
        # strips that a tall box queries among low ones.
        centers = extents.center
        least = max(8 * self._rounding, float(centers.max() - centers.min()) / MOST_STRIPS)
        self._strip = np.maximum(2 * self._top * self._spread, 8 * self._rounding if self._bound else least)
        self._far = 4 * reach > FARTHEST * float(self._strip[0])
        # Skip empty levels in queries. The widest box of each level [L] bounds how far to the left a partner
        # can start.
        extents.level -= self._lowest
        self._filled = np.bincount(extents.level, minlength=len(levels)) > 0
        self._widest = np.zeros(len(levels))
        np.maximum.at(self._widest, extents.level, extents.width)
        # Sort by row and x1 in one key, [M]: a query is then one range of the table, found by two binary
        # searches.
        rows = self._row_ids(extents.group, extents.level, self._strips(extents.center, extents.level))
        keys = self._keys_at(rows, extents.x1)
        small = len(keys) <= SMALL
        order = np.argsort(keys, kind="stable") if small else radix_order(keys, ROW_BITS + self._x_bits)
        self._members, self._extents = members.take(order), extents.take(order)
        self._rows, self._keys = rows.take(order), keys.take(order)

    def _fit(self, extents: _Extents, iou_threshold: float) -> float:
        """Choose bounds that hold in spite of rounding, and the quantization of ``x1``."""
        x1, width, height = extents.x1, extents.width, extents.height
        # No coordinate or size exceeds ``reach``, so each computed bound is off by a few units in the last
        # place of it at most.
        left, right = float(x1.min()), float(x1.max())
        reach = max(abs(left), abs(right), float(np.abs(extents.center).max()))
        reach += float(width.max()) + float(height.max())
        self._rounding = 8 * np.finfo(np.float64).eps * reach
        # Corners computed from a width and a position far away hold that width only roughly: lower the
        # threshold by the largest relative loss of a side.
        relative_rounding = SLACK + self._rounding / min(float(width.min()), float(height.min()))
        bound = min(iou_threshold, HIGHEST_BOUND) * (1 - relative_rounding)
        # If the measure can exceed the IoU, or the bound excludes next to nothing, use t = 0: all boxes that
        # meet are candidates.
        useful = self._measure.at_most_iou and iou_threshold >= LOWEST_BOUND and relative_rounding < 1e-3
        self._bound = bound if useful else 0.0
        self._base = 1 / self._bound if useful else 2.0
        self._spread = (1 - self._bound) / (1 + self._bound)
        # Quantize x1 relative to the leftmost one. 16 bits sort in fewer passes; they suffice if a typical
        # box is wider than eight steps.
        span = right - left
        typical = float(np.median(width[:: max(1, len(width) // 256)]))
        self._x_bits = X_BITS if typical * (1 << X_BITS) > 8 * span else FINE_X_BITS
        self._left = left
        self._scale = ((1 << self._x_bits) - 1) / span if span > 0 else 0.0
        return reach

    def _set_levels(self, extents: _Extents) -> None:
        extents.level = np.floor(np.log2(extents.height) * (1 / np.log2(self._base))).astype(np.int64)

    def _strips(self, y: FloatArray, level: IntArray) -> IntArray:
        strips = y / self._strip.take(level)
        np.floor(strips, out=strips)
        if self._far:
            np.clip(strips, -FARTHEST, FARTHEST, out=strips)
        whole: IntArray = strips.astype(np.int64)
        return whole

    @staticmethod
    def _row_ids(group: IntArray | None, level: IntArray, strip: IntArray) -> KeyArray:
        rows = strip.view(np.uint64) + level.view(np.uint64) * LEVEL_FACTOR
        if group is not None:
            rows += group.view(np.uint64) * GROUP_FACTOR
        return rows

    def _keys_at(self, rows: KeyArray, x: FloatArray) -> KeyArray:
        """Sort key of a row and a position along it."""
        # Clip before the cast: queries may be outside the members' range, and a negative float has no
        # unsigned value. Rounding down is monotonic, so a range of keys never loses a box.
        positions = x - self._left
        positions *= self._scale
        np.maximum(positions, 0, out=positions)
        np.minimum(positions, (1 << self._x_bits) - 1, out=positions)
        # Multiplicative hashing: the high bits of the product are the row, the position fills the bits below
        # it.
        keys = rows * HASH_FACTOR
        keys >>= np.uint64(64 - ROW_BITS)
        keys <<= np.uint64(self._x_bits)
        keys |= positions.astype(np.uint64)
        return keys

    def __len__(self) -> int:
        return len(self._members)

    def pairs(self, chunk: int = CHUNK) -> Iterator[Pairs]:
        """Yield candidates among the members, each unordered pair one time, as positions of the block."""
        for start in range(0, len(self), QUERIES):
            numbers = np.arange(start, min(start + QUERIES, len(self)))
            extents = self._extents if len(numbers) == len(self) else self._extents.take(numbers)
            yield from self._candidates(self._members, *self._ranges_once(extents, numbers), chunk)

    def neighbors(self, positions: IntArray, chunk: int = CHUNK) -> Iterator[Pairs]:
        """Candidates (position, member) of some members; each also meets itself, and some meet twice."""
        if len(self) == 0:
            return
        # Skip queries without area.
        extents = _Extents.of(self._measure, positions, self._group)
        good = np.flatnonzero(np.minimum(extents.height, extents.width) > 0)
        if len(good) < len(positions):
            extents, positions = extents.take(good), positions.take(good)
        # Queries use the levels of the grid, counted from its lowest one.
        self._set_levels(extents)
        extents.level -= self._lowest
        # In the order of the grid, neighboring look-ups stay in the cache.
        rows = self._row_ids(extents.group, extents.level, self._strips(extents.center, extents.level))
        order = np.argsort(self._keys_at(rows, extents.x1))
        extents, positions = extents.take(order), positions.take(order)
        # Look up some queries at a time in every level that may hold partners: one below, its own and one
        # above with a size bound, else all levels.
        for start in range(0, len(positions), QUERIES):
            numbers = np.arange(start, min(start + QUERIES, len(positions)))
            some = extents if len(numbers) == len(positions) else extents.take(numbers)
            parts = [
                self._windows(some, numbers, target) for target in self._targets(some, higher_only=False)
            ]
            query, start, end, _ = self._look_up(parts)
            yield from self._candidates(positions, query, start, end, None, chunk)

    def crowding(self, sample: int = 512) -> float:
        """Estimate how many members share a box's row within its reach."""
        if len(self) == 0:
            return 0.0
        some = np.arange(0, len(self), max(1, len(self) // sample))
        keys = self._keys_at(self._rows.take(some), self._right(self._extents.take(some)))
        return float((np.searchsorted(self._keys, keys, side="right") - some).mean())

    def _right(self, extents: _Extents) -> FloatArray:
        """Furthest start of a box to the right that may overlap."""
        right = extents.width * (1 - self._bound)
        right += extents.x1
        right += self._rounding
        return right

    def _targets(self, extents: _Extents, *, higher_only: bool) -> Iterator[IntArray]:
        """Levels to query, -1 for none; with ``higher_only`` those above a box's level."""
        if self._bound:
            for step in (1,) if higher_only else (-1, 0, 1):
                target = extents.level + step
                yield np.where(self._filled.take(target), target, -1)
        else:
            for level in np.flatnonzero(self._filled):
                target = np.full(len(extents.level), level)
                yield np.where(extents.level < level, target, -1) if higher_only else target

    def _ranges_once(self, extents: _Extents, numbers: IntArray) -> _Ranges:
        """Ranges that hold every unordered pair once: to the right in a box's level, all of higher levels."""
        # Find the strips of its level that hold every center a box [Q] can overlap, from ``lowest`` to
        # ``highest``.
        right = self._right(extents)
        reach = self._reach(extents, self._top.take(extents.level))
        lowest = self._strips(extents.center - reach, extents.level)
        strip = self._strips(extents.center, extents.level)
        highest = self._strips(extents.center + reach, extents.level)
        # In its own strip, a box meets those that start no further right than ``right``.
        rows = self._rows.take(numbers)
        parts = [(numbers, self._keys_at(rows, extents.x1), self._keys_at(rows, right), rows)]
        # In the strips above and below, too. A row id is a sum that contains the strip, so the id of a
        # neighboring strip is the id plus ``step``, modulo 2**64.
        for step in (1, 2, -1, -2):
            query = np.flatnonzero(strip + step <= highest if step > 0 else strip + step >= lowest)
            if len(query):
                beside = rows.take(query) + np.uint64(step % (1 << 64))
                low = self._keys_at(beside, extents.x1.take(query))
                # Boxes at equal positions meet once: from the lower strip to the higher one.
                if step < 0:
                    low += np.uint64(1)
                parts.append((numbers.take(query), low, self._keys_at(beside, right.take(query)), beside))
        # Boxes of different levels meet once: from the lower level to the higher one.
        parts += [
            self._windows(extents, numbers, target) for target in self._targets(extents, higher_only=True)
        ]
        # In its own strip the range starts after the box itself, by index: boxes with equal keys meet once.
        query, start, end, wanted = self._look_up(parts)
        start[: len(numbers)] = numbers + 1
        return query, start, end, wanted

    def _reach(self, extents: _Extents, largest: FloatArray) -> FloatArray:
        """Furthest center in y that may overlap, of boxes no higher than ``largest``."""
        if self._bound:
            largest = np.minimum(largest, extents.height / self._bound)
        return (extents.height + largest) * (0.5 * (1 + SLACK) * self._spread) + self._rounding

    def _windows(self, extents: _Extents, numbers: IntArray, target: IntArray) -> _Ranges:
        """Ranges of keys that hold the boxes of the target level that may overlap."""
        # Leave out the boxes that have nothing to query in this round.
        querying = np.flatnonzero(target >= 0)
        if len(querying) < len(target):
            extents, numbers, target = extents.take(querying), numbers.take(querying), target.take(querying)
        # A partner to the left starts less than (1 - t) of its own width before x1. That width is at most the
        # widest of its level, and at most this box's width / t.
        left = self._widest.take(target)
        if self._bound:
            np.minimum(left, extents.width / self._bound, out=left)
        left *= self._bound - 1
        left += extents.x1
        left -= self._rounding
        # ``strips`` [Q] counts the strips of the target level above the first one, ``strip``, that can hold a
        # partner.
        reach = self._reach(extents, self._top.take(target))
        strip = self._strips(extents.center - reach, target)
        strips = self._strips(extents.center + reach, target)
        strips -= strip
        rows = self._row_ids(extents.group, target, strip)
        right = self._right(extents)
        # Many strips per box: lay out all (box, strip) pairs in one expansion.
        if len(strips) and strips.max() > 4:
            which, beside = (
                np.concatenate(c) for c in zip(*expand(np.zeros_like(strips), strips + 1), strict=True)
            )
            rows = rows.take(which) + beside.view(np.uint64)
            low, high = self._keys_at(rows, left.take(which)), self._keys_at(rows, right.take(which))
            return numbers.take(which), low, high, rows
        # Few strips: add them step by step, so that neighbors in the look-up are neighbors in the grid.
        parts = [(numbers, self._keys_at(rows, left), self._keys_at(rows, right), rows)]
        step = 1
        while len(more := np.flatnonzero(strips >= step)):
            beside = rows.take(more) + np.uint64(step)
            low, high = self._keys_at(beside, left.take(more)), self._keys_at(beside, right.take(more))
            parts.append((numbers.take(more), low, high, beside))
            step += 1
        return _concatenate(parts)

    def _look_up(self, parts: list[_Ranges]) -> _Ranges:
        query, low, high, rows = _concatenate(parts)
        start = np.searchsorted(self._keys, low, side="left")
        return query, start, np.searchsorted(self._keys, high, side="right"), rows

    def _candidates(
        self,
        positions: IntArray,
        query: IntArray,
        start: IntArray,
        end: IntArray,
        rows: KeyArray | None,
        chunk: int,
    ) -> Iterator[Pairs]:
        """Pairs of ranges; with ``rows`` without those that only share the hash of a row."""
        for which, table in expand(start, end, chunk):
            # Two rows may share a hash: compare the ids themselves, then the groups, whose ids are hashed as
            # well.
            if rows is not None:
                real = np.flatnonzero(rows.take(which) == self._rows.take(table))
                which, table = which.take(real), table.take(real)
            first, second = positions.take(query.take(which)), self._members.take(table)
            if self._group is not None:
                real = np.flatnonzero(self._group.take(first) == self._group.take(second))
                if len(real) < len(first):
                    first, second = first.take(real), second.take(real)
            yield first, second


def _concatenate(parts: list[_Ranges]) -> _Ranges:
    if len(parts) == 1:
        return parts[0]
    query, low, high, rows = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return query, low, high, rows
