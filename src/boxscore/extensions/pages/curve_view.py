"""Reduce curves to few points for the page, without a visible change of shape.

Conventions
-----------
- A curve is thinned by the Douglas-Peucker algorithm with vertical distance: every dropped point is within
  :data:`TOLERANCE` of the thinned curve, less than a third of a pixel in the report.
- End points, jumps and the point where a curve falls to zero are always kept.
- Numbers are rounded after thinning; a hovered point is a point of the curve.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import FloatArray
from boxscore.evaluation import Evaluation
from boxscore.scoring.blocks import mean_of_lines
from boxscore.scoring.curves import Curves

TOLERANCE = 0.001
"""Maximum vertical distance between a thinned curve and the original."""

SCORE_TOLERANCE = 0.01
"""Maximum error of a score interpolated between points, relative to the curve's range of scores."""

MOST_CURVES = 2_500
"""Maximum number of curves (classes times IoU thresholds) in a report; with more, fewer thresholds are kept.
"""


def thin(x: FloatArray, y: FloatArray, *, tolerance: float = TOLERANCE) -> NDArray[np.intp]:
    """Choose the positions of a curve, ``x`` sorted, that keep it within a vertical distance; ascending."""
    # Douglas-Peucker: keep the point farthest from the chord, then process both sides.
    if len(x) <= 2:
        return np.arange(len(x))
    keep = np.zeros(len(x), dtype=bool)
    keep[[0, -1]] = True
    # Use a stack instead of recursion, because curves have up to millions of points.
    stack = [(0, len(x) - 1)]
    while stack:
        first, last = stack.pop()
        if last - first < 2:
            continue
        # Use vertical distances, because readers look up values at given recalls.
        inner = slice(first + 1, last)
        span = x[last] - x[first]
        slope = (y[last] - y[first]) / span if span else 0.0
        distance = np.abs(y[inner] - (y[first] + slope * (x[inner] - x[first])))
        worst = int(np.argmax(distance))
        # Keep a point that is too far off, and split the segment there.
        if distance[worst] > tolerance:
            middle = first + 1 + worst
            keep[middle] = True
            stack += [(first, middle), (middle, last)]
    return np.flatnonzero(keep)


def significant(values: Any, digits: int = 4) -> list[float | None]:
    """Round numbers to significant digits for JSON; NaN becomes None."""
    return [None if value != value else float(f"{value:.{digits}g}") for value in np.asarray(values).tolist()]


def curve_view(evaluation: Evaluation) -> dict[str, Any]:
    """Return precision-recall curves of every class with ground truth, at the kept IoU thresholds.

    A curve consists of three lists, ``[recall, precision, score]``: recall in thousandths, precision in
    ten-thousandths. ``mean`` and each of ``classes``, by class row, have one curve per threshold. Without
    scores all are empty.
    """
    if not evaluation.has_scores:
        return {"thresholds": [], "left_out": 0, "mean": [], "classes": {}}
    # Only classes with objects have curves.
    curves = _fine_curves(evaluation)
    thresholds = evaluation.protocol.matching.iou_thresholds
    T, recall = len(thresholds), np.linspace(0, 1, curves.point_count)
    defined = np.flatnonzero(curves.positive)
    weights = None if evaluation._class_weights is None else evaluation._class_weights[defined]
    # Keep few thresholds, so that the page stays small.
    keep = _thresholds_to_keep(T, len(defined))
    classes: dict[str, list[Any]] = {str(k): [] for k in defined.tolist()}
    mean = []
    for t in keep if len(defined) else []:
        precision, score = curves.at(t)  # [R,K]
        for k in defined.tolist():
            classes[str(k)].append(_one_curve(recall, precision[:, k], score[:, k]))
        values = mean_of_lines(np.ascontiguousarray(precision)[:, defined], weights)
        mean.append(_one_curve(recall, values, np.full(len(recall), np.nan)))
    return {
        "thresholds": [round(thresholds[t], 4) for t in keep],
        "left_out": T - len(keep),
        "mean": mean,
        "classes": classes,
    }


def _fine_curves(evaluation: Evaluation) -> Curves:
    """Compute curves at 101 recall points, independent of the protocol's points."""
    ap = evaluation.protocol.ap
    if len(ap.recall_points) < 101:
        points = tuple(np.linspace(0, 1, 101).tolist())
        return evaluation._curves_under(ap.replaced(interpolation="points", recall_points=points))
    return evaluation.curves_of()


def _thresholds_to_keep(T: int, classes: int) -> list[int]:
    if T * classes <= MOST_CURVES:
        return list(range(T))
    count = max(1, min(T, MOST_CURVES // classes))
    chosen: list[int] = np.unique(np.linspace(0, T - 1, count).round().astype(int)).tolist()
    return chosen


def _one_curve(recall: FloatArray, precision: FloatArray, score: FloatArray) -> list[Any]:
    """Thin and round one curve; at its end it drops to zero."""
    positive = np.flatnonzero(precision > 0)
    if not len(positive):
        return [[0, 1000], [0, 0], [None, None]]
    end = int(positive[-1]) + 1
    points = thin(recall[:end], precision[:end])
    known = score[:end]
    # Readers look up the score on the curve too.
    if not np.isnan(known).any():
        span = float(known.max() / 2 - known.min() / 2) * 2 or 1.0
        points = np.union1d(points, thin(recall[:end], known / span, tolerance=SCORE_TOLERANCE))
    x = np.round(recall[points] * 1000).astype(int).tolist()
    y = np.round(precision[points] * 10_000).astype(int).tolist()
    s = significant(score[points])
    if end < len(recall):
        x, y, s = [*x, x[-1]], [*y, 0], [*s, None]
    return [x, y, s]
