"""Add numbers exactly, in any order: as whole multiples of powers of two.

Conventions
-----------
- A number between -1 and 1 is cut into *digits*: how many whole times 2**-31 goes into it, 2**-62 into what
  is left, and so on. What the last digit leaves is left out, of each number by itself.
- Digits are integers, which add up exactly: of fewer than 2**32 numbers in any order, in any parts.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from boxscore._utils.array_types import FloatArray, IntArray, Positions

BITS = 31

DIGITS = 3
"""Of each number, where nothing else is said: whole multiples of 2**-93."""

TOGETHER = 1 << 22
"""Digits that float64 adds up exactly."""


def digits_of(values: FloatArray, count: int = DIGITS) -> IntArray:
    """Cut numbers [N] between -1 and 1; [digits, N]."""
    digits = np.empty((count, len(values)), dtype=np.int64)
    for row, digit in zip(digits, _cut(values, count), strict=True):
        row[:] = digit
    return digits


def added(place: Positions, values: FloatArray, size: int, count: int = DIGITS) -> IntArray:
    """Add up the digits of numbers [N] between -1 and 1 by their places, [digits, size]."""
    total = np.zeros((count, size), dtype=np.int64)
    # Add up at most 2**22 digits below 2**31 in float64: sums stay below 2**53, so they are exact, and
    # ``bincount`` is fast. The int64 totals then take any number of such runs.
    for low in range(0, len(values), TOGETHER):
        part = slice(low, low + TOGETHER)
        for row, digit in zip(total, _cut(values[part], count), strict=True):
            row += np.bincount(place[part], digit, size).astype(np.int64)
    return total


def rounded(digits: IntArray) -> FloatArray:
    """Return the sums that digits [digits, ...] represent, to a unit in the last place."""
    whole = digits.copy()
    # Carry from the lowest digit up, so that each digit but the first ends between -2**30 and 2**30. Two sets
    # of digits with the same sum become the same digits here, whatever their parts were.
    for one in range(len(whole) - 1, 0, -1):
        carried = (whole[one] + (1 << BITS - 1)) >> BITS
        whole[one] -= carried << BITS
        whole[one - 1] += carried
    # Add the digits from the smallest up: integers times powers of two are exact, and only the additions
    # round.
    value = np.zeros(whole.shape[1:])
    for one in range(len(whole) - 1, -1, -1):
        value += whole[one] * 2.0 ** (-BITS * (one + 1))
    return value


def _cut(values: FloatArray, count: int) -> Iterator[FloatArray]:
    """Yield each digit of all numbers, the largest first; what is left of a number is exact."""
    left = values * 2.0**BITS
    for _ in range(count):
        digit = np.trunc(left)
        yield digit
        left -= digit
        left *= 2.0**BITS
