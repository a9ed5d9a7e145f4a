"""Read and write run lengths of masks, and the text in which COCO writes them.

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

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import Positions
from boxscore._utils.ordering import ragged_ranges
from boxscore._utils.records import NamedTuple

DAMAGED = -1
"""Total of a code that no mask has: foreign characters, too large a number, a negative run."""

MOST_PIXELS = 2**31 - 1

MOST_CHARACTERS = 7
"""Characters of one number; the last may only be a sign and a bit, 32 bits in all."""

ZERO = b"0"
GOING_ON = bytes(range(48 + 32, 48 + 64))
"""Characters that end no number."""
LAST_DIGIT = bytes((((code - 48) & 31) ^ 16) - 16 & 255 for code in range(256))
"""The number, an int8, that each of the other characters ends."""


class Runs(NamedTuple):
    """Runs of several masks one after the other: those of each begin with a zero, and are even in number."""

    lengths: NDArray[
        np.int32
    ]  # [2 R + 1], zero, background, foreground, background, ..., zero; one zero last
    counts: Positions  # [N], pairs of each mask
    given: Positions  # [N], runs that its code has
    damaged: NDArray[np.bool_]  # [N], as far as the text alone shows

    @property
    def starts(self) -> Positions:
        """Start of the lengths of each mask, [N]."""
        return 2 * (np.cumsum(self.counts) - self.counts)

    def totals(self) -> NDArray[np.int64]:
        """Pixels of each mask, [N]; :data:`DAMAGED` where it cannot be one."""
        starts, lengths = self.starts, self.lengths[:-1]
        totals: NDArray[np.int64] = np.add.reduceat(lengths, starts, dtype=np.int64)
        totals[self.damaged | (np.minimum.reduceat(lengths, starts) < 0)] = DAMAGED
        return totals


def read_runs(codes: Sequence[bytes]) -> Runs:
    """Read codes, one at least."""
    # Read all codes as one text: ``digits`` [C] are its characters less 48, ``ends`` [N] the places of the
    # zeros after the codes.
    text = ZERO + ZERO.join(codes) + ZERO  # a zero before each code, which makes pairs of what follows
    sizes = np.fromiter(map(len, codes), np.intp, len(codes))
    ends = np.cumsum(sizes + 1)
    damaged = np.zeros(len(codes), dtype=bool)
    digits = np.frombuffer(text, dtype=np.uint8) - np.uint8(48)
    # A character outside of 48 to 111 is foreign, and no code ends while a number goes on. Mark these codes
    # and repair their characters, so that the others are still read in the same passes.
    unfinished = digits[ends - 1] > 31
    if digits.max() > 63 or unfinished.any():
        foreign = (digits > 63).nonzero()[0]
        damaged |= unfinished
        damaged[np.searchsorted(ends, foreign)] = True
        digits[foreign] = 0
        digits[ends[unfinished] - 1] &= 31
        text = (digits + np.uint8(48)).tobytes()
    # A code has as many numbers as characters that end one.
    more = (digits > 31).nonzero()[0]
    before = np.searchsorted(more, ends)
    given = sizes - np.diff(before, prepend=0)
    # One translation drops all other characters and turns the last one of each number into a signed byte,
    # which is the whole number if it has one character.
    numbers = text.translate(LAST_DIGIT, GOING_ON)
    number = more - np.arange(len(more))  # as many numbers end before a character as are no such characters
    # A code that ends in foreground gets one more zero, so that all have pairs. ``number`` moves on by the
    # zeros inserted before it.
    odd = (given & 1 == 0).nonzero()[0]
    counts = given // 2 + 1
    if len(odd):
        cuts = np.cumsum(given + 1)[odd]
        bounds = [0, *cuts.tolist(), len(numbers)]
        numbers = b"\0".join([numbers[low:high] for low, high in itertools.pairwise(bounds)])
        number += np.repeat(
            np.arange(len(cuts) + 1), np.diff(np.searchsorted(number, cuts), prepend=0, append=len(number))
        )
    # Complete the longer numbers, then add up the differences as rleFrString does. The inserted zeros become
    # sums too: set them back.
    lengths = np.frombuffer(numbers, dtype=np.int8).astype(np.int32)
    wrong = _longer_numbers(lengths, digits, more, number)
    starts = 2 * (np.cumsum(counts) - counts)
    if len(wrong):
        damaged[np.searchsorted(starts, wrong, side="right") - 1] = True
    _add_differences(lengths[:-1], starts, counts)
    lengths[starts[odd] + 2 * counts[odd] - 1] = 0
    return Runs(lengths, counts, given, damaged)


def split_runs(numbers: NDArray[np.int64], counts: Positions) -> Runs:
    """Arrange runs that are given as numbers, ``counts`` [N] of each mask; one without any has no pixel."""
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
    """Complete the numbers of several characters, of which ``values`` has the last; return the wrong ones.

    ``more`` are the characters that do not end a number, ``number`` those to which they belong.
    """
    # First character of each number that has several, as a position in ``more``.
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
    # The last of seven characters comes after 30 bits, so it may only be -2 to 1; of eight characters none
    # fits.
    left = (extra >= MOST_CHARACTERS - 1).nonzero()[0]
    wrong: Positions = longer[left[(extra[left] >= MOST_CHARACTERS) | (np.abs(2 * value[left] + 1) > 3)]]
    # Prepend the next lower five bits, from the last character back, while a number has more of them.
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
    """Add up the differences of each mask to runs; its first pair stays as it is."""
    first = values[starts + 1]
    pairs = values.reshape(-1, 2)
    # Sum over all masks in one pass: from the fourth number on, each is the difference to the one two before,
    # so both lanes of the pairs [R, 2] are cumulative sums. int32 wraps, but subtracting the sum before a
    # mask subtracts what wrapped.
    np.cumsum(pairs, axis=0, out=pairs)
    sums = values.view(np.int64)
    before = np.repeat(sums[starts >> 1], counts)  # with its first pair, which is in no later run
    pairs -= before.view(np.int32).reshape(-1, 2)
    values[starts + 1] = first


def code_text(runs: NDArray[np.int64], counts: Positions) -> list[bytes]:
    """Write runs, ``counts`` [N] of each mask, as text."""
    # As in rleToString, the fourth and later runs become differences to the run two before; all numbers [R]
    # in one step.
    starts = np.cumsum(counts) - counts
    rank = np.arange(len(runs)) - np.repeat(starts, counts)
    numbers = runs.astype(np.int64)
    later = (rank > 2).nonzero()[0]
    numbers[later] -= runs[later - 2]
    # A number takes as many characters as its sign and bits need, five each: n characters hold
    # ``-2**(5n - 1)`` to ``2**(5n - 1) - 1``.
    size = np.ones(len(numbers), dtype=np.intp)
    for characters in range(1, MOST_CHARACTERS):
        half = 1 << 5 * characters - 1
        size += (numbers >= half) | (numbers < -half)
    # Write the first character of all numbers, then the second of those that go on, and so forth: seven
    # passes at most.
    ends = np.cumsum(size)
    text = np.empty(int(ends[-1]) if len(ends) else 0, dtype=np.uint8)
    left = np.arange(len(numbers))
    for digit in range(MOST_CHARACTERS):
        goes_on = size[left] > digit + 1
        text[(ends - size)[left] + digit] = (numbers[left] >> 5 * digit & 31) + 48 + 32 * goes_on
        left = left[goes_on]
    # Cut the text where masks end.
    whole = text.tobytes()
    stops = np.append(0, ends)[np.cumsum(counts)].tolist()
    return [whole[low:high] for low, high in zip([0, *stops], stops, strict=False)]
