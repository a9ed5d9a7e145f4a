"""Find the pairs of boxes that overlap in a block; iterate over them or keep them in memory.

Goal
----
Methods that lower scores or merge boxes need every overlapping pair, not only the suppressor of each box.
Several settings over the same boxes share the pairs, which depend only on the threshold.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np

from boxscore._utils.array_types import FloatArray, IntArray
from boxscore._utils.ordering import radix_order
from boxscore.similarity.measures import Measure
from boxscore.suppression._grid import Grid, Pairs, expand
from boxscore.suppression._ranked import Block, HeldPairs, Ranked, ValuedPairs

FEW = 2000
"""For this many boxes or fewer, a sweep along x is faster than building a grid."""

MOST_HELD = 1 << 24
"""Largest number of pairs kept for several settings, 16 bytes each; further ones are computed again by
each."""


def share_pairs(ranked: Ranked, lowest: float) -> Ranked:
    """Keep the pairs of every block in memory, for settings with a threshold of at least ``lowest``."""
    # Keep the pairs of the blocks in order while there is room; other blocks find their own. Positions fit an
    # int32, which halves the memory.
    blocks, total = [], 0
    for block in ranked.blocks():
        pairs = PairStore(block, lowest).join() if total < MOST_HELD else None
        if pairs is not None:
            total += len(pairs[0])
            better, worse = (column.astype(np.int32) for column in pairs[:2])
            block = dataclasses.replace(block, held=HeldPairs(lowest, better, worse, pairs[2]))
        blocks.append(block)
    return dataclasses.replace(ranked, held=tuple(blocks))


def inner_bounds(
    low: FloatArray, high: FloatArray, measure: Measure, threshold: float
) -> tuple[FloatArray, FloatArray]:
    """Return bounds for partners: they must end past the first and start before the second.

    If the measure is at most the IoU, an overlap above the threshold needs that fraction of either box's
    width and height; otherwise boxes need only meet. The bounds allow for rounding.
    """
    share = threshold * (1 - 1e-9) if measure.at_most_iou else 0.0
    inside = high - low
    inside += measure.offset
    inside *= share
    inside -= measure.offset
    if len(low):
        inside -= 1e-14 * max(abs(float(low.min())), abs(float(high.max())))
    return low + inside, high - inside


class Sweep:
    """Candidate pairs of a few boxes by a sweep along x.

    Boxes are sorted by their start; those that start inside a box, or far enough inside for the threshold,
    are a range. Pairs that do not meet in y are dropped before anything else is computed.
    """

    def __init__(self, measure: Measure, members: IntArray, threshold: float) -> None:
        self._order = order = members.take(measure.x1.take(members).argsort(kind="stable"))
        x1, x2 = measure.x1.take(order), measure.x2.take(order)
        self._y1, self._y2 = measure.y1.take(order), measure.y2.take(order)
        self._low_y, self._high_y = inner_bounds(self._y1, self._y2, measure, threshold)
        self._first = np.arange(1, len(order) + 1)
        self._end = x1.searchsorted(inner_bounds(x1, x2, measure, threshold)[1], side="right")

    def __len__(self) -> int:
        """Count the pairs that share some x."""
        return int((self._end - self._first).sum())

    def pairs(self, group: IntArray | None) -> Iterator[Pairs]:
        """Candidates of one group, each unordered pair once, in chunks."""
        groups = None if group is None else group.take(self._order)
        for first, second in expand(self._first, self._end):
            near = self._y2.take(second) >= self._low_y.take(first)
            near &= self._y1.take(second) <= self._high_y.take(first)
            if groups is not None:
                near &= groups.take(first) == groups.take(second)
            some = near.nonzero()[0]
            yield self._order.take(first.take(some)), self._order.take(second.take(some))


class PairStore:
    """Every pair of a block that overlaps by more than a threshold: (better, worse, overlap), in chunks.

    May be iterated over several times, always in the same order, each pair one time. The pairs are cached if
    they are few enough and computed again otherwise, so memory stays bounded. Pairs that a block keeps are
    reused.
    """

    def __init__(self, block: Block, threshold: float, *, limit: int = 1 << 22) -> None:
        self._block, self._threshold, self._limit = block, threshold, limit
        self._cached: list[ValuedPairs] | None = None

    def __iter__(self) -> Iterator[ValuedPairs]:
        """Iterate over the pairs."""
        # Pairs held for a lower threshold include all those wanted, with the same values: select them instead
        # of measuring again.
        held = self._block.held
        if self._cached is None and held is not None and held.threshold <= self._threshold:
            self._cached = [held.above(self._threshold)]
        if self._cached is not None:
            yield from self._cached
            return
        # Measure the candidates chunk by chunk. The comparison is strict, as in torchvision, and NaN (boxes
        # without area) fails it.
        cached, total = [], 0
        for first, second in self._candidates():
            values = np.minimum(self._block.measure.between(first, second), 1)  # rounding may exceed 1
            above = np.flatnonzero(values > self._threshold)
            first, second = first.take(above), second.take(above)
            pairs = np.minimum(first, second), np.maximum(first, second), values.take(above)
            # Cache the chunks while their pairs are few. Beyond the limit the next iteration measures them
            # again, so memory holds one chunk.
            total += len(above)
            if total <= self._limit:
                cached.append(pairs)
            else:
                cached.clear()
            yield pairs
        if total <= self._limit:
            self._cached = cached

    def join(self) -> ValuedPairs | None:
        """Return all pairs by better, then worse, or None when they are too many to hold."""
        # Give up as soon as there are too many pairs, before they are concatenated.
        total, parts = 0, []
        for part in self:
            total += len(part[0])
            if total > self._limit:
                return None
            parts.append(part)
        if not parts:
            return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)
        # Order by (better, worse), packed into one integer per pair: one radix sort, and no two keys are
        # equal.
        better, worse, values = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        bits = len(self._block).bit_length()
        keys = ((better << bits) | worse).view(np.uint64)
        if (keys[1:] > keys[:-1]).all():  # held pairs are in order
            return better, worse, values
        order = radix_order(keys, 2 * bits)
        return better.take(order), worse.take(order), values.take(order)

    def _candidates(self) -> Iterator[Pairs]:
        block, members = self._block, np.arange(len(self._block))
        if len(block) > FEW:
            yield from Grid(block.measure, members, self._threshold, block.group).pairs()
            return
        yield from Sweep(block.measure, members, self._threshold).pairs(block.group)
