"""Convert rows of boxes, which most formats read, to tables.

A format reads its files as :class:`Rows`. This module handles class lists, fractions of the image size, image
names and the numbering of the ground truth for all of them.

Conventions
-----------
- A class is a name, or an index from 0 into a class list. A list given by the user overrides the one in the
  files. Numbers without a list are ids, unless the format sets ``Rows.numbers``.
- Fractions are converted to pixels by the image size from the user, else from the files, else from the ground
  truth. If a ground truth has images of unknown size, it stays in fractions; IoU does not need pixels, but
  areas do.
- In ``category`` arrays, -1 is a class that the ground truth does not have; its rows are dropped and counted.
  -2 is a name shared by several classes, which is rejected.
- Detections keep their file order, which breaks ties between equal scores.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore._utils.array_types import BoolArray, FloatArray, IntArray
from boxscore._utils.checks import Place
from boxscore._utils.text import counted, counted_of
from boxscore._utils.user_warnings import warn_user
from boxscore.data.box_reading import may_be_fractions
from boxscore.data.boxes import BoxFormat, box_convert
from boxscore.data.building import built_columns
from boxscore.data.class_names import ambiguous
from boxscore.data.hints import ask
from boxscore.data.lookup import find_images, rows_of_ids
from boxscore.data.schema import DETECTIONS, GROUND_TRUTH, Schema, rotated_of_corners
from boxscore.data.tables import Detections, GroundTruth
from boxscore.data.vocabulary import Categories, Id, Images, as_ids, without_zeros
from boxscore.errors import FileFormatError, InputError
from boxscore.formats._format import Format, ReadOptions
from boxscore.formats.class_lists import list_name
from boxscore.formats.image_sizes import known_sizes


@dataclasses.dataclass(frozen=True, kw_only=True)
class Rows:
    """Boxes from files of ground truth or detections, one row per object or detection, in file order.

    Attributes
    ----------
    source : str
        The path of the files, for messages.
    images : sequence of int or str
        Distinct image ids, including images without rows; if there is a file per image, its stem.
    image : ndarray of int, [N]
        Index into ``images``.
    labels : sequence of int or str
        Distinct classes as written in the files: names or numbers.
    label : ndarray of int, [N]
        Index into ``labels``.
    label_names : sequence of str, or None
        A name for each of ``labels``, which are then ids.
    boxes : ndarray of float64, [N, 4], or None
        If the user gives ``box_format``, the four numbers as in the files. None: derive boxes from the other
        shapes.
    box_format : {"xyxy", "xywh", "cxcywh"}
        The form of ``boxes``, unless the user gives another.
    form_applied : bool
        Whether ``boxes`` are already converted from the ``box_format`` of the user.
    place : callable
        Returns the place of row ``i`` for messages.
    fractions : bool
        Whether coordinates are fractions of the image size.
    stays_in_fractions : bool, or None
        Whether to keep fractions, if that was already decided from more rows than these.
    named_by_id : bool
        Whether images of detections are always ids of the ground truth, not file names.
    scores : ndarray of float64, [N], or None
        Scores of detections, or None.
    classes : sequence of str, or None
        The class list in the files.
    numbers : str
        The meaning of numbers without a class list: ``"ids"``, ``"positions"`` (indices from 0), ``"names"``
        or ``"words"`` (ids or names).
    file_names : sequence of str or None, or None
        File names of the images.
    sizes : ndarray of float64, [I, 2], or None
        Width and height of the images in pixels; NaN where unknown.
    outlines : sequence, [N], or None
        Polygons of a row, each a flat array ``x, y, x, y, ...``; None for a row without polygons.
    keypoints : ndarray of float64, [N, J, 3], or None
    corners : ndarray of float64, [N, 4, 2], or None
        Corners of rotated rectangles.
    given : mapping
        Additional columns by their names in the schema: ``area`` in squared units of the coordinates,
        ``crowd``, ``ids``, ``masks``; ``sizes`` if the files have both corners in pixels and sizes.
    columns : mapping of str to array_like
        Additional columns by which a user may slice.
    image_columns : mapping of str to array_like
        Additional columns of the images.
    any_sides : bool
        Whether to accept boxes with negative sides, which do not overlap anything.
    """

    source: str
    images: Sequence[Id]
    image: IntArray
    labels: Sequence[Id]
    label: IntArray
    boxes: FloatArray | None
    box_format: BoxFormat
    place: Place
    label_names: Sequence[str] | None = None
    fractions: bool = False
    scores: FloatArray | None = None
    classes: Sequence[str] | None = None
    numbers: str = "ids"
    file_names: Sequence[str | None] | None = None
    sizes: FloatArray | None = None
    outlines: Sequence[Sequence[FloatArray] | None] | None = None
    keypoints: FloatArray | None = None
    corners: FloatArray | None = None
    given: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    columns: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    image_columns: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    any_sides: bool = False
    form_applied: bool = False
    stays_in_fractions: bool | None = None
    named_by_id: bool = False


class RowFormat(Format):
    """A format that reads its files as :class:`Rows`."""

    @abc.abstractmethod
    def rows(self, path: Path, options: ReadOptions, *, of_results: bool) -> Rows:
        """Read the files at a path, of ground truth or of detections."""

    def load_ground_truth(self, path: Path, options: ReadOptions) -> GroundTruth:
        """Read ground truth."""
        return ground_truth_of(self.rows(path, options, of_results=False), options)

    def load_detections(
        self, path: Path, options: ReadOptions, ground_truth: GroundTruth | None
    ) -> Detections:
        """Read detections."""
        return detections_of(self.rows(path, options, of_results=True), options, ground_truth)


def _apply_box_format(rows: Rows, options: ReadOptions) -> Rows:
    """Convert boxes from the ``box_format`` of the user, if given."""
    written = options.written
    if written is None or rows.form_applied:
        return rows
    if rows.boxes is None:
        rule, got = "be left out where boxes are not four numbers", options.box_format
        raise InputError("box_format", rule, got=got, place=rows.source)
    return dataclasses.replace(
        rows,
        boxes=written.x_first(rows.boxes),
        box_format=written.form,
        fractions=written.fractions or (rows.fractions and may_be_fractions(rows.boxes, rows.place)),
    )


def ground_truth_of(rows: Rows, options: ReadOptions) -> GroundTruth:
    """Convert rows to ground truth."""
    # Apply the box format of the user, and collect image sizes from all sources.
    rows = _apply_box_format(rows, options)
    sizes = _sizes(rows, options)
    # Build the vocabularies. They sort images, so look up the row of each image once.
    categories, category = file_categories(rows, options)
    ids = as_ids(rows.images, name="image ids")
    images = Images.build(ids, file_names=rows.file_names, sizes=sizes, columns=rows.image_columns)
    image = images.rows(ids)[rows.image]
    # Convert fractions to pixels only if the size of every image with objects is known: never mix units.
    unknown = _are_unknown(sizes)
    in_fractions = rows.stays_in_fractions
    if in_fractions is None:
        in_fractions = rows.fractions and bool(unknown[rows.image].any())
    if in_fractions and options.needs_areas:
        _warn_of_fractions(rows, unknown)
    table = _table(
        GROUND_TRUTH,
        rows,
        {"images": images, "categories": categories, "image": image, "category": category},
        np.arange(len(image)),
        None if in_fractions or not rows.fractions else sizes,
        options,
    )
    return GroundTruth(**table, units="fractions" if in_fractions else "pixels", source=rows.source)


def detections_of(rows: Rows, options: ReadOptions, ground_truth: GroundTruth | None) -> Detections:
    """Convert rows to detections, aligned with the ground truth if given."""
    rows = _apply_box_format(rows, options)
    sizes = _sizes(rows, options)
    unknown = _are_unknown(sizes)
    left_out: dict[str, int] = {}
    # Without ground truth, build the vocabularies from the files.
    if ground_truth is None:
        ids = as_ids(rows.images, name="image ids")
        images = Images.build(ids, file_names=rows.file_names, sizes=sizes)
        image = images.rows(ids)[rows.image]
        categories, category = file_categories(rows, options)
        if rows.numbers == "positions" and categories.ids.dtype != object:
            categories = dataclasses.replace(categories, are_positions=True)
        in_fractions = rows.fractions and bool(unknown[rows.image].any())
    # With ground truth, use its vocabularies, and its image sizes where they are otherwise unknown.
    else:
        images, categories = ground_truth.images, ground_truth.categories
        image_rows = matched_images(rows, ground_truth)
        image = image_rows[rows.image]
        sizes[unknown & (image_rows >= 0)] = images.sizes[image_rows[unknown & (image_rows >= 0)]]
        unknown = _are_unknown(sizes)
        category, left_out = _category_rows(rows, options, ground_truth)
        in_fractions = ground_truth.units == "fractions"
        if len(image) and (in_fractions and not rows.fractions):
            raise InputError(
                "ground truth",
                "have known image sizes where detections are in pixels",
                got=f"fractions without sizes, {ground_truth.source}",
                cause=checks.GIVE_SIZES,
            )
        if rows.fractions and not in_fractions and unknown[rows.image].any():
            row = int(np.argmax(unknown[rows.image]))
            raise InputError(
                "an image",
                "have a known size if detections are fractions of it",
                got=repr(rows.images[int(rows.image[row])]),
                place=rows.place(row),
                cause=checks.GIVE_SIZES,
            )
    # Drop rows of classes that the ground truth does not have.
    known_class = np.flatnonzero(category >= 0)
    vocabularies = {
        "images": images,
        "categories": categories,
        "image": image[known_class],
        "category": category[known_class],
    }
    # Convert fractions to pixels with the same float64 products as for the ground truth.
    table = _table(
        DETECTIONS,
        rows,
        vocabularies,
        known_class,
        None if in_fractions or not rows.fractions else sizes,
        options,
    )
    return Detections(
        **table,
        boxes_given=rows.boxes is not None,
        left_out=left_out,
        units="fractions" if in_fractions else "pixels",
        source=rows.source,
    )


def _table(
    schema: Schema,
    rows: Rows,
    vocabularies: Mapping[str, Any],
    chosen: NDArray[np.intp],
    sizes: FloatArray | None,
    options: ReadOptions,
) -> dict[str, Any]:
    """Build the columns of the ``chosen`` rows, in pixels if ``sizes`` are given."""
    # Scale all shapes by the image sizes. Select rows once, without a copy if all are chosen.
    extent = None if sizes is None else sizes[rows.image]
    shapes = _scale_shapes(rows, extent)
    given: dict[str, Any] = {
        name: _of_rows(np.asarray(values), chosen) for name, values in rows.given.items() if name != "masks"
    }
    if "masks" in rows.given:
        given["masks"] = [rows.given["masks"][row] for row in chosen.tolist()]
    # An area scales by both sides.
    if extent is not None and "area" in given:
        given["area"] = given["area"] * extent[chosen].prod(axis=1)
    given |= {
        name: [values[row] for row in chosen.tolist()] if name == "masks" else _of_rows(values, chosen)
        for name, values in shapes.items()
        if name != "boxes"
    }
    # Use given sides, because corners alone would round; detections only take the columns of their schema.
    sides = given.pop("sizes", None)
    if schema is DETECTIONS:
        given["scores"] = None if rows.scores is None else _of_rows(rows.scores, chosen)
        given = {name: values for name, values in given.items() if name in _names(schema)}
    return built_columns(
        schema,
        vocabularies,
        None if shapes.get("boxes") is None else _of_rows(shapes["boxes"], chosen),
        box_format=rows.box_format,
        given=given,
        columns={name: _of_rows(np.asarray(values), chosen) for name, values in rows.columns.items()},
        sizes=sides,
        lowest_size=options.lowest_side if options.any_sides else -np.inf if rows.any_sides else 0.0,
        place=lambda row: rows.place(int(chosen[row])),
    )


def _of_rows(values: NDArray[Any], rows: NDArray[np.intp]) -> NDArray[Any]:
    """Return these rows, in ascending order, without a copy if they are all rows."""
    return values if len(rows) == len(values) else values[rows]


def _names(schema: Schema) -> set[str]:
    return {column.name for column in (*schema.needed, *schema.instances)}


def _scale_shapes(rows: Rows, extent: FloatArray | None) -> dict[str, Any]:
    """Return boxes, masks, keypoints and rotated boxes, scaled by the image size [N, 2] if given."""
    shapes: dict[str, Any] = {}
    # Scale boxes and keypoints with one product per coordinate, the only rounding step.
    if rows.boxes is not None:
        with np.errstate(over="ignore"):  # building the table rejects values that are too large
            shapes["boxes"] = rows.boxes if extent is None else rows.boxes * np.tile(extent, 2)
    if rows.keypoints is not None:
        points = rows.keypoints.copy()
        if extent is not None:
            points[:, :, :2] *= extent[:, None]
        shapes["keypoints"] = points
    if rows.fractions and extent is None:
        return shapes  # masks and rotated boxes are undefined without pixels
    # Keep polygons as a list per object, because their numbers of corners differ.
    if rows.outlines is not None:
        shapes["masks"] = [
            None
            if parts is None
            else [
                (part if extent is None else part * np.tile(extent[row], len(part) // 2)).tolist()
                for part in parts
            ]
            for row, parts in enumerate(rows.outlines)
        ]
    # Compute rotated boxes from scaled corners, because scaling by unequal factors changes angles.
    if rows.corners is not None:
        shapes["rotated"] = rotated_of_corners(
            rows.corners if extent is None else rows.corners * extent[:, None]
        )
    return shapes


def _are_unknown(sizes: FloatArray) -> BoolArray:
    unknown: BoolArray = np.isnan(sizes[:, 0]) | np.isnan(sizes[:, 1])
    return unknown


def images_of_unknown_size(rows: Rows, options: ReadOptions) -> tuple[set[Id], set[Id]]:
    """Return the images with rows whose size is unknown, and all images of known size."""
    unknown = _are_unknown(_sizes(rows, options))
    used = np.bincount(rows.image, minlength=len(rows.images)) > 0
    pairs = list(zip(rows.images, unknown.tolist(), used.tolist(), strict=True))
    unsized = {name for name, is_unknown, is_used in pairs if is_unknown and is_used}
    return unsized, {name for name, is_unknown, _ in pairs if not is_unknown}


def _sizes(rows: Rows, options: ReadOptions) -> FloatArray:
    """Return width and height of every image in the files, [I, 2]; NaN if unknown."""
    sizes = (
        np.full((len(rows.images), 2), np.nan)
        if rows.sizes is None
        else without_zeros(np.array(rows.sizes, dtype=np.float64))
    )
    given = known_sizes(options.image_sizes, rows.images, rows.file_names)
    return np.where(np.isnan(given), sizes, given)


def matched_images(rows: Rows, ground_truth: GroundTruth) -> NDArray[np.int32]:
    """Return the row of each image in the ground truth, [I]; -1 for an image without boxes."""
    # Look up images with boxes only: detection files may list images that the ground truth does not have.
    used = np.flatnonzero(np.bincount(rows.image, minlength=len(rows.images)))
    ids = as_ids([rows.images[image] for image in used.tolist()], name="image ids")
    names = None
    if rows.file_names is not None and any(rows.file_names):
        names = np.array([rows.file_names[image] for image in used.tolist()], dtype=object)

    # Messages give the first row of an image.
    def place(number: int) -> str:
        return rows.place(int(np.argmax(rows.image == used[number])))

    def of_images(image_rows: NDArray[np.int32]) -> NDArray[np.int32]:
        known = np.full(len(rows.images), -1, dtype=np.int32)
        known[used] = image_rows
        return known

    def count_matched(image_rows: NDArray[np.int32]) -> int:
        return _count_matched(rows, of_images(image_rows)[rows.image], ground_truth)

    # Match ids exactly, and names also without folder or extension; if ambiguous, the boxes decide.
    if rows.named_by_id:
        return of_images(rows_of_ids(ids, ground_truth.images, place=place))
    return of_images(
        find_images(ids, ground_truth.images, file_names=names, count_matched=count_matched, place=place)
    )


def _count_matched(rows: Rows, image: NDArray[np.int32], ground_truth: GroundTruth) -> int:
    """Count the best detections that overlap an annotation under this assignment of rows to images."""
    if rows.boxes is None or not np.isfinite(rows.boxes).all():
        return 0
    boxes = box_convert(rows.boxes, rows.box_format, "xyxy")
    if rows.fractions and ground_truth.units == "pixels":
        boxes = boxes * np.tile(ground_truth.images.sizes[image], 2)
    with np.errstate(invalid="ignore"):
        return int(ask("ids that are names", ground_truth, image, boxes, rows.scores).matched)


def _category_rows(
    rows: Rows, options: ReadOptions, ground_truth: GroundTruth
) -> tuple[NDArray[np.int32], dict[str, int]]:
    """Return each row's class in the ground truth, [N], -1 if unknown; and the counts of unknown classes."""
    # A class list maps numbers to names, unless the ground truth only has ids (names that repeat the ids).
    categories = ground_truth.categories
    unnamed = _are_unnamed(categories)
    numbered = all(isinstance(label, int) for label in rows.labels)
    class_list = rows.classes if options.classes is None else options.classes
    listed = class_list is not None and not (
        unnamed and numbered and not {*class_list} <= {*categories.names.tolist()}
    )
    names = _name_labels(rows, options) if listed else list(rows.labels)
    if rows.numbers == "positions" and any(isinstance(name, int) for name in names):
        error = other_numbering(rows.source, categories)
        if error is not None:
            raise error
    # Look up labels as pairs of id and name, as ids, or as words that may be either.
    if rows.label_names is not None and options.classes is None:
        names = list(rows.label_names)
        known = _rows_of_pairs(rows, rows.label_names, categories)
    elif numbered and not listed and (unnamed or rows.numbers in ("ids", "positions")):
        known = categories.rows(as_ids(names, name="classes"))
    else:
        known = _rows_of_words(rows, names, categories, are_names=listed)
    # Count the rows of unknown classes by name.
    category = known[rows.label] if len(rows.label) else np.empty(0, dtype=np.int32)
    unknown, counts = np.unique(rows.label[category < 0], return_counts=True)
    left_out = {
        str(names[label]): int(count) for label, count in zip(unknown.tolist(), counts.tolist(), strict=True)
    }
    return category, left_out


