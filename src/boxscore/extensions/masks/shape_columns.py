"""Flatten shapes to columns, as boxscore writes them to Parquet.

Conventions
-----------
- ``keypoint_x1, keypoint_y1, keypoint_v1, keypoint_x2, ...``: all joints, with COCO's visibility; and
  ``num_keypoints`` for ground truth.
- ``rotated_cx, rotated_cy, rotated_w, rotated_h, rotated_angle``, in radians.
- ``corner_x1, corner_y1``, ..., ``corner_y4`` for quadrilaterals.
- Masks are packed as in Open Images.
- Numbers are exact. Rows without a box leave the columns empty.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import FloatArray
from boxscore.data.base import MaskColumn
from boxscore.data.column_names import is_box
from boxscore.data.tables import BoxTable, Detections
from boxscore.errors import FileFormatError, InputError
from boxscore.extensions.masks.open_images_masks import encoded_masks

ROTATED = tuple(f"rotated_{name}" for name in ("cx", "cy", "w", "h", "angle"))
CORNERS = tuple(f"corner_{axis}{number}" for number in range(1, 5) for axis in "xy")
COUNT = "num_keypoints"

_JOINT = re.compile(r"keypoint_[xyv]([1-9][0-9]{0,3})")


def _joints(count: int) -> tuple[str, ...]:
    return tuple(f"keypoint_{part}{number}" for number in range(1, count + 1) for part in "xyv")


def with_shapes(saved: dict[str, Any], table: BoxTable, whole: BoxTable) -> tuple[dict[str, Any], bool]:
    """Add the columns of shapes to the saved columns of a table, which is a slice of ``whole``.

    Also return whether boxes enclose shapes other than masks, so that readers can recompute them.
    """
    # Write masks if any object of ``whole`` has one; boxes around them are recomputed on reading.
    around = isinstance(whole, Detections) and not whole.boxes_given
    if table.masks is not None and whole.masks is not None and not whole.masks.missing.all():
        saved = saved | _mask_columns(table.masks, saved)
        if around and not whole.masks.missing.any():
            saved = {name: values for name, values in saved.items() if not is_box(name)}
    shapes = _numbers_of_shapes(table, len(saved["image_id"]))
    return saved | shapes, around and bool(shapes)


def _numbers_of_shapes(table: Any, rows: int) -> dict[str, FloatArray]:
    """Return the columns of a table's shapes, NaN in rows without a box."""
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


def _mask_columns(masks: MaskColumn, saved: dict[str, Any]) -> dict[str, Any]:
    """Return masks packed as in Open Images, with their sizes as image sizes."""
    widths, heights, texts = encoded_masks(masks)
    columns: dict[str, Any] = {}
    _, image = np.unique(saved["image_id"], return_inverse=True)
    for name, values in (("image_width", widths), ("image_height", heights)):
        # Use the size of the image, or else of the mask.
        of_masks = _first_rows(values, saved).astype(np.float64)
        known = saved[name].astype(np.float64) if name in saved else np.full(len(image), np.nan)
        column = np.where(np.isnan(known), of_masks, known)
        sized = np.flatnonzero(~np.isnan(column))
        # Check that all masks of an image have its size.
        of_image = np.full(len(image), np.nan)
        of_image[image[sized[::-1]]] = column[sized[::-1]]  # reversed: the first row with a size wins
        other = np.flatnonzero(~np.isnan(of_masks) & (of_masks != of_image[image]))
        if len(other):
            row = int(other[0])
            got = f"{of_masks[row]:g}, where the image's is {of_image[image[row]]:g}"
            raise InputError(f"the {name[6:]} of a mask", "be its image's", got=got, place=f"row {row}")
        columns[name] = column
    return columns | {"mask": _first_rows(texts, saved)}


def _first_rows(values: Sequence[Any] | NDArray[Any], saved: dict[str, Any]) -> NDArray[np.object_]:
    """Return the values as a column of all rows, with None for images without objects."""
    column = np.full(len(saved["image_id"]), None, dtype=object)
    column[: len(values)] = values
    return column


def shape_names(names: Sequence[str], *, place: str) -> dict[str, tuple[str, ...]]:
    """Return the columns of each shape in a table, by the name of the shape in the schema.

    Raises
    ------
    FileFormatError
        If some columns of a shape are missing.
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


def read_shapes(
    shapes: Mapping[str, Sequence[str]], numbers: Callable[[str], FloatArray], *, of_results: bool
) -> dict[str, Any]:
    """Return the shapes in a table's columns, by name in the schema."""
    read: dict[str, Any] = {}
    for shape, names in shapes.items():
        columns = np.column_stack([numbers(name) for name in names])
        if shape == "keypoints":
            read[shape] = columns.reshape(len(columns), -1, 3)
        elif shape != "keypoint_count":
            read[shape] = columns
        elif not of_results:
            read[shape] = columns[:, 0].astype(np.int64)
    return read
