"""Compute summary metrics that are ratios of sums over classes, such as pooled precision.

Conventions
-----------
- Each threshold and class has a numerator (part) and a denominator (whole), [T, K]. The value of a class is
  their quotient; that of all classes is the quotient of their sums, not the mean of the quotients. Values are
  averaged over thresholds (``numpy.mean``). If a denominator is 0, the value is NaN, and so is its mean.
- Sums of fractional parts are exact and rounded once, so the order of classes does not matter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import FloatArray
from boxscore.extensions.scoreless.overlap_sums import overlap_sums
from boxscore.protocols.protocol import Protocol
from boxscore.scoring.blocks import HeldValues
from boxscore.scoring.curves import Curves
from boxscore.scoring.kinds import Kind, no_fields


class Ratios(HeldValues):
    """Numerators (parts) and denominators (wholes) of thresholds and classes.

    Parameters
    ----------
    parts, wholes : ndarray, [T, K]
    shared : bool, default False
        Whether all classes share the denominator, such as the number of images: then it is not summed.
    """

    is_mean_of_classes = False

    def __init__(self, parts: NDArray[Any], wholes: NDArray[Any], *, shared: bool = False) -> None:
        self.parts, self.wholes, self._shared = parts, wholes, shared
        super().__init__(_quotient(parts, wholes))

    def _with(self, parts: NDArray[Any], wholes: NDArray[Any]) -> Ratios:
        return Ratios(parts, wholes, shared=self._shared)

    def __getitem__(self, thresholds: Sequence[int]) -> Ratios:
        """Select thresholds."""
        return self._with(self.parts[list(thresholds)], self.wholes[list(thresholds)])

    def of_classes(self, chosen: NDArray[np.bool_]) -> Ratios:
        """Select classes, [K]."""
        return self._with(self.parts[:, chosen], self.wholes[:, chosen])

    def repeated(self, multiplicity: NDArray[np.int64]) -> Ratios:
        """Repeat or drop each class, [K]."""
        return self._with(*(np.repeat(side, multiplicity, axis=1) for side in (self.parts, self.wholes)))

    def beside(self, others: Sequence[HeldValues]) -> Ratios:
        """Append the values of more classes."""
        every = [self, *(other for other in others if isinstance(other, Ratios))]
        return self._with(
            np.concatenate([one.parts for one in every], axis=1),
            np.concatenate([one.wholes for one in every], axis=1),
        )

    def mean_of_defined(self) -> float:
        """Average the quotients of the sums over the thresholds."""
        return float(self.means_of_copies(1)[0])

    def mean_of_slots(self) -> float:
        """Return :meth:`mean_of_defined`, because classes are not averaged."""
        return self.mean_of_defined()

    def mean_per_class(self) -> FloatArray:
        """Return the mean of each class's values over thresholds, [K]."""
        return _means_over_thresholds(self.values)

    def weighted_mean(self, weights: FloatArray) -> float:
        """Return the quotient of sums with weighted classes, [K]."""
        return self._with(self.parts * weights, self.wholes * weights).mean_of_defined()

    def of_copies(self, count: int) -> list[HeldValues]:
        """Split the classes evenly into copies."""
        parts, wholes = (np.split(side, count, axis=1) for side in (self.parts, self.wholes))
        return [self._with(*pair) for pair in zip(parts, wholes, strict=True)]

    def means_of_copies(self, count: int) -> FloatArray:
        """Return :meth:`mean_of_defined` of each copy, [count]."""
        T, K = self.parts.shape
        shape = T, count, K // max(count, 1)
        parts, wholes = _sums(self.parts.reshape(shape)), self.wholes.reshape(shape)
        total = (wholes[..., 0] if shape[-1] else wholes.sum(axis=-1)) if self._shared else _sums(wholes)
        return _means_over_thresholds(_quotient(parts, total))


def _means_over_thresholds(values: FloatArray) -> FloatArray:
    """Average each column of [T, N], with an order of additions that does not depend on N."""
    mean: FloatArray = np.ascontiguousarray(values.T).mean(axis=-1)
    return mean


def _sums(values: NDArray[Any]) -> NDArray[Any]:
    """Sum over the last axis; exact and rounded once."""
    if values.dtype.kind in "iu":
        whole: NDArray[Any] = values.sum(axis=-1)
        return whole
    rows = values.reshape(math.prod(values.shape[:-1]), values.shape[-1]).tolist()
    return np.array([math.fsum(row) for row in rows]).reshape(values.shape[:-1])


def _quotient(parts: NDArray[Any], wholes: NDArray[Any]) -> FloatArray:
    quotient: FloatArray = np.divide(parts, wholes, out=np.full(parts.shape, np.nan), where=wholes > 0)
    return quotient


def _precision(curves: Curves, protocol: Protocol) -> Ratios:
    """Divide the true positives of all classes and images by the counted detections."""
    return Ratios(curves.totals.recalled, curves.totals.counted)


def _recall(curves: Curves, protocol: Protocol) -> Ratios:
    """Divide the true positives of all classes and images by the objects."""
    return Ratios(curves.totals.recalled, _objects(curves))


def _micro_f1(curves: Curves, protocol: Protocol) -> Ratios:
    """Divide 2 TP by 2 TP + FP + FN, each summed over classes and images."""
    return Ratios(2 * curves.totals.recalled, curves.totals.counted + _objects(curves))


def _false_per_image(curves: Curves, protocol: Protocol) -> Ratios:
    """Divide the false positives of all classes by the number of all images, including empty ones."""
    false = curves.totals.counted - curves.totals.recalled
    return Ratios(false, np.full(false.shape, curves.totals.images), shared=True)


def _mean_iou(curves: Curves, protocol: Protocol) -> Ratios:
    """Average the IoU of the true positives; undefined without any."""
    return Ratios(overlap_sums(curves), curves.totals.recalled)


def _object_iou(curves: Curves, protocol: Protocol) -> Ratios:
    """Average the IoU of each object with its match, 0 for a missed object."""
    return Ratios(overlap_sums(curves), _objects(curves))


def _objects(curves: Curves) -> NDArray[Any]:
    """Return the counted objects of each class, the same at each threshold, [T, K]."""
    return np.broadcast_to(curves.totals.positive, curves.totals.recalled.shape)


KINDS = (
    Kind("precision", "Precision          (P)", _precision, no_fields, of_classes_alone=True),
    Kind("recall", "Recall             (R)", _recall, no_fields, of_classes_alone=True),
    Kind("micro_F1", "F1, all together   (F1)", _micro_f1, no_fields, of_classes_alone=True),
    Kind("mean_iou", "Mean IoU of matches", _mean_iou, of_classes_alone=True),
    Kind("object_iou", "Mean IoU of objects", _object_iou, of_classes_alone=True),
    Kind("fp_per_image", "False positives per image", _false_per_image, no_fields, lower_is_better=True),
)
