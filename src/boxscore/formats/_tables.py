"""Convert tables of boxes from CSV, JSON lines or Parquet files to rows.

Formats read files as columns (:class:`Table`). This module and :mod:`boxscore.data.column_names` interpret
the columns for all of them.

Conventions
-----------
- A row without a box (four empty numbers) is an image without objects.
- Image ids are the values of the image column: numbers if all are integers without leading zeros, else text.
  Text also refers to the image with that file name.
- Coordinates are fractions of the image size if all are in 0..1 and some are not integers; otherwise they are
  pixels.
"""

from __future__ import annotations

import abc
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore._utils.array_types import FloatArray, IntArray
from boxscore._utils.checks import Place
from boxscore._utils.lazy import loaded
from boxscore._utils.text import short_list
from boxscore._utils.user_warnings import warn_user
from boxscore.data.box_reading import LARGEST_FRACTION, Readings, are_fractions, reading_of, report_reading
from boxscore.data.boxes import BoxFormat, check_sizes_fit
from boxscore.data.column_names import (
    ColumnParts,
    absent_of,
    absent_score,
    are_number_and_name,
    column_parts,
    count_pairs,
    say_columns,
)
from boxscore.data.lookup import image_rows_by_name
from boxscore.data.schema import GROUND_TRUTH, SHAPES_OF_TABLES
from boxscore.data.scores import all_or_none
from boxscore.data.tables import BoxTable, Detections, GroundTruth
from boxscore.data.vocabulary import Categories, Id, as_ids, without_zeros
from boxscore.errors import FileFormatError, InputError
from boxscore.formats._format import ReadOptions
from boxscore.formats._rows import RowFormat, Rows, detections_of
from boxscore.formats.image_sizes import known_sizes

HELD_BY_TABLES = frozenset(
    {
        "areas",
        "crowd",
        "difficult",
        "ignore",
        "group",
        "sizes",
        "file names",
        "columns",
        "ids",
        "repeated ids",
    }
)
"""Content of ground truth that tables can store; see ``Format.holds``."""


OBJECTS = ("objects", "annotations", "detections", "predictions", "instances")
"""Lowercase names of columns, or keys of records, that hold lists of boxes."""

MOST_COLUMNS = 1_000
_SIZE_RULE = "be 1 pixel or more"
ROUNDED = 1.01
"""Maximum difference between a given side and the corners, in pixels: due to rounding or inclusive ends."""

_TRUE, _FALSE = {"1", "true", "yes", "1.0"}, {"", "0", "false", "no", "-1", "0.0", "-1.0", "none"}
"""Texts of flags; Open Images uses -1 for unknown."""


class Distinct(NamedTuple):
    """The distinct values of a column, and the index of each row's value; -1 if empty."""

    values: list[Any]
    positions: IntArray


class Table(abc.ABC):
    """The columns of a file.

    Attributes
    ----------
    source : str
        The path of the file, for messages.
    names : sequence of str
        Column names.
    count : int
        Number of rows.
    class_list : sequence of str, or None
        Class names in the order of the class numbers from 0, if the file lists them.
    class_names : sequence of (id, name), or None
        All classes, if the file lists them.
    boxes_around : bool
        Whether the boxes are derived from the shapes.
    absent : mapping of str to str
        For each column that one of several files does not have, the first such file.
    """

    source: str
    names: Sequence[str]
    count: int
    class_list: Sequence[str] | None = None
    class_names: Sequence[tuple[Id, str]] | None = None
    boxes_around: bool = False
    absent: Mapping[str, str] = MappingProxyType({})

    @abc.abstractmethod
    def distinct(self, name: str) -> Distinct:
        """Return the distinct values of a column, as ids: text or integers."""

    @abc.abstractmethod
    def numbers(self, name: str) -> FloatArray:
        """Return a column of numbers, NaN for empty cells; raise for any other value."""

    @abc.abstractmethod
    def fours(self, name: str) -> FloatArray:
        """Return a column of four numbers per cell, [N, 4]; NaN for empty cells."""

    @abc.abstractmethod
    def user_column(self, name: str) -> NDArray[Any] | None:
        """Return a user column; None if slicing by it is not supported."""

    @abc.abstractmethod
    def place(self, row: int) -> str:
        """Return the place of a row, for messages."""

    def ids_of_cells(self, name: str, cells: Sequence[Any], positions: IntArray) -> Distinct:
        """Convert cells to ids, and drop those without rows: 7.0 becomes 7; null, NaN and "" are empty."""
        known: dict[Any, int] = {}
        position_of = np.full(len(cells) + 1, -1, dtype=np.int64)
        used = np.zeros(len(cells) + 1, dtype=bool)
        used[positions] = True
        for number, (cell, is_used) in enumerate(zip(cells, used.tolist(), strict=False)):
            # A dictionary column may have values that no longer occur.
            if not is_used or cell is None or cell == "":
                continue
            if type(cell) is float:
                if cell != cell:
                    continue
                cell = int(cell) if cell.is_integer() else cell
            if type(cell) not in (int, str, bool):
                got, place = repr(cell)[:60], self.place(int(np.argmax(positions == number)))
                raise FileFormatError(name, "be a text or a whole number", got=got, place=place)
            position_of[number] = known.setdefault(cell, len(known))
        return Distinct(list(known), position_of[positions])


