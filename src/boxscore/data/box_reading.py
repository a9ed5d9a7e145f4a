"""What four numbers are, where no name says it: inferred from the boxes, or else given by the user.

Conventions
-----------
A reading is out where a box would have a negative side, or where more than :data:`MOST` of the boxes would
leave their image by more than :data:`SLACK` of its side. Where an image's size is unknown only its left and
upper edge count. Where two readings are left that differ, the user must choose.
"""

from __future__ import annotations

import numpy as np

from boxscore._utils.array_types import FloatArray
from boxscore._utils.checks import Place
from boxscore.data.boxes import BOX_FORMATS, BoxFormat, WrittenForm, box_convert
from boxscore.errors import InputError

MOST, SLACK = 0.02, 0.05
LARGEST_FRACTION = 1.5
"""Fractions of predictions may leave the image a little; no table in pixels has all boxes in one pixel."""

_WORDS = {
    "xyxy": "x1,y1,x2,y2",
    "xywh": "x,y,w,h from the corner",
    "cxcywh": "x,y,w,h from the centre",
}


def are_fractions(boxes: FloatArray) -> bool:
    """Whether coordinates [N, 4] can only be fractions of the image's size."""
    if not len(boxes) or not (np.abs(boxes) <= LARGEST_FRACTION).all():
        return False
    return bool((boxes != np.floor(boxes)).any())


def in_pixels(boxes: FloatArray, written: WrittenForm, sizes: FloatArray, *, place: Place) -> FloatArray:
    """Return numbers [N, 4] that are written like this in pixels of images of these sizes [N, 2], x first."""
    boxes = written.x_first(boxes)
    if not written.fractions:
        return boxes
    unknown = np.isnan(sizes).any(axis=1)
    if unknown.any():
        row, rule = int(np.argmax(unknown)), "have a known size where boxes are fractions of it"
        raise InputError("an image", rule, got="none", place=place(row))
    pixels: FloatArray = boxes * np.tile(sizes, 2)
    return pixels


def reading_of(
    boxes: FloatArray,
    sizes: FloatArray,
    *,
    names: tuple[str, ...],
    usual: BoxFormat | None,
    option: str,
    place: str,
) -> BoxFormat:
    """Return what numbers [N, 4] in images of these sizes [N, 2] are.

    ``usual`` is what the other columns suggest; it wins unless the boxes rule it out. ``option`` is how the
    user chooses.
    """
    readings: tuple[BoxFormat, ...] = BOX_FORMATS if len(names) == 1 else ("xywh", "cxcywh")
    extent = np.ones_like(sizes) if are_fractions(boxes) else sizes
    with np.errstate(all="ignore"):
        left = [form for form in readings if not _is_out(box_convert(boxes, form, "xyxy"), extent)]
        if usual in left:
            return usual
        corners = [box_convert(boxes, form, "xyxy") for form in left]
    if left and all(np.array_equal(other, corners[0]) for other in corners):
        return left[0]
    if len(names) == 1:
        what = f"the numbers of {names[0]!r}"
    else:
        what = f"the columns {', '.join(names)}"
    fit = " and as ".join(_WORDS[form] for form in left)
    raise InputError(
        what,
        "have one meaning",
        got=f"boxes that fit as {fit}" if left else "boxes that fit in no way",
        place=place,
        cause=f"say {option} {'|'.join(left or readings)}",
    )


def _is_out(corners: FloatArray, sizes: FloatArray) -> bool:
    """Whether these corners [N, 4] cannot be boxes of images of these sizes [N, 2], NaN where unknown."""
    if not len(corners):
        return False
    extent = corners[:, 2:] - corners[:, :2]
    if (extent < 0).any():
        return True
    slack = SLACK * np.where(np.isnan(sizes), extent, sizes)
    outside = (corners[:, :2] < -slack) | (corners[:, 2:] > sizes + slack)
    return bool(outside.any(axis=1).mean() > MOST)
