"""Compute localization-recall-precision (LRP): one error for localization, false positives and misses.

Conventions
-----------
- At a confidence threshold, ``LRP = (sum over true positives of (1 - IoU) / (1 - t) + FP + FN) / (TP + FP +
  FN)`` with ``t`` the IoU threshold: 0 is perfect, 1 is worst. The optimal LRP is the minimum over all
  confidence thresholds, and its threshold is the recommended one.
- Components at that threshold: ``localization`` is the mean ``1 - IoU`` of the true positives,
  ``false_positive`` is 1 - precision, ``false_negative`` is 1 - recall.
- The mean over classes leaves out classes without ground truth, and undefined components.
- A class with ground truth but no detections has LRP 1. LRPs at different IoU thresholds are not comparable.

References
----------
K. Oksuz et al., "Localization Recall Precision (LRP): A New Performance Metric for Object Detection", ECCV
2018.
K. Oksuz et al., "One Metric to Measure Them All: Localization Recall Precision (LRP)", TPAMI 2021.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, NamedTuple

import numpy as np

from boxscore._utils import checks
from boxscore.errors import InputError
from boxscore.evaluation import Evaluation
from boxscore.extensions.diagnostics._reading import area_index, threshold_index
from boxscore.extensions.diagnostics._result import (
    ClassResult,
    Counts,
    Floats,
    mean_over_classes,
    once_per_evaluation,
)
from boxscore.extensions.large.questions import source_of
from boxscore.scoring.score_counts import ScoreCounts

MEANS = ("lrp", "localization", "false_positive", "false_negative")
COUNTS = ("true_positives", "false_positives", "false_negatives")


class LrpParts(NamedTuple):
    """LRP and its components at a confidence threshold; arrays of one shape, float64 and int64."""

    score: Floats
    """The threshold."""
    lrp: Floats
    localization: Floats
    false_positive: Floats
    false_negative: Floats
    true_positives: Counts
    false_positives: Counts
    false_negatives: Counts


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class LocalizationRecallPrecision(ClassResult):
    """LRP of each class, and the mean over classes.

    Attributes
    ----------
    classes : list of str, [K]
    per_class : LrpParts, [K]
        NaN for a class without ground truth.
    total : LrpParts, scalars
        Means over classes; counts are sums, and the score is NaN.
    """

    per_class: LrpParts
    total: LrpParts


@once_per_evaluation
def localization_recall_precision(
    evaluation: Evaluation,
    *,
    iou_threshold: float | None = None,
    area: str = "all",
    at_score: float | None = None,
) -> LocalizationRecallPrecision:
    """Compute the optimal LRP of each class, or LRP at a given confidence.

    Parameters
    ----------
    evaluation : Evaluation
    iou_threshold : float, optional
        One of the protocol's IoU thresholds (default: the first). It must be below 1.
    area : str, default "all"
        One of the protocol's area ranges.
    at_score : float, optional
        Use this score threshold for every class instead of the best one per class.

    Returns
    -------
    LocalizationRecallPrecision

    Raises
    ------
    InputError
        When the protocol does not have the threshold or the range.

    Examples
    --------
    >>> from boxscore import Detections, GroundTruth, evaluate
    >>> truth = GroundTruth.from_arrays([1, 1], ["cat", "cat"], [[0, 0, 10, 10], [50, 50, 60, 60]])
    >>> detections = Detections.from_arrays([1], ["cat"], [[0, 0, 10, 8]], [0.9])  # IoU .8
    >>> result = localization_recall_precision(evaluate(truth, detections))
    >>> round(float(result.total.lrp), 6)  # (.2 / .5 + 0 + 1) / 2
    0.7
    """
    source_of(evaluation).require("LRP")
    # Check the options; LRP divides by 1 - threshold.
    t = threshold_index(evaluation, iou_threshold)
    threshold = evaluation.protocol.matching.iou_thresholds[t]
    if threshold >= 1:
        raise InputError("iou_threshold", "be below 1 for LRP", got=f"{threshold:g}")
    if at_score is not None:
        checks.number_between(at_score, -np.inf, np.inf, name="at_score")
    # Count at distinct scores, with exact sums of 1 - IoU.
    keep = functools.partial(_keep_point, threshold=threshold, at_score=at_score)
    counts = evaluation._score_counts(t, area_index(evaluation, area), keep, overlaps=True)
    # Read each class at its best point, and average over classes.
    rows = [_parts(counts, k, threshold, at_score) for k in range(len(evaluation.labels))]
    columns = zip(*rows, strict=True) if rows else [()] * len(LrpParts._fields)
    kinds: list[Any] = [*[np.float64] * 5, counts.true.dtype, np.int64, counts.true.dtype]
    parts = LrpParts(*(np.array(column, dtype=kind) for column, kind in zip(columns, kinds, strict=True)))
    total = parts._replace(
        score=np.float64(np.nan),
        **{name: mean_over_classes(getattr(parts, name), evaluation._class_weights) for name in MEANS},
        **{name: getattr(parts, name).sum() for name in COUNTS},
    )
    return LocalizationRecallPrecision(evaluation.labels, parts, total)


def _keep_point(counts: ScoreCounts, *, threshold: float, at_score: float | None) -> list[int]:
    """Keep the point of a curve, or of a chunk of it, that is read."""
    if at_score is not None:
        last = int(np.searchsorted(-counts.score, -at_score, side="right")) - 1
        return [last] if last >= 0 else []
    if not len(counts.score) or not counts.positive[0]:
        return []
    columns = counts.true, counts.false, counts.distance
    return [int(np.argmin(_lrp(*columns, counts.positive[0], threshold)))]


def _lrp(true: Any, false: Any, distance: Any, positive: Any, threshold: float) -> Any:
    """Return the LRP at each threshold; NaN without ground truth and detections."""
    missed = positive - true
    with np.errstate(invalid="ignore", divide="ignore"):
        return (distance / (1 - threshold) + false + missed) / (true + false + missed)


def _parts(counts: ScoreCounts, k: int, threshold: float, at_score: float | None) -> LrpParts:
    """Compute the LRP of one class at its best threshold, or at the given one; scalars."""
    part, positive = counts.part(k), counts.positive[k]
    # The first entry is for zero detections. A threshold keeps all detections of a score or none.
    score, true, false, distance = (
        np.append(first, column[part])
        for first, column in (
            (np.nan, counts.score),
            (0, counts.true),
            (0, counts.false),
            (0.0, counts.distance),
        )
    )
    # Compute LRP at every score. The first minimum is the highest threshold, possibly that without
    # detections.
    missed, lrp = positive - true, _lrp(true, false, distance, positive, threshold)
    with np.errstate(invalid="ignore", divide="ignore"):
        if at_score is not None:
            best = int(np.searchsorted(-score[1:], -at_score, side="right"))
        else:
            best = int(np.argmin(lrp)) if positive else 0
        # Divide the sums at that point; NaN where the denominator is 0.
        detections = true[best] + false[best]
        defined = positive > 0
        return LrpParts(
            (score[best] if at_score is None else at_score) if defined else np.nan,
            lrp[best] if defined else np.nan,
            distance[best] / true[best] if true[best] else np.nan,
            false[best] / detections if detections and defined else np.nan,
            missed[best] / positive if defined else np.nan,
            true[best],
            false[best],
            missed[best],
        )
