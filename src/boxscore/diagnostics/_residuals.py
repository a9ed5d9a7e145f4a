"""The calibration error without what chance adds to it, and an interval of it.

Goal
----
The plain error adds up absolute gaps. Where scores are calibrated, chance alone makes every gap other than 0,
so the plain error is too large, the more so the fewer detections a bin has; over resampled images it is
larger still. Both are removed here.

Conventions
-----------
- The *residual* of a detection is 1 or 0, as it is true or false, minus its score. A bin's residual is the
  sum; divided by the number of detections it is the gap.
- Split the images at random into halves. One half says of each bin which sign its gap has, the other how
  large it is: chance that is in the sign is not in the size. The *debiased* error is the mean over all
  splits. With a residual r of standard error s that is r erf(r / sqrt(2) s) - 2 s phi(r / s) for each bin.
- A bin with an expected residual m is given m erf(m / 2 s) in expectation: 0 where scores are calibrated, |m|
  where the gap is large, never more than |m|, and less by at most 0.48 s between. So the debiased error is
  0 on average for calibrated scores, and can be below 0; otherwise it is too small, if at all.
- The standard error is that of calibrated scores, whose residuals have the variance s (1 - s): outcomes that
  are all the same by chance do not make it 0. Detections of an image depend on one another, so the variance
  is multiplied by a design effect, one number of 1 or more for a class: by how much more the sums over images
  vary than those of as many independent residuals.
- The plain error errs upwards and the debiased error downwards. The interval starts at the low end of the
  debiased error and ends at the high end of the plain one, each over resampled images, their mean shifted to
  the value itself; so it holds on either side, and is wider where bins are poor. Draws that vary less than
  the standard errors, as those of outcomes that are all the same, get normal noise that makes up for it.

References
----------
A. Kumar, P. Liang and T. Ma, "Verified Uncertainty Calibration", NeurIPS 2019, and R. Roelofs, N. Cain,
J. Shlens and M. Mozer, "Mitigating Bias in Calibration Error Estimation", AISTATS 2022 (the bias).
N. Oliveira, J. Lei and R. Tibshirani, "Unbiased Risk Estimation in the Normal Means Problem via Coupled
Bootstrap Techniques", 2021 (a normal variable made into two independent ones).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from boxscore._utils.array_types import FloatArray, IntArray, Positions
from boxscore._utils.ordering import stable_order
from boxscore.diagnostics._result import mean_over_classes


class Errors(NamedTuple):
    """The expected calibration error; arrays [..., K + 2]: of each class, of all detections, and the mean."""

    plain: FloatArray
    debiased: FloatArray


class Sums(NamedTuple):
    """What is added up over detections; arrays of one length."""

    residual: FloatArray
    detections: FloatArray


@dataclasses.dataclass(frozen=True, eq=False)
class BinnedResiduals:
    """Residuals of each unit (an image, or images that belong together) in each bin that has detections.

    Attributes
    ----------
    image : ndarray, [C]
        An image of the unit.
    sums : Sums, [C]
    start, category, bin : ndarray, [P]
        First entry of each bin of a class, its class, and the position of the bin of all classes together.
    noise : ndarray of float64, [P]
        Standard error of the residual of each bin of a class.
    total_noise : ndarray of float64, [Q]
    units : ndarray of int64, [K + 1]
        Units with detections, of each class and in all.
    class_weights : ndarray of float64, [K], or None
        How much each class counts in the mean over classes; None: all the same.
    """

    image: IntArray
    sums: Sums
    start: Positions
    category: IntArray
    bin: Positions
    noise: FloatArray
    total_noise: FloatArray
    units: IntArray
    class_weights: FloatArray | None = None

    @classmethod
    def of(
        cls,
        category: IntArray,
        bin_: IntArray,
        image: IntArray,
        unit: IntArray,
        residual: FloatArray,
        variance: FloatArray,
        classes: int,
        class_weights: FloatArray | None = None,
    ) -> BinnedResiduals:
        """Add up what detections [N] have; ``variance`` is that of a residual if scores are calibrated."""
        wide, last = int(bin_.max(initial=0)) + 1, int(unit.max(initial=-1)) + 1
        place, present = _numbered(category * wide + bin_, classes * wide)
        order, start = _groups(place * last + unit, last * len(present))
        first = order[start]
        sums = Sums(
            np.add.reduceat(residual[order], start), np.diff(start, append=len(order)).astype(np.float64)
        )
        of_cell, of_unit = place[first], unit[first]
        # All classes together: the same cells, added up over the classes of a unit and bin.
        total_place, bins = _numbered(present % wide, wide)
        order, start = _groups(of_unit * len(bins) + total_place[of_cell], last * len(bins))
        total_sums = Sums(*(np.add.reduceat(values[order], start) for values in sums))
        of_total = total_place[of_cell[order[start]]]
        squares, calibrated = (_added(place, values, len(present)) for values in (residual**2, variance))
        of_class = present // wide
        order, start = _groups(of_unit * classes + of_class[of_cell], last * classes)
        units = np.bincount(of_class[of_cell[order[start]]], minlength=classes)
        return cls(
            image[first],
            sums,
            np.flatnonzero(np.diff(of_cell, prepend=-1)),
            of_class,
            total_place,
            _noise(sums, of_cell, squares, calibrated, of_class),
            _noise(
                total_sums,
                of_total,
                _added(total_place, squares, len(bins)),
                _added(total_place, calibrated, len(bins)),
                np.zeros(len(bins), dtype=np.intp),
            ),
            np.append(units, np.count_nonzero(np.bincount(unit))),
            class_weights,
        )

    def errors(self, weights: Iterable[FloatArray]) -> Errors:
        """Compute the errors of sets of weights of images; both arrays are [sets, K + 2]."""
        each = [self._errors(weight[self.image]) for weight in weights]
        return Errors(*(np.array(values) for values in zip(*each, strict=True)))

    def spread(self) -> FloatArray:
        """Return the standard error of the errors that the noise of the bins makes, [K + 2]."""
        K = len(self.units) - 1
        detections = _added(self.category, np.add.reduceat(self.sums.detections, self.start), K)
        classes = np.sqrt(_added(self.category, self.noise**2, K)) / np.maximum(detections, 1)
        total = np.sqrt((self.total_noise**2).sum()) / max(detections.sum(), 1)
        weights = np.ones(K) if self.class_weights is None else self.class_weights
        mean = np.sqrt(((weights * classes) ** 2).sum()) / max(weights[detections > 0].sum(), 1e-300)
        return np.concatenate([classes, [total, mean]])

    def _errors(self, weight: FloatArray) -> Errors:
        Q, K = len(self.total_noise), len(self.units) - 1
        of_bin = Sums(*(np.add.reduceat(weight * values, self.start) for values in self.sums))
        of_all = Sums(*(_added(self.bin, values, Q) for values in of_bin))
        noise, total_noise = self.noise * (of_bin.detections > 0), self.total_noise * (of_all.detections > 0)
        detections = _added(self.category, of_bin.detections, K)

        def over_bins(size: FloatArray, total_size: FloatArray) -> FloatArray:
            total = total_size.sum() / of_all.detections.sum() if detections.any() else np.nan
            classes = np.divide(
                _added(self.category, size, K), detections, out=np.full(K, np.nan), where=detections > 0
            )
            return np.concatenate([classes, [total, mean_over_classes(classes, self.class_weights)]])

        return Errors(
            over_bins(np.abs(of_bin.residual), np.abs(of_all.residual)),
            over_bins(half_sampled(of_bin.residual, noise), half_sampled(of_all.residual, total_noise)),
        )


def half_sampled(residual: FloatArray, noise: FloatArray) -> FloatArray:
    """Size of residuals whose sign another half of the images gives, in the mean over all halves."""
    size = np.abs(residual)
    z = np.divide(size, noise, out=np.full_like(size, np.inf), where=noise > 0)
    sure = np.fromiter(map(math.erf, (z / math.sqrt(2)).tolist()), np.float64, len(z))
    debiased: FloatArray = size * sure - 2 * noise * np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
    return debiased


def _added(place: Positions, values: FloatArray, size: int) -> FloatArray:
    """Add up values by their places, [size]."""
    return np.bincount(place, values, size).astype(np.float64, copy=False)


def _numbered(keys: IntArray, size: int) -> tuple[Positions, IntArray]:
    """Return which of the distinct keys each key is, in their order, and those; keys are in [0, size)."""
    is_there = np.zeros(size, dtype=bool)
    is_there[keys] = True
    return (np.cumsum(is_there) - 1)[keys], np.flatnonzero(is_there)


def _groups(keys: IntArray, size: int) -> tuple[Positions, Positions]:
    """Order keys in [0, size), and return where each group of equal ones starts."""
    order = stable_order(keys, size)
    return order, np.flatnonzero(np.diff(keys[order], prepend=-1))


def _noise(
    cells: Sums, place: Positions, squares: FloatArray, calibrated: FloatArray, category: Positions
) -> FloatArray:
    """Return the standard error of each bin's residual, if the scores of its class are calibrated."""
    size, K = len(calibrated), int(category.max(initial=-1)) + 1
    residual, detections = cells
    in_bin = _added(place, detections, size)
    gap = _added(place, residual, size) / in_bin
    several = _added(place, np.ones(len(place)), size) > 1
    # Of n residuals about their mean, or of sums of h n of them about theirs, the squares add up to less than
    # the variance of the whole: to 1 - 1 / n of it, or to 1 less the sum of h squared.
    apart = _added(place, (residual - detections * gap[place]) ** 2, size)[several]
    apart /= 1 - (_added(place, detections**2, size) / in_bin**2)[several]
    alone = (squares - in_bin * gap**2)[several] / (1 - 1 / in_bin[several])
    dependent, independent = (_added(category[several], values, K) for values in (apart, alone))
    effect = np.divide(dependent, independent, out=np.ones(K), where=independent > 0)
    noise: FloatArray = np.sqrt(calibrated * np.maximum(effect, 1)[category])
    return noise
