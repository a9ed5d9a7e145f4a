"""Convert tables to pandas DataFrames and back, without loss.

Conventions
-----------
- There is one row per object or detection, with user columns. As in COCO files, masks are ``segmentation`` in
  its original form, with RLE counts as text, and keypoints are lists ``x1, y1, v1, ...``. A rotated box is a
  list of five numbers. Masks of several kinds are JSON text, since a column of Parquet has one type.
- ``w`` and ``h`` are columns in addition to the corners, because neither reproduces the other exactly. Sizes
  that do not match the corners are rejected, because one of the two was changed and the other was not.
- Images and classes have separate DataFrames. Values of the whole table are in ``frame.attrs``.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore._utils.checks import Place
from boxscore._utils.text import short_list
from boxscore.data.base import BaseTable
from boxscore.data.box_reading import are_fractions, reading_of
from boxscore.data.boxes import BOX_FORMATS, BoxFormat, check_sizes_fit
from boxscore.data.building import built_columns, categories_of, images_of, vocabulary_columns
from boxscore.data.column_names import (
    ColumnMap,
    absent_of,
    absent_score,
    are_number_and_name,
    column_parts,
    count_pairs,
    late_name,
    say_columns,
)
from boxscore.data.schema import CATEGORY_NAMES, IMAGE_NAMES, Column, Schema, check_one_number, in_frame
from boxscore.data.scores import all_or_none
from boxscore.data.vocabulary import Categories, Images, as_ids
from boxscore.errors import InputError, MissingDependencyError

if TYPE_CHECKING:
    import pandas as pd

ATTRIBUTES = ("boxes_given", "left_out", "answers", "units")
"""Values of the whole table that are stored in ``attrs`` of a DataFrame."""


def frame_of(table: BaseTable, names: Sequence[str] | None) -> pd.DataFrame:
    """Convert a table to a DataFrame; see :meth:`~boxscore.data.tables.BoxTable.to_pandas`."""
    import pandas as pd

    # User columns must not have a name that the table uses.
    schema = table.schema
    own = {name: column for name, column in table.columns.items() if names is None or name in names}
    for name, user_column in own.items():
        if name in schema.frame_names:
            raise InputError("a column", "have a name that a table does not use itself", got=repr(name))
        check_one_number(name, user_column)
    instances = {column.frame[0]: column for column in schema.instances if not column.plain}
    # Reject unknown names before expensive columns are built.
    parts = {**_plain_columns(table), **in_frame(own)}
    for name in names or ():
        if name not in parts and name not in instances:
            cause = checks.did_you_mean(name, [*parts, *instances, *table.columns])
            raise InputError("a column", "be in the table", got=repr(name), cause=cause)
    # Only read masks and other shapes from the file if they are requested.
    for name, column in instances.items():
        values = table.instances[column.name] if names is None or name in names else None
        if values is not None:
            parts[name] = _frame_values(column, values)
    frame = pd.DataFrame({name: parts[name] for name in names or parts if name in parts})
    frame.attrs.update({name: _as_dict(getattr(table, name)) for name in ATTRIBUTES if name in schema.values})
    return frame


def _plain_columns(table: BaseTable) -> dict[str, Any]:
    """Return the columns of a table except shapes, by their names in a DataFrame."""
    parts: dict[str, Any] = {
        "image_id": table.images.ids[table.image],
        "category_id": table.categories.ids[table.category],
        "class": table.categories.names[table.category],
    }
    for column in table.schema.plain:
        values = table.instances[column.name] if column.plain else getattr(table, column.name)
        if values is None:
            continue
        if column.form == "ids":
            parts = {column.frame[0]: values, **parts}
        elif column.form != "rows":
            sides = values.T if column.shape else [values]
            parts |= dict(zip(column.frame, sides, strict=True))
    return parts


def _as_dict(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else value


def _frame_values(column: Column, values: Any) -> Any:
    """Convert a column to values as in COCO files."""
    if column.form == "masks":
        masks = [_text_code(mask) for mask in values.given]
        kinds = {
            (type(mask), isinstance(mask, dict) and type(mask["counts"]))
            for mask in masks
            if mask is not None
        }
        if len(kinds) > 1:
            masks = [None if mask is None else json.dumps(mask) for mask in masks]
        return _objects(masks)
    if column.shape:
        return _objects([row.ravel().tolist() for row in values])
    return values


def _without_nan(values: NDArray[Any]) -> list[Any] | None:
    """Replace NaN by None in a column of masks or lists; None if all are missing."""
    given = [None if isinstance(value, float) else _in_lists(value) for value in values.tolist()]
    return None if all(value is None for value in given) else given


def _in_lists(value: Any) -> Any:
    """Return a mask or list as in COCO files, also from JSON text or the nested arrays of Arrow."""
    if isinstance(value, str):
        with contextlib.suppress(ValueError):
            return json.loads(value)
    if isinstance(value, np.ndarray) and value.dtype == object:
        return [_in_lists(part) for part in value.tolist()]
    if isinstance(value, dict):
        return {key: part.tolist() if isinstance(part, np.ndarray) else part for key, part in value.items()}
    return value


def _with_false(column: pd.Series[Any]) -> NDArray[Any]:
    """Return flags; a missing one is false, as in files."""
    missing = column.isna().to_numpy()
    if not missing.any():
        return column.to_numpy()
    values = column.to_numpy(dtype=object, copy=True)
    values[missing] = False
    return values


def _text_code(mask: Any) -> Any:
    """Convert the counts of an RLE to text, which JSON and Parquet support."""
    if isinstance(mask, dict) and isinstance(mask.get("counts"), bytes):
        return {"size": [int(side) for side in mask["size"]], "counts": mask["counts"].decode("ascii")}
    return mask


def _objects(values: Sequence[Any]) -> NDArray[Any]:
    objects = np.empty(len(values), dtype=object)
    objects[:] = list(values) if len(values) else []
    return objects


def columns_of(
    schema: Schema,
    table: Any,
    images: Any,
    categories: Any,
    box_format: BoxFormat | None,
    columns: Mapping[str, str] | ColumnMap | None = None,
) -> dict[str, Any]:
    """Convert a DataFrame to the arguments of the class of a table; see ``from_pandas``."""
    original = _to_pandas(table)
    # Rename the columns to standard names; raise if the mapped score column is missing.
    frame, box, form = _rename_columns(original, box_format, columns)
    names = list(frame.columns)
    if schema.name == "detections" and isinstance(columns, ColumnMap):
        absent = absent_score(columns, [str(name) for name in original.columns], "DataFrame")
        if absent is not None:
            raise absent
    # Vocabularies may be DataFrames too.
    if _is_table(images):
        images = images_of_frame(_to_pandas(images, "images"))
    if _is_table(categories):
        categories = categories_of_frame(_to_pandas(categories, "categories"))
    # Classes are given by id, by name, or both.
    frame = _with_class_names(frame, columns, categories, of_results=schema.name == "detections")
    names = list(frame.columns)
    label = "category_id" if "category_id" in frame else "class"
    corners = ["x1", "y1", "x2", "y2"]
    if label not in frame:
        rule = "have a column class, label or category_id"
        raise _missing_column("class", "a table of boxes", rule, original, columns)
    if categories is None and label == "category_id" and "class" in frame:
        categories = dict(
            zip(frame["category_id"].tolist(), frame["class"].astype(str).tolist(), strict=True)
        )
    # Replace names of known classes by ids; unknown names are rejected below.
    labels = frame[label].to_numpy()
    if categories is not None and label == "class":
        categories = categories_of(categories)
        rows = categories.rows_by_id_or_name(labels.tolist())
        labels = as_ids(
            [categories.ids[row] if row >= 0 else name for row, name in zip(rows, labels, strict=True)],
            name="class",
        )

    def place(row: int) -> str:
        return f"row {row} of DataFrame"

    # Take all columns of the schema; the others are user columns.
    boxes, form = _boxes(frame, box, form, place)
    given: dict[str, Any] = {}
    for column in (*schema.needed, *schema.instances):
        if len(column.frame) == 1 and column.frame[0] in frame:
            values = frame[column.frame[0]].to_numpy()
            if column.form == "flags":
                values = _with_false(frame[column.frame[0]])
            if column.plain:
                given[column.name] = all_or_none(column.made_of(values), place)
                continue
            given[column.name] = _without_nan(values) if column.form == "masks" or column.shape else values
    # Keep sides next to corners if they match.
    used = {*schema.frame_names, *box}
    table = built_columns(
        schema,
        vocabulary_columns(
            frame["image_id"].to_numpy(),
            labels,
            None if images is None else images_of(images),
            categories,
            count=len(frame),
            of="the DataFrame",
            place=place,
        ),
        boxes,
        box_format=form,
        given=given,
        columns={str(name): frame[name].to_numpy() for name in names if name not in used},
        sizes=_sizes(frame, boxes, place)
        if box == corners and form == "xyxy" and {"w", "h"} <= set(names)
        else None,
        place=place,
    )
    attributes = {
        name: frame.attrs[name] for name in ATTRIBUTES if name in schema.values and name in frame.attrs
    }
    return {**table, **attributes, "source": "DataFrame"}


def _with_class_names(
    frame: pd.DataFrame, columns: Mapping[str, str] | ColumnMap | None, categories: Any, *, of_results: bool
) -> pd.DataFrame:
    """Rename a class column of whole numbers and a ``name``; with known ``categories``, only names remain."""
    column_map = columns if columns is None or isinstance(columns, ColumnMap) else ColumnMap.of(columns)
    late = late_name([name for name in frame.columns if isinstance(name, str)], column_map)
    if "class" not in frame or "category_id" in frame or late is None or not len(frame):
        return frame
    # Compare distinct values, as the readers of files do.
    (number, numbers), (text, texts) = (_distinct(frame[name].tolist()) for name in ("class", late))
    if not are_number_and_name(
        count_pairs(numbers, number, texts, text),
        class_column="class",
        name_column=late,
        place="DataFrame",
        of_results=of_results,
        known=None if categories is None else categories_of(categories).given_names(),
    ):
        return frame
    # Every number must have one name.
    first = np.full(len(numbers), -1, dtype=np.int64)
    first[number[::-1]] = text[::-1]
    wrong = first[number] != text
    if wrong.any():
        row = int(np.argmax(wrong))
        both = f"{texts[first[number[row]]]!r} and {texts[text[row]]!r}"
        rule = f"have one name in the columns class and {late}"
        raise InputError(f"class {numbers[number[row]]!r}", rule, got=both, place=f"row {row} of DataFrame")
    if categories is not None:
        return frame.drop(columns="class").rename(columns={late: "class"})
    return frame.rename(columns={"class": "category_id", late: "class"})


def _distinct(values: Sequence[Any]) -> tuple[NDArray[np.int64], list[Any]]:
    """Return the position of each value among the distinct ones, and the distinct values."""
    known: dict[Any, int] = {}
    positions = [known.setdefault(value, len(known)) for value in values]
    return np.array(positions, dtype=np.int64), list(known)


def _missing_column(
    part: str, name: str, rule: str, frame: pd.DataFrame, columns: Mapping[str, str] | ColumnMap | None
) -> InputError:
    names = [str(name) for name in frame.columns]
    cause = absent_of(columns, names) if isinstance(columns, ColumnMap) else ""
    got = f"only {short_list(names)}"
    return InputError(name, rule, got=got, place="DataFrame", cause=cause or say_columns(f"{part}=NAME"))


def _to_pandas(table: Any, name: str = "a table of boxes") -> pd.DataFrame:
    """Convert any table with the Arrow interface to a pandas DataFrame."""
    if _is_frame(table):
        return table  # type: ignore[no-any-return]
    if not hasattr(table, "__arrow_c_stream__"):
        rule = "be a DataFrame of pandas or Polars, or a table of Arrow"
        cause = "pass what its collect() returns" if hasattr(type(table), "collect") else ""
        raise InputError(name, rule, got=f"a {type(table).__name__}", cause=cause)
    try:
        import pyarrow
    except ImportError:
        raise MissingDependencyError(
            "DataFrames other than pandas' need pyarrow: pip install 'boxscore[tables]'."
        ) from None
    frame: pd.DataFrame = pyarrow.table(table).to_pandas()
    return frame


def _rename_columns(
    frame: pd.DataFrame, box_format: BoxFormat | None, columns: Mapping[str, str] | ColumnMap | None
) -> tuple[pd.DataFrame, list[str], BoxFormat | None]:
    """Rename columns to standard names; return the DataFrame, the box columns and their form."""
    # Standard names, as from to_pandas, are used as they are.
    if box_format is not None:
        checks.one_of(box_format, BOX_FORMATS, name="box_format")
    column_map = columns if columns is None or isinstance(columns, ColumnMap) else ColumnMap.of(columns)
    names = set(frame.columns) if column_map is None else set()
    corners, sides = ["x1", "y1", "x2", "y2"], ["x", "y", "w", "h"]
    if "image_id" in names and set(corners) <= names:
        return frame, corners, box_format or "xyxy"
    if "image_id" in names and set(sides) <= names:
        return frame, sides, box_format or "xywh"
    # Otherwise find the roles of the columns by their names.
    parts = column_parts([str(name) for name in frame.columns], place="DataFrame", column_map=column_map)
    ours = {
        "image_id": parts.image,
        "category_id": parts.class_id,
        "class": parts.class_name,
        "score": parts.score,
        "annotation_id": parts.flags.get("ids"),
        **{name: parts.flags.get(name) for name in ("area", "crowd", "difficult", "ignore", "group")},
    }
    # Rename a column that has a standard name but not this role.
    renamed = {name: our for our, name in ours.items() if name is not None and name != our}
    taken = {our: f"{our} (not taken)" for our in renamed.values() if our in frame and our not in renamed}
    form = parts.box_format or ("xywh" if len(parts.box) == 4 else None)
    return frame.rename(columns=taken | renamed), list(parts.box), box_format or form


def _boxes(
    frame: pd.DataFrame, box: list[str], form: BoxFormat | None, place: Place
) -> tuple[NDArray[np.float64], BoxFormat]:
    """Return the boxes, [N, 4], and their form."""
    if len(box) == 4:
        boxes = _numbers(frame, box)
    else:
        rows = [list(row) for row in frame[box[0]].tolist()]
        boxes = checks.float_array(rows, name=box[0], columns=4)
    if form is None:
        unknown = np.full((len(boxes), 2), np.nan)
        form = reading_of(
            boxes,
            unknown,
            names=tuple(box),
            usual=None,
            option="box_format=",
            source="DataFrame",
            place=place,
            fractions=are_fractions(boxes, place),
        )
    return boxes, form


def _sizes(frame: pd.DataFrame, corners: NDArray[np.float64], place: Any) -> NDArray[np.float64]:
    """Return widths and heights; raise if they do not match the corners up to rounding."""
    sizes = _numbers(frame, ["w", "h"])
    cause = "were the corners changed? then drop the columns w and h"
    check_sizes_fit(corners, sizes, name=("w", "h"), place=place, cause=cause)
    return sizes


def _numbers(frame: pd.DataFrame, names: Sequence[str]) -> NDArray[np.float64]:
    """Return numeric columns as float64 [N, len(names)]."""
    columns = [checks.float_array(frame[name].to_numpy(), name=f"column {name}") for name in names]
    return np.column_stack(columns)


def _is_frame(value: Any) -> bool:
    return hasattr(type(value), "columns") and hasattr(type(value), "iloc")


def _is_table(value: Any) -> bool:
    """Whether a value has columns, as a DataFrame of any library; a lazy one is refused later."""
    kind = type(value)
    return hasattr(kind, "columns") and any(
        hasattr(kind, name) for name in ("iloc", "__arrow_c_stream__", "collect")
    )


def images_of_frame(frame: pd.DataFrame) -> Images:
    """Convert a DataFrame to a vocabulary of images; only ``image_id`` is required."""
    _require_column(frame, "image_id", "images")
    sizes = np.full((len(frame), 2), np.nan)
    for side, name in enumerate(("width", "height")):
        if name in frame:
            sizes[:, side] = _numbers(frame, [name])[:, 0]
    names = frame["file_name"].tolist() if "file_name" in frame else [None] * len(frame)
    return Images.build(
        frame["image_id"].to_numpy(),
        file_names=[name if isinstance(name, str) else None for name in names],
        sizes=sizes,
        columns={name: frame[name].to_numpy() for name in frame.columns if name not in IMAGE_NAMES},
    )


def categories_of_frame(frame: pd.DataFrame) -> Categories:
    """Convert a DataFrame to a vocabulary of classes; only ``category_id`` is required."""
    _require_column(frame, "category_id", "categories")
    names = frame["class"].tolist() if "class" in frame else None
    columns = {name: frame[name].to_numpy() for name in frame.columns if name not in CATEGORY_NAMES}
    return Categories.build(frame["category_id"].to_numpy(), names=names, columns=columns)


def _require_column(frame: pd.DataFrame, name: str, what: str) -> None:
    if name not in frame:
        raise InputError(
            f"a DataFrame of {what}", f"have a column {name}", got=f"columns {list(frame.columns)}"
        )
