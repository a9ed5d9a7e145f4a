"""Average precision at recall points under many sets of image weights, with the bits of ``numpy.mean``."""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Sequence
from types import EllipsisType

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import BoolArray, FloatArray, IntArray
from boxscore.scoring.blocks import HeldValues, Values

IN_TURN = 128
"""NumPy adds up to this many numbers without halving them."""

LANES = 8
"""Number of partial sums that NumPy keeps."""


class _Summed:
    """Values whose means are computed here, and the rest by holding all of them."""

    @property
    def _held(self) -> HeldValues:
        """All values, with NaN for a class without a curve."""
        raise NotImplementedError

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


class RunValues(_Summed):
    """Precision at R recall points of W sets, as values with the number of recall points of each.

    A set has its classes with a curve in order, each with the recall points of each threshold.

    Parameters
    ----------
    values : ndarray of float64, [W, E]
    repeats : ndarray of int64, [W, E]
    points : (int, int)
        Number of thresholds T and of recall points R.
    defined : ndarray of bool, [W, K]
        Which classes of each set have a curve.
    single : sequence of int
        Thresholds whose means are computed together with those of all.
    """

    def __init__(
        self,
        values: FloatArray,
        repeats: IntArray,
        points: tuple[int, int],
        defined: BoolArray,
        single: Sequence[int],
    ) -> None:
        self._runs, self._points, self._defined, self._single = (values, repeats), points, defined, single
        self._chosen: int | None = None

    def __getitem__(self, thresholds: Sequence[int]) -> Values:
        """Select thresholds."""
        if len(thresholds) > 1 or thresholds[0] not in self._single:
            return self._held[thresholds]
        one = copy.copy(self)
        one._means, one._chosen = self._means, thresholds[0]
        return one

    def mean_per_class(self) -> FloatArray:
        """Mean of each class's values, [W x K]; NaN for a class without a curve."""
        return self._means[self._chosen][0].ravel()

    def means_of_copies(self, count: int) -> FloatArray:
        """Mean of the values of each set, [W]."""
        assert count == len(self._defined), "the sets are the copies"
        return self._means[self._chosen][1]

    def means_in_turn(self) -> HeldValues:
        """Means of thresholds and classes, [T, W x K], added up point by point."""
        T, R = self._points
        means = np.full((T, self._defined.size), np.nan)
        summed = np.cumsum(self._repeated(...).reshape(-1, T, R) / R, axis=-1)
        means[:, self._defined.ravel()] = summed[..., -1].T
        return HeldValues(means)

    @functools.cached_property
    def _means(self) -> dict[int | None, tuple[FloatArray, FloatArray]]:
        """Means of the classes, [W, K], and of the sets, [W], for all thresholds and for single ones."""
        (T, R), (W, K) = self._points, self._defined.shape
        parts = {None: slice(0, T * R)} | {t: slice(t * R, t * R + R) for t in self._single}
        means = {t: (np.full((W, K), np.nan), np.full(W, np.nan)) for t in parts}
        for number, defined in enumerate(self._defined):
            if not defined.any():
                continue
            # NumPy adds up the values of each class in a row; those of the set go by threshold, point, class.
            rows = self._repeated(number).reshape(-1, T * R)
            columns = np.ascontiguousarray(rows.T)
            for t, part in parts.items():
                of_classes, of_sets = means[t]
                of_classes[number, defined] = np.add.reduce(rows[:, part], axis=1) / (part.stop - part.start)
                of_set = columns[part].reshape(-1)
                of_sets[number] = np.add.reduce(of_set) / of_set.size
        return means

    @property
    def _held(self) -> HeldValues:
        """All values, [T, R, W x K], with NaN for a class without a curve."""
        T, R = self._points
        every = np.full((T, R, self._defined.size), np.nan)
        every[..., self._defined.ravel()] = self._repeated(...).reshape(-1, T, R).transpose(1, 2, 0)
        return HeldValues(every if self._chosen is None else every[[self._chosen]])

    def _repeated(self, sets: int | EllipsisType) -> FloatArray:
        """Return all values of some sets: the classes in order, by threshold and point."""
        values, repeats = self._runs
        return np.repeat(values[sets].ravel(), repeats[sets].ravel())


class PointValues(_Summed):
    """Values of thresholds and the classes of W sets as far as these have a curve.

    Parameters
    ----------
    values : ndarray of float64, [T, columns + 1]
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
