"""Compute the area under one curve, by the rules other than the mean at recall points.

Conventions
-----------
A curve is given by its true positives in class order: for each, the number of counted detections up to and
including it. Precision only falls between two true positives, so nothing else is needed.

References
----------
The PASCAL VOC devkit, ``VOCap.m`` (area); ultralytics, ``compute_ap`` in ``utils/metrics.py`` up to and from
April 2026 (straight lines).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import FloatArray
from boxscore.protocols.tables.ap import ApRules


def curve_area(
    counted: NDArray[np.integer[Any]],
    positive: float,
    rules: ApRules,
    *,
    weights: FloatArray | None = None,
    total: int = 0,
) -> float:
    """Return the area under one curve by the protocol's rule; only straight lines need ``total``.

    ``weights`` are the cumulative weights of the true positives; 1, 2, ... without weights.
    """
    # Compute precision at each true positive, [n]: the same division of the same whole numbers as in the
    # reference tools, so the same bits. Weights apply to true positives only; a false positive counts 1.
    nth, epsilon = np.arange(1, len(counted) + 1), rules.precision_epsilon
    if weights is None:
        precision = nth / (counted + epsilon)
    else:
        precision = weights / (weights + (counted - nth) + epsilon)
    # Rules of steps only need the true positives.
    if rules.interpolation == "area":
        return area_under_steps(precision, nth if weights is None else weights, positive)
    if rules.interpolation == "every_point":
        return _area_between_points(precision, counted, positive, epsilon)
    # Rules with straight lines also need the false positives after the last true one, hence ``total``.
    if total == 0:
        return 0.0
    if rules.interpolation == "lines_as_they_are":
        return _mean_between_points(precision, counted, total, positive, rules)
    return _area_under_lines(
        np.maximum.accumulate(precision[::-1])[::-1],
        counted,
        total,
        positive,
        np.array(rules.recall_points),
        line_to_one=rules.interpolation == "trapezoid_to_one",
        epsilon=epsilon,
    )


def area_under_steps(precision: FloatArray, true_positives: NDArray[Any], positive: float) -> float:
    """Sum envelope times recall step over the true positives, then the step to recall 1 at precision 0."""
    envelope = np.maximum.accumulate(precision[::-1])[::-1]
    reached = np.append(0.0, true_positives) / positive
    steps = np.diff(reached) * envelope
    return float(np.sum(steps if reached[-1] == 1 else np.append(steps, 0.0)))


def area_at_scores(true_positives: NDArray[np.int64], counted: NDArray[Any], positive: float) -> float:
    """Compute the area under the envelope of the points at score thresholds, from the highest; [S] each.

    If nothing is counted, precision is undefined and recall 0: such points add no area.
    """
    precision = np.divide(true_positives, counted, out=np.zeros(len(counted)), where=counted > 0)
    # Close the curve at recall 0 and 1, make precision fall from left to right, and add up the steps that
    # have a width.
    recall = np.concatenate([[0.0], true_positives / positive, [1.0]])
    envelope = np.maximum.accumulate(np.append(precision, 0.0)[::-1])[::-1]
    steps = np.flatnonzero(recall[1:] != recall[:-1])
    return float(np.sum((recall[steps + 1] - recall[steps]) * envelope[steps]))


def area_through_points(
    true_positives: NDArray[np.int64], counted: NDArray[np.int64], positive: float, epsilon: float
) -> float:
    """Add trapezoids under straight lines from (0, 1) through points from the highest score on, [S] each.

    A score without further counted detections adds no point. The order of the sum is cityscapesScripts': the
    precision of each point times half of the difference between the recalls of its neighbors.
    """
    some = np.flatnonzero(np.diff(counted, prepend=0))[::-1]
    precision = np.append(true_positives[some] / (counted[some] + epsilon), 1.0)
    recall = np.append(true_positives[some] / positive, 0.0)
    widths = np.convolve(np.concatenate([recall[:1], recall, [0.0]]), [-0.5, 0, 0.5], "valid")
    return _sum_in_lanes(precision * widths)


def _sum_in_lanes(values: FloatArray) -> float:
    """Add up in eight cumulative sums, as OpenBLAS's ``ddot`` does with SSE2, on every machine.

    Two values at a time are added to four pairs of sums in turn; the remainder of eight goes to the first
    pairs.
    """
    whole = len(values) - len(values) % 8
    sums = np.cumsum(np.concatenate([np.zeros((1, 4, 2)), values[:whole].reshape(-1, 4, 2)]), axis=0)[-1]
    rest = np.append(values[whole:], np.zeros(whole + 8 - len(values)))
    if len(values) - whole >= 4:
        sums[:2] += rest[:4].reshape(2, 2)
        rest = rest[4:]
    sums[0] += rest[:2]
    sums[0] += rest[2:4]
    low, high = (sums[0] + sums[1]) + (sums[2] + sums[3])
    return float(low + high)


def _area_between_points(
    precision: FloatArray, counted: NDArray[Any], positive: float, epsilon: float
) -> float:
    """Add trapezoids between the points of successive detections, one by one; nothing before the first.

    Recall rises only at true positives. The point before one has one true positive and one detection less.
    """
    nth = np.arange(1, len(precision) + 1)
    later = counted > 1
    before = (nth[later] - 1) / (counted[later] - 1 + epsilon)
    steps = nth[later] / positive - (nth[later] - 1) / positive
    areas = np.cumsum(steps * ((before + precision[later]) / 2))
    return float(areas[-1]) if len(areas) else 0.0


def _area_under_lines(
    envelope: FloatArray,
    counted: NDArray[Any],
    total: int,
    positive: float,
    points: FloatArray,
    *,
    line_to_one: bool,
    epsilon: float,
) -> float:
    """Add up trapezoids over straight lines between the points of the envelope, at the recall points.

    The curve starts at (0, 1). A false positive before a true positive leaves a point at the recall
    reached before, which makes a step of the sloping line between two true positives.
    """
    # A true positive is one point of the curve, or two if false positives come directly before it: ``repeat``
    # [n]. The first of the two is at the recall reached before.
    reached = np.arange(len(envelope) + 1) / positive
    after_false = np.diff(counted, prepend=0) > 1
    repeat = 1 + after_false
    last = np.cumsum(repeat) - 1
    recall = np.repeat(reached[1:], repeat)
    recall[last[after_false] - 1] = reached[:-1][after_false]
    height = np.repeat(envelope, repeat)
    # Close the curve after the last true positive: a line down to (1, 0), or a drop to 0 at the recall
    # reached. False positives at the end add another point.
    tail_recall, tail_height = [1.0], [0.0]
    nth = len(envelope)  # of the last true positive
    if not line_to_one:
        tail_recall, tail_height = [reached[-1], 1.0], [0.0, 0.0]
    if total > (counted[-1] if nth else 0):  # false positives after the last true positive
        tail_recall, tail_height = [reached[-1], *tail_recall], [nth / (total + epsilon), *tail_height]
    # Start at (0, 1), read the lines at the recall points [R] and add up the trapezoids between them.
    x = np.concatenate([[0.0], recall, tail_recall])
    y = np.concatenate([[1.0], height, tail_height])
    read = np.interp(points, x, y)
    return float(np.sum((read[1:] + read[:-1]) / 2 * np.diff(points)))


def _mean_between_points(
    precision: FloatArray, counted: NDArray[Any], total: int, positive: float, rules: ApRules
) -> float:
    """Average straight lines between the points of all detections over recall points, without an envelope.

    If several points have one recall, the line before ends at the first, and the line after begins at the
    last. Left of the first point its precision holds, right of the last one 0. Without a true positive it is
    0.
    """
    count = len(precision)
    if not count:
        return 0.0
    # A run of false positives lowers precision at one recall. Its first and last points are enough: the line
    # before ends at the first, and the line after begins at the last.
    nth = np.arange(1, count + 1)
    before_next = np.append(counted[1:] - 1, total)  # detections before the next true positive, or all
    repeat = 1 + (before_next > counted)
    last = np.cumsum(repeat) - 1
    recall, height = np.repeat(nth / positive, repeat), np.repeat(precision, repeat)
    height[last] = nth / (before_next + rules.precision_epsilon)
    if counted[0] > 1:  # false positives come first
        recall, height = np.append(0.0, recall), np.append(0.0, height)
    # Read the lines at the recall points (0 right of the last), and rescale the part above the thresholds.
    points = np.array(rules.recall_points)
    read = np.interp(points, recall, height, right=0.0)[points > rules.recall_above]
    read = np.maximum(read - rules.precision_above, 0.0)
    return float(np.mean(read)) / (1.0 - rules.precision_above)
