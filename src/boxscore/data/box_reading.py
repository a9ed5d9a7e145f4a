"""Infer the form of boxes if column names do not define it; raise if the form is ambiguous.

Conventions
-----------
A form is ruled out if a box would have a negative side, or if more than :data:`MOST` of the boxes would
extend beyond their image by more than :data:`SLACK` of its side. For images of unknown size, only the left
and top borders are checked. If several different forms remain, the user must choose.
"""

from __future__ import annotations

import itertools

import numpy as np

from boxscore._utils import checks
from boxscore._utils.array_types import FloatArray
from boxscore._utils.checks import Place
from boxscore.data.boxes import BOX_FORMATS, BoxFormat, WrittenForm, box_convert
from boxscore.errors import InputError

MOST, SLACK = 0.02, 0.05
LARGEST_FRACTION = 1.5
"""Tolerance for predicted fractions beyond the image; in pixels, boxes are never all within 1.5 pixels."""

_WORDS = {
    "xyxy": "x1,y1,x2,y2",
    "xywh": "x,y,w,h from the corner",
    "cxcywh": "x,y,w,h from the center",
}


def are_fractions(boxes: FloatArray) -> bool:
    """Whether coordinates [N, 4] can only be fractions of the image size."""
    if not len(boxes) or not (np.abs(boxes) <= LARGEST_FRACTION).all():
        return False
    return bool((boxes != np.floor(boxes)).any())


def in_pixels(boxes: FloatArray, written: WrittenForm, sizes: FloatArray, *, place: Place) -> FloatArray:
    """Convert boxes [N, 4] in this form to pixels, x first, given image sizes [N, 2]."""
    boxes = written.x_first(boxes)
    if not written.fractions:
        return boxes
    unknown = np.isnan(sizes).any(axis=1)
    if unknown.any():
        row, rule = int(np.argmax(unknown)), "have a known size where boxes are fractions of it"
        raise InputError("an image", rule, got="none", place=place(row), cause=checks.GIVE_SIZES)
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
    """Infer the form of boxes [N, 4], given image sizes [N, 2].

    ``usual`` is the form that other columns suggest; it wins unless the boxes rule it out. ``option`` is the
    option for the user to choose.
    """
    readings = Readings(names)
    readings.add(boxes, np.ones_like(sizes) if are_fractions(boxes) else sizes)
    return readings.chosen(usual=usual, option=option, place=place)


class Readings:
    """Candidate forms of boxes, which arrive in chunks.

    Parameters
    ----------
    names : tuple of str
        Names of the columns.
    """

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names
        self._readings: tuple[BoxFormat, ...] = BOX_FORMATS if len(names) == 1 else ("xywh", "cxcywh")
        self._count = 0
        self._negative = dict.fromkeys(self._readings, False)
        self._outside = dict.fromkeys(self._readings, 0)
        self._as_first = dict.fromkeys(itertools.permutations(self._readings, 2), True)

    def add(self, boxes: FloatArray, sizes: FloatArray) -> None:
        """Add boxes [N, 4], given image sizes [N, 2]; NaN if unknown."""
        self._count += len(boxes)
        with np.errstate(all="ignore"):
            corners = {form: box_convert(boxes, form, "xyxy") for form in self._readings}
            for form, sides in corners.items():
                extent = sides[:, 2:] - sides[:, :2]
                slack = SLACK * np.where(np.isnan(sizes), extent, sizes)
                outside = (sides[:, :2] < -slack) | (sides[:, 2:] > sizes + slack)
                self._negative[form] |= bool((extent < 0).any())
                self._outside[form] += int(outside.any(axis=1).sum())
            for pair in self._as_first:
                self._as_first[pair] &= np.array_equal(corners[pair[0]], corners[pair[1]])

    def chosen(self, *, usual: BoxFormat | None, option: str, place: str) -> BoxFormat:
        """Return the remaining form; ``usual`` wins unless the boxes rule it out."""
        # Prefer the usual form.
        left = [form for form in self._readings if not self._is_ruled_out(form)]
        if usual in left:
            return usual
        # Forms that give the same corners for all boxes are equivalent.
        if left and all(self._as_first[left[0], other] for other in left[1:]):
            return left[0]
        # Do not guess.
        if len(self._names) == 1:
            what = f"the numbers of {self._names[0]!r}"
        else:
            what = f"the columns {', '.join(self._names)}"
        fit = " and as ".join(_WORDS[form] for form in left)
        raise InputError(
            what,
            "have one meaning",
            got=f"boxes that are valid as {fit}" if left else "boxes that are not valid in any format",
            place=place,
            cause=f"use {option} {'|'.join(left or self._readings)}",
        )

    def _is_ruled_out(self, form: BoxFormat) -> bool:
        """Whether the boxes rule out this form."""
        return self._count > 0 and (self._negative[form] or self._outside[form] / self._count > MOST)
