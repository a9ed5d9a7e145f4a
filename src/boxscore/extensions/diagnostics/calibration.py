"""Compute calibration: compare the confidence of detections with their precision, per bin and in total.

Conventions
-----------
- Counted detections are binned by confidence. For each bin, ``confidence`` is the mean score, ``accuracy``
  the fraction of true positives (precision), and ``gap`` accuracy minus confidence. A negative gap means
  overconfidence.
- The expected calibration error (ECE) is the mean absolute gap over detections; the maximum error (MCE) is
  the largest absolute gap of a bin. Empty bins are left out.
- Sampling noise alone makes the ECE of calibrated scores larger than 0, by .1 or more for few detections. The
  *debiased* error corrects for this: it is 0 on average for calibrated scores, so it can be negative; for
  other scores it tends to be too small rather than too large
  (:mod:`boxscore.extensions.diagnostics._residuals`). MCE and LaECE have the same bias and are not corrected.
- The interval is for the true error in the same bins: from the low end of the debiased error to the high end
  of the plain one. It starts at 0 if the scores may be calibrated. Intervals are NaN for a class with
  detections in fewer than 5 images, and over all classes in fewer than 10.
- For the localization-aware error (LaECE), the confidence of a detection should equal precision times the
  mean IoU of the true positives.
- Missed objects do not count, because calibration does not measure recall. Detections of a class without
  ground truth are false positives. Bins are ``(low, high]``; the first includes 0.

References
----------
M. P. Naeini, G. Cooper and M. Hauskrecht, "Obtaining Well Calibrated Probabilities Using Bayesian Binning",
AAAI 2015. K. Oksuz, T. Joy and P. Dokania, "Towards Building Self-Aware Object Detectors via Reliable
Uncertainty Quantification and Calibration", CVPR 2023 (LaECE, whose mean is over classes).
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from typing import Any, NamedTuple, get_args

import numpy as np

from boxscore._utils import checks
from boxscore._utils.array_types import FloatArray, IntArray
from boxscore._utils.exact_sums import rounded
from boxscore._utils.progress import stage
from boxscore.evaluation import Evaluation
from boxscore.extensions.diagnostics._reading import area_index, threshold_index
from boxscore.extensions.diagnostics._residuals import BinnedResiduals, Errors
from boxscore.extensions.diagnostics._result import (
    ClassResult,
    ClassResultWithMean,
    Counts,
    Floats,
    mean_over_classes,
    once_per_evaluation,
)
from boxscore.extensions.diagnostics._score_bins import (
    Binning,
    CellSums,
    check_probabilities,
    ends_of_bins,
    scored_rows,
    sums_of_cells,
)
from boxscore.extensions.diagnostics._units import Group, enough_units, units_of_images, warn_of_frames
from boxscore.extensions.large.questions import Pieces, source_of
from boxscore.extensions.weights.resampling import (
    MOST_RESAMPLES,
    Draws,
    Method,
    Units,
    check_intervals,
    interval,
    spread,
    unit_count,
)

METHOD: Method = "expanded_percentile"

BESIDE = ("debiased_error", "low", "high")
"""Columns whose mean over classes is resampled directly."""


class ReliabilityBins(NamedTuple):
    """The detections in each of B confidence bins; arrays [..., B], NaN in empty bins."""

    detections: Counts
    confidence: Floats
    """Mean score."""
    accuracy: Floats
    """Fraction of true positives."""
    mean_iou: Floats
    """Mean IoU of the true positives."""
    gap: Floats
    """Accuracy - confidence."""
    localization_gap: Floats
    """Accuracy * mean IoU - confidence."""


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Reliability(ClassResult):
    """Confidence against accuracy in each bin.

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
    """Calibration errors over all bins; arrays of one shape, NaN without detections."""

    detections: Counts
    expected_error: Floats
    """ECE."""
    debiased_error: Floats
    """ECE corrected for sampling noise; negative if the gaps are smaller than expected from noise."""
    low: Floats
    high: Floats
    """Upper end of the interval of the ECE; NaN for too few images. The lower end is ``low``."""
    maximum_error: Floats
    """MCE."""
    localization_expected_error: Floats
    """LaECE."""
    confidence: Floats
    """Mean score."""
    accuracy: Floats
    """Fraction of true positives."""


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
    """Compare confidence with accuracy in each score bin.

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
    with _binned(evaluation, iou_threshold, area, bins, binning, score_threshold) as (_, ends, sums):
        return _reliability(evaluation.labels, ends, sums)


@contextlib.contextmanager
def _binned(
    evaluation: Evaluation,
    iou_threshold: float | None,
    area: str,
    bins: int,
    binning: Binning,
    score_threshold: float,
) -> Iterator[tuple[Pieces, FloatArray, CellSums]]:
    """Select the detections of all partitions, and add them up by class and bin."""
    evaluation._require_scores()
    checks.whole_number(bins, 1, name="bins", high=checks.MOST_BINS)
    checks.one_of(binning, get_args(Binning), name="binning")
    checks.number_between(score_threshold, 0, 1, name="score_threshold")
    options = {
        "threshold": threshold_index(evaluation, iou_threshold),
        "area": area_index(evaluation, area),
        "score_threshold": score_threshold,
    }
    with source_of(evaluation).pieces("calibration", scored_rows, options) as rows:
        check_probabilities(rows)
        ends = ends_of_bins(rows, bins, binning)
        yield rows, ends, sums_of_cells(rows, ends)


def _reliability(classes: list[str], ends: FloatArray, sums: CellSums) -> Reliability:
    """Build the result from the sums of each bin of each class."""
    shape = len(classes), len(ends) - 1

    def laid_out(values: IntArray) -> IntArray:
        every = np.zeros((*values.shape[:-1], shape[0] * shape[1]), dtype=np.int64)
        every[..., sums.cell] = values
        return every.reshape(*values.shape[:-1], *shape)

    columns = [laid_out(values) for values in (sums.detections, sums.true, sums.score, sums.iou)]
    return Reliability(
        classes,
        _bins(*columns),
        _bins(*(values.sum(axis=-2) for values in columns)),
        ends[:-1],
        ends[1:],
    )


def _bins(count: IntArray, true: IntArray, score: IntArray, iou: IntArray) -> ReliabilityBins:
    """Divide the sums over each bin by its detections; the last two sums are exact digits."""
    with np.errstate(invalid="ignore"):
        confidence, accuracy, overlap = rounded(score) / count, true / count, rounded(iou) / true
        expected = np.where(true > 0, accuracy * overlap, accuracy)
    return ReliabilityBins(count, confidence, accuracy, overlap, accuracy - confidence, expected - confidence)


@once_per_evaluation
def calibration_error(
    evaluation: Evaluation,
    *,
    iou_threshold: float | None = None,
    area: str = "all",
    bins: int = 10,
    binning: Binning = "width",
    score_threshold: float = 0.0,
    resamples: int = 200,
    confidence: float = 0.95,
    seed: int = 0,
    group: Group = None,
) -> Calibration:
    """Compute the calibration errors of each class and of all detections together.

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
        Bins of equal width over [0, 1], or bins with equally many detections of all classes together.
    score_threshold : float, default 0
        Leave out detections that score below this.
    resamples : int, default 200
        Number of resamples for the intervals; 0: no intervals.
    confidence : float, default 0.95
        Confidence level of the intervals.
    seed : int, default 0
        Random seed.
    group : str or sequence, optional
        Images that are resampled together, such as the frames of a video: a column of the images, a regular
        expression whose first group is matched in their file names, or a label for each image in the order of
        their ids.

    Returns
    -------
    Calibration
        NaN for a class without detections.

    Raises
    ------
    InputError
        When a score is not in [0, 1], or an option is out of range.

    Examples
    --------
    Three of four detections with score 0.8 are true positives: sampling noise explains the gap of 0.05.

    >>> from boxscore import Detections, GroundTruth, evaluate
    >>> boxes = [[0, 0, 9, 9]] * 4
    >>> truth = GroundTruth.from_arrays([1, 2, 3], ["cat"] * 3, boxes[:3], images=[1, 2, 3, 4])
    >>> detections = Detections.from_arrays([1, 2, 3, 4], ["cat"] * 4, boxes, [0.8] * 4)
    >>> total = calibration_error(evaluate(truth, detections)).total
    >>> round(float(total.expected_error), 4), bool(total.debiased_error < 0)
    (0.05, True)
    """
    # Bin the detections; sums over bins use exact digits, so partitioning does not change them.
    checks.whole_number(resamples, 0, name="resamples", high=MOST_RESAMPLES)
    check_intervals(confidence, METHOD)
    with _binned(evaluation, iou_threshold, area, bins, binning, score_threshold) as (rows, bin_ends, sums):
        result, units = _reliability(evaluation.labels, bin_ends, sums), units_of_images(evaluation, group)
        # Compute residuals per unit, and from them the error over all images, with each unit counted once.
        images, K = evaluation._image_count, len(result.classes)
        residuals = BinnedResiduals.of(rows, bin_ends, sums, images, K, units, evaluation._class_weights)
        count = unit_count(images, units)
        value = residuals.errors([np.ones(count)])
        unknown = np.full(value.plain.shape[1], np.nan)
        ends = unknown, unknown
        # Draw units and compute the same errors for each draw, then the intervals.
        if resamples:
            stage("intervals over resampled images")
            warn_of_frames(evaluation, group)
            draws = residuals.errors(Draws.of_seed(count, resamples, seed))
            ends = _ends(residuals, value, draws, confidence, units, seed)
    # Columns are the classes, all detections together (K) and the mean over classes (K + 1).
    beside = (value.debiased[0], *ends)
    errors = _errors(result.per_class, *(values[:K] for values in beside))
    total = _errors(result.total, *(values[K] for values in beside))
    means = dict(zip(BESIDE, (values[K + 1] for values in beside), strict=True))
    for name in CalibrationErrors._fields[1:]:
        means.setdefault(name, mean_over_classes(getattr(errors, name), evaluation._class_weights))
    return Calibration(result.classes, errors, total, CalibrationErrors(total.detections, **means))


def _ends(
    residuals: BinnedResiduals,
    value: Errors,
    draws: Errors,
    confidence: float,
    units: Units | None,
    seed: int,
) -> tuple[FloatArray, FloatArray]:
    """Return low ends of the debiased error, high ends of the plain one, [K + 2]; NaN for too few images."""
    # The last entry, the mean over classes, covers as many units as all classes together.
    counts, enough = (
        np.append(values, values[-1]) for values in (residuals.units, enough_units(residuals.units, units))
    )
    # Draw one normal number per draw from the seed. It widens draws that vary less than the standard errors.
    noise, least = np.random.default_rng(seed).standard_normal(len(draws.plain)), residuals.spread()

    def around(of_draws: FloatArray, of_all: FloatArray) -> FloatArray:
        """Shift draws so that their mean is the value, which removes the bias of resampling.

        Add missing noise.
        """
        defined = np.isfinite(of_draws)
        mean = np.where(defined, of_draws, 0.0).sum(axis=0) / np.maximum(defined.sum(axis=0), 1)
        lacking = np.sqrt(np.maximum(least**2 - np.nan_to_num(spread(of_draws)) ** 2, 0))
        shifted: FloatArray = of_draws - mean + of_all + lacking * noise[:, None]
        return shifted

    # Take the low end from the debiased error and the high end from the plain one, each around its own value.
    (low, _), (_, high) = (
        interval(around(of_draws, of_all[0]), of_all[0], confidence, METHOD, counts)
        for of_draws, of_all in ((draws.debiased, value.debiased), (draws.plain, value.plain))
    )
    return np.where(enough, np.maximum(low, 0), np.nan), np.where(enough, np.minimum(high, 1), np.nan)


def _errors(
    bins: ReliabilityBins, debiased: FloatArray, low: FloatArray, high: FloatArray
) -> CalibrationErrors:
    """Average over the bins, the last axis, weighted by their detections."""
    # Weight each bin by its detections; empty bins get gap 0 and weight 0.
    count = bins.detections.astype(np.float64)
    total = count.sum(axis=-1)

    def weighted(values: FloatArray) -> FloatArray:
        sums = (count * np.nan_to_num(values)).sum(axis=-1)
        return np.where(total == 0, np.nan, sums / np.maximum(total, 1))

    # Means over bins share the weights; the maximum is over the bins alone.
    gap = np.abs(bins.gap)
    return CalibrationErrors(
        bins.detections.sum(axis=-1),
        weighted(gap),
        debiased,
        low,
        high,
        np.where(total == 0, np.nan, np.nan_to_num(gap).max(axis=-1)),
        weighted(np.abs(bins.localization_gap)),
        weighted(bins.confidence),
        weighted(bins.accuracy),
    )
