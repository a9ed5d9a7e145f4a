"""Average values of summary metrics that are held, or computed block by block to the same bits.

Conventions
-----------
- Values are thresholds x points of the curve x classes. NaN is left out; the mean of none is NaN.
- If there are too many values for memory, they are computed block by block and summed up in the order in
  which NumPy adds up an array of all of them.
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
"""Most values [T, R, K] in memory to be summed up, 8 bytes each and some 50 while they are made."""

SUMMED_TOGETHER = 1 << 16
"""Numbers that NumPy adds up in one call; above 128, or its blocks would be cut."""


def class_blocks(class_count: int, values_of_class: int) -> Iterator[slice]:
    """Cut the classes into runs of at most :data:`MOST_VALUES` values."""
    size = max(1, MOST_VALUES // values_of_class)
    yield from (slice(low, low + size) for low in range(0, class_count, size))


class Values(Protocol):
    """Values of thresholds, points and classes."""

    def __getitem__(self, thresholds: Sequence[int], /) -> Values:
        """Choose among the thresholds."""

    def of_classes(self, chosen: NDArray[np.bool_]) -> Values:
        """Choose among the classes, [K], for means over all of them."""

    def repeated(self, multiplicity: NDArray[np.int64]) -> Values:
        """Take each class several times, or not at all, [K], in means over all of them."""

    def mean_of_defined(self) -> float:
        """Mean of the values that are not NaN, in C order as in pycocotools; NaN when there are none."""

    def mean_of_slots(self) -> float:
        """``numpy.nanmean``: undefined values are added as 0, and not counted; NaN when there are none.

        Where each class has one value a threshold, class after class, as cityscapesScripts adds them.
        """

    def mean_per_class(self) -> FloatArray:
        """Mean of each class's values, [K]; NaN for a class without a curve, whose values are all NaN."""

    def weighted_mean(self, weights: FloatArray) -> float:
        """Mean over classes that count by weights, [K]: each value as its class; NaN when there are none."""

    def of_copies(self, count: int) -> Sequence[Values]:
        """Cut the classes into equally many for each of several copies."""

    def means_of_copies(self, count: int) -> FloatArray:
        """:meth:`mean_of_defined` of each copy, with its bits, [count]."""


class HeldValues:
    """Values in one array, in any order of its axes in memory: they are added up in C order all the same.

    Parameters
    ----------
    values : ndarray of float64, [T, ..., K]
    """

    is_mean_of_classes = True
    """Whether the value of all classes is a mean of theirs."""

    def __init__(self, values: FloatArray) -> None:
        self.values = values

    def __getitem__(self, thresholds: Sequence[int]) -> HeldValues:
        """Choose among the thresholds."""
        return HeldValues(self.values[list(thresholds)])

    def of_classes(self, chosen: NDArray[np.bool_]) -> HeldValues:
        """Choose among the classes, [K]."""
        return HeldValues(self.values[..., chosen])

    def repeated(self, multiplicity: NDArray[np.int64]) -> HeldValues:
        """Take each class several times, or not at all, [K]."""
        return HeldValues(np.repeat(self.values, multiplicity, axis=-1))

    def beside(self, others: Sequence[HeldValues]) -> HeldValues:
        """Put the values of more classes behind these."""
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
        classes, values, _ = self._defined
        mean = np.full(self.values.shape[-1], np.nan)
        by_class = np.ascontiguousarray(values.reshape(math.prod(values.shape[:-1]), len(classes)).T)
        mean[classes] = by_class.mean(axis=1)
        return mean

    def weighted_mean(self, weights: FloatArray) -> float:
        """Mean over classes that count by weights, [K]."""
        means = self.mean_per_class()
        defined = ~np.isnan(self.values).reshape(-1, len(means))
        share = defined.mean(axis=0)
        for k in np.flatnonzero((share > 0) & (share < 1)).tolist():  # at some thresholds alone
            means[k] = self.values.reshape(-1, len(means))[defined[:, k], k].mean()
        return weighted_mean(means, weights * share)

    def of_copies(self, count: int) -> list[HeldValues]:
        """Cut the classes into equally many for each of some copies."""
        if count == 1:
            return [self]
        return [HeldValues(part) for part in np.split(self.values, count, axis=-1)]

    def means_of_copies(self, count: int) -> FloatArray:
        """Return :meth:`mean_of_defined` of each copy, with its bits, [count]."""
        if count == 1:
            return np.array([self.mean_of_defined()])
        # View the values as [T x ..., copies, k]. A class is mostly undefined everywhere or nowhere; other
        # patterns take one mean per copy.
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
                # A contiguous row is added up as an array of its own would be.
                rows = by_copy[:, copies][:, :, ~pattern].transpose(1, 0, 2).reshape(len(copies), -1)
                means[copies] = np.ascontiguousarray(rows).mean(axis=1)
        return means

    @functools.cached_property
    def _defined(self) -> tuple[NDArray[np.intp], FloatArray, bool]:
        """Classes and values, but those of NaN alone where no other value is; whether none is left."""
        undefined = np.isnan(self.values)
        every = np.arange(self.values.shape[-1])
        if not undefined.any():
            return every, self.values, True
        absent = undefined[(0,) * (undefined.ndim - 1)]
        if not absent.any() or not (undefined == absent).all():
            return every, self.values, False
        classes = np.flatnonzero(~absent)
        return classes, self.values.take(classes, axis=-1), True


