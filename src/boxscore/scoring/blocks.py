"""Average values of summary metrics in memory, or block by block with the same bits.

Conventions
-----------
- Values are thresholds x points of the curve x classes. NaN is left out; the mean of an empty set is NaN.
- If there are too many values for memory, they are computed block by block and summed in the order in which
  NumPy sums an array of all of them.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import FloatArray
from boxscore._utils.ordering import distinct_rows

MOST_VALUES = 1 << 22
"""Largest number of values [T, R, K] held in memory for a sum: 8 bytes each, about 50 while computed."""

SUMMED_TOGETHER = 1 << 16
"""Numbers that NumPy sums in one call; above 128, or its blocks would be split."""


def class_blocks(class_count: int, values_of_class: int) -> Iterator[slice]:
    """Split the classes into runs of at most :data:`MOST_VALUES` values."""
    size = max(1, MOST_VALUES // values_of_class)
    yield from (slice(low, low + size) for low in range(0, class_count, size))


class Values(Protocol):
    """Values of thresholds, points and classes."""

    def __getitem__(self, thresholds: Sequence[int], /) -> Values:
        """Select thresholds."""

    def of_classes(self, chosen: NDArray[np.bool_]) -> Values:
        """Select classes by flags [K], for means over all of them."""

    def repeated(self, multiplicity: NDArray[np.int64]) -> Values:
        """Repeat or drop classes by multiplicity [K], for means over all of them."""

    def mean_of_defined(self) -> float:
        """Mean of the values that are not NaN, in C order as in pycocotools; NaN if all are."""

    def mean_of_slots(self) -> float:
        """``numpy.nanmean``: undefined values are added as 0 but not counted; NaN if all are undefined.

        If each class has one value per threshold, add class after class, like cityscapesScripts.
        """

    def mean_per_class(self) -> FloatArray:
        """Mean of each class's values, [K]; NaN for a class without a curve."""

    def weighted_mean(self, weights: FloatArray) -> float:
        """Mean weighted by class, [K]; NaN if every value is undefined."""

    def of_copies(self, count: int) -> Sequence[Values]:
        """Split the classes evenly into several copies."""

    def means_of_copies(self, count: int) -> FloatArray:
        """:meth:`mean_of_defined` of each copy, [count], bit for bit."""


