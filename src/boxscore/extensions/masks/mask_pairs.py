"""Overlaps of pairs of masks, batch by batch.

Goal
----
The values of pycocotools' ``rleIou``, bit for bit, in memory that does not grow with the number of masks.

Conventions
-----------
- ``first`` are detections and ``second`` ground truths, where there are such. The overlap is IoU, or
  intersection over the first one's area where the second is a crowd; 0 where nothing is shared.
- The reference walks through two codes side by side and stops where both hold a run of length 0 at one place.
  So only the pixels before this place count for two such masks.

References
----------
pycocotools 2.0.11, ``maskApi.c``: ``rleIou``.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import FloatArray, Positions
from boxscore._utils.ordering import ragged_ranges, run_starts
from boxscore._utils.processes import Forked
from boxscore.extensions.masks.column import Masks
from boxscore.extensions.masks.column_runs import column_runs, shared_pixels
from boxscore.extensions.masks.rasterising import batches
from boxscore.similarity.pairs import (
    CollectedPairs,
    Comparison,
    PairValues,
    TooManyPairsError,
    at_least,
    chunks,
    joined,
)

PAIRS_TOGETHER = 1 << 16

TINY = 1e-7
"""What the reference adds below the line, or has there at least."""
SHARE = 4.0
"""Weight of the masks, in batches, that are worth a process."""


class Batch:
    """Masks of one batch, made ready to be compared."""

    def __init__(self, masks: Masks) -> None:
        self.spans, self.position = masks.spans()
        self.runs = column_runs(self.spans)
        self.area = np.empty(len(masks), dtype=np.int64)  # in the order of the spans
        self.area[self.position] = masks.measured_area
        self.cache: dict[float, Any] = {}  # what a similarity computes from them

    @functools.cached_property
    def stops(self) -> Positions:
        """Index of each mask's first run of length 0 in those of the spans, [N+1]."""
        return np.searchsorted(self.spans.empty_runs, np.append(self.spans.base, np.iinfo(np.int64).max))

    def before(self, mask: int, place: int) -> NDArray[np.int64]:
        """Spans [S,2] of one mask up to a place in its image."""
        end = int(self.spans.counts[: mask + 1].sum())
        bounds = self.spans.bounds[end - int(self.spans.counts[mask]) : end] - self.spans.base[mask]
        before: NDArray[np.int64] = np.minimum(bounds, place)
        return before