class TableFormat(RowFormat):
    """A format whose files are tables."""

    takes = frozenset({"classes", "columns", "image_sizes"})
    boxes = "xyxy"

    @abc.abstractmethod
    def table(self, path: Path, options: ReadOptions) -> Table:
        """Read the columns of a file."""

    def rows(self, path: Path, options: ReadOptions, *, of_results: bool) -> Rows:
        """Read a file, with the masks of ``segments`` if given."""
        rows = rows_of(self.table(path, options), options, None, of_results=of_results)
        segments = options.further.get("segments")
        if segments is None or of_results:
            return rows
        joined: Rows = loaded(SHAPES_OF_TABLES["segments"])(rows, self.table(segments, options), options)
        return joined

    def lists_images(self, ground_truth: GroundTruth) -> bool:
        """Return False: a table does not list images without rows."""
        return False

    def check_written(self, table: BoxTable) -> None:
        """Reject values that the reader rejects, and pixels that it would read as fractions."""
        # Values that the reader rejects.
        checks.finite(
            table.boxes, name="the corners of a box", place=lambda row: f"row {row} of {table.source}"
        )
        wrong = _are_wrong_sizes(table.images.sizes)
        if wrong.any():
            row = int(np.argmax(wrong))
            got = f"{_size_text(table.images.sizes[row])}, image {table.images.ids[row]!r}"
            raise InputError("an image size", _SIZE_RULE, got=got, place=table.source)
        # Tiny boxes in pixels look like fractions, and a table does not store the unit.
        if table.units == "pixels" and are_fractions(table.boxes, lambda row: f"row {row} of {table.source}"):
            raise InputError(
                "the boxes",
                "have a coordinate of 2 pixels or more, to be written as a table",
                got="only sizes below a pixel, which would be read as fractions of the image",
                place=table.source,
                cause="write COCO JSON or .npz",
            )

    def load_detections(
        self, path: Path, options: ReadOptions, ground_truth: GroundTruth | None
    ) -> Detections:
        """Read detections; use the image sizes of the ground truth to infer the form of boxes."""
        rows = rows_of(self.table(path, options), options, ground_truth, of_results=True)
        return detections_of(rows, options, ground_truth)


def refuse_without_scores(absent: Mapping[str, str], parts: ColumnParts, source: str) -> None:
    """Reject several files of detections if one does not have the score column."""
    if parts.score is not None and parts.score in absent:
        got = f"no column {parts.score!r} in {absent[parts.score]}"
        raise FileFormatError("part files", "have the same columns", got=got, place=source)


