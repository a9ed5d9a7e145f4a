"""Convert axis-aligned boxes between the forms in which people write them.

Conventions
-----------
- A box is ``x1, y1, x2, y2`` in pixels unless ``box_format`` says otherwise; origin top left, y down.
- Files may have y before x, ``yxyx`` and ``yxhw``, and an ``n`` behind any form, as in ``xyxyn``, says that
  the numbers are normalised: fractions of the image's width and height.
"""

from __future__ import annotations

import itertools
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from boxscore._utils import checks
from boxscore._utils.array_types import FloatArray
from boxscore._utils.checks import Place
from boxscore._utils.records import NamedTuple
from boxscore.errors import InputError

ROUNDING = 1e-3
"""Pixels by which rounding may bring a side below 0: float32 numbers near 10,000 lie so far apart."""


BoxFormat = Literal["xyxy", "xywh", "cxcywh"]
BOX_FORMATS: tuple[BoxFormat, ...] = get_args(BoxFormat)

WrittenFormat = Literal[
    "xyxy", "xywh", "cxcywh", "yxyx", "yxhw", "xyxyn", "xywhn", "cxcywhn", "yxyxn", "yxhwn"
]
WRITTEN_FORMATS: tuple[WrittenFormat, ...] = get_args(WrittenFormat)
"""The forms in which files have boxes."""

_Y_FIRST: dict[str, BoxFormat] = {"yxyx": "xyxy", "yxhw": "xywh"}


class WrittenForm(NamedTuple):
    """What the four numbers of a box in a file are."""

    form: BoxFormat
    """With x first."""
    y_first: bool
    fractions: bool

    def x_first(self, boxes: FloatArray) -> FloatArray:
        """Return numbers [N, 4] of a file with x before y."""
        return boxes[:, [1, 0, 3, 2]] if self.y_first else boxes

    def corners_of(self, numbers: FloatArray) -> FloatArray:
        """Return the corners [N, 4] of numbers [N, 4] of a file, in its units."""
        return corners_and_sizes(self.x_first(numbers), self.form)[0]

    def numbers_of(self, corners: FloatArray) -> FloatArray:
        """Return the numbers [N, 4] that a file writes for corners."""
        return self.x_first(box_convert(corners, "xyxy", self.form))


def written_form(name: WrittenFormat) -> WrittenForm:
    """Return what a name of :data:`WRITTEN_FORMATS` says."""
    plain: Any = name.removesuffix("n")
    return WrittenForm(_Y_FIRST.get(plain, plain), plain in _Y_FIRST, plain != name)


CORNERS = WrittenForm("xyxy", y_first=False, fractions=False)
"""What files have that say nothing else."""


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
        # The file gives corners: sizes are their differences. Else it gives sizes, which stay as they are,
        # and corners follow from them.
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


SLACK = 4 * np.finfo(np.float64).eps
"""How far a size may be from the difference of its corners, as a share of the larger corner. Rounding alone,
of ``x2 = x1 + w`` and of ``w = x2 - x1``, moves it by less than one epsilon."""


ROWS = 1 << 14
"""Boxes checked together: their columns fit a core's cache."""


OTHER_FORMS: dict[str, WrittenFormat] = {"are these x,y,w,h?": "xywh", "are these x1,y1,x2,y2?": "xyxy"}
"""The likely causes of boxes of negative size, and the form of boxes that each asks for."""


def cause_of_negative(corners: FloatArray, sizes: FloatArray, box_format: BoxFormat) -> str:
    """Say why some boxes end before they begin: if all are right in another form, it is that."""
    if box_format == "xyxy":
        cause, sides = "are these x,y,w,h?", corners[:, 2:]
    else:
        first = corners[:, :2] if box_format == "xywh" else corners[:, :2] + sizes / 2
        cause, sides = "are these x1,y1,x2,y2?", sizes - first
    return cause if (sides >= 0).all() else "were two corners swapped?"


def check_sizes_fit(
    corners: FloatArray, sizes: FloatArray, *, name: str | tuple[str, str], place: Place, cause: str
) -> None:
    """Check that sizes [N, 2] are those of the corners [N, 4] but for rounding.

    ``name`` is what messages call the sizes, or their two columns. Corners that are not finite fit any sizes:
    another check refuses them.
    """
    first: tuple[int, int] | None = None
    for side, start in itertools.product((0, 1), range(0, len(sizes), ROWS)):
        # Compare one side of ROWS boxes at a time. Most boxes fit exactly, and one comparison shows it.
        low, high = corners[start : start + ROWS, side], corners[start : start + ROWS, side + 2]
        size = sizes[start : start + ROWS, side]
        with np.errstate(invalid="ignore"):
            if (low + size == high).all():  # as where sizes were given
                continue
            # The others may differ by rounding alone, measured by the larger corner.
            slack = np.maximum(np.abs(low), np.abs(high)) * SLACK
            fits = np.abs(size - (high - low)) <= slack
        if not fits.all():
            # Corners that are not finite count as fitting here; another check refuses them. Keep the first
            # wrong row, and of one row the x side.
            fits |= ~np.isfinite(corners[start : start + ROWS]).all(axis=1)
            wrong = np.flatnonzero(~fits)
            if len(wrong):
                first = min(first or (len(sizes), 0), (start + int(wrong[0]), side))
    if first is not None:
        row, side = first
        raise InputError(
            name if isinstance(name, str) else name[side],
            f"be {'xy'[side]}2 - {'xy'[side]}1, which is {corners[row, side + 2] - corners[row, side]}",
            got=sizes[row, side],
            place=place(row),
            cause=cause,
        )


def checked_corners(
    boxes: ArrayLike, box_format: BoxFormat, pixel_offset: float = 0, *, name: str
) -> tuple[FloatArray, FloatArray]:
    """Corners [N, 4] and sizes [N, 2], the offset added to the sizes, of boxes, once checked."""
    array = checks.float_array(boxes, name=name, columns=4)
    checks.one_of(box_format, BOX_FORMATS, name="box_format")
    checks.finite(array, name=name)
    corners, sizes = corners_and_sizes(array, box_format)
    if sizes.size and sizes.min() < 0:
        checks.sizes_not_negative(sizes, name=name, cause=cause_of_negative(corners, sizes, box_format))
    return corners, sizes + pixel_offset
