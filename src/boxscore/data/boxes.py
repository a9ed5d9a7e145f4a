"""Convert axis-aligned boxes between common forms.

Conventions
-----------
- A box is ``x1, y1, x2, y2`` in pixels unless ``box_format`` says otherwise; the origin is top left, y down.
- In files, y may come before x (``yxyx``, ``yxhw``). A trailing ``n``, as in ``xyxyn``, means normalized:
  fractions of the image width and height.
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
"""Tolerance in pixels for sides below 0 due to rounding: the spacing of float32 numbers near 10,000."""


BoxFormat = Literal["xyxy", "xywh", "cxcywh"]
BOX_FORMATS: tuple[BoxFormat, ...] = get_args(BoxFormat)

WrittenFormat = Literal[
    "xyxy", "xywh", "cxcywh", "yxyx", "yxhw", "xyxyn", "xywhn", "cxcywhn", "yxyxn", "yxhwn"
]
WRITTEN_FORMATS: tuple[WrittenFormat, ...] = get_args(WrittenFormat)
"""Box forms that files may use."""

ROWS = 1 << 14
"""Number of boxes to convert or check at a time; their columns fit the CPU cache."""

_Y_FIRST: dict[str, BoxFormat] = {"yxyx": "xyxy", "yxhw": "xywh"}


class WrittenForm(NamedTuple):
    """The form of boxes in a file."""

    form: BoxFormat
    """The form after swapping to x first."""
    y_first: bool
    fractions: bool

    def x_first(self, boxes: FloatArray) -> FloatArray:
        """Return the numbers [N, 4] of a file with x before y."""
        return boxes[:, [1, 0, 3, 2]] if self.y_first else boxes

    def corners_of(self, numbers: FloatArray) -> FloatArray:
        """Convert the numbers [N, 4] of a file to corners [N, 4], in the units of the file."""
        return corners_and_sizes(self.x_first(numbers), self.form)[0]

    def numbers_of(self, corners: FloatArray) -> FloatArray:
        """Convert corners [N, 4] to the numbers [N, 4] of a file."""
        return self.x_first(box_convert(corners, "xyxy", self.form))


def written_form(name: WrittenFormat) -> WrittenForm:
    """Return the form for a name in :data:`WRITTEN_FORMATS`."""
    plain: Any = name.removesuffix("n")
    return WrittenForm(_Y_FIRST.get(plain, plain), plain in _Y_FIRST, plain != name)


CORNERS = WrittenForm("xyxy", y_first=False, fractions=False)
"""The default form."""


def box_convert(boxes: ArrayLike, in_fmt: BoxFormat, out_fmt: BoxFormat) -> FloatArray:
    """Convert boxes between ``xyxy``, ``xywh`` and ``cxcywh``.

    Parameters
    ----------
    boxes : array_like, [N, 4]
        Boxes in pixels.
    in_fmt, out_fmt : {"xyxy", "xywh", "cxcywh"}
        Input and output form, in continuous coordinates: ``w = x2 - x1``.

    Returns
    -------
    ndarray of float64, [N, 4]
        A new array, even if both forms are the same.

    Raises
    ------
    InputError
        If the shape is not [N, 4], or a form is unknown.

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
    center = (corners[:, :2] + corners[:, 2:]) / 2 if in_fmt == "xyxy" else corners[:, :2] + sizes / 2
    return np.hstack([center, sizes])


def corners_and_sizes(
    boxes: FloatArray, box_format: BoxFormat, *, overwrite: bool = False
) -> tuple[FloatArray, FloatArray]:
    """Split boxes [N, 4] into corners ``x1, y1, x2, y2`` [N, 4] and sizes ``w, h`` [N, 2].

    Both are needed, because neither reproduces the other exactly: pycocotools computes ``x2 = x + w`` and
    areas from ``w`` and ``h``; the VOC devkit computes sizes from ``x2``. ``overwrite`` reuses the array.
    """
    corners = boxes if overwrite else boxes.copy()
    sizes = np.empty((len(boxes), 2))
    for start in range(0, len(boxes), ROWS):
        ends, sides = corners[start : start + ROWS], sizes[start : start + ROWS]
        for low, high in ((0, 2), (1, 3)):  # by column, to make the inner loop of NumPy long instead of 2
            # Compute sizes from given corners, or corners from given sizes.
            if box_format == "xyxy":
                np.subtract(ends[:, high], ends[:, low], out=sides[:, low])
                continue
            sides[:, low] = ends[:, high]
            if box_format == "cxcywh":
                ends[:, low] -= sides[:, low] / 2
            np.add(ends[:, low], sides[:, low], out=ends[:, high])
    return corners, sizes


