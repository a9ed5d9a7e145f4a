"""Outcomes of detections counted in bins of their order: finer where few fall, of a bounded number.

Goal
----
Where few detections are counted every one has a bin to itself, and nothing of their order is lost. Where
many are, neighbours share a bin: the number of bins is bounded, and the same whatever was added first.

Conventions
-----------
- A detection has a *key* of 128 bits: its score, then its place among equal scores. Keys ascend in the order
  in which curves take detections. A bin holds the detections of one class whose keys start with the same
  bits; ``depth`` is how many they have in common. Bins are disjoint.
- Bins are the leaves of a binary tree over the bits of the keys. The classes share :data:`MOST`, each
  at most as much as any other that needs more, and an eighth of a share is for the first detections of a
  class. A node hands what it has to its two halves: each may have half, and what the other does not need. A
  detection needs 1; a bin costs as much as it has detections, up to :data:`LEAF`. A node that cannot afford
  both halves is one bin.
- With more detections a node never gets more, and never costs less: bins only become coarser. What the tree
  of all detections asks of a set of them is therefore still there in the tree of that set, and adding up in
  any order and any groups gives the tree of all.
- An *outcome* says at which thresholds a detection counts, and at which it is a true positive, at each area
  range and max detections. A bin counts each outcome. Detections that never count are left out.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import IntArray
from boxscore._utils.ordering import ragged_ranges, stable_order
from boxscore.matching.extra import narrowed
from boxscore.matching.matches import Bits
from boxscore.matching.packed import numbered_rows

Words = NDArray[np.uint64]

MOST = 1 << 21
"""Bins, at most, and one more a class: as many detections have one each."""

LEAF = 4
"""Cost of a bin of many detections: its bytes, about, beside those of a bin of one."""

FREE = 8
"""Part of the share of a class that is for its first detections, where one more changes precision most."""

FULL = 128
"""Bits of a key."""

ONES = np.uint64(0xFFFF_FFFF_FFFF_FFFF)


class Bins(NamedTuple):
    """Counts by class and bin, N of them, and outcome, E entries; K classes."""

    starts: IntArray
    """Where each class starts among the bins, and the end, [K + 1]."""
    score: Words
    """First 64 bits that the keys of a bin have in common, then zeros, [N]; ascending in a class."""
    place: Words
    """Second 64 bits, [N]."""
    depth: NDArray[np.uint8]
    """Bits in common, [N]."""
    sizes: NDArray[np.integer[Any]]
    """Entries of each bin, [N]."""
    outcome: NDArray[np.integer[Any]]
    """Row of ``outcomes`` of each entry, ascending in a bin, [E]."""
    counts: NDArray[np.integer[Any]]
    """Detections with it, [E]."""
    outcomes: Bits
    """Outcomes that occur, ascending, [U, 2 A]: bits over thresholds, those of true positives first."""

    @property
    def nbytes(self) -> int:
        """Bytes of all columns."""
        return sum(column.nbytes for column in self)

    @property
    def entry_bin(self) -> IntArray:
        """Bin of each entry, [E]."""
        return np.repeat(np.arange(len(self.depth)), self.sizes)

    @classmethod
    def of(cls, category: NDArray[Any], score: Words, place: Words, outcomes: Bits, classes: int) -> Bins:
        """Count detections in class order: their keys, and outcomes [D, 2 A]."""
        rows = np.flatnonzero(outcomes.any(axis=1))
        category, score, place = category[rows], score[rows], place[rows]
        outcome, table = numbered_rows(outcomes[rows])
        one = cls(
            np.searchsorted(category, np.arange(classes + 1)),
            score,
            place,
            np.full(len(rows), FULL, dtype=np.uint8),
            np.ones(len(rows), dtype=np.int64),
            outcome,
            np.ones(len(rows), dtype=np.int64),
            table,
        )
        return one._grouped(np.diff(score).astype(bool) | np.diff(place).astype(bool))._coarsened()

    @classmethod
    def added(cls, parts: Sequence[Bins]) -> Bins:
        """Add up the bins of disjoint sets of detections."""
        waiting = list(parts)
        while len(waiting) > 1:  # as many at a time as memory is meant for, two at least
            together = np.cumsum([len(part.depth) for part in waiting])
            count = max(2, int(np.searchsorted(together, 2 * MOST, side="right")))
            waiting[:count] = [cls._sum(waiting[:count])]
        return waiting[0]

    @classmethod
    def _sum(cls, parts: Sequence[Bins]) -> Bins:
        row, table = numbered_rows(np.concatenate([part.outcomes for part in parts]))
        rows = np.split(row, np.cumsum([len(part.outcomes) for part in parts])[:-1])
        category = np.concatenate([part._category for part in parts])
        score, place, depth, sizes = (
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("score", "place", "depth", "sizes")
        )
        order = _order(category, score, place, depth, len(parts[0].starts) - 1)
        outcome = np.concatenate([new[part.outcome] for new, part in zip(rows, parts, strict=True)])
        count = np.concatenate([part.counts for part in parts]).astype(np.int64)
        entries = _runs(sizes, order)
        joined = cls(
            np.cumsum([0, *np.sum([np.diff(part.starts) for part in parts], axis=0)]),
            score[order],
            place[order],
            depth[order],
            sizes[order].astype(np.int64),
            outcome[entries],
            count[entries],
            table,
        )
        return joined._grouped(joined._apart())._coarsened()

    def pooled(self, chosen: NDArray[np.bool_]) -> Bins:
        """Put the chosen classes, [K], into one."""
        order = np.flatnonzero(chosen[self._category])
        one_class = np.zeros(len(order), dtype=np.int64)
        order = order[_order(one_class, self.score[order], self.place[order], self.depth[order], 1)]
        entries = _runs(self.sizes, order)
        one = Bins(
            np.array([0, len(order)]),
            self.score[order],
            self.place[order],
            self.depth[order],
            self.sizes[order].astype(np.int64),
            self.outcome[entries],
            self.counts[entries].astype(np.int64),
            self.outcomes,
        )
        return one._grouped(one._apart())

    @property
    def _category(self) -> IntArray:
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))

    def _apart(self) -> NDArray[np.bool_]:
        """Whether each bin but the first is outside the bins before it, [N - 1]; they are in order."""
        # A bin is open from where it starts (+1) to the last bin that starts inside it (-1): where the sum is
        # above 0 the next bin lies in one before it. A bin of one key holds no other.
        open_bins = np.zeros(len(self.depth) + 1, dtype=np.int64)
        whole = np.flatnonzero(self.depth < FULL)
        open_bins[whole] += 1
        by_score, by_place = whole[self.depth[whole] <= 64], whole[self.depth[whole] > 64]
        last_score, last_place = _last_keys(self.score, self.place, self.depth)
        for low, high in itertools.pairwise(self.starts.tolist()):
            first, end = np.searchsorted(by_score, [low, high])
            last_of_class = last_score[by_score[first:end]]
            ends = low + np.searchsorted(self.score[low:high], last_of_class, side="right")
            np.add.at(open_bins, ends - 1, -1)
        if len(by_place):
            # Among equal scores; their places are numbered so that one search finds all.
            new = np.diff(self.score).astype(bool)
            new[self.starts[(self.starts > 0) & (self.starts < len(self.score))] - 1] = True
            run = np.concatenate([[0], np.cumsum(new)])
            there = np.zeros(len(new) + 1, dtype=bool)
            there[run[by_place]] = True
            near = np.flatnonzero(there[run])
            places, number = np.unique(self.place[near], return_inverse=True)
            last = np.searchsorted(places, last_place[by_place], side="right") - 1
            ends = np.searchsorted(
                run[near] * len(places) + number, run[by_place] * len(places) + last, side="right"
            )
            np.add.at(open_bins, near[ends - 1], -1)
        same = (self.score[1:] == self.score[:-1]) & (self.place[1:] == self.place[:-1])
        apart: NDArray[np.bool_] = (np.cumsum(open_bins)[:-2] == 0) & ~same
        return apart

    def _grouped(self, apart: NDArray[np.bool_]) -> Bins:
        """Join neighbours of a class that do not stand apart, [N - 1]; an outcome has one entry in a bin."""
        N = len(self.depth)
        if not N:
            return self._replace(sizes=narrowed(self.sizes), outcome=narrowed(self.outcome))
        first = np.ones(N, dtype=bool)
        first[1:] = apart
        first[self.starts[self.starts < N]] = True
        heads = np.flatnonzero(first)
        # Keys ascend: what a whole group has in common is the least that two neighbours have.
        common = self.depth.copy()
        inner = np.flatnonzero(~first[1:])
        common[inner] = np.minimum(common[inner], self._common(inner))
        depth = np.minimum.reduceat(common, heads)
        score, place = _first_keys(self.score[heads], self.place[heads], depth)
        U = max(len(self.outcomes), 1)
        key = np.repeat(np.cumsum(first) - 1, self.sizes) * U + self.outcome
        if len(heads) < N:
            key, where = np.unique(key, return_inverse=True)
            counts: NDArray[Any] = np.bincount(where, weights=self.counts, minlength=len(key)).astype(
                np.int64
            )
        else:
            counts = self.counts
        return self._replace(
            starts=np.searchsorted(heads, self.starts),
            score=score,
            place=place,
            depth=depth,
            sizes=narrowed(np.bincount(key // U, minlength=len(heads))),
            outcome=narrowed(key % U),
            counts=narrowed(counts),
        )

    def _common(self, bins: IntArray) -> NDArray[np.uint8]:
        """How many bits the keys of some bins and of those after them have in common."""
        score = self.score[bins + 1] ^ self.score[bins]
        common = _leading_zeros(score)
        same = np.flatnonzero(score == 0)
        common[same] += _leading_zeros(self.place[bins[same] + 1] ^ self.place[bins[same]])
        return common

    def _coarsened(self) -> Bins:
        """Join neighbours until there are no more bins than there may be."""
        N = len(self.depth)
        ends = np.cumsum(self.sizes)
        up_to = np.concatenate([[0], np.cumsum(self.counts, dtype=np.int64)[ends - 1]])  # [N + 1]
        before = up_to[self.starts]
        need = np.diff(before)
        if need.sum() <= MOST:
            return self
        share = _share(need)
        free = share // FREE
        apart = np.zeros(N - 1, dtype=bool)
        many = np.flatnonzero(need > share)
        for k in np.flatnonzero((need <= share) & (need > 0)).tolist():
            apart[self.starts[k] : self.starts[k + 1] - 1] = True
        # Nodes that are still to be divided, in order: where they start and end, and what they have.
        start, end = self.starts[many], self.starts[many + 1]
        budget, divided = np.full(len(many), share - free), np.ones(len(many), dtype=bool)
        inside = np.repeat(need > share, np.diff(self.starts))
        inside[self.starts[many + 1] - 1] = False
        # A cut between neighbours belongs to the node whose halves differ in the first bit in which they do:
        # sorted by that bit, cuts come level by level from the root.
        cuts = np.flatnonzero(inside)
        base = np.repeat(before[:-1], np.diff(self.starts))
        common = self._common(cuts)
        cuts = cuts[stable_order(common, FULL)]
        whole: list[IntArray] = []
        for level in np.split(cuts, np.cumsum(np.bincount(common, minlength=FULL))[:-1]):
            node = np.searchsorted(start, level, side="right") - 1
            at, node = level[divided[node]], node[divided[node]]
            if not len(at):
                continue
            ranks = [up_to[edge] - base[at] - free for edge in (start[node], at + 1, end[node])]
            left, right = np.diff(np.maximum(ranks, 0), axis=0)
            has = budget[node]
            for_left, for_right = (np.maximum(has // 2, has - other) for other in (right, left))
            affords = (np.minimum(left, LEAF) <= for_left) & (np.minimum(right, LEAF) <= for_right)
            divided[node[~affords]] = False
            at, node = at[affords], node[affords]
            whole.append(np.stack([start[node], at + 1])[:, (left <= for_left)[affords]])
            whole.append(np.stack([at + 1, end[node]])[:, (right <= for_right)[affords]])
            apart[at] = True
            last = end[node]
            budget[node], end[node] = for_left[affords], at + 1
            divided[node] = (left > for_left)[affords]
            start = np.insert(start, node + 1, at + 1)
            end = np.insert(end, node + 1, last)
            budget = np.insert(budget, node + 1, for_right[affords])
            divided = np.insert(divided, node + 1, (right > for_right)[affords])
        inner = np.zeros(N + 1, dtype=np.int64)  # between bins that stay apart
        for low, high in whole:
            inner[low] += 1
            inner[high - 1] -= 1
        return self._grouped(apart | (np.cumsum(inner)[: N - 1] > 0))


def score_keys(scores: NDArray[np.float64]) -> Words:
    """Return keys that ascend where scores, [N], descend; -0.0 equals 0.0."""
    # Of floats from 0 on the bits ascend as integers, of those below they descend.
    bits = (scores + 0.0).view(np.uint64)
    sign = np.uint64(1 << 63)
    return np.where(bits >= sign, bits, ~(bits | sign))


def _share(need: IntArray) -> int:
    """Return the most that a class may have so that all together have at most :data:`MOST`."""
    ascending = np.sort(need)
    before = np.concatenate([[0], np.cumsum(ascending)[:-1]])
    shares = (MOST - before) // np.arange(len(need), 0, -1)  # of those that need more than each before
    return max(int(shares[np.argmax(ascending > shares)]), 0)


def _order(
    category: NDArray[Any], score: Words, place: Words, depth: NDArray[np.uint8], classes: int
) -> NDArray[np.intp]:
    """Order bins by class and key; of two that start alike the one with more in it comes first."""
    order = np.argsort(score, kind="stable")  # of runs that ascend already
    order = order[stable_order(category[order], classes)]
    score, place, depth = score[order], place[order], depth[order]
    same = (score[1:] == score[:-1]) & (category[order][1:] == category[order][:-1])
    wrong = same & ((place[1:] < place[:-1]) | ((place[1:] == place[:-1]) & (depth[1:] < depth[:-1])))
    if wrong.any():
        run = np.concatenate([[0], np.cumsum(~same)])
        again = np.zeros(len(run), dtype=bool)
        again[run[1:][wrong]] = True
        where = np.flatnonzero(again[run])
        order[where] = order[where][np.lexsort((depth[where], place[where], run[where]))]
    return order


def _runs(sizes: NDArray[Any], order: NDArray[np.intp]) -> IntArray:
    """Return the positions of runs of some sizes, in another order of the runs."""
    return ragged_ranges((np.cumsum(sizes, dtype=np.int64) - sizes)[order], sizes[order].astype(np.int64))


def _first_keys(score: Words, place: Words, depth: NDArray[np.uint8]) -> tuple[Words, Words]:
    """Return the first keys that start with some bits."""
    by_score, by_place = _high_bits(depth)
    return score & by_score, place & by_place


def _last_keys(score: Words, place: Words, depth: NDArray[np.uint8]) -> tuple[Words, Words]:
    """Return the last keys that start with some bits."""
    by_score, by_place = _high_bits(depth)
    return score | ~by_score, place | ~by_place


def _high_bits(depth: NDArray[np.uint8]) -> tuple[Words, Words]:
    """Return masks of the first bits of a key, of its two words."""
    shifts = np.arange(64, -1, -1, dtype=np.uint64)
    masks = np.where(shifts < 64, ONES << np.minimum(shifts, np.uint64(63)), np.uint64(0))
    return masks[np.minimum(depth, 64)], masks[np.maximum(depth, 64) - 64]


def _leading_zeros(words: Words) -> NDArray[np.uint8]:
    """Count the zeros before the first 1 of each word, [N]; 64 where there is none."""
    high = (words >> np.uint64(11)).astype(np.float64)  # 53 bits, so exact: the exponent is the length
    zeros = (1074 + 1 - (high.view(np.int64) >> 52)).astype(np.uint8)
    small = np.flatnonzero(high == 0)
    zeros[small] = 64 - np.frexp(words[small].astype(np.float64))[1]
    return zeros
