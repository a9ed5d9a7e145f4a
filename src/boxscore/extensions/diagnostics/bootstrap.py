"""Compute bootstrap confidence intervals over images.

Goal
----
Resample the images with replacement many times. The spread of the score over the draws is the uncertainty
that results from the choice of images.

Conventions
-----------
- An image drawn three times counts three times (:mod:`boxscore.extensions.weights.weighted`). Some tools drop
  the repetitions, which leaves about 63% of the images in every draw and gives wrong intervals.
- Draws reuse the matches. They depend only on ``seed`` and the number of images, so two results on one data
  set get the same draws.
- Intervals are expanded percentiles of the draws. Plain percentiles are too narrow for few images, so they
  are widened as in Student's t, by the number of images that have an object.
- Intervals are NaN, because they would not be reliable, for a class in fewer than 5 images, and over all
  classes if fewer than 10 images have objects.
- Images of one ``group`` (a video, a patient) are drawn together. They are alike, and intervals that treat
  them as independent are too narrow.
- A class without ground truth in a draw is undefined there. As in the protocol, it is left out of the mean of
  that draw.

References
----------
T. C. Hesterberg, "What Teachers Should Know About the Bootstrap", The American Statistician 69, 2015.
B. Efron and R. J. Tibshirani, *An Introduction to the Bootstrap*, 1993, chapters 13 and 14.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import FloatArray
from boxscore._utils.processes import Workers
from boxscore._utils.progress import stage
from boxscore.errors import InputError
from boxscore.evaluation import Evaluation
from boxscore.extensions.diagnostics._result import ClassResult, Counts, Floats, once_per_evaluation
from boxscore.extensions.diagnostics._units import (
    Group,
    enough_units,
    note_on_few_images,
    units_of_images,
    units_of_values,
    warn_of_frames,
)
from boxscore.extensions.weights.resampling import Draws, Method, Units, check_intervals, interval, spread
from boxscore.protocols.metric_names import metric_named
from boxscore.protocols.summary import SummaryRow
from boxscore.scoring.summary import summary_table

MOST_CACHED_DRAWS = 1 << 22
"""Number of cached values, 32 MB."""


class Intervals(NamedTuple):
    """Intervals of M summary metrics; arrays [..., M]."""

    value: Floats
    """The score."""
    low: Floats
    high: Floats
    standard_error: Floats
    """Standard deviation over the draws."""
    draws: Counts
    """Number of draws in which the score is defined."""
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
        Warning that scores are biased upwards if half of the classes are in few images; empty otherwise.
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
    resamples: int = 1000,
    confidence: float = 0.95,
    method: Method = "expanded_percentile",
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
    resamples : int, default 1000
        Number of resamples.
    confidence : float, default 0.95
        Confidence level of the intervals.
    method : {"expanded_percentile", "percentile", "bias_corrected"}, default "expanded_percentile"
        How intervals are computed from the draws.
    seed : int, default 0
        Random seed.
    metrics : sequence of str, optional
        Names of summary metrics; all by default.
    group : str or sequence, optional
        Images that are drawn together, such as the frames of a video: a column of the images, a regular
        expression whose first group is matched in their file names, or a label for each image in the order of
        their ids.
    progress : bool, default False
        Show a progress bar if stderr is a terminal.
    workers : int or "auto", default "auto"
        Processes that share the draws if that is faster, as for :func:`boxscore.evaluate`. The result is the
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
    >>> boxes = [[0, 0, 9, 9]] * 10
    >>> truth = GroundTruth.from_arrays(range(10), ["cat"] * 10, boxes)
    >>> detections = Detections.from_arrays(range(8), ["cat"] * 8, boxes[:8], [0.9] * 8)
    >>> result = bootstrap_intervals(evaluate(truth, detections), metrics=["AR100"], resamples=200).total
    >>> [round(float(number[0]), 2) for number in (result.low, result.value, result.high)]
    [0.47, 0.8, 1.0]
    """
    # Check the options before the slow part, the draws.
    rows = chosen_rows(evaluation, metrics)
    check_intervals(confidence, method)
    warn_of_frames(evaluation, group)
    units = units_of_images(evaluation, group)
    # Compute all draws in one call, [resamples, rows, K + 1]; other diagnostics reuse them.
    value, draws = resampled_metrics(
        evaluation, rows, resamples=resamples, seed=seed, units=units, progress=progress, workers=workers
    )
    # Turn the draws into intervals. Classes in too few images get NaN.
    defined = np.isfinite(draws).sum(axis=0)
    counts = units_of_values(evaluation, rows, units)
    ends = intervals_that_hold(draws, value, confidence, method, counts, units)
    columns = (value, *ends, spread(draws), defined, counts)
    return BootstrapIntervals(
        evaluation.labels,
        Intervals(*(column[:, :-1].T for column in columns)),
        Intervals(*(column[:, -1] for column in columns)),
        [row.key for row in rows],
        note_on_few_images(evaluation, rows[0]),
    )


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
        name = f"the summary of {evaluation.protocol.name}"
        raise InputError(
            name, "have a metric", got="none", cause="the field summary of the protocol is empty"
        )

    def compute() -> tuple[FloatArray, FloatArray]:
        stage("intervals over resampled images")
        draws = Draws.of_seed(evaluation._image_count, resamples, seed, units)
        resampled = evaluation._weighted_metrics(rows, draws, progress=progress, workers=workers)
        return summary_table(rows, evaluation.protocol, evaluation.curves_of), resampled.values

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
