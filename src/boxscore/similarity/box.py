"""Compute areas and overlaps of axis-aligned boxes.

Goal
----
Free functions on arrays, torchvision's names and shapes, computed in float64.

Conventions
-----------
- A box is ``x1, y1, x2, y2`` in pixels unless ``box_format`` says otherwise; origin top left, y down.
- ``pixel_offset=0`` (COCO): a box is a continuous rectangle, its width ``x2 - x1``.
  ``pixel_offset=1`` (PASCAL VOC): ``x2`` and ``y2`` name the last pixel inside; width ``x2 - x1 + 1``.
- Boxes that only touch do not overlap. A degenerate box (no area) overlaps nothing: 0, never NaN.
- ``box_iou(a, b)`` compares each row of ``a`` [N, 4] with each row of ``b`` [M, 4] and returns [N, M];
  with ``paired=True`` it compares row ``i`` with row ``i`` and returns [N].

References
----------
IoU and IoF: pycocotools ``maskApi.c`` (``bbIou``); the PASCAL VOC devkit, ``VOCevaldet.m``.
GIoU: Rezatofighi et al., arXiv 1902.09630. DIoU and CIoU: Zheng et al., arXiv 1911.08287.
"""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boxscore._utils.array_types import FloatArray
from boxscore._utils.records import NamedTuple
from boxscore.data.boxes import BoxFormat, checked_corners
from boxscore.data.tables import BoxTable, Detections, GroundTruth
from boxscore.similarity.pairs import (
    Columns,
    Comparison,
    PairValues,
    center_distance,
    check_paired,
    hull_length,
    over,
    overlapping,
    shared_length,
)
from boxscore.similarity.registry import Similarity


def box_area(boxes: ArrayLike, *, box_format: BoxFormat = "xyxy", pixel_offset: float = 0) -> FloatArray:
    """Area of each box in square pixels.

    Parameters
    ----------
    boxes : array_like, [N, 4]
    box_format : {"xyxy", "xywh", "cxcywh"}, default "xyxy"
    pixel_offset : float, default 0
        1 for inclusive pixels (PASCAL VOC).

    Returns
    -------
    ndarray of float64, [N]

    Raises
    ------
    InputError
        When the shape is not [N, 4], or a width or height is negative.

    Examples
    --------
    >>> box_area([[0, 0, 9, 9]]).tolist(), box_area([[0, 0, 9, 9]], pixel_offset=1).tolist()
    ([81.0], [100.0])
    """
    _, sizes = checked_corners(boxes, box_format, pixel_offset, name="boxes")
    return sizes[:, 0] * sizes[:, 1]


def box_iou(
    boxes1: ArrayLike,
    boxes2: ArrayLike,
    *,
    box_format: BoxFormat = "xyxy",
    pixel_offset: float = 0,
    paired: bool = False,
) -> FloatArray:
    """Intersection over union, the Jaccard index of two boxes.

    Parameters
    ----------
    boxes1 : array_like, [N, 4]
    boxes2 : array_like, [M, 4]
        [N, 4] when ``paired``.
    box_format : {"xyxy", "xywh", "cxcywh"}, default "xyxy"
    pixel_offset : float, default 0
        1 for inclusive pixels (PASCAL VOC).
    paired : bool, default False
        Compare row ``i`` with row ``i`` instead of every row with every row.

    Returns
    -------
    ndarray of float64, [N, M] or, when ``paired``, [N]
        In [0, 1]. 0 for boxes that only touch, are disjoint or lack area.

    Raises
    ------
    InputError
        When a shape is not [N, 4], a width or height is negative, or a coordinate is not finite.

    Examples
    --------
    >>> box_iou([[0, 0, 10, 10]], [[5, 5, 15, 15]]).tolist() == [[25 / 175]]
    True
    """
    pair = _prepare(boxes1, boxes2, box_format, pixel_offset, paired)
    return pair.iou_and_union()[0]


def box_iof(
    boxes1: ArrayLike,
    boxes2: ArrayLike,
    *,
    box_format: BoxFormat = "xyxy",
    pixel_offset: float = 0,
    paired: bool = False,
) -> FloatArray:
    """Intersection over foreground: the share of each box of ``boxes1`` inside one of ``boxes2``.

    COCO uses it for crowd regions, where ``boxes1`` are the detections. Not symmetric.
    Parameters, shapes and errors as in :func:`box_iou`.

    Examples
    --------
    >>> box_iof([[0, 0, 10, 10]], [[0, 0, 5, 10]]).tolist()
    [[0.5]]
    """
    pair = _prepare(boxes1, boxes2, box_format, pixel_offset, paired)
    intersection = pair.intersection
    return _divide(intersection, np.broadcast_to(pair.area1, intersection.shape))


