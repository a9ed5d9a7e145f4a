"""Compute the overlap of pairs of masks, batch by batch.

Values are those of pycocotools' ``rleIou``, bit for bit, in memory that does not grow with the number of
masks.

Conventions
-----------
- ``first`` are detections and ``second`` ground truths, if applicable. The overlap is IoU, or against a
  crowd, intersection over the area of the first mask; 0 if no pixels are shared.
- ``rleIou`` walks through two RLEs and stops at the first place where both have a run of length 0. So only
  pixels before this place count for such masks.

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
from boxscore.extensions.masks.rasterizing import batches
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
"""Term that the reference adds to the denominator, or its minimum."""
SHARE = 4.0
"""Total weight of masks, in batches, that justifies a process."""


class Batch:
    """One batch of masks, prepared for comparisons."""

    def __init__(self, masks: Masks) -> None:
        self.spans, self.position = masks.spans()
        self.runs = column_runs(self.spans)
        self.area = np.empty(len(masks), dtype=np.int64)  # in the order of the spans
        self.area[self.position] = masks.measured_area
        self.cache: dict[float, Any] = {}  # values of a similarity

    @functools.cached_property
    def stops(self) -> Positions:
        """Index of each mask's first run of length 0 in ``spans.empty_runs``, [N+1]."""
        return np.searchsorted(self.spans.empty_runs, np.append(self.spans.base, np.iinfo(np.int64).max))

    def before(self, mask: int, place: int) -> NDArray[np.int64]:
        """Return the spans [S, 2] of one mask up to a place in its image."""
        end = int(self.spans.counts[: mask + 1].sum())
        bounds = self.spans.bounds[end - int(self.spans.counts[mask]) : end] - self.spans.base[mask]
        before: NDArray[np.int64] = np.minimum(bounds, place)
        return before


