"""Sort stably and fast: the sort keys of the hot path.

Conventions
-----------
Every function that orders returns positions (``intp``) such that ``values[positions]`` is ordered and equal
values stay in their original order. Three facts make this fast in NumPy:

1. ``argsort(kind="stable")`` of 16-bit integers is a counting sort: no comparisons, and several times faster
   than any sort of wider keys.
2. ``sort`` of 64-bit integers compares many at once where the processor has wide registers. A key with its
   position in the bits below it is sorted so, and the low bits are then the stable order: as fast as one or
   two passes of 16 bits. Where there is no room, or that sort is slow, wide keys are sorted by their 16-bit
   digits. It is slow without wide registers, and with those of AMD's Zen 4: so it is measured.
3. The order by (class, score, image, row) is a chain of stable orders, the last key first, or one key of
   several.
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
"""Up to here one comparison sort is faster than the passes of a radix sort."""

MOST_FLAGS = 1 << 20
"""Bytes of a table of flags that are never too many."""

KEY_BITS = 48
"""Longest key sorted in three passes. Longer ones lose low bits, and ``_repair`` sorts by them."""

SCORE_BITS = 32
"""Enough to order most scores: two passes, and ``_repair`` for the few that differ only below."""

MEASURED_FROM, MEASURED_TO = 1 << 15, 1 << 21
"""Keys for which it matters which sort is faster here: of fewer neither costs much, more fit no cache."""

SAMPLE = 1 << 12
"""Keys of a measurement, which takes 0.1 to 0.3 ms."""

PASSES = 3
"""Of 16 bits, instead of one ``sort`` of 64."""


def sorts_wide(count: int) -> bool:
    """Whether ``sort`` of so many 64-bit integers is faster than passes of 16 bits."""
    return not MEASURED_FROM <= count <= MEASURED_TO or _sort_is_fast()


@functools.cache
def _sort_is_fast() -> bool:
    """Measure, once: by ``sort`` one key takes 2 to 6 ns, or 20 to 50, as processor and NumPy are."""
    keys = np.arange(SAMPLE, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)  # in no order
    one_pass = _nanoseconds(lambda: np.argsort(keys.astype(np.uint16), kind="stable"))
    return _nanoseconds(lambda: np.sort(keys)) < PASSES * one_pass


def _nanoseconds(work: Callable[[], object]) -> int:
    """Return the least of three times."""
    times = []
    for _ in range(3):
        started = time.perf_counter_ns()
        work()
        times.append(time.perf_counter_ns() - started)
    return min(times)


def sort_runs(values: NDArray[Any]) -> None:
    """Sort numbers in place that mostly ascend already, in many runs."""
    values.sort(kind=None if sorts_wide(len(values)) else "stable")


def stable_order(keys: NDArray[Any], size: int) -> Positions:
    """Order integers [N] in [0, size) ascending."""
    # Sorted keys, which most files have, cost one comparison pass. Keys of 16 bits take NumPy's radix sort,
    # which is linear.
    if len(keys) < 2 or size < 2 or bool((keys[1:] >= keys[:-1]).all()):
        return np.arange(len(keys))
    if size <= 1 << DIGIT_BITS:
        return np.argsort(keys.astype(np.uint16), kind="stable")
    return radix_order(keys.astype(np.uint64), (size - 1).bit_length())


def radix_order(keys: KeyArray, bits: int) -> Positions:
    """Order unsigned keys [N] of at most ``bits`` bits ascending."""
    position_bits = np.uint64(len(keys).bit_length())
    if DIGIT_BITS < bits <= 64 - int(position_bits) and sorts_wide(len(keys)):
        # Positions make all keys differ: a sort that is not stable has one answer, and it is the stable one.
        packed = keys << position_bits
        packed |= np.arange(len(keys), dtype=np.uint64)
        packed.sort()
        packed &= np.uint64((1 << int(position_bits)) - 1)
        return packed.view(np.int64).astype(np.intp, copy=False)
    # The lowest digit first: each further pass is stable, so the order by lower digits survives inside it.
    order = np.argsort(keys.astype(np.uint16), kind="stable")
    for shift in range(DIGIT_BITS, bits, DIGIT_BITS):
        digits = (keys >> np.uint64(shift)).astype(np.uint16)
        order = order.take(np.argsort(digits.take(order), kind="stable"))
    return order


def descending_order(scores: NDArray[np.float64]) -> Positions:
    """Order float64 numbers [N] that are not NaN descending; -0.0 equals 0.0."""
    if len(scores) <= SMALL:
        return np.argsort(-scores, kind="stable")
    # Sort integer keys in place of floats. Low bits beyond the ones that a sort has room for are cut, and
    # ``_repair`` orders the few scores that differ only there.
    keys, bits = _descending_keys(scores)
    cut = max(0, bits - _sorted_bits(len(keys), SCORE_BITS))
    keys >>= np.uint64(cut)
    order = radix_order(keys, bits - cut)
    return _repair(order, keys, scores) if cut else order


def group_order(groups: NDArray[np.integer[Any]], scores: NDArray[np.float64]) -> Positions:
    """Order by group (not negative), inside a group by descending score, ties by lowest index."""
    if len(scores) <= SMALL:
        return np.lexsort((-scores, groups))
    # Put the group above the score in one integer key [N], so that one sort orders both. The scores lose low
    # bits where the key has no room, and ``_repair`` orders those that differ only there.
    keys, bits = _descending_keys(scores)
    group_bits = int(groups.max()).bit_length()
    if group_bits > KEY_BITS - 16:  # ids rather than row numbers
        groups = np.unique(groups, return_inverse=True)[1]
        group_bits = int(groups.max()).bit_length()
    cut = max(0, bits + group_bits - _sorted_bits(len(keys), KEY_BITS))
    keys >>= np.uint64(cut)
    high = groups.astype(np.uint64)
    high <<= np.uint64(bits - cut)
    keys |= high
    # The sort is stable, so equal scores keep their order: the result is that of ``np.lexsort`` to the last
    # tie.
    order = radix_order(keys, bits - cut + group_bits)
    return _repair(order, keys, scores) if cut else order


def _sorted_bits(count: int, in_passes: int) -> int:
    """Return how many bits of ``count`` keys are sorted: those beside a position, or ``in_passes``."""
    beside = 64 - count.bit_length()
    return beside if beside >= SCORE_BITS and sorts_wide(count) else in_passes


def _descending_keys(scores: NDArray[np.float64]) -> tuple[KeyArray, int]:
    """Unsigned keys that ascend where scores [N] descend, and the bits they need."""
    bits = (scores + 0.0).view(np.uint64)  # + 0.0 makes -0 equal to 0
    negative = bits.view(np.int64) < 0
    sign = np.uint64(1 << 63)
    # Read as integers, positive floats ascend and negative ones descend; inverting the positive ones, with
    # the sign bit cleared, puts all into descending order with the negative ones last.
    if negative.any():
        keys = np.where(negative, bits, ~(bits | sign))
    else:
        bits |= sign
        keys = np.invert(bits, out=bits)
    # Shorten the keys: subtract the least and shift out low bits that all keys have empty. Both keep the
    # order.
    keys -= keys.min()  # the order is the same, of fewer bits where scores are of one scale
    used = int(np.bitwise_or.reduce(keys))
    spare = (used & -used).bit_length() - 1 if used else 0  # scores that were float32 leave 29 low bits empty
    keys >>= np.uint64(spare)
    return keys, used.bit_length() - spare


def _repair(order: Positions, keys: KeyArray, scores: NDArray[np.float64]) -> Positions:
    """Sort again the runs of equal cut keys that hold different scores.

    Cutting low bits never swaps two keys: only inside such a run can the order be wrong.
    """
    # Neighbors with equal cut keys and different scores can be out of order; others cannot.
    keys = keys.take(order)
    same = keys[1:] == keys[:-1]
    scores = scores.take(order)
    wrong = scores[1:] != scores[:-1]
    wrong &= same
    if not wrong.any():
        return order
    # Number the runs of equal keys and select the rows of those with such a pair.
    run = np.concatenate([[0], np.cumsum(~same)])
    bad = np.zeros(run[-1] + 1, dtype=bool)
    bad[run[1:][wrong]] = True
    where = np.flatnonzero(bad[run])
    # Sort these rows by run, full score and original position: few rows, and ties stay by lowest index.
    order[where] = order[where][np.lexsort((order[where], -scores[where], run[where]))]
    return order


def among(known: NDArray[Any], values: NDArray[Any], size: int) -> NDArray[np.bool_]:
    """Whether each of some integers in [0, size) is one of others, [N].

    Examples
    --------
    >>> among(np.array([7, 2]), np.array([2, 3, 7]), 8).tolist()
    [True, False, True]
    """
    if size <= 8 * len(values) + MOST_FLAGS:  # a table of all integers is faster than searching
        flags = np.zeros(size, dtype=bool)
        flags[known] = True
        return np.take(flags, values)
    known = np.unique(known)
    if not len(known):
        return np.zeros(len(values), dtype=bool)
    at = np.minimum(np.searchsorted(known, values), len(known) - 1)
    return np.asarray(known[at] == values)


def top_k_per_group(group: NDArray[Any], k: int, size: int | None = None) -> Positions:
    """Positions of the first ``k`` entries of each group, in their order; groups in [0, size) sort faster.

    Examples
    --------
    >>> top_k_per_group(np.array([3, 1, 3, 3, 1]), 2).tolist()
    [0, 1, 2, 4]
    """
    order = np.argsort(group, kind="stable") if size is None else stable_order(group, size)
    return np.sort(order[rank_in_runs(group[order]) < k])


def run_starts(keys: NDArray[Any]) -> Positions:
    """Positions at which a new run of equal neighbours starts."""
    if not len(keys):
        return np.empty(0, dtype=np.intp)
    return np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))


def distinct(values: NDArray[Any]) -> NDArray[Any]:
    """Return the values of [N] that occur, ascending: ``np.unique`` loads NumPy's masked arrays for that."""
    ordered = np.sort(values)
    return ordered[run_starts(ordered)]


