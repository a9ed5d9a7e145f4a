"""Checking and building what tables are made of: from arrays, and from DataFrames."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boxscore._utils import checks
from boxscore._utils.checks import Place
from boxscore.data.boxes import BOX_FORMATS, BoxFormat, corners_and_sizes
from boxscore.data.vocabulary import Categories, Id, Images, as_ids
from boxscore.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["DIVERGED", "LARGEST", "checked_boxes", "frame_columns", "table_columns"]

FloatArray = NDArray[np.float64]
RowArray = NDArray[np.int32]

LARGEST = float(np.finfo(np.float64).max)
DIVERGED = "a diverged model?"


def _vocabulary_rows(
    vocabulary: Images | Categories, ids: NDArray[Any], *, name: str, place: Place
) -> RowArray:
    rows = vocabulary.rows(ids)
    if len(rows) and rows.min() < 0:
        row = int(np.argmin(rows))
        raise InputError(f"{name} id", "be known", got=repr(ids[row : row + 1].tolist()[0]), place=place(row))
    return rows


def table_columns(
    image_ids: Sequence[Id] | NDArray[Any],
    category_ids: Sequence[Id] | NDArray[Any],
    boxes: ArrayLike | None,
    box_format: BoxFormat,
    images: Images | Iterable[Id] | None,
    categories: Categories | Mapping[Id, str] | Iterable[Id] | None,
    *,
    name: str,
    place: Place,
) -> dict[str, Any]:
    """Check and build the columns that both tables have."""
    image_ids = as_ids(image_ids, name="image_ids")
    category_ids = as_ids(category_ids, name="category_ids")
    checks.one_of(box_format, BOX_FORMATS, name="box_format")
    given = np.zeros((len(image_ids), 4)) if boxes is None else boxes
    array = checks.float_array(given, name="boxes", columns=4)
    checks.same_length(len(array), of=f"{name} boxes", image_ids=image_ids, category_ids=category_ids)
    corners, sizes = checked_boxes(array, box_format, place, cause=DIVERGED if name == "detections" else "")
    if not isinstance(images, Images):
        images = Images.build(_each_once(image_ids) if images is None else images)
    categories = _as_categories(_each_once(category_ids) if categories is None else categories)
    return {
        "images": images,
        "categories": categories,
        "image": _vocabulary_rows(images, image_ids, name="image", place=place),
        "category": _vocabulary_rows(categories, category_ids, name="category", place=place),
        "boxes": corners,
        "sizes": sizes,
    }


def _each_once(ids: NDArray[Any]) -> NDArray[Any]:
    """Ids without repetitions: a vocabulary is made of Python objects, one for each it is given."""
    return ids if ids.dtype == object else np.unique(ids)


def _as_categories(categories: Categories | Mapping[Id, str] | Iterable[Id]) -> Categories:
    if isinstance(categories, Categories):
        return categories
    if isinstance(categories, Mapping):
        return Categories.build(list(categories), names=list(categories.values()))
    return Categories.build(categories)


def checked_boxes(
    boxes: FloatArray, box_format: BoxFormat, place: Place, *, cause: str = "", overwrite: bool = False
) -> tuple[FloatArray, FloatArray]:
    """Corners [N, 4] and sizes [N, 2] of boxes that keep the rules; ``cause`` of one that is not finite."""
    checks.finite(boxes, name="bbox", place=place, cause=cause)
    corners, sizes = corners_and_sizes(boxes, box_format, overwrite=overwrite)
    cause = "are these x,y,w,h?" if box_format == "xyxy" else "are these x1,y1,x2,y2?"
    checks.sizes_not_negative(sizes, place=place, cause=cause)
    return corners, sizes


def frame_columns(
    frame: pd.DataFrame, categories: Categories | Mapping[Id, str] | Iterable[Id] | None
) -> dict[str, Any]:
    """Read the arguments that both ``from_pandas`` need from a DataFrame."""
    names = list(frame.columns)
    label = "category_id" if "category_id" in frame else "class"
    corners, sizes = ["x1", "y1", "x2", "y2"], ["x", "y", "w", "h"]
    box = corners if set(corners) <= set(names) else sizes
    missing = [column for column in ["image_id", label, *box] if column not in frame]
    if missing:
        raise InputError(
            "a DataFrame of boxes",
            "have image_id, category_id or class, and x1,y1,x2,y2 or x,y,w,h",
            got=f"columns {names} without {missing}",
        )
    if categories is None and label == "category_id" and "class" in frame:
        categories = dict(
            zip(frame["category_id"].tolist(), frame["class"].astype(str).tolist(), strict=True)
        )
    labels = frame[label].to_numpy()
    if categories is not None and label == "class":
        categories = _as_categories(categories)
        rows = categories.rows_by_id_or_name(labels.tolist())
        labels = as_ids(
            [categories.ids[row] if row >= 0 else name for row, name in zip(rows, labels, strict=True)],
            name="class",
        )
    return {
        "image_ids": frame["image_id"].to_numpy(),
        "category_ids": labels,
        "boxes": frame[box].to_numpy(dtype=np.float64),
        "box_format": "xyxy" if box is corners else "xywh",
        "categories": categories,
    }