@dataclasses.dataclass
class MaskBlock:
    """A batch of rows of each of two columns of masks."""

    first: Positions
    """Rows of the first column."""
    second: Positions
    """Rows of the second column."""
    one: Batch
    other: Batch

    def overlaps(self, i: Positions, j: Positions, by_foreground: NDArray[np.bool_]) -> FloatArray:
        """Return the overlap of pairs [P] of rows ``i`` of the first batch and ``j`` of the other.

        ``by_foreground`` marks the crowds among the rows of the other batch.
        """
        # Divide integers once in float64, as rleIou does: intersection over union, or over the first area for
        # a crowd. If no pixels are shared, rleIou sets the denominator to 1.
        shared, area, either = self._pixels(i, j)
        self._stop_early(self.one.position[i], self.other.position[j], shared, either)
        either = np.where(by_foreground[j], area, either)
        either[shared == 0] = 1
        overlaps: FloatArray = shared / either
        return overlaps

    def single_overlaps(self, i: Positions, j: Positions, by_foreground: NDArray[np.bool_]) -> FloatArray:
        """Return the overlap of pairs, divided in float32 as in the evaluator of Open Images."""
        shared, area, either = (pixels.astype(np.float32) for pixels in self._pixels(i, j))
        tiny = np.float32(TINY)
        below = np.where(by_foreground[j], area + tiny, np.maximum(either, tiny))
        return np.divide(shared, below).astype(np.float64)

    def shared_pixels(self, i: Positions, j: Positions, by_foreground: NDArray[np.bool_]) -> FloatArray:
        """Count the pixels that pairs share, [P]; ``by_foreground`` is ignored."""
        shared, _, either = self._pixels(i, j)
        self._stop_early(self.one.position[i], self.other.position[j], shared, either)
        return shared.astype(np.float64)

    def _pixels(
        self, i: Positions, j: Positions
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return the shared pixels of pairs, the area of the first mask, and the area of the union, [P]."""
        a, b = self.one.position[i], self.other.position[j]
        shared = shared_pixels(self.one.runs, self.other.runs, a, b)
        area = self.one.area[a]
        return shared, area, area + self.other.area[b] - shared

    def _stop_early(
        self, a: Positions, b: Positions, shared: NDArray[np.int64], either: NDArray[np.int64]
    ) -> None:
        """Recount pairs whose RLEs both have a run of length 0 at one place, up to that place."""
        if not (len(self.one.spans.empty_runs) and len(self.other.spans.empty_runs)):
            return
        # This loop is rare: encoders never write a run of length 0.
        low, low2 = self.one.stops[a], self.other.stops[b]
        high, high2 = self.one.stops[a + 1], self.other.stops[b + 1]
        for pair in ((high > low) & (high2 > low2)).nonzero()[0].tolist():
            mask, other = int(a[pair]), int(b[pair])
            # Count shared and covered pixels up to the first common place.
            places = self.one.spans.empty_runs[low[pair] : high[pair]] - self.one.spans.base[mask]
            others = self.other.spans.empty_runs[low2[pair] : high2[pair]] - self.other.spans.base[other]
            common = np.intersect1d(places, others)
            if len(common):
                spans = self.one.before(mask, int(common[0])), self.other.before(other, int(common[0]))
                pixels = [int(np.diff(each, axis=1).sum()) for each in spans]
                shared[pair] = _shared_length(*spans)
                either[pair] = sum(pixels) - shared[pair]


def _shared_length(one: NDArray[np.int64], other: NDArray[np.int64]) -> int:
    """Count the pixels that ascending spans [S, 2] share with others."""
    before = np.append(0, np.cumsum(other[:, 1] - other[:, 0]))
    run = np.searchsorted(other[:, 0], one, side="right")
    over = np.maximum(np.append(0, other[:, 1])[run] - one, 0)
    covered = before[run] - over  # pixels of ``other`` before a place
    return int((covered[:, 1] - covered[:, 0]).sum())


def blocks(first: Masks, second: Masks) -> Iterator[MaskBlock]:
    """Yield blocks that compare every row of one column with every row of another, batch by batch."""
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
    """Return the overlap of pairs of masks of equal size [P]; fastest if pairs have nearby rows."""
    # Sort the pairs [P] by second mask, so that each is decoded once.
    overlaps = np.zeros(len(pair_first))
    rows, second_of = np.unique(pair_second, return_inverse=True)
    order = np.argsort(second_of, kind="stable")
    for low, high in batches(second[rows].weights):
        # Select the pairs of this batch, and the first masks that they need.
        start, stop = np.searchsorted(second_of[order], [low, high])
        pairs = order[start:stop]
        other = Batch(second[rows[low:high]])
        needed, first_of = np.unique(pair_first[pairs], return_inverse=True)
        for left, right in batches(first[needed].weights):
            # Compare the pairs between two batches, a bounded number at a time. Each pair is in one block.
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
    """Compare each of ``second`` with its run of ``first``, and return the pairs that overlap enough."""
    starts, counts = comparison.starts, comparison.counts
    by_foreground = comparison.by_foreground
    assert by_foreground is not None
    # Go through batches of second masks and of the first masks compared with them, to bound memory.
    collected = CollectedPairs(comparison)
    ends = starts + counts
    first_weight = first.weights
    for low, high in batches(_weights(first_weight, second.weights, comparison)):
        rows = np.arange(low, high)
        other = Batch(second[rows])
        # Rows ``begin`` to ``end`` of ``first`` are compared with this batch.
        begin, end = int(starts[low]), int(ends[high - 1])
        for left, right in batches(first_weight[begin:end]):
            columns = np.arange(begin + left, begin + right)
            block = MaskBlock(columns, rows, Batch(first[columns]), other)
            # Clip the run of each second mask to this batch; a longer run is compared in several batches.
            from_ = np.maximum(starts[low:high], begin + left)
            size = np.maximum(np.minimum(ends[low:high], begin + right) - from_, 0)
            for top, bottom in chunks(size, PAIRS_TOGETHER):
                # Expand a bounded number of pairs, and count pixels only if columns and areas allow the
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
    """Return the weight of each second mask [g], including the first masks decoded with it."""
    starts, ends = comparison.starts, comparison.starts + comparison.counts
    total = np.append(0.0, np.cumsum(first))
    group = run_starts(starts)
    weights = second.copy()
    weights[group] += total[ends[group]] - total[starts[group]]  # decoded with the first of a group
    return weights


class _Share(NamedTuple):
    """The result of one process."""

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
    """Compare masks in several processes, if the comparison allows it and the work justifies it.

    Parameters
    ----------
    first, second : Masks
        Masks to compare.
    comparison : Comparison
    rest : Masks, optional
        Further masks to measure in the same processes.
    compare : callable
        Returns the pairs of some second masks.
    """
    # Use fewer processes for less work, since forks cost time.
    weights = _weights(first.weights, second.weights, comparison)
    workers = min(comparison.workers, int(weights.sum() / SHARE))
    if workers < 2:
        return compare(first, second, comparison)
    # Split between groups, so that no first mask is decoded twice, at about equal weights. Split the
    # remaining masks by count.
    groups = np.append(run_starts(comparison.starts), len(weights))
    total = np.append(0.0, np.cumsum(weights))[groups]
    middle = np.searchsorted(total, np.linspace(0, total[-1], workers + 1)[1:-1])
    cuts = [0, *groups[middle].tolist(), len(weights)]
    columns = np.append(comparison.starts, len(comparison.rows))[cuts].tolist()
    thirds = np.linspace(0, 0 if rest is None else len(rest), workers + 1).astype(int).tolist()

    def parts(number: int) -> list[slice]:
        return [slice(*each[number : number + 2]) for each in (columns, cuts, thirds)]

    def share(number: int) -> _Share:
        # Compare the rows as a comparison of their own, then shift them back. Pairs do not depend on the
        # split.
        of_first, of_second, of_rest = parts(number)
        low = of_first.start
        some = comparison._replace(
            truth_rows=comparison.truth_rows[of_second],
            rows=comparison.rows[of_first],
            starts=comparison.starts[of_second] - low,
            counts=comparison.counts[of_second],
            by_foreground=None if comparison.by_foreground is None else comparison.by_foreground[of_second],
        )
        # Return areas too, since caches of a forked process are lost.
        one, other = first[of_first], second[of_second]
        pairs = compare(one, other, some)
        pairs = pairs._replace(truth=pairs.truth + of_second.start, detection=pairs.detection + low)
        area = np.empty(0) if rest is None else rest[of_rest].area
        return _Share(pairs, one.measured_area, other.measured_area, area)

    # Run the first part in this process, and the others in forks.
    with contextlib.closing(
        Forked([functools.partial(share, number) for number in range(1, workers)])
    ) as forked:
        shares = [share(0), *forked.results()]
    # Cache all areas in this process, so that area ranges do not decode masks again.
    for number, done in enumerate(shares):
        of_first, of_second, of_rest = parts(number)
        first[of_first].remember_area(done.first_area)
        second[of_second].remember_area(done.second_area)
        if rest is not None:
            rest[of_rest].remember_area(done.rest_area)
    # Results are in the order of the ground truths, as from one process.
    pairs = joined([done.pairs for done in shares])
    if len(pairs.value) > comparison.most:
        raise TooManyPairsError(int(comparison.counts.sum()))
    return pairs


def _may_agree(
    block: MaskBlock, i: Positions, j: Positions, by_foreground: NDArray[np.bool_], lowest: float
) -> Positions:
    """Return the pairs that share columns and whose areas allow ``lowest``.

    The bound is exact for integer areas, except if a count may stop early.
    """
    # Masks without a common column share no pixels.
    a, b = block.one.position[i], block.other.position[j]
    one, other = block.one.runs, block.other.runs
    left, right = np.maximum(one.left[a], other.left[b]), np.minimum(one.right[a], other.right[b])
    near = left < right
    # The overlap is at most smaller / larger, or smaller / area against a crowd.
    area, other_area = block.one.area[a], block.other.area[b]
    smaller, larger = np.minimum(area, other_area), np.maximum(area, other_area)
    over = np.where(by_foreground[j], area, larger)
    near &= smaller >= lowest * over * (1 - 1e-12)  # tolerate the rounding of the product
    # If counts may stop early, areas do not bound the overlap: compare every pair.
    if len(block.one.spans.empty_runs) and len(block.other.spans.empty_runs):
        return np.arange(len(i))
    return near.nonzero()[0]
