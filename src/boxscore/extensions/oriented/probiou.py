"""Compute ProbIoU, one minus the Hellinger distance of rotated boxes as Gaussians, as ultralytics does.

Conventions
-----------
- A box ``cx, cy, w, h, angle`` is the Gaussian with its center and the covariance of a uniform density over
  it: ``w ** 2 / 12`` and ``h ** 2 / 12`` along its axes.
- ProbIoU differs from IoU: equal boxes give 0.9997 or less because of ``eps``, and disjoint boxes give more
  than 0.
- Float64 is used; ultralytics uses float32, which differs in the last digits.

References
----------
Llerena et al., arXiv 2106.06072; ultralytics, ``utils/metrics.py``, ``batch_probiou``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boxscore._utils.array_types import FloatArray, IntArray
from boxscore.data.tables import Detections, GroundTruth
from boxscore.errors import InputError
from boxscore.extensions.oriented.oriented import rotated_of
from boxscore.extensions.oriented.rotated import AngleUnit, RotatedSimilarity, between_rotated
from boxscore.similarity.pairs import CHUNK_PAIRS, Comparison, PairValues, in_chunks

EPS = 1e-7
MOST = 100.0
"""Maximum Bhattacharyya distance; from about 17 on, the result is 0 up to ``eps``."""

SMALL = 1e-4
"""Determinant of a covariance below which ``eps`` makes the shape term of a distance negative."""


def probiou(
    boxes1: ArrayLike, boxes2: ArrayLike, *, angle_unit: AngleUnit = "radians", paired: bool = False
) -> FloatArray:
    """Return the ProbIoU of rotated boxes, as ultralytics validates and suppresses oriented boxes.

    Parameters
    ----------
    boxes1 : array_like, [N, 5]
        ``cx, cy, w, h, angle``.
    boxes2 : array_like, [M, 5]
        [N, 5] if ``paired``.
    angle_unit : {"radians", "degrees"}, default "radians"
    paired : bool, default False
        Compare row ``i`` with row ``i`` instead of every row with every row.

    Returns
    -------
    ndarray of float64, [N, M], or [N] if ``paired``
        Below 1. Not comparable with IoU: boxes shifted by a third of their width have IoU 0.5 and ProbIoU
        0.61.

    Raises
    ------
    InputError
        If a shape is not [N, 5], a size is negative or a number is not finite.

    Examples
    --------
    >>> probiou([[0, 0, 30, 30, 0]], [[0, 0, 30, 30, 0], [10, 0, 30, 30, 0]]).round(3).tolist()
    [[1.0, 0.608]]
    """
    return between_rotated(ProbIouMeasure, boxes1, boxes2, angle_unit=angle_unit, paired=paired)


class ProbIouMeasure:
    """ProbIoU of rotated boxes [N, 5].

    The box ``x1, y1, x2, y2`` covers all positions where a value can exceed ``lowest``; pairs of disjoint
    boxes are 0. Without ``lowest``, every pair is measured.
    """

    at_most_iou = False
    identity: tuple[FloatArray, ...] = ()

    def __init__(self, boxes: FloatArray, *, lowest: float | None = None) -> None:
        self.x, self.y, width, height, angle = boxes.T.copy()
        # Rotate the variances along the axes of each box to its covariance, [N].
        cosine, sine = np.cos(angle), np.sin(angle)
        a, b = width**2 / 12, height**2 / 12
        self.xx = a * cosine**2 + b * sine**2
        self.yy = a * sine**2 + b * cosine**2
        self.xy = (a - b) * cosine * sine
        self.root = np.maximum(self.xx * self.yy - self.xy**2, 0.0)
        self._all_pairs = lowest is None
        # The distance of the centers alone is a quarter of d' S^-1 d, with S the sum of both covariances, so
        # it is at least dx ** 2 / (4 S_xx); and the root of a sum is at most the sum of the roots.
        apart = -np.log(1 - (1 - min(max(lowest or 0.0, 1e-9), 1.0)) ** 2 + EPS)
        apart += 1e-3 if (self.root > SMALL).all() else -0.5 * np.log(EPS)
        reach = 2.0 * np.sqrt(min(float(apart), MOST) * 1.001)
        # Use this reach as the box: pairs of disjoint boxes stay below ``lowest`` and are not measured.
        half_wide, half_high = reach * np.sqrt(self.xx), reach * np.sqrt(self.yy)
        self.x1, self.x2 = self.x - half_wide, self.x + half_wide
        self.y1, self.y2 = self.y - half_high, self.y + half_high
        self.offset = 0.0

    def between(self, first: IntArray, second: IntArray) -> FloatArray:
        """Return the ProbIoU of each pair, [P]."""
        value = np.zeros(len(first))
        for start in range(0, len(first), CHUNK_PAIRS // 4):
            # Without a lowest value, measure every pair of the chunk.
            one, other = first[start : start + CHUNK_PAIRS // 4], second[start : start + CHUNK_PAIRS // 4]
            if self._all_pairs:
                value[start : start + len(one)] = self._of(one, other)
                continue
            # Measure the pairs whose boxes intersect; all others are 0.
            meet = (self.x1.take(one) <= self.x2.take(other)) & (self.x1.take(other) <= self.x2.take(one))
            meet &= (self.y1.take(one) <= self.y2.take(other)) & (self.y1.take(other) <= self.y2.take(one))
            where = np.flatnonzero(meet)
            value[start + where] = self._of(one.take(where), other.take(where))
        return value

    def _of(self, one: IntArray, other: IntArray) -> FloatArray:
        # Add covariances and subtract centers, [P], in the order of ultralytics' batch_probiou, with ``eps``
        # in the same places.
        xx, yy, xy = (column.take(one) + column.take(other) for column in (self.xx, self.yy, self.xy))
        dx, dy = self.x.take(other) - self.x.take(one), self.y.take(one) - self.y.take(other)
        determinant = xx * yy - xy**2
        below = determinant + EPS
        apart = 0.25 * ((xx * dy**2 + yy * dx**2) / below) + 0.5 * (xy * dx * dy / below)
        # The Bhattacharyya distance has a term for the centers and one for the shapes, and gives the
        # Hellinger distance.
        roots = np.sqrt(self.root.take(one) * self.root.take(other))
        unlike = 0.5 * np.log(np.maximum(determinant, 0.0) / (4 * roots + EPS) + EPS)
        distance = np.clip(apart + unlike, EPS, MOST)
        value: FloatArray = 1 - np.sqrt(1.0 - np.exp(-distance) + EPS)
        return value


class ProbIouSimilarity(RotatedSimilarity):
    """ProbIoU of rotated boxes; crowds are measured like other objects."""

    measures_foreground = False

    def of_pairs(
        self, ground_truth: GroundTruth, detections: Detections, comparison: Comparison
    ) -> PairValues:
        """Find the pairs whose Gaussians overlap enough."""
        truths, rotated = rotated_of(ground_truth), detections.rotated
        if rotated is None:  # one table is empty
            return PairValues.none()
        # Reject protocols that measure crowds by foreground, which ProbIoU does not define.
        if comparison.by_foreground is not None and comparison.by_foreground.any():
            raise InputError(
                "crowd regions",
                "be counted, ignored or deleted where ProbIoU is compared",
                got='ignore.crowd = "iof"',
                cause="ProbIoU knows no intersection over the detection",
            )
        # Measure both tables in one array, ground truths first: detection d is row ``count + d``.
        count = len(comparison.truth_rows)
        both = np.concatenate([truths[comparison.truth_rows], rotated[comparison.rows]])
        measure = ProbIouMeasure(both, lowest=comparison.lowest)

        def value(detection: NDArray[np.intp], truth: NDArray[np.intp], _: slice) -> FloatArray:
            return measure.between(truth, detection + count)

        return in_chunks(comparison, value, size=CHUNK_PAIRS)
