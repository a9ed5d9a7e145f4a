"""Calibration: whether four in five detections of confidence 0.8 are correct.

Conventions
-----------
- Counted detections are binned by confidence. A bin's ``confidence`` is the mean score in it, its
  ``accuracy`` the share of true positives (precision), its ``gap`` accuracy minus confidence: negative is
  overconfident.
- The expected calibration error (ECE) is the mean absolute gap over detections; the maximum error (MCE)
  is the largest absolute gap of a bin. Empty bins are left out.
- For the localisation-aware error (LaECE) a detection's confidence should equal precision times the mean IoU
  of the true positives.
- Missed objects have no effect: calibration says nothing about recall. Detections of a class without ground
  truth are false positives. Bins are ``(low, high]``; the first includes 0.

References
----------
M. P. Naeini, G. Cooper and M. Hauskrecht, "Obtaining Well Calibrated Probabilities Using Bayesian Binning",
AAAI 2015. K. Oksuz, T. Joy and P. Dokania, "Towards Building Self-Aware Object Detectors via Reliable
Uncertainty Quantification and Calibration", CVPR 2023 (LaECE, whose mean is over classes).
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import numpy as np

from boxscore._utils import checks
from boxscore._utils.array_types import FloatArray
from boxscore.diagnostics._reading import area_index, threshold_index
from boxscore.diagnostics._result import (
    ClassResult,
    ClassResultWithMean,
    Counts,
    Floats,
    mean_over_classes,
    once_per_evaluation,
)
from boxscore.errors import InputError
from boxscore.evaluation import Evaluation
from boxscore.scoring.score_counts import counted_detections

if TYPE_CHECKING:
    pass

Binning = Literal["width", "count"]


class ReliabilityBins(NamedTuple):
    """The detections in each of B confidence bins; arrays [..., B], NaN in empty bins."""

    detections: Counts
    confidence: Floats
    """Mean score."""
    accuracy: Floats
    """Share of true positives."""
    mean_iou: Floats
    """Of the true positives."""
    gap: Floats
    """Accuracy - confidence."""
    localisation_gap: Floats
    """Accuracy * mean IoU - confidence."""


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Reliability(ClassResult):
    """Confidence against accuracy, bin by bin.

    Attributes
    ----------
    classes : list of str, [K]
    per_class : ReliabilityBins, [K, B]
    total : ReliabilityBins, [B]
    low, high : ndarray of float64, [B]
        Ends of the bins.
    """

    per_class: ReliabilityBins
    total: ReliabilityBins
    low: FloatArray
    high: FloatArray

    def second_axis(self) -> dict[str, Any]:
        """Name the bins."""
        return {"bin": range(len(self.low)), "low": self.low, "high": self.high}


class CalibrationErrors(NamedTuple):
    """Errors over all bins; arrays of one shape, NaN without detections."""

    detections: Counts
    expected_error: Floats
    """ECE."""
    maximum_error: Floats
    """MCE."""
    localisation_expected_error: Floats
    """LaECE."""
    confidence: Floats
    """Mean score."""
    accuracy: Floats
    """Share of true positives."""


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Calibration(ClassResultWithMean):
    """Calibration errors per class, over all detections, and the mean over classes.

    Attributes
    ----------
    classes : list of str, [K]
    per_class : CalibrationErrors, [K]
    total : CalibrationErrors, scalars
        All detections together.
    mean : CalibrationErrors, scalars
        Mean over classes, as LaECE's authors report it; ``detections`` counts all.
    """

    per_class: CalibrationErrors
    total: CalibrationErrors
    mean: CalibrationErrors


@once_per_evaluation
def reliability(
    evaluation: Evaluation,
    *,
    iou_threshold: float | None = None,
    area: str = "all",
    bins: int = 10,
    binning: Binning = "width",
    score_threshold: float = 0.0,
) -> Reliability:
    """Confidence against accuracy, bin by bin.

    Parameters
    ----------
    evaluation, iou_threshold, area, bins, binning, score_threshold
        As in :func:`calibration_error`.

    Returns
    -------
    Reliability

    Raises
    ------
    InputError
        As in :func:`calibration_error`.
    """
    checks.whole_number(bins, 1, name="bins", high=checks.MOST_BINS)
    checks.one_of(binning, get_args(Binning), name="binning")
    evaluation.require_overlaps("calibration")
    checks.number_between(score_threshold, 0, 1, name="score_threshold")
    counted = counted_detections(
        evaluation.matched, threshold_index(evaluation, iou_threshold), area_index(evaluation, area)
    )
    rows = np.flatnonzero(counted.score >= score_threshold)
    score, true = counted.score[rows], counted.true[rows]
    outside = np.flatnonzero((score < 0) | (score > 1))
    if len(outside):
        raise InputError(
            "scores",
            "lie in [0, 1] for calibration",
            got=float(score[outside[0]]),
            cause="logits, or percentages?",
        )
    edges = np.linspace(0, 1, bins + 1)
    if binning == "count" and len(score):
        edges = np.quantile(score, edges)
    K = len(evaluation.labels)
    inner = np.searchsorted(edges[1:-1], score, side="left")
    class_bin = counted.category[rows].astype(np.int64) * bins + inner
    sums: list[FloatArray] = [
        np.bincount(class_bin, weights=values, minlength=K * bins).reshape(K, bins).astype(np.float64)
        for values in (np.ones(len(rows)), true.astype(np.float64), score, np.nan_to_num(counted.iou[rows]))
    ]
    return Reliability(
        evaluation.labels,
        _bins(*sums),
        _bins(*(values.sum(axis=0) for values in sums)),
        edges[:-1],
        edges[1:],
    )


def _bins(count: FloatArray, true: FloatArray, score: FloatArray, iou: FloatArray) -> ReliabilityBins:
    """Divide sums over the detections of each bin: their means."""
    with np.errstate(invalid="ignore"):
        confidence, accuracy, overlap = score / count, true / count, iou / true
        expected = np.where(true > 0, accuracy * overlap, accuracy)
    return ReliabilityBins(
        count.astype(np.int64), confidence, accuracy, overlap, accuracy - confidence, expected - confidence
    )


@once_per_evaluation
def calibration_error(
    evaluation: Evaluation,
    *,
    iou_threshold: float | None = None,
    area: str = "all",
    bins: int = 10,
    binning: Binning = "width",
    score_threshold: float = 0.0,
) -> Calibration:
    """Calibration errors of each class and of all detections together.

    Parameters
    ----------
    evaluation : Evaluation
    iou_threshold : float, optional
        One of the protocol's IoU thresholds (default: the first).
    area : str, default "all"
        One of the protocol's area ranges.
    bins : int, default 10
        Number of bins of the score.
    binning : {"width", "count"}, default "width"
        Bins of equal width, or of equally many detections. Widths divide [0, 1]; detections of all classes
        are counted together.
    score_threshold : float, default 0
        Leave out detections that score below this.

    Returns
    -------
    Calibration
        NaN for a class without detections.

    Raises
    ------
    InputError
        When a score is not in [0, 1], or an option is out of range.
    """
    result = reliability(
        evaluation,
        bins=bins,
        binning=binning,
        score_threshold=score_threshold,
        iou_threshold=iou_threshold,
        area=area,
    )
    errors, total = _errors(result.per_class), _errors(result.total)
    mean = CalibrationErrors(total.detections, *(mean_over_classes(values) for values in errors[1:]))
    return Calibration(result.classes, errors, total, mean)


def _errors(bins: ReliabilityBins) -> CalibrationErrors:
    """Weight the bins, the last axis, by their detections."""
    count = bins.detections.astype(np.float64)
    total = count.sum(axis=-1)

    def weighted(values: FloatArray) -> FloatArray:
        sums = (count * np.nan_to_num(values)).sum(axis=-1)
        return np.where(total == 0, np.nan, sums / np.maximum(total, 1))

    gap = np.abs(bins.gap)
    return CalibrationErrors(
        bins.detections.sum(axis=-1),
        weighted(gap),
        np.where(total == 0, np.nan, np.nan_to_num(gap).max(axis=-1)),
        weighted(np.abs(bins.localisation_gap)),
        weighted(bins.confidence),
        weighted(bins.accuracy),
    )