def rows_of(
    table: Table,
    options: ReadOptions,
    ground_truth: GroundTruth | None,
    *,
    of_results: bool,
    fractions: bool | None = None,
) -> Rows:
    """Convert a table to rows; ``fractions`` says whether coordinates are fractions, None infers it."""
    # Identify columns by name, and reject results without scores.
    parts = column_parts(table.names, place=table.source, column_map=options.columns)
    categories = None if ground_truth is None else ground_truth.categories
    parts = with_class_names([table], parts, options, categories, of_results=of_results, place=table.source)
    if of_results:
        absent = absent_score(options.columns, table.names, table.source)
        if absent is not None:
            raise absent
        refuse_without_scores(table.absent, parts, table.source)
    # A row with neither box nor score is an image without objects: keep the image, drop the row.
    images, image = images_of(table, parts)
    boxes = boxes_of(table, parts) if parts.box else None
    mask_texts = None if parts.mask is None else table.distinct(parts.mask)
    if boxes is not None:
        empty = np.isnan(boxes).all(axis=1)
    else:
        empty = np.asarray(mask_texts.positions < 0 if mask_texts is not None else [], dtype=bool)
    # A row with a score is a detection; if its box is missing, this is an error below.
    scores = table.numbers(parts.score) if of_results and parts.score is not None else None
    if scores is not None:
        empty &= np.isnan(scores)
    if empty.any():
        with_box = np.flatnonzero(~empty)
    else:
        with_box = np.arange(table.count)

    def place(row: int) -> str:
        return table.place(int(with_box[row]))

    # Avoid copies in the usual case that all rows have a box.
    all_rows = len(with_box) == table.count
    if boxes is not None:
        boxes = boxes if all_rows else boxes[with_box]
        _refuse_halves(boxes, parts, place)
    # Decode masks once per distinct text; they need the image size.
    sizes = _image_sizes(table, parts, len(images), image)
    image_of_box = image if all_rows else image[with_box]
    masks = None
    if mask_texts is not None:
        texts = [str(text) for text in mask_texts.values]
        known = np.full((len(images), 2), np.nan) if sizes is None else sizes
        masks = loaded(SHAPES_OF_TABLES["masks"])(
            texts, mask_texts.positions[with_box], known[image_of_box], name=str(parts.mask), place=place
        )
        if boxes is None and ground_truth is not None and ground_truth.units == "fractions":
            boxes = loaded(SHAPES_OF_TABLES["boxes"])(masks, place=place)
    # Scores are required in all rows or in none.
    if scores is not None:
        scores = all_or_none(scores if all_rows else scores[with_box], place)
    # Fractions or pixels: given by the user or the caller, or inferred from the numbers.
    given_fractions = fractions
    fractions = False
    if boxes is not None:
        if options.written is not None and parts.box:
            boxes = options.written.x_first(boxes)
            if options.box_format != parts.box_format:
                parts = parts._replace(sides=None)  # sides in another form
        if options.written is not None and options.written.fractions:
            fractions = True
        elif given_fractions is None:
            fractions = not parts.box or are_fractions(boxes, place)
            if fractions and parts.box and not parts.open_images:
                report_fractions(table.source)
        else:
            fractions = not parts.box or given_fractions
    # Infer the form of the boxes if necessary; look up image sizes only in that case.
    form: BoxFormat = "xyxy"
    classless = absent_class(table, parts, options, categories)
    if boxes is not None:
        try:
            form = _box_format(
                parts,
                options,
                boxes,
                lambda: _known_sizes(images, sizes, options, ground_truth)[image_of_box],
                table,
                place,
                side="dt" if of_results else "gt",
                fractions=fractions,
            )
        except InputError as error:
            raise error.and_also(classless) from None
    # Classes, then all other columns.
    if classless is not None:
        raise classless
    labels, label, names = classes_of(table, parts, options, with_box, place, categories)
    given, columns = _other_columns(
        table, parts, with_box, boxes, form, fractions, place, of_results=of_results
    )
    if masks is not None:
        given["masks"] = masks
    # Shapes that take several columns, such as keypoints; derive boxes from them if needed.
    shapes: dict[str, Any] = {}
    if parts.shapes:
        shapes = loaded(SHAPES_OF_TABLES["read"])(
            parts.shapes, lambda name: table.numbers(name)[with_box], of_results=of_results
        )
    if table.boxes_around and shapes:
        boxes = None
        given.pop("sizes", None)
    return Rows(
        source=table.source,
        images=images,
        image=image_of_box,
        labels=labels,
        label=label,
        boxes=boxes,
        box_format=form,
        form_applied=True,
        place=place,
        fractions=fractions,
        scores=scores,
        classes=table.class_list,
        label_names=names,
        numbers=_numbers(table, parts),
        file_names=_file_names(table, parts, images, image),
        sizes=sizes,
        keypoints=shapes.pop("keypoints", None),
        given=given | shapes,
        columns=columns,
    )


