"""Test whether two detectors differ by more than chance: swap their results of images at random.

Goal
----
If two detectors are equally good, it does not matter which of them made which result in an image. The swap
test compares the difference of their scores with the differences after swapping whole results of images. It
needs no assumption on the distribution of scores, and is valid for few images.

Conventions
-----------
- A swap takes everything of an image, or of a group of images: every class, at every threshold.
- ``p`` is the fraction of the swaps whose difference is at least as large as the observed one, which is
  included. All swaps are made if there are no more than requested.
- Over classes, the largest difference, in standard deviations of each class, is compared with the largest one
  in each swap (max-T): the probability that any of equally good classes is called different stays within the
  level. Over several detectors, p-values are adjusted by Holm's method.
- The interval of a difference inverts the test: it contains the differences that the test does not reject, so
  it excludes 0 exactly if the (adjusted) p-value is within the level. A swap varies more, the larger the
  observed difference is. The interval corrects for that as is exact for a mean over units.
- The matches of both detectors are merged as if there were twice as many images, and a swap weights them 0
  and 1. So matches are reused, and ties are ordered as in an evaluation.

References
----------
B. Phipson and G. K. Smyth, "Permutation P-values Should Never Be Zero", 2010. P. H. Westfall and S. S. Young,
*Resampling-Based Multiple Testing*, 1993 (single-step max-T). S. Holm, "A Simple Sequentially Rejective
Multiple Test Procedure", 1979.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import FloatArray
from boxscore._utils.processes import Workers
from boxscore.data.vocabulary import Images
from boxscore.evaluation import Evaluation
from boxscore.extensions.weights.resampling import Swaps, Units
from boxscore.extensions.weights.shared import weighted_metrics_shared
from boxscore.matching.matches import Matches, merge
from boxscore.protocols.summary import SummaryRow

NEGLIGIBLE = 1e-12
"""Differences closer than this are equal: sums in another order may differ by rounding."""

LARGEST_CORRECTION = 0.5
"""Most of the variance of swaps that is attributed to the observed difference."""


class SwappedDifferences(NamedTuple):
    """Other minus first after swapping results of units, [swaps, rows, K + 1]; the observed one is first."""

    values: FloatArray

    @property
    def observed(self) -> FloatArray:
        """The difference without a swap, [rows, K + 1]."""
        first: FloatArray = self.values[0]
        return first

    def p_values(self) -> FloatArray:
        """Return the fraction of swaps as far from 0, [rows, K + 1]; NaN if a score is undefined."""
        return _shares(np.abs(self.values))

    def p_values_of_classes(self) -> FloatArray:
        """Return p-values of the classes of each metric, adjusted over all of them, [rows, K]."""
        rows = np.abs(self.values[..., :-1]).transpose(1, 0, 2)
        return np.array([_adjusted(row) for row in rows]).reshape(rows.shape[0], rows.shape[2])

    def reach(self, level: FloatArray, units: NDArray[np.int64]) -> FloatArray:
        """Return half the width of the interval over all classes at a level of each metric, [rows].

        ``units`` is the number of images or groups behind each value. Infinite if the swaps are too few for
        significance at the level.
        """
        values = self.values[..., -1]
        spread = _spread(values)
        critical = _critical(np.abs(values), level) / np.where(spread > NEGLIGIBLE, spread, 1.0)
        return _reach(values[0], spread, critical, units)

    def reach_of_classes(self, level: float, units: NDArray[np.int64]) -> FloatArray:
        """Return half the width of the interval of each class, adjusted over all of them, [rows, K]."""
        lines = []
        for values, of_row in zip(self.values[..., :-1].transpose(1, 0, 2), units, strict=True):
            scaled, spread = _scaled(np.abs(values))
            critical = _critical(scaled.max(axis=1, initial=0.0), np.asarray(level))
            lines.append(_reach(values[0], spread, critical, of_row))
        return np.array(lines).reshape(units.shape)

    def p_values_of_drops(self, lower_is_better: NDArray[np.bool_]) -> FloatArray:
        """Return p-values of drops over all classes, adjusted over the metrics, [rows].

        ``lower_is_better`` marks the metrics that get worse when they rise, [rows].
        """
        drops = self.values[..., -1] * np.where(lower_is_better, 1.0, -1.0)
        return _adjusted(np.concatenate([drops, -drops]))


def _adjusted(values: FloatArray) -> FloatArray:
    """Compare each of a family with the maximum of all, in standard deviations; [N, family] to [family]."""
    scaled, spread = _scaled(values)
    varies = spread > NEGLIGIBLE
    largest = scaled.max(axis=1, keepdims=True, initial=-np.inf)
    largest = np.broadcast_to(largest, values.shape).copy()
    largest[0] = scaled[0]
    adjusted = np.where(varies, _shares(largest), 1.0)
    return np.where(np.isnan(values[0]), np.nan, adjusted)


def _scaled(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Divide values by their standard deviation, which is also returned; -inf if they do not vary."""
    spread = _spread(values)
    varies = spread > NEGLIGIBLE
    return np.where(varies, values / np.where(varies, spread, 1.0), -np.inf), spread


def _spread(values: FloatArray) -> FloatArray:
    """Return the standard deviation of swaps around 0, [swaps, ...] to [...]."""
    spread: FloatArray = np.sqrt((np.where(np.isnan(values), 0.0, values) ** 2).mean(axis=0))
    return spread


