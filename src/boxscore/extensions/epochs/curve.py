"""Compute the curve of a training run: the score of each epoch, and which epochs may be the best.

Goal
----
The best of many epochs is chosen on the same images that score it. Two questions allow for that: which epochs
may be the best on very many images, and how much lower the chosen epoch will score on other images.

Conventions
-----------
- All epochs are scored without the same groups of images (:mod:`boxscore.extensions.weights.left_out`). The
  pseudo-values, added with random normal weights, move the scores as chance does; they are divided as
  Student's t is for few groups. So an epoch costs some 50 sets of weights, and a pair of epochs nothing.
- ``p_value``: probability that some other epoch would be ahead of this one by as much, in standard errors of
  their difference, if this one were at least as good as every other. Epochs above 1 - confidence may be the
  best: in about that fraction of samples the truly best one is among them, for any number of epochs. So
  a last epoch within the level is worse than the best one, although that was chosen. A difference without
  any spread is certain: its p-value is 0, as in a t-test.
- ``excess``: by how much the score of the best epoch falls on other images because it was chosen, on
  average. Differences between epochs are first reduced by the part that chance explains, or noise would count
  twice.

References
----------
J. C. Hsu, "Constrained Simultaneous Confidence Intervals for Multiple Comparisons with the Best", 1984. P. R.
Hansen, A. Lunde and J. M. Nason, "The Model Confidence Set", Econometrica 79, 2011. G. C. Cawley and N. L. C.
Talbot, "On Over-fitting in Model Selection and Subsequent Selection Bias in Performance Evaluation", 2010.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import FloatArray
from boxscore._utils.processes import Workers
from boxscore._utils.records import record
from boxscore._utils.text import json_text
from boxscore.errors import InputError
from boxscore.evaluation import Evaluation
from boxscore.extensions.decisions.compare import check_comparable
from boxscore.extensions.decisions.swapping import NEGLIGIBLE, level_of
from boxscore.extensions.diagnostics._units import Group, enough_units, units_of_images, units_of_values
from boxscore.extensions.diagnostics.bootstrap import (
    chosen_rows,
    has_interval,
    intervals_of,
    least_units,
)
from boxscore.extensions.weights.left_out import left_out_metrics
from boxscore.extensions.weights.resampling import check_intervals
from boxscore.protocols.metric_names import metric_named

if TYPE_CHECKING:
    import pandas as pd

DRAWS = 4000
"""Number of random scores of all epochs; the standard error of a p-value of .05 is .003."""


@record(frozen=True, eq=False, repr=False)
class EpochCurve:
    """The scores of N epochs on the same images, in ascending order of the epochs.

    Attributes
    ----------
    metric : str
    lower_is_better : bool
    epochs : tuple of int, [N]
    values, estimates, low, high : ndarray of float64, [N]
        The score, the score without the bias of few images, and the interval of the score on very many
        images; NaN for an epoch without an interval.
    p_values : ndarray of float64, [N]
        P-value of each epoch being at least as good as every other one; NaN for too few images.
    excess : float
        How much better the best epoch looks than it is because it was chosen on these images; NaN for too
        few.
    confidence : float
    images : int
        Images, or groups of images, with an object of the metric.
    least_images : int
        How many of them the intervals need; 0 if no kind of interval fits the metric.
    grouped : bool
        Whether images are compared in groups.
    seen : ndarray of int64, [N]
        Number of images with a detection.
    signature : str
    """

    metric: str
    lower_is_better: bool
    epochs: tuple[int, ...]
    values: FloatArray
    estimates: FloatArray
    low: FloatArray
    high: FloatArray
    p_values: FloatArray
    excess: float
    confidence: float
    images: int
    least_images: int
    grouped: bool
    seen: NDArray[np.int64]
    signature: str

    @property
    def best(self) -> int:
        """Position of the best epoch; the earliest of equal ones."""
        return int(np.argmax(self._gains))

    @property
    def may_be_best(self) -> NDArray[np.bool_]:
        """Whether each epoch may be the best on very many images, [N]; all if there are too few images."""
        return ~(self.p_values <= level_of(self.confidence))

    @property
    def behind(self) -> FloatArray:
        """How much worse each epoch is than the best one, [N]."""
        gains = self._gains
        behind: FloatArray = gains[self.best] - gains
        return behind

    @property
    def _gains(self) -> FloatArray:
        return -self.values if self.lower_is_better else self.values

    def to_frame(self) -> pd.DataFrame:
        """Return one row per epoch."""
        import pandas as pd

        return pd.DataFrame(
            {
                "epoch": pd.Series(self.epochs, dtype=object).infer_objects(),
                self.metric: self.values,
                "estimate": self.estimates,
                "low": self.low,
                "high": self.high,
                "behind": self.behind,
                "p_value": self.p_values,
                "may_be_best": self.may_be_best,
            }
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        last = len(self.epochs) - 1
        return {
            "metric": self.metric,
            "signature": self.signature,
            "lower_is_better": self.lower_is_better,
            "confidence": self.confidence,
            "images": self.images,
            "best": self.epochs[self.best],
            "best_is_better_than_last": not bool(self.may_be_best[last]),
            "excess": self.excess,
            "epochs": self.to_frame().to_dict("records"),
        }

    def to_json(self) -> str:
        """Return the curve as JSON; undefined values are ``null``."""
        return json_text(self.as_dict())

    def __repr__(self) -> str:
        best = f"best {self.epochs[self.best]} ({self.values[self.best]:.4f})"
        return (
            f"EpochCurve: {self.metric} of {len(self.epochs)} epochs, {best}\n{self.to_frame().to_string()}"
        )


def epoch_curve(
    evaluations: Mapping[int, Evaluation] | Iterable[tuple[int, Evaluation]],
    *,
    metric: str | None = None,
    confidence: float = 0.95,
    group: Group = None,
    seed: int = 0,
    workers: Workers = "auto",
) -> EpochCurve:
    """Compare the epochs of a training run on the same images.

    Parameters
    ----------
    evaluations : mapping of int to Evaluation, or iterable of pairs
        The evaluation of each epoch, with the same ground truth and protocol. From an iterable, only two are
        in memory at a time.
    metric : str, optional
        The summary metric that chooses the best epoch; the first one by default.
    confidence : float, default 0.95
        Confidence level of the intervals and of the epochs that may be best.
    group : str or sequence, optional
        Images that belong together, such as the frames of a video: a column of the images, a regular
        expression whose first group is matched in their file names, or a label for each image in the order of
        their ids.
    seed : int, default 0
        Random seed.
    workers : int or "auto", default "auto"
        Processes that share the work if that is faster, as for :func:`boxscore.evaluate`. The result is the
        same.

    Returns
    -------
    EpochCurve

    Raises
    ------
    InputError
        When there are fewer than two epochs, one twice, the metric is unknown or undefined, or ground truth
        or protocol differ.

    Examples
    --------
    >>> from boxscore import Detections, GroundTruth, evaluate
    >>> boxes = [[0, 0, 9, 9]] * 40
    >>> truth = GroundTruth.from_arrays(range(40), ["cat"] * 40, boxes)
    >>> def after(found):
    ...     names, scores = ["cat"] * found, [0.9] * found
    ...     return evaluate(truth, Detections.from_arrays(range(found), names, boxes[:found], scores))
    >>> curve = epoch_curve({1: after(8), 2: after(33), 3: after(32)})
    >>> curve.epochs[curve.best], curve.may_be_best.tolist()
    (2, [False, True, True])
    """
    check_intervals(confidence, "percentile")
    pairs = evaluations.items() if isinstance(evaluations, Mapping) else evaluations
    rows, parts = None, dict[int, tuple[Any, ...]]()
    for epoch, result in pairs:
        if rows is None:
            # The first one decides the metric and the groups of images that are left out.
            first, first_name = result, str(epoch)
            keys = [row.key for row in result.protocol.rows]
            chosen = None if metric is None else [metric_named(metric, keys, option="metric")]
            rows = chosen_rows(result, chosen)[:1]
            units = units_of_images(result, group)
            counts = units_of_values(result, rows, units)
        else:
            check_comparable([first_name, str(epoch)], [first, result])
        if epoch in parts:
            raise InputError("the epochs", "differ", got=f"{epoch} twice")
        if np.isnan(result.metrics[rows[0].key]):
            raise InputError("the metric", "be defined", got=f"{rows[0].key}, for which no object counts")
        made = intervals_of(result, rows, confidence=confidence, seed=seed, units=units, workers=workers)
        without = left_out_metrics(result, rows, seed=seed, units=units, workers=workers)
        seen_images = len(np.unique(result.detections.image))
        parts[epoch] = (*(column[0, -1] for column in made[:4]), without.value[1:, 0, -1], seen_images)
    if rows is None or len(parts) < 2:
        raise InputError("a curve", "have two epochs or more", got=len(parts))
    epochs = sorted(parts)
    columns = zip(*(parts[epoch] for epoch in epochs), strict=True)
    values, estimates, low, high, left, seen = map(np.array, columns)
    row = rows[0]
    falls = row.key in first.protocol.lower_is_better
    p_values, excess = np.full(len(epochs), np.nan), np.nan
    if enough_units(counts, units)[0, -1]:
        gains, left = (-values, -left) if falls else (values, left)
        chance, parts_of_covariance = _chance(left.T, seed)
        p_values = _p_values(gains, chance, parts_of_covariance)
        # Epochs that are the same, such as copies, leave nothing to choose between them.
        _, of_each = np.unique(np.vstack([gains, parts_of_covariance]), axis=1, return_index=True)
        if len(of_each) < len(gains):
            one = np.sort(of_each)
            gains, chance, parts_of_covariance = gains[one], chance[:, one], parts_of_covariance[:, one]
        excess = _excess(gains, chance, parts_of_covariance) if len(of_each) > 1 else 0.0
    return EpochCurve(
        row.key,
        falls,
        tuple(epochs),
        *(values, estimates, low, high),
        p_values,
        excess,
        confidence,
        int(counts[0, -1]),
        least_units(first, row, units) if has_interval(first, row) else 0,
        group is not None,
        seen,
        first.signature,
    )


def _chance(left: FloatArray, seed: int) -> tuple[FloatArray, FloatArray]:
    """Return how far chance may move the scores, [draws, N], and the parts of their covariance, [groups, N].

    ``left`` are the scores without each group of images, [groups, N].
    """
    left = left[np.isfinite(left).all(axis=1)]
    count = len(left)
    parts = (count - 1) * (left.mean(axis=0) - left) / np.sqrt(max(count * (count - 1), 1))
    random = np.random.default_rng(seed)
    weights = random.normal(size=(DRAWS // 2, count))
    # Few groups: the standard errors are uncertain too.
    weights /= np.sqrt(random.chisquare(max(count - 1, 1), size=(len(weights), 1)) / max(count - 1, 1))
    weights = np.concatenate([weights, -weights])  # chance has the mean 0
    return weights @ parts, parts


def _p_values(gains: FloatArray, chance: FloatArray, parts: FloatArray) -> FloatArray:
    """Return the p-value of each epoch being the best, [N]."""
    p_values = np.ones(len(gains))
    for i in range(len(gains)):
        # Compare with every epoch that differs, in standard errors of the difference.
        error = np.sqrt(((parts - parts[:, [i]]) ** 2).sum(axis=0))
        others = np.flatnonzero(error > NEGLIGIBLE)
        # A difference that is the same without each of the images is certain.
        certain = (error <= NEGLIGIBLE) & (gains - gains[i] > NEGLIGIBLE)
        if certain.any():
            p_values[i] = 0
        elif len(others):
            ahead = ((gains[others] - gains[i]) / error[others]).max()
            farthest = ((chance[:, others] - chance[:, [i]]) / error[others]).max(axis=1)
            p_values[i] = (1 + (farthest >= ahead).sum()) / (1 + len(chance))
    return p_values


def _excess(gains: FloatArray, chance: FloatArray, parts: FloatArray) -> float:
    """Return by how much chance favors the epoch that is chosen, on average."""
    # Part of the spread between epochs is noise: reduce it before chance is added again.
    noise = ((parts - parts.mean(axis=1, keepdims=True)) ** 2).sum() / (len(gains) - 1)
    spread = gains.var(ddof=1)
    kept = max(0.0, 1 - noise / spread) if spread > NEGLIGIBLE**2 else 0.0
    drawn = gains.mean() + kept * (gains - gains.mean()) + chance
    chosen = np.argmax(drawn, axis=1)
    return float(max(0.0, chance[np.arange(len(chance)), chosen].mean()))