def with_class_names(
    tables: Iterable[Table],
    parts: ColumnParts,
    options: ReadOptions,
    categories: Categories | None,
    *,
    of_results: bool,
    place: str,
) -> ColumnParts:
    """Return the columns; a class column of whole numbers and a ``name`` are number and name of a class.

    ``tables`` are the parts of a file, and ``categories`` the classes of the ground truth, if known.
    """
    if parts.late_name is None or parts.class_name is None or options.classes is not None:
        return parts
    pairs: Counter[tuple[Any, Any]] = Counter()
    for table in tables:
        pairs.update(count_pairs(*table.distinct(parts.class_name), *table.distinct(parts.late_name)))
    are_both = are_number_and_name(
        pairs,
        class_column=parts.class_name,
        name_column=parts.late_name,
        place=place,
        of_results=of_results,
        known=None if categories is None else categories.given_names(),
    )
    return parts.with_number_and_name() if are_both else parts


def images_of(table: Table, parts: ColumnParts) -> Distinct:
    """Return the distinct images of a table, and the image of each row."""
    images = table.distinct(parts.image)
    if len(images.positions) and images.positions.min() < 0:
        row = int(np.argmin(images.positions))
        raise FileFormatError(parts.image, "name an image", got="nothing", place=table.place(row))
    return images


def _file_names(
    table: Table, parts: ColumnParts, images: Sequence[Id], image: IntArray
) -> list[str | None] | None:
    """Return the file name of each image, from the column of file names or from ids that are text."""
    if parts.file_name is None:
        if not any(isinstance(name, str) and re.search(r"\.[A-Za-z]{3,4}$", name) for name in images[:100]):
            return None
        return [name if isinstance(name, str) else None for name in images]
    values, positions = table.distinct(parts.file_name)
    names: list[str | None] = [None] * len(images)
    first = np.full(len(images), -1)
    first[image[::-1]] = positions[::-1]  # the last assignment counts: backwards, that of the first row
    for number, at in enumerate(first.tolist()):
        if at >= 0:
            names[number] = str(values[at])
    return names


def boxes_of(table: Table, parts: ColumnParts) -> FloatArray:
    """Return the four numbers of every box as they are in the table, [N, 4]."""
    if len(parts.box) == 1:
        return table.fours(parts.box[0])
    return np.column_stack([table.numbers(name) for name in parts.box])


def _refuse_halves(boxes: FloatArray, parts: ColumnParts, place: Any) -> None:
    """Reject rows in which some numbers of the box are missing."""
    wrong = np.isnan(boxes).any(axis=1)
    if wrong.any():
        row = int(np.argmax(wrong))
        side = int(np.argmax(np.isnan(boxes[row])))
        name = parts.box[side] if len(parts.box) == 4 else parts.box[0]
        raise FileFormatError(
            name,
            "be a number where a row has a box",
            got="nothing",
            place=place(row),
            cause="four empty numbers are an image without objects; was the file cut off?",
        )


def _image_sizes(table: Table, parts: ColumnParts, count: int, image: IntArray) -> FloatArray | None:
    """Return width and height of each image; None without such columns."""
    if parts.image_size is None:
        return None
    # The first row of an image defines its size; the others must agree.
    given = without_zeros(np.column_stack([table.numbers(name) for name in parts.image_size]))
    sizes = np.full((count, 2), np.nan)
    sizes[image[::-1]] = given[::-1]  # the last assignment counts: backwards, that of the first row
    different = (sizes[image] != given) & ~np.isnan(given)
    if different.any():
        # Columns that match the boxes in every row are their sides, not image sizes.
        if may_be_sides(parts) and are_sides(table, parts, given):
            return None
        row = int(np.argmax(different.any(axis=1)))
        raise FileFormatError(
            "an image",
            f"have one size in the columns {' and '.join(parts.image_size)}",
            got=f"{_size_text(given[row])} and {_size_text(sizes[image[row]])}",
            place=table.place(row),
            cause="are these the sizes of boxes? then rename the columns w and h",
        )
    # Sizes must be positive and plausible.
    wrong = _are_wrong_sizes(sizes)
    if wrong.any():
        row = int(np.argmax(wrong[image]))
        got = _size_text(given[row])
        raise FileFormatError("an image size", _SIZE_RULE, got=got, place=table.place(row))
    return sizes


def _are_wrong_sizes(sizes: FloatArray) -> NDArray[np.bool_]:
    """Whether each image size [N, 2] is invalid, [N]; unknown sizes are valid."""
    wrong: NDArray[np.bool_] = np.any((sizes <= 0) | (sizes > 1e9), axis=1)
    return wrong


