"""Run lengths of masks, and the text in which COCO writes them.

Goal
----
The codes of many masks become numbers in a dozen NumPy calls, with every check that a code is whole: nothing
that does not add up goes any further.

Conventions
-----------
- A mask is runs of background and foreground in turn, background first, column by column.
- As text a number is characters from 48 on, five bits each and the lowest first; bit 32 says that the number
  goes on, bit 16 of its last character that it is negative. From the fourth number on, a number is the
  difference to the one two before.
- No image has more than :data:`MOST_PIXELS` pixels, so that a pixel's number is an int32. A run outside
  [0, 2**31) shows as a negative int32: differences are smaller than that, and no sum wraps round unseen.

References
----------
pycocotools 2.0.11, ``maskApi.c`` (``rleFrString``, ``rleToString``).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "DAMAGED",
    "MOST_CHARACTERS",
    "MOST_PIXELS",
    "Runs",
    "code_text",
    "read_runs",
    "run_totals",
    "split_runs",
]

DAMAGED = -1
"""Total of a code that no mask has: foreign characters, too large a number, a negative run."""

MOST_PIXELS = 2**31 - 1

MOST_CHARACTERS = 7
"""Characters of one number; the last may only be a sign and a bit, 32 bits in all."""

BATCH = 1 << 17
"""Characters read together: their columns fit a core's cache."""

Positions = NDArray[np.intp]


class Runs(NamedTuple):
    """Runs of several masks, in pairs of foreground and background; each mask has a pair at least."""

    first: NDArray[np.int32]  # [N], the background before all pairs
    pairs: NDArray[np.int32]  # [R,2], foreground and the background after it
    counts: Positions  # [N], pairs of each mask
    given: Positions  # [N], runs that its code has; the rest are zeros
    damaged: NDArray[np.bool_]  # [N], what can be told from the text alone

    def totals(self) -> NDArray[np.int64]:
        """Pixels of each mask, [N]; :data:`DAMAGED` where it cannot be one."""
        starts = np.cumsum(self.counts) - self.counts
        totals: NDArray[np.int64] = self.first.astype(np.int64)
        totals += np.add.reduceat(self.pairs.astype(np.int64).sum(axis=1), starts)
        negative = np.minimum.reduceat(self.pairs.min(axis=1), starts) < 0
        totals[self.damaged | negative | (self.first < 0)] = DAMAGED
        return totals


def run_totals(codes: Sequence[bytes]) -> NDArray[np.int64]:
    """Count the pixels of each code, int64 [N]; :data:`DAMAGED` where it cannot be one."""
    lengths = np.fromiter(map(len, codes), np.intp, len(codes))
    batch = np.cumsum(lengths) // BATCH
    bounds = [0, *(np.flatnonzero(np.diff(batch)) + 1).tolist(), len(codes)]
    parts = [read_runs(codes[low:high]).totals() for low, high in itertools.pairwise(bounds) if high > low]
    return np.concatenate([np.empty(0, np.int64), *parts])


def read_runs(codes: Sequence[bytes]) -> Runs:
    """Read codes, one at least."""
    text = b"".join([code or b"0" for code in codes])  # no number is no pixel
    lengths = np.fromiter(map(len, codes), np.intp, len(codes)).clip(1)
    ends = np.cumsum(lengths)
    damaged = np.zeros(len(codes), dtype=bool)
    digits = np.frombuffer(text, dtype=np.uint8) - np.uint8(48)
    if digits.max() > 63:
        damaged[np.searchsorted(ends, np.flatnonzero(digits > 63), side="right")] = True
        digits &= 63
    unfinished = digits[ends - 1] > 31
    if unfinished.any():
        damaged |= unfinished
        digits[ends[unfinished] - 1] &= 31
        text = (digits + np.uint8(48)).tobytes()
    starts = ends - lengths
    first, width, wrong = _first_numbers(digits, starts)
    damaged |= wrong
    # Without the first number all that is left are pairs, whose differences go from pair to pair.
    begin, end = (starts + width).tolist(), ends.tolist()
    rest = np.frombuffer(b"".join([text[a:b] for a, b in zip(begin, end, strict=True)]), dtype=np.uint8)
    values, more, wrong_numbers = _numbers(rest - np.uint8(48) & np.uint8(63))
    stops = np.cumsum(lengths - width)
    stops -= np.searchsorted(more, stops)
    counts = np.diff(stops, prepend=0)
    if len(wrong_numbers):
        damaged[np.searchsorted(stops, wrong_numbers, side="right")] = True
    values, pads = _padded(values, counts)
    pairs = values.reshape(-1, 2)
    n = (counts + 1 + (counts == 0)) // 2
    np.cumsum(pairs, axis=0, out=pairs)  # over all masks; int32 wraps
    stops = np.cumsum(n)
    before = np.zeros((len(codes), 2), dtype=np.int32)  # the sums before each mask, to be taken off again
    before[1:] = pairs[stops[:-1] - 1]
    pairs -= np.repeat(before.view(np.int64).ravel(), n).view(np.int32).reshape(-1, 2)
    values[pads] = 0
    return Runs(first, pairs, n, counts + 1, damaged)


