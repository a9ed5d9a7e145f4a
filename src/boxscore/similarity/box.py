"""Axis-aligned boxes: areas and overlaps.

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
IoU and IoF: pycocotools ``maskApi.c`` (``bbIou``); the PASCAL VOC kit, ``VOCevaldet.m``.
GIoU: Rezatofighi et al., arXiv 1902.09630. DIoU and CIoU: Zheng et al., arXiv 1911.08287.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boxscore.data.boxes import BoxFormat, checked_corners
from boxscore.errors import InputError

__all__ = [
    "box_area",
    "box_iof",
    "box_iou",
    "complete_box_iou",
    "distance_box_iou",
    "generalized_box_iou",
]

FloatArray = NDArray[np.float64]


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
        In [0, 1]. 0 for boxes that touch, lie apart or have no area.

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
    return _divide(pair.intersection, pair.union)


def box_iof(
    boxes1: ArrayLike,
    boxes2: ArrayLike,
    *,
    box_format: BoxFormat = "xyxy",
    pixel_offset: float = 0,
    paired: bool = False,
) -> FloatArray:
    """Intersection over foreground: the share of each box of ``boxes1`` that lies inside one of ``boxes2``.

    COCO uses it for crowd regions, where ``boxes1`` are the detections. Not symmetric.
    Parameters, shapes and errors as in :func:`box_iou`.

    Examples
    --------
    >>> box_iof([[0, 0, 10, 10]], [[0, 0, 5, 10]]).tolist()
    [[0.5]]
    """
    pair = _prepare(boxes1, boxes2, box_format, pixel_offset, paired)
    return _divide(pair.intersection, np.broadcast_to(pair.area1, pair.intersection.shape))


def generalized_box_iou(
    boxes1: ArrayLike,
    boxes2: ArrayLike,
    *,
    box_format: BoxFormat = "xyxy",
    pixel_offset: float = 0,
    paired: bool = False,
) -> FloatArray:
    """Generalised IoU: IoU less the share of the enclosing box that neither covers; in (-1, 1].

    Parameters, shapes and errors as in :func:`box_iou`. Reference: arXiv 1902.09630.

    Examples
    --------
    >>> generalized_box_iou([[0, 0, 1, 1]], [[1, 0, 2, 1], [2, 0, 3, 1]]).round(4).tolist()
    [[0.0, -0.3333]]
    """
    pair = _prepare(boxes1, boxes2, box_format, pixel_offset, paired)
    hull = pair.hull_sizes.prod(axis=-1)
    return _divide(pair.intersection, pair.union) - _divide(hull - pair.union, hull)


def distance_box_iou(
    boxes1: ArrayLike,
    boxes2: ArrayLike,
    *,
    box_format: BoxFormat = "xyxy",
    pixel_offset: float = 0,
    paired: bool = False,
) -> FloatArray:
    """Distance IoU: IoU less squared centre distance over squared diagonal of the enclosing box.

    Parameters, shapes and errors as in :func:`box_iou`. Reference: arXiv 1911.08287.

    Examples
    --------
    >>> distance_box_iou([[0, 0, 10, 10]], [[0, 3.2, 10, 13.2]]).round(7).tolist()
    [[0.477812]]
    """
    pair = _prepare(boxes1, boxes2, box_format, pixel_offset, paired)
    return _divide(pair.intersection, pair.union) - _centre_penalty(pair)


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
    Parameters, shapes and errors as in :func:`box_iou`. Reference: arXiv 1911.08287.

    Examples
    --------
    >>> complete_box_iou([[0, 0, 10, 10]], [[0, 0, 10, 10]]).tolist()
    [[1.0]]
    """
    pair = _prepare(boxes1, boxes2, box_format, pixel_offset, paired)
    iou = _divide(pair.intersection, pair.union)
    angles = np.arctan2(pair.sizes2[..., 0], pair.sizes2[..., 1]) - np.arctan2(
        pair.sizes1[..., 0], pair.sizes1[..., 1]
    )
    v = 4 / np.pi**2 * angles**2
    return iou - _centre_penalty(pair) - v * _divide(v, 1 - iou + v)


class _Pair(NamedTuple):
    """What every overlap measure is made of; leading axes are [N, M], or [N] when paired."""

    corners1: FloatArray  # [N,1,4] or [N,4]
    corners2: FloatArray  # [1,M,4] or [N,4]
    sizes1: FloatArray  # [N,1,2] or [N,2]
    sizes2: FloatArray  # [1,M,2] or [N,2]
    area1: FloatArray  # [N,1] or [N]
    intersection: FloatArray  # [N,M] or [N]
    union: FloatArray  # [N,M] or [N]
    hull_sizes: FloatArray  # [N,M,2] or [N,2], of the smallest box around both


def _prepare(
    boxes1: ArrayLike, boxes2: ArrayLike, box_format: BoxFormat, pixel_offset: float, paired: bool
) -> _Pair:
    corners1, sizes1 = checked_corners(boxes1, box_format, pixel_offset, name="boxes1")
    corners2, sizes2 = checked_corners(boxes2, box_format, pixel_offset, name="boxes2")
    if paired:
        if len(corners1) != len(corners2):
            raise InputError(
                "boxes2",
                f"be as long as boxes1 ({len(corners1)}) when paired",
                got=f"length {len(corners2)}",
            )
    else:
        corners1, corners2 = corners1[:, None, :], corners2[None, :, :]  # [N,1,4] [1,M,4]
        sizes1, sizes2 = sizes1[:, None, :], sizes2[None, :, :]  # [N,1,2] [1,M,2]
    area1, area2 = sizes1[..., 0] * sizes1[..., 1], sizes2[..., 0] * sizes2[..., 1]
    overlap = (
        np.minimum(corners1[..., 2:], corners2[..., 2:])
        - np.maximum(corners1[..., :2], corners2[..., :2])
        + pixel_offset
    )  # [N,M,2]
    intersection = np.where((overlap > 0).all(axis=-1), overlap[..., 0] * overlap[..., 1], 0.0)
    hull_sizes = (
        np.maximum(corners1[..., 2:], corners2[..., 2:])
        - np.minimum(corners1[..., :2], corners2[..., :2])
        + pixel_offset
    )
    return _Pair(
        corners1,
        corners2,
        sizes1,
        sizes2,
        area1,
        intersection,
        area1 + area2 - intersection,
        hull_sizes,
    )


def _divide(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    """Divide, with 0 where the denominator is 0 (a degenerate box)."""
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator != 0)


def _centre_penalty(pair: _Pair) -> FloatArray:
    centres1 = (pair.corners1[..., :2] + pair.corners1[..., 2:]) / 2
    centres2 = (pair.corners2[..., :2] + pair.corners2[..., 2:]) / 2
    distance = ((centres1 - centres2) ** 2).sum(axis=-1)
    return _divide(distance, (pair.hull_sizes**2).sum(axis=-1))
