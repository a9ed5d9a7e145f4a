"""How certain a score is: bootstrap intervals over images.

Goal
----
Resample the images with replacement many times. The spread of the score over the draws is the uncertainty
that comes from which images happened to be collected.

Conventions
-----------
- An image drawn three times counts three times (:mod:`boxscore.scoring.weighted`). Dropping the
  repetitions, as some tools do, leaves about 63 % of the images in every draw and gives wrong intervals.
- Nothing is matched again. The draws depend only on ``seed`` and the number of images, so two results on one
  data set get the same draws.
- Intervals are bias-corrected percentiles of the draws (BC): AP of a small sample is biased upwards, and the
  draws are biased once more. ``method="percentile"`` gives plain percentiles.
- A class without ground truth in a draw is undefined there. It is left out of that draw's mean, as the
  protocol does.

References
----------
B. Efron and R. J. Tibshirani, *An Introduction to the Bootstrap*, 1993, chapters 13
and 14.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from statistics import NormalDist
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore._utils.progress import progress as shown
from boxscore.diagnostics._result import ClassResult, Counts, Floats, once_per_evaluation
from boxscore.evaluation import Evaluation
from boxscore.protocols.protocol import SummaryRow
from boxscore.scoring.curves import Curves
from boxscore.scoring.kinds import summary_total, summary_values
from boxscore.scoring.weighted import ImageWeights

__all__ = [
    "BootstrapIntervals",
    "Intervals",
    "bootstrap_intervals",
    "chosen_rows",
    "draw_weights",
    "interval",
    "spread",
    "weighted_metrics",
]

FloatArray = NDArray[np.float64]
Method = Literal["bias_corrected", "percentile"]


MOST_RESAMPLES = 10_000_000
LARGEST_SEED = 2**128 - 1


class Intervals(NamedTuple):
    """Intervals of M summary metrics; arrays [..., M]."""

    value: Floats
    """The score itself."""
    low: Floats
    high: Floats
    standard_error: Floats
    """Standard deviation over the draws."""
    draws: Counts
    """Number of draws in which it is defined."""


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class BootstrapIntervals(ClassResult):
    """Confidence intervals of summary metrics, per class and over all classes.

    Attributes
    ----------
    classes : list of str, [K]
    per_class : Intervals, [K, M]
    total : Intervals, [M]
    metrics : list of str, [M]
    """

    per_class: Intervals
    total: Intervals
    metrics: list[str]

    def second_axis(self) -> dict[str, list[str]]:
        """Name the metrics."""
        return {"metric": self.metrics}


@once_per_evaluation
def bootstrap_intervals(
    evaluation: Evaluation,
    *,
    resamples: int = 1000,
    confidence: float = 0.95,
    method: Method = "bias_corrected",
    seed: int = 0,
    metrics: Sequence[str] | None = None,
    progress: bool = False,
) -> BootstrapIntervals:
    """Confidence intervals for every summary metric, over all classes and for every class.

    Parameters
    ----------
    evaluation : Evaluation
    resamples : int, default 1000
    confidence : float, default 0.95
    method : {"bias_corrected", "percentile"}, default "bias_corrected"
    seed : int, default 0
    metrics : sequence of str, optional
        Names of summary metrics; all by default.
    progress : bool, default False
        Show a progress bar if stderr is a terminal.

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
    >>> boxes = [[0, 0, 9, 9], [0, 0, 9, 9], [0, 0, 9, 9], [0, 0, 9, 9]]
    >>> truth = GroundTruth.from_arrays([1, 2, 3, 4], ["cat"] * 4, boxes)
    >>> detections = Detections.from_arrays([1, 2, 3], ["cat"] * 3, boxes[:3], [0.9, 0.8, 0.7])
    >>> result = bootstrap_intervals(evaluate(truth, detections), metrics=["AR100"], resamples=200).total
    >>> float(result.value[0]), bool(result.low[0] < 0.75 <= result.high[0])
    (0.75, True)
    """
    rows = chosen_rows(evaluation, metrics)
    checks.number_between(confidence, 0, 1, name="confidence", open_low=True)
    checks.one_of(method, get_args(Method), name="method")
    score = weighted_metrics(evaluation, rows)
    images = len(evaluation.ground_truth.images)
    draws = np.stack([score(w) for w in draw_weights(images, resamples, seed=seed, progress=progress)])
    value = score(np.ones(images))
    defined = np.isfinite(draws).sum(axis=0)
    columns = (value, *interval(draws, value, confidence, method), spread(draws), defined)
    return BootstrapIntervals(
        evaluation.labels,
        Intervals(*(column[:, :-1].T for column in columns)),
        Intervals(*(column[:, -1] for column in columns)),
        [row.key for row in rows],
    )


def chosen_rows(evaluation: Evaluation, metrics: Sequence[str] | None) -> list[SummaryRow]:
    """Return the protocol's summary rows of these names, or all."""
    rows = {row.key: row for row in evaluation.protocol.rows}
    return [rows[checks.one_of(name, list(rows), name="metrics")] for name in metrics or rows]


