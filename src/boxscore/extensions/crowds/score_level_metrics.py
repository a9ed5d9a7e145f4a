"""Compute precision at score thresholds that correspond to recalls, from the counts of detections (KITTI).

Conventions
-----------
- Thresholds are scores of true positives of the first pass, chosen so that recall rises by about 1/40 per
  step: at most 41, and fewer if there are fewer positives.
- Precision is 0 beyond the last threshold; each value is then replaced by the maximum from it on. A threshold
  without counted detections has precision 0 (the devkit: NaN).
- 40 points leave out the first, for recall 0; 11 points are every fourth.
- The value of a class without counted ground truths is NaN.

References
----------
``evaluate_object.cpp`` of KITTI's devkit: ``getThresholds``, ``eval_class``.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import FloatArray
from boxscore._utils.ordering import group_starts, stable_order
from boxscore.matching.matches import Matches
from boxscore.protocols.protocol import Protocol
from boxscore.protocols.tables.crowds import LEVEL_COUNTS, LEVEL_SIMILARITY, ORIENTED
from boxscore.scoring.blocks import HeldValues, Values
from boxscore.scoring.curves import Curves
from boxscore.scoring.kinds import Kind

STEPS = 40
"""Number of recall steps."""

Points = Literal[11, 40]


def _values(curves: Curves, protocol: Protocol, *, points: Points, orientation: bool) -> Values:
    """Average over the points, per threshold and class [T, K]; values are in [0, 1]."""
    outcomes, weights = curves.counts.outcomes, curves.counts.image_weights
    assert outcomes is not None
    assert outcomes.matches is not None
    matches, area = outcomes.matches, outcomes.area
    times = np.ones(len(matches.images)) if weights is None else weights
    oriented = ORIENTED.of(matches.extra)
    assert oriented is not None
    # Orientation similarity is undefined if a detection lacks an angle.
    T, K = matches.threshold_count, len(matches.categories)
    mean = np.full((T, K), np.nan)
    if orientation and not oriented.all():
        return HeldValues(mean)
    # Read each class with an object at 41 points. The cumulative sum adds one value after the other, as the
    # devkit does.
    bounds = group_starts(matches.category, K).tolist()
    chosen = slice(1, None) if points == STEPS else slice(None, None, 4)
    for t, k in np.ndindex(T, K):
        if curves.positive[k]:
            rows = slice(bounds[k], bounds[k + 1])
            read = _read(matches, rows, times, t, area, float(curves.positive[k]), orientation=orientation)
            mean[t, k] = np.cumsum(read[chosen])[-1] / points
    return HeldValues(mean)


def _read(
    matches: Matches,
    rows: slice,
    times: FloatArray,
    t: int,
    area: int,
    positive: float,
    *,
    orientation: bool,
) -> FloatArray:
    """Return precision, or orientation similarity, at the 41 points of a class."""
    counts, similarity = LEVEL_COUNTS.of(matches.extra), LEVEL_SIMILARITY.of(matches.extra)
    assert counts is not None
    assert similarity is not None
    score, image = matches.score[rows], matches.image[rows]
    # Choose the thresholds among the scores of true positives of the first pass, repeated by the weights of
    # their images.
    first, true, false = counts[rows, t, area].astype(np.int64).T
    repeats = (first * times[image]).astype(np.int64)
    thresholds = chosen_scores(np.repeat(score, repeats).tolist(), positive)
    # Each detection has the counts of its image from its score on. Adding up the changes gives the sums over
    # all images at every score; each threshold reads its own.
    ends = np.searchsorted(-score, -np.array(thresholds), side="right")
    gained = similarity[rows, t, area] if orientation else true
    above, all_true, all_false = (_summed(values, image, times)[ends] for values in (gained, true, false))
    total = all_true + all_false
    # Precision is 0 beyond the last threshold; take the maximum from each point on.
    read = np.zeros(STEPS + 1)
    np.divide(above, total, out=read[: len(ends)], where=total > 0)
    return np.maximum.accumulate(read[::-1])[::-1]


def _summed(levels: NDArray[np.generic], image: NDArray[np.int32], times: FloatArray) -> FloatArray:
    """Sum the levels over the images after each number of detections, [D + 1]."""
    order = stable_order(image, len(times))
    in_order, its_image = levels[order].astype(np.float64), image[order]
    before = np.where(np.diff(its_image, prepend=-1) == 0, np.roll(in_order, 1), 0.0)
    change = np.empty(len(levels))
    change[order] = (in_order - before) * times[its_image]
    return np.concatenate([[0.0], np.cumsum(change)])


def chosen_scores(scores: Sequence[float], positive: float) -> list[float]:
    """Choose thresholds among descending scores so that recall rises by 1/40; at most 41."""
    chosen: list[float] = []
    recall = 0.0
    for i, score in enumerate(scores):
        left = (i + 1) / positive
        is_last = i == len(scores) - 1
        right = left if is_last else (i + 2) / positive
        if right - recall < recall - left and not is_last:
            continue
        chosen.append(score)
        recall += 1.0 / STEPS
    return chosen


def _kind(name: str, title: str, points: Points, *, orientation: bool = False) -> Kind:
    values = functools.partial(_values, points=points, orientation=orientation)
    return Kind(name, title, values, needs_order=True)


KINDS = (
    # 40 recalls since October 2019, 11 before; objects choose again at each score threshold.
    _kind("AP_R40", "Average Precision  (R40)", 40),
    _kind("AP_R11", "Average Precision  (R11)", 11),
    _kind("AOS_R40", "Orientation Sim.   (R40)", 40, orientation=True),
    _kind("AOS_R11", "Orientation Sim.   (R11)", 11, orientation=True),
)
