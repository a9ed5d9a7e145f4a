"""Convert rotated boxes, and compute the upright boxes around them.

A rotated box is ``cx, cy, w, h, angle``: center, size along its own axes, and the angle in radians by which
its width axis is rotated from x towards y.
"""

from __future__ import annotations

import numpy as np

from boxscore._utils.array_types import FloatArray


def seems_degrees(rotated: FloatArray) -> str:
    """Return a warning if all angles of rotated boxes [N, 5] exceed a full turn, otherwise an empty text."""
    if not len(rotated) or np.abs(rotated[:, 4]).min() <= 2 * np.pi:
        return ""
    return (
        f"the angle of every rotated box ({len(rotated):,}) is more than a full turn, 360 degrees. Was it "
        "converted twice, or is it in degrees where radians are expected, as in arrays?"
    )


def extents_of_rotated(rotated: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return width and height of the upright box around each rotated box [N, 5], [N] each."""
    width, height, angle = rotated.T[2:]
    cosine, sine = np.abs(np.cos(angle)), np.abs(np.sin(angle))
    return width * cosine + height * sine, width * sine + height * cosine


def box_of_rotated(rotated: FloatArray) -> FloatArray:
    """Return the upright box ``x1, y1, x2, y2`` [N, 4] around each rotated box [N, 5]."""
    half = np.column_stack(extents_of_rotated(rotated)) / 2
    return np.hstack([rotated[:, :2] - half, rotated[:, :2] + half])


def area_of_rotated(rotated: FloatArray) -> FloatArray:
    """Return width times height of each rotated box [N, 5]."""
    area: FloatArray = rotated[:, 2] * rotated[:, 3]
    return area


def rotated_of_boxes(boxes: FloatArray, sizes: FloatArray) -> FloatArray:
    """Convert upright boxes [N, 4] with widths and heights [N, 2] to rotated boxes of angle 0, [N, 5]."""
    return np.hstack([boxes[:, :2] + sizes / 2, sizes, np.zeros((len(boxes), 1))])


def rotated_of_corners(corners: FloatArray) -> FloatArray:
    """Convert rectangles, given by their corners in order [N, 4, 2], to rotated boxes [N, 5].

    The width axis is the first side. If a quadrilateral is not a rectangle, opposite sides are averaged.
    """
    center = corners.mean(axis=1)
    across = (corners[:, 1] - corners[:, 0] + corners[:, 2] - corners[:, 3]) / 2
    along = (corners[:, 3] - corners[:, 0] + corners[:, 2] - corners[:, 1]) / 2
    width, height = np.hypot(*across.T), np.hypot(*along.T)
    return np.column_stack([center, width, height, np.arctan2(across[:, 1], across[:, 0])])
