"""Count true and false positives at each distinct score, for one IoU threshold."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import BoolArray, FloatArray, IntArray, Positions
from boxscore._utils.exact_sums import digits_of, rounded
from boxscore._utils.ordering import descending_order, group_starts
from boxscore._utils.records import record
from boxscore.matching.matches import Matches

DIGITS = 2
"""Number of digits that hold an overlap in exact sums, in whole multiples of 2**-62."""


class CountedDetections(NamedTuple):
    """The N counted detections at one threshold and area range, in class order."""

    category: NDArray[np.int32]
    score: FloatArray
    true: BoolArray
    iou: FloatArray
    """IoU with the matched ground truth; NaN unless a true positive."""
    positive: NDArray[Any]
    """Counted ground truths of each class, [K]; float64 if weighted."""
    image: NDArray[np.int32]
    weight: FloatArray | None = None
    """Weight of each true positive; None: 1."""


def counted_detections(matches: Matches, threshold: int, area: int) -> CountedDetections:
    """Select the counted detections at a threshold and area range: positions on the axes T and A."""
    outcomes = matches.detection_outcomes(threshold, area)
    counted_rows = np.flatnonzero(outcomes.counted)
    true = outcomes.true[counted_rows]
    return CountedDetections(
        matches.category[counted_rows],
        matches.score[counted_rows],
        true,
        np.where(true, outcomes.iou[counted_rows], np.nan),
        matches.positives(area),
        matches.image[counted_rows],
        None if outcomes.weight is None else outcomes.weight[counted_rows],
    )


@record(frozen=True, eq=False)
class ScoreCounts:
    """Counts at every distinct score threshold, per class and over all classes.

    Attributes
    ----------
    score : ndarray of float64, [N]
        Class by class, all classes together last; descending in each.
    true : ndarray of int64, [N]
        True positives with this score or a higher one; if ground truths have weights, their sum as float64.
    false : ndarray of int64, [N]
    distance : ndarray of float64, [N]
        Sum of 1 - IoU over the true positives; NaN if overlaps are unknown.
    bounds : ndarray of intp, [K + 2]
        Start of each class, start of all classes together, and the end.
    positive : ndarray of int64, [K + 1]
        Counted ground truths of each class, and of all; float64 if weighted.
    """

    score: FloatArray
    true: NDArray[Any]
    false: NDArray[np.int64]
    distance: FloatArray
    bounds: Positions
    positive: NDArray[Any]

    @classmethod
    def of(cls, counted: CountedDetections) -> ScoreCounts:
        """Count detections up to each distinct score, of each class and of all classes."""
        # Count class by class, then all detections by descending score. That order is stable, so its ties
        # keep class order; the counts do not depend on it.
        bounds = group_starts(counted.category, len(counted.positive))
        weight, order = counted.weight, descending_order(counted.score)
        ends, by_class = counts_up_to(counted.score, counted.true, counted.iou, weight, bounds=bounds)
        _, of_all = counts_up_to(
            counted.score[order],
            counted.true[order],
            counted.iou[order],
            None if weight is None else weight[order],
        )
        # Concatenate the columns and record the start of each part, [K + 2].
        score, true, false, distance = (
            np.concatenate(columns) for columns in zip(by_class, of_all, strict=True)
        )
        positive = np.append(counted.positive, counted.positive.sum())
        return cls(score, true, false, distance, np.append(ends, len(score)), positive)

    @property
    def precision(self) -> FloatArray:
        """Precision at each score threshold, [N]."""
        return self.true / (self.true + self.false)

    def f_score(self, beta: float = 1.0) -> FloatArray:
        """F-score at each score threshold, [N]; NaN without ground truth and detections."""
        positive = np.repeat(self.positive, np.diff(self.bounds))
        weight = beta * beta
        with np.errstate(invalid="ignore"):
            score: FloatArray = (
                (1 + weight)
                * self.true
                / ((1 + weight) * self.true + weight * (positive - self.true) + self.false)
            )
        return score

    def best_score(self, k: int) -> float:
        """Return the threshold with the best F1 of a class, or of all (K); the highest of equals; or NaN."""
        part = self.part(k)
        if not self.positive[k] or part.start == part.stop:
            return float("nan")
        return float(self.score[part][np.argmax(self.f_score()[part])])

    def counts_from(self, scores: FloatArray) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Count the true and false positives of each class at or above each of some scores, [S, K] each."""
        shape = len(scores), len(self.positive) - 1
        true, false = (np.zeros(shape, side.dtype) for side in (self.true, self.false))
        for k in range(shape[1]):
            part = self.part(k)
            last = np.searchsorted(-self.score[part], -scores, side="right") - 1
            at = np.flatnonzero(last >= 0)
            true[at, k], false[at, k] = self.true[part][last[at]], self.false[part][last[at]]
        return true, false

    def curve(self, k: int) -> ScoreCounts:
        """Return the counts of one class, or of all classes together (K)."""
        part = self.part(k)
        columns = (self.score[part], self.true[part], self.false[part], self.distance[part])
        return ScoreCounts(*columns, np.array([0, part.stop - part.start]), self.positive[k : k + 1])

    def part(self, k: int) -> slice:
        """Return the positions of a class, or of all classes together (K)."""
        return slice(int(self.bounds[k]), int(self.bounds[k + 1]))


