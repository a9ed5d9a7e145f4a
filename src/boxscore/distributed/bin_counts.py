"""Counts up to bins: bounds are two curves of them, the true positives of every bin first, or last.

Conventions
-----------
- In a bin with ``f`` false positives, the upper bound takes the true ones first, the lower bound last. With
  ``H`` true positives up to its end and ``F`` false ones before it, precision at its last true positive is
  ``H / (F + H)`` at most and ``H / (F + f + H)`` at least. Both orders are possible, so that no bound from
  these counts is closer. Recall is exact.
- A bin with true positives is a run of a :class:`~boxscore.scoring.counts.Counter`.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import FloatArray, IntArray
from boxscore.distributed.bins import Bins
from boxscore.protocols.rules.ties import TieOrder
from boxscore.protocols.tables import ApRules
from boxscore.scoring.areas import curve_area
from boxscore.scoring.counts import Line

EXPANDED = 1 << 22
"""True positives of a class, up to which an area is summed as the exact one is."""


class BinLines(NamedTuple):
    """Counts at one threshold, of the bins with true positives, M of them, in both orders."""

    true_positives: IntArray
    """True positives of each bin, [M]."""
    up_to: IntArray
    """True positives of the class up to the end of each bin, [M]."""
    counted: tuple[IntArray, IntArray]
    """Counted detections of the class: where true positives come last in a bin, and first, [M] each."""
    starts: IntArray
    """Where each class starts, and the end, [K + 1]."""


def lines_of_bins(bins: Bins, key: int, thresholds: int, tie_order: TieOrder) -> list[BinLines]:
    """Count at every threshold, at one position of the keys at which there are outcomes."""
    return [_lines_at(bins, key, t, tie_order) for t in range(thresholds)]


def _lines_at(bins: Bins, key: int, threshold: int, tie_order: TieOrder) -> BinLines:
    bit = np.array(threshold, dtype=bins.outcomes.dtype)
    table = bins.outcomes[:, 2 * key : 2 * key + 2] >> bit & 1
    entries = np.cumsum(bins.sizes, dtype=np.int64) - bins.sizes
    true_positives, counted = (
        np.add.reduceat(column[bins.outcome] * bins.counts, entries) if len(entries) else entries
        for column in table.T.astype(np.int64)
    )
    mixed = np.flatnonzero(true_positives)
    starts = np.searchsorted(mixed, bins.starts)
    classes = np.repeat(np.arange(len(starts) - 1), np.diff(starts))

    def running(values: IntArray) -> IntArray:
        """Sum up in each class, to the end of each bin with true positives."""
        sums = np.concatenate([[0], np.cumsum(values)])
        total: IntArray = sums[mixed + 1] - sums[bins.starts[:-1]][classes]
        return total

    last = running(counted)
    first = last - counted[mixed] + true_positives[mixed]
    orders = last, first
    if tie_order != "as_ranked":  # no order is free inside a score
        one_score = bins.depth[mixed] >= 64
        moved = first if tie_order == "true_positives_first" else last
        orders = np.where(one_score, moved, last), np.where(one_score, moved, first)
    return BinLines(true_positives[mixed], running(true_positives), orders, starts)


class BinCounts:
    """Counts up to each bin with true positives, in one of the two orders.

    Parameters
    ----------
    lines : list of BinLines, [T]
        Nothing where precision is not asked for.
    true_positives : ndarray of int64, [T, K]
        True positives.
    positive : ndarray of int64, [K]
        Counted ground truths.
    upper : bool
        Whether true positives come first in a bin.
    """

    outcomes = None
    image_weights = None
    weights_up_to = None

    def __init__(
        self,
        lines: Sequence[BinLines],
        true_positives: IntArray,
        positive: IntArray,
        *,
        upper: bool,
    ) -> None:
        self._lines, self._upper = lines, upper
        self.true_positives, self._positive = true_positives, positive

    def __len__(self) -> int:
        return len(self._lines)

    @functools.cached_property
    def runs(self) -> IntArray:
        """Bins with true positives, [T, K]."""
        return np.stack([np.diff(line.starts) for line in self._lines])

    @property
    def several(self) -> NDArray[np.bool_] | None:
        """Whether each bin has several true positives, the last of which need not be the best, [N]."""
        return np.concatenate([line.true_positives > 1 for line in self._lines]) if self._upper else None

    def run_of(self, nth: IntArray, thresholds: slice, classes: slice) -> IntArray:
        """Which bin of its class has the true positive with each number; [T, k, R]."""
        lines, true_positives = self._lines[thresholds], self.true_positives[thresholds, classes, None]
        nth = np.broadcast_to(nth, (len(lines), *nth.shape[1:]))
        runs = np.empty(nth.shape, dtype=np.int64)
        for t, line in enumerate(lines):
            ends, starts = np.cumsum(line.true_positives), line.starts[:-1][classes, None]
            before = np.concatenate([[0], ends])[starts]
            runs[t] = np.searchsorted(ends, before + nth[t] + 1) - starts
        return np.where(nth < true_positives, runs, self.runs[thresholds, classes, None])

    @property
    def has_detections(self) -> NDArray[np.bool_]:
        """Whether a class has a detection whose score is asked for: none is known."""
        return np.zeros(self.true_positives.shape[1], dtype=bool)

    def scores_of(self, runs: IntArray) -> FloatArray:
        """Not known of bins."""
        return np.full(len(runs), np.nan)

    def first_scores(self) -> FloatArray:
        """Not known of bins."""
        return np.full(self.true_positives.shape[1], np.nan)

    def lines(self, tie_order: TieOrder | None = None) -> Iterator[Line]:
        """Yield, per threshold, the true positives and the counted detections up to each bin; in-class."""
        for line in self._lines:
            yield line.up_to, line.counted[self._upper]

    def areas(self, precision: FloatArray, rules: ApRules) -> FloatArray:
        """Bound the areas under the curves, [T, K]; ``precision`` is at each bin, [N]."""
        areas = np.zeros(self.true_positives.shape)
        ends = np.cumsum(self.runs).reshape(self.runs.shape)
        for t, line in enumerate(self._lines):
            for k in np.flatnonzero(self._positive).tolist():
                rows = slice(int(line.starts[k]), int(line.starts[k + 1]))
                false = line.counted[self._upper][rows] - line.up_to[rows]
                best = precision[ends[t, k] - self.runs[t, k] : ends[t, k]]
                areas[t, k] = self._area(
                    line.true_positives[rows], false, best, int(self._positive[k]), rules
                )
        return areas

    def _area(
        self, true_positives: IntArray, false: IntArray, precision: FloatArray, positive: int, rules: ApRules
    ) -> float:
        """Bound one area; that of very many true positives is summed otherwise, and widened by as much."""
        count = int(true_positives.sum())
        if count <= EXPANDED:
            nth = np.arange(1, count + 1)
            return curve_area(nth + np.repeat(false, true_positives), positive, rules)
        slack = (count + 64) * 2.0**-51
        best = np.maximum.accumulate(precision[::-1])[::-1]
        area = float(true_positives / positive @ best) + (slack if self._upper else -slack)
        return min(max(area, 0.0), 1.0)
