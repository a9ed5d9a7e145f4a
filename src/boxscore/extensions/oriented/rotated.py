"""Compute the IoU of rotated boxes, and intersection over the detection's area against crowds.

Conventions
-----------
- A rotated box is ``cx, cy, w, h, angle``: center, size along its axes, and the angle by which its width axis
  is rotated from x towards y; in radians, or degrees with ``angle_unit="degrees"``.
- Tables, and this module internally, use radians.
- Boxes without area have overlap 0, never NaN.

Method
------
In the frame of one box the other is clipped to ``|x| <= w / 2, |y| <= h / 2``. Along every line of constant y
the length inside is ``clip(x_right) - clip(x_left)``; so by Green's theorem the shared area is the integral
of ``clip(x) dy`` along the other box, over the part of each edge with ``|y| <= h / 2``. That integral is
piecewise quadratic. No vertices are collected or sorted, and the result is continuous when edges coincide.

References
----------
Shapes and names as in ``box_iou_rotated`` of torchvision and detectron2; these use degrees, and y upwards.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boxscore._utils import checks
from boxscore._utils.array_types import BoolArray, FloatArray, IntArray
from boxscore._utils.user_warnings import warn_user
from boxscore.data.tables import Detections, GroundTruth
from boxscore.errors import InputError
from boxscore.extensions.oriented.oriented import rotated_of
from boxscore.extensions.oriented.rotated_boxes import area_of_rotated, extents_of_rotated, seems_degrees
from boxscore.similarity.measures import Measure
from boxscore.similarity.pairs import CHUNK_PAIRS, Comparison, PairValues, in_chunks, over, rows_of_pairs
from boxscore.similarity.registry import Similarity

AngleUnit = Literal["radians", "degrees"]

PAIRS = 1 << 16
"""Pairs clipped together, so that some thirty temporaries of this length fit the cache."""


def rotated_box_iou(
    boxes1: ArrayLike, boxes2: ArrayLike, *, angle_unit: AngleUnit = "radians", paired: bool = False
) -> FloatArray:
    """Return the intersection over union of rotated boxes.

    Parameters
    ----------
    boxes1 : array_like, [N, 5]
    boxes2 : array_like, [M, 5]
        [N, 5] if ``paired``.
    angle_unit : {"radians", "degrees"}, default "radians"
    paired : bool, default False
        Compare row ``i`` with row ``i`` instead of every row with every row.

    Returns
    -------
    ndarray of float64, [N, M], or [N] if ``paired``
        In [0, 1], exact to about 1e-12.

    Raises
    ------
    InputError
        If a shape is not [N, 5], a size is negative or a number is not finite.

    Examples
    --------
    >>> rotated_box_iou([[0, 0, 2, 2, 0]], [[0, 0, 2, 2, 45]], angle_unit="degrees").round(6).tolist()
    [[0.707107]]
    """
    return between_rotated(RotatedMeasure, boxes1, boxes2, angle_unit=angle_unit, paired=paired)


def between_rotated(
    measure: Callable[[FloatArray], Measure],
    boxes1: ArrayLike,
    boxes2: ArrayLike,
    *,
    angle_unit: AngleUnit,
    paired: bool,
) -> FloatArray:
    """Measure every pair of two lists of rotated boxes [N, M], or row by row [N]."""
    array1 = rotated_boxes(boxes1, angle_unit, name="boxes1")
    array2 = rotated_boxes(boxes2, angle_unit, name="boxes2")
    first, second, shape = rows_of_pairs(len(array1), len(array2), paired=paired)
    both = measure(np.concatenate([array1, array2]))
    return both.between(first, second + len(array1)).reshape(shape)


def rotated_boxes(boxes: ArrayLike, angle_unit: AngleUnit, *, name: str) -> FloatArray:
    """Check rotated boxes [N, 5]; return float64 with the angle in radians."""
    checks.one_of(angle_unit, get_args(AngleUnit), name="angle_unit")
    array = checks.float_array(boxes, name=name, columns=5)
    checks.finite(array, name=name)
    checks.sizes_not_negative(array[:, 2:4], name=name, cause="are these cx,cy,w,h,angle?")
    if angle_unit == "degrees":
        array = array.copy()
        array[:, 4] = np.deg2rad(array[:, 4])
    elif warning := seems_degrees(array):
        warn_user(f"{name}: {warning}")
    return array


class RotatedMeasure:
    """IoU of rotated boxes [N, 5]; ``x1, y1, x2, y2`` are the upright boxes around them."""

    at_most_iou = False
    identity: tuple[FloatArray, ...] = ()

    def __init__(self, boxes: FloatArray) -> None:
        self.cx, self.cy, self.width, self.height, self.angle = boxes.T.copy()
        wide, high = extents_of_rotated(boxes)
        # Enlarge the upright box slightly, so that rounding never makes it too small.
        half_wide, half_high = wide * (0.5 + 1e-9), high * (0.5 + 1e-9)
        self.x1, self.x2 = self.cx - half_wide, self.cx + half_wide
        self.y1, self.y2 = self.cy - half_high, self.cy + half_high
        self.offset = 0.0

    def between(self, first: IntArray, second: IntArray, over_first: BoolArray | None = None) -> FloatArray:
        """Return the IoU of each pair, [P]; where ``over_first``, divide by the area of the first instead."""
        iou = np.zeros(len(first))
        area = self.width * self.height
        for start in range(0, len(first), PAIRS):
            # Select pairs [P] with area whose upright boxes intersect; all others are exactly 0.
            one, other = first[start : start + PAIRS], second[start : start + PAIRS]
            meet = (
                (self.x1.take(one) < self.x2.take(other))
                & (self.x1.take(other) < self.x2.take(one))
                & (self.y1.take(one) < self.y2.take(other))
                & (self.y1.take(other) < self.y2.take(one))
                & (area.take(one) > 0)
                & (area.take(other) > 0)
            )
            where = np.flatnonzero(meet)
            one, other = one.take(where), other.take(where)
            # Divide by the union, or against a crowd, by the area of the detection.
            shared = self._shared(one, other)
            denominator = over(shared, area.take(one), area.take(other))
            if over_first is not None:
                np.copyto(denominator, area.take(one), where=over_first[start + where])
            iou[start + where] = shared / denominator
        return np.minimum(iou, 1.0, out=iou)

    def _shared(self, first: IntArray, second: IntArray) -> FloatArray:
        """Return the area that boxes share, [P], clipping the first in the frame of the second."""
        # Move the center of the first box to the frame of the second: shift first, so that large coordinates
        # cancel, then rotate.
        angle = self.angle.take(second)
        cosine, sine = np.cos(angle), np.sin(angle)
        dx, dy = self.cx.take(first) - self.cx.take(second), self.cy.take(first) - self.cy.take(second)
        center_x, center_y = dx * cosine + dy * sine, dy * cosine - dx * sine
        # Compute the corners of the first box in this frame: its center plus or minus its half axes.
        angle = self.angle.take(first) - angle
        cosine, sine = np.cos(angle), np.sin(angle)
        half_w, half_h = self.width.take(first) / 2, self.height.take(first) / 2
        limit_x, limit_y = self.width.take(second) / 2, self.height.take(second) / 2
        along, across = (half_w * cosine, half_w * sine), (-half_h * sine, half_h * cosine)
        corners = [
            (center_x + i * along[0] + j * across[0], center_y + i * along[1] + j * across[1])
            for i, j in ((-1, -1), (1, -1), (1, 1), (-1, 1))
        ]
        # Sum over the four edges, always in one order; by Green's theorem this is the shared area.
        shared = np.zeros(len(first))
        for k in range(4):
            shared += _clipped_integral(*corners[k], *corners[(k + 1) % 4], limit_x, limit_y)
        return np.maximum(shared, 0.0, out=shared)


def _clipped_integral(
    x1: FloatArray, y1: FloatArray, x2: FloatArray, y2: FloatArray, limit_x: FloatArray, limit_y: FloatArray
) -> FloatArray:
    """Integrate ``clip(x, -limit_x, limit_x) dy`` along an edge where ``|y| <= limit_y``; all [P]."""
    # Clip the edge to |y| <= limit_y, and compute x at both ends. An edge outside has low == high and adds 0.
    low, high = np.clip(y1, -limit_y, limit_y), np.clip(y2, -limit_y, limit_y)
    rise = y2 - y1
    slope = np.divide(x2 - x1, rise, out=np.zeros_like(rise), where=low != high)
    from_x, to_x = x1 + (low - y1) * slope, x1 + (high - y1) * slope
    # The mean of clip(x) does not depend on the direction: sort the ends from left to right, then clip them.
    left, right = np.minimum(from_x, to_x), np.maximum(from_x, to_x)
    inner_left, inner_right = np.clip(left, -limit_x, limit_x), np.clip(right, -limit_x, limit_x)
    length = right - left
    # Compute the mean of clip(x) between left and right: the part inside, and the clipped parts on either
    # side.
    inside = (inner_right - inner_left) * (inner_left + inner_right) / 2
    cut = np.maximum(right - np.maximum(left, limit_x), 0) - np.maximum(np.minimum(right, -limit_x) - left, 0)
    mean: FloatArray = np.divide(inside + cut * limit_x, length, out=inner_left.copy(), where=length > 0)
    mean *= high - low
    return mean


class RotatedSimilarity(Similarity):
    """IoU of rotated boxes; against crowds, the fraction of the detection inside.

    Only pairs whose upright boxes intersect are measured.
    """

    column = "rotated"

    def complete(self, ground_truth: GroundTruth, detections: Detections) -> Detections:
        """Check that the ground truth is rotated; upright detections get angle 0.

        Corners are replaced by the smallest rectangles around them.
        """
        if len(ground_truth) and ground_truth.rotated is None and ground_truth.quadrilaterals is None:
            cause = "are its boxes upright? then any protocol of boxes compares them"
            place = ground_truth.source
            raise InputError("ground truth", "have rotated boxes", got="none", place=place, cause=cause)
        if detections.rotated is not None:
            return detections
        return detections.replaced(rotated=rotated_of(detections))

    def fallbacks(self, ground_truth: GroundTruth, detections: Detections) -> str:
        """Describe whether upright boxes are compared with rotated ones."""
        if not len(detections) or detections.rotated is not None or detections.quadrilaterals is not None:
            return ""
        return f"{detections.source}: no rotated boxes; the upright ones are taken as rotated by 0."

    def detection_areas(self, detections: Detections) -> FloatArray:
        """Return width times height of each rotated box [D]."""
        rotated = detections.rotated
        if rotated is None or self.area_rule == "mask":
            return super().detection_areas(detections)
        return area_of_rotated(rotated)

    def of_pairs(
        self, ground_truth: GroundTruth, detections: Detections, comparison: Comparison
    ) -> PairValues:
        """Find the pairs of rotated boxes that overlap enough."""
        truths, rotated = rotated_of(ground_truth), detections.rotated
        if rotated is None:  # one table is empty
            return PairValues.none()
        crowd, count = comparison.by_foreground, len(comparison.truth_rows)
        measure = RotatedMeasure(np.concatenate([truths[comparison.truth_rows], rotated[comparison.rows]]))

        def value(detection: NDArray[np.intp], truth: NDArray[np.intp], _: slice) -> FloatArray:
            return measure.between(detection + count, truth, None if crowd is None else crowd[truth])

        return in_chunks(comparison, value, size=CHUNK_PAIRS)