def generalized_box_iou(
    boxes1: ArrayLike,
    boxes2: ArrayLike,
    *,
    box_format: BoxFormat = "xyxy",
    pixel_offset: float = 0,
    paired: bool = False,
) -> FloatArray:
    """Generalized IoU: IoU less the share of the enclosing box that neither covers; in (-1, 1].

    Parameters, shapes and errors as in :func:`box_iou`. Reference: arXiv 1902.09630.

    Examples
    --------
    >>> generalized_box_iou([[0, 0, 1, 1]], [[1, 0, 2, 1], [2, 0, 3, 1]]).round(4).tolist()
    [[0.0, -0.3333]]
    """
    pair = _prepare(boxes1, boxes2, box_format, pixel_offset, paired)
    iou, union = pair.iou_and_union()
    hull = hull_length(*pair.x, pixel_offset) * hull_length(*pair.y, pixel_offset)
    return iou - _divide(hull - union, hull)


def distance_box_iou(
    boxes1: ArrayLike,
    boxes2: ArrayLike,
    *,
    box_format: BoxFormat = "xyxy",
    pixel_offset: float = 0,
    paired: bool = False,
) -> FloatArray:
    """Distance IoU: IoU less squared center distance over squared diagonal of the enclosing box.

    torchvision adds 1e-7 to the squared diagonal: less than 1e-7 for boxes in pixels, but 3e-5 for fractions
    of the image if the diagonal is 0.06. Its ``eps=0`` gives these values.

    Parameters, shapes and errors as in :func:`box_iou`. Reference: arXiv 1911.08287.

    Examples
    --------
    >>> distance_box_iou([[0, 0, 10, 10]], [[0, 3.2, 10, 13.2]]).round(7).tolist()
    [[0.477812]]
    """
    pair = _prepare(boxes1, boxes2, box_format, pixel_offset, paired)
    return pair.iou_and_union()[0] - pair.center_penalty()


def complete_box_iou(
    boxes1: ArrayLike,
    boxes2: ArrayLike,
    *,
    box_format: BoxFormat = "xyxy",
    pixel_offset: float = 0,
    paired: bool = False,
) -> FloatArray:
    """Complete IoU: distance IoU less a penalty for different aspect ratios.

    The penalty is ``alpha * v`` with ``v = 4 / pi**2 * (atan(w2 / h2) - atan(w1 / h1))**2`` and
    ``alpha = v / (1 - iou + v)``; a side of length 0 counts as its limit (an angle of 0 or pi / 2).
    torchvision adds its ``eps`` to the denominators, as for :func:`distance_box_iou`.
    Parameters, shapes and errors as in :func:`box_iou`. Reference: arXiv 1911.08287.

    Examples
    --------
    >>> complete_box_iou([[0, 0, 10, 10]], [[0, 0, 10, 10]]).tolist()
    [[1.0]]
    """
    pair = _prepare(boxes1, boxes2, box_format, pixel_offset, paired)
    iou, _ = pair.iou_and_union()
    v = 4 / np.pi**2 * (np.arctan2(pair.width2, pair.height2) - np.arctan2(pair.width1, pair.height1)) ** 2
    return iou - pair.center_penalty() - v * _divide(v, 1 - iou + v)


