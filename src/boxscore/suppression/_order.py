"""Stable orders of scores, groups and cells.

Goal
----
Sorting is most of what suppression costs, so it is done once and by radix: NumPy's stable ``argsort`` of
16-bit integers is a counting sort, several times faster than any comparison sort of 64-bit keys.

Conventions
-----------
- An order is an int64 array of row numbers: ``values[order]`` is sorted.
- Scores go down; equal scores keep their input order, so the lowest index comes first.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["descending_order", "first_of_each", "group_order", "radix_order"]

FloatArray = NDArray[np.float64]
IndexArray = NDArray[np.int64]
KeyArray = NDArray[np.uint64]

SMALL = 512
"""Up to here one comparison sort is faster than the passes of a radix sort."""

KEY_BITS = 48
"""Longest key sorted in full: three passes. Longer ones are cut, and what the cut made equal is repaired."""

SCORE_BITS = 32
"""Scores alone are told apart by fewer: two passes."""


def radix_order(keys: KeyArray, bits: int) -> IndexArray:
    """Stable ascending order of unsigned keys [N] that need no more than ``bits`` bits."""
    order = np.argsort(keys.astype(np.uint16), kind="stable")
    for shift in range(16, bits, 16):
        digits = (keys >> np.uint64(shift)).astype(np.uint16)
        order = order.take(np.argsort(digits.take(order), kind="stable"))
    return order


def descending_order(scores: FloatArray) -> IndexArray:
    """Order of scores [N] from high to low, ties by lowest index."""
    if len(scores) <= SMALL:
        return np.argsort(-scores, kind="stable")
    keys, bits = _descending_keys(scores)
    cut = max(0, bits - SCORE_BITS)
    keys >>= np.uint64(cut)
    order = radix_order(keys, bits - cut)
    return _repair(order, keys, scores) if cut else order


def group_order(groups: IndexArray, scores: FloatArray) -> IndexArray:
    """Order by group, inside a group by descending score, ties by lowest index.

    Parameters
    ----------
    groups : ndarray of int64, [N]
        Not negative.
    scores : ndarray of float64, [N]
    """
    if len(scores) <= SMALL:
        return np.lexsort((-scores, groups))
    keys, bits = _descending_keys(scores)
    group_bits = int(groups.max()).bit_length()
    if group_bits > KEY_BITS - 16:  # ids rather than row numbers
        groups = np.unique(groups, return_inverse=True)[1].astype(np.int64)
        group_bits = int(groups.max()).bit_length()
    cut = max(0, bits + group_bits - KEY_BITS)
    keys >>= np.uint64(cut)
    keys |= groups.view(np.uint64) << np.uint64(bits - cut)
    order = radix_order(keys, bits - cut + group_bits)
    return _repair(order, keys, scores) if cut else order


def _descending_keys(scores: FloatArray) -> tuple[KeyArray, int]:
    """Unsigned keys that ascend where scores [N] descend, and the bits they need."""
    bits = (scores + 0.0).view(np.uint64)  # + 0.0 makes -0 equal to 0
    negative = (bits >> np.uint64(63)).astype(bool)
    sign = np.uint64(1 << 63)
    keys = np.where(negative, bits, ~(bits | sign)) if negative.any() else ~(bits | sign)
    keys -= keys.min()
    used = int(np.bitwise_or.reduce(keys))
    spare = (used & -used).bit_length() - 1 if used else 0  # scores that were float32 leave 29 low bits empty
    keys >>= np.uint64(spare)
    return keys, used.bit_length() - spare


def _repair(order: IndexArray, keys: KeyArray, scores: FloatArray) -> IndexArray:
    """Sort again the runs of equal cut keys that hold different scores."""
    keys, scores = keys.take(order), scores.take(order)
    same = keys[1:] == keys[:-1]
    wrong = same & (scores[1:] != scores[:-1])
    if not wrong.any():
        return order
    run = np.concatenate([[0], np.cumsum(~same)])
    bad = np.zeros(run[-1] + 1, dtype=bool)
    bad[run[1:][wrong]] = True
    where = np.flatnonzero(bad[run])
    order[where] = order[where][np.lexsort((order[where], -scores[where], run[where]))]
    return order


def first_of_each(of: NDArray[Any], most: int) -> IndexArray:
    """Positions of the first ``most`` entries of each value, in their order."""
    order = np.argsort(of, kind="stable")
    values = of[order]
    place = np.arange(len(of)) - np.searchsorted(values, values, side="left")
    return np.sort(order[place < most])
