"""Add numbers exactly, independent of order, as integer multiples of powers of two.

Conventions
-----------
- A number between -1 and 1 is split into integer *digits*: multiples of 2**-31, then of 2**-62 for the
  remainder, and so on. The remainder after the last digit is dropped, for each number separately.
- Sums of digits are exact for fewer than 2**32 numbers, in any order and in any chunks.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from boxscore._utils.array_types import FloatArray, IntArray, Positions

BITS = 31

DIGITS = 3
"""Default number of digits; numbers are then multiples of 2**-93."""

TOGETHER = 1 << 22
"""Number of digits that float64 sums exactly."""

CACHED = 1 << 14
"""Number of digits that fit the cache."""


def digits_of(values: FloatArray, count: int = DIGITS) -> IntArray:
    """Split numbers [N] between -1 and 1 into digits [digits, N]."""
    digits = np.empty((count, len(values)), dtype=np.int64)
    for row, digit in zip(digits, _split(values, count), strict=True):
        row[:] = digit
    return digits


def added(place: Positions, values: FloatArray, size: int, count: int = DIGITS) -> IntArray:
    """Sum the digits of numbers [N] between -1 and 1 by place, [digits, size]."""
    total = np.zeros((count, size), dtype=np.int64)
    # Sum at most 2**22 digits below 2**31 in float64 with the fast ``bincount``: sums stay below 2**53, so
    # they are exact. Accumulate these in int64. Runs that fit the cache are faster, unless there are many
    # places, since each run adds to all.
    together = min(TOGETHER, max(CACHED, 4 * size))
    for low in range(0, len(values), together):
        part = slice(low, low + together)
        for row, digit in zip(total, _split(values[part], count), strict=True):
            row += np.bincount(place[part], digit, size).astype(np.int64)
    return total


def rounded(digits: IntArray) -> FloatArray:
    """Convert digits [digits, ...] to sums, accurate to a unit in the last place."""
    whole = digits.copy()
    # Carry from the lowest digit up, so that each digit but the first is between -2**30 and 2**30. This makes
    # the digits of equal sums equal, however they were accumulated.
    for one in range(len(whole) - 1, 0, -1):
        carried = (whole[one] + (1 << BITS - 1)) >> BITS
        whole[one] -= carried << BITS
        whole[one - 1] += carried
    # Add from the smallest digit; integers times powers of two are exact, so only the additions round.
    value = np.zeros(whole.shape[1:])
    for one in range(len(whole) - 1, -1, -1):
        value += whole[one] * 2.0 ** (-BITS * (one + 1))
    return value


def _split(values: FloatArray, count: int) -> Iterator[FloatArray]:
    """Yield the digits of all numbers, the most significant first; remainders are exact."""
    left = values * 2.0**BITS
    for _ in range(count):
        digit = np.trunc(left)
        yield digit
        left -= digit
        left *= 2.0**BITS