def may_be_sides(parts: ColumnParts) -> bool:
    """Whether the columns taken for the image size may be the sides of the boxes instead."""
    named = parts.image_size is not None and parts.image_size[0].lower() in ("width", "w")
    return named and parts.box_format == "xyxy" and len(parts.box) == 4


def are_sides(table: Table, parts: ColumnParts, given: FloatArray) -> bool:
    """Whether width and height columns match the boxes in every row."""
    boxes = boxes_of(table, parts)
    with np.errstate(all="ignore"):
        off = np.abs(boxes[:, 2:] - boxes[:, :2] - given)
    return bool((np.isnan(off) | (off <= ROUNDED)).all())


def _size_text(size: FloatArray) -> str:
    return f"{size[0]:g} x {size[1]:g}"


def _known_sizes(
    images: Sequence[Id], sizes: FloatArray | None, options: ReadOptions, ground_truth: GroundTruth | None
) -> FloatArray:
    """Return width and height of every image from all sources, [I, 2]; NaN if unknown."""
    known = known_sizes(options.image_sizes, images)
    if sizes is not None:
        known = np.where(np.isnan(known), sizes, known)
    if ground_truth is not None and len(images):
        rows = image_rows_by_name(as_ids(images, name="image ids"), ground_truth.images)
        missing = np.isnan(known).any(axis=1) & (rows >= 0)
        known[missing] = ground_truth.images.sizes[rows[missing]]
    return known


def _box_format(
    parts: ColumnParts,
    options: ReadOptions,
    boxes: FloatArray,
    sizes: Callable[[], FloatArray],
    table: Table,
    place: Place,
    *,
    side: str,
    fractions: bool,
) -> BoxFormat:
    """Return the form of boxes: from the user, from the column names, or inferred from the boxes."""
    if options.written is not None and parts.box:
        return options.written.form
    if parts.box_format is not None:
        return parts.box_format
    return reading_of(
        boxes,
        sizes(),
        names=parts.box,
        usual=usual_form(table),
        option=f"--{side}-box-format",
        source=table.source,
        place=place,
        fractions=fractions,
    )


def report_fractions(source: str) -> None:
    """Tell the user that coordinates are read as fractions."""
    reason = f"none is beyond {LARGEST_FRACTION:g}, and some are not whole numbers"
    report_reading(source, "coordinates are read as fractions of the image size", reason)


def add_to_readings(
    readings: Readings,
    table: Table,
    options: ReadOptions,
    ground_truth: GroundTruth | None,
    *,
    fractions: bool,
) -> None:
    """Add the boxes of a table to the evidence for their form."""
    parts = column_parts(table.names, place=table.source, column_map=options.columns)
    images, image = images_of(table, parts)
    boxes = boxes_of(table, parts)
    rows = np.flatnonzero(~np.isnan(boxes).any(axis=1))
    sizes = _known_sizes(images, _image_sizes(table, parts, len(images), image), options, ground_truth)
    extent = np.ones((len(rows), 2)) if fractions else sizes[image[rows]]
    readings.add(boxes[rows], extent, lambda row: table.place(int(rows[row])))


def usual_form(table: Table) -> BoxFormat | None:
    """Return the COCO form if other columns have COCO names, else None."""
    return "xywh" if {"image_id", "category_id"} <= set(table.names) else None


def _only_class(options: ReadOptions, categories: Categories | None) -> str | None:
    """Return the only class of a class list, else of the ground truth; None if there are several."""
    if options.classes is not None:
        return options.classes[0] if len(options.classes) == 1 else None
    return None if categories is None or len(categories) != 1 else str(categories.names[0])


def absent_class(
    table: Table, parts: ColumnParts, options: ReadOptions, categories: Categories | None
) -> FileFormatError | None:
    """Return the error for a table without a class column; None if it has one, or needs none."""
    column = parts.class_name if parts.class_id is None else parts.class_id
    if column is not None or _only_class(options, categories) is not None:
        return None
    return FileFormatError(
        "a table of boxes",
        "have a column class, label or category_id",
        got=f"only {short_list(table.names)}",
        place=table.source,
        cause=absent_of(options.columns, table.names)
        or f"{say_columns('class=NAME')}; or, where there is only one class, name it in a class list "
        "(--gt-classes, --dt-classes)",
    )


