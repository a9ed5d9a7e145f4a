"""Compressed RLEs, decoded far enough to check that they are whole.

Goal
----
pycocotools' C code does not check an RLE: where the runs of two masks do not add up to the same number of
pixels, its loop over both never ends. So the runs of every RLE are added up before it is handed over.

Conventions
-----------
A number is written in characters from 48 on, five bits each and the lowest first; bit 32 says that the number
goes on, bit 16 of its last character that it is negative. From the fourth number on, a number is the
difference to the one two before.

References
----------
pycocotools 2.0.11, ``maskApi.c`` (``rleFrString``).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["DAMAGED", "run_totals"]

DAMAGED = -1
"""Total of an RLE that no mask has: foreign characters, too large a number, a negative run."""

MOST_CHARACTERS = 6
"""Characters of one number: 30 bits are more than an image has pixels."""

BATCH = 1 << 15
"""Characters looked at together: their columns fit a core's cache."""


def run_totals(counts: Sequence[bytes]) -> NDArray[np.int64]:
    """Count the pixels of each compressed code, int64 [N]; :data:`DAMAGED` where it cannot be one."""
    lengths = np.fromiter(map(len, counts), np.int64, len(counts))
    totals = np.zeros(len(counts), dtype=np.int64)
    filled = np.flatnonzero(lengths)
    batch = np.cumsum(lengths[filled]) // BATCH
    for rows in np.split(filled, np.flatnonzero(np.diff(batch)) + 1) if len(filled) else ():
        totals[rows] = _totals(b"".join([counts[row] for row in rows.tolist()]), lengths[rows])
    return totals


def _totals(text: bytes, lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Add up the runs of concatenated RLEs, none of them empty."""
    characters = np.frombuffer(text, dtype=np.uint8) - np.uint8(48)  # foreign ones wrap round, above 63
    code_ends = np.cumsum(lengths)
    last = np.flatnonzero(characters & 32 == 0)  # [R], where each number ends
    width = np.diff(last, prepend=-1)
    ends = np.searchsorted(last, code_ends)  # [N], number after the last of each code
    starts = np.append(0, ends[:-1])

    value = ((characters[last] & 15).astype(np.int32)) - (characters[last] & 16)
    longer = np.flatnonzero(width > 1)
    for back in range(1, MOST_CHARACTERS):
        value[longer] = value[longer] * 32 + (characters[last[longer] - back] & 31)
        longer = longer[width[longer] > back + 1]
    foreign = np.flatnonzero(characters > 63)
    damaged = np.zeros(len(lengths), dtype=bool)
    damaged[np.searchsorted(ends, longer, side="right")] = True
    damaged[np.searchsorted(code_ends, foreign, side="right")] = True

    third = starts[ends - starts > 2]
    value[third + 2] -= value[third]  # so that it is a difference to the one two before, like the rest
    runs = np.zeros(len(value) + 2 + len(value) % 2, dtype=np.int32)  # two zeros before, and an even length
    runs[2 : 2 + len(value)] = value
    # Undoing the differences is a running sum over every second run: two interleaved sums, as two columns.
    np.cumsum(runs.reshape(-1, 2), axis=0, out=runs.reshape(-1, 2))  # over all RLEs; overflow wraps
    before = np.stack(
        [runs[starts], runs[starts + 1]]
    )  # [2,N], the sums before each RLE, to be taken off again
    runs = runs[2 : 2 + len(value)]
    odd = (np.arange(len(value)) - np.repeat(starts, ends - starts)) % 2
    runs -= np.where(odd, *(np.repeat(part, ends - starts) for part in before[::-1]))
    damaged |= np.minimum.reduceat(runs, starts) < 0
    totals: NDArray[np.int64] = np.add.reduceat(runs, starts, dtype=np.int64)
    totals[damaged] = DAMAGED
    return totals
