"""Compute confidence intervals of metrics over images, and the draws with which detectors are compared.

Goal
----
An interval of a metric says where the metric would be on very many images like these.

Conventions
-----------
- AP of few images is too high on average: the precision at a true positive counts that positive itself.
  Percentiles of bootstrap draws add to this bias. Intervals are therefore around an estimate without it
  (:mod:`boxscore.extensions.weights.held_out`), and their width comes from leaving out groups of images
  (:mod:`boxscore.extensions.weights.left_out`).
- Metrics whose intervals did not hold in simulations have none (NaN): :data:`KINDS_WITH_INTERVAL`.
- There is no interval for a class in fewer than 5 images, or over all classes if fewer than 20 images (30 for
  a metric of one area range) or 8 groups have objects.
- An interval also contains that of the images and half an image of the worst, or best, kind: few images may
  lack the rare ones in which a detector fails.
- If at most two images of a class have a true positive, the upper end is at least that of Clopper and Pearson
  for so many of its images, so that a class that was never found has no interval [0, 0].
- Images of one ``group`` (a video, a patient) are left out together. They are alike, and intervals that treat
  them as independent are too narrow.
- Comparisons of two detectors draw images with replacement instead: the bias is the same on both sides.
  Draws depend only on ``seed`` and the number of images, so two results on one data set get the same draws.

References
----------
T. C. Hesterberg, "What Teachers Should Know About the Bootstrap", The American Statistician 69, 2015
(expanded percentiles, for comparisons). B. Efron and R. J. Tibshirani, *An Introduction to the Bootstrap*,
1993, chapters 11, 13 and 14.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore._utils.array_types import FloatArray
from boxscore._utils.processes import Workers
from boxscore._utils.progress import stage
from boxscore._utils.text import counted
from boxscore._utils.user_warnings import warn_user
from boxscore.errors import InputError
from boxscore.evaluation import Evaluation
from boxscore.extensions.diagnostics._result import ClassResult, Counts, Floats, once_per_evaluation
from boxscore.extensions.diagnostics._units import (
    Group,
    enough_units,
    units_of_images,
    units_of_values,
    units_with_true_positives,
    warn_of_frames,
)
from boxscore.extensions.weights.left_out import (
    ends_with_half_a_unit,
    is_corrected,
    jackknife_intervals,
    left_out_metrics,
    spread_of,
    upper_end,
)
from boxscore.extensions.weights.resampling import (
    LEAST_GROUPS_OF_TOTAL,
    LEAST_UNITS_OF_AREA,
    LEAST_UNITS_OF_CLASS,
    LEAST_UNITS_OF_TOTAL,
    MOST_RESAMPLES,
    Draws,
    Method,
    Units,
    check_intervals,
    interval,
)
from boxscore.protocols.metric_names import metric_named
from boxscore.protocols.summary import FAMILIES, SummaryRow
from boxscore.scoring.summary import summary_table

MOST_CACHED_DRAWS = 1 << 22
"""Number of cached values, 32 MB."""

KINDS_WITH_INTERVAL = ("AP", "AR", *FAMILIES["boxscore.extensions.scoreless.ratios"].split()[:3])
"""Kinds of metrics whose intervals held in simulations; of AR only the one with all detections."""


class Intervals(NamedTuple):
    """Intervals of M summary metrics; arrays [..., M]."""

    value: Floats
    """The score."""
    estimate: Floats
    """The score without the bias of few images: where it would be on very many images."""
    low: Floats
    high: Floats
    standard_error: Floats
    """Standard error of the estimate."""
    groups: Counts
    """Groups of images that were left out in turn."""
    images: Counts
    """Images, or groups of images, that have an object of the metric."""


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class BootstrapIntervals(ClassResult):
    """Confidence intervals of summary metrics, per class and over all classes.

    Attributes
    ----------
    classes : list of str, [K]
    per_class : Intervals, [K, M]
    total : Intervals, [M]
    metrics : list of str, [M]
    note : str
        Which metrics have no interval, and why a score can be outside its interval; empty if neither applies.
    """

    per_class: Intervals
    total: Intervals
    metrics: list[str]
    note: str

    def second_axis(self) -> dict[str, list[str]]:
        """Name the metrics."""
        return {"metric": self.metrics}


@once_per_evaluation
def bootstrap_intervals(
    evaluation: Evaluation,
    *,
    resamples: int | None = None,
    confidence: float = 0.95,
    seed: int = 0,
    metrics: Sequence[str] | None = None,
    group: Group = None,
    progress: bool = False,
    workers: Workers = "auto",
) -> BootstrapIntervals:
    """Compute confidence intervals of every summary metric, over all classes and for each class.

    Parameters
    ----------
    evaluation : Evaluation
    resamples : int, optional
        No longer used: intervals leave out groups of images instead of drawing images.
    confidence : float, default 0.95
        Confidence level of the intervals.
    seed : int, default 0
        Random seed of the groups, if there are more than 50 images.
    metrics : sequence of str, optional
        Names of summary metrics; all by default.
    group : str or sequence, optional
        Images that belong together, such as the frames of a video: a column of the images, a regular
        expression whose first group is matched in their file names, or a label for each image in the order of
        their ids.
    progress : bool, default False
        Show a progress bar if stderr is a terminal.
    workers : int or "auto", default "auto"
        Processes that share the work if that is faster, as for :func:`boxscore.evaluate`. The result is the
        same.

    Returns
    -------
    BootstrapIntervals

    Raises
    ------
    InputError
        When an option is out of range.

    Examples
    --------
    >>> from boxscore import Detections, GroundTruth, evaluate
    >>> boxes = [[0, 0, 9, 9]] * 40
    >>> truth = GroundTruth.from_arrays(range(40), ["cat"] * 40, boxes)
    >>> detections = Detections.from_arrays(range(32), ["cat"] * 32, boxes[:32], [0.9] * 32)
    >>> result = bootstrap_intervals(evaluate(truth, detections), metrics=["AR100"]).total
    >>> [round(float(number[0]), 2) for number in (result.low, result.value, result.high)]
    [0.64, 0.8, 0.93]
    """
    # Check the options before the slow part.
    rows = chosen_rows(evaluation, metrics)
    check_intervals(confidence, "expanded_percentile")
    if resamples is not None:
        checks.whole_number(resamples, 1, name="resamples", high=MOST_RESAMPLES)
        warn_user(
            "resamples (--resamples) has no effect: intervals no longer draw images, but leave out groups of "
            "them. Leave the option out."
        )
    warn_of_frames(evaluation, group)
    units = units_of_images(evaluation, group)
    every = intervals_of(
        evaluation, rows, confidence=confidence, seed=seed, units=units, progress=progress, workers=workers
    )
    total = Intervals(*(column[:, -1] for column in every))
    return BootstrapIntervals(
        evaluation.labels,
        Intervals(*(column[:, :-1].T for column in every)),
        total,
        [row.key for row in rows],
        note_on_intervals(evaluation, rows, total, units),
    )


def intervals_of(
    evaluation: Evaluation,
    rows: Sequence[SummaryRow],
    *,
    confidence: float,
    seed: int,
    units: Units | None,
    progress: bool = False,
    workers: Workers = "auto",
) -> Intervals:
    """Compute the intervals of summary rows for K classes and, last, over all of them; [rows, K + 1]."""
    if not rows:
        raise _no_metric(evaluation)
    stage("intervals over images")
    made = left_out_metrics(evaluation, rows, seed=seed, units=units, progress=progress, workers=workers)
    counts = units_of_values(evaluation, rows, units)
    spread = spread_of(made.estimate, counts, made.value[0])
    low, high = jackknife_intervals(spread, confidence)
    # Few images may by chance lack those in which the detector fails, or succeeds.
    wide_low, wide_high = ends_with_half_a_unit(spread, counts, confidence)
    low, high = np.minimum(low, wide_low), np.maximum(high, wide_high)
    # A class of which hardly any image has a true positive varies too little to show its uncertainty.
    found = units_with_true_positives(evaluation, rows, units)
    for r, k in np.argwhere((found <= FEW_FOUND) & (counts > 1)).tolist():
        end = upper_end(int(found[r, k]), int(counts[r, k]), confidence)
        high[r, k] = max(high[r, k], end)
    for r, k in np.argwhere((spread.estimate >= 1) & (counts > 1)).tolist():
        low[r, k] = min(low[r, k], 1 - upper_end(0, int(counts[r, k]), confidence))
    # There is none from too few images, or of a kind whose intervals do not hold.
    known = np.array([has_interval(evaluation, row) for row in rows])
    least = np.full(counts.shape, LEAST_UNITS_OF_CLASS)
    least[:, -1] = [least_units(evaluation, row, units) for row in rows]
    shown = (counts >= least) & known[:, None]
    return Intervals(
        made.value[0],
        np.where(known[:, None], made.estimate[0], np.nan),
        np.where(shown, low, np.nan),
        np.where(shown, high, np.nan),
        spread.standard_error,
        np.isfinite(made.estimate[1:]).sum(axis=0),
        counts,
    )


FEW_FOUND = 2
"""Maximum number of images with a true positive for which the upper end is that of a proportion."""


def has_interval(evaluation: Evaluation, row: SummaryRow) -> bool:
    """Return whether a metric is of a kind whose intervals held in simulations."""
    # Recall of the first detections of an image depends on how many objects the image has.
    protocol = evaluation.protocol
    is_cut = row.metric == "AR" and protocol.position_of(row)[1] != len(protocol.caps) - 1
    return row.metric in KINDS_WITH_INTERVAL and not row.harmonic_of and not is_cut


def least_units(evaluation: Evaluation, row: SummaryRow, units: Units | None) -> int:
    """Return how many units with objects the interval of a metric over all classes needs."""
    if units is not None:
        return LEAST_GROUPS_OF_TOTAL
    return LEAST_UNITS_OF_AREA if evaluation.protocol.position_of(row)[0] else LEAST_UNITS_OF_TOTAL


def note_on_intervals(
    evaluation: Evaluation, rows: Sequence[SummaryRow], total: Intervals, units: Units | None
) -> str:
    """Say why a score can be outside its interval, and which metrics have none; arrays are [..., M]."""
    has = np.isfinite(np.atleast_2d(total.low)).any(axis=0)
    parts = []
    if any(shown and is_corrected(row) for shown, row in zip(has, rows, strict=True)):
        above = np.greater(np.atleast_2d(total.value), np.atleast_2d(total.high)).any(axis=0).tolist()
        outside = [row.key for row, out in zip(rows, above, strict=True) if out]
        text = "AP of few images is too high on average; estimate is AP without this bias"
        verb = "is" if len(outside) == 1 else "are"
        parts.append(f"{text}, so {', '.join(outside)} {verb} above the interval." if outside else f"{text}.")
    if not evaluation._holds_matches:
        keys = [row.key for row in rows if is_corrected(row)]
        if keys:
            parts.append(
                f"No interval of {', '.join(keys)}: it needs all matches in memory, and there are over a "
                "million detections in partitions. Evaluate without --memory-limit."
            )
    # Name the metrics of too few images, by the number that they need.
    few: dict[int, list[str]] = {}
    known = [has_interval(evaluation, row) for row in rows]
    images = np.atleast_2d(total.images)[0]
    for row, is_known, count in zip(rows, known, images.tolist(), strict=True):
        least = least_units(evaluation, row, units)
        if is_known and 0 < count < least:
            few.setdefault(least, []).append(row.key)
    noun = "image" if units is None else "group"
    for least, keys in few.items():
        parts.append(f"No interval of {', '.join(keys)}: needs {counted(least, noun)} with objects.")
    unknown = [row.key for row, is_known in zip(rows, known, strict=True) if not is_known]
    if unknown:
        parts.append(f"No interval of {', '.join(unknown)}: none that was tried holds in simulations.")
    return " ".join(parts)


def _no_metric(evaluation: Evaluation) -> InputError:
    return InputError(
        f"the summary of {evaluation.protocol.name}",
        "have a metric",
        got="none",
        cause="the field summary of the protocol is empty",
    )


def whole_metrics(evaluation: Evaluation, rows: Sequence[SummaryRow]) -> FloatArray:
    """Compute the metrics of all images, [rows, K + 1]."""
    if not rows:
        raise _no_metric(evaluation)
    return summary_table(rows, evaluation.protocol, evaluation.curves_of)


def resampled_metrics(
    evaluation: Evaluation,
    rows: Sequence[SummaryRow],
    *,
    resamples: int,
    seed: int,
    units: Units | None,
    progress: bool = False,
    workers: Workers = "auto",
) -> tuple[FloatArray, FloatArray]:
    """Compute the metrics of all images, [rows, K + 1], and of each draw, [resamples, rows, K + 1].

    Unless they are very many, draws are cached for the evaluation: intervals and comparisons use the same
    draws.
    """
    if not rows:
        raise _no_metric(evaluation)

    def compute() -> tuple[FloatArray, FloatArray]:
        stage("intervals over resampled images")
        draws = Draws.of_seed(evaluation._image_count, resamples, seed, units)
        resampled = evaluation._weighted_metrics(rows, draws, progress=progress, workers=workers)
        return whole_metrics(evaluation, rows), resampled.values

    if resamples * len(rows) * (len(evaluation.labels) + 1) > MOST_CACHED_DRAWS:
        return compute()
    of_units = None if units is None else units.tobytes()
    key = ("draws of metrics", tuple(row.key for row in rows), resamples, seed, of_units)
    return evaluation._once(key, compute)


def intervals_that_hold(
    draws: FloatArray,
    value: FloatArray,
    confidence: float,
    method: Method,
    counts: NDArray[np.int64],
    units: Units | None,
) -> tuple[FloatArray, FloatArray]:
    """Return the ends of intervals, [..., K + 1]; NaN if too few units have an object."""
    low, high = interval(draws, value, confidence, method, counts)
    enough = enough_units(counts, units)
    return np.where(enough, low, np.nan), np.where(enough, high, np.nan)


def chosen_rows(evaluation: Evaluation, metrics: Sequence[str] | None) -> list[SummaryRow]:
    """Return the protocol's summary rows of these names; by default all but expectations over orders.

    An expectation is slow to compute for every set of weights, so it has an interval only on request.
    """
    rows = {row.key: row for row in evaluation.protocol.rows}
    quick = [key for key, row in rows.items() if row.metric != "AP_expected"]
    return [rows[metric_named(name, list(rows), option="metrics")] for name in metrics or quick]