def _critical(values: FloatArray, level: FloatArray) -> FloatArray:
    """Return the largest value that is not significant at a level, [swaps, ...] to [...].

    The first swap is the observed one, which counts for every p-value.
    """
    # An undefined swap counts against a difference.
    others = np.sort(np.where(np.isnan(values[1:]), np.inf, values[1:]), axis=0)[::-1]
    most = np.floor(level * len(values) + 1e-9).astype(np.int64)
    # All swaps may be as large at a level of 1, and none at a level below one swap.
    padded = np.concatenate([np.full_like(values[:1], np.inf), others, np.zeros_like(values[:1])])
    critical: FloatArray = np.take_along_axis(padded, np.clip(most, 0, len(values))[None], axis=0)[0]
    return critical


def _reach(
    observed: FloatArray, spread: FloatArray, critical: FloatArray, units: NDArray[np.int64]
) -> FloatArray:
    """Return how far the differences that the test does not reject are from the observed one.

    ``critical`` is the largest difference that is not significant, in standard deviations of the swaps.
    """
    # For a mean of differences over units, the variance of swaps is (s**2 + observed**2) / units. Testing
    # another difference would replace observed**2, and the equation is solved for that difference.
    varies = spread > NEGLIGIBLE
    largest = np.where(varies, critical * np.where(varies, spread, 1.0), 0.0)
    part = np.minimum(critical**2 / np.maximum(units, 1), LARGEST_CORRECTION)
    square = (largest**2 - part * observed**2) / (1 - part)
    # Other metrics are not means: never reach less than half as far.
    reach: FloatArray = np.maximum(np.sqrt(np.maximum(square, 0.0)), largest / 2)
    return reach


def _shares(values: FloatArray) -> FloatArray:
    """Return the fraction of swaps that are at least as large as the first, [swaps, ...] to [...]."""
    # A swap that leaves a score undefined counts against a difference.
    shares = (~(values < values[0] - NEGLIGIBLE)).mean(axis=0)
    return np.where(np.isnan(values[0]), np.nan, shares)


def swapped_differences(
    first: Evaluation,
    other: Evaluation,
    rows: Sequence[SummaryRow],
    *,
    resamples: int,
    seed: int,
    units: Units | None = None,
    progress: bool = False,
    workers: Workers = "auto",
) -> SwappedDifferences:
    """Swap the results of two evaluations of the same images, at random or in every way.

    Parameters
    ----------
    first, other : Evaluation
        Evaluations with one ground truth and one protocol, with their matches.
    rows : sequence of SummaryRow
    resamples : int
        Number of swaps; all if these are not more.
    seed : int
    units : ndarray of int32, [images], optional
        Group of each image; groups are swapped together.
    progress : bool, default False
    workers : int or "auto", default "auto"
        Processes that share the swaps if that is faster, as for :func:`boxscore.evaluate`. The result is the
        same.

    Returns
    -------
    SwappedDifferences
    """
    swaps = Swaps.of_seed(first._image_count, resamples, seed, units)
    both, name = both_detectors(first, other), "swap test" if progress else ""
    values = weighted_metrics_shared(both, first.protocol, rows, swaps, progress=name, workers=workers).values
    return SwappedDifferences(values[1::2] - values[::2])


def both_detectors(first: Evaluation, other: Evaluation) -> Matches:
    """Merge the matches of two detectors as twice the images; the first one has the even ones."""
    # Images are identified by number only.
    every = Images.of_ids(np.broadcast_to(np.int64(0), 2 * first._image_count))
    sides = []
    for side, matches in enumerate((first.matched, other.matched)):
        rows = 2 * first.images.rows(matches.images.ids) + np.int32(side)
        sides.append(
            dataclasses.replace(
                matches.with_images(every, rows),
                categories=first.matched.categories,
                row=2 * matches.row + side,
                truth_row=2 * matches.truth_row + side,
            )
        )
    return merge(sides)


def holm_levels(p_values: FloatArray, level: float) -> FloatArray:
    """Return the level at which Holm's method tests each p-value of a family (axis 0).

    The smallest of P is tested at level / P, the next one at level / (P - 1), and all from the first one that
    is not significant at the same level.
    """
    size = np.isfinite(p_values).sum(axis=0)
    order = np.argsort(np.argsort(p_values, axis=0, kind="stable"), axis=0, kind="stable")
    rejected = (holm(p_values) <= level).sum(axis=0)
    levels: FloatArray = level / np.maximum(size - np.minimum(order, rejected), 1)
    return levels


def holm(p_values: FloatArray) -> FloatArray:
    """Adjust p-values of a family (axis 0) by Holm's method; NaN is excluded.

    Returns
    -------
    ndarray of float64
        Array of the same shape.
    """
    # NaN is last.
    order = np.argsort(p_values, axis=0, kind="stable")
    ascending = np.take_along_axis(p_values, order, axis=0)
    size = np.isfinite(p_values).sum(axis=0)
    ranks = np.arange(len(p_values)).reshape(-1, *[1] * (p_values.ndim - 1))
    steps = np.where(np.isnan(ascending), -np.inf, ascending * np.maximum(size - ranks, 1))
    adjusted = np.minimum(np.maximum.accumulate(steps, axis=0), 1.0)
    out = np.empty_like(p_values)
    np.put_along_axis(out, order, adjusted, axis=0)
    return np.where(np.isnan(p_values), np.nan, out)


def level_of(confidence: float) -> float:
    """Return the largest significant p-value, with tolerance for the rounding of 1 - confidence."""
    return 1 - confidence + 1e-12


def agreeing_reach(reach: FloatArray, delta: FloatArray, p_value: FloatArray, level: float) -> FloatArray:
    """Return half the width of intervals around differences that exclude 0 exactly if p is significant."""
    # The tolerance of p-values for rounding must not decide otherwise.
    size = np.abs(delta)
    return np.where(p_value <= level, np.minimum(reach, np.nextafter(size, 0)), np.maximum(reach, size))
