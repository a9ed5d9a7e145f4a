"""How sure a score is: bootstrap intervals over images.

Goal
----
Draw as many images as there are, with repetition, again and again; the spread of the score over the draws is
the uncertainty that comes from which images happened to be collected.

Conventions
-----------
- An image drawn three times counts three times (``scoring.weighted``). Dropping the repetitions, as some
  tools do, leaves about 63 % of the images in every draw and makes intervals too narrow.
- Nothing is matched again. The draws depend on ``seed`` and the number of images alone, so that two results
  on one data set are drawn alike.
- Intervals are bias-corrected percentiles of the draws (BC): AP of a small sample leans upwards, and draws
  lean once more. ``method="percentile"`` gives the plain ones.
- A class without ground truth in a draw is undefined there, and left out of that draw's mean as the protocol
  leaves it out.

References
----------
B. Efron and R. J. Tibshirani, *An Introduction to the Bootstrap*, 1993, chapters 13
and 14.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore.diagnostics._outcomes import EVERY_CLASS
from boxscore.evaluation import Evaluation
from boxscore.protocols.protocol import SummaryRow
from boxscore.scoring.weighted import WeightedCurves

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["bootstrap", "chosen_rows", "draw_weights", "interval", "spread", "weighted_metrics"]

FloatArray = NDArray[np.float64]
Method = Literal["bias_corrected", "percentile"]


def bootstrap(
    evaluation: Evaluation,
    *,
    resamples: int = 1000,
    confidence: float = 0.95,
    method: Method = "bias_corrected",
    seed: int = 0,
    metrics: Sequence[str] | None = None,
    per_class: bool = False,
    progress: bool = False,
) -> pd.DataFrame:
    """Confidence intervals for every headline number, and for every class.

    Parameters
    ----------
    evaluation : Evaluation
    resamples : int, default 1000
    confidence : float, default 0.95
    method : {"bias_corrected", "percentile"}, default "bias_corrected"
    seed : int, default 0
    metrics : sequence of str, optional
        Names of headline numbers; all when not given.
    per_class : bool, default False
        Add one row a class and metric.
    progress : bool, default False
        Show a bar on stderr when it is a terminal.

    Returns
    -------
    DataFrame
        ``class, metric, value, low, high, standard_error, draws``: the score itself, the interval, the
        standard deviation over the draws, and in how many draws it was defined.

    Raises
    ------
    InputError
        When an option is out of range, or the protocol has no weighted form.

    Examples
    --------
    >>> from boxscore import Detections, GroundTruth, evaluate
    >>> boxes = [[0, 0, 9, 9], [0, 0, 9, 9], [0, 0, 9, 9], [0, 0, 9, 9]]
    >>> truth = GroundTruth.from_arrays([1, 2, 3, 4], ["cat"] * 4, boxes)
    >>> found = Detections.from_arrays([1, 2, 3], ["cat"] * 3, boxes[:3], [0.9, 0.8, 0.7])
    >>> table = bootstrap(evaluate(truth, found), metrics=["AR100"], resamples=200)
    >>> float(table["value"].iloc[0]), bool(table["low"].iloc[0] < 0.75 <= table["high"].iloc[0])
    (0.75, True)
    """
    import pandas as pd

    rows = chosen_rows(evaluation, metrics)
    checks.number_between(confidence, 0, 1, name="confidence", open_low=True)
    checks.one_of(method, get_args(Method), name="method")
    score = weighted_metrics(evaluation, rows)
    images = len(evaluation.ground_truth.images)
    draws = np.stack([score(w) for w in draw_weights(images, resamples, seed=seed, progress=progress)])
    value = score(np.ones(images))
    low, high = interval(draws, value, confidence, method)
    labels, K = evaluation.labels, len(evaluation.labels)
    defined = np.isfinite(draws).sum(axis=0)
    columns = [K, *range(K)] if per_class else [K]
    return pd.DataFrame(
        {
            "class": [[*labels, EVERY_CLASS][k] for k in columns for _ in rows],
            "metric": [row.key for _ in columns for row in rows],
            "value": value[:, columns].T.ravel(),
            "low": low[:, columns].T.ravel(),
            "high": high[:, columns].T.ravel(),
            "standard_error": spread(draws)[:, columns].T.ravel(),
            "draws": defined[:, columns].T.ravel(),
        }
    )


def chosen_rows(evaluation: Evaluation, metrics: Sequence[str] | None) -> list[SummaryRow]:
    """Return the protocol's headline rows of these names, or all."""
    rows = {row.key: row for row in evaluation.protocol.rows}
    return [rows[checks.one_of(name, list(rows), name="metrics")] for name in metrics or rows]