def _rows_of_pairs(rows: Rows, label_names: Sequence[str], categories: Categories) -> NDArray[np.int32]:
    """Return the class of each pair of id and name, [L].

    It is the class with this id, if it has this name or the name only repeats the id; else the class with
    this name. If several classes share the name, it is the one with this id, compared as text.
    """
    of_id, of_name = categories.index(), categories.rows_of_names()
    ids, names = categories.ids.tolist(), categories.names.tolist()
    known = []
    for label, name in zip(rows.labels, label_names, strict=True):
        row = of_id.get(label, -1)
        if row < 0 or names[row] not in (name, str(label)):
            candidates = of_name.get(name, [of_id.get(name, -1)])
            if len(candidates) > 1:
                candidates = [row for row in candidates if str(ids[row]) == str(label)] or [-2]
            row = candidates[0]
        known.append(row)
    return _check_unique(rows, label_names, np.array(known, dtype=np.int32), categories)


def _rows_of_words(
    rows: Rows, words: Sequence[Id], categories: Categories, *, are_names: bool
) -> NDArray[np.int32]:
    """Return the class of each word, [L]: by id if all are known ids but not all known names, else by name.

    A word that is the id of one class and the name of another is rejected, unless words must be names.
    """
    # Look up every word as a name and as an id: -1 is unknown, -2 a name of several classes.
    of_name = categories.rows_of_names()
    candidates = [of_name.get(str(word), [-1]) for word in words]
    by_name = np.array([rows_[0] if len(rows_) == 1 else -2 for rows_ in candidates], dtype=np.int32)
    of_id = categories.index()
    rows_by_id = [of_id.get(word, of_id.get(_respell(word), -1)) for word in words]
    by_id = np.array(rows_by_id, dtype=np.int32)
    # If all words are ids, and not all are names, they are ids.
    if (by_id >= 0).all() and (by_name == -1).any():
        return by_id
    # Reject a word that is the id of one class and the name of another, unless words must be names.
    are_names = are_names or (rows.numbers == "names" and categories.ids.dtype != object)
    if not are_names and ((by_name == -1).any() or (by_id >= 0).all()):
        differ = np.flatnonzero((by_id >= 0) & (by_name != -1) & (by_id != by_name))
        if len(differ):
            at, labels = int(differ[0]), categories.labels
            raise ambiguous(
                str(words[at]),
                [labels[row] for row in sorted({int(by_id[at]), *candidates[at]})],
                what="a class",
                place=rows.place(int(np.argmax(rows.label == at))),
                cause="a column category_id holds ids, a column class_name names",
            )
    known = np.where(by_name == -1, by_id, by_name)
    # Others may be display labels, which distinguish classes of the same name.
    if (known == -1).any():
        of_label = {label: row for row, label in enumerate(categories.labels)}
        known = np.array(
            [
                of_label.get(str(word), -1) if row == -1 else row
                for word, row in zip(words, known, strict=True)
            ],
            dtype=np.int32,
        )
    return _check_unique(rows, words, known, categories)