def without_inverted(corners: FloatArray) -> FloatArray:
    """Replace negative sides by sides of 0 in corners [N, 4]."""
    if not len(corners) or (corners[:, 2:] >= corners[:, :2]).all():
        return corners
    return np.hstack([corners[:, :2], np.maximum(corners[:, :2], corners[:, 2:])])


SLACK = 4 * np.finfo(np.float64).eps
"""Maximum difference between a size and the difference of its corners, relative to the larger corner.

Rounding of ``x2 = x1 + w`` and ``w = x2 - x1`` changes it by less than one epsilon.
"""


FEW = 0.1
"""Largest fraction of boxes that are more likely mistakes than evidence of another form."""


def are_few(count: int, total: int, most: float = FEW) -> bool:
    """Whether so many lines of all are too few to decide how the others are read; one of two is not."""
    return count <= max(1, most * total) and 2 * count < total


OTHER_FORMS: dict[str, WrittenFormat] = {"are these x,y,w,h?": "xywh", "are these x1,y1,x2,y2?": "xyxy"}
"""Likely causes of boxes of negative size, each with the form that would fix it."""


def cause_of_negative(corners: FloatArray, sizes: FloatArray, box_format: BoxFormat) -> str:
    """Return the likely cause of negative sides: another box form, if all boxes are valid in it.

    A few such boxes do not show another form.
    """
    swapped = "were two corners swapped?"
    if are_few(int((sizes < 0).any(axis=1).sum()), len(sizes)):
        return swapped
    if box_format == "xyxy":
        cause, sides = "are these x,y,w,h?", corners[:, 2:]
    else:
        first = corners[:, :2] if box_format == "xywh" else corners[:, :2] + sizes / 2
        cause, sides = "are these x1,y1,x2,y2?", sizes - first
    return cause if (sides >= 0).all() else swapped


def check_sizes_fit(
    corners: FloatArray, sizes: FloatArray, *, name: str | tuple[str, str], place: Place, cause: str
) -> None:
    """Check that sizes [N, 2] match the corners [N, 4] up to rounding.

    ``name`` is the name of the sizes in messages, or of their two columns. Corners that are not finite match
    any sizes; another check rejects them.
    """
    first: tuple[int, int] | None = None
    for side, start in itertools.product((0, 1), range(0, len(sizes), ROWS)):
        # Compare one side of ROWS boxes at a time; first exactly, because most boxes match.
        low, high = corners[start : start + ROWS, side], corners[start : start + ROWS, side + 2]
        size = sizes[start : start + ROWS, side]
        with np.errstate(invalid="ignore"):
            if (low + size == high).all():  # always true if sizes were given
                continue
            # Others may only differ by rounding, relative to the larger corner.
            slack = np.maximum(np.abs(low), np.abs(high)) * SLACK
            fits = np.abs(size - (high - low)) <= slack
        if not fits.all():
            # Accept corners that are not finite; another check rejects them. Keep the first wrong row, and
            # its x side first.
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
    """Check boxes, and return corners [N, 4] and sizes [N, 2] with the offset added to the sizes."""
    array = checks.float_array(boxes, name=name, columns=4)
    checks.one_of(box_format, BOX_FORMATS, name="box_format")
    checks.finite(array, name=name)
    corners, sizes = corners_and_sizes(array, box_format)
    if sizes.size and sizes.min() < 0:
        checks.sizes_not_negative(sizes, name=name, cause=cause_of_negative(corners, sizes, box_format))
    return corners, sizes + pixel_offset
