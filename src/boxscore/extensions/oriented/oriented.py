"""Convert the shapes of a table to quadrilaterals or rotated boxes."""

from __future__ import annotations

from boxscore._utils.array_types import FloatArray
from boxscore.data.tables import BoxTable
from boxscore.extensions.oriented.quadrilaterals import (
    corners_of_boxes,
    corners_of_rotated,
    minimum_rectangles,
)
from boxscore.extensions.oriented.rotated_boxes import rotated_of_boxes


def corners_of(table: BoxTable) -> FloatArray:
    """Return the corners of a table, [N, 8], or else those of its rotated or upright boxes."""
    if table.quadrilaterals is not None:
        return table.quadrilaterals
    return corners_of_boxes(table.boxes) if table.rotated is None else corners_of_rotated(table.rotated)


def rotated_of(table: BoxTable) -> FloatArray:
    """Return the rotated boxes of a table, [N, 5], or else convert its corners or upright boxes."""
    if table.rotated is not None:
        return table.rotated
    if table.quadrilaterals is not None:
        return minimum_rectangles(table.quadrilaterals)
    return rotated_of_boxes(table.boxes, table.sizes)
