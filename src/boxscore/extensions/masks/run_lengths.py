"""Read and write run lengths of masks, and their text in COCO files.

Conventions
-----------
- A mask is alternating runs of background and foreground, background first, column by column.
- In text, a number is characters from 48 on with five bits each, lowest first; bit 32 marks that the number
  continues, bit 16 of its last character that it is negative. From the fourth number on, a number is the
  difference to the one two before.
- Images have at most :data:`MOST_PIXELS` pixels, so pixel numbers fit an int32. A run outside [0, 2**31)
  shows as a negative int32: differences are smaller than that, so a sum cannot wrap unnoticed.
- RLEs that do not add up are rejected. Many masks take a dozen NumPy calls.

References
----------
pycocotools 2.0.11, ``maskApi.c`` (``rleFrString``, ``rleToString``).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import Positions
from boxscore._utils.ordering import ragged_ranges
from boxscore._utils.records import NamedTuple

DAMAGED = -1
"""Total of an invalid RLE: foreign characters, a number that is too large, or a negative run."""

MOST_PIXELS = 2**31 - 1

MOST_CHARACTERS = 7
"""Maximum number of characters per number: 32 bits, so the last has only a sign and a bit."""

ZERO = b"0"
GOING_ON = bytes(range(48 + 32, 48 + 64))
"""Characters that continue a number."""
LAST_DIGIT = bytes((((code - 48) & 31) ^ 16) - 16 & 255 for code in range(256))
"""Value of the last digit, an int8, for each of the other characters."""


class Runs(NamedTuple):
    """Concatenated runs of several masks; those of each mask begin with a zero and are even in number."""

    lengths: NDArray[
        np.int32
    ]  # [2 R + 1]: zero, background, foreground, background, ..., zero; one zero at the end
    counts: Positions  # [N], pairs per mask
    given: Positions  # [N], runs in the RLE
    damaged: NDArray[np.bool_]  # [N], as far as the text alone shows

    @property
    def starts(self) -> Positions:
        """Offset of each mask's lengths, [N]."""
        return 2 * (np.cumsum(self.counts) - self.counts)

    def totals(self) -> NDArray[np.int64]:
        """Pixels of each mask, [N]; :data:`DAMAGED` if it is invalid."""
        starts, lengths = self.starts, self.lengths[:-1]
        totals: NDArray[np.int64] = np.add.reduceat(lengths, starts, dtype=np.int64)
        totals[self.damaged | (np.minimum.reduceat(lengths, starts) < 0)] = DAMAGED
        return totals


def read_runs(codes: Sequence[bytes]) -> Runs:
    """Parse at least one RLE text."""
    # Parse all RLEs as one text: ``digits`` [C] are its characters minus 48, ``ends`` [N] the positions of
    # the zeros after each RLE. A zero before each RLE pairs up its numbers.
    text = ZERO + ZERO.join(codes) + ZERO
    sizes = np.fromiter(map(len, codes), np.intp, len(codes))
    ends = np.cumsum(sizes + 1)
    damaged = np.zeros(len(codes), dtype=bool)
    digits = np.frombuffer(text, dtype=np.uint8) - np.uint8(48)
    # Mark RLEs with characters outside 48 to 111, or that end inside a number, and repair their characters so
    # that the others are still parsed in the same passes.
    unfinished = digits[ends - 1] > 31
    if digits.max() > 63 or unfinished.any():
        foreign = (digits > 63).nonzero()[0]
        damaged |= unfinished
        damaged[np.searchsorted(ends, foreign)] = True
        digits[foreign] = 0
        digits[ends[unfinished] - 1] &= 31
        text = (digits + np.uint8(48)).tobytes()
    # Count the numbers of each RLE: characters that end one.
    more = (digits > 31).nonzero()[0]
    before = np.searchsorted(more, ends)
    given = sizes - np.diff(before, prepend=0)
    # Drop all other characters, and convert the last character of each number to a signed byte: the value,
    # for numbers of one character.
    numbers = text.translate(LAST_DIGIT, GOING_ON)
    number = more - np.arange(len(more))
    # Append a zero to RLEs that end in foreground, so that all have pairs, and shift ``number`` by the zeros
    # inserted before it.
    odd = (given & 1 == 0).nonzero()[0]
    counts = given // 2 + 1
    if len(odd):
        cuts = np.cumsum(given + 1)[odd]
        bounds = [0, *cuts.tolist(), len(numbers)]
        numbers = b"\0".join([numbers[low:high] for low, high in itertools.pairwise(bounds)])
        number += np.repeat(
            np.arange(len(cuts) + 1), np.diff(np.searchsorted(number, cuts), prepend=0, append=len(number))
        )
    # Complete the longer numbers, then add up the differences as rleFrString does. Reset the inserted zeros,
    # which became sums too.
    lengths = np.frombuffer(numbers, dtype=np.int8).astype(np.int32)
    wrong = _longer_numbers(lengths, digits, more, number)
    starts = 2 * (np.cumsum(counts) - counts)
    if len(wrong):
        damaged[np.searchsorted(starts, wrong, side="right") - 1] = True
    _add_differences(lengths[:-1], starts, counts)
    lengths[starts[odd] + 2 * counts[odd] - 1] = 0
    return Runs(lengths, counts, given, damaged)


