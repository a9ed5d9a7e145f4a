"""Convert between four corners and rotated boxes.

Conventions
-----------
- A quadrilateral is eight numbers, ``x1, y1, x2, y2, x3, y3, x4, y4``: its corners in order, in either
  direction.
- A rotated box is ``cx, cy, w, h, angle``; the angle is in radians, from x towards y: clockwise on the
  screen. A rectangle has many such descriptions, and IoU does not depend on the choice. Three are in use,
  with mmrotate's names:

  ========== ===================== ==================================
  ``oc``     (0, pi / 2]           w is the side at that angle
  ``le90``   [-pi / 2, pi / 2)     w is the longer side
  ``le135``  [-pi / 4, 3 pi / 4)   w is the longer side
  ========== ===================== ==================================
"""

from __future__ import annotations

import math
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from boxscore._utils import checks
from boxscore._utils.array_types import BoolArray, FloatArray

RotatedFormat = Literal["corners", "rotated", "oc", "le90", "le135"]

FLAT = 1e-12
"""How far a corner may turn the wrong way, relative to the squared size, and still count as convex."""


def rotated_convert(boxes: ArrayLike, from_format: RotatedFormat, to_format: RotatedFormat) -> FloatArray:
    """Convert between four corners and rotated boxes.

    Parameters
    ----------
    boxes : array_like, [N, 8] or [N, 5]
        Corners if ``from_format`` is ``"corners"``, otherwise ``cx, cy, w, h, angle`` with the angle in
        radians from x towards y.
    from_format, to_format : {"corners", "rotated", "oc", "le90", "le135"}
        ``"rotated"`` is five numbers in any description; as ``to_format``, it leaves them unchanged. Input
        may be in any description under each name.

    Returns
    -------
    ndarray of float64, [N, 8] or [N, 5]
        For corners that are not a rectangle, the smallest rectangle around them.

    Raises
    ------
    InputError
        If a format is unknown, the shape is wrong, a size is negative or a number is not finite.

    Examples
    --------
    >>> rotated_convert([[5, 5, 2, 4, 0]], "rotated", "corners").tolist()
    [[4.0, 3.0, 6.0, 3.0, 6.0, 7.0, 4.0, 7.0]]
    >>> rotated_convert([[5, 5, 2, 4, 0]], "rotated", "le90").round(4).tolist()
    [[5.0, 5.0, 4.0, 2.0, -1.5708]]
    """
    for name, value in (("from_format", from_format), ("to_format", to_format)):
        checks.one_of(value, get_args(RotatedFormat), name=name)
    array = checks.float_array(boxes, name="boxes", columns=8 if from_format == "corners" else 5)
    checks.finite(array, name="boxes")
    if from_format == "corners":
        if to_format == "corners":
            return array.copy()
        array = minimum_rectangles(array)
    else:
        checks.sizes_not_negative(array[:, 2:4], name="boxes", cause="are these cx,cy,w,h,angle?")
    if to_format == "corners":
        return corners_of_rotated(array)
    return array.copy() if to_format == "rotated" else _described(array, to_format)


def _described(rotated: FloatArray, to_format: RotatedFormat) -> FloatArray:
    """Convert rotated boxes [N, 5] to the description of a format."""
    center, width, height, angle = rotated[:, :2], rotated[:, 2], rotated[:, 3], rotated[:, 4]
    quarter = math.pi / 2
    if to_format == "oc":
        turns = np.ceil(angle / quarter) - 1
        swapped, angle = turns % 2 == 1, angle - turns * quarter
        # Rounding may give 0, which is outside the range: use the other end.
        low = angle <= 0
        swapped, angle = swapped ^ low, np.where(low, quarter, np.minimum(angle, quarter))
    else:
        swapped = width < height
        lowest = -quarter if to_format == "le90" else -quarter / 2
        angle = (np.where(swapped, angle + quarter, angle) - lowest) % math.pi + lowest
        angle = np.where(angle >= lowest + math.pi, lowest, angle)
    sides = np.where(swapped[:, None], rotated[:, [3, 2]], rotated[:, 2:4])
    return np.column_stack([center, sides, angle])


def corners_of_rotated(rotated: FloatArray) -> FloatArray:
    """Return corners [N, 8] of rotated boxes [N, 5]; the first side is the width, from the top left."""
    cx, cy, width, height, angle = rotated.T
    cosine, sine = np.cos(angle), np.sin(angle)
    along = np.column_stack([cosine * width, sine * width]) / 2
    across = np.column_stack([-sine * height, cosine * height]) / 2
    center = np.column_stack([cx, cy])
    return np.hstack(
        [center - along - across, center + along - across, center + along + across, center - along + across]
    )


