"""Detect boxes that are in another format than the file format says.

Conventions
-----------
- The evidence is the number of boxes that extend outside their image. If many do, and few would if the same
  four numbers had another meaning, the user is warned; nothing is changed.
- If no image size is known, only numbers that cannot be widths and heights are evidence: third and fourth
  numbers that are never smaller than the first two, although many are hardly larger (corners); or many boxes
  that would touch the image border if the first two numbers are a center (detectors clip boxes there).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import FloatArray
from boxscore._utils.records import NamedTuple
from boxscore._utils.text import counted_of
from boxscore._utils.user_warnings import warn_user
from boxscore.data.box_reading import LARGEST_FRACTION, MOST
from boxscore.data.boxes import WrittenFormat, are_few
from boxscore.data.tables import BoxTable, Detections, GroundTruth
from boxscore.errors import BoxscoreWarning
from boxscore.formats.reading import FEWEST, ROUNDED, SAMPLE_SIZE, STRIDE, SUSPICIOUS, share_outside

COMMON, LITTLE_LARGER = 0.1, 1.5
"""Minimum fraction of boxes per direction whose third number exceeds the first by less than this factor."""
CLIPPED = 0.005
"""Minimum fraction of boxes per direction that would touch the border as centers."""

FRACTIONS = "fractions of the image size"
"""The reading of numbers that are all within 0..1."""


_FORMS: dict[str, WrittenFormat] = {
    "x1,y1,x2,y2": "xyxy",
    "x,y,width,height": "xywh",
    "center x,center y,width,height": "cxcywh",
    "y1,x1,y2,x2": "yxyx",
    "y,x,height,width": "yxhw",
}
"""The readings as values of ``box_format``."""


class BoxOrder(NamedTuple):
    """The problem with a table's boxes, and the correct reading of the numbers."""

    message: str
    reading: str | None
    outside: float
    """Fraction of the boxes that extend outside their image."""
    option: str = ""
    """Option that reads the file correctly."""
    outside_swapped: float = 1.0
    """Fraction of the boxes outside if width and height of the images are exchanged."""

    @property
    def may_be_sizes(self) -> bool:
        """Whether image sizes with width and height exchanged explain the boxes as well."""
        return self.outside_swapped < self.outside / 4

    @property
    def question_of_sizes(self) -> str:
        """Explain the annotations in another way, in one sentence; empty if there is no other explanation."""
        if not self.may_be_sizes:
            return ""
        return ". Or are width and height of the images exchanged? Then use --swap-image-sizes"


def warn_of_box_order(
    table: BoxTable,
    *,
    given_sizes: bool,
    form: WrittenFormat | None = None,
    report: Callable[[BoxscoreWarning], None] = warn_user,
) -> None:
    """Warn if a table's boxes seem to have another format than the file's, or than ``box_format``."""
    order = box_order(table, given_sizes=given_sizes, form=form)
    if order is not None:
        code = f"{'detection' if isinstance(table, Detections) else 'annotation'}-box-order"
        end = " (in Python box_format=)" if order.option else ""
        if isinstance(table, GroundTruth):
            end += order.question_of_sizes
        warning = BoxscoreWarning(
            f"{table.source}: {order.message}{end}{'.' * bool(end)}", code=code, severity="error"
        )
        report(warning)


