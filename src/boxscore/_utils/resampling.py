"""Draws with replacement, and intervals from what was computed on each draw.

Conventions
-----------
- The draws depend only on the seed and on the number of images.
- Weights of many images are many numbers: sets of them are made one at a time, wherever they are needed, and
  never held together. What describes them is small, and pickles.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore._utils.array_types import FloatArray
from boxscore._utils.progress import progress as shown

Method = Literal["bias_corrected", "percentile"]

MOST_RESAMPLES = 10_000_000
LARGEST_SEED = 2**128 - 1


def check_intervals(confidence: float, method: str) -> None:
    """Check the options of intervals."""
    checks.number_between(confidence, 0, 1, name="confidence", open_low=True)
    checks.one_of(method, get_args(Method), name="method")


class WeightSets(Protocol):
    """Sets of weights of images, made when they are iterated over."""

    def __len__(self) -> int:
        """Return how many sets there are."""
        ...

    def __iter__(self) -> Iterator[FloatArray]:
        """Yield each set, [images]; the same ones every time."""
        ...

    def batches(self, size: int) -> Iterator[WeightSets]:
        """Cut them into runs of at most ``size`` sets."""
        ...


@dataclasses.dataclass(frozen=True, eq=False)
class Draws:
    """Draws of images with replacement, as sets of weights: how many times each image was drawn."""

    images: int
    count: int
    state: Any
    """Of the generator, before the first draw."""

    @classmethod
    def of_seed(cls, images: int, resamples: int, seed: int) -> Draws:
        """Describe the draws of a seed."""
        checks.whole_number(resamples, 1, name="resamples", high=MOST_RESAMPLES)
        checks.whole_number(seed, 0, name="seed", high=LARGEST_SEED)
        return cls(images, resamples, np.random.PCG64(seed).state)

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[FloatArray]:
        """Yield how many times each image was drawn, [images]."""
        random = self._generator()
        for _ in range(self.count):
            yield np.bincount(self._draw(random), minlength=self.images).astype(np.float64)

    def batches(self, size: int) -> Iterator[Draws]:
        """Cut them into runs of at most ``size`` draws."""
        random = self._generator()
        for first in range(0, self.count, size):
            yield Draws(self.images, min(size, self.count - first), random.bit_generator.state)
            for _ in range(size if first + size < self.count else 0):
                self._draw(random)

    def _generator(self) -> np.random.Generator:
        bits = np.random.PCG64()
        bits.state = self.state
        return np.random.Generator(bits)

    def _draw(self, random: np.random.Generator) -> NDArray[np.int64]:
        return random.integers(0, self.images, self.images)


@dataclasses.dataclass(frozen=True, eq=False)
class Groups:
    """Groups of images as sets of weights: 1 for the images of a group, 0 for the others."""

    number: NDArray[np.unsignedinteger[Any]]
    """Group of each image, [images]; any other number where it is in none."""
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
        """Cut them into runs of at most ``size`` groups."""
        for first in range(self.first, self.end, size):
            yield Groups(self.number, first, min(first + size, self.end))


def draw_weights(images: int, resamples: int, *, seed: int, progress: bool = False) -> Iterator[FloatArray]:
    """Yield, for each draw, how many times each image was drawn, [images]."""
    draws = Draws.of_seed(images, resamples, seed)
    yield from shown(draws, total=resamples, desc="bootstrap", unit="draw") if progress else draws


def interval(
    draws: FloatArray, value: FloatArray, confidence: float, method: Method
) -> tuple[FloatArray, FloatArray]:
    """Low and high ends that enclose a share of the draws (axis 0); NaN where no draw is defined.

    Bias correction shifts the percentiles by how far ``value`` is from the draws' median.
    """
    from statistics import NormalDist

    normal = NormalDist()
    z_score = normal.inv_cdf((1 + min(confidence, 1 - 1e-9)) / 2)
    ends = np.full((2, value.size), np.nan)
    for i, (column, estimate) in enumerate(zip(draws.reshape(len(draws), -1).T, value.ravel(), strict=True)):
        defined = np.sort(column[np.isfinite(column)])
        if not len(defined):
            continue
        shift = 0.0
        if method == "bias_corrected" and np.isfinite(estimate):
            below = np.searchsorted(defined, [estimate - 1e-12, estimate + 1e-12]).mean() / len(defined)
            edge = 0.5 / len(defined)
            shift = 2 * normal.inv_cdf(min(max(below, edge), 1 - edge))
        ends[:, i] = np.quantile(defined, [normal.cdf(shift - z_score), normal.cdf(shift + z_score)])
    return ends[0].reshape(value.shape), ends[1].reshape(value.shape)


def spread(draws: FloatArray) -> FloatArray:
    """Take the standard deviation over the draws (axis 0) that define the value; NaN below two."""
    defined = np.isfinite(draws)
    count = defined.sum(axis=0)
    filled = np.where(defined, draws, 0.0)
    mean = filled.sum(axis=0) / np.maximum(count, 1)
    squares = (np.where(defined, draws - mean, 0.0) ** 2).sum(axis=0)
    return np.where(count > 1, np.sqrt(squares / np.maximum(count - 1, 1)), np.nan)