def _respell(word: Id) -> Id:
    """Convert a number to text, and the decimal text of a number to that number."""
    if isinstance(word, int):
        return str(word)
    digits = word.removeprefix("-")
    is_number = len(digits) < 19 and digits.isascii() and digits.isdecimal()
    return int(word) if is_number and str(int(word)) == word else word


def _check_unique(
    rows: Rows, names: Sequence[Id], known: NDArray[np.int32], categories: Categories
) -> NDArray[np.int32]:
    """Reject labels that occur and match several classes (row -2)."""
    used = np.bincount(rows.label, minlength=len(known)) > 0
    unclear = np.flatnonzero((known < -1) & used)
    if len(unclear):
        place = rows.place(int(np.argmax(rows.label == unclear[0])))
        categories.refuse_several(names[int(unclear[0])], place=place)
    return known


def _are_unnamed(categories: Categories) -> bool:
    """Whether the classes have only ids, which the names repeat."""
    ids = categories.ids
    return ids.dtype != object and categories.names.tolist() == list(map(str, ids.tolist()))


def other_numbering(source: str, categories: Categories) -> InputError | None:
    """Return the error for class numbers that count from 0 if the class ids of the ground truth do not."""
    ids = categories.ids
    if _are_unnamed(categories) or (
        ids.dtype != object and len(ids) and ids[0] == 0 and ids[-1] == len(ids) - 1
    ):
        return None
    known = ", ".join(map(repr, ids.tolist()[:3]))
    return InputError(
        f"{source} uses class numbers that count from 0, but the classes of the ground truth are {known}"
        f"{', ...' * (len(ids) > 3)}. Pass the class names of the detections, one per line or as data.yaml: "
        "--dt-classes FILE (in Python classes=)."
    )


