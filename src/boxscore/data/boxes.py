"""Axis-aligned boxes: the forms in which people write them.

Conventions
-----------
A box is ``x1, y1, x2, y2`` in pixels unless ``box_format`` says otherwise; origin top left, y down.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boxscore._utils import checks

__all__ = [
    "BOX_FORMATS",
    "ROUNDING",
    "BoxFormat",
    "box_convert",
    "checked_corners",
    "corners_and_sizes",
    "without_inverted",
]

ROUNDING = 1e-3
"""Pixels by which rounding may bring a side below 0: float32 numbers near 10,000 lie so far apart."""

FloatArray = NDArray[np.float64]

BoxFormat = Literal["xyxy", "xywh", "cxcywh"]
BOX_FORMATS: tuple[BoxFormat, ...] = get_args(BoxFormat)


def box_convert(boxes: ArrayLike, in_fmt: BoxFormat, out_fmt: BoxFormat) -> FloatArray:
    """Convert boxes between ``xyxy``, ``xywh`` and ``cxcywh``.

    Parameters
    ----------
    boxes : array_like, [N, 4]
        Boxes in pixels.
    in_fmt, out_fmt : {"xyxy", "xywh", "cxcywh"}
        The form they have and the form wanted. Continuous coordinates: ``w = x2 - x1``.

    Returns
    -------
    ndarray of float64, [N, 4]
        A new array, also when the two forms are the same.

    Raises
    ------
    InputError
        When the shape is not [N, 4] or a form is unknown.

    Examples
    --------
    >>> box_convert([[10, 20, 5, 6]], "xywh", "xyxy").tolist()
    [[10.0, 20.0, 15.0, 26.0]]
    """
    array = checks.float_array(boxes, name="boxes", columns=4)
    checks.one_of(in_fmt, BOX_FORMATS, name="in_fmt")
    checks.one_of(out_fmt, BOX_FORMATS, name="out_fmt")
    if in_fmt == out_fmt:
        return array.copy()
    corners, sizes = corners_and_sizes(array, in_fmt)
    if out_fmt == "xyxy":
        return corners
    if out_fmt == "xywh":
        return np.hstack([corners[:, :2], sizes])
    centre = (corners[:, :2] + corners[:, 2:]) / 2 if in_fmt == "xyxy" else corners[:, :2] + sizes / 2
    return np.hstack([centre, sizes])


def corners_and_sizes(
    boxes: FloatArray, box_format: BoxFormat, *, overwrite: bool = False
) -> tuple[FloatArray, FloatArray]:
    """Split boxes [N, 4] into corners ``x1, y1, x2, y2`` [N, 4] and sizes ``w, h`` [N, 2].

    Neither gives back the other to the last bit: pycocotools computes ``x2 = x + w`` and areas from ``w`` and
    ``h``, the VOC devkit computes sizes from ``x2``. ``overwrite`` writes the corners over the boxes.
    """
    corners = boxes if overwrite else boxes.copy()
    sizes = np.empty((len(boxes), 2))
    for low, high in ((0, 2), (1, 3)):  # by columns: NumPy's inner loop is then N long, not 2
        if box_format == "xyxy":
            np.subtract(corners[:, high], corners[:, low], out=sizes[:, low])
            continue
        sizes[:, low] = corners[:, high]
        if box_format == "cxcywh":
            corners[:, low] -= sizes[:, low] / 2
        corners[:, high] = corners[:, low] + sizes[:, low]
    return corners, sizes


def without_inverted(corners: FloatArray) -> FloatArray:
    """Return corners [N, 4] in which a side below 0, as some files have, is one of 0."""
    if not len(corners) or (corners[:, 2:] >= corners[:, :2]).all():
        return corners
    return np.hstack([corners[:, :2], np.maximum(corners[:, :2], corners[:, 2:])])


def checked_corners(
    boxes: ArrayLike, box_format: BoxFormat, pixel_offset: float = 0, *, name: str
) -> tuple[FloatArray, FloatArray]:
    """Corners [N, 4] and sizes [N, 2], the offset added to the sizes, of boxes that keep the rules."""
    array = checks.float_array(boxes, name=name, columns=4)
    checks.one_of(box_format, BOX_FORMATS, name="box_format")
    checks.finite(array, name=name)
    corners, sizes = corners_and_sizes(array, box_format)
    cause = "are these x,y,w,h?" if box_format == "xyxy" else "are these x1,y1,x2,y2?"
    checks.sizes_not_negative(sizes, name=name, cause=cause)
    return corners, sizes + pixel_offset
