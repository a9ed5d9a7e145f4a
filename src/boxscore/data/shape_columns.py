"""Flatten keypoints, rotated boxes and corners to columns, as boxscore writes them to Parquet.

Conventions
-----------
- ``keypoint_x1, keypoint_y1, keypoint_v1, keypoint_x2, ...``: all joints, with COCO's visibility; and
  ``num_keypoints``, which ground truth counts.
- ``rotated_cx, rotated_cy, rotated_w, rotated_h, rotated_angle``, in radians.
- ``corner_x1, corner_y1``, ..., ``corner_y4`` of quadrilaterals.
- Numbers are those of the table, to the last bit. A row without a box has none of them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from boxscore._utils.array_types import FloatArray
from boxscore.errors import FileFormatError

ROTATED = tuple(f"rotated_{name}" for name in ("cx", "cy", "w", "h", "angle"))
CORNERS = tuple(f"corner_{axis}{number}" for number in range(1, 5) for axis in "xy")
COUNT = "num_keypoints"

_JOINT = re.compile(r"keypoint_[xyv]([1-9][0-9]{0,3})")


def _joints(count: int) -> tuple[str, ...]:
    return tuple(f"keypoint_{part}{number}" for number in range(1, count + 1) for part in "xyv")


def written_shapes(table: Any, rows: int) -> dict[str, FloatArray]:
    """Return the columns of the shapes that a table of boxes has, NaN in rows without a box."""
    points, count = table.keypoints, getattr(table, "keypoint_count", None)
    groups: list[tuple[tuple[str, ...], Any]] = [(ROTATED, table.rotated), (CORNERS, table.quadrilaterals)]
    if points is not None:
        groups.append((_joints(points.shape[1]), points.reshape(len(table), -1)))
    if count is not None:
        groups.append(((COUNT,), count.reshape(-1, 1)))
    columns = {}
    for names, values in groups:
        if values is None:
            continue
        for name, column in zip(names, np.asarray(values, dtype=np.float64).T, strict=True):
            columns[name] = np.full(rows, np.nan)
            columns[name][: len(table)] = column
    return columns


def shape_names(names: Sequence[str], *, place: str) -> dict[str, tuple[str, ...]]:
    """Return the columns of each shape among those of a table, by the shape's name in the schema.

    Raises
    ------
    FileFormatError
        When some of a shape's columns are there, and others are not.
    """
    known = set(names)
    highest = max((int(match[1]) for match in map(_JOINT.fullmatch, names) if match), default=0)
    shapes = {}
    for shape, wanted in (("rotated", ROTATED), ("quadrilaterals", CORNERS), ("keypoints", _joints(highest))):
        there = [name for name in wanted if name in known]
        if there and len(there) < len(wanted):
            missing = next(name for name in wanted if name not in known)
            raise FileFormatError(f"columns of {shape}", "all be there", got=f"no {missing}", place=place)
        if there:
            shapes[shape] = wanted
    if COUNT in known and "keypoints" in shapes:
        shapes["keypoint_count"] = (COUNT,)
    return shapes


def read_shapes(columns: FloatArray, shape: str) -> Any:
    """Return a shape as the schema has it, of its columns [N, C]."""
    if shape == "keypoints":
        return columns.reshape(len(columns), -1, 3)
    return columns[:, 0].astype(np.int64) if shape == "keypoint_count" else columns