def _name_labels(rows: Rows, options: ReadOptions) -> list[Id]:
    """Return the labels; replace numbers by names if there is a class list."""
    names = options.classes if options.classes is not None else rows.classes
    if names is None:
        return list(rows.labels)
    return [_name(rows, names, position) for position in range(len(rows.labels))]


def _name(rows: Rows, names: Sequence[str], position: int) -> Id:
    label = rows.labels[position]
    if isinstance(label, str) and label in names:
        return label
    if isinstance(label, int) and 0 <= label < len(names):
        return names[label]
    row = int(np.argmax(rows.label == position))
    if isinstance(label, int):
        rule = (
            f"be from 0 to {len(names) - 1}, for the {counted(len(names), 'name')} of the {list_name(names)}"
        )
        raise InputError("a class number", rule, got=label, place=rows.place(row))
    raise InputError("a class", f"be in the {list_name(names)}", got=repr(label), place=rows.place(row))


def file_categories(rows: Rows, options: ReadOptions) -> tuple[Categories, NDArray[np.int32]]:
    """Return the classes of the files, and the class of each row, [N]."""
    names = options.classes if options.classes is not None else rows.classes
    written = _name_labels(rows, options)
    if names is None:
        categories = Categories.build(written, names=rows.label_names)
        known = categories.rows(as_ids(written, name="classes"))
    else:
        categories = dataclasses.replace(Categories.build(range(len(names)), names=names), are_positions=True)
        by_name = {name: number for number, name in enumerate(names)}
        known = np.array([by_name[str(name)] for name in written], dtype=np.int32)
    return categories, known[rows.label] if len(rows.label) else np.empty(0, dtype=np.int32)