def mean_of_defined(values: FloatArray) -> float:
    """Mean of the values that are not NaN, in C order as pycocotools takes it; NaN when there are none."""
    undefined = np.isnan(values)
    defined = values[~undefined] if undefined.any() else values.ravel()
    return float(defined.mean()) if defined.size else float("nan")


def weighted_mean(means: FloatArray, weights: FloatArray) -> float:
    """Mean of the means of classes by weights, both [K], those that are NaN left out."""
    counted = np.flatnonzero(~np.isnan(means) & (weights > 0))
    if not counted.size:
        return float("nan")
    return float((means[counted] * weights[counted]).sum() / weights[counted].sum())


def mean_of_lines(values: FloatArray, weights: FloatArray | None) -> FloatArray:
    """Mean over classes of values without NaN, [..., K], by their weights if there are some; [...]."""
    if weights is None or not (weights > 0).any():
        mean: FloatArray = values.mean(axis=-1)
        return mean
    return np.asarray((values * weights).sum(axis=-1) / weights.sum())


class CurveBlocks:
    """Precision at R recall points of some thresholds and classes; never whole.

    Parameters
    ----------
    envelope : callable
        Gives the values of one threshold and some classes, [k, R]; NaN for a class without a curve.
    undefined : ndarray of bool, [K]
        Classes without a curve.
    point_count : int
        R.
    thresholds : sequence of int
        Positions on the axis T.
    classes : ndarray of intp, optional
        Positions of the classes that means take in, in their order, some of them repeatedly; all, each once,
        when not given.
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
        """Choose among the thresholds."""
        return self._with([self._thresholds[one] for one in thresholds], self._classes)

    def of_classes(self, chosen: NDArray[np.bool_]) -> CurveBlocks:
        """Choose among the classes, [K], for means over all of them."""
        return self._with(self._thresholds, self._classes[chosen[self._classes]])

    def repeated(self, multiplicity: NDArray[np.int64]) -> CurveBlocks:
        """Take each class several times, or not at all, [K], in means over all of them."""
        return self._with(self._thresholds, np.repeat(self._classes, multiplicity[self._classes]))

    def mean_of_defined(self) -> float:
        """Mean of the values that are not NaN, with the bits of ``numpy.mean``; NaN without any."""
        return self._mean(self._classes[~self._undefined[self._classes]])

    def mean_of_slots(self) -> float:
        """Mean of the values that are not NaN, with the bits of ``numpy.nanmean``; NaN without any."""
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
        """Mean over classes that count by weights, [K], each once."""
        taken = np.zeros(len(self._undefined), dtype=bool)
        taken[self._classes] = True
        return weighted_mean(self.mean_per_class(), np.where(taken, weights, 0.0))

    def of_copies(self, count: int) -> list[CurveBlocks]:
        """Return these: so many values are those of one copy."""
        assert count == 1, "copies are counted together where their values are few"
        return [self]

    def means_of_copies(self, count: int) -> FloatArray:
        """:meth:`mean_of_defined` of the one copy, [1]."""
        return np.array([copy.mean_of_defined() for copy in self.of_copies(count)])

    def _with(self, thresholds: Sequence[int], classes: NDArray[np.intp]) -> CurveBlocks:
        return CurveBlocks(self._envelope, self._undefined, self._point_count, thresholds, classes)

    def _mean(self, classes: NDArray[np.intp]) -> float:
        """Add up the values of some classes, undefined ones as 0, over the number of those defined."""
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
    """Numbers that come in arrays, read in other portions."""

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
    """Add up the next ``count`` numbers as ``numpy.sum`` does, to the bit.

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