def draw_weights(images: int, resamples: int, *, seed: int, progress: bool = False) -> Iterator[FloatArray]:
    """Yield, for each draw, how often each image was drawn, [images]."""
    checks.whole_number(resamples, 1, name="resamples", high=MOST_RESAMPLES)
    checks.whole_number(seed, 0, name="seed", high=LARGEST_SEED)
    random = np.random.default_rng(seed)
    draws = range(resamples)
    for _ in shown(draws, desc="bootstrap", unit="draw") if progress else draws:
        drawn = random.integers(0, images, images)
        yield np.bincount(drawn, minlength=images).astype(np.float64)


def weighted_metrics(
    evaluation: Evaluation, rows: Sequence[SummaryRow]
) -> Callable[[FloatArray], FloatArray]:
    """Return a function from image weights to each metric per class and, last, over all; [rows, K + 1]."""
    protocol, K = evaluation.protocol, len(evaluation.labels)

    @functools.cache
    def prepared(area: int, cap: int) -> ImageWeights:
        return ImageWeights(evaluation.matched, protocol, area, cap)

    def score(weights: FloatArray) -> FloatArray:
        @functools.cache
        def curves_of(area: int, cap: int) -> Curves:
            return Curves(prepared(area, cap).counts(weights), protocol.ap)

        result = np.empty((len(rows), K + 1))
        for values, row in zip(result, rows, strict=True):
            values[:K] = summary_values(row, protocol, curves_of)
            values[K] = summary_total(row, protocol, curves_of)
        return result

    return score


def interval(
    draws: FloatArray, value: FloatArray, confidence: float, method: Method
) -> tuple[FloatArray, FloatArray]:
    """Low and high ends that enclose a share of the draws (axis 0); NaN where no draw is defined.

    Bias correction shifts the percentiles by how far ``value`` is from the draws' median.
    """
    normal = NormalDist()
    reach = normal.inv_cdf((1 + min(confidence, 1 - 1e-9)) / 2)
    ends = np.full((2, value.size), np.nan)
    for i, (column, own) in enumerate(zip(draws.reshape(len(draws), -1).T, value.ravel(), strict=True)):
        defined = np.sort(column[np.isfinite(column)])
        if not len(defined):
            continue
        shift = 0.0
        if method == "bias_corrected" and np.isfinite(own):
            below = np.searchsorted(defined, [own - 1e-12, own + 1e-12]).mean() / len(defined)
            edge = 0.5 / len(defined)
            shift = 2 * normal.inv_cdf(min(max(below, edge), 1 - edge))
        ends[:, i] = np.quantile(defined, [normal.cdf(shift - reach), normal.cdf(shift + reach)])
    return ends[0].reshape(value.shape), ends[1].reshape(value.shape)


def spread(draws: FloatArray) -> FloatArray:
    """Take the standard deviation over the draws (axis 0) that define the value; NaN below two."""
    defined = np.isfinite(draws)
    count = defined.sum(axis=0)
    filled = np.where(defined, draws, 0.0)
    mean = filled.sum(axis=0) / np.maximum(count, 1)
    squares = (np.where(defined, draws - mean, 0.0) ** 2).sum(axis=0)
    return np.where(count > 1, np.sqrt(squares / np.maximum(count - 1, 1)), np.nan)
