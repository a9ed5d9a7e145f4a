"""Build tables: check the given columns against the schema, and derive the others.

Conventions
-----------
- A table has both corners and sizes, because neither reproduces the other exactly.
- The default area is width times height. Missing boxes are derived from the rotated boxes, else from the
  masks, else from the keypoints; the last two as in pycocotools. Boxes of detections with masks are computed
  lazily.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boxscore._utils import checks
from boxscore._utils.array_types import FloatArray
from boxscore._utils.checks import Place
from boxscore._utils.user_warnings import warn_user
from boxscore.data.boxes import BOX_FORMATS, BoxFormat, cause_of_negative, corners_and_sizes
from boxscore.data.lazy import LazyColumns, Reader
from boxscore.data.schema import Column, Schema, user_columns
from boxscore.data.scores import all_or_none
from boxscore.data.vocabulary import Categories, Id, Images, as_ids
from boxscore.errors import InputError

RowArray = NDArray[np.int32]
ImagesLike = Images | Iterable[Id]
CategoriesLike = Categories | Mapping[Id, str] | Iterable[Id]


def vocabulary_columns(
    image_ids: Sequence[Id] | NDArray[Any],
    category_ids: Sequence[Id] | NDArray[Any],
    images: ImagesLike | None,
    categories: CategoriesLike | None,
    *,
    count: int | None,
    of: str,
    place: Place,
) -> dict[str, Any]:
    """Return the vocabularies, by default built from the ids, and ``image`` and ``category`` of each row."""
    image_ids, category_ids = as_ids(image_ids, name="image_ids"), as_ids(category_ids, name="category_ids")
    count = len(image_ids) if count is None else count
    checks.same_length(count, of=of, image_ids=image_ids, category_ids=category_ids)
    images = images_of(_drop_repeated(image_ids) if images is None else images)
    categories = categories_of(_drop_repeated(category_ids) if categories is None else categories)
    rows = {}
    for name, vocabulary, ids in (("image", images, image_ids), ("category", categories, category_ids)):
        rows[name] = vocabulary.rows(ids)
        if len(ids) and rows[name].min() < 0:
            row = int(np.argmin(rows[name]))
            raise InputError(f"{name} id", "be known", got=repr(ids.tolist()[row]), place=place(row))
    return {"images": images, "categories": categories, **rows}


def _drop_repeated(ids: NDArray[Any]) -> NDArray[Any]:
    """Drop repeated integer ids, to avoid a Python object for each."""
    return ids if ids.dtype == object else np.unique(ids)


def images_of(images: ImagesLike) -> Images:
    """Convert to a vocabulary of images."""
    return images if isinstance(images, Images) else Images.build(images)


def categories_of(categories: CategoriesLike) -> Categories:
    """Convert to a vocabulary of classes."""
    if isinstance(categories, Categories):
        return categories
    if isinstance(categories, Mapping):
        return Categories.build(list(categories), names=list(categories.values()))
    return Categories.build(categories)


def built_columns(
    schema: Schema,
    rows: Mapping[str, Any],
    boxes: ArrayLike | None,
    *,
    box_format: BoxFormat,
    given: Mapping[str, Any],
    columns: Mapping[str, ArrayLike] | None = None,
    read: Reader | None = None,
    sizes: FloatArray | None = None,
    lowest_size: float = 0.0,
    reuse: bool = False,
    place: Place,
) -> dict[str, Any]:
    """Check and derive every column of a table; return the arguments of its class.

    With ``reuse``, the table takes over the arrays and overwrites the boxes. ``lowest_size`` is negative for
    formats whose reference tool accepts boxes with negative sides.
    """
    # Convert boxes to corners and sizes; neither reproduces the other exactly.
    checks.one_of(box_format, BOX_FORMATS, name="box_format")
    count, of = len(rows["image"]), f"{schema.noun} boxes"
    table = dict(rows)
    if boxes is not None:
        array = checks.float_array(boxes, name="boxes", columns=4)
        schema.column("boxes").check(array, place, cause=schema.cause)
        table["boxes"], table["sizes"] = corners_and_sizes(array, box_format, overwrite=reuse)
        # Check the minimum of all rows; the slower check finds the row.
        if count and table["sizes"].min() < lowest_size:
            cause = cause_of_negative(table["boxes"], table["sizes"], box_format)
            checks.sizes_not_negative(table["sizes"], place=place, cause=cause, lowest=lowest_size)
        # Sides from the file replace computed ones.
        if sizes is not None:
            schema.column("sizes").check(sizes, place)
            checks.sizes_not_negative(sizes, place=place, cause="")
            table["sizes"] = sizes
    # Add masks and other shapes. Derive missing boxes from them, but only if areas need them now.
    instances = _instances(schema, given, rows, reuse=reuse, place=place)
    checks.same_length(count, of=of, **instances)
    if boxes is None:
        table["boxes"], table["sizes"] = None, None
        if "masks" not in instances or "area" in [column.name for column in schema.needed]:
            table["boxes"], table["sizes"] = boxes_around(schema, instances)
    # A column given as None is known to be absent, and is not read lazily.
    names = tuple(column.name for column in schema.instances)
    absent = {name: None for name in names if name in given}
    table["instances"] = LazyColumns(names, {**absent, **instances}, read)
    # Fill the other columns with their defaults; areas depend on the shape.
    for column in schema.needed:
        if column.name not in table:
            value = given.get(column.name)
            if value is None and column.name == "area":
                table["area"] = _areas(schema, instances, table["sizes"])
            else:
                table[column.name] = _fill_column(column, value, count, reuse=reuse)
    # Check lengths before values, because value checks refer to rows.
    filled = [column for column in schema.needed if table[column.name] is not None]
    checks.same_length(count, of=of, **{column.name: table[column.name] for column in filled})
    for column in filled:
        if column.name not in ("boxes", "sizes"):
            column.check(table[column.name], place)
    table["columns"] = user_columns(columns, count, of=of)
    return table


def _fill_column(column: Column, value: Any, count: int, *, reuse: bool) -> NDArray[Any]:
    """Return a required column: the given values, or its default."""
    if value is None and column.default is not None:
        return np.full(count, column.default, dtype=column.dtype)
    if column.form == "ids":
        return np.arange(1, count + 1) if value is None else as_ids(value, name=column.name).copy()
    return column.made_of(value, reuse=reuse)


def _instances(
    schema: Schema, given: Mapping[str, Any], rows: Mapping[str, Any], *, reuse: bool, place: Place
) -> dict[str, Any]:
    """Return the given instance columns; count keypoints if their count is not given."""
    instances: dict[str, Any] = {}
    # An empty table has all optional columns.
    for column in schema.instances:
        values = given.get(column.name)
        if values is None and column.plain and not len(rows["image"]):
            values = ()
        if column.name == "keypoint_count" and values is None and "keypoints" in instances:
            values = (instances["keypoints"][:, :, 2] > 0).sum(axis=1)
        if values is None:
            continue
        # Masks check themselves against the image sizes [N, 2].
        if column.made is not None:
            sizes = rows["images"].sizes[rows["image"]]
            instances[column.name] = column.made(values, sizes, place)
            continue
        # Convert other columns, then check length and values.
        array = column.made_of(values, reuse=reuse)
        checks.same_length(len(rows["image"]), of=f"{schema.noun} boxes", **{column.name: array})
        if column.plain and np.asarray(values).dtype == object:  # may contain None
            scores = all_or_none(array, place)
            if scores is None:
                continue
        column.check(array, place)
        # Warn of values that are valid but suspicious.
        warning = "" if column.warning is None else column.warning(array)
        if warning:
            warn_user(f"{place(0)}: {warning}")
        instances[column.name] = array
    return instances


def boxes_around(schema: Schema, instances: Mapping[str, Any] | LazyColumns) -> tuple[FloatArray, FloatArray]:
    """Derive boxes and their sizes from rotated boxes, masks or keypoints."""
    for column in schema.instances:
        if column.around is not None and column.name in instances and instances[column.name] is not None:
            boxes = column.around(instances[column.name])
            return boxes, boxes[:, 2:] - boxes[:, :2]
    cause = "only corners, rotated boxes, masks or keypoints can stand for them"
    raise InputError("boxes", "be given", got="None", cause=cause)


def _areas(schema: Schema, instances: Mapping[str, Any], sizes: FloatArray) -> FloatArray:
    for column in schema.instances:
        if column.area is not None and column.name in instances:
            return column.area(instances[column.name])
    area: FloatArray = sizes[:, 0] * sizes[:, 1]
    return area