def corners_of_boxes(boxes: FloatArray) -> FloatArray:
    """Return corners [N, 8] of upright boxes ``x1, y1, x2, y2`` [N, 4]."""
    return boxes[:, [0, 1, 2, 1, 2, 3, 0, 3]]


def box_of_corners(corners: FloatArray) -> FloatArray:
    """Return the upright box ``x1, y1, x2, y2`` [N, 4] around each quadrilateral [N, 8]."""
    x, y = corners[:, 0::2], corners[:, 1::2]
    return np.column_stack([x.min(axis=1), y.min(axis=1), x.max(axis=1), y.max(axis=1)])


def area_of_corners(corners: FloatArray) -> FloatArray:
    """Return the area of each quadrilateral [N, 8]; 0 if it crosses itself evenly."""
    x, y = corners[:, 0::2], corners[:, 1::2]
    # Compute half the cross product of the diagonals, exact for integer corners.
    twice = (x[:, 2] - x[:, 0]) * (y[:, 3] - y[:, 1]) - (y[:, 2] - y[:, 0]) * (x[:, 3] - x[:, 1])
    area: FloatArray = np.abs(twice) / 2
    return area


def minimum_rectangles(corners: FloatArray) -> FloatArray:
    """Return the smallest rotated boxes [N, 5] around quadrilaterals [N, 8]; ties prefer early sides.

    A smallest rectangle has a side along a side of the convex hull, which joins two of the corners.
    """
    # Use coordinates relative to the mean of the corners, to reduce rounding errors.
    x, y = corners[:, 0::2], corners[:, 1::2]
    x0, y0 = x.mean(axis=1), y.mean(axis=1)
    x, y = x - x0[:, None], y - y0[:, None]
    best = np.zeros((len(corners), 5))
    least = np.full(len(corners), np.inf)
    # Try all six lines through two corners, for all quadrilaterals [N]: four sides and two diagonals.
    pairs = [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (1, 3)]
    for first, second in pairs:
        # Compute the direction of the line; if corners coincide, use the x axis.
        dx, dy = x[:, second] - x[:, first], y[:, second] - y[:, first]
        length = np.hypot(dx, dy)
        some = length > 0
        cosine = np.divide(dx, length, out=np.ones_like(dx), where=some)[:, None]
        sine = np.divide(dy, length, out=np.zeros_like(dy), where=some)[:, None]
        # Rotate the corners; their extents are the sides of the rectangle.
        along, across = x * cosine + y * sine, y * cosine - x * sine
        low, high = along.min(axis=1), along.max(axis=1)
        left, right = across.min(axis=1), across.max(axis=1)
        area = (high - low) * (right - left)
        # Sides come before diagonals, and a later line must be better by more than rounding, so that a
        # rectangle keeps its first side.
        better = area < least * (1 - 1e-9)
        least[better] = area[better]
        # Rotate the center back, and keep the best rectangle so far.
        middle_a, middle_b = (low + high) / 2, (left + right) / 2
        cosine, sine = cosine[:, 0], sine[:, 0]
        rectangle = np.column_stack(
            [
                x0 + middle_a * cosine - middle_b * sine,
                y0 + middle_a * sine + middle_b * cosine,
                high - low,
                right - left,
                np.arctan2(sine, cosine),
            ]
        )
        best[better] = rectangle[better]
    return best


def not_convex(corners: FloatArray) -> BoolArray:
    """Return which quadrilaterals [N, 8] turn both ways: concave or self-crossing ones."""
    x, y = corners[:, 0::2], corners[:, 1::2]
    side_x, side_y = np.roll(x, -1, axis=1) - x, np.roll(y, -1, axis=1) - y
    turn = side_x * np.roll(side_y, -1, axis=1) - side_y * np.roll(side_x, -1, axis=1)
    room = FLAT * (np.abs(side_x).max(axis=1) + np.abs(side_y).max(axis=1)) ** 2
    both: BoolArray = (turn.min(axis=1) < -room) & (turn.max(axis=1) > room)
    return both


def crossing(corners: FloatArray) -> BoolArray:
    """Return which quadrilaterals [N, 8] have two opposite sides that cross."""
    points = corners.reshape(-1, 4, 2)
    crossed = np.zeros(len(points), dtype=bool)
    for a, b, c, d in ((0, 1, 2, 3), (1, 2, 3, 0)):
        of_c, of_d = (_cross(points[:, a], points[:, b], points[:, r]) for r in (c, d))
        of_a, of_b = (_cross(points[:, c], points[:, d], points[:, r]) for r in (a, b))
        crossed |= (of_c * of_d < 0) & (of_a * of_b < 0)
    return crossed


def _cross(origin: FloatArray, first: FloatArray, second: FloatArray) -> FloatArray:
    a, b = first - origin, second - origin
    with np.errstate(over="ignore", invalid="ignore"):  # such corners are rejected elsewhere
        value: FloatArray = a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]
    return value
