"""Select values by rank from several sorted arrays.

Conventions
-----------
- Ranks count from 0 at the lowest value. A value is found digit by digit, by counting lower numbers.
- Numbers are mapped to 64-bit integers with the same order, *keys*. Counts add up over the arrays, so the
  result has the bits of one sorted array. -0 equals 0; NaN is not allowed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import FloatArray, IntArray, KeyArray
from boxscore.extensions.weights.resampling import quantiles_by_rank

Lower = Callable[[KeyArray], Any]
"""Counts the numbers in all arrays that are lower than each key."""

DIGIT_BITS = 8
"""Bits of a key that are found per step."""

SIGN = np.uint64(1 << 63)


def sorted_keys(values: NDArray[Any]) -> KeyArray:
    """Return the sorted keys of numbers, [N]."""
    bits = (values.astype(np.float64) + 0.0).view(np.uint64)
    return np.sort(np.where(bits & SIGN, ~bits, bits | SIGN))


def lower_in(keys: KeyArray, tried: KeyArray) -> IntArray:
    """Count the keys of one array that are lower than each of ``tried``."""
    return np.searchsorted(keys, tried, side="left")


def values_of_ranks(ranks: IntArray, lower: Lower) -> FloatArray:
    """Return the number at each rank, [R]."""
    found = np.zeros(len(ranks), dtype=np.uint64)
    # Find each key from its highest digit down: the largest key with at most ``rank`` lower numbers. All 255
    # candidates of a digit are counted in one call, so each array is searched eight times.
    for shift in range(64 - DIGIT_BITS, -1, -DIGIT_BITS):
        tried = found[:, None] | (np.arange(1, 1 << DIGIT_BITS, dtype=np.uint64) << np.uint64(shift))
        digit = (lower(tried) <= ranks[:, None]).sum(axis=1).astype(np.uint64)
        found |= digit << np.uint64(shift)
    # Map the keys back to floats.
    return np.where(found & SIGN, found ^ SIGN, ~found).view(np.float64)


def quantiles(count: int, shares: FloatArray, lower: Lower) -> FloatArray:
    """Interpolate between two of ``count`` numbers as :func:`numpy.quantile` does, to the bit; [S]."""

    def values_at(ranks: IntArray) -> FloatArray:  # search each distinct rank once
        ranks, back = np.unique(ranks, return_inverse=True)
        return values_of_ranks(ranks, lower)[back.ravel()]

    return quantiles_by_rank(count, shares, values_at)
