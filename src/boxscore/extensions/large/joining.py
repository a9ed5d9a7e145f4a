"""Join tables of disjoint images of one data set.

Conventions
-----------
- Results are new tables; rows keep their order.
- If only some tables have masks or keypoints, the rows of the others are filled with empty ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from boxscore.data.alignment import concatenate
from boxscore.data.tables import BoxTable, Detections, GroundTruth
from boxscore.data.vocabulary import Categories, Images
from boxscore.errors import InputError
from boxscore.extensions.masks.column import Masks

Table = TypeVar("Table", bound=BoxTable)


def with_all_instances(tables: Sequence[Table]) -> list[Table]:
    """Give every table masks and keypoints if any table has them; fill with empty ones."""
    parts = list(tables)
    if any(table.masks is not None for table in parts):
        parts = [
            table.replaced(masks=Masks([None] * len(table), image_sizes=table.images.sizes[table.image]))
            if table.masks is None
            else table
            for table in parts
        ]
    # Keypoints of all tables need the same number of joints to share an array.
    joints = {table.keypoints.shape[1] for table in parts if table.keypoints is not None}
    if len(joints) > 1:
        rule = "be the same number in every table"
        raise InputError("keypoints of tables to merge", rule, got=f"{sorted(joints)}")
    for count in joints:
        parts = [_with_keypoints(table, count) if table.keypoints is None else table for table in parts]
    # A rotated box cannot replace an upright one.
    for name, what in (("rotated", "be rotated"), ("quadrilaterals", "have corners")):
        present = [getattr(table, name) is not None for table in parts if len(table)]
        if any(present) and not all(present):
            raise InputError("boxes of tables to merge", f"all have {what}, or none", got="both")
    return parts


def of_one_data_set(tables: Sequence[Table]) -> Table:
    """Concatenate the tables of disjoint images of one data set, sorted by image."""
    return concatenate(with_all_instances(tables))[0]


def under_classes(table: Table, categories: Categories) -> Table:
    """Renumber the classes of a table to those of the whole data set, which must contain them."""
    rows = categories.rows(table.categories.ids)
    return table.replaced(categories=categories, category=rows[table.category])


def no_detections(categories: Categories, *, images: Images | None = None) -> Detections:
    """Return an empty table of detections with scores, optionally with images."""
    nothing: Any = []
    return Detections.from_arrays(
        nothing,
        nothing,
        np.empty((0, 4)),
        nothing,
        images=nothing if images is None else images,
        categories=categories,
    )


def _with_keypoints(table: Table, count: int) -> Table:
    """Return the table with unlabeled keypoints."""
    columns: dict[str, Any] = {"keypoints": np.zeros((len(table), count, 3))}
    if isinstance(table, GroundTruth):
        columns["keypoint_count"] = np.zeros(len(table), dtype=np.int64)
    return table.replaced(**columns)
