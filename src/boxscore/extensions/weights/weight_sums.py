"""Compute cumulative sums of image weights along a list of images, under many sets of weights.

Conventions
-----------
- Only sums at some positions of the list are needed. The list is split there, and further into blocks of a
  few images, padded with an image of weight 0.
- The sets are the columns of one small table. The sums of all blocks are a few row selections, added up in
  the smallest integers that hold them, which takes a few bytes for many sets.
- Two sets are then packed into the halves of 64-bit integers, and so are all their sums. A difference of two
  cumulative sums is exact in both halves if neither is negative.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import FloatArray, Positions
from boxscore._utils.ordering import distinct

MOST_OF_PIECE = 8
"""Images per block."""

PIECES_TOGETHER = 1 << 13
"""Blocks per batch, which fit a processor's cache with many sets."""

LOW = 0 if sys.byteorder == "little" else 1

Pairs = NDArray[np.int64]
"""Two packed 32-bit numbers each."""


def weight_table(sets: Sequence[FloatArray]) -> NDArray[np.signedinteger]:
    """Stack sets of whole-number weights, [I] each, as an even number of columns; [2 x I + 1, sets].

    The rows are the weights of the images, their negatives for images that are subtracted, and 0.
    """
    count = len(sets[0])
    most = MOST_OF_PIECE * max(int(one.max(initial=0)) for one in sets)
    table = np.zeros((2 * count + 1, len(sets) + len(sets) % 2), dtype=np.min_scalar_type(-most - 1))
    for column, one in enumerate(sets):
        table[:count, column] = one
    np.negative(table[:count], out=table[count:-1])
    return table


class Room:
    """Reused memory, because new memory is slow."""

    def __init__(self) -> None:
        self._numbers: FloatArray = np.zeros(0)

    def array(self, shape: tuple[int, ...]) -> FloatArray:
        """Return an array with any content, which lasts until the next one."""
        size = math.prod(shape)
        if len(self._numbers) < size:
            self._numbers = np.empty(size)
        return self._numbers[:size].reshape(shape)


class WeightSums:
    """Sums along a list of images up to some positions.

    Parameters
    ----------
    rows : ndarray of integers, [n]
        Rows of a :func:`weight_table`: an image, or a subtracted image.
    ends : ndarray of intp
        Positions up to which sums are needed, 0 to n, in any order.
    images : int
    """

    def __init__(self, rows: NDArray[np.integer], ends: Positions, images: int) -> None:
        self._ends = distinct(np.append(ends, 0))
        self._signed = bool((rows >= images).any())
        sizes = np.diff(self._ends)
        piece = min(max(len(rows) // max(len(sizes), 1), 2), MOST_OF_PIECE)
        counts = -(-sizes // piece)
        self._pieces = np.append(0, np.cumsum(counts))
        first = np.arange(self._pieces[-1]) - np.repeat(self._pieces[:-1], counts)
        start = np.repeat(self._ends[:-1], counts) + piece * first
        end = np.repeat(self._ends[1:], counts)
        self._rows = np.full((piece, len(start)), 2 * images, dtype=np.int32)
        for column in range(piece):
            inside = np.flatnonzero(start + column < end)
            self._rows[column, inside] = rows[start[inside] + column]

    def at(self, ends: Positions) -> Positions:
        """Return the index in :meth:`running` of the sum up to each position."""
        return self._pieces.take(np.searchsorted(self._ends, ends))

    def running(self, table: NDArray[np.signedinteger], room: Room | None = None) -> Pairs:
        """Return the sums up to each block, with a leading 0, of each pair of sets; [pairs, blocks + 1]."""
        count = self._rows.shape[1]
        total = (room or Room()).array((table.shape[1] // 2, count + 1)).view(np.int64)
        total[:, 0] = 0
        for low in range(0, count, PIECES_TOGETHER):
            rows = self._rows[:, low : low + PIECES_TOGETHER]
            sums = table.take(rows[0], axis=0)
            for more in rows[1:]:
                sums += table.take(more, axis=0)
            halves = sums.astype(np.int32)
            pairs = halves.view(np.int64)
            if self._signed:
                pairs -= (halves[:, LOW::2] < 0).astype(np.int64) << 32
            pairs[0] += total[:, low]
            np.cumsum(pairs.T.copy(), axis=1, out=total[:, low + 1 : low + 1 + len(sums)])
        return total