def split_runs(numbers: NDArray[np.int64], counts: Positions) -> Runs:
    """Arrange runs given as numbers, ``counts`` [N] per mask; a mask may be empty."""
    damaged = np.zeros(len(counts), dtype=bool)
    odd = ((numbers < 0) | (numbers > MOST_PIXELS)).nonzero()[0]
    if len(odd):
        damaged[np.searchsorted(np.cumsum(counts), odd, side="right")] = True
    pairs = counts // 2 + 1
    lengths = np.zeros(2 * int(pairs.sum()) + 1, dtype=np.int32)
    lengths[ragged_ranges(2 * (np.cumsum(pairs) - pairs) + 1, counts)] = numbers
    return Runs(lengths, pairs, counts, damaged)


def _longer_numbers(
    values: NDArray[np.int32], digits: NDArray[np.uint8], more: Positions, number: Positions
) -> Positions:
    """Complete numbers of several characters, given the last one in ``values``; return the invalid ones.

    ``more`` are the characters that continue a number, ``number`` the numbers that they belong to.
    """
    # Find the first character of each longer number, as a position in ``more``.
    heads = (number[1:] != number[:-1]).nonzero()[0]
    heads += 1
    heads = np.concatenate([np.arange(min(len(number), 1)), heads])
    longer, head = number[heads], more[heads]
    # If all of them have two characters, one step completes them.
    if len(heads) == len(more):
        values[longer] = (values[longer] << 5) | (digits[head] & 31)
        return heads[:0]
    extra = np.diff(heads, append=len(number))  # characters before the last
    end, value = head + extra, values[longer]
    # The last of seven characters follows 30 bits, so it must be -2 to 1; eight characters never fit.
    left = (extra >= MOST_CHARACTERS - 1).nonzero()[0]
    wrong: Positions = longer[left[(extra[left] >= MOST_CHARACTERS) | (np.abs(2 * value[left] + 1) > 3)]]
    # Prepend five lower bits at a time, from the last character back, for numbers that have more.
    value = (value << 5) | (digits[end - 1] & 31)
    left = (extra > 1).nonzero()[0]
    for back in range(2, MOST_CHARACTERS):
        if not len(left):
            break
        value[left] = (value[left] << 5) | (digits[end[left] - back] & 31)
        left = left[extra[left] > back]
    values[longer] = value
    return wrong


def _add_differences(values: NDArray[np.int32], starts: Positions, counts: Positions) -> None:
    """Add up the differences of each mask to runs; the first pair is not a difference."""
    first = values[starts + 1]
    pairs = values.reshape(-1, 2)
    # Sum over all masks in one pass: each number is a difference to the one two before, so both lanes of the
    # pairs [R, 2] are cumulative sums. int32 may wrap, but subtracting the sum before a mask undoes it.
    np.cumsum(pairs, axis=0, out=pairs)
    sums = values.view(np.int64)
    before = np.repeat(sums[starts >> 1], counts)  # including the first pair
    pairs -= before.view(np.int32).reshape(-1, 2)
    values[starts + 1] = first


def code_text(runs: NDArray[np.int64], counts: Positions) -> list[bytes]:
    """Encode runs, ``counts`` [N] per mask, as text."""
    # As in rleToString, the fourth and later runs become differences to the run two before.
    starts = np.cumsum(counts) - counts
    rank = np.arange(len(runs)) - np.repeat(starts, counts)
    numbers = runs.astype(np.int64)
    later = (rank > 2).nonzero()[0]
    numbers[later] -= runs[later - 2]
    # A number takes as many characters as its sign and bits need: n characters hold ``-2**(5n - 1)`` to
    # ``2**(5n - 1) - 1``.
    size = np.ones(len(numbers), dtype=np.intp)
    for characters in range(1, MOST_CHARACTERS):
        half = 1 << 5 * characters - 1
        size += (numbers >= half) | (numbers < -half)
    # Write the first character of all numbers, then the second of the longer ones, and so on: at most seven
    # passes.
    ends = np.cumsum(size)
    text = np.empty(int(ends[-1]) if len(ends) else 0, dtype=np.uint8)
    left = np.arange(len(numbers))
    for digit in range(MOST_CHARACTERS):
        goes_on = size[left] > digit + 1
        text[(ends - size)[left] + digit] = (numbers[left] >> 5 * digit & 31) + 48 + 32 * goes_on
        left = left[goes_on]
    # Split the text at the ends of masks.
    whole = text.tobytes()
    stops = np.append(0, ends)[np.cumsum(counts)].tolist()
    return [whole[low:high] for low, high in zip([0, *stops], stops, strict=False)]
