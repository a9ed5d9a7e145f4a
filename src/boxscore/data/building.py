"""Build tables: check what is given against the schema, and derive what is not given.

Conventions
-----------
- A table has corners and sizes both, because neither gives back the other to the last bit.
- An area is width times height where none is given. Where no boxes are given they are those around the
  rotated boxes, else around the masks, else around the keypoints; the last two as in pycocotools. Boxes
  around the masks of detections are left out: the table computes them when they are first needed.
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
    """Return the vocabularies, made of the ids where not given, and each row's ``image`` and ``category``."""
    image_ids, category_ids = as_ids(image_ids, name="image_ids"), as_ids(category_ids, name="category_ids")
    count = len(image_ids) if count is None else count
    checks.same_length(count, of=of, image_ids=image_ids, category_ids=category_ids)
    images = images_of(_each_once(image_ids) if images is None else images)
    categories = categories_of(_each_once(category_ids) if categories is None else categories)
    rows = {}
    for name, vocabulary, ids in (("image", images, image_ids), ("category", categories, category_ids)):
        rows[name] = vocabulary.rows(ids)
        if len(ids) and rows[name].min() < 0:
            row = int(np.argmin(rows[name]))
            raise InputError(f"{name} id", "be known", got=repr(ids.tolist()[row]), place=place(row))
    return {"images": images, "categories": categories, **rows}


def _each_once(ids: NDArray[Any]) -> NDArray[Any]:
    """Ids without repetitions: a vocabulary makes a Python object of each that it is given."""
    return ids if ids.dtype == object else np.unique(ids)


def images_of(images: ImagesLike) -> Images:
    """Return images as a vocabulary."""
    return images if isinstance(images, Images) else Images.build(images)


def categories_of(categories: CategoriesLike) -> Categories:
    """Return classes as a vocabulary."""
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

    With ``reuse`` no other code uses the arrays: the table takes them, and overwrites the boxes.
    ``lowest_size`` is below 0 for a format whose reference tool reads boxes with negative sides.
    """
    # Boxes become corners and sizes: neither gives back the other to the last bit.
    checks.one_of(box_format, BOX_FORMATS, name="box_format")
    count, of = len(rows["image"]), f"{schema.noun} boxes"
    table = dict(rows)
    if boxes is not None:
        array = checks.float_array(boxes, name="boxes", columns=4)
        schema.column("boxes").check(array, place, cause=schema.cause)
        table["boxes"], table["sizes"] = corners_and_sizes(array, box_format, overwrite=reuse)
        # A minimum decides for all rows; the slower check names the row.
        if count and table["sizes"].min() < lowest_size:
            cause = cause_of_negative(table["boxes"], table["sizes"], box_format)
            checks.sizes_not_negative(table["sizes"], place=place, cause=cause, lowest=lowest_size)
        # Sides that a file states replace the computed ones.
        if sizes is not None:
            schema.column("sizes").check(sizes, place)
            checks.sizes_not_negative(sizes, place=place, cause="")
            table["sizes"] = sizes
    # Masks and other shapes; without boxes, those around the shapes, made now only where areas need them.
    instances = _instances(schema, given, rows, place=place)
    checks.same_length(count, of=of, **instances)
    if boxes is None:
        table["boxes"], table["sizes"] = None, None
        if "masks" not in instances or "area" in [column.name for column in schema.needed]:
            table["boxes"], table["sizes"] = boxes_around(schema, instances)
    # A column that is given as None is known to be absent, and is not read later.
    names = tuple(column.name for column in schema.instances)
    absent = {name: None for name in names if name in given}
    table["instances"] = LazyColumns(names, {**absent, **instances}, read)
    # The other columns, with their defaults, and areas by shape.
    for column in schema.needed:
        if column.name not in table:
            value = given.get(column.name)
            if value is None and column.name == "area":
                table["area"] = _areas(schema, instances, table["sizes"])
            else:
                table[column.name] = _filled(column, value, count, reuse=reuse)
    # Lengths before values: a check names a row, and rows must belong together for that.
    filled = [column for column in schema.needed if table[column.name] is not None]
    checks.same_length(count, of=of, **{column.name: table[column.name] for column in filled})
    for column in filled:
        if column.name not in ("boxes", "sizes"):
            column.check(table[column.name], place)
    table["columns"] = user_columns(columns, count, of=of)
    return table


def _filled(column: Column, value: Any, count: int, *, reuse: bool) -> NDArray[Any]:
    """Return a needed column as it is given, or by its default."""
    if value is None and column.default is not None:
        return np.full(count, column.default, dtype=column.dtype)
    if column.form == "ids":
        return np.arange(1, count + 1) if value is None else as_ids(value, name=column.name).copy()
    if column.form == "numbers":
        array = checks.float_array(value, name=column.name)
        return array if reuse else np.array(array)
    return column.made_of(value)


def _instances(
    schema: Schema, given: Mapping[str, Any], rows: Mapping[str, Any], *, place: Place
) -> dict[str, Any]:
    """Instance columns, as far as they are given; keypoints are counted where their count is not given."""
    instances: dict[str, Any] = {}
    # A column counts as given if there are no rows: an empty table then lacks no column.
    for column in schema.instances:
        values = given.get(column.name)
        if values is None and column.plain and not len(rows["image"]):
            values = ()  # nothing says that they are missing
        if column.name == "keypoint_count" and values is None and "keypoints" in instances:
            values = (instances["keypoints"][:, :, 2] > 0).sum(axis=1)
        if values is None:
            continue
        # Masks check themselves, against the sizes of their images [N, 2].
        if column.made is not None:
            sizes = rows["images"].sizes[rows["image"]]
            instances[column.name] = column.made(values, sizes, place)
            continue
        # Other columns are converted, then checked for length and for values.
        array = column.made_of(values)
        checks.same_length(len(rows["image"]), of=f"{schema.noun} boxes", **{column.name: array})
        if column.plain and np.asarray(values).dtype == object:  # with None among them
            scores = all_or_none(array, place)
            if scores is None:
                continue
        column.check(array, place)
        # A column can also look valid and still deserve a warning.
        warning = "" if column.warning is None else column.warning(array)
        if warning:
            warn_user(f"{schema.name}: {warning}")
        instances[column.name] = array
    return instances


def boxes_around(schema: Schema, instances: Mapping[str, Any] | LazyColumns) -> tuple[FloatArray, FloatArray]:
    """Return the boxes around the rotated boxes, masks or keypoints of a table, and their sizes."""
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
