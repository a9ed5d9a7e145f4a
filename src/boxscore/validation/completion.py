"""What AP could be at most if the detections that a file lacks at low scores were in it.

Goal
----
A file that ends at a score says nothing of what lies below. AP as it is is then the least that it can be, and
this is the most.

Conventions
-----------
- Detections that score lower than all others change no match of these. At best they find every missed object
  and nothing else: precision then rises up to recall 1, to ``P / (P + FP)`` with ``P`` objects and the
  ``FP`` false positives that the file has. The envelope is nowhere below that.
- An AP that takes straight lines between its points is left alone: a line may be lower with more points.
  So is one of groups whose weight is neither 0 nor 1: its true positives are no whole numbers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from boxscore.evaluation import Evaluation
from boxscore.protocols.protocol import SummaryRow
from boxscore.scoring.areas import area_under_steps
from boxscore.scoring.blocks import MOST_CELLS, mean_of_defined
from boxscore.scoring.curves import Curves

__all__ = ["most_with_lower_scores", "recall_reached"]


def most_with_lower_scores(evaluation: Evaluation) -> float | None:
    """Return the most that the first summary metric could be; None where it is no AP, weighted or large."""
    row = _first_ap(evaluation)
    if row is None or evaluation.protocol.ap.interpolation not in ("points", "area"):
        return None
    curves, thresholds = _curves_and_thresholds(evaluation, row)
    if curves.recall.size * curves.point_count > MOST_CELLS or curves.counts.weights_up_to is not None:
        return None
    hits, positive = curves.counts.hits, curves.positive
    false = curves.totals.counted - hits
    least = np.divide(positive, positive + false, out=np.zeros(hits.shape), where=positive > 0)  # [T,K]
    if curves.rules.interpolation == "points":
        most = np.maximum(curves.interpolated, least[:, None]).mean(axis=1)
    else:
        most = _areas(curves, least)
    return mean_of_defined(most[thresholds])


def _areas(curves: Curves, least: NDArray[np.float64]) -> NDArray[np.float64]:
    """Area under each envelope that is nowhere below ``least``, [T, K]."""
    hits, areas = curves.counts.hits, curves.average_precision.copy()
    ends = np.cumsum(hits).reshape(hits.shape)
    for t, k in np.argwhere(~np.isnan(areas) & (curves.positive > 0)).tolist():
        start, objects = ends[t, k] - hits[t, k], int(curves.positive[k])
        reached = curves.precision[start : start + min(hits[t, k], objects)]  # recall ends at 1
        envelope = np.full(objects, least[t, k])
        envelope[: len(reached)] = np.maximum(reached, least[t, k])
        areas[t, k] = area_under_steps(envelope, np.arange(1, len(envelope) + 1), len(envelope))
    return areas


def recall_reached(evaluation: Evaluation) -> tuple[float, str]:
    """Return the mean recall where the curves of the first AP end, and its IoU thresholds; NaN without AP."""
    row = _first_ap(evaluation)
    if row is None:
        return float("nan"), ""
    curves, thresholds = _curves_and_thresholds(evaluation, row)
    return mean_of_defined(curves.recall[thresholds]), evaluation.protocol.iou_text(row)


def _first_ap(evaluation: Evaluation) -> SummaryRow | None:
    rows = evaluation.protocol.rows
    return rows[0] if rows and rows[0].metric == "AP" else None


def _curves_and_thresholds(evaluation: Evaluation, row: SummaryRow) -> tuple[Curves, list[int]]:
    protocol = evaluation.protocol
    every = list(range(len(protocol.matching.iou_thresholds)))
    chosen = every if row.iou is None else [protocol.matching.iou_thresholds.index(row.iou)]
    return evaluation.curves_of(*protocol.position_of(row)), chosen
