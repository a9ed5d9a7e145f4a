"""Stable orders, fast: the sort keys of the hot path.

Conventions
-----------
Every function returns positions (``intp``) such that ``values[positions]`` is ordered and equal values
keep the order they came in. Three facts make this quick in NumPy:

1. ``numpy.sort`` of plain int64 runs on vector instructions and beats every kind of ``argsort``. A key
   shifted up with the position in its low bits turns the one into the other, and is stable for nothing.
2. ``argsort(kind="stable")`` of 8- and 16-bit integers is a radix sort.
3. The order by (class, score, image, row) is a chain of stable orders, the last key first.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["descending_order", "ragged_ranges", "run_starts", "stable_order"]

Positions = NDArray[np.intp]


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
    if size <= 1 << 16:
        return np.argsort(keys.astype(np.uint8 if size <= 1 << 8 else np.uint16), kind="stable")
    bits = len(keys).bit_length()
    if size.bit_length() + bits > 63:
        return np.argsort(keys, kind="stable")
    packed = keys.astype(np.int64) << bits
    packed |= np.arange(len(keys))
    packed.sort()
    packed &= (1 << bits) - 1
    return packed.astype(np.intp, copy=False)


def descending_order(scores: NDArray[np.float64]) -> Positions:
    """Order finite float64 numbers descending; -0.0 equals 0.0.

    The bits of a float order like an integer. As many of the high ones as fit beside the position are
    sorted; the few neighbours that differ in lower bits only are put right afterwards.

    Parameters
    ----------
    scores : ndarray of float64, [N]

    Returns
    -------
    ndarray of intp, [N]
    """
    count = len(scores)
    if count < 2:
        return np.arange(count)
    bits = (scores + 0.0).view(np.int64)
    ascending = np.where(bits < 0, bits ^ np.int64(0x7FFF_FFFF_FFFF_FFFF), bits)
    key = np.int64(ascending.max()).astype(np.uint64) - ascending.astype(np.uint64)  # wraps rightly
    position_bits = count.bit_length()
    lost_bits = max(0, int(key.max()).bit_length() + position_bits - 64)
    packed = (key >> np.uint64(lost_bits)) << np.uint64(position_bits)
    packed |= np.arange(count, dtype=np.uint64)
    packed.sort()
    order = (packed & np.uint64((1 << position_bits) - 1)).astype(np.intp)
    if lost_bits:
        _mend_low_bits(order, key, packed >> np.uint64(position_bits))
    return order


def _mend_low_bits(order: Positions, key: NDArray[np.uint64], prefix: NDArray[np.uint64]) -> None:
    """Sort, in place, the runs of equal prefix whose whole keys differ."""
    whole = key[order]
    if not (whole[1:] < whole[:-1]).any():
        return
    run = np.cumsum(np.concatenate([[False], prefix[1:] != prefix[:-1]]))
    wrong = np.unique(run[1:][whole[1:] < whole[:-1]])
    places = np.flatnonzero(np.isin(run, wrong))
    order[places] = order[places][np.lexsort((order[places], whole[places], run[places]))]


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
