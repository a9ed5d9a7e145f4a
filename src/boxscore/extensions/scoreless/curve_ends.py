"""Compute precision and recall at the end of each class's curve, and means over positive values.

Conventions
-----------
- The end of a curve is the last recall point below the recall that it reaches. Precision there is the best
  from the first true positive beyond that point on: anything after the last needed one is ignored.
- The precision of a class without a true positive is undefined. In means over classes, it has that of the
  previous class at the last threshold of the previous query, because fastevaluate does not reset its
  variable. If it is the first, the class is left out, while fastevaluate reads uninitialized memory.
- Means over classes average the values above 0. F1 is computed from the two means.

References
----------
Rex-Omni, ``evaluation/fastevaluate/fastevaluate/cocoeval.cpp`` (``COCOEval::accumulate``) and
``evaluation/metrics/coco_lvis_metric.py`` (``safe_mean``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import FloatArray
from boxscore.extensions.scoreless.image_counts import f1_of
from boxscore.protocols.protocol import Protocol
from boxscore.scoring.blocks import HeldValues, Values
from boxscore.scoring.curves import Curves
from boxscore.scoring.kinds import Kind

End = Literal["precision", "recall", "F1"]


class CurveEnds(HeldValues):
    """Precision and recall at the ends of curves; one of them, or F1, is the value.

    Parameters
    ----------
    end : {"precision", "recall", "F1"}
    precision : ndarray of float64, [T, K]
        NaN without a true positive.
    recall : ndarray of float64, [T, K]
        NaN without an object.
    """

    is_mean_of_classes = False

    def __init__(self, end: End, precision: FloatArray, recall: FloatArray) -> None:
        self._end, self._precision, self._recall = end, precision, recall
        super().__init__(self._value(np.where(recall == 0, 0.0, precision), recall))

    def _value(self, precision: FloatArray, recall: FloatArray) -> FloatArray:
        if self._end == "F1":
            return f1_of(precision, recall)
        return precision if self._end == "precision" else recall

    def _select(self, chosen: NDArray[np.intp]) -> CurveEnds:
        return CurveEnds(self._end, self._precision[:, chosen], self._recall[:, chosen])

    def __getitem__(self, thresholds: Sequence[int]) -> CurveEnds:
        """Select thresholds."""
        rows = list(thresholds)
        return CurveEnds(self._end, self._precision[rows], self._recall[rows])

    def of_classes(self, chosen: NDArray[np.bool_]) -> CurveEnds:
        """Select classes, [K]."""
        return self._select(np.flatnonzero(chosen))

    def repeated(self, multiplicity: NDArray[np.int64]) -> CurveEnds:
        """Repeat or drop each class, [K]."""
        return self._select(np.repeat(np.arange(len(multiplicity)), multiplicity))

    def beside(self, others: Sequence[HeldValues]) -> CurveEnds:
        """Append the values of more classes."""
        every = [self, *(other for other in others if isinstance(other, CurveEnds))]
        precision = np.concatenate([one._precision for one in every], axis=1)
        return CurveEnds(self._end, precision, np.concatenate([one._recall for one in every], axis=1))

    def mean_of_defined(self) -> float:
        """Return the mean over the classes as in the module docstring; 0 if no value is above 0."""
        if not self._recall.size:
            return float("nan")
        sides = [_positive_mean(_carry_forward(self._precision)), _positive_mean(self._recall)]
        precision, recall = (np.array(side) for side in sides)
        return float(self._value(precision, recall))

    def mean_of_slots(self) -> float:
        """Return :meth:`mean_of_defined`: undefined values are left out or carried."""
        return self.mean_of_defined()

    def weighted_mean(self, weights: FloatArray) -> float:
        """Average the classes with a positive weight, regardless of its size."""
        return self._select(np.flatnonzero(weights > 0)).mean_of_defined()

    def of_copies(self, count: int) -> list[HeldValues]:
        """Return these values, because a class depends on the one before."""
        assert count == 1, "a class has what the one before has"
        return [self]

    def means_of_copies(self, count: int) -> FloatArray:
        """Return :meth:`mean_of_defined` of the only copy, [1]."""
        return np.array([one.mean_of_defined() for one in self.of_copies(count)])


def _carry_forward(values: FloatArray) -> FloatArray:
    """Replace each NaN by the value before it, by class and then by threshold; [T, K]."""
    line = values.T.ravel()
    known = ~np.isnan(line)
    last = np.maximum.accumulate(np.where(known, np.arange(len(line)), -1))
    filled: FloatArray = np.where(last >= 0, line[last], np.nan).reshape(values.T.shape).T
    return filled


def _positive_mean(values: FloatArray) -> float:
    """Average the positive means over thresholds, [T, K], of the classes; 0 without any."""
    means = values.mean(axis=0)
    positive = means[means > 0]
    return float(positive.mean()) if len(positive) else 0.0


def _precision(curves: Curves) -> FloatArray:
    """Return the precision at the end of each curve, [T, K]; NaN without a true positive."""
    recall, runs = curves.recall, curves.counts.runs
    points = np.array(curves.rules.recall_points)
    end = np.searchsorted(points, np.nan_to_num(recall, nan=0.0), side="left") - 1
    last = points[np.maximum(end, 0)]
    if not runs.sum():
        return np.full(recall.shape, np.nan)
    true, _ = curves.joined_lines()
    beyond = true / curves.of_runs(curves.positive) > np.repeat(last.ravel(), runs.ravel())
    precision = curves.largest(np.where(beyond, curves.precision, 0.0))
    return np.where(precision > 0, precision, np.nan)


def _kind(end: End, title: str) -> Kind:
    def values(curves: Curves, protocol: Protocol) -> Values:
        return CurveEnds(end, curves.once("precision at ends", lambda: _precision(curves)), curves.recall)

    return Kind(f"end_{end}", title, values)


KINDS = (
    _kind("precision", "Precision at curves' ends"),
    _kind("recall", "Recall at curves' ends"),
    _kind("F1", "F1 at curves' ends"),
)