def intersection_and_union(
    boxes1: ArrayLike, boxes2: ArrayLike, *, box_format: BoxFormat = "xyxy", pixel_offset: float = 0
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Areas of intersection and union, row by row, and the areas of ``boxes2``, [N] each."""
    pair = _prepare(boxes1, boxes2, box_format, pixel_offset, paired=True)
    return pair.intersection, pair.iou_and_union()[1], pair.width2 * pair.height2


class _Pair(NamedTuple):
    """The terms of every overlap measure: columns [N, 1] and [1, M], or [N] when paired."""

    x: tuple[FloatArray, FloatArray, FloatArray, FloatArray]  # low and high of the first, then of the second
    y: tuple[FloatArray, FloatArray, FloatArray, FloatArray]
    width1: FloatArray
    height1: FloatArray
    width2: FloatArray
    height2: FloatArray
    offset: float

    @property
    def area1(self) -> FloatArray:
        return self.width1 * self.height1

    @property
    def intersection(self) -> FloatArray:
        """Area of the intersection; 0 for boxes that touch or are disjoint, [N, M] or [N]."""
        width, height = (shared_length(*side, self.offset) for side in (self.x, self.y))
        return np.where((width > 0) & (height > 0), width * height, 0.0)

    def iou_and_union(self) -> tuple[FloatArray, FloatArray]:
        intersection = self.intersection
        area1 = np.array(np.broadcast_to(self.area1, intersection.shape))
        union = over(intersection, area1, self.width2 * self.height2)
        return _divide(intersection, union), union

    def center_penalty(self) -> FloatArray:
        return _divide(*center_distance(self.x, self.y, self.offset))


def _prepare(
    boxes1: ArrayLike, boxes2: ArrayLike, box_format: BoxFormat, pixel_offset: float, paired: bool
) -> _Pair:
    first = checked_corners(boxes1, box_format, pixel_offset, name="boxes1")
    second = checked_corners(boxes2, box_format, pixel_offset, name="boxes2")
    if paired:
        check_paired(len(first[0]), len(second[0]))
    x1, y1, x2, y2, width, height = np.concatenate(first, axis=1).T
    columns2 = np.concatenate(second, axis=1).T
    if not paired:
        x1, y1, x2, y2, width, height = (column[:, None] for column in (x1, y1, x2, y2, width, height))
    left, top, right, bottom, width2, height2 = columns2
    return _Pair((x1, x2, left, right), (y1, y2, top, bottom), width, height, width2, height2, pixel_offset)


def _divide(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    """Divide, with 0 where the denominator is 0 (a degenerate box)."""
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator != 0)


class BoxSimilarity(Similarity):
    """IoU of upright boxes."""

    forks_from = 1_000_000

    def fallbacks(self, ground_truth: GroundTruth, detections: Detections) -> str:
        """Return a warning if upright boxes around rotated ones are compared; else empty."""
        sources = [table.source for table in (ground_truth, detections) if table.rotated is not None]
        if not sources:
            return ""
        return (
            f"{' and '.join(sources)}: rotated boxes; comparing the upright boxes around them. To "
            'compare rotated boxes, use a protocol with similarity = "rotated".'
        )

    def of_pairs(
        self, ground_truth: GroundTruth, detections: Detections, comparison: Comparison
    ) -> PairValues:
        """Find the pairs of boxes that overlap enough."""
        # Gather the columns of the compared rows once, [g] and [d], then change their width where the
        # protocol does.
        truths = self._columns(ground_truth, comparison.truth_rows)
        boxes = self._columns(detections, comparison.rows)
        if self.aspect_ratio is not None:
            truths = _with_aspect_ratio(truths, self.aspect_ratio, comparison.by_foreground)
            boxes = _with_aspect_ratio(boxes, self.aspect_ratio, None)
        find = functools.partial(
            overlapping, truths, boxes, offset=self.pixel_offset, epsilon=self.overlap_epsilon
        )
        # Usually one pass over the pairs is enough.
        if comparison.by_foreground is None or not self.shares_from_iou:
            return find(comparison)
        # Some tools compute the intersection over the detection from the IoU. For a crowd, whose overlap is
        # by foreground, their formula still takes the value as an IoU. Keep every pair that meets: the share
        # of the detection can reach the threshold where the IoU does not.
        crowd = ground_truth.crowd[comparison.truth_rows]
        overlap = comparison._replace(by_foreground=crowd, lowest=np.nextafter(0.0, 1.0))
        truth, detection, value = find(overlap)
        # Solve ``IoU = i / (a + b - i)`` for i, and divide by the detection's area b:
        # ``IoU / (1 + IoU) * (1 + a / b)``. The larger of both values counts against an ignored region.
        areas = ground_truth.area[comparison.truth_rows[truth]]
        share = value / (1 + value) * (1 + areas / boxes.area[detection])
        value = np.where(comparison.by_foreground[truth], np.maximum(value, share), value)
        enough = np.flatnonzero(value >= comparison.lowest)
        return PairValues(truth[enough], detection[enough], value[enough])

    def _columns(self, table: BoxTable, rows: NDArray[np.intp]) -> Columns:
        return _columns(table, rows, self.pixel_offset, corners_alone=self.edges == "corners")


def _with_aspect_ratio(columns: Columns, ratio: float, unchanged: NDArray[np.bool_] | None) -> Columns:
    """Give boxes this ratio of width to height, except the ``unchanged``; height and center stay."""
    width, height = columns.x2 - columns.x1, columns.y2 - columns.y1
    wider = ratio * height - width
    if unchanged is not None:
        wider = np.where(unchanged, 0.0, wider)
    x1, width = columns.x1 - wider / 2, width + wider
    area = width * height
    if unchanged is not None:
        area = np.where(unchanged, columns.area, area)
    return Columns(x1, columns.y1, x1 + width, columns.y2, area)


def _columns(table: BoxTable, rows: NDArray[np.intp], pixel_offset: float, *, corners_alone: bool) -> Columns:
    # Gather from the flat arrays, column by column: gathering rows and transposing costs three times as much.
    corners, sizes = table.boxes.ravel(), table.sizes.ravel()
    at = 2 * rows
    width, height = np.take(sizes, at), np.take(sizes, at + 1)
    at *= 2
    x1, y1 = np.take(corners, at), np.take(corners, at + 1)
    if pixel_offset:
        x2, y2 = np.take(corners, at + 2), np.take(corners, at + 3)
        return Columns(x1, y1, x2, y2, (width + pixel_offset) * (height + pixel_offset))
    if corners_alone:
        x2, y2 = np.take(corners, 4 * rows + 2), np.take(corners, 4 * rows + 3)
        return Columns(x1, y1, x2, y2, (x2 - x1) * (y2 - y1))
    # Compute the corners and the area from x, y, w and h, operation by operation as pycocotools does.
    return Columns(x1, y1, x1 + width, y1 + height, width * height)