def classes_of(
    table: Table,
    parts: ColumnParts,
    options: ReadOptions,
    rows: NDArray[np.intp],
    place: Any,
    categories: Categories | None = None,
) -> tuple[list[Id], IntArray, list[str] | None]:
    """Return the classes, the class of each row, and the names of the classes if they are ids.

    ``categories`` are the classes of the ground truth; if it has only one, detections need no class column.
    """
    # Prefer ids to names; with a single class, the column is optional.
    column = parts.class_name if parts.class_id is None else parts.class_id
    if column is None:
        only = _only_class(options, categories)
        if only is None:
            raise cast(FileFormatError, absent_class(table, parts, options, categories))
        if options.classes is None:
            warn_user(
                f"{table.source}: there is no column of the class, so all boxes are of the only class of the "
                f"ground truth, {only!r}."
            )
        return [only], np.zeros(len(rows), dtype=np.int64), None
    # Compare texts once per distinct value; rows hold indices.
    values, positions = table.distinct(column)
    positions = positions[rows]
    if len(positions) and positions.min() < 0:
        row = int(np.argmin(positions))
        raise FileFormatError(column, "name a class where a row has a box", got="nothing", place=place(row))
    names: list[str] | None = None
    if parts.class_id is not None and parts.class_name is not None and options.classes is None:
        names = _names_of(table, parts, values, positions, rows, place)
    # Dropped rows may leave values unused: renumber the used ones in order.
    used = np.bincount(positions, minlength=len(values)) > 0 if len(values) else np.zeros(0, dtype=bool)
    number = np.cumsum(used) - 1
    labels: list[Id] = [value for value, is_used in zip(values, used.tolist(), strict=True) if is_used]
    if names is not None:
        names = [name for name, is_used in zip(names, used.tolist(), strict=True) if is_used]
    # If a file lists its classes, keep those without rows too.
    if table.class_names is not None and options.classes is None:
        labels, names = _add_all_classes(labels, names, table.class_names)
    return labels, number[positions] if len(positions) else positions, names


def _numbers(table: Table, parts: ColumnParts) -> str:
    """Return the meaning of integers in the class column; see ``Rows.numbers``."""
    if table.class_list is not None:
        return "positions"
    if parts.class_id is not None or parts.class_name is None:
        return "ids"
    return "names" if "name" in parts.class_name.lower() else "words"


def _add_all_classes(
    labels: list[Id], names: list[str] | None, known: Sequence[tuple[Id, str]]
) -> tuple[list[Id], list[str]]:
    """Add classes without rows, and the names listed in the file."""
    by_id = dict(known)
    of_rows = dict(zip(labels, map(str, labels) if names is None else names, strict=True))
    every = [*labels, *(identifier for identifier in by_id if identifier not in of_rows)]
    return every, [by_id.get(identifier, of_rows.get(identifier, str(identifier))) for identifier in every]


def _names_of(
    table: Table,
    parts: ColumnParts,
    values: Sequence[Id],
    positions: IntArray,
    rows: NDArray[np.intp],
    place: Any,
) -> list[str]:
    """Return the name of each class id; raise if an id has several names."""
    texts, at = table.distinct(parts.class_name)  # type: ignore[arg-type]
    at = at[rows]
    first = np.full(len(values), -1, dtype=np.int64)
    first[positions[::-1]] = at[::-1]  # the last assignment counts: backwards, that of the first row
    wrong = (first[positions] != at) if len(positions) else np.zeros(0, dtype=bool)
    if wrong.any():
        row = int(np.argmax(wrong))
        both = [
            repr(texts[number]) if number >= 0 else "nothing" for number in (first[positions[row]], at[row])
        ]
        raise FileFormatError(
            f"class {values[positions[row]]!r}",
            f"have one name in the columns {parts.class_id} and {parts.class_name}",
            got=" and ".join(both),
            place=place(row),
        )
    return [
        str(value) if number < 0 else str(texts[number])
        for value, number in zip(values, first.tolist(), strict=True)
    ]


