"""Read and write keypoints of COCO records.

Conventions
-----------
- ``keypoints`` are ``x1, y1, v1, x2, ...``; without them, or with ``[]``, all keypoints are unlabeled.
- The number of labeled keypoints is read from ground truth, or else counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore._utils.array_types import FloatArray
from boxscore._utils.checks import Place
from boxscore.data.tables import BoxTable
from boxscore.errors import FileFormatError
from boxscore.formats._coco_records import Columns, Field, FirstRecord, RecordShape

LARGEST_COUNT = 2**63 - 1
MOST_NUMBERS = 3_000
"""Maximum count in a record for reading keypoints as a struct of numbers; longer ones are read as lists."""


class _Keypoints(RecordShape):
    def fields(self, *, of_results: bool) -> Sequence[Field]:
        keypoints: Field = ("keypoints", list[float] | None, None)
        return [keypoints] if of_results else [keypoints, ("num_keypoints", int | float | None, None)]

    def numeric_fields(self, first: FirstRecord, *, of_results: bool) -> Sequence[tuple[str, Any]] | None:
        """Return fields with as many numbers as the first record's keypoints; None if not possible."""
        count = len(first.keypoints) if isinstance(first.keypoints, list) else 0
        if not 0 < count <= MOST_NUMBERS or count % 3:
            return None
        keypoints: tuple[str, Any] = ("keypoints", tuple[(float,) * count])  # type: ignore[misc]
        if of_results:
            return [keypoints]
        return None if first.num_keypoints is None else [keypoints, ("num_keypoints", float)]

    def columns(
        self, records: Columns, image_sizes: Callable[[], FloatArray], place: Place
    ) -> dict[str, Any]:
        points = records["keypoints"]
        if points.ndim == 1:
            points = _points_of_lists(points.tolist(), place)
        length = points.shape[1]
        with np.errstate(over="ignore"):  # sum of the largest floats
            finite = np.isfinite(points.sum())
        if not finite:
            checks.finite(points, name="keypoints", place=place)
        points = points.reshape(len(points), length // 3, 3)
        instances: dict[str, Any] = {"keypoints": points if length else None}
        if "num_keypoints" in records:
            instances["keypoint_count"] = _counts(records["num_keypoints"], points, place)
        return instances

    def written(self, table: BoxTable) -> dict[str, list[Any]]:
        points = table.keypoints
        assert points is not None
        return {"keypoints": points.reshape(len(table), math.prod(points.shape[1:])).tolist()}


KEYPOINTS = _Keypoints()


def _points_of_lists(given: list[list[float] | None], place: Place) -> FloatArray:
    """Convert lists, each as long as the longest or missing, to rows of numbers."""
    length = max((len(values) for values in given if values), default=0)
    for row, values in enumerate(given):
        if values and (len(values) != length or length % 3):
            rule = "be three numbers per keypoint, and as many in every record"
            raise FileFormatError("keypoints", rule, got=f"{len(values)} numbers", place=place(row))
    unlabeled = [0.0] * length
    return np.array([values or unlabeled for values in given], dtype=np.float64).reshape(len(given), length)


def _counts(given: NDArray[Any], points: FloatArray, place: Place) -> NDArray[np.int64] | None:
    """Return the number of labeled keypoints, as stated or counted; None if neither is known."""
    if given.dtype != object:
        return given.astype(np.int64)
    stated = [_count(count, place, row) for row, count in enumerate(given.tolist())]
    labeled = (points[:, :, 2] > 0).sum(axis=1).tolist()
    counts = [seen if count is None else count for count, seen in zip(stated, labeled, strict=True)]
    known = points.size > 0 or any(count is not None for count in stated)
    return np.array(counts, dtype=np.int64) if known else None


def _count(count: float | None, place: Place, row: int) -> int | None:
    """Return a stated count, clipped to int64, since only 0 is special."""
    if count is None:
        return None
    if isinstance(count, float) and not count.is_integer():
        raise FileFormatError("num_keypoints", "be a whole number or null", got=repr(count), place=place(row))
    return max(-LARGEST_COUNT, min(int(count), LARGEST_COUNT))
