"""What a table has as quadrilaterals or as rotated boxes, converted from the form that it holds."""

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
    """Return what a table has as quadrilaterals, [N, 8]: its corners, else its rotated or upright boxes."""
    if table.quadrilaterals is not None:
        return table.quadrilaterals
    return corners_of_boxes(table.boxes) if table.rotated is None else corners_of_rotated(table.rotated)


def rotated_of(table: BoxTable) -> FloatArray:
    """Return what a table has as rotated boxes, [N, 5]: those around its corners, else its upright boxes."""
    if table.rotated is not None:
        return table.rotated
    if table.quadrilaterals is not None:
        return minimum_rectangles(table.quadrilaterals)
    return rotated_of_boxes(table.boxes, table.sizes)
