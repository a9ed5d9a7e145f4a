"""Plan comparisons: how many images it takes to tell two detectors apart, and which differences show.

Goal
----
A data set that is too small shows no differences. Before you collect more images or chase a small gain, this
analysis tells which difference the verdict of :mod:`boxscore.extensions.decisions.compare` can detect, and
with which power: the probability of a verdict with the right sign if the difference is real.

Conventions
-----------
- The test is the swap test. Swaps give the standard deviation of the difference between equal detectors;
  paired draws of images give that of the difference itself. The observed difference adds its square over the
  number of images to the variance of the swaps, which is subtracted.
- Both shrink with the square root of the number of images. With few images, the critical value is a quantile
  of Student's t, and power follows the noncentral t distribution.
- Images without objects count as images to collect, in the same proportion as here; degrees of freedom come
  from the images with an object, per class from those with an object of the class.
- The verdict per class is adjusted for all classes (max-T): the critical value is that of their maximum.
- Ranges (95%) include the uncertainty of the variance: a chi-square interval, with fewer degrees of freedom
  if a few images dominate it (estimated by leaving out one image, or one group of many, at a time). If the
  plan is for the observed difference, they include its interval as well (MOVER).
- A plan for the observed difference is optimistic: a difference that is worth planning for is often smaller
  than it looks. Its power on these images adds nothing to its p-value.
- A plan needs a valid interval and verdict; it is undefined for a class in fewer than 5 images, for fewer
  than 10 images with objects, or for fewer than 6 groups.

References
----------
J. Cohen, *Statistical Power Analysis for the Behavioral Sciences*, 1988. M. Abramowitz and I. A. Stegun,
*Handbook of Mathematical Functions*, 26.7.10 (noncentral t) and 26.4.17 (chi-square). B. Efron and
R. J. Tibshirani, *An Introduction to the Bootstrap*, 1993, chapter 11 (jackknife). G. Y. Zou and A. Donner,
"Construction of confidence limits about effect measures: a general approach", 2008 (MOVER). J. M. Hoenig and
D. M. Heisey, "The Abuse of Power", 2001.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore._utils.array_types import FloatArray, unchangeable
from boxscore._utils.processes import Workers
from boxscore._utils.progress import stage
from boxscore._utils.text import counted
from boxscore.errors import InputError
from boxscore.evaluation import Evaluation
from boxscore.extensions.decisions.compare import check_comparable
from boxscore.extensions.decisions.swapping import NEGLIGIBLE, swapped_differences
from boxscore.extensions.diagnostics._result import ClassResult, Counts, Floats
from boxscore.extensions.diagnostics._units import (
    Group,
    enough_units,
    units_of_images,
    units_of_values,
    warn_of_frames,
)
from boxscore.extensions.diagnostics.bootstrap import chosen_rows, intervals_that_hold, resampled_metrics
from boxscore.extensions.weights.resampling import (
    LEAST_UNITS,
    LEAST_UNITS_OF_VERDICT,
    LeftOut,
    Units,
    spread,
    student_quantile,
    unit_count,
)
from boxscore.protocols.summary import SummaryRow

if TYPE_CHECKING:
    import pandas as pd

MOST_LEFT_OUT = 500
"""Maximum number of images, or groups of them, that are left out one at a time."""

MOST_IMAGES = 1e12
"""Largest number of images in a plan."""

RANGE = 0.95
"""Confidence of the ranges."""

NORMAL = NormalDist()


class Plan(NamedTuple):
    """The difference that images can show, and the number of images needed; arrays [..., M]."""

    images: Counts
    """Number of given images, or groups of images, with an object of the metric, int64."""
    delta: Floats
    """Observed difference: other minus first, float64."""
    standard_error: Floats
    """Standard error of ``delta``, float64."""
    detectable: Floats
    """The smallest difference that this number of images detects with the requested power, float64; infinite
    above 1."""
    detectable_low: Floats
    detectable_high: Floats
    difference: Floats
    """The planned difference: as given, or ``delta``, float64."""
    power: Floats
    """Power to detect it with the given images, float64."""
    images_needed: Floats
    """Number of images, with the same proportion having objects, to detect it with the requested power;
    float64, NaN if undefined."""
    images_needed_low: Floats
    images_needed_high: Floats
    """Upper end of its range; infinite if the difference may be 0."""


class PowerCurve(NamedTuple):
    """Power to detect the planned difference over all classes, by number of images; N numbers."""

    images: FloatArray
    """Whole numbers, [N]."""
    power: FloatArray
    """[M, N]."""
    low: FloatArray
    """Lower end of the range of power, [M, N]."""
    high: FloatArray


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class ComparisonPlan(ClassResult):
    """The number of images that a verdict needs, per class and over all classes; M metrics.

    Attributes
    ----------
    classes : list of str, [K]
    per_class : Plan, [K, M]
        Plan of each class, adjusted for all of them.
    total : Plan, [M]
    metrics : list of str, [M]
    curve : PowerCurve
    target : float
        The requested power.
    confidence : float
        Verdicts are wrong with a probability of at most 1 - this.
    image_count : int
        Number of given images, or groups of images, including those without objects.
    unit : {"image", "group"}
    is_observed : bool
        Whether the plan is for the observed differences.
    """

    per_class: Plan
    total: Plan
    metrics: list[str]
    curve: PowerCurve
    target: float
    confidence: float
    image_count: int
    unit: str
    is_observed: bool

    def second_axis(self) -> dict[str, list[str]]:
        """Name the metrics."""
        return {"metric": self.metrics}

    def frame_of(self, classes: Sequence[str], values: Plan) -> pd.DataFrame:
        """Build the table; numbers of images are integers, and missing if undefined or infinite."""
        frame = super().frame_of(classes, values)
        for name in ("images_needed", "images_needed_low", "images_needed_high"):
            frame[name] = frame[name].where(np.isfinite(frame[name])).astype("Int64")
        return frame

    def curve_frame(self) -> pd.DataFrame:
        """Return one row per metric and number of images: ``metric, images, power, low, high``."""
        import pandas as pd

        M, N = self.curve.power.shape
        return pd.DataFrame(
            {
                "metric": np.repeat(np.array(self.metrics, dtype=object), N),
                "images": np.tile(self.curve.images.astype(np.int64), M),
                **{name: getattr(self.curve, name).ravel() for name in ("power", "low", "high")},
            }
        )

    @property
    def sentences(self) -> list[str]:
        """Describe the plan over all classes, metric by metric, and its caveats."""
        sentences = [text for m in range(len(self.metrics)) for text in self._sentences_of(m)]
        if self.is_observed:
            sentences.append(
                "Planning for the observed difference is optimistic, because observed differences tend "
                "to be too large. Plan for the smallest difference that matters: --difference (in Python "
                "difference=)."
            )
        return sentences

    def _sentences_of(self, m: int) -> list[str]:
        plan, name = Plan(*(np.asarray(values)[m] for values in self.total)), self.metrics[m]
        here = counted(self.image_count, self.unit)
        if math.isnan(plan.detectable):
            few = counted(int(plan.images), self.unit)
            least = LEAST_UNITS if self.unit == "image" else LEAST_UNITS_OF_VERDICT
            why = f"only {few} with objects" if plan.images < least else "the results do not differ"
            return [f"No plan for {name}: {why}."]
        return [self._detectable_sentence(plan, name, here), self._needed_sentence(plan, name, here)]

    def _detectable_sentence(self, plan: Plan, name: str, here: str) -> str:
        how = f"with power {self.target:g} at the {100 * (1 - self.confidence):.4g}% level"
        if math.isinf(plan.detectable):
            return f"This data set ({here}) cannot show any difference in {name} {how}."
        low, middle, high = _hundredths(plan.detectable_low, plan.detectable, plan.detectable_high)
        return (
            f"This data set ({here}) can show differences in {name} of {middle} points or more ({low} to "
            f"{high}) {how}."
        )

    def _needed_sentence(self, plan: Plan, name: str, here: str) -> str:
        if not abs(plan.difference) > NEGLIGIBLE:
            return (
                f"The observed difference in {name} is 0: set the difference to plan for with "
                "--difference (in Python difference=)."
            )
        (wanted,) = _hundredths(abs(plan.difference))
        which = f"{'The observed' if self.is_observed else 'A'} difference of {wanted} {name}"
        if not math.isfinite(plan.images_needed):
            return f"{which} needs more {self.unit}s than can be planned."
        needed = counted(int(plan.images_needed), self.unit)
        if math.isfinite(plan.images_needed_high):
            ends = f"{plan.images_needed_low:,.0f} to {plan.images_needed_high:,.0f}"
        else:
            ends = f"{plan.images_needed_low:,.0f} or more" + (": it may be 0" if self.is_observed else "")
        return f"{which} needs {needed} ({ends}); with {here} the power is {plan.power:.2f}."


def _hundredths(*values: float) -> list[str]:
    """Format values times 100 with the decimals that two digits of the smallest need, at most four."""
    least = min((100 * value for value in values if 0 < value < math.inf), default=1.0)
    decimals = min(max(1 - math.floor(math.log10(least)), 0), 4)
    return [f"{100 * min(value, 1.0):.{decimals}f}" for value in values]


def plan_comparison(
    first: Evaluation,
    other: Evaluation,
    *,
    difference: float | None = None,
    power: float = 0.8,
    confidence: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
    metrics: Sequence[str] | None = None,
    group: Group = None,
    progress: bool = False,
    workers: Workers = "auto",
) -> ComparisonPlan:
    """Compute the difference of two detectors that these images can show, and the number of images needed.

    Parameters
    ----------
    first, other : Evaluation
        Results with one ground truth and protocol, as similar as possible to those that will be compared: two
        versions of a model need fewer images than two models.
    difference : float, optional
        The difference to detect, over all classes and in each of them, in (0, 1] (default: the observed one).
    power : float, default 0.8
        The probability of detecting it, in [0.5, 0.999].
    confidence : float, default 0.95
        Confidence of the verdicts.
    resamples : int, default 1000
        Number of draws, and of swaps.
    seed : int, default 0
    metrics : sequence of str, optional
        Names of summary metrics; by default the first one of the summary.
    group : str or sequence, optional
        Images that are drawn and swapped together, as in
        :func:`~boxscore.extensions.diagnostics.bootstrap.bootstrap_intervals`; the plan is then a number of
        groups.
    progress : bool, default False
        Show progress bars if stderr is a terminal.
    workers : int or "auto", default "auto"
        Processes that share the draws and swaps if that is faster, as for :func:`boxscore.evaluate`. The
        result is the same.

    Returns
    -------
    ComparisonPlan

    Raises
    ------
    InputError
        When an option is out of range, the images, objects, classes or protocols differ, or there are too few
        images or groups for a plan.

    Examples
    --------
    >>> from boxscore import Detections, GroundTruth, evaluate
    >>> images, labels, boxes = range(40), ["cat"] * 40, [[0, 0, 9, 9]] * 40
    >>> truth = GroundTruth.from_arrays(images, labels, boxes)
    >>> one, other = (Detections.from_arrays(images[:n], labels[:n], boxes[:n], [0.9] * n) for n in (32, 36))
    >>> plan = plan_comparison(evaluate(truth, one), evaluate(truth, other), metrics=["AR100"])
    >>> round(float(plan.total.delta[0]), 6), bool(plan.total.images_needed[0] > 40)
    (0.1, True)
    """
    # Check the options and the results; by default, use only the first metric.
    if difference is not None:
        difference = checks.number_between(difference, 0, 1, name="difference", open_low=True)
    target = checks.number_between(power, 0.5, 0.999, name="power")
    checks.number_between(confidence, 0.5, 0.9999, name="confidence")
    check_comparable(["first", "other"], [first, other])
    rows = chosen_rows(first, metrics)[: None if metrics else 1]
    warn_of_frames(first, group)
    # Count the units behind each value; with too few, the plan is undefined.
    units = units_of_images(first, group)
    size = unit_count(first._image_count, units)
    counts = units_of_values(first, rows, units)
    enough = _enough(counts, units)
    shared: dict[str, Any] = {"resamples": resamples, "seed": seed, "units": units}
    shared |= {"progress": progress, "workers": workers}
    # Use the same draws for both results to pair differences; correct their standard deviation for n - 1.
    both = [resampled_metrics(result, rows, **shared) for result in (first, other)]
    delta, draws = both[1][0] - both[0][0], both[1][1] - both[0][1]
    low, high = intervals_that_hold(draws, delta, confidence, "expanded_percentile", counts, units)
    error = spread(draws) * np.sqrt(counts / np.maximum(counts - 1, 1))
    # Swaps give the standard deviation between equal detectors, and the critical value adjusted for all
    # classes.
    equal, level = error, np.full(delta.shape, (1 + confidence) / 2)
    if first._holds_matches and other._holds_matches:
        swapped = swapped_differences(first, other, rows, **shared).values
        # Drop the observed order, unless all swaps are made.
        at_random = swapped[1:] if len(swapped) > resamples else swapped
        equal = _spread_of_equal(at_random, delta, error, counts)
        level[:, :-1] = _level_among_classes(swapped, confidence)[:, None]
    # The standard deviation is itself uncertain: estimate its degrees of freedom by leaving out units.
    stage("how certain the spread is")
    freedom = _freedom_of_spread(first, other, rows, units, size, seed, resamples, counts, workers=workers)
    wanted = np.abs(delta) if difference is None else np.where(np.isfinite(delta), difference, np.nan)
    # Fill the plan entry by entry, if the difference varies and there are enough units.
    plans = np.full((len(Plan._fields), *delta.shape), np.nan)
    plans[0], plans[1], plans[6] = counts, delta, delta if difference is None else wanted
    says = enough & (error > NEGLIGIBLE) & np.isfinite(equal)
    tests = np.full(delta.shape, None)
    for place in map(tuple, np.argwhere(says)):
        of_equal, deviation = float(equal[place]), float(error[place])
        test = _Test(of_equal, deviation, size, float(counts[place]) / size, float(level[place]))
        tests[place] = test
        # Find the smallest detectable difference, with a range from the uncertainty of the standard
        # deviation.
        ratios = _variance_range(float(freedom[place]))
        seen = [_possible(test.detectable(target) * math.sqrt(ratio)) for ratio in (1.0, *ratios)]
        plans[(slice(2, 6), *place)] = (deviation, *seen)
        to_see = float(wanted[place])
        if not to_see > NEGLIGIBLE:
            continue
        # Find the units needed for the planned difference, with the range of the observed one if that is
        # planned for.
        if difference is None:
            ratios = _with_interval(ratios, *(float(values[place]) for values in (delta, low, high)))
        needed = test.needed(to_see, target)
        numbers = [_whole(max(needed * ratio, test.least)) for ratio in (1.0, *ratios)]
        plans[(slice(7, None), *place)] = (test.power(to_see, size), *numbers)
    # Compute the power curve of all classes together, and split the columns.
    curve = _curve(tests[:, -1].tolist(), wanted[:, -1], freedom[:, -1], size)
    per_class, total = (
        Plan(values[0].astype(np.int64), *values[1:])
        for values in (plans[..., :-1].swapaxes(1, 2), plans[..., -1])
    )
    return unchangeable(
        ComparisonPlan(
            first.labels,
            per_class,
            total,
            [row.key for row in rows],
            curve,
            target,
            confidence,
            size,
            "image" if units is None else "group",
            difference is None,
        )
    )


def _spread_of_equal(
    exchanged: FloatArray, delta: FloatArray, error: FloatArray, counts: NDArray[np.int64]
) -> FloatArray:
    """Return the standard deviation of swaps, [rows, K + 1], without the part of the observed difference."""
    squares = (exchanged**2).mean(axis=0) - delta**2 / np.maximum(counts, 1)
    # The square of a large difference is only approximately that part: the rest may be too small.
    spread_of_equal: FloatArray = np.sqrt(np.maximum(squares, error**2 / 4))
    return spread_of_equal


def _enough(counts: NDArray[np.int64], units: Units | None) -> NDArray[np.bool_]:
    """Return whether enough units support a plan, [rows, K + 1]; raise an error if no row has enough."""
    least = LEAST_UNITS if units is None else LEAST_UNITS_OF_VERDICT
    enough = enough_units(counts, units)
    enough[:, -1] &= counts[:, -1] >= least
    if not enough[:, -1].any():
        raise InputError(
            ("images" if units is None else "groups of images") + " with objects",
            f"be at least {least} to plan from",
            got=int(counts[:, -1].max(initial=0)),
            cause="fewer do not determine the variance of a difference well enough",
        )
    return enough


def _whole(images: float) -> float:
    return float(math.ceil(images - 1e-9)) if images < MOST_IMAGES else math.inf


def _possible(difference: float) -> float:
    return difference if difference <= 1 else math.inf


@dataclasses.dataclass(frozen=True)
class _Test:
    """The swap test of one metric, from the standard deviations of equal detectors and of the difference."""

    equal: float
    spread: float
    size: int
    share: float
    """Fraction of the units that have an object."""
    level: float
    """Probability below the critical value."""

    @property
    def least(self) -> float:
        """Return the minimum number of units for a verdict."""
        return float(math.ceil(LEAST_UNITS_OF_VERDICT / self.share))

    def _terms(self, units: float) -> tuple[float, float]:
        """Return the critical value's shift of power, and the statistic's standard deviation: 26.7.10."""
        freedom = max(int(units * self.share) - 1, 1)
        # Two digits suffice, so quantiles are computed once.
        if freedom >= 100:
            digits = 10 ** (len(str(freedom)) - 2)
            freedom = freedom // digits * digits
        critical = student_quantile(self.level, freedom)
        return critical * (1 - 1 / (4 * freedom)), math.sqrt(
            (self.spread / self.equal) ** 2 + critical**2 / (2 * freedom)
        )

    def power(self, difference: float, units: float) -> float:
        """Return the probability of a verdict with the right sign."""
        if units * self.share < LEAST_UNITS_OF_VERDICT:
            return 0.0
        critical, scale = self._terms(units)
        return NORMAL.cdf((difference / self.equal * math.sqrt(units / self.size) - critical) / scale)

    def _standardized(self, power: float, units: float) -> float:
        """Return the detectable difference, in standard deviations of equal detectors for these units."""
        critical, scale = self._terms(units)
        return critical + NORMAL.inv_cdf(power) * scale

    def detectable(self, power: float) -> float:
        """Return the smallest difference that is detected with this power."""
        return self._standardized(power, self.size) * self.equal

    def needed(self, difference: float, power: float) -> float:
        """Return the number of units, unrounded, consistent with its own degrees of freedom."""
        units = MOST_IMAGES
        for _ in range(20):
            known = units
            units = self.size * (self._standardized(power, known) * self.equal / difference) ** 2
            units = min(max(units, self.least), MOST_IMAGES)
            if abs(units - known) < 0.5:
                break
        return units


def _level_among_classes(values: FloatArray, confidence: float) -> FloatArray:
    """Return the normal-quantile probability below the critical value of one class among all; [rows].

    ``values`` are swapped differences, [swaps, rows, K + 1].
    """
    differences = np.abs(np.where(np.isnan(values), 0.0, values)[..., :-1])
    scale = np.sqrt((differences**2).mean(axis=0))
    varies = scale > NEGLIGIBLE
    scaled = np.where(varies, differences / np.where(varies, scale, 1.0), 0.0)
    largest = np.quantile(scaled.max(axis=2, initial=0.0), confidence, axis=0)
    plain = (1 + confidence) / 2
    return np.array([min(max(NORMAL.cdf(float(each)), plain), 1 - 1e-9) for each in largest])


def _freedom_of_spread(
    first: Evaluation,
    other: Evaluation,
    rows: Sequence[SummaryRow],
    units: Units | None,
    size: int,
    seed: int,
    resamples: int,
    counts: NDArray[np.int64],
    *,
    workers: Workers,
) -> FloatArray:
    """Return the chi-square degrees of freedom of the variance, [rows, K + 1].

    A variance is the sum of the squares of the units. Normal units have one degree of freedom each, minus
    one; if a few units dominate the sum, there are fewer.
    """
    parts = min(size, MOST_LEFT_OUT)
    part = (np.random.default_rng(seed).permutation(size) % parts).astype(np.uint16)
    left_out = LeftOut(part if units is None else part[units], 0, parts)
    of_first, of_other = (
        each._weighted_metrics(rows, left_out, workers=workers).values for each in (first, other)
    )
    values = of_other - of_first
    defined = np.isfinite(values)
    mean = np.where(defined, values, 0.0).sum(axis=0) / np.maximum(defined.sum(axis=0), 1)
    squares = np.where(defined, values - mean, 0.0) ** 2
    total = squares.sum(axis=0)
    uneven = (squares**2).sum(axis=0) / np.where(total > 0, total, 1.0) ** 2 - 1 / parts
    of_units = 2 / np.maximum(np.minimum(counts, parts) - 1, 1)
    return np.asarray(2 / (np.maximum(uneven, of_units) + 2 / resamples))


def _variance_range(freedom: float) -> tuple[float, float]:
    """Return the ends of the range of a variance, relative to its estimate."""
    reach = NORMAL.inv_cdf((1 + RANGE) / 2)
    step = 2 / (9 * freedom)
    above, below = ((1 - step + sign * reach * math.sqrt(step)) ** 3 for sign in (1, -1))
    return 1 / above, 1 / below if below > 0 else math.inf


def _with_interval(shares: tuple[float, float], delta: float, low: float, high: float) -> tuple[float, float]:
    """Widen the relative range of a number of units by the interval of the difference."""
    near, far = sorted((low, high), key=abs)
    ends = (delta / far) ** 2 if far else 1.0, (delta / near) ** 2 if near * delta > 0 else math.inf
    if math.isinf(ends[1]) or math.isnan(ends[1]) or math.isinf(shares[1]):
        upper = math.inf
    else:
        upper = math.exp(math.hypot(math.log(shares[1]), math.log(max(ends[1], 1.0))))
    return math.exp(-math.hypot(math.log(shares[0]), math.log(min(ends[0], 1.0)))), upper


def _curve(tests: Sequence[_Test | None], wanted: FloatArray, freedom: FloatArray, size: int) -> PowerCurve:
    """Compute power by number of units, from too few until all metrics are nearly certain."""
    images: list[int] = []
    columns: list[FloatArray] = []
    for number in _round_numbers(size):
        values = np.full((3, len(tests)), np.nan)
        for m, test in enumerate(tests):
            if test is not None and wanted[m] > NEGLIGIBLE:
                shares = _variance_range(freedom[m])
                widths = (1.0, math.sqrt(shares[1]), math.sqrt(shares[0]))
                values[:, m] = [test.power(wanted[m] / width, number) for width in widths]
        images.append(number)
        columns.append(values)
        if number > size and not (values[0] < 0.99).any():
            break
    power, low, high = np.stack(columns, axis=-1)
    return PowerCurve(np.array(images, dtype=np.float64), power, low, high)


def _round_numbers(size: int) -> list[int]:
    """Return the numbers of units for a curve: 1, 2, 5, 10, ... around the given number, and this one."""
    first = max(LEAST_UNITS_OF_VERDICT, size // 20)
    numbers = [digit * 10**power for power in range(9) for digit in (1, 2, 5)]
    return sorted({size, *(number for number in numbers if first <= number <= 1000 * size)})
