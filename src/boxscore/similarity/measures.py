"""Measure overlaps inside one list of objects, for pairs given by positions, as suppression does.

Goal
----
Every plan needs the overlap of the objects at ``first`` and ``second``, independent of the formula. A measure
holds the columns of a block of objects and computes it; masks and rotated boxes define theirs next to their
similarity.

Conventions
-----------
- All arrays of a measure are columns [N] of float64, one row per object, in the block's order.
- ``between(first, second)`` compares position ``first[p]`` with ``second[p]`` and gives [P].
  Two boxes without area give NaN, which never exceeds a threshold, so such boxes are ignored.
- ``at_most_iou`` means that the measure never exceeds the IoU of the boxes ``x1, y1, x2, y2``; only then may
  a plan leave out pairs whose sizes or centers differ too much. Otherwise it may only leave out pairs whose
  boxes are disjoint.

References
----------
DIoU: Zheng et al., arXiv 1911.08287. IoS, intersection over the smaller area: SAHI, arXiv 2202.06934.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from boxscore._utils import checks
from boxscore._utils.array_types import FloatArray, IntArray
from boxscore.data.boxes import BoxFormat, corners_and_sizes
from boxscore.similarity.pairs import Overlap, center_distance, over, shared_length


class Measure(Protocol):
    """The columns and overlaps of a block of objects that the plans use."""

    x1: FloatArray
    y1: FloatArray
    x2: FloatArray
    y2: FloatArray
    offset: float

    @property
    def at_most_iou(self) -> bool:
        """True if the IoU of the corners bounds the measure."""
        ...

    @property
    def identity(self) -> tuple[FloatArray, ...]:
        """Columns that determine every overlap, so that equal ones mean copies; empty if unknown."""
        ...

    def between(self, first: IntArray, second: IntArray) -> FloatArray:
        """Overlap of each pair, [P]."""
        ...


MeasureOf = Callable[[IntArray], Measure]
"""Returns the measure of some rows of the input."""


class BoxMeasure:
    """Overlap of upright boxes.

    Parameters
    ----------
    columns : ndarray of float64, [4, N]
        ``x1, y1, x2, y2``.
    area : ndarray of float64, [N]
    kind : {"iou", "ios", "diou"}
    offset : float
        Added to every width and height: 1 for inclusive pixels.
    """

    __slots__ = ("area", "kind", "offset", "x1", "x2", "y1", "y2")

    def __init__(self, columns: FloatArray, area: FloatArray, *, kind: Overlap, offset: float) -> None:
        self.x1, self.y1, self.x2, self.y2 = columns
        self.area = area
        self.kind: Overlap = kind
        self.offset = offset

    @property
    def at_most_iou(self) -> bool:
        """IoS exceeds IoU; DIoU is IoU less a distance."""
        return self.kind != "ios"

    @property
    def identity(self) -> tuple[FloatArray, ...]:
        """The corners, and the area: it may come from sizes."""
        return self.x1, self.y1, self.x2, self.y2, self.area

    def between(self, first: IntArray, second: IntArray) -> FloatArray:
        """Overlap of each pair, [P]."""
        # Divide the shared area by the union or the smaller area, in place; 0 / 0 is NaN, which never exceeds
        # a threshold.
        shared = shared_between(self, first, second)
        with np.errstate(divide="ignore", invalid="ignore"):
            shared /= over(shared, self.area.take(first), self.area.take(second), self.kind)
            if self.kind == "diou":
                apart, around = center_distance(
                    (self.x1.take(first), self.x2.take(first), self.x1.take(second), self.x2.take(second)),
                    (self.y1.take(first), self.y2.take(first), self.y1.take(second), self.y2.take(second)),
                    self.offset,
                )
                apart /= around
                shared -= apart
        return shared


def shared_between(measure: Measure, first: IntArray, second: IntArray) -> FloatArray:
    """Area [P] that the boxes of pairs share, 0 where they do not meet."""
    wide, high = (
        shared_length(low, high, low, high, measure.offset, first, second)
        for low, high in ((measure.x1, measure.x2), (measure.y1, measure.y2))
    )
    np.maximum(wide, 0.0, out=wide)
    np.maximum(high, 0.0, out=high)
    high *= wide
    return high


def box_measure(
    boxes: FloatArray, *, box_format: BoxFormat, pixel_offset: float, overlap: Overlap
) -> MeasureOf:
    """Measure of some rows of checked boxes [N, 4]."""
    pixel_offset = checks.number_between(pixel_offset, 0, 1, name="pixel_offset")

    def measure_of(rows: IntArray) -> Measure:
        if box_format == "xyxy":
            columns = boxes.take(rows, axis=0).T.copy()  # each column contiguous
            area = (columns[2] - columns[0] + pixel_offset) * (columns[3] - columns[1] + pixel_offset)
            return BoxMeasure(columns, area, kind=overlap, offset=pixel_offset)
        corners, sizes = corners_and_sizes(boxes.take(rows, axis=0), box_format)
        if pixel_offset:
            sizes = sizes + pixel_offset
        return BoxMeasure(corners.T.copy(), sizes[:, 0] * sizes[:, 1], kind=overlap, offset=pixel_offset)

    return measure_of
