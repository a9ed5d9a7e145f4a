"""Draws with replacement, and intervals from what was computed on each draw.

Conventions
-----------
The draws depend only on the seed and on how many there are to draw from.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import NormalDist
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore._utils.progress import progress as shown

__all__ = [
    "LARGEST_SEED",
    "MOST_RESAMPLES",
    "Method",
    "check_intervals",
    "draw_weights",
    "interval",
    "spread",
]

FloatArray = NDArray[np.float64]
Method = Literal["bias_corrected", "percentile"]

MOST_RESAMPLES = 10_000_000
LARGEST_SEED = 2**128 - 1


def check_intervals(confidence: float, method: str) -> None:
    """Check what intervals are asked for."""
    checks.number_between(confidence, 0, 1, name="confidence", open_low=True)
    checks.one_of(method, get_args(Method), name="method")


def draw_weights(images: int, resamples: int, *, seed: int, progress: bool = False) -> Iterator[FloatArray]:
    """Yield, for each draw, how often each image was drawn, [images]."""
    checks.whole_number(resamples, 1, name="resamples", high=MOST_RESAMPLES)
    checks.whole_number(seed, 0, name="seed", high=LARGEST_SEED)
    random = np.random.default_rng(seed)
    draws = range(resamples)
    for _ in shown(draws, desc="bootstrap", unit="draw") if progress else draws:
        drawn = random.integers(0, images, images)
        yield np.bincount(drawn, minlength=images).astype(np.float64)


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
