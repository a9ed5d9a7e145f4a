"""How much two boxes overlap, for pairs named by their positions.

Goal
----
Every plan asks one question, "by how much do the boxes at ``first`` and ``second`` overlap?", and never how
it is answered. A measure holds the columns of a block of boxes and answers it.

Conventions
-----------
- All arrays of a measure are columns [N] of float64, one row a box, in the block's order.
- ``between(first, second)`` compares position ``first[p]`` with ``second[p]`` and gives [P].
  Two boxes without area give NaN, which exceeds no threshold: such boxes are inert.
- ``at_most_iou`` says that the measure never exceeds the IoU of the boxes ``x1, y1, x2, y2``; only then may
  a plan leave out pairs whose sizes or centres differ too much. Otherwise it may only leave out pairs whose
  boxes do not meet.

References
----------
DIoU: Zheng et al., arXiv 1911.08287. IoS, intersection over the smaller area: SAHI, arXiv 2202.06934.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["BoxMeasure", "Measure", "MeasureOf", "Overlap", "inner_bounds", "shared_length"]

FloatArray = NDArray[np.float64]
IndexArray = NDArray[np.int64]

Overlap = Literal["iou", "ios", "diou"]


class Measure(Protocol):
    """What the plans need to know of a block of boxes."""

    x1: FloatArray
    y1: FloatArray
    x2: FloatArray
    y2: FloatArray
    offset: float

    @property
    def at_most_iou(self) -> bool:
        """Whether the measure is bounded by the IoU of the corners."""
        ...

    def between(self, first: IndexArray, second: IndexArray) -> FloatArray:
        """Overlap of each pair, [P]."""
        ...

    def take(self, positions: IndexArray) -> Measure:
        """Keep only some boxes, in this order."""
        ...


MeasureOf = Callable[[IndexArray], Measure]
"""Gives the measure of some rows of the input."""


class BoxMeasure:
    """Overlap of upright boxes.

    Parameters
    ----------
    columns : ndarray of float64, [4, N]
        ``x1, y1, x2, y2``.
    area : ndarray of float64, [N]
        Given apart, because ``w * h`` of a box given as ``x, y, w, h`` is not to the last bit that of its
        corners; the values are those of :func:`boxscore.similarity.box.box_iou`.
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

    def take(self, positions: IndexArray) -> BoxMeasure:
        """Keep only some boxes, in this order."""
        columns = np.stack([column.take(positions) for column in (self.x1, self.y1, self.x2, self.y2)])
        return BoxMeasure(columns, self.area.take(positions), kind=self.kind, offset=self.offset)

    def between(self, first: IndexArray, second: IndexArray) -> FloatArray:
        """Overlap of each pair, [P]."""
        wide = shared_length(self.x1, self.x2, first, second, self.offset)
        shared = shared_length(self.y1, self.y2, first, second, self.offset)
        np.maximum(wide, 0.0, out=wide)
        np.maximum(shared, 0.0, out=shared)
        shared *= wide
        area1, area2 = self.area.take(first), self.area.take(second)
        if self.kind == "ios":
            np.minimum(area1, area2, out=area1)
        else:
            area1 += area2
            area1 -= shared
        with np.errstate(divide="ignore", invalid="ignore"):
            shared /= area1
            if self.kind == "diou":
                shared -= self._distance(first, second)
        return shared

    def _distance(self, first: IndexArray, second: IndexArray) -> FloatArray:
        """Squared distance of the centres over squared diagonal of the box around both, [P]."""
        apart, around = np.zeros(len(first)), np.zeros(len(first))
        for low, high in ((self.x1, self.x2), (self.y1, self.y2)):
            low1, low2, high1, high2 = low.take(first), low.take(second), high.take(first), high.take(second)
            apart += ((low1 + high1) / 2 - (low2 + high2) / 2) ** 2
            around += (np.maximum(high1, high2) - np.minimum(low1, low2) + self.offset) ** 2
        return apart / around


def inner_bounds(
    low: FloatArray, high: FloatArray, measure: Measure, threshold: float
) -> tuple[FloatArray, FloatArray]:
    """Return what others that overlap enough must reach: they end past the first, start before the second.

    An overlap above the threshold needs that share of either box's width and height, where the measure is at
    most the IoU, else any. Rounding is allowed for.
    """
    share = threshold * (1 - 1e-9) if measure.at_most_iou else 0.0
    inside = high - low
    inside += measure.offset
    inside *= share
    inside -= measure.offset
    if len(low):
        inside -= 1e-14 * max(abs(float(low.min())), abs(float(high.max())))
    return low + inside, high - inside


def shared_length(
    low: FloatArray, high: FloatArray, first: IndexArray, second: IndexArray, offset: float
) -> FloatArray:
    """Length [P] that two intervals share; negative when they lie apart."""
    length = np.minimum(high.take(first), high.take(second))
    length -= np.maximum(low.take(first), low.take(second))
    if offset:
        length += offset
    return length
