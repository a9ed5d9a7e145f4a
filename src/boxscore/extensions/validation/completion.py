"""Bound AP: from above, if low-score detections missing in a file were added; from below, by counts.

Goal
----
A file that stops at a score does not contain the detections below it. Then the AP of the file is a lower
bound, and this module computes the upper bound.

Conventions
-----------
- Detections that score lower than all others do not change existing matches. At best they match every missed
  object and nothing else: precision then rises until recall 1, to ``P / (P + FP)`` for ``P`` objects and the
  ``FP`` false positives of the file. The envelope is at least that everywhere.
- The bound is undefined for an AP that interpolates linearly, because more points may lower a line, and for
  groups with fractional weights, whose true positives are not whole numbers.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore.evaluation import Evaluation
from boxscore.protocols.protocol import Protocol
from boxscore.protocols.summary import SummaryRow
from boxscore.protocols.tables.ap import ApRules
from boxscore.scoring.blocks import MOST_VALUES, HeldValues, mean_of_defined
from boxscore.scoring.curves import Curves

BUT_POINTS = 0.98
"""Effect of recall points on an area under a curve: a hundredth, and rounding."""
TINY = 1e-9
"""Tolerance of counts, for rounding."""
COCO_AP, COCO_CURVES = SummaryRow("AP"), ApRules()
"""COCO's first metric, without its key, and its curves: the mean over all thresholds and objects."""


def most_with_lower_scores(evaluation: Evaluation) -> float | None:
    """Return the upper bound of the first summary metric; None if it is not an AP, weighted or too large."""
    row = _first_ap(evaluation)
    if row is None or evaluation.protocol.ap.interpolation not in ("points", "area"):
        return None
    curves, thresholds = _curves_and_thresholds(evaluation, row)
    if curves.recall.size * curves.point_count > MOST_VALUES or curves.counts.weights_up_to is not None:
        return None
    true, positive = curves.counts.true_positives, curves.positive
    false = curves.totals.counted - true
    least = np.divide(positive, positive + false, out=np.zeros(true.shape), where=positive > 0)  # [T,K]
    if curves.rules.interpolation == "points":
        most = np.maximum(curves.interpolated, least[:, None]).mean(axis=1)
    else:
        most = _areas(curves, least)
    return _mean(most[thresholds], evaluation)


def _areas(curves: Curves, least: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the area under each envelope that is at least ``least`` everywhere, [T, K]."""
    from boxscore.scoring.areas import area_under_steps

    true, areas = curves.counts.true_positives, curves.average_precision.copy()
    ends = np.cumsum(true).reshape(true.shape)
    for t, k in np.argwhere(~np.isnan(areas) & (curves.positive > 0)).tolist():
        start, objects = ends[t, k] - true[t, k], int(curves.positive[k])
        # Recall ends at 1.
        reached = curves.precision[start : start + min(true[t, k], objects)]
        envelope = np.full(objects, least[t, k])
        envelope[: len(reached)] = np.maximum(reached, least[t, k])
        areas[t, k] = area_under_steps(envelope, np.arange(1, len(envelope) + 1), len(envelope))
    return areas


def recall_reached(evaluation: Evaluation) -> tuple[float, str]:
    """Return the mean recall at the end of the curves of the first AP, and its IoU thresholds; or NaN."""
    row = _first_ap(evaluation)
    if row is None:
        return float("nan"), ""
    curves, thresholds = _curves_and_thresholds(evaluation, row)
    return _mean(curves.recall[thresholds], evaluation), evaluation.protocol.iou_text(row)


def _mean(values: NDArray[np.float64], evaluation: Evaluation) -> float:
    """Average over thresholds and classes, [T, K], as the summary does."""
    weights = evaluation._class_weights
    return mean_of_defined(values) if weights is None else HeldValues(values).weighted_mean(weights)


def _first_ap(evaluation: Evaluation) -> SummaryRow | None:
    rows = evaluation.protocol.rows
    return rows[0] if rows and rows[0].metric == "AP" else None


def _curves_and_thresholds(evaluation: Evaluation, row: SummaryRow) -> tuple[Curves, list[int]]:
    protocol = evaluation.protocol
    every = list(range(len(protocol.matching.iou_thresholds)))
    chosen = every if row.iou is None else [protocol.matching.iou_thresholds.index(row.iou)]
    return evaluation.curves_of(*protocol.position_of(row)), chosen


def reaches(evaluation: Evaluation, bound: float) -> bool:
    """Return whether counts prove that the first metric, a COCO AP, is at least a bound; else False.

    Consider as many of a class's best detections as it has objects. They reach a recall R and a precision P.
    Interpolated precision is at least P at every recall up to R, so AP is at least P R, apart from the recall
    points (a hundredth).
    """
    # The bound holds only for COCO's AP: other rules could rank or count differently.
    protocol, matched = evaluation.protocol, evaluation.matched
    if not _starts_with_coco_ap(protocol) or matched.extra or not len(matched):
        return False
    areas, most = protocol.ignore.area_ranges, protocol.caps[-1]
    if next(iter(areas), "") != "all":
        return False
    if most is not None and int(matched.rank.max()) >= most:
        return False
    # Take the best detections of each class, as many as it has objects: positions [first, end) in class
    # order.
    positive, starts = matched.positives(0), matched.class_starts
    first, end = starts[:-1], np.minimum(starts[:-1] + positive, starts[1:])
    defined = positive > 0
    share, reached = 1.0 / (np.maximum(positive, 1) * np.maximum(end - first, 1.0)), 0.0
    # Count true positives among them by bisection. Their square over both numbers is precision times recall,
    # a lower bound of AP.
    for threshold in range(matched.threshold_count):
        true = matched.pair_detection[matched.pairs_true(threshold, 0)]
        true = np.searchsorted(true, end) - np.searchsorted(true, first)
        reached += float((true.astype(float) ** 2 * share)[defined].sum()) / max(int(defined.sum()), 1)
        # Stop at the first threshold that proves the bound.
        if BUT_POINTS * reached / matched.threshold_count >= bound:
            return True
    return False


def _starts_with_coco_ap(protocol: Protocol) -> bool:
    """Return whether the first metric is COCO's mean of AP over all thresholds and objects."""
    row = next(iter(protocol.rows), None)
    if row is None or not _are_alike(row, COCO_AP, but="key"):
        return False
    return _are_alike(protocol.ap, COCO_CURVES, but="precision_epsilon") and (
        protocol.ap.precision_epsilon < TINY
    )


def _are_alike(one: Any, other: Any, *, but: str) -> bool:
    """Return whether two records are equal except for one field."""
    names = (field.name for field in dataclasses.fields(one) if field.name != but)
    return all(getattr(one, name) == getattr(other, name) for name in names)
