"""Compute the expected AP over all orders of equally scored detections, with other scores fixed.

Conventions
-----------
- Detections with one class and score form a *group*. Its true and false ones are in any order, all equally
  likely and independent of other groups. The precision at a true detection is an envelope: the best from it
  on, in its group or a later one. So a group needs only the distribution of the best later value
  (:func:`~boxscore.extensions.scoreless.expected.exact_group`), and the groups are processed from the last to
  the first.
- The matching is fixed: an order decides which detections come first, not which are true.
- The result is exact for a class and threshold if true times false detections, summed over the groups, are at
  most 4,096. Beyond that, it is a mean over drawn orders, each with its reverse, and has a standard error.
  Draws depend only on the groups.
- A class without relevant ties keeps its AP to the last bit.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from boxscore._utils.array_types import BoolArray, FloatArray, IntArray
from boxscore.extensions.scoreless.expected import DRAWN, MOST_EXACT, NOTHING, Expected, exact_group
from boxscore.scoring.blocks import MOST_VALUES, HeldValues
from boxscore.scoring.curves import Curves

FEWEST_PAIRS, MOST_PAIRS = 8, 500
"""Number of drawn orders, each with its reverse."""


class NoExpectationError(Exception):
    """The protocol's AP is not a mean of precision at true detections."""


class TiedExpectation(NamedTuple):
    """The expectations of all classes and thresholds."""

    values: HeldValues
    """Values to average over classes, as for AP."""
    error: FloatArray
    """Standard error of each class and threshold, [T, K]; 0 if it is exact."""


def expected_over_ties(curves: Curves, classes: int | None = None) -> TiedExpectation:
    """Return the expected AP over all orders of equally scored detections.

    Parameters
    ----------
    curves : Curves
    classes : int, optional
        Number of classes of the whole result, if these curves are part of it.

    Raises
    ------
    NoExpectationError
        When the protocol's AP is not a mean of precision at true detections.
    """
    rules = curves.rules
    if (
        rules.interpolation not in ("points", "area")
        or rules.score_steps
        or curves.counts.weights_up_to is not None
    ):
        raise NoExpectationError
    # Count the false positives before each tie and through it: true positives first, then last, [N].
    first = curves.joined_lines("true_positives_first")
    last = curves.joined_lines("true_positives_last")
    before, through = first[1] - first[0], last[1] - last[0]
    runs = curves.counts.runs
    ends = np.cumsum(runs).reshape(runs.shape)
    # Keep values at the recall points if they are few; otherwise only the mean of each class and threshold.
    pointwise = rules.interpolation == "points" and not rules.sequential_mean
    size = runs.size if classes is None else len(runs) * classes
    pointwise &= size * curves.point_count <= MOST_VALUES
    values = (curves.interpolated if pointwise else curves.average_precision).copy()
    error = np.zeros(runs.shape)
    needed = np.maximum(curves.needed(), 1) - 1
    # Segments without a tie of true and false detections keep their AP exactly.
    for t, k in zip(*np.nonzero(runs * (curves.positive > 0)), strict=True):
        some = slice(int(ends[t, k] - runs[t, k]), int(ends[t, k]))
        if (before[some] == through[some]).all():
            continue
        # Replace the others by the expected envelope at each true positive.
        expected = expected_of_groups(before[some], through[some])
        true, positive = int(runs[t, k]), int(curves.positive[k])
        if rules.interpolation == "area":
            values[t, k] = math.fsum(expected.precision) / positive
            error[t, k] = expected.error * (true / positive)
            continue
        # Read it at the recall points: 0 if no true positive reaches the point.
        at = needed[k]
        points = np.where(at < true, expected.precision[np.minimum(at, true - 1)], 0.0)
        error[t, k] = expected.error * float((at < true).mean())
        if pointwise:
            values[t, :, k] = points
        else:
            values[t, k] = points.mean()
    return TiedExpectation(HeldValues(values), curves.with_undefined(error))


def expected_of_groups(before: IntArray, through: IntArray) -> Expected:
    """Return the expected envelope at each true detection of a class, [t].

    Each has the number of false ones before its group, and through its group.
    """
    new = (before[1:] != before[:-1]) | (through[1:] != through[:-1])
    starts = np.flatnonzero(np.concatenate([[True], new]))
    sizes = np.diff(starts, append=len(before))
    false = (through - before)[starts]
    if (sizes * false).sum() > MOST_EXACT:
        return _estimate(before, through, sizes)
    precision, later = np.empty(len(before)), NOTHING
    for start, true, more in zip(*(one[::-1].tolist() for one in (starts, sizes, false)), strict=True):
        group = slice(start, start + true)
        precision[group], later = exact_group(true, more, start, int(before[start]), later)
    return Expected(precision, 0.0)


def _estimate(before: IntArray, through: IntArray, sizes: IntArray) -> Expected:
    """Estimate the envelope from drawn orders; also return the standard error of its mean."""
    # List all detections, the true ones first, each with the number of its group.
    starts = np.cumsum(sizes) - sizes
    false = (through - before)[starts]
    count = len(before) + int(false.sum())
    pairs = int(np.clip(DRAWN // count, FEWEST_PAIRS, MOST_PAIRS))
    random = np.random.default_rng([len(before), int(through[-1]), len(sizes)])
    group = np.concatenate([np.repeat(np.arange(len(sizes)), some) for some in (sizes, false)])
    is_true = np.arange(count) < len(before)
    # False ones of a group without a true one come before the later groups.
    passed = np.repeat(before[starts] - (np.cumsum(false) - false), sizes)
    total, means = np.zeros(len(before)), np.empty(pairs)
    # Draw an order within the groups by random keys, and its reverse by the complements: together they have
    # less variance than two independent orders.
    for pair in range(pairs):
        keys = random.random(count)
        both = _envelope(group, keys, is_true, passed) + _envelope(group, 1 - keys, is_true, passed)
        total += both / 2
        means[pair] = both.mean() / 2
    return Expected(total / pairs, float(means.std(ddof=1) / math.sqrt(pairs)))


def _envelope(group: IntArray, keys: FloatArray, is_true: BoolArray, passed: IntArray) -> FloatArray:
    """Return the best precision from each true detection on, in the order of the keys within groups, [t]."""
    order = np.lexsort((keys, group))
    position = np.flatnonzero(is_true[order]) + 1
    precision = np.arange(1.0, len(position) + 1) / (position + passed)
    envelope: FloatArray = np.maximum.accumulate(precision[::-1])[::-1]
    return envelope