def draw_weights(images: int, resamples: int, *, seed: int, progress: bool = False) -> Iterator[FloatArray]:
    """Yield, for each draw, how often each image was drawn, [images].

    Raises
    ------
    InputError
        When ``resamples`` is not a whole number of at least 1.
    """
    from tqdm import tqdm

    checks.whole_number(resamples, 1, name="resamples")
    random = np.random.default_rng(seed)
    quiet = None if progress else True  # None: only on a terminal
    for _ in tqdm(range(resamples), desc="bootstrap", unit="draw", file=sys.stderr, disable=quiet):
        drawn = random.integers(0, images, images)
        yield np.bincount(drawn, minlength=images).astype(np.float64)


class weighted_metrics:  # noqa: N801 - used like a function
    """Headline numbers as a function of the images' weights.

    Parameters
    ----------
    evaluation : Evaluation
    rows : sequence of SummaryRow
    """

    def __init__(self, evaluation: Evaluation, rows: Sequence[SummaryRow]) -> None:
        self._rows = rows
        self._count = len(evaluation.labels)
        names = list(evaluation.protocol.ignore.area_ranges)
        thresholds = evaluation.protocol.matching.iou_thresholds
        caps = len(evaluation.protocol.caps)
        self._keys = [(names.index(row.area), row.cap % caps) for row in rows]
        self._places = [slice(None) if row.iou is None else [thresholds.index(row.iou)] for row in rows]
        self._curves = {
            (area, cap): WeightedCurves(
                evaluation.matched, evaluation.protocol, category_count=self._count, area=area, cap=cap
            )
            for area, cap in set(self._keys)
        }

    def __call__(self, weights: FloatArray) -> FloatArray:
        """Compute each number for each class and, last, over all; [rows, K + 1]."""
        cells: dict[tuple[str, tuple[int, int]], FloatArray] = {}
        result = np.full((len(self._rows), self._count + 1), np.nan)
        for i, (row, key, places) in enumerate(zip(self._rows, self._keys, self._places, strict=True)):
            if (row.metric, key) not in cells:
                curves = self._curves[key]
                cells[row.metric, key] = (
                    curves.recall(weights) if row.metric == "AR" else curves.average_precision(weights)
                )
            values = cells[row.metric, key][places]
            result[i, :-1] = values.mean(axis=0)
            defined = values[~np.isnan(values)]
            result[i, -1] = defined.mean() if len(defined) else np.nan
        return result


def interval(
    draws: FloatArray, value: FloatArray, confidence: float, method: Method
) -> tuple[FloatArray, FloatArray]:
    """Enclose a share of the draws (axis 0); NaN where no draw is defined.

    Parameters
    ----------
    draws : ndarray of float64, [resamples, ...]
    value : ndarray of float64, [...]
        The number itself: bias correction shifts the percentiles by how far it is from the draws' median.
    confidence : float
    method : {"bias_corrected", "percentile"}

    Returns
    -------
    low, high : ndarray of float64, [...]
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
    """Take the standard deviation over the draws (axis 0) that define the number; NaN below two."""
    defined = np.isfinite(draws)
    count = defined.sum(axis=0)
    filled = np.where(defined, draws, 0.0)
    mean = filled.sum(axis=0) / np.maximum(count, 1)
    squares = (np.where(defined, draws - mean, 0.0) ** 2).sum(axis=0)
    return np.where(count > 1, np.sqrt(squares / np.maximum(count - 1, 1)), np.nan)
