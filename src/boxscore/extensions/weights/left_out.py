"""Compute metrics without each group of images, and intervals from their spread: the grouped jackknife.

Conventions
-----------
- Images, or groups of images such as videos, are the *units*. They are split at random into at most
  :data:`MOST_GROUPS` groups of equally many units; each group is left out once.
- Row 0 of a table is of all images, and row ``g + 1`` of all images but those of group ``g``.
- With ``u`` groups, a *pseudo-value* is ``u`` times the value of all images minus ``u`` - 1 times the value
  without a group. Their spread gives the standard error; their mean lacks the bias that falls as 1 / images.
- If few pseudo-values cause most of the spread, the standard error itself is uncertain: it has few *degrees
  of freedom*, and Student's t is larger.
- An interval contains six: estimate -+ t x standard error, the same on the scale of log odds, which is wider
  toward the middle of the range from 0 to 1, and both around two other centers: the mean of the
  pseudo-values, which has less bias than the estimate and more noise, and the estimate with a third of the
  correction taken back.

References
----------
B. Efron and R. J. Tibshirani, *An Introduction to the Bootstrap*, 1993, chapter 11 (jackknife). F. E.
Satterthwaite, "An Approximate Distribution of Estimates of Variance Components", Biometrics Bulletin 2, 1946
(degrees of freedom). C. J. Clopper and E. S. Pearson, Biometrika 26, 1934 (few successes).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore._utils.array_types import FloatArray
from boxscore._utils.processes import Workers
from boxscore.evaluation import Evaluation
from boxscore.extensions.weights.held_out import HeldOutPrecision
from boxscore.extensions.weights.resampling import LARGEST_SEED, LeftOut, Units, student_quantile, unit_count
from boxscore.protocols.summary import SummaryRow
from boxscore.scoring.curves import Curves
from boxscore.scoring.summary import summary_table

MOST_GROUPS = 50
"""Maximum number of groups that are left out in turn."""


class LeftOutMetrics(NamedTuple):
    """Summary rows for K classes and, last, all of them; of all images, and without each of u groups."""

    value: FloatArray
    """The metric, [1 + u, rows, K + 1]."""
    estimate: FloatArray
    """The metric without the bias of few images, [1 + u, rows, K + 1].

    It is the metric itself if that has no such bias, and NaN if the matches are not in memory.
    """


def groups_of(images: int, units: Units | None, seed: int) -> tuple[NDArray[np.uint32], int]:
    """Split the units into groups at random; return the group of each image, [I], and their number."""
    checks.whole_number(seed, 0, name="seed", high=LARGEST_SEED)
    count = unit_count(images, units)
    groups = min(MOST_GROUPS, count)
    number = np.empty(count, dtype=np.uint32)
    number[np.random.default_rng(seed).permutation(count)] = np.arange(count) % max(groups, 1)
    return (number if units is None else number[units]), groups


def left_out_metrics(
    evaluation: Evaluation,
    rows: Sequence[SummaryRow],
    *,
    seed: int,
    units: Units | None,
    progress: bool = False,
    workers: Workers = "auto",
) -> LeftOutMetrics:
    """Compute summary rows of all images, and without each group of images; computed once."""
    of_units = None if units is None else units.tobytes()
    key = ("left out", tuple(row.key for row in rows), seed, of_units)
    made: LeftOutMetrics = evaluation._once(
        key, lambda: _computed(evaluation, rows, seed, units, progress, workers)
    )
    return made


def _computed(
    evaluation: Evaluation,
    rows: Sequence[SummaryRow],
    seed: int,
    units: Units | None,
    progress: bool,
    workers: Workers,
) -> LeftOutMetrics:
    """Compute :func:`left_out_metrics`."""
    groups, count = groups_of(evaluation._image_count, units, seed)
    value = summary_table(rows, evaluation.protocol, evaluation.curves_of)
    left = evaluation._weighted_metrics(rows, LeftOut(groups, 0, count), progress=progress, workers=workers)
    values = np.concatenate([value[None], left.values])
    estimates = values.copy()
    corrected = [at for at, row in enumerate(rows) if is_corrected(row)]
    if corrected and not evaluation._holds_matches:
        estimates[:, corrected] = np.nan
    elif corrected:
        chosen = [rows[at] for at in corrected]
        estimates[:, corrected] += _corrections(evaluation, chosen, units, groups, count, workers)
    return LeftOutMetrics(values, estimates)


def is_corrected(row: SummaryRow) -> bool:
    """Tell whether a metric is a precision read off a curve, which is too high for few images."""
    return row.metric == "AP" and not row.harmonic_of


def _corrections(
    evaluation: Evaluation,
    rows: Sequence[SummaryRow],
    units: Units | None,
    groups: NDArray[np.uint32],
    count: int,
    workers: Workers,
) -> FloatArray:
    """Return the corrections of summary rows, [1 + groups, rows, K + 1]."""
    protocol = evaluation.protocol

    # Each area range, maximum number of detections and selection of classes has its own curves.
    @functools.cache
    def curves(area: int, cap: int, pooled: str | None) -> list[Curves]:
        matches = evaluation.matched if pooled is None else evaluation.matched.pooled(pooled)
        return HeldOutPrecision(matches, protocol, area, cap, units).curves(groups, count, workers)

    tables = []
    for number in range(1 + count):

        def curves_of(area: int, cap: int, pooled: str | None = None, /, number: int = number) -> Curves:
            return curves(area, cap, pooled)[number]

        tables.append(summary_table(rows, protocol, curves_of))
    return np.stack(tables)


class Spread(NamedTuple):
    """How far some values, [...], may be off; NaN where it is unknown."""

    estimate: FloatArray
    without_bias: FloatArray
    """Mean of the pseudo-values."""
    standard_error: FloatArray
    freedom: FloatArray
    """Degrees of freedom of the standard error."""
    value: FloatArray | None = None
    """The values before they were corrected to estimates; None: the estimates."""


def spread_of(values: FloatArray, counts: NDArray[np.int64], uncorrected: FloatArray | None = None) -> Spread:
    """Compute standard errors from values of all images, then without each group: [1 + groups, ...].

    ``counts`` are the units that support each value, [...]; below two the spread is unknown. ``uncorrected``
    are the values of all images before they were corrected, [...].
    """
    estimate, left = values[0], values[1:]
    groups = len(left)
    # A class that is only in one group is undefined without that group, which is left out.
    defined = np.isfinite(left)
    number = defined.sum(axis=0)
    mean = np.where(defined, left, 0.0).sum(axis=0) / np.maximum(number, 1)
    # Compute the standard error from the pseudo-values, here minus their mean.
    moved = np.where(defined, (groups - 1) * (mean - left), 0.0)
    squares, fourth = (moved**2).sum(axis=0), (moved**4).sum(axis=0)
    error = np.sqrt(squares / max(groups * (groups - 1), 1))
    # A sum of squares of normal numbers has a degree of freedom for each, and fewer if a few are large.
    excess = fourth - squares**2 / max(groups, 1)
    freedom = np.divide(2 * squares**2, excess, out=np.full(error.shape, np.inf), where=excess > 0)
    freedom = np.maximum(np.minimum(freedom, np.minimum(counts, groups) - 1), 1)
    without_bias = np.where(number == groups, estimate + (groups - 1) * (estimate - mean), estimate)
    enough = (number > 1) & np.isfinite(estimate) & (counts > 1)
    known = (np.where(enough, each, np.nan) for each in (estimate, without_bias, error, freedom))
    return Spread(*known)._replace(value=uncorrected)


def jackknife_intervals(spread: Spread, confidence: float) -> tuple[FloatArray, FloatArray]:
    """Return the ends of intervals of values between 0 and 1; NaN where the spread is unknown."""
    upper = (1 + min(confidence, 1 - 1e-9)) / 2
    freedom = np.nan_to_num(np.floor(spread.freedom), nan=1.0).astype(np.int64)
    quantiles = {each: student_quantile(upper, each) for each in np.unique(freedom).tolist()}
    factors = np.array([quantiles[each] for each in freedom.ravel().tolist()]).reshape(freedom.shape)
    reach = factors * spread.standard_error
    # Join the intervals around the estimate, around the mean of the pseudo-values, and around the estimate
    # with part of the correction taken back.
    back = np.zeros_like(reach) if spread.value is None else (spread.value - spread.estimate) * UNSURE
    centers = np.stack([spread.estimate, spread.without_bias, spread.estimate + back])
    low, high = centers.min(axis=0) - reach, centers.max(axis=0) + reach
    # A step on the scale of log odds is longer by their derivative. At 0 and 1 there is no such scale.
    inside = (centers > 0) & (centers < 1)
    middle = np.where(inside, centers, 0.5)
    odds, step = np.log(middle / (1 - middle)), reach / (middle * (1 - middle))
    low = np.minimum(low, np.where(inside, _from_log_odds(odds - step), 1.0).min(axis=0))
    high = np.maximum(high, np.where(inside, _from_log_odds(odds + step), 0.0).max(axis=0))
    return low.clip(0, 1), high.clip(0, 1)


UNSURE = 1 / 3
"""Part of the correction that may be too much: it is where true positives come many to an image."""

HALF = 0.5
"""How much of a unit is added at either end of the range."""


def ends_with_half_a_unit(
    spread: Spread, counts: NDArray[np.int64], confidence: float
) -> tuple[FloatArray, FloatArray]:
    """Return the ends of intervals of few units, to which half a unit of value 0, or of 1, is added.

    A few units may lack the rare ones in which a detector fails, or succeeds, and then vary too little. Half
    a unit at the end of the range stands for these: the interval is that of the mean of ``counts`` units with
    the spread's standard error, and this one.
    """
    upper = (1 + min(confidence, 1 - 1e-9)) / 2
    units = np.maximum(counts, 2).astype(np.float64)
    quantiles = {each: student_quantile(upper, each) for each in np.unique(np.maximum(counts, 1)).tolist()}
    factors = np.array([quantiles[max(each, 1)] for each in counts.ravel().tolist()]).reshape(counts.shape)

    def reach_beyond(distance: FloatArray) -> FloatArray:
        """Return how far the interval goes beyond a center, of whose units all are at this distance."""
        shift = distance * HALF / (units + HALF)
        squares = (units - 1) * units * spread.standard_error**2 + distance**2 * units * HALF / (units + HALF)
        beyond: FloatArray = shift + factors * np.sqrt(squares / units / (units + HALF))
        return beyond

    low = spread.estimate - reach_beyond(spread.estimate)
    high = spread.estimate + reach_beyond(1 - spread.estimate)
    return low.clip(0, 1), high.clip(0, 1)


def _from_log_odds(odds: FloatArray) -> FloatArray:
    """Return probabilities."""
    small = np.exp(-np.abs(odds))
    share: FloatArray = np.where(odds > 0, 1, small) / (1 + small)
    return share


@functools.cache
def upper_end(successes: int, trials: int, confidence: float) -> float:
    """Return Clopper and Pearson's upper end of a proportion: of ``trials`` units, ``successes`` have it."""
    tail = (1 - confidence) / 2
    if successes >= trials:
        return 1.0
    # Bisect the probability of at most so many successes until no float is between the ends.
    low, high = successes / trials, 1.0
    while (middle := (low + high) / 2) not in (low, high):
        chance = math.fsum(
            math.comb(trials, x) * middle**x * (1 - middle) ** (trials - x) for x in range(successes + 1)
        )
        low, high = (middle, high) if chance > tail else (low, middle)
    return high