def split_runs(numbers: NDArray[np.int64], counts: Positions) -> Runs:
    """Arrange runs that are given as numbers, ``counts`` [N] of each mask; one without any has no pixel."""
    damaged = np.zeros(len(counts), dtype=bool)
    odd = np.flatnonzero((numbers < 0) | (numbers > MOST_PIXELS))
    if len(odd):
        damaged[np.searchsorted(np.cumsum(counts), odd, side="right")] = True
    starts = np.cumsum(counts) - counts
    runs = numbers.astype(np.int32)
    first = np.zeros(len(counts), dtype=np.int32)
    some = counts > 0
    first[some] = runs[starts[some]]
    left = np.maximum(counts - 1, 0)
    values, _ = _padded(np.delete(runs, starts[some]), left)
    return Runs(first, values.reshape(-1, 2), (left + 1 + (left == 0)) // 2, counts, damaged)


def _first_numbers(
    digits: NDArray[np.uint8], starts: Positions
) -> tuple[NDArray[np.int32], Positions, NDArray[np.bool_]]:
    """Return the first number of each code, how many characters it has, and which are no run."""
    value = np.zeros(len(starts), dtype=np.int64)
    width = np.ones(len(starts), dtype=np.intp)
    going = np.arange(len(starts))
    for place in range(MOST_CHARACTERS):
        digit = digits[starts[going] + place].astype(np.int64)
        value[going] |= (digit & 31) << 5 * place
        width[going] = place + 1
        negative = going[(digit & 48) == 16]
        value[negative] -= 1 << 5 * (place + 1)
        going = going[digit > 31]
        if not len(going):
            break
    wrong = (value < 0) | (value > MOST_PIXELS)
    wrong[going] = True
    return np.where(wrong, -1, value).astype(np.int32), width, wrong


def _numbers(digits: NDArray[np.uint8]) -> tuple[NDArray[np.int32], Positions, Positions]:
    """Return all numbers, the places of characters that end none, and which numbers are too large."""
    more = np.flatnonzero(digits > 31)
    signed = ((digits ^ np.uint8(16)) - np.uint8(16)).view(np.int8)
    values = signed[digits < 32].astype(np.int32)
    number = more - np.arange(len(more))  # as many numbers end before a character as are no such characters
    heads = np.flatnonzero(np.diff(number, prepend=-1))
    extra = np.diff(heads, append=len(number))  # characters before the last
    longer = number[heads]
    end, value = more[heads] + extra, values[longer]
    wrong = longer[
        (extra >= MOST_CHARACTERS) | ((extra == MOST_CHARACTERS - 1) & (np.abs(2 * value + 1) > 3))
    ]
    value = (value << 5) | (digits[end - 1] & 31)
    left = np.flatnonzero(extra > 1)
    for back in range(2, MOST_CHARACTERS):
        if not len(left):
            break
        value[left] = (value[left] << 5) | (digits[end[left] - back] & 31)
        left = left[extra[left] > back]
    values[longer] = value
    return values, more, wrong


def _padded(values: NDArray[np.int32], counts: Positions) -> tuple[NDArray[np.int32], Positions]:
    """Give each mask an even number of runs, two at least; also return where the zeros are."""
    missing = (counts & 1) + 2 * (counts == 0)
    short = np.flatnonzero(missing)
    if not len(short):
        return np.ascontiguousarray(values), short
    total = len(values) + int(missing.sum())
    pads = np.repeat(np.cumsum(counts + missing)[short], missing[short]) - 1
    twice = np.flatnonzero(missing[short] == 2)
    pads[twice + np.arange(len(twice))] -= 1
    padded = np.zeros(total, dtype=np.int32)
    cuts = [0, *np.cumsum(counts)[short].tolist(), len(values)]
    at = 0
    for low, high, gap in zip(cuts, cuts[1:], [*missing[short].tolist(), 0], strict=False):
        padded[at : at + high - low] = values[low:high]
        at += high - low + gap
    return padded, pads


def code_text(runs: NDArray[np.int64], counts: Positions) -> list[bytes]:
    """Write runs, ``counts`` [N] of each mask, as text."""
    starts = np.cumsum(counts) - counts
    rank = np.arange(len(runs)) - np.repeat(starts, counts)
    numbers = runs.astype(np.int64)
    later = np.flatnonzero(rank > 2)
    numbers[later] -= runs[later - 2]
    size = np.ones(len(numbers), dtype=np.intp)
    for characters in range(1, MOST_CHARACTERS):
        half = 1 << 5 * characters - 1
        size += (numbers >= half) | (numbers < -half)
    ends = np.cumsum(size)
    text = np.empty(int(ends[-1]) if len(ends) else 0, dtype=np.uint8)
    left = np.arange(len(numbers))
    for place in range(MOST_CHARACTERS):
        goes_on = size[left] > place + 1
        text[(ends - size)[left] + place] = (numbers[left] >> 5 * place & 31) + 48 + 32 * goes_on
        left = left[goes_on]
    whole = text.tobytes()
    stops = np.append(0, ends)[np.cumsum(counts)].tolist()
    return [whole[low:high] for low, high in zip([0, *stops], stops, strict=False)]