def _warn_of_fractions(rows: Rows, unknown: NDArray[np.bool_]) -> None:
    count = int(unknown.sum())
    unsized = f"the size of {counted_of(count, len(unknown), 'image')} is unknown"
    if unknown.all():
        unsized = "the image sizes are unknown"
    warn_user(
        f"{rows.source}: {unsized}, so boxes stay in fractions of the image size: AP and AR over all "
        "areas are computed; metrics of small, medium and large objects are undefined. "
        f"{checks.GIVE_SIZES[0].upper()}{checks.GIVE_SIZES[1:]}.",
    )


def check_sides(sides: FloatArray, place: Place, cause: str = "") -> None:
    """Reject boxes with a negative side; ``sides`` is [N, 2]."""
    negative = (sides < 0).any(axis=1)
    if negative.any():
        row = int(np.argmax(negative))
        got = f"{sides[row, 0]:g} x {sides[row, 1]:g}"
        raise FileFormatError("a box", "have a size >= 0", got=got, place=place(row), cause=cause)


class Collected(NamedTuple):
    """Distinct values, and the index of each given value."""

    values: list[Id]
    positions: IntArray


def collected(values: Sequence[Id]) -> Collected:
    """Return distinct values in order of first occurrence, and the index of each value, [N]."""
    known: dict[Id, int] = {}
    positions = np.fromiter((known.setdefault(value, len(known)) for value in values), np.int64, len(values))
    return Collected(list(known), positions)