class HeldValues:
    """Values in one array. They are summed in C order, independent of the memory layout.

    Parameters
    ----------
    values : ndarray of float64, [T, ..., K]
    absent : ndarray of bool, [K], optional
        Classes whose values are all NaN, if no other value is; by default they are looked for.
    """

    is_mean_of_classes = True
    """Whether the value over all classes is the mean of the classes' values."""

    def __init__(self, values: FloatArray, absent: NDArray[np.bool_] | None = None) -> None:
        self.values, self._absent = values, absent

    def __getitem__(self, thresholds: Sequence[int]) -> HeldValues:
        """Select thresholds."""
        return HeldValues(self.values[list(thresholds)], self._absent)

    def of_classes(self, chosen: NDArray[np.bool_]) -> HeldValues:
        """Select classes by flags [K]."""
        return HeldValues(self.values[..., chosen])

    def repeated(self, multiplicity: NDArray[np.int64]) -> HeldValues:
        """Repeat or drop classes by multiplicity [K]."""
        return HeldValues(np.repeat(self.values, multiplicity, axis=-1))

    def beside(self, others: Sequence[HeldValues]) -> HeldValues:
        """Append the values of more classes."""
        return HeldValues(np.concatenate([self.values, *(other.values for other in others)], axis=-1))

    def mean_of_defined(self) -> float:
        """Mean of the values that are not NaN."""
        _, values, every = self._defined
        return float(values.ravel().mean()) if every and values.size else mean_of_defined(values)

    def mean_of_slots(self) -> float:
        """``numpy.nanmean``."""
        values = self.values.T if self.values.ndim == 2 else self.values
        defined = np.count_nonzero(~np.isnan(values))
        return float(np.sum(np.nan_to_num(values, nan=0.0).ravel()) / defined) if defined else float("nan")

    def mean_per_class(self) -> FloatArray:
        """Mean of each class's values, [K]."""
        *axes, K = self.values.shape
        by_class = np.moveaxis(self.values, -1, 0).reshape(K, math.prod(axes))
        mean: FloatArray = np.ascontiguousarray(by_class).mean(axis=1)
        return mean

    def weighted_mean(self, weights: FloatArray) -> float:
        """Mean weighted by class, [K]."""
        means = self.mean_per_class()
        defined = ~np.isnan(self.values).reshape(-1, len(means))
        share = defined.mean(axis=0)
        for k in np.flatnonzero((share > 0) & (share < 1)).tolist():  # defined at some thresholds only
            means[k] = self.values.reshape(-1, len(means))[defined[:, k], k].mean()
        return weighted_mean(means, weights * share)

    def of_copies(self, count: int) -> list[HeldValues]:
        """Split the classes evenly into several copies."""
        if count == 1:
            return [self]
        parts = np.split(self.values, count, axis=-1)
        absent = [None] * count if self._absent is None else np.split(self._absent, count)
        return [HeldValues(part, of_part) for part, of_part in zip(parts, absent, strict=True)]

    def means_of_copies(self, count: int) -> FloatArray:
        """Return :meth:`mean_of_defined` of each copy, [count], bit for bit."""
        if count == 1:
            return np.array([self.mean_of_defined()])
        if self._absent is not None:
            return np.array([copy.mean_of_defined() for copy in self.of_copies(count)])
        # View the values as [T x ..., copies, k]. A class is usually undefined everywhere or nowhere; other
        # patterns need one mean per copy.
        *axes, classes = self.values.shape
        by_copy = self.values.reshape(math.prod(axes), count, classes // count)
        undefined = np.isnan(by_copy)
        absent = np.logical_and.reduce(undefined, axis=0)
        if not (undefined == absent).all():
            return np.array([copy.mean_of_defined() for copy in self.of_copies(count)])
        # Copies with the same undefined classes share one array operation: pack the patterns into bytes and
        # group equal ones.
        means = np.full(count, np.nan)
        firsts, pattern_of = distinct_rows(np.packbits(absent, axis=1))
        for number, pattern in enumerate(absent[firsts]):
            if not pattern.all():
                copies = np.flatnonzero(pattern_of == number)
                # A contiguous row is summed like an array of its own.
                rows = by_copy[:, copies][:, :, ~pattern].transpose(1, 0, 2).reshape(len(copies), -1)
                means[copies] = np.ascontiguousarray(rows).mean(axis=1)
        return means

    @functools.cached_property
    def _defined(self) -> tuple[NDArray[np.intp], FloatArray, bool]:
        """Classes and values, without undefined classes if these hold every NaN; whether NaN is gone."""
        every, absent = np.arange(self.values.shape[-1]), self._absent
        if absent is None:
            undefined = np.isnan(self.values)
            absent = undefined[(0,) * (undefined.ndim - 1)]
            if undefined.any() and not (absent.any() and (undefined == absent).all()):
                return every, self.values, False
        if not absent.any():
            return every, self.values, True
        classes = np.flatnonzero(~absent)
        # Keep the memory layout: a class is contiguous, or the classes are.
        by_class = np.moveaxis(self.values, -1, 0)
        if by_class.flags.c_contiguous:
            return classes, np.moveaxis(by_class.take(classes, axis=0), 0, -1), True
        return classes, self.values.take(classes, axis=-1), True


def mean_of_defined(values: FloatArray) -> float:
    """Mean of the values that are not NaN, in C order as in pycocotools; NaN if all are."""
    undefined = np.isnan(values)
    defined = values[~undefined] if undefined.any() else values.ravel()
    return float(defined.mean()) if defined.size else float("nan")


def weighted_mean(means: FloatArray, weights: FloatArray) -> float:
    """Weighted mean of the means of classes, both [K]; NaN is left out."""
    counted = np.flatnonzero(~np.isnan(means) & (weights > 0))
    if not counted.size:
        return float("nan")
    return float((means[counted] * weights[counted]).sum() / weights[counted].sum())


def mean_of_lines(values: FloatArray, weights: FloatArray | None) -> FloatArray:
    """Mean over classes of values without NaN, [..., K], weighted if weights are given; [...]."""
    if weights is None or not (weights > 0).any():
        mean: FloatArray = values.mean(axis=-1)
        return mean
    return np.asarray((values * weights).sum(axis=-1) / weights.sum())


class CurveBlocks:
    """Precision at R recall points of some thresholds and classes, never all in memory.

    Parameters
    ----------
    envelope : callable
        Returns the values of one threshold and some classes, [k, R]; NaN for a class without a curve.
    undefined : ndarray of bool, [K]
        Classes without a curve.
    point_count : int
        R.
    thresholds : sequence of int
        Positions on the axis T.
    classes : ndarray of intp, optional
        Positions of the classes in means, in order, possibly repeated; by default all.
    """

    def __init__(
        self,
        envelope: Callable[[int, slice], FloatArray],
        undefined: NDArray[np.bool_],
        point_count: int,
        thresholds: Sequence[int],
        classes: NDArray[np.intp] | None = None,
    ) -> None:
        self._envelope, self._undefined, self._point_count = envelope, undefined, point_count
        self._thresholds = thresholds
        self._classes = np.arange(len(undefined)) if classes is None else classes

    def __getitem__(self, thresholds: Sequence[int]) -> CurveBlocks:
        """Select thresholds."""
        return self._with([self._thresholds[one] for one in thresholds], self._classes)

    def of_classes(self, chosen: NDArray[np.bool_]) -> CurveBlocks:
        """Select classes by flags [K], for means over all of them."""
        return self._with(self._thresholds, self._classes[chosen[self._classes]])

    def repeated(self, multiplicity: NDArray[np.int64]) -> CurveBlocks:
        """Repeat or drop classes by multiplicity [K], for means over all of them."""
        return self._with(self._thresholds, np.repeat(self._classes, multiplicity[self._classes]))

    def mean_of_defined(self) -> float:
        """Mean of the values that are not NaN, with the bits of ``numpy.mean``; NaN if all are."""
        return self._mean(self._classes[~self._undefined[self._classes]])

    def mean_of_slots(self) -> float:
        """Mean of the values that are not NaN, with the bits of ``numpy.nanmean``; NaN if all are."""
        return self._mean(self._classes)

    def mean_per_class(self) -> FloatArray:
        """Mean of each class's values, [K]; NaN for a class without a curve."""
        values_of_class = len(self._thresholds) * self._point_count
        mean = np.empty(len(self._undefined))
        for classes in class_blocks(len(mean), values_of_class):
            block = np.stack([self._envelope(t, classes) for t in self._thresholds], axis=1)  # [k,T,R]
            mean[classes] = block.reshape(len(block), -1).mean(axis=1)
        return mean

    def weighted_mean(self, weights: FloatArray) -> float:
        """Mean weighted by class, [K]."""
        taken = np.zeros(len(self._undefined), dtype=bool)
        taken[self._classes] = True
        return weighted_mean(self.mean_per_class(), np.where(taken, weights, 0.0))

    def of_copies(self, count: int) -> list[CurveBlocks]:
        """Return this object: so many values always belong to one copy."""
        assert count == 1, "copies are counted together where their values are few"
        return [self]

    def means_of_copies(self, count: int) -> FloatArray:
        """Return :meth:`mean_of_defined` of the one copy, [1]."""
        return np.array([copy.mean_of_defined() for copy in self.of_copies(count)])

    def _with(self, thresholds: Sequence[int], classes: NDArray[np.intp]) -> CurveBlocks:
        return CurveBlocks(self._envelope, self._undefined, self._point_count, thresholds, classes)

    def _mean(self, classes: NDArray[np.intp]) -> float:
        """Sum the values of some classes, undefined ones as 0, and divide by the number of defined ones."""
        values_of_class = len(self._thresholds) * self._point_count
        defined = values_of_class * int((~self._undefined[self._classes]).sum())
        if not defined:
            return float("nan")
        return _sum(_Stream(self._planes(classes)), values_of_class * len(classes)) / defined

    def _planes(self, classes: NDArray[np.intp]) -> Iterator[FloatArray]:
        """Yield the values of some classes, undefined ones as 0, threshold by threshold, [R * K]."""
        once, at = np.unique(classes, return_inverse=True)
        asked = np.zeros(len(self._undefined), dtype=bool)
        asked[once] = True
        for t in self._thresholds:
            plane = np.empty((self._point_count, len(once)))
            done = 0
            for block in class_blocks(len(asked), self._point_count):
                values = self._envelope(t, block)[asked[block]]
                plane[:, done : done + len(values)] = values.T
                done += len(values)
            plane[:, self._undefined[once]] = 0.0
            yield (plane if len(at) == len(once) else plane[:, at]).ravel()


class _Stream:
    """Read numbers that arrive in arrays, in chunks of other sizes."""

    def __init__(self, arrays: Iterator[FloatArray]) -> None:
        self._arrays, self._left = arrays, np.empty(0)

    def read(self, count: int) -> FloatArray:
        parts = []
        while count:
            if not len(self._left):
                self._left = next(self._arrays)
            parts.append(self._left[:count])
            self._left = self._left[count:]
            count -= len(parts[-1])
        return np.concatenate(parts)


def _sum(numbers: _Stream, count: int) -> float:
    """Sum the next ``count`` numbers like ``numpy.sum``, bit for bit.

    References
    ----------
    NumPy's ``pairwise_sum`` in ``loops_utils.h.src``: halves whose lengths are multiples of 8.
    """
    if count <= SUMMED_TOGETHER:
        return float(np.add.reduce(numbers.read(count)))
    half = count // 2
    half -= half % 8
    first = _sum(numbers, half)
    return first + _sum(numbers, count - half)
