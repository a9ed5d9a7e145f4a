"""Draw units with replacement, swap the results of two detectors, and compute intervals from draws.

Conventions
-----------
- A *unit* is drawn or swapped as a whole: an image, or a group of images (a video, a patient).
- The draws depend only on the seed and on the number of units.
- Intervals are expanded percentiles of the draws. Plain percentiles of few units are too narrow, by the
  factor sqrt(n / (n - 1)) and by the ratio of Student's t to the normal distribution. ``"percentile"`` gives
  plain percentiles, ``"bias_corrected"`` shifts them.
- Weights of many images are large, so sets of weights are made lazily, one at a time. Their descriptions are
  small, and can be pickled.

References
----------
T. C. Hesterberg, "What Teachers Should Know About the Bootstrap", The American Statistician 69, 2015
(expanded percentiles). B. Efron and R. J. Tibshirani, *An Introduction to the Bootstrap*, 1993, chapters 13
and 14. M. Abramowitz and I. A. Stegun, *Handbook of Mathematical Functions*, 26.7 (Student's t).
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterator
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore._utils.array_types import FloatArray, IntArray
from boxscore._utils.progress import progress as shown

Method = Literal["expanded_percentile", "percentile", "bias_corrected"]

Units = NDArray[np.int32]
"""Unit of each image, [images], numbered from 0."""

MOST_RESAMPLES = 10_000_000
LARGEST_SEED = 2**128 - 1
MANY_DEGREES = 1000

LEAST_UNITS, LEAST_UNITS_OF_CLASS, LEAST_GROUPS = 10, 5, 5
"""Minimum number of images, of images with the class, and of groups for the interval of a difference."""

LEAST_UNITS_OF_TOTAL, LEAST_UNITS_OF_AREA, LEAST_GROUPS_OF_TOTAL = 20, 30, 8
"""Minimum number of images for the interval of a metric over all classes: of all sizes, and of one area range
alone; and of groups."""

LEAST_UNITS_OF_VERDICT = 6
"""Minimum number of units for a verdict: 5 units have 2 ** 4 swaps, too few for significance."""


def check_intervals(confidence: float, method: str) -> None:
    """Check the options of intervals."""
    checks.number_between(confidence, 0, 1, name="confidence", open_low=True)
    checks.one_of(method, get_args(Method), name="method")


def unit_count(images: int, units: Units | None) -> int:
    """Return the number of units; None: each image is a unit."""
    return images if units is None else int(units.max(initial=-1)) + 1


@dataclasses.dataclass(frozen=True, eq=False)
class Draws:
    """Draws of units with replacement, as sets of weights: the number of times that each image was drawn."""

    images: int
    count: int
    state: Any
    """State of the generator before the first draw."""
    units: Units | None = None

    @classmethod
    def of_seed(cls, images: int, resamples: int, seed: int, units: Units | None = None) -> Draws:
        """Make the draws of a seed."""
        return cls(images, resamples, _state_of(resamples, seed), units)

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[FloatArray]:
        """Yield how often each image was drawn, [images]."""
        random, size = _generator(self.state), unit_count(self.images, self.units)
        for _ in range(self.count):
            times = np.bincount(random.integers(0, size, size), minlength=size).astype(np.float64)
            yield times if self.units is None else times[self.units]

    def batches(self, size: int) -> Iterator[Draws]:
        """Split into runs of at most ``size`` draws."""
        random, count = _generator(self.state), unit_count(self.images, self.units)
        for first in range(0, self.count, size):
            state = random.bit_generator.state
            yield dataclasses.replace(self, count=min(size, self.count - first), state=state)
            for _ in range(size if first + size < self.count else 0):
                random.integers(0, count, count)


def _state_of(resamples: int, seed: int) -> Any:
    checks.whole_number(resamples, 1, name="resamples", high=MOST_RESAMPLES)
    checks.whole_number(seed, 0, name="seed", high=LARGEST_SEED)
    return np.random.PCG64(seed).state


def _generator(state: Any) -> np.random.Generator:
    bits = np.random.PCG64()
    bits.state = state
    return np.random.Generator(bits)


@dataclasses.dataclass(frozen=True, eq=False)
class Swaps:
    """Swaps of two detectors' results: none first, then all if they are few, or random ones.

    Each swap has two sets of weights of 2 x images virtual images, with those of the first detector at even
    positions: the results credited to the first detector, then those of the other. Swapping all other units
    gives the opposite difference, so complements are left out if all swaps are made.
    """

    images: int
    count: int
    state: Any
    every: bool
    units: Units | None = None
    first: int = 0
    """Number of the first swap; number 0 swaps nothing."""

    @classmethod
    def of_seed(cls, images: int, resamples: int, seed: int, units: Units | None = None) -> Swaps:
        """Make the swaps of a seed, at most as many as requested."""
        state, free = _state_of(resamples, seed), max(unit_count(images, units) - 1, 0)
        every = free < 63 and 1 << free <= resamples
        return cls(images, 1 << free if every else resamples + 1, state, every, units)

    def __len__(self) -> int:
        return 2 * self.count

    def __iter__(self) -> Iterator[FloatArray]:
        """Yield the weights of the virtual images, [2 x images]."""
        random = _generator(self.state)
        for number in range(self.first, self.first + self.count):
            exchanged = self._swapped_units(number, random)
            if self.units is not None:
                exchanged = exchanged[self.units]
            weights = np.empty(2 * self.images)
            weights[::2], weights[1::2] = 1 - exchanged, exchanged
            yield weights
            yield 1 - weights

    def batches(self, size: int) -> Iterator[Swaps]:
        """Split into runs of at most ``size`` sets, or one more: a swap has two."""
        random, step, end = _generator(self.state), -(-size // 2), self.first + self.count
        for first in range(self.first, end, step):
            count = min(step, end - first)
            yield dataclasses.replace(self, first=first, count=count, state=random.bit_generator.state)
            for number in range(first, first + count):
                self._swapped_units(number, random)

    def _swapped_units(self, number: int, random: np.random.Generator) -> FloatArray:
        """Return whether each unit is swapped, [units]."""
        size = unit_count(self.images, self.units)
        if self.every or not number:
            return (number >> np.arange(size) & 1).astype(np.float64)
        return random.integers(0, 2, size).astype(np.float64)


@dataclasses.dataclass(frozen=True, eq=False)
class Groups:
    """Groups of images as sets of weights: 1 for the images of a group, 0 for the others."""

    number: NDArray[np.unsignedinteger[Any]]
    """Group of each image, [images]; any other number for images without a group."""
    first: int
    end: int
    """Groups [first, end)."""

    def __len__(self) -> int:
        return self.end - self.first

    def __iter__(self) -> Iterator[FloatArray]:
        """Yield the weights of each group, [images]."""
        for group in range(self.first, self.end):
            yield (self.number == group).astype(np.float64)

    def batches(self, size: int) -> Iterator[Groups]:
        """Split into runs of at most ``size`` groups."""
        for first in range(self.first, self.end, size):
            yield dataclasses.replace(self, first=first, end=min(first + size, self.end))


@dataclasses.dataclass(frozen=True, eq=False)
class LeftOut(Groups):
    """All images except those of one group each, as sets of weights: 0 for its images, 1 for the others."""

    def __iter__(self) -> Iterator[FloatArray]:
        """Yield the weights without each group, [images]."""
        for group in range(self.first, self.end):
            yield (self.number != group).astype(np.float64)


def draw_weights(images: int, resamples: int, *, seed: int, progress: bool = False) -> Iterator[FloatArray]:
    """Yield, for each draw, how often each image was drawn, [images]."""
    draws = Draws.of_seed(images, resamples, seed)
    yield from shown(draws, total=resamples, desc="bootstrap", unit="draw") if progress else draws


def interval(
    draws: FloatArray, value: FloatArray, confidence: float, method: Method, units: Any = math.inf
) -> tuple[FloatArray, FloatArray]:
    """Return the ends of the interval of the draws (axis 0); NaN if no draw is defined.

    ``units`` is the number of units of each value, one number or an array of the shape of ``value``. Expanded
    percentiles of fewer units are wider; below two units they are NaN.
    """
    from statistics import NormalDist

    # Both ends are this many standard deviations out; the values are flattened to [V], draws to [draws, V].
    normal = NormalDist()
    upper = (1 + min(confidence, 1 - 1e-9)) / 2
    plain = normal.inv_cdf(upper)
    counts = np.broadcast_to(np.asarray(units, dtype=np.float64), value.shape).ravel()
    ends = np.full((2, value.size), np.nan)
    columns = zip(draws.reshape(len(draws), -1).T, value.ravel(), counts.tolist(), strict=True)
    for i, (column, whole, count) in enumerate(columns):
        # Sort the draws that define the value; a value that no draw defines stays NaN.
        defined = np.sort(column[np.isfinite(column)])
        if not len(defined):
            continue
        shift, reach = 0.0, plain
        # Widen the interval of few units: by sqrt(n / (n - 1)), and by Student's t instead of the normal
        # distribution.
        if method == "expanded_percentile" and math.isfinite(count):
            if count < 2:
                continue
            reach = math.sqrt(count / (count - 1)) * student_quantile(upper, int(count) - 1)
        # Shift both ends by the offset of the value from the median of its draws. Equal draws count half,
        # with a tolerance for rounding; the edge keeps the quantile finite.
        if method == "bias_corrected" and np.isfinite(whole):
            below = np.searchsorted(defined, [whole - 1e-12, whole + 1e-12]).mean() / len(defined)
            edge = 0.5 / len(defined)
            shift = 2 * normal.inv_cdf(min(max(below, edge), 1 - edge))
        shares = np.array([normal.cdf(shift - reach), normal.cdf(shift + reach)])
        ends[:, i] = quantiles_by_rank(len(defined), shares, defined.take)
    return ends[0].reshape(value.shape), ends[1].reshape(value.shape)


def quantiles_by_rank(
    count: int, shares: FloatArray, values_at: Callable[[IntArray], FloatArray]
) -> FloatArray:
    """Interpolate between two of ``count`` numbers as :func:`numpy.quantile` does, to the bit; [S].

    ``values_at`` returns the numbers at some ranks. NumPy would sort sorted numbers again, and import its
    masked arrays.
    """
    # Find the two neighbors of each quantile.
    at = (count - 1) * shares
    low = np.floor(at).astype(np.int64)
    high = np.minimum(low + 1, count - 1)
    below, above = values_at(np.concatenate([low, high])).reshape(2, -1)
    # Interpolate from the nearer neighbor, as NumPy does, or the last bit could differ.
    part, step = at - low, above - below
    return np.where(part >= 0.5, above - step * (1 - part), below + step * part)


@functools.cache
def student_quantile(probability: float, freedom: int) -> float:
    """Return the quantile of Student's t, for a probability of at least one half."""
    from statistics import NormalDist

    x = NormalDist().inv_cdf(probability)
    # 26.7.5; the next term is below 1e-11.
    if freedom > MANY_DEGREES:
        terms = (
            (x**3 + x) / 4,
            (5 * x**5 + 16 * x**3 + 3 * x) / 96,
            (3 * x**7 + 19 * x**5 + 17 * x**3 - 15 * x) / 384,
            (79 * x**9 + 776 * x**7 + 1482 * x**5 - 1920 * x**3 - 945 * x) / 92160,
        )
        return x + math.fsum(term / freedom**power for power, term in enumerate(terms, start=1))
    # Bisect until no float is between the ends.
    low, high = 0.0, 1.0
    while student_within(high, freedom) < 2 * probability - 1:
        low, high = high, 2 * high
    while (middle := (low + high) / 2) not in (low, high):
        if student_within(middle, freedom) < 2 * probability - 1:
            low = middle
        else:
            high = middle
    return high


def student_within(t: float, freedom: int) -> float:
    """Return the two-sided probability of less than ``t``: 26.7.3 and 26.7.4."""
    angle = math.atan2(t, math.sqrt(freedom))
    sine, cosine = math.sin(angle), math.cos(angle)
    odd: int = freedom % 2
    steps = np.arange(1 + odd, freedom - 2, 2)
    terms = np.cumprod(np.append(1.0, steps / (steps + 1) * cosine**2))
    if not odd:
        return float(sine * terms.sum())
    series = float(sine * cosine * terms.sum()) if freedom > 1 else 0.0
    return float(2 / math.pi * (angle + series))


def spread(draws: FloatArray) -> FloatArray:
    """Return the standard deviation over the draws (axis 0) that define the value; NaN below two."""
    defined = np.isfinite(draws)
    count = defined.sum(axis=0)
    # Replace undefined draws by 0, so that sums over the axis skip them without a mask per column.
    filled = np.where(defined, draws, 0.0)
    mean = filled.sum(axis=0) / np.maximum(count, 1)
    squares = (np.where(defined, draws - mean, 0.0) ** 2).sum(axis=0)
    return np.where(count > 1, np.sqrt(squares / np.maximum(count - 1, 1)), np.nan)