def _other_columns(
    table: Table,
    parts: ColumnParts,
    rows: NDArray[np.intp],
    boxes: FloatArray | None,
    form: BoxFormat,
    fractions: bool,
    place: Any,
    *,
    of_results: bool,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the remaining columns of the schema, and the user columns."""
    # Keep sides that match the corners exactly, drop rounded ones, and reject others.
    given: dict[str, Any] = {}
    if parts.sides is not None and boxes is not None and not fractions:
        sides = np.column_stack([table.numbers(name)[rows] for name in parts.sides])
        cause = "were they rounded, or the corners changed? then leave these columns out"
        try:
            check_sizes_fit(boxes, sides, name=parts.sides, place=place, cause=cause)
            given["sizes"] = sides
        except InputError:
            with np.errstate(all="ignore"):
                off = np.abs(sides - (boxes[:, 2:] - boxes[:, :2]))
            if (off > ROUNDED).any():
                raise
    # Flags are columns of the schema in ground truth, and user columns in results.
    others = list(parts.other)
    if of_results:
        others += [name for part, name in parts.flags.items() if part not in ("area", "ids")]
    else:
        for flag in ("crowd", "difficult", "ignore", "group"):
            if flag in parts.flags:
                given[flag] = _flag(table, parts.flags[flag])[rows]
        if "group" in given and "crowd" not in given:
            given["crowd"] = given["group"]  # other protocols treat groups as crowd regions
        # Replace missing areas by box areas.
        if "area" in parts.flags and boxes is not None and not fractions:
            area = table.numbers(parts.flags["area"])[rows]
            missing = np.isnan(area)
            if missing.any():
                with np.errstate(all="ignore"):  # building the table rejects values that are too large
                    extent = boxes[:, 2:] - boxes[:, :2] if form == "xyxy" else boxes[:, 2:]
                    area[missing] = extent[missing].prod(axis=1)
            given["area"] = area
        # Use ids only if every row has one.
        if "ids" in parts.flags:
            values, positions = table.distinct(parts.flags["ids"])
            positions = positions[rows]
            if len(positions) and positions.min() >= 0:
                given["ids"] = as_ids(values, name="ids")[positions]
        if parts.score is not None:
            others.append(parts.score)
    # All other columns are user columns, except for names that tables use themselves.
    columns = {}
    for name in others:
        column = table.user_column(name) if name and name not in GROUND_TRUTH.frame_names else None
        if column is not None:
            columns[name] = column if len(rows) == len(column) else column[rows]
    return given, columns


def _flag(table: Table, name: str) -> NDArray[np.bool_]:
    """Return a column of flags."""
    values, positions = table.distinct(name)
    meaning = []
    for number, value in enumerate(values):
        text = str(value).strip().lower()
        if text not in _TRUE and text not in _FALSE:
            row = int(np.argmax(positions == number))
            rule = "be 0 or 1, true or false, or empty"
            raise FileFormatError(name, rule, got=repr(value), place=table.place(row))
        meaning.append(text in _TRUE)
    flags: NDArray[np.bool_] = np.array([*meaning, False])[positions]
    return flags


_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}")


def ids_of_texts(texts: Sequence[str]) -> list[Id]:
    """Convert texts to ids: integers if all are decimal integers in canonical form, else text."""
    if texts and all(_WHOLE.fullmatch(text) for text in texts):
        return [int(text) for text in texts]
    return list(texts)


def saved_columns(table: BoxTable) -> dict[str, Any]:
    """Return the columns to save, named as in a DataFrame, including those of images.

    Images without objects become rows without class and box, at the end.
    """
    # Start from the columns with public names.
    there = [
        column for column in table.schema.plain if not column.plain or table.instances.shows(column.name)
    ]
    names = ("image_id", "category_id", "class", *(name for column in there for name in column.frame))
    frame = table.to_pandas([*names, *table.columns])
    columns: dict[str, Any] = {str(name): frame[name].to_numpy() for name in frame.columns}
    # Append rows for images without objects, so that the reader restores them.
    without_objects = np.zeros(0, dtype=np.int64)
    if not isinstance(table, Detections):
        without_objects = np.setdiff1d(np.arange(len(table.images)), table.image)
    # Repeat ids and sizes of images in every row; the reader uses the first row of an image.
    image = np.concatenate([table.image, without_objects])
    columns = {name: _extend(values, len(without_objects)) for name, values in columns.items()}
    columns["image_id"] = table.images.ids[image]
    if not isinstance(table, Detections):
        if any(name is not None for name in table.images.file_names.tolist()):
            columns["file_name"] = table.images.file_names[image]
        if not np.isnan(table.images.sizes).all():
            columns["image_width"], columns["image_height"] = table.images.sizes[image].T
    return columns


def _extend(values: NDArray[Any], more: int) -> NDArray[Any]:
    """Append empty cells."""
    if not more:
        return values
    empty = np.full(more, None, dtype=object)
    return np.concatenate([values.astype(object), empty])
