"""Masks and keypoints in COCO files, read only when a protocol compares them.

Conventions
-----------
- ``segmentation`` is kept as the file has it: polygons, or a run-length code.
- ``keypoints`` are ``x1, y1, v1, x2, ...``; an annotation without them has none labelled.
- Results may leave out ``bbox``. As in pycocotools the first record decides for all whether the results
  carry boxes; where they do not, boxes are those around the masks or keypoints.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Literal, TypedDict

import msgspec
import numpy as np
from numpy.typing import NDArray

from boxscore._utils.checks import Place
from boxscore.errors import FileFormatError
from boxscore.protocols.protocol import Similarity

__all__ = ["Part", "given_boxes", "part_columns", "part_of", "readers", "record_type"]

Part = Literal["none", "masks", "keypoints"]


class _Code(TypedDict):
    size: list[int]
    counts: str | list[int]


_FIELDS: dict[str, list[tuple[str, Any, Any]]] = {
    "masks": [("segmentation", list[list[float]] | _Code | None, None)],
    "keypoints": [("keypoints", list[float] | None, None)],
}


def part_of(similarity: Similarity) -> Part:
    """Say which part of a record a similarity reads beside its box."""
    parts: dict[str, Part] = {"mask": "masks", "boundary": "masks", "keypoints": "keypoints"}
    return parts.get(similarity, "none")


def record_type(base: type[msgspec.Struct], part: Part) -> type[msgspec.Struct]:
    """Return the type of a record that has this part as well; of results, with or without a box."""
    if part == "none":
        return base
    fields = list(_FIELDS[part])
    if "score" in base.__struct_fields__:
        fields.append(("bbox", list[float] | None, None))
    elif part == "keypoints":
        fields.append(("num_keypoints", int | None, None))
    return msgspec.defstruct(base.__name__, fields, bases=(base,), kw_only=True, gc=False)


def readers(part: Part, *, results: bool) -> dict[str, Callable[[list[Any], str], NDArray[Any]]]:
    """Return what turns records into the further columns, by the columns' names."""
    if part == "none":
        return {}
    names = [name for name, _, _ in _FIELDS[part]]
    if part == "keypoints" and not results:
        names.append("num_keypoints")
    return {**({"bbox": _boxes_or_nan} if results else {}), **dict.fromkeys(names, _objects)}


def _objects(records: list[Any], name: str) -> NDArray[Any]:
    return np.fromiter(map(operator.attrgetter(name), records), dtype=object, count=len(records))


def _boxes_or_nan(records: list[Any], name: str) -> NDArray[np.float64]:
    """Read boxes [N, 4]; NaN for a record without one, infinite for one of another length."""
    missing, wrong = [np.nan] * 4, [np.inf] * 4
    rows = [
        wrong if box and len(box) != 4 else box or missing for box in map(operator.attrgetter(name), records)
    ]
    return np.array(rows, dtype=np.float64).reshape(-1, 4)


def given_boxes(boxes: NDArray[np.float64], *, place: Place) -> NDArray[np.float64] | None:
    """Return the boxes of results, or None where the first record has none.

    Raises
    ------
    FileFormatError
        When the first record has a box and another has none, or one of another length.
    """
    if not len(boxes) or np.isnan(boxes[0, 0]):
        return None
    bad = ~np.isfinite(boxes).all(axis=1)
    if bad.any():
        row = int(np.argmax(bad))
        got = "none" if np.isnan(boxes[row, 0]) else "another length"
        rule = "have 4 numbers, as the first detection's has"
        raise FileFormatError("bbox", rule, got=got, place=place(row))
    return boxes


def part_columns(others: dict[str, NDArray[Any]], part: Part, *, place: Place) -> dict[str, Any]:
    """Return the arguments ``masks``, ``keypoints`` and ``keypoint_count`` of a table.

    Raises
    ------
    FileFormatError
        When keypoints are not three numbers each, or not equally many in every record.
    """
    if part == "masks":
        return {"masks": others["segmentation"]}
    if part == "none":
        return {}
    given = others["keypoints"].tolist()
    length = max((len(values) for values in given if values), default=0)
    for row, values in enumerate(given):
        if values and (len(values) != length or length % 3):
            rule = "be three numbers a keypoint, and as many in every record"
            raise FileFormatError("keypoints", rule, got=f"{len(values)} numbers", place=place(row))
    none = [0.0] * length
    points = np.array([values or none for values in given], dtype=np.float64).reshape(
        len(given), length // 3, 3
    )
    columns: dict[str, Any] = {"keypoints": points}
    if "num_keypoints" in others:
        labelled = (points[:, :, 2] > 0).sum(axis=1)
        stated = others["num_keypoints"].tolist()
        columns["keypoint_count"] = [
            own if count is None else count for count, own in zip(stated, labelled.tolist(), strict=True)
        ]
    return columns