def box_order(table: BoxTable, *, given_sizes: bool, form: WrittenFormat | None = None) -> BoxOrder | None:
    """Return the problem with the format of a table's boxes; None if they look right."""
    if (
        not len(table)
        # Rotated boxes have five numbers.
        or table.rotated is not None
        or table.quadrilaterals is not None
        or table.units == "fractions"
    ):
        return None
    if np.isnan(table.images.sizes).all():
        return _order_without_images(table) if given_sizes and form is None else None
    # Judge an even sample, a coarse one first, because most tables are clearly right.
    rows = np.arange(0, len(table), -(-len(table) // SAMPLE_SIZE))
    if len(rows) > SAMPLE_SIZE / 4 and _are_clearly_right(table, STRIDE * int(rows[1])):
        return None
    # Only boxes in images of known size can be judged by them.
    extent = table.images.sizes[table.image[rows]]
    known = ~(np.isnan(extent[:, 0]) | np.isnan(extent[:, 1]))
    if not known.all():
        extent, rows = extent[known], rows[known]
    if not len(rows):
        return _order_without_images(table) if given_sizes and form is None else None
    # A wrong format shows in many boxes that extend outside their image.
    corners = table.boxes[rows]
    numbers = _numbers(table, rows, given_sizes=given_sizes)
    outside = share_outside(corners, extent)
    large = int(np.count_nonzero((np.abs(numbers) > LARGEST_FRACTION).any(axis=1)))
    if are_few(large, len(numbers)) and float(extent.min()) > 4:
        which = f"of {counted_of(len(numbers) - large, len(numbers), 'box')} " if large else ""
        text = f"all coordinates {which}are in [0, 1]. Are these fractions of the image size?"
        option = _option(table, "xywhn" if given_sizes else "xyxyn")
        return BoxOrder(f"{text} Use {option}", FRACTIONS, outside, option)
    if outside < SUSPICIOUS:
        return None
    # The user gave the format, so do not suggest another.
    if form is not None:
        text = f"read as {form}, {outside:.0%} of the boxes extend outside their image"
        return BoxOrder(f"{text}. Is that their format?", None, outside)
    # Try the other formats on the same numbers; one must explain at least three quarters of the boxes
    # outside.
    readings = _readings(numbers, given_sizes=given_sizes)
    shares = {name: share_outside(box, extent) for name, box in readings.items()}
    best = min(shares, key=lambda name: shares[name])
    named_form = "x,y,width,height" if given_sizes else "x1,y1,x2,y2"
    text = f"read as {named_form}, {outside:.0%} of the boxes extend outside their image"
    if shares[best] < outside / 4:
        option = _option(table, _FORMS[best])
        text += f"; read as {best}, {shares[best]:.1%} do. Are these {best}? Use {option}"
        # Exchanged image sizes explain the same boxes as another order of x and y.
        return BoxOrder(text, best, outside, option, share_outside(corners, extent[:, ::-1]))
    return BoxOrder(text + ". Do they belong to another image size or data set?", None, outside)


def _are_clearly_right(table: BoxTable, step: int) -> bool:
    """Return whether a sample of the boxes is clearly inside its images; False if a size is unknown."""
    # If most are small, these may be fractions.
    largest = np.maximum(np.abs(table.boxes[::step, :2]), table.sizes[::step] / 2).max(axis=1)
    if 2 * np.count_nonzero(largest <= LARGEST_FRACTION) > len(largest):
        return False
    extent = table.images.sizes.take(table.image[::step], axis=0)
    return share_outside(table.boxes[::step], extent) < 0.75 * SUSPICIOUS


def _order_without_images(table: BoxTable) -> BoxOrder | None:
    """Infer whether x,y,width,height are corners, or center and size; None if undecided."""
    # Without image sizes, only the relation between the four numbers is evidence, again on a sample.
    rows = np.arange(0, len(table), -(-len(table) // SAMPLE_SIZE))
    numbers = _numbers(table, rows, given_sizes=True)
    first, size = numbers[:, :2], numbers[:, 2:]
    least = max(FEWEST, COMMON * len(rows))
    # Corners: almost no second pair is below the first, and many are hardly larger, unlike sizes.
    hardly_larger = (size >= first) & (size < LITTLE_LARGER * first)
    odd = int(np.count_nonzero((size < first).any(axis=1)))
    if are_few(odd, len(rows), MOST) and hardly_larger.sum(axis=0).min() >= least:
        best, reason = "x1,y1,x2,y2", "every width is at least its x and every height at least its y"
    else:
        # Centers: almost none is nearer to 0 than half its size, and clipped boxes touch the border.
        slack = ROUNDED * size
        touch, beyond = np.abs(first - size / 2) <= slack, first < size / 2 - slack
        clipped = touch.sum(axis=0)
        odd = int(np.count_nonzero(beyond.any(axis=1)))
        if not are_few(odd, len(rows), MOST) or clipped.min() < max(FEWEST, CLIPPED * len(rows)):
            return None
        best = "center x,center y,width,height"
        reason = "every x and y is at least half the width and height, often exactly, as for clipped boxes"
    if odd:
        reason = f"except in {counted_of(odd, len(rows), 'box')}, {reason}"
    # The format needs evidence in both axes; otherwise the function has returned above.
    option = _option(table, _FORMS[best])
    text = f"read as x,y,width,height, {reason}. Are these {best}? Use {option}"
    return BoxOrder(text, best, 1.0, option)


def _option(table: BoxTable, form: WrittenFormat) -> str:
    return f"--{'dt' if isinstance(table, Detections) else 'gt'}-box-format {form}"


def reread(table: BoxTable, reading: str, *, given_sizes: bool) -> FloatArray:
    """Return the corners [N, 4] of a table's boxes under another reading of the same numbers."""
    rows = np.arange(len(table))
    if reading == FRACTIONS:
        corners: FloatArray = table.boxes * np.tile(table.images.sizes[table.image], 2)
        return corners
    return _readings(_numbers(table, rows, given_sizes=given_sizes), given_sizes=given_sizes)[reading]


def _numbers(table: BoxTable, rows: NDArray[np.intp], *, given_sizes: bool) -> FloatArray:
    """Return the four numbers of each box as in the file."""
    corners = table.boxes[rows]
    return np.hstack([corners[:, :2], table.sizes[rows]]) if given_sizes else corners


def _readings(numbers: FloatArray, *, given_sizes: bool) -> dict[str, FloatArray]:
    """Return the corners [N, 4] under each other reading of the same numbers."""
    a, b, c, d = numbers.T
    readings = {
        "y1,x1,y2,x2": np.stack([b, a, d, c], axis=1),
        "center x,center y,width,height": np.stack([a - c / 2, b - d / 2, a + c / 2, b + d / 2], axis=1),
    }
    if given_sizes:
        readings["x1,y1,x2,y2"] = numbers
        readings["y,x,height,width"] = np.stack([b, a, b + d, a + c], axis=1)
    else:
        readings["x,y,width,height"] = np.stack([a, b, a + c, b + d], axis=1)
    return readings