@dataclasses.dataclass
class MaskBlock:
    """Some rows of two columns of masks, each a batch."""

    first: Positions
    """Rows of the first column."""
    second: Positions
    """Rows of the second one."""
    one: Batch
    other: Batch

    def overlaps(self, i: Positions, j: Positions, by_foreground: NDArray[np.bool_]) -> FloatArray:
        """Overlap of pairs [P], rows ``i`` of the first batch and ``j`` of the other one.

        ``by_foreground`` says which rows of the other are crowds.
        """
        # Whole numbers divided once in float64, as in rleIou: intersection over union, or over the first area
        # for a crowd. If nothing is shared, rleIou sets the denominator to 1.
        shared, area, either = self._pixels(i, j)
        self._stop_early(self.one.position[i], self.other.position[j], shared, either)
        either = np.where(by_foreground[j], area, either)
        either[shared == 0] = 1
        overlaps: FloatArray = shared / either
        return overlaps

    def single_overlaps(self, i: Positions, j: Positions, by_foreground: NDArray[np.bool_]) -> FloatArray:
        """Overlap of pairs as above, divided in float32 as Open Images' evaluator does."""
        shared, area, either = (pixels.astype(np.float32) for pixels in self._pixels(i, j))
        tiny = np.float32(TINY)
        below = np.where(by_foreground[j], area + tiny, np.maximum(either, tiny))
        return np.divide(shared, below).astype(np.float64)

    def shared_pixels(self, i: Positions, j: Positions, by_foreground: NDArray[np.bool_]) -> FloatArray:
        """Count the pixels that pairs share, [P]; ``by_foreground`` changes nothing."""
        shared, _, either = self._pixels(i, j)
        self._stop_early(self.one.position[i], self.other.position[j], shared, either)
        return shared.astype(np.float64)

    def _pixels(
        self, i: Positions, j: Positions
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Pixels that pairs share, those of the first, and those of either, [P]."""
        a, b = self.one.position[i], self.other.position[j]
        shared = shared_pixels(self.one.runs, self.other.runs, a, b)
        area = self.one.area[a]
        return shared, area, area + self.other.area[b] - shared

    def _stop_early(
        self, a: Positions, b: Positions, shared: NDArray[np.int64], either: NDArray[np.int64]
    ) -> None:
        """Count the pixels of pairs whose codes both hold a run of length 0 up to the first such place."""
        if not (len(self.one.spans.empty_runs) and len(self.other.spans.empty_runs)):
            return
        # Only pairs in which both codes hold a run of length 0 can stop early; encoders never write one, so
        # the loop is rare.
        low, low2 = self.one.stops[a], self.other.stops[b]
        high, high2 = self.one.stops[a + 1], self.other.stops[b + 1]
        for pair in ((high > low) & (high2 > low2)).nonzero()[0].tolist():
            mask, other = int(a[pair]), int(b[pair])
            # rleIou stops at the first place where both codes have such a run: count shared and covered
            # pixels up to it.
            places = self.one.spans.empty_runs[low[pair] : high[pair]] - self.one.spans.base[mask]
            others = self.other.spans.empty_runs[low2[pair] : high2[pair]] - self.other.spans.base[other]
            common = np.intersect1d(places, others)
            if len(common):
                spans = self.one.before(mask, int(common[0])), self.other.before(other, int(common[0]))
                pixels = [int(np.diff(each, axis=1).sum()) for each in spans]
                shared[pair] = _shared_length(*spans)
                either[pair] = sum(pixels) - shared[pair]


def _shared_length(one: NDArray[np.int64], other: NDArray[np.int64]) -> int:
    """Count what ascending spans [S,2] share with others."""
    before = np.append(0, np.cumsum(other[:, 1] - other[:, 0]))
    run = np.searchsorted(other[:, 0], one, side="right")
    over = np.maximum(np.append(0, other[:, 1])[run] - one, 0)
    covered = before[run] - over  # of ``other`` before a place: all spans begun, less what is beyond it
    return int((covered[:, 1] - covered[:, 0]).sum())


def blocks(first: Masks, second: Masks) -> Iterator[MaskBlock]:
    """Every row of one column with every row of another, a batch of each at a time."""
    for low, high in batches(second.weights):
        rows = np.arange(low, high)
        other = Batch(second[rows])
        for left, right in batches(first.weights):
            columns = np.arange(left, right)
            yield MaskBlock(columns, rows, Batch(first[columns]), other)


def overlaps_of_pairs(
    first: Masks,
    second: Masks,
    pair_first: Positions,
    pair_second: Positions,
    by_foreground: NDArray[np.bool_],
    compare: Callable[[MaskBlock, Positions, Positions, NDArray[np.bool_]], FloatArray] = MaskBlock.overlaps,
) -> FloatArray:
    """Overlap of pairs of masks of equal sizes [P]; fastest where near rows are in a pair."""
    # Decode each second mask in one batch only: sort the pairs [P] by it.
    overlaps = np.zeros(len(pair_first))
    rows, second_of = np.unique(pair_second, return_inverse=True)
    order = np.argsort(second_of, kind="stable")
    for low, high in batches(second[rows].weights):
        # The pairs of this batch, and the first masks that they need.
        start, stop = np.searchsorted(second_of[order], [low, high])
        pairs = order[start:stop]
        other = Batch(second[rows[low:high]])
        needed, first_of = np.unique(pair_first[pairs], return_inverse=True)
        for left, right in batches(first[needed].weights):
            # For each batch of these, compare the pairs between the two batches, a bounded number at a time.
            # A pair is in one block, so its value is written once.
            some = ((first_of >= left) & (first_of < right)).nonzero()[0]
            block = MaskBlock(needed[left:right], rows[low:high], Batch(first[needed[left:right]]), other)
            for chunk in range(0, len(some), PAIRS_TOGETHER):
                here = some[chunk : chunk + PAIRS_TOGETHER]
                chosen = pairs[here]
                overlaps[chosen] = compare(
                    block, first_of[here] - left, second_of[chosen] - low, by_foreground[block.second]
                )
    return overlaps


def pairs_of_runs(
    first: Masks,
    second: Masks,
    comparison: Comparison,
    compare: Callable[[MaskBlock, Positions, Positions, NDArray[np.bool_]], FloatArray],
) -> PairValues:
    """Compare each of ``second`` with its run of ``first``, and return the pairs that agree enough."""
    starts, counts = comparison.starts, comparison.counts
    by_foreground = comparison.by_foreground
    assert by_foreground is not None
    # Batches of second masks together with the first masks that they are compared with: memory holds one
    # batch of each.
    collected = CollectedPairs(comparison)
    ends = starts + counts
    first_weight = first.weights
    for low, high in batches(_weights(first_weight, second.weights, comparison)):
        rows = np.arange(low, high)
        other = Batch(second[rows])
        # Rows of ``first`` from ``begin`` to ``end`` are compared with this batch.
        begin, end = int(starts[low]), int(ends[high - 1])
        for left, right in batches(first_weight[begin:end]):
            columns = np.arange(begin + left, begin + right)
            block = MaskBlock(columns, rows, Batch(first[columns]), other)
            # Clip the run of each second mask to this batch of first ones: a run that spans several batches
            # is compared in parts.
            from_ = np.maximum(starts[low:high], begin + left)
            size = np.maximum(np.minimum(ends[low:high], begin + right) - from_, 0)
            for top, bottom in chunks(size, PAIRS_TOGETHER):
                # Lay out a bounded number of pairs, and count pixels only where columns and areas allow the
                # lowest threshold.
                j = np.repeat(np.arange(top, bottom), size[top:bottom])
                i = ragged_ranges(from_[top:bottom] - begin - left, size[top:bottom])
                near = _may_agree(block, i, j, by_foreground[rows], comparison.lowest)
                i, j = i[near], j[near]
                if len(i):
                    value = compare(block, i, j, by_foreground[rows])
                    pairs = PairValues(low + j, begin + left + i, value)
                    collected.add(at_least(pairs, comparison.lowest), low + bottom)
    return joined(collected.parts)


def _weights(first: FloatArray, second: FloatArray, comparison: Comparison) -> FloatArray:
    """Weight of each of the second masks [g] with that of the first ones that are decoded with it."""
    starts, ends = comparison.starts, comparison.starts + comparison.counts
    total = np.append(0.0, np.cumsum(first))
    group = run_starts(starts)
    weights = second.copy()
    weights[group] += total[ends[group]] - total[starts[group]]  # a group's are decoded with its first truth
    return weights


class _Share(NamedTuple):
    """The result of one of several processes."""

    pairs: PairValues
    first_area: FloatArray
    second_area: FloatArray
    rest_area: FloatArray


def shared_out(
    first: Masks,
    second: Masks,
    comparison: Comparison,
    rest: Masks | None,
    compare: Callable[[Masks, Masks, Comparison], PairValues],
) -> PairValues:
    """Compare masks in as many processes as the comparison allows and the work is worth.

    Parameters
    ----------
    first, second : Masks
        What the comparison is about.
    comparison : Comparison
    rest : Masks, optional
        Measured by the same processes, where there are several.
    compare : callable
        Makes the pairs of some of the second masks.
    """
    # Fewer processes for less work: a fork is not worth it for a small part of the masks.
    weights = _weights(first.weights, second.weights, comparison)
    workers = min(comparison.workers, int(weights.sum() / SHARE))
    if workers < 2:
        return compare(first, second, comparison)
    # Cut between groups, so that no first mask is decoded twice, at about equal weights. The remaining masks
    # are cut by number.
    groups = np.append(run_starts(comparison.starts), len(weights))
    total = np.append(0.0, np.cumsum(weights))[groups]
    middle = np.searchsorted(total, np.linspace(0, total[-1], workers + 1)[1:-1])
    cuts = [0, *groups[middle].tolist(), len(weights)]
    columns = np.append(comparison.starts, len(comparison.rows))[cuts].tolist()
    thirds = np.linspace(0, 0 if rest is None else len(rest), workers + 1).astype(int).tolist()

    def parts(number: int) -> list[slice]:
        return [slice(*each[number : number + 2]) for each in (columns, cuts, thirds)]

    def share(number: int) -> _Share:
        # Each process compares its rows as a comparison of its own, then shifts rows back to those of the
        # whole. Pairs do not depend on the cut.
        of_first, of_second, of_rest = parts(number)
        low = of_first.start
        some = comparison._replace(
            truth_rows=comparison.truth_rows[of_second],
            rows=comparison.rows[of_first],
            starts=comparison.starts[of_second] - low,
            counts=comparison.counts[of_second],
            by_foreground=None if comparison.by_foreground is None else comparison.by_foreground[of_second],
        )
        # Return the areas as well: what a forked process counts is lost with it.
        one, other = first[of_first], second[of_second]
        pairs = compare(one, other, some)
        pairs = pairs._replace(truth=pairs.truth + of_second.start, detection=pairs.detection + low)
        area = np.empty(0) if rest is None else rest[of_rest].area
        return _Share(pairs, one.measured_area, other.measured_area, area)

    # This process takes the first part while the forked ones run theirs.
    with contextlib.closing(
        Forked([functools.partial(share, number) for number in range(1, workers)])
    ) as forked:
        shares = [share(0), *forked.results()]
    # Store all areas in this process, so that area ranges decode nothing a second time.
    for number, done in enumerate(shares):
        of_first, of_second, of_rest = parts(number)
        first[of_first].remember_area(done.first_area)
        second[of_second].remember_area(done.second_area)
        if rest is not None:
            rest[of_rest].remember_area(done.rest_area)
    # The results come in the order of the ground truths: the same pairs in the same order as from one
    # process.
    pairs = joined([done.pairs for done in shares])
    if len(pairs.value) > comparison.most:
        raise TooManyPairsError(int(comparison.counts.sum()))
    return pairs


def _may_agree(
    block: MaskBlock, i: Positions, j: Positions, by_foreground: NDArray[np.bool_], lowest: float
) -> Positions:
    """Pairs that share columns and whose areas allow ``lowest``: no more is shared than the smaller has.

    Whole numbers divided, so the bound holds to the last bit. It does not where the count stops early.
    """
    # Masks without a common column share nothing.
    a, b = block.one.position[i], block.other.position[j]
    one, other = block.one.runs, block.other.runs
    left, right = np.maximum(one.left[a], other.left[b]), np.minimum(one.right[a], other.right[b])
    near = left < right
    # The quotient is at most smaller / larger, or smaller / area against a crowd.
    area, other_area = block.one.area[a], block.other.area[b]
    smaller, larger = np.minimum(area, other_area), np.maximum(area, other_area)
    over = np.where(by_foreground[j], area, larger)
    near &= smaller >= lowest * over * (1 - 1e-12)  # room for the rounding of the product
    # Where a count can stop early, areas bound nothing: compare every pair.
    if len(block.one.spans.empty_runs) and len(block.other.spans.empty_runs):
        return np.arange(len(i))
    return near.nonzero()[0]
