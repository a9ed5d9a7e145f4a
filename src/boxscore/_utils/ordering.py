"""Stable orders, fast: the sort keys of the hot path.

Conventions
-----------
Every function returns positions (``intp``) such that ``values[positions]`` is ordered and equal values
keep the order they came in. Two facts make this quick in NumPy:

1. ``argsort(kind="stable")`` of 16-bit integers is a radix sort: no comparisons, and several times faster
   than any sort of wider keys. Wider keys are sorted by their 16-bit digits, the lowest first; digits in
   which no two keys differ are skipped.
2. The order by (class, score, image, row) is a chain of stable orders, the last key first.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["descending_order", "ragged_ranges", "run_starts", "stable_order"]

Positions = NDArray[np.intp]

DIGIT_BITS = 16


def stable_order(keys: NDArray[Any], size: int) -> Positions:
    """Order integers in [0, size) ascending.

    Parameters
    ----------
    keys : ndarray of int, [N]
    size : int
        One more than the largest key possible.

    Returns
    -------
    ndarray of intp, [N]
    """
    if len(keys) < 2 or size < 2 or bool((keys[1:] >= keys[:-1]).all()):
        return np.arange(len(keys))
    if size <= 1 << DIGIT_BITS:
        return np.argsort(keys.astype(np.uint16), kind="stable")
    return _radix_order(keys.astype(np.uint64))


def descending_order(scores: NDArray[np.float64]) -> Positions:
    """Order finite float64 numbers descending; -0.0 equals 0.0.

    The bits of a positive float order like an integer; those of a negative one the other way round.

    Parameters
    ----------
    scores : ndarray of float64, [N]

    Returns
    -------
    ndarray of intp, [N]
    """
    if len(scores) < 2:
        return np.arange(len(scores))
    bits = (scores + 0.0).view(np.int64)  # adding 0.0 makes 0.0 of -0.0
    if scores.min() < 0:
        bits = np.where(bits < 0, bits ^ np.int64(0x7FFF_FFFF_FFFF_FFFF), bits)
    # How far below the highest: unsigned arithmetic wraps, so this holds for all signs.
    return _radix_order(bits.max().astype(np.uint64) - bits.astype(np.uint64))


def _radix_order(keys: NDArray[np.uint64]) -> Positions:
    """Order unsigned integers ascending, digit by digit from the lowest that differs."""
    varying = int(np.bitwise_or.reduce(keys ^ keys[0]))
    shift = (varying & -varying).bit_length() - 1
    order: Positions | None = None
    while varying >> max(shift, 0):
        if (varying >> shift) & ((1 << DIGIT_BITS) - 1):
            digit = (keys >> np.uint64(shift)).astype(np.uint16)
            if order is None:
                order = np.argsort(digit, kind="stable")
            else:
                order = np.take(order, np.argsort(np.take(digit, order), kind="stable"))
        shift += DIGIT_BITS
    return np.arange(len(keys)) if order is None else order


def run_starts(keys: NDArray[Any]) -> Positions:
    """Positions at which a new run of equal neighbours starts."""
    if not len(keys):
        return np.empty(0, dtype=np.intp)
    return np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))


def ragged_ranges(starts: NDArray[Any], counts: NDArray[Any]) -> Positions:
    """Concatenate ``range(start, start + count)`` over all rows.

    Examples
    --------
    >>> ragged_ranges(np.array([5, 0]), np.array([3, 2])).tolist()
    [5, 6, 7, 0, 1]
    """
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    return np.repeat(starts - (ends - counts), counts) + np.arange(total)
