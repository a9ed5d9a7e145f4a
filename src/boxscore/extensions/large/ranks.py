"""Find values by rank among numbers that are in several arrays, each sorted.

Conventions
-----------
- A rank counts from 0 at the lowest. Its value is found digit by digit, from how many numbers are lower.
- Numbers are read as integers of 64 bits that have their order, *keys*. How many are lower adds up over the
  places, so what is found has the bits of one sorted array. -0 is 0, and there is no NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import FloatArray, IntArray, KeyArray

Lower = Callable[[KeyArray], Any]
"""Counts the numbers of all places that are lower than keys of any shape."""

DIGIT_BITS = 8
"""Bits of a key that are found at a time."""

SIGN = np.uint64(1 << 63)


def sorted_keys(values: NDArray[Any]) -> KeyArray:
    """Return the keys of numbers, ascending, [N]."""
    bits = (values.astype(np.float64) + 0.0).view(np.uint64)
    return np.sort(np.where(bits & SIGN, ~bits, bits | SIGN))


def lower_in(keys: KeyArray, tried: KeyArray) -> IntArray:
    """Count the keys of one place that are lower."""
    return np.searchsorted(keys, tried, side="left")


def values_of_ranks(ranks: IntArray, lower: Lower) -> FloatArray:
    """Return the number of each rank, [R]."""
    found = np.zeros(len(ranks), dtype=np.uint64)
    # Find the key of each rank from its highest digit down: the key is the largest one with at most ``rank``
    # lower numbers. All 255 candidates of a digit are counted in one call, so each place is asked eight
    # times.
    for shift in range(64 - DIGIT_BITS, -1, -DIGIT_BITS):
        tried = found[:, None] | (np.arange(1, 1 << DIGIT_BITS, dtype=np.uint64) << np.uint64(shift))
        digit = (lower(tried) <= ranks[:, None]).sum(axis=1).astype(np.uint64)
        found |= digit << np.uint64(shift)
    # Undo the mapping from floats to ordered integers; the bits of the number come back.
    return np.where(found & SIGN, found ^ SIGN, ~found).view(np.float64)


def quantiles(count: int, shares: FloatArray, lower: Lower) -> FloatArray:
    """Interpolate between two of ``count`` numbers as :func:`numpy.quantile` does, to the bit; [S]."""
    # Find the two neighbors of each share; each distinct rank is searched once.
    at = (count - 1) * shares
    low = np.floor(at).astype(np.int64)
    high = np.minimum(low + 1, count - 1)
    ranks, back = np.unique(np.concatenate([low, high]), return_inverse=True)
    below, above = values_of_ranks(ranks, lower)[back.ravel()].reshape(2, -1)
    # Interpolate from the nearer neighbor, as NumPy does, or the last bit could differ.
    part, step = at - low, above - below
    return np.where(part >= 0.5, above - step * (1 - part), below + step * part)
