"""Average precision at recall points under many sets of image weights, with the bits of ``numpy.mean``."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import BoolArray, FloatArray
from boxscore.scoring.blocks import HeldValues

IN_TURN = 128
"""NumPy adds up to this many numbers without halving them."""

LANES = 8
"""Number of partial sums that NumPy keeps."""


class PointValues:
    """Values of thresholds, perhaps recall points, and the classes of W sets as far as these have a curve.

    Parameters
    ----------
    values : ndarray of float64, [T, ..., columns + 1]
        A column for each class and set with a curve; the last one is not read.
    defined : ndarray of bool, [W, K]
        Which classes of each set have a column.
    """

    def __init__(self, values: FloatArray, defined: BoolArray) -> None:
        self._values, self._columns_of = values, defined

    def __getitem__(self, thresholds: Sequence[int]) -> PointValues:
        """Select thresholds."""
        return PointValues(self._values[list(thresholds)], self._columns_of)

    def mean_per_class(self) -> FloatArray:
        """Mean of each class's values, [W x K]; NaN for a class without a curve."""
        mean = np.full(self._columns_of.size, np.nan)
        sums = column_sums(self._values.reshape(-1, self._values.shape[-1]))
        mean[self._columns_of.ravel()] = sums[:-1] / math.prod(self._values.shape[:-1])
        return mean

    def means_of_copies(self, count: int) -> FloatArray:
        """Mean of the values of each set, [W]."""
        assert count == len(self._columns_of), "the sets are the copies"
        means, high = np.full(count, np.nan), 0
        for number, columns in enumerate(self._columns_of.sum(axis=1).tolist()):
            low, high = high, high + columns
            if columns:
                ours = np.ascontiguousarray(self._values[..., low:high])
                means[number] = np.add.reduce(ours.reshape(-1)) / ours.size
        return means

    def of_classes(self, chosen: BoolArray) -> HeldValues:
        """Select classes by flags [W x K], for means over all of them."""
        return self._held.of_classes(chosen)

    def repeated(self, multiplicity: NDArray[np.int64]) -> HeldValues:
        """Repeat or drop classes by multiplicity [W x K], for means over all of them."""
        return self._held.repeated(multiplicity)

    def mean_of_defined(self) -> float:
        """Mean of the values that are not NaN."""
        return self._held.mean_of_defined()

    def mean_of_slots(self) -> float:
        """``numpy.nanmean``."""
        return self._held.mean_of_slots()

    def weighted_mean(self, weights: FloatArray) -> float:
        """Mean weighted by class."""
        return self._held.weighted_mean(weights)

    def of_copies(self, count: int) -> Sequence[HeldValues]:
        """Split the classes into those of each set."""
        return self._held.of_copies(count)

    @property
    def _held(self) -> HeldValues:
        """All values, with NaN for a class without a curve."""
        every = np.full((*self._values.shape[:-1], self._columns_of.size), np.nan)
        every[..., self._columns_of.ravel()] = self._values[..., :-1]
        return HeldValues(every)


def column_sums(rows: FloatArray) -> FloatArray:
    """Sum each column of [n, C] with the bits of ``numpy.sum`` of that column alone.

    References
    ----------
    NumPy's ``pairwise_sum`` in ``loops_utils.h.src``.
    """
    count = len(rows)
    # Halves have a length that is a multiple of the lanes.
    if count > IN_TURN:
        half = count // 2
        half -= half % LANES
        sums: FloatArray = column_sums(rows[:half]) + column_sums(rows[half:])
        return sums
    # Each lane adds every eighth row; the lanes are added in pairs, and the last few rows one by one.
    lanes, whole = LANES, count - count % LANES
    if whole:
        sums = np.add.reduce(rows[:whole].reshape(-1, LANES, rows.shape[1]), axis=0)
        while lanes > 1:
            sums, lanes = sums[::2] + sums[1::2], lanes // 2
        sums = sums[0]
    else:
        sums = np.zeros(rows.shape[1])
    for row in rows[whole:]:
        sums += row
    return sums
