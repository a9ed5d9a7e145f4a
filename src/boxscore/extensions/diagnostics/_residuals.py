"""Compute the calibration error without the contribution of sampling noise, and its interval.

Goal
----
The plain error adds up absolute gaps. Even if scores are calibrated, sampling noise makes every gap nonzero,
so the plain error is too large. The bias grows as bins have fewer detections, and again over resampled
images. This module removes both biases.

Conventions
-----------
- The *residual* of a detection is 1 (true) or 0 (false) minus its score. The residual of a bin is the sum;
  divided by the number of detections, it is the gap.
- Split the images at random into halves. One half determines the sign of the gap in each bin, the other half
  its size, so that noise in the sign does not enter the size. The *debiased* error is the mean over all
  splits. For a residual r with standard error s, this mean is r erf(r / sqrt(2) s) - 2 s phi(r / s) in each
  bin.
- For a bin with an expected residual m, the expectation of this mean is m erf(m / 2 s): 0 if scores are
  calibrated, |m| if the gap is large, never more than |m|, and at most 0.48 s less in between. So the
  debiased error is 0 on average for calibrated scores, and can be negative; for other scores it is never too
  large on average.
- The standard error assumes calibrated scores, whose residuals have the variance s (1 - s). So it is not 0 if
  all outcomes happen to be the same. Detections of one image depend on each other, so the variance is
  multiplied by a design effect: one number per class, at least 1. It is the ratio of the variance of the sums
  over images to the variance that independent residuals would have.
- Sums use exact digits (:mod:`boxscore._utils.exact_sums`), so partitioning does not change them. Partitions
  hold disjoint units; if units are groups of images, their sums are first gathered by unit.
- The plain error is biased upwards and the debiased error downwards. The interval starts at the low end of
  the debiased error and ends at the high end of the plain error. Both ends come from resampled images, with
  the mean of the draws shifted to the value. So the interval holds in both directions, and is wider if bins
  have few detections. If draws vary less than the standard errors, for example because all outcomes are the
  same, normal noise makes up the difference.

References
----------
A. Kumar, P. Liang and T. Ma, "Verified Uncertainty Calibration", NeurIPS 2019, and R. Roelofs, N. Cain,
J. Shlens and M. Mozer, "Mitigating Bias in Calibration Error Estimation", AISTATS 2022 (the bias).
N. Oliveira, J. Lei and R. Tibshirani, "Unbiased Risk Estimation in the Normal Means Problem via Coupled
Bootstrap Techniques", 2021 (a normal variable made into two independent ones).
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from boxscore._utils.array_types import FloatArray, IntArray, Positions
from boxscore._utils.exact_sums import TOGETHER, added, rounded
from boxscore._utils.ordering import MOST_FLAGS, distinct, stable_order
from boxscore.extensions.diagnostics._result import mean_over_classes
from boxscore.extensions.diagnostics._score_bins import CellSums, ScoredRows, cells_of, numbered
from boxscore.extensions.large.packed import narrowed
from boxscore.extensions.large.questions import Pieces
from boxscore.extensions.weights.resampling import Units, unit_count
from boxscore.scoring.summary import WeightSets

DIGITS = 2
"""Digits of the residual of a unit: whole multiples of 2**-62."""

HELD = 1 << 27
"""Bytes for the weights sent to all partitions at a time, and for the results that they return."""

WEIGHED = 1 << 17
"""Number of weights that are multiplied at a time: as float64 they fit the cache."""


class Errors(NamedTuple):
    """Expected calibration errors; arrays [..., K + 2]: each class, all detections, the mean over classes."""

    plain: FloatArray
    debiased: FloatArray


class UnitSums(NamedTuple):
    """Sums of each unit (an image, or a group of images) of a partition in each cell; arrays [C]."""

    place: Positions
    """Position of the cell among those of all partitions; ascending."""
    unit: IntArray
    """Unit; ascending in each cell."""
    residual: IntArray
    """Digits of the residual, [digits, C]."""
    detections: IntArray


class BothSums(NamedTuple):
    """The sums of each unit of a partition, in cells and in the bins of all classes together."""

    cells: UnitSums
    bins: UnitSums


class Counted(NamedTuple):
    """Counts of the units of a partition: [P] per cell, [Q] per bin of all classes together."""

    units: IntArray
    """Units with detections, for each class and in total, [K + 1]."""
    apart: IntArray
    """Units of each cell."""
    total_apart: IntArray
    squares: IntArray
    """Sums of the squared numbers of detections of each unit in each cell."""
    total_squares: IntArray


class Cells(NamedTuple):
    """The P cells of all partitions: bins of a class that contain detections."""

    category: IntArray
    bin: Positions
    """Position among the bins of all classes together, [P]."""
    classes: int
    bins: int
    """Number of these bins, Q."""

    @classmethod
    def of(cls, cell: IntArray, classes: int, bins: int) -> Cells:
        """Assign a number to each bin that occurs."""
        position, present = numbered(cell % bins)
        return cls(cell // bins, position, classes, len(present))

    def by_class(self, values: Any) -> Any:
        """Add up values [P] by class, [K]."""
        return np.bincount(self.category, values, self.classes).astype(np.float64, copy=False)

    def over_classes(self, values: Any) -> Any:
        """Add up whole numbers [..., P] by bin, [..., Q]."""
        order = np.argsort(self.bin, kind="stable")
        starts = np.flatnonzero(np.diff(self.bin[order], prepend=-1))
        return np.add.reduceat(values[..., order], starts, axis=-1) if len(starts) else values[..., :0]


@dataclasses.dataclass(frozen=True, eq=False)
class BinnedResiduals:
    """Residuals of each unit in each cell, in partitions, and the totals of all partitions.

    Attributes
    ----------
    pieces : Pieces
        BothSums of each partition.
    spans : sequence of (int, int)
        First unit and end of the units of each partition.
    cells : Cells
    noise : ndarray of float64, [P]
        Standard error of the residual of each cell.
    total_noise : ndarray of float64, [Q]
    detections : ndarray of int64, [P]
    units : ndarray of int64, [K + 1]
        Units with detections, for each class and in total.
    class_weights : ndarray of float64, [K], or None
        Weight of each class in the mean over classes; None weighs all the same.
    """

    pieces: Pieces
    spans: Sequence[tuple[int, int]]
    cells: Cells
    noise: FloatArray
    total_noise: FloatArray
    detections: IntArray
    units: IntArray
    class_weights: FloatArray | None

    @classmethod
    def of(
        cls,
        rows: Pieces,
        ends: FloatArray,
        sums: CellSums,
        images: int,
        classes: int,
        units: Units | None = None,
        class_weights: FloatArray | None = None,
    ) -> BinnedResiduals:
        """Add up the rows of the partitions by unit and cell, and estimate the noise of the cells."""
        cells = Cells.of(sums.cell, classes, len(ends) - 1)
        by_unit = rows.then(_unit_sums, ends, sums.cell, units)
        if units is not None and rows.count > 1:
            by_unit = _gather_by_unit(by_unit, units, unit_count(images, units))
        by_unit = by_unit.then(_with_bins, cells)
        counts, most, spans = zip(*by_unit.results(_count_units, cells), strict=True)
        total = Counted(*(functools.reduce(np.add, column) for column in zip(*counts, strict=True)))
        self = cls(by_unit, spans, cells, *(np.empty(0),) * 2, sums.detections, total.units, class_weights)
        ones = np.ones((1, unit_count(images, units)), dtype=np.uint8)
        residual, _ = self._weighed(ones)
        noises = _noises(by_unit, cells, sums, total, residual[:, 0], max(most))
        return dataclasses.replace(self, noise=noises[0], total_noise=noises[1])

    def errors(self, weights: WeightSets | Sequence[FloatArray]) -> Errors:
        """Compute the errors for sets of whole-number weights of units; both arrays are [sets, K + 2]."""
        each: list[Errors] = []
        for batch in self._batches(weights):
            residual, detections = self._weighed(batch)
            sums = rounded(residual), rounded(self.cells.over_classes(residual))
            each.append(self._errors(*sums, detections, self.cells.over_classes(detections)))
        return Errors(*(np.concatenate(values) for values in zip(*each, strict=True)))

    def spread(self) -> FloatArray:
        """Return the standard error of the errors that follows from the noise of the bins, [K + 2]."""
        detections = self.cells.by_class(self.detections)
        classes = np.sqrt(self.cells.by_class(self.noise**2)) / np.maximum(detections, 1)
        total = np.sqrt((self.total_noise**2).sum()) / max(detections.sum(), 1)
        weights = np.ones(self.cells.classes) if self.class_weights is None else self.class_weights
        mean = np.sqrt(((weights * classes) ** 2).sum()) / max(weights[detections > 0].sum(), 1e-300)
        return np.concatenate([classes, [total, mean]])

    def _batches(self, weights: WeightSets | Sequence[FloatArray]) -> Iterator[Any]:
        """Yield batches with as many sets of weights as fit the memory limit, in a compact type."""
        room = HELD if self.pieces.room is None else min(HELD, self.pieces.room // 4)
        returned = 8 * (DIGITS + 1) * len(self.noise) * len(self.spans)
        every, batch = iter(weights), list[Any]()
        for one in every:
            batch.append(narrowed(one))
            if len(batch) * max(batch[0].nbytes, returned) >= room:
                yield np.stack(batch)
                batch = []
        if batch:
            yield np.stack(batch)

    def _weighed(self, weights: Any) -> tuple[IntArray, IntArray]:
        """Add up weighted residuals and detections of all partitions, [digits, sets, P] and [sets, P]."""
        sets, P = len(weights), len(self.cells.category)
        own = [(weights[:, first:end], first) for first, end in self.spans]
        residual = np.zeros((DIGITS, sets, P), dtype=np.int64)
        detections = np.zeros((sets, P), dtype=np.int64)
        for places, some, count in self.pieces.results_with(_weighed, own):
            residual[..., places] += some
            detections[:, places] += count
        return residual, detections

    def _errors(
        self, residual: FloatArray, total_residual: FloatArray, detections: IntArray, total: IntArray
    ) -> Errors:
        """Compute the errors from sums of each set of weights: [sets, P], and [sets, Q] for bins."""
        # The noise of an empty bin is 0.
        cells, K = self.cells, self.cells.classes
        noise, total_noise = self.noise * (detections > 0), self.total_noise * (total > 0)
        # Add up the cells of each class and set with one ``bincount``, which adds in the order of the cells.
        sets = len(residual)
        place = (np.arange(sets)[:, None] * K + cells.category).ravel()

        def by_class(values: Any) -> FloatArray:
            total = np.bincount(place, values.ravel(), sets * K).astype(np.float64, copy=False)
            return total.reshape(sets, K)

        of_class, of_all = by_class(detections), total.sum(axis=1)

        # Sum over bins by class, then divide once by the number of detections of the class; NaN for a class
        # without any.
        def over_bins(size: FloatArray, total_size: FloatArray) -> FloatArray:
            nan = np.full((sets, K + 1), np.nan)
            whole = np.divide(total_size.sum(axis=1), of_all, out=nan[:, K], where=of_all > 0)
            classes = np.divide(by_class(size), of_class, out=nan[:, :K], where=of_class > 0)
            means = [mean_over_classes(one, self.class_weights) for one in classes]
            return np.column_stack([classes, whole, means])

        # Take the absolute residual, and the residual without sampling noise.
        return Errors(
            over_bins(np.abs(residual), np.abs(total_residual)),
            over_bins(half_sampled(residual, noise), half_sampled(total_residual, total_noise)),
        )


def half_sampled(residual: FloatArray, noise: FloatArray) -> FloatArray:
    """Return the mean size of residuals if one half of the images gives the sign and the other the size."""
    # Use the closed form of the mean over all halves (see the module docstring), so that no half is drawn. A
    # residual without noise keeps its size.
    size = np.abs(residual)
    z = np.divide(size, noise, out=np.full_like(size, np.inf), where=noise > 0)
    sure = np.fromiter(map(math.erf, (z / math.sqrt(2)).ravel().tolist()), np.float64, z.size).reshape(
        z.shape
    )
    debiased: FloatArray = size * sure - 2 * noise * np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
    return debiased


# ---------------------------------------------------------------- per partition


def _unit_sums(rows: ScoredRows, ends: FloatArray, cell: IntArray, units: Units | None) -> UnitSums:
    """Add up the residuals of a partition by unit and cell."""
    number = np.zeros(int(cell[-1]) + 1 if len(cell) else 0, dtype=np.int64)
    number[cell] = np.arange(len(cell))
    unit = rows.image if units is None else units[rows.image].astype(np.int64)
    group, place, unit = _grouped(number[cells_of(rows, ends)], unit)
    residual = added(group, rows.true - rows.score, len(place), DIGITS)
    return UnitSums(place, unit, residual, np.bincount(group, minlength=len(place)))


def _merge_groups(sums: UnitSums) -> UnitSums:
    """Add up the entries that share a cell and unit."""
    group, place, unit = _grouped(sums.place, sums.unit)
    residual = np.zeros((DIGITS, len(place)), dtype=np.int64)
    detections = np.zeros(len(place), dtype=np.int64)
    for total, values in zip((*residual, detections), (*sums.residual, sums.detections), strict=True):
        np.add.at(total, group, values)
    return UnitSums(place, unit, residual, detections)


def _grouped(high: IntArray, low: IntArray) -> tuple[Positions, IntArray, IntArray]:
    """Assign a number to each pair, ascending; return the number of each entry, and the distinct pairs."""
    # Put both numbers into one key, shifted to start at 0.
    least = int(low.min(initial=0))
    span = int(low.max(initial=least)) + 1 - least
    keys = high * span + (low - least)
    # A table of all possible keys is faster than sorting, unless it is much larger than the number of keys.
    if int(keys.max(initial=-1)) < MOST_FLAGS + 16 * len(keys):
        group, present = numbered(keys)
    else:
        order = stable_order(keys, int(keys.max(initial=-1)) + 1)
        starts = np.flatnonzero(np.diff(keys[order], prepend=-1))
        present, group = keys[order[starts]], np.empty_like(order)
        group[order] = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(order)))
    return group, present // span, present % span + least


def _gather_by_unit(by_unit: Pieces, units: Units, count: int) -> Pieces:
    """Gather the sums of units that occur in several partitions: each result holds a range of units."""
    images = np.cumsum(np.bincount(units, minlength=count))
    shares = np.arange(1, by_unit.count) / by_unit.count * images[-1]
    ends = [0, *(np.searchsorted(images, shares) + 1).tolist(), count]
    return by_unit.then(_in_order_of_units).exchanged(_units_between, ends, _of_units)


def _in_order_of_units(sums: UnitSums) -> UnitSums:
    order = stable_order(sums.unit, int(sums.unit.max(initial=-1)) + 1)
    return UnitSums(*(column[..., order] for column in sums))


def _units_between(sums: UnitSums, low: int, high: int) -> UnitSums:
    """Take the units in [low, high), in their order."""
    part = slice(*np.searchsorted(sums.unit, [low, high]).tolist())
    return UnitSums(*(column[..., part].copy() for column in sums))


def _of_units(parts: Sequence[UnitSums]) -> UnitSums:
    return _merge_groups(UnitSums(*(np.concatenate(column, axis=-1) for column in zip(*parts, strict=True))))


def _with_bins(sums: UnitSums, cells: Cells) -> BothSums:
    """Also add up the classes in each unit and bin."""
    return BothSums(sums, _merge_groups(sums._replace(place=cells.bin[sums.place])))


def _count_units(both: BothSums, cells: Cells) -> tuple[Counted, int, tuple[int, int]]:
    """Count units; also return the most detections of a unit in a bin, and the range of units."""
    # Count the distinct units of each class: the distinct pairs of class and unit.
    sums, total = both
    P, K = len(cells.category), cells.classes
    _, of_class, _ = _grouped(cells.category[sums.place], sums.unit)
    units = np.bincount(of_class, minlength=K)
    # Add up squared numbers of detections per cell and per bin of all classes. They are whole numbers, so
    # sums over partitions are exact in any order.
    squares, total_squares = np.zeros(P, dtype=np.int64), np.zeros(cells.bins, dtype=np.int64)
    np.add.at(squares, sums.place, sums.detections**2)
    np.add.at(total_squares, total.place, total.detections**2)
    counts = Counted(
        np.append(units, len(distinct(sums.unit))),
        np.bincount(sums.place, minlength=P),
        np.bincount(total.place, minlength=cells.bins),
        squares,
        total_squares,
    )
    # The units of a partition span one range; later only their weights are needed.
    span = (int(sums.unit.min()), int(sums.unit.max()) + 1) if len(sums.unit) else (0, 0)
    return counts, int(total.detections.max(initial=0)), span


def _weighed(both: BothSums, weights: Any, first: int) -> tuple[Positions, IntArray, IntArray]:
    """Add up the units of each cell under sets of weights; return cells, [digits, sets, p] and [sets, p]."""
    sums, sets = both.cells, len(weights)
    # A digit of an entry is at most 2**31 times its detections. BLAS adds as many entries as stay below
    # 2**53, which float64 holds exactly in any order. A single entry above that needs integers.
    most = int(weights.max(initial=1)) * int(sums.detections.max(initial=1))
    kind = np.float64 if most < TOGETHER else np.int64
    rows = max(1, min(WEIGHED // sets, (TOGETHER - 1) // most))
    # Split the entries into runs: at each cell, and at this number of rows.
    start = np.flatnonzero(np.diff(sums.place, prepend=-1))
    ends = distinct(np.concatenate([start, np.arange(0, len(sums.place), rows), [len(sums.place)]]))
    cell = np.searchsorted(start, ends, side="right") - 1
    # Multiply the values [digits + 1, n] of each run by the weights of its units [n, sets].
    values = np.stack([*sums.residual, sums.detections]).astype(kind)
    of_unit = np.ascontiguousarray(weights.T)  # a row per unit
    at = sums.unit - first
    total = np.zeros((len(start), DIGITS + 1, sets), dtype=np.int64)
    for number, (low, high) in zip(cell[:-1].tolist(), itertools.pairwise(ends.tolist()), strict=True):
        weight = of_unit.take(at[low:high], axis=0).astype(kind)
        total[number] += (values[:, low:high] @ weight).astype(np.int64)
    residual, detections = np.split(np.moveaxis(total, 0, -1), [DIGITS])
    return sums.place[start], residual, detections[0]


# ---------------------------------------------------------------- noise


def _noises(
    by_unit: Pieces, cells: Cells, sums: CellSums, counts: Counted, residual: IntArray, most: int
) -> tuple[FloatArray, FloatArray]:
    """Return the standard errors of the residuals of cells, and of the bins of all classes together."""
    # Round the exact digits of the whole data set once, for cells and for the bins of all classes.
    together = cells.over_classes
    of_cells = rounded(residual), sums.detections, rounded(sums.squares), rounded(sums.variance)
    of_bins = (
        rounded(together(residual)),
        together(sums.detections),
        rounded(together(sums.squares)),
        rounded(together(sums.variance)),
    )
    # Let every partition add up the squared differences of its units from the mean. A power of two near the
    # largest unit scales them to fit the digits, which is exact.
    gaps = [one[0] / one[1] for one in (of_cells, of_bins)]
    scale = 2.0 ** most.bit_length()
    answers = by_unit.results(_squares_apart, *gaps, scale)
    apart, total_apart = (
        rounded(functools.reduce(np.add, column)) * scale**2 for column in zip(*answers, strict=True)
    )
    # Treat the bins of all classes as one class.
    nothing = np.zeros(cells.bins, dtype=np.intp)
    return (
        _noise(*of_cells, apart, counts.apart, counts.squares, cells.category),
        _noise(*of_bins, total_apart, counts.total_apart, counts.total_squares, nothing),
    )


def _squares_apart(
    both: BothSums, gap: FloatArray, total_gap: FloatArray, scale: float
) -> tuple[IntArray, IntArray]:
    """Add up squared differences of units from their mean in each cell and bin, in units of ``scale``."""
    answers = []
    for one, mean in zip(both, (gap, total_gap), strict=True):
        differs = (rounded(one.residual) - one.detections * mean[one.place]) / scale
        answers.append(added(one.place, differs**2, len(mean)))
    return answers[0], answers[1]


def _noise(
    residual: FloatArray,
    in_bin: IntArray,
    squares: FloatArray,
    calibrated: FloatArray,
    apart: FloatArray,
    units: IntArray,
    unit_squares: IntArray,
    category: Positions,
) -> FloatArray:
    """Return the standard error of each bin's residual, assuming that its class has calibrated scores."""
    K, several = int(category.max(initial=-1)) + 1, units > 1
    gap = residual / in_bin
    # The squared differences of n residuals from their own mean underestimate the variance by the factor 1 -
    # 1 / n. For sums of h n residuals the factor is 1 minus the sum of h squared. Correct both sums of
    # squares: over units, and over single detections [P].
    apart = apart[several] / (1 - (unit_squares / in_bin.astype(np.float64) ** 2)[several])
    alone = (squares - in_bin * gap**2)[several] / (1 - 1 / in_bin[several])
    # Their ratio is the design effect of a class, at least 1. It multiplies the variance of calibrated
    # scores.
    dependent, independent = (np.bincount(category[several], each, K) for each in (apart, alone))
    effect = np.divide(dependent, independent, out=np.ones(K), where=independent > 0)
    noise: FloatArray = np.sqrt(calibrated * np.maximum(effect, 1)[category])
    return noise
