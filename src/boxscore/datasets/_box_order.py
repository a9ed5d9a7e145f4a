"""Noticing boxes that were written in another order than the file format says.

Conventions
-----------
Evidence is how many boxes reach outside their image. Where many do, and few would if the same four numbers
were read another way, the user is told; nothing is changed.
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from boxscore.errors import BoxscoreWarning
from boxscore.tables import BoxTable

__all__ = ["warn_of_box_order"]

SUSPICIOUS = 0.10
"""Share of boxes outside their image above which something is wrong; detectors overhang by a few pixels."""

SLACK = 0.05
"""Part of the image's side by which a box may overhang."""

MOST_LOOKED_AT = 20_000
"""Boxes looked at, spread over the table."""

FloatArray = NDArray[np.float64]


def warn_of_box_order(table: BoxTable, *, given_sizes: bool) -> None:
    """Warn when a table's boxes look like another form of box.

    Parameters
    ----------
    table : BoxTable
        Nothing is said where the images' sizes are unknown.
    given_sizes : bool
        Whether the file gave ``x, y, width, height`` (true) or two corners.
    """
    if not len(table):
        return
    rows = np.arange(0, len(table), -(-len(table) // MOST_LOOKED_AT))
    extent = table.images.sizes[table.image[rows]]
    known = ~np.isnan(extent).any(axis=1)
    if not known.any():
        return
    extent, rows = extent[known], rows[known]
    corners = table.boxes[rows]
    numbers = np.hstack([corners[:, :2], table.sizes[rows]]) if given_sizes else corners
    outside = _share_outside(corners, extent)
    if float(np.max(np.abs(numbers))) <= 1.5 and float(extent.min()) > 4:
        _warn(f"{table.source}: all coordinates lie in 0..1. Are these fractions of the image's size?")
        return
    if outside < SUSPICIOUS:
        return
    readings = _readings(numbers, given_sizes=given_sizes)
    shares = {name: _share_outside(box, extent) for name, box in readings.items()}
    best = min(shares, key=lambda name: shares[name])
    form = "x,y,width,height" if given_sizes else "x1,y1,x2,y2"
    text = f"{table.source}: read as {form}, {outside:.0%} of the boxes reach outside their image"
    if shares[best] < outside / 4:
        text += f"; read as {best}, {shares[best]:.1%} would. Are these {best}?"
    else:
        text += ". Are they of another image size or data set?"
    _warn(text)


def _warn(text: str) -> None:
    warnings.warn(text, BoxscoreWarning, stacklevel=4)


def _readings(numbers: FloatArray, *, given_sizes: bool) -> dict[str, FloatArray]:
    """Corners [N, 4] under each other reading of the same numbers."""
    a, b, c, d = numbers.T
    readings = {
        "y1,x1,y2,x2": np.stack([b, a, d, c], axis=1),
        "centre x,centre y,width,height": np.stack([a - c / 2, b - d / 2, a + c / 2, b + d / 2], axis=1),
    }
    if given_sizes:
        readings["x1,y1,x2,y2"] = numbers
        readings["y,x,height,width"] = np.stack([b, a, b + d, a + c], axis=1)
    else:
        readings["x,y,width,height"] = np.stack([a, b, a + c, b + d], axis=1)
    return readings


def _share_outside(corners: FloatArray, extent: FloatArray) -> float:
    """Share of boxes that leave their image or are inside out."""
    slack = SLACK * extent
    inside = (corners[:, :2] >= -slack) & (corners[:, 2:] <= extent + slack)
    inside &= corners[:, 2:] >= corners[:, :2]
    return 1.0 - float(inside.all(axis=1).mean())