def is_first(values: NDArray[np.integer[Any]]) -> NDArray[np.bool_]:
    """Whether each of some whole numbers, 0 or more and not very large, is the first of its value, [N]."""
    positions = np.arange(len(values))
    first = np.empty(int(values.max(initial=-1)) + 1, dtype=np.intp)
    first[values[::-1]] = positions[::-1]  # what is written last stays
    return np.asarray(first[values] == positions)


def distinct_rows(rows: NDArray[Any]) -> tuple[Positions, Positions]:
    """Return where each distinct row of [N, M] occurs first, rows ascending, and the number of each row, [N].

    ``np.unique`` compares rows as records: that is slow, and NumPy answers an interrupt with a TypeError.
    """
    # Sort the rows column by column; equal rows are then neighbors, and the sort is stable, so the first of a
    # run occurs first.
    order = np.lexsort(rows.T[::-1]) if rows.shape[1] else np.arange(len(rows))
    ordered = rows[order]
    starts = np.ones(len(rows), dtype=bool)
    starts[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    number = np.empty(len(rows), dtype=np.intp)
    number[order] = np.cumsum(starts) - 1
    return order[starts], number


def inverse_order(order: Positions) -> Positions:
    """Position of each entry after reordering: ``inverse_order(order)[order]`` counts from 0."""
    inverse = np.empty_like(order)
    inverse[order] = np.arange(len(order))
    return inverse


def rank_in_runs(keys: NDArray[Any]) -> Positions:
    """Position of each entry, from 0, in its run of equal neighbours."""
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
    # A count through all rows is off by one number in each: where the row starts, minus how many entries come
    # before it.
    return np.repeat(starts - (ends - counts), counts) + np.arange(total)
