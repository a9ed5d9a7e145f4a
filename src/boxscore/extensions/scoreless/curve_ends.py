"""Precision and recall where the curve of each class ends, and means over classes that leave out what is 0.

Conventions
-----------
- The end of a curve is the last recall point below the recall that it reaches. Precision there is the best
  from the first true positive beyond that point on: what follows the last one that is needed is free.
- Of a class without a true positive there is no precision. In means over classes it has that of the class
  before it, at the last threshold that was asked for before: fastevaluate does not reset its variable.
  Where there is none before, the class is left out; fastevaluate reads unset memory.
- Means over classes are those of the values above 0. F1 is that of the two means.

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
    """Precision and recall at the ends of curves, of which one is asked for, or F1.

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
        super().__init__(self._asked(np.where(recall == 0, 0.0, precision), recall))

    def _asked(self, precision: FloatArray, recall: FloatArray) -> FloatArray:
        if self._end == "F1":
            return f1_of(precision, recall)
        return precision if self._end == "precision" else recall

    def _of(self, chosen: NDArray[np.intp]) -> CurveEnds:
        return CurveEnds(self._end, self._precision[:, chosen], self._recall[:, chosen])

    def __getitem__(self, thresholds: Sequence[int]) -> CurveEnds:
        """Choose among the thresholds."""
        rows = list(thresholds)
        return CurveEnds(self._end, self._precision[rows], self._recall[rows])

    def of_classes(self, chosen: NDArray[np.bool_]) -> CurveEnds:
        """Choose among the classes, [K]."""
        return self._of(np.flatnonzero(chosen))

    def repeated(self, multiplicity: NDArray[np.int64]) -> CurveEnds:
        """Take each class several times, or not at all, [K]."""
        return self._of(np.repeat(np.arange(len(multiplicity)), multiplicity))

    def beside(self, others: Sequence[HeldValues]) -> CurveEnds:
        """Put the values of more classes behind these."""
        every = [self, *(other for other in others if isinstance(other, CurveEnds))]
        precision = np.concatenate([one._precision for one in every], axis=1)
        return CurveEnds(self._end, precision, np.concatenate([one._recall for one in every], axis=1))

    def mean_of_defined(self) -> float:
        """Mean over the classes, as the module says; 0 where no value is above 0."""
        if not self._recall.size:
            return float("nan")
        sides = [_positive_mean(_carried(self._precision)), _positive_mean(self._recall)]
        precision, recall = (np.array(side) for side in sides)
        return float(self._asked(precision, recall))

    def mean_of_slots(self) -> float:
        """:meth:`mean_of_defined`: what is undefined is left out or carried."""
        return self.mean_of_defined()

    def weighted_mean(self, weights: FloatArray) -> float:
        """Take the classes that count, however much."""
        return self._of(np.flatnonzero(weights > 0)).mean_of_defined()

    def of_copies(self, count: int) -> list[HeldValues]:
        """Return these: a class follows another."""
        assert count == 1, "a class has what the one before has"
        return [self]

    def means_of_copies(self, count: int) -> FloatArray:
        """:meth:`mean_of_defined` of the one copy, [1]."""
        return np.array([one.mean_of_defined() for one in self.of_copies(count)])


def _carried(values: FloatArray) -> FloatArray:
    """Fill what is NaN with the value before, class by class and in each by threshold; [T, K]."""
    line = values.T.ravel()
    known = ~np.isnan(line)
    last = np.maximum.accumulate(np.where(known, np.arange(len(line)), -1))
    filled: FloatArray = np.where(last >= 0, line[last], np.nan).reshape(values.T.shape).T
    return filled


def _positive_mean(values: FloatArray) -> float:
    """Mean over the classes of their means over thresholds, [T, K], those above 0; 0 without any."""
    means = values.mean(axis=0)
    positive = means[means > 0]
    return float(positive.mean()) if len(positive) else 0.0


def _precision(curves: Curves) -> FloatArray:
    """Precision at the end of each curve, [T, K]; NaN without a true positive."""
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