class CountsBefore(NamedTuple):
    """Counts of the detections with higher scores than those of a range."""

    true: int
    false: int
    apart: IntArray
    """Digits of the sum of 1 - IoU over the true positives."""


NOTHING = CountsBefore(0, 0, np.zeros(DIGITS, dtype=np.int64))


def counts_up_to(
    score: FloatArray,
    true: BoolArray,
    iou: FloatArray,
    weight: FloatArray | None = None,
    before: CountsBefore = NOTHING,
    bounds: Positions | None = None,
) -> tuple[Positions, tuple[FloatArray, NDArray[Any], NDArray[np.int64], FloatArray]]:
    """Count up to the last detection of each distinct score, in each part; scores descend in a part.

    Parts start at ``bounds``, [P + 1], which end with the number of detections; None: there is one part.
    Return the bounds of parts in the answer, then scores, true, false, and the sum of 1 - IoU over the true
    positives, which does not depend on the order of equal scores; NaN in parts with unknown overlaps.
    """
    bounds = np.array([0, len(score)]) if bounds is None else bounds
    # Find the last detection of each distinct score, [N], and the first of its part.
    is_last = np.append(score[1:] != score[:-1], True)[: len(score)]
    is_last[bounds[bounds > 0] - 1] = True
    last = np.flatnonzero(is_last)
    ends = np.searchsorted(last, bounds)
    first = np.repeat(bounds[:-1], np.diff(ends))
    # Subtract cumulative counts before the part from those up to the last detection.
    trues = np.zeros(len(true) + 1, dtype=np.int64)
    np.cumsum(true, out=trues[1:])
    low, high = trues[first], trues[last + 1]
    false = last + 1 - first - (high - low) + before.false
    # Sum 1 - IoU as integer digits, so that the order of equal scores does not change the sum.
    apart = 1 - iou[true]
    if weight is not None:
        apart *= weight[true]
    unknown = np.isnan(apart)
    if unknown.all():
        distance = np.full(len(last), rounded(before.apart))
    else:
        digits = np.zeros((DIGITS, len(apart) + 1), dtype=np.int64)
        np.cumsum(digits_of(np.where(unknown, 0.0, apart), DIGITS), axis=1, out=digits[:, 1:])
        distance = rounded(digits[:, high] - digits[:, low] + before.apart[:, None])
    in_part = np.diff(np.append(0, np.cumsum(unknown))[trues[bounds]]) > 0
    distance[np.repeat(in_part, np.diff(ends))] = np.nan
    # Add weights from the first detection of each part, because sums of floats depend on their beginning.
    count = high - low + before.true
    if weight is not None:
        parts = [weight[low:high] for low, high in itertools.pairwise(bounds.tolist())]
        count = np.concatenate([weight[:0], *map(np.cumsum, parts)])[last]
    return ends, (score[last], count, false, distance)
