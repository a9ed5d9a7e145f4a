"""Sort stably and fast, for the hot path.

Conventions
-----------
Functions that order return indices (``intp``) such that ``values[indices]`` is sorted and equal values keep
their original order. Three techniques make this fast in NumPy:

1. ``argsort(kind="stable")`` of 16-bit integers is a counting sort, several times faster than sorting wider
   keys.
2. ``sort`` of 64-bit integers uses SIMD if available. Keys with the index in their low bits are sorted this
   way, and the low bits are then the stable order: as fast as one or two 16-bit passes. If the index does not
   fit, or ``sort`` is slow, wide keys are sorted by 16-bit digits. ``sort`` is slow without SIMD and on AMD
   Zen 4, so its speed is measured.
3. The order by (class, score, image, row) is a sequence of stable sorts, starting with the last key, or a
   sort of a combined key.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import KeyArray, Positions

DIGIT_BITS = 16

SMALL = 512
"""Maximum number of keys for which a comparison sort is faster than a radix sort."""

MOST_FLAGS = 1 << 20
"""Size in bytes up to which a table of flags is always acceptable."""

KEY_BITS = 48
"""Maximum number of bits, for three passes. Longer keys are truncated, and ``_repair`` fixes the order."""

SCORE_BITS = 32
"""Number of bits that orders most scores, in two passes; ``_repair`` fixes the few others."""

MEASURED_FROM, MEASURED_TO = 1 << 12, 1 << 21
"""Range of sizes for which the speed of the sort is measured: fewer keys are cheap, more exceed the cache."""

SAMPLE = 1 << 12
"""Number of keys to measure with, which takes 0.1 to 0.3 ms."""

PASSES = 3
"""Number of 16-bit passes to compare with a ``sort`` of 64 bits."""


def sorts_wide(count: int) -> bool:
    """Whether ``sort`` of this many 64-bit integers is faster than 16-bit passes."""
    return not MEASURED_FROM <= count <= MEASURED_TO or _sort_is_fast()


@functools.cache
def _sort_is_fast() -> bool:
    """Measure once whether ``sort`` is fast: 2 to 6 ns per key, or 20 to 50, depending on CPU and NumPy."""
    keys = np.arange(SAMPLE, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)  # in no order
    one_pass = _nanoseconds(lambda: np.argsort(keys.astype(np.uint16), kind="stable"))
    return _nanoseconds(lambda: np.sort(keys)) < PASSES * one_pass


def _nanoseconds(work: Callable[[], object]) -> int:
    """Return the minimum of three run times."""
    times = []
    for _ in range(3):
        started = time.perf_counter_ns()
        work()
        times.append(time.perf_counter_ns() - started)
    return min(times)


def sort_runs(values: NDArray[Any]) -> None:
    """Sort numbers in place that consist of many ascending runs."""
    values.sort(kind=None if sorts_wide(len(values)) else "stable")


def stable_order(keys: NDArray[Any], size: int) -> Positions:
    """Return the stable ascending order of integers [N] in [0, size)."""
    # Most files are already sorted, which takes one pass of comparisons. NumPy's radix sort of 16-bit keys is
    # linear.
    if len(keys) < 2 or size < 2 or bool((keys[1:] >= keys[:-1]).all()):
        return np.arange(len(keys))
    if size <= 1 << DIGIT_BITS:
        return np.argsort(keys.astype(np.uint16), kind="stable")
    return radix_order(keys.astype(np.uint64), (size - 1).bit_length())


def radix_order(keys: KeyArray, bits: int) -> Positions:
    """Return the stable ascending order of unsigned keys [N] of at most ``bits`` bits."""
    position_bits = np.uint64(len(keys).bit_length())
    if DIGIT_BITS < bits <= 64 - int(position_bits) and sorts_wide(len(keys)):
        # With the index, all keys differ, so any sort gives the stable order.
        packed = keys << position_bits
        packed |= np.arange(len(keys), dtype=np.uint64)
        packed.sort()
        packed &= np.uint64((1 << int(position_bits)) - 1)
        return packed.view(np.int64).astype(np.intp, copy=False)
    # Sort by the lowest digit first; later passes are stable and keep the order by lower digits.
    order = np.argsort(keys.astype(np.uint16), kind="stable")
    for shift in range(DIGIT_BITS, bits, DIGIT_BITS):
        digits = (keys >> np.uint64(shift)).astype(np.uint16)
        order = order.take(np.argsort(digits.take(order), kind="stable"))
    return order


def descending_order(scores: NDArray[np.float64]) -> Positions:
    """Return the stable descending order of float64 numbers [N] without NaN; -0.0 equals 0.0."""
    if len(scores) <= SMALL:
        return np.argsort(-scores, kind="stable")
    # Sort integer keys instead of floats. Truncate low bits that do not fit; ``_repair`` orders the few
    # scores that only differ there.
    keys, bits = _descending_keys(scores)
    cut = max(0, bits - _sorted_bits(len(keys), SCORE_BITS))
    keys >>= np.uint64(cut)
    order = radix_order(keys, bits - cut)
    return _repair(order, keys, scores) if cut else order


def group_order(groups: NDArray[np.integer[Any]], scores: NDArray[np.float64]) -> Positions:
    """Return the order by group (not negative), then by descending score, then by index."""
    if len(scores) <= SMALL:
        return np.lexsort((-scores, groups))
    # Combine group and score in one integer key [N]. Truncate low bits of the score that do not fit;
    # ``_repair`` orders scores that only differ there.
    keys, bits = _descending_keys(scores)
    group_bits = int(groups.max()).bit_length()
    if group_bits > KEY_BITS - 16:  # large ids instead of rows
        groups = np.unique(groups, return_inverse=True)[1]
        group_bits = int(groups.max()).bit_length()
    cut = max(0, bits + group_bits - _sorted_bits(len(keys), KEY_BITS))
    keys >>= np.uint64(cut)
    high = groups.astype(np.uint64)
    high <<= np.uint64(bits - cut)
    keys |= high
    # The sort is stable, so the result equals that of ``np.lexsort``, including ties.
    order = radix_order(keys, bits - cut + group_bits)
    return _repair(order, keys, scores) if cut else order


def _sorted_bits(count: int, in_passes: int) -> int:
    """Return the number of bits to sort: those that fit next to an index, or ``in_passes``."""
    free = 64 - count.bit_length()
    return free if free >= SCORE_BITS and sorts_wide(count) else in_passes


def _descending_keys(scores: NDArray[np.float64]) -> tuple[KeyArray, int]:
    """Return unsigned keys in the descending order of scores [N], and their number of bits."""
    bits = (scores + 0.0).view(np.uint64)  # + 0.0 makes -0 equal to 0
    negative = bits.view(np.int64) < 0
    sign = np.uint64(1 << 63)
    # The bits of positive floats ascend as integers, those of negative floats descend. Inverting positive
    # ones, without the sign bit, gives descending order with negative ones last.
    if negative.any():
        keys = np.where(negative, bits, ~(bits | sign))
    else:
        bits |= sign
        keys = np.invert(bits, out=bits)
    # Shorten the keys without changing the order: subtract the minimum, and shift out common zero bits.
    keys -= keys.min()  # saves bits if scores have similar magnitudes
    used = int(np.bitwise_or.reduce(keys))
    spare = (used & -used).bit_length() - 1 if used else 0  # float32 scores have 29 zero bits
    keys >>= np.uint64(spare)
    return keys, used.bit_length() - spare


def _repair(order: Positions, keys: KeyArray, scores: NDArray[np.float64]) -> Positions:
    """Fix the order of different scores whose truncated keys are equal.

    Truncation never swaps keys, so the order can only be wrong within runs of equal keys.
    """
    # Find adjacent rows with equal keys and different scores.
    keys = keys.take(order)
    same = keys[1:] == keys[:-1]
    scores = scores.take(order)
    wrong = scores[1:] != scores[:-1]
    wrong &= same
    if not wrong.any():
        return order
    # Number the runs of equal keys, and select the rows of runs with such a pair.
    run = np.concatenate([[0], np.cumsum(~same)])
    bad = np.zeros(run[-1] + 1, dtype=bool)
    bad[run[1:][wrong]] = True
    where = np.flatnonzero(bad[run])
    # Sort these few rows by run, full score and original index.
    order[where] = order[where][np.lexsort((order[where], -scores[where], run[where]))]
    return order


def among(known: NDArray[Any], values: NDArray[Any], size: int) -> NDArray[np.bool_]:
    """Whether each integer of ``values`` is in ``known``, [N]; all are in [0, size).

    Examples
    --------
    >>> among(np.array([7, 2]), np.array([2, 3, 7]), 8).tolist()
    [True, False, True]
    """
    if size <= 8 * len(values) + MOST_FLAGS:  # a lookup table is faster than search
        flags = np.zeros(size, dtype=bool)
        flags[known] = True
        return np.take(flags, values)
    known = distinct(known)
    if not len(known):
        return np.zeros(len(values), dtype=bool)
    at = np.minimum(np.searchsorted(known, values), len(known) - 1)
    return np.asarray(known[at] == values)


def top_k_per_group(group: NDArray[Any], k: int, size: int | None = None) -> Positions:
    """Return the indices of the first ``k`` entries of each group, in order; groups in [0, size) sort faster.

    Examples
    --------
    >>> top_k_per_group(np.array([3, 1, 3, 3, 1]), 2).tolist()
    [0, 1, 2, 4]
    """
    order = np.argsort(group, kind="stable") if size is None else stable_order(group, size)
    return np.sort(order[rank_in_runs(group[order]) < k])


def run_starts(keys: NDArray[Any]) -> Positions:
    """Return the indices at which runs of equal keys start."""
    if not len(keys):
        return np.empty(0, dtype=np.intp)
    return np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))


def rows_of_groups(group: NDArray[Any], size: int) -> list[Positions]:
    """Return the rows of each of ``size`` groups, in order."""
    ends = np.cumsum(np.bincount(group, minlength=size))[:-1]
    return np.split(stable_order(group, size), ends) if size else []


def distinct(values: NDArray[Any]) -> NDArray[Any]:
    """Return distinct values in ascending order, without importing masked arrays as ``np.unique`` does."""
    ordered = np.sort(values)
    return ordered[run_starts(ordered)]


def is_first(values: NDArray[np.integer[Any]]) -> NDArray[np.bool_]:
    """Whether each of some small non-negative integers is the first occurrence of its value, [N]."""
    positions = np.arange(len(values))
    first = np.empty(int(values.max(initial=-1)) + 1, dtype=np.intp)
    first[values[::-1]] = positions[::-1]  # the last assignment, of the first occurrence, wins
    return np.asarray(first[values] == positions)


def distinct_rows(rows: NDArray[Any]) -> tuple[Positions, Positions]:
    """Return the first index of each distinct row of [N, M], sorted by row, and the inverse, [N].

    ``np.unique`` compares rows as records, which is slow and turns an interrupt into a TypeError.
    """
    # Sort rows column by column. The sort is stable, so the first of a run of equal rows occurs first.
    order = np.lexsort(rows.T[::-1]) if rows.shape[1] else np.arange(len(rows))
    ordered = rows[order]
    starts = np.ones(len(rows), dtype=bool)
    starts[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    number = np.empty(len(rows), dtype=np.intp)
    number[order] = np.cumsum(starts) - 1
    return order[starts], number


def inverse_order(order: Positions) -> Positions:
    """Return the index of each entry after reordering: ``inverse_order(order)[order]`` is 0, 1, 2, ..."""
    inverse = np.empty_like(order)
    inverse[order] = np.arange(len(order))
    return inverse


def group_starts(groups: NDArray[Any], count: int) -> Positions:
    """Return where each of ``count`` groups starts in ascending integers, and where the last ends."""
    # Edges of another dtype would make searchsorted copy the column.
    return np.searchsorted(groups, np.arange(count + 1, dtype=groups.dtype))


def rank_in_runs(keys: NDArray[Any]) -> Positions:
    """Return the index of each entry, from 0, in its run of equal keys."""
    starts = run_starts(keys)
    return np.arange(len(keys)) - np.repeat(starts, np.diff(np.append(starts, len(keys))))


def ragged_ranges(starts: NDArray[Any], counts: NDArray[Any]) -> Positions:
    """Concatenate ``range(start, start + count)`` over all rows.

    Examples
    --------
    >>> ragged_ranges(np.array([5, 0]), np.array([3, 2])).tolist()
    [5, 6, 7, 0, 1]
    """
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    # Counting through all rows is off by a constant in each: its start minus the number of previous entries.
    return np.repeat(starts - (ends - counts), counts) + np.arange(total)
