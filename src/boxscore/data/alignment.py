"""Align tables with the images and classes of others; select, pool and concatenate them.

Conventions
-----------
- :mod:`boxscore.data.lookup` resolves ids and names to images and classes.
- Functions return new tables and preserve the order of rows, which affects results.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore._utils.array_types import IntArray
from boxscore._utils.ordering import distinct, inverse_order, stable_order
from boxscore.data.base import neighbors
from boxscore.data.hints import ask
from boxscore.data.lazy import LazyColumns
from boxscore.data.lookup import chosen_images, rows_of_other_images
from boxscore.data.tables import BoxTable, Detections, GroundTruth
from boxscore.data.vocabulary import Categories, Id, Images
from boxscore.errors import InputError

Table = TypeVar("Table", bound=BoxTable)


def check_units(detections: Detections, ground_truth: GroundTruth) -> None:
    """Raise if one table is in pixels and the other in fractions."""
    if detections.units != ground_truth.units and len(detections) and len(ground_truth):
        raise InputError(
            "ground truth and detections",
            "be both in pixels, or both in fractions of the image size",
            got=f"{ground_truth.units} and {detections.units}",
            cause=checks.GIVE_SIZES,
        )


def align(detections: Detections, ground_truth: GroundTruth) -> Detections:
    """Renumber detections to the vocabularies of the ground truth.

    Detections of classes that the ground truth does not have are dropped, with a warning, and counted in
    ``left_out``.
    """
    check_units(detections, ground_truth)
    # With equal vocabularies, row numbers are already right, so avoid copies.
    images, categories = ground_truth.images, ground_truth.categories
    same_names = np.array_equal(detections.categories.names, categories.names)
    if detections.images.same_as(images) and detections.categories.same_as(categories) and same_names:
        return detections.replaced(images=images, categories=categories)
    # Look up ids once per image or class, and map row numbers through one array per vocabulary.
    image = rows_of_other_images(
        detections.image, detections.images, images, place=lambda row: f"row {row} of {detections.source}"
    )
    rows = _match_classes(detections, categories)
    category = rows[detections.category] if len(detections) else detections.category
    # Count the detections of unknown classes, and warn.
    labels, counts = detections.categories.labels, np.bincount(detections.category[category < 0])
    left_out = {labels[row]: int(counts[row]) for row in np.flatnonzero(counts).tolist()}
    if left_out:
        ask("unknown classes", left_out, detections.source, categories, category[category >= 0])
    # Keep the other rows, in file order.
    known = np.flatnonzero(category >= 0)
    return dataclasses.replace(
        detections.take(known),
        images=images,
        categories=categories,
        image=image[known],
        category=category[known],
        left_out={**detections.left_out, **left_out},
    )


def _match_classes(detections: Detections, categories: Categories) -> NDArray[np.int32]:
    """Return the row of each class of detections, int32 [K]: by id, unless another class has its name."""
    theirs = detections.categories
    rows = np.full(len(theirs), -1, dtype=np.int32)
    used = np.flatnonzero(np.bincount(detections.category, minlength=len(theirs)))
    ids = [theirs.ids.tolist()[row] for row in used.tolist()]
    rows[used] = categories.rows_by_id_or_name(ids, place=detections.source)
    by_name = categories.rows_of_classes(theirs)
    named = theirs.names != [str(identifier) for identifier in theirs.ids.tolist()]
    other = named & (by_name >= 0) & (by_name != rows)
    # Ignore an id match of an unknown name if the name of the matched class belongs to another class.
    rows[named & (by_name < 0) & np.isin(rows, by_name[other])] = -1
    rows[other] = by_name[other]
    return rows


def select(
    ground_truth: GroundTruth,
    detections: Detections,
    *,
    images: Sequence[Id] | None = None,
    classes: Sequence[Id] | None = None,
) -> tuple[GroundTruth, Detections]:
    """Select images (by id) and classes (by id or name); None selects all."""
    known_images, known_classes = ground_truth.images, ground_truth.categories
    image_rows = class_rows = None
    if images is not None:
        image_rows = _check_chosen(
            chosen_images(images, known_images), images, "a chosen image", known_images.ids
        )
    if classes is not None:
        rows = known_classes.rows_by_word(list(classes), what="a chosen class")
        class_rows = _check_chosen(
            rows, classes, "a chosen class", np.array(known_classes.labels, dtype=object)
        )
    return select_rows(ground_truth, detections, images=image_rows, classes=class_rows)


def without_classes(
    categories: Categories,
    classes: Sequence[Id] | None,
    excluded: Sequence[Id],
    *,
    name: str = "exclude_classes",
) -> list[Id]:
    """Return the labels of these classes (None: all) without the excluded ones; raise if one is unknown."""
    rows = {}
    for what, words in (("a chosen class", classes), ("an excluded class", excluded)):
        if words is not None:
            found = categories.rows_by_word(list(words), what=what)
            rows[what] = _check_chosen(found, words, what, np.array(categories.labels, dtype=object))
    kept = np.setdiff1d(rows.get("a chosen class", np.arange(len(categories))), rows["an excluded class"])
    if not len(kept):
        raise InputError(
            name, "leave at least one class", got=f"all {len(rows['an excluded class']):,} of them"
        )
    return [categories.labels[row] for row in kept.tolist()]


def select_rows(
    ground_truth: GroundTruth,
    detections: Detections,
    *,
    images: NDArray[Any] | None = None,
    classes: NDArray[Any] | None = None,
) -> tuple[GroundTruth, Detections]:
    """Select images and classes by row, in ascending order; None selects all."""
    # Select vocabulary entries; ``_renumber`` maps old rows to new ones, or -1.
    known_images, known_classes = ground_truth.images, ground_truth.categories
    image_rows = np.arange(len(known_images)) if images is None else images
    category_rows = np.arange(len(known_classes)) if classes is None else classes
    images_left = known_images if images is None else known_images.take(image_rows)
    classes_left = known_classes if classes is None else known_classes.take(category_rows)
    image_numbers = _renumber(image_rows, len(known_images))
    category_numbers = _renumber(category_rows, len(known_classes))

    def chosen(table: Table) -> Table:
        # Keep rows whose image and class are both selected.
        image, category = table.image, category_numbers.take(table.category)
        kept = category >= 0
        if images is not None:
            image = image_numbers.take(image)
            kept &= image >= 0
        rows = np.flatnonzero(kept)
        return dataclasses.replace(
            table.take(rows),
            images=images_left,
            categories=classes_left,
            image=image.take(rows),
            category=category.take(rows),
        )

    truth = with_labels(chosen(ground_truth), images=image_numbers, categories=category_numbers)
    return truth, chosen(detections)


def with_labels(table: Table, **numbers: NDArray[np.int32]) -> Table:
    """Renumber image labels to new rows of ``images`` and ``categories``, or -1."""
    if not isinstance(table, GroundTruth) or table.image_labels is None:
        return table
    return table.replaced(image_labels=table.image_labels.renumbered(**numbers))


def of_images(table: Table, rows: IntArray, table_rows: IntArray | None = None) -> Table:
    """Select images by row, in ascending order; ``table_rows`` are the table rows in them, if known."""
    number = np.full(len(table.images), -1, dtype=np.int32)
    number[rows] = np.arange(len(rows), dtype=np.int32)
    if table_rows is None:
        table_rows = np.flatnonzero(number[table.image] >= 0)
    image = number[table.image[table_rows]]
    chosen = table.take(table_rows).replaced(images=table.images.take(rows), image=image)
    return with_labels(chosen, images=number)


def _renumber(rows: NDArray[Any], count: int) -> NDArray[np.int32]:
    numbers = np.full(count, -1, dtype=np.int32)
    numbers[rows] = np.arange(len(rows), dtype=np.int32)
    return numbers


def _check_chosen(
    rows: NDArray[np.int32], names: Sequence[Id], what: str, known: NDArray[Any]
) -> NDArray[Any]:
    for row, value in zip(rows.tolist(), names, strict=True):
        if row < 0:
            cause = checks.did_you_mean(value, map(str, known.tolist()))
            raise InputError(what, "be in the ground truth", got=repr(value), cause=cause)
    return distinct(rows)


def pool_classes(table: Table) -> Table:
    """Merge all classes into one, ``all``; rows stay in file order."""
    pooled = Categories.build(["all"])
    return table.replaced(categories=pooled, category=np.zeros(len(table), dtype=np.int32))


def joined_labels(
    tables: Sequence[BoxTable], images: Images, categories: Sequence[NDArray[np.int32]]
) -> dict[str, Any]:
    """Merge the image labels of several ground truths, as an argument for ``replaced``; empty without labels.

    ``categories`` has the new rows of the classes of each table.
    """
    parts = [
        table.image_labels.renumbered(images=images.rows(table.images.ids), categories=rows)
        for table, rows in zip(tables, categories, strict=True)
        if isinstance(table, GroundTruth) and table.image_labels is not None
    ]
    return {"image_labels": type(parts[0]).joined(parts)} if parts else {}


def stacked(tables: Sequence[Table]) -> Table:
    """Concatenate tables with the same vocabularies; keep the columns that all of them have."""
    return _stack(tables, {}, into_views=False)


def _stack(tables: Sequence[Table], known: Mapping[str, Any], *, into_views: bool) -> Table:
    """Concatenate tables, given some columns of the result; see :func:`concatenate`."""
    # Concatenate required columns, except for those given by the caller.
    first = tables[0]
    filled = [table for table in tables if len(table)] or [first]  # an empty table may lack a column
    columns: dict[str, Any] = {**known}
    for column in first.schema.needed:
        if column.name == "sizes" and not any("sizes" in vars(table) for table in filled):
            columns["sizes"] = None  # still derived from the boxes
        elif column.name not in known:
            columns[column.name] = _join_column(filled, column.name, into_views=into_views)
    # Plain optional columns must be in all tables or in none. Drop others unless all tables have them.
    for column in first.schema.instances:
        absent = [table.instances[column.name] is None for table in filled]
        if column.plain and any(absent) and not all(absent):
            with_it, without = (filled[absent.index(no)].source for no in (False, True))
            raise InputError(
                column.name,
                "be in all merged tables, or in none",
                got="none",
                place=without,
                cause=f"{with_it} has them",
            )
        if not any(absent):
            if column.form == "masks":
                parts = [table.instances[column.name] for table in filled]
                columns[column.name] = type(parts[0]).concatenate(parts)
            else:
                columns[column.name] = _join_column(filled, column.name, into_views=into_views)
    # Keep user columns only if every table has them.
    shared = [name for name in filled[0].columns if all(name in table.columns for table in filled)]
    user_columns = {name: np.concatenate([table.columns[name] for table in filled]) for name in shared}
    fresh = LazyColumns(tuple(column.name for column in first.schema.instances))
    return filled[0].replaced(**columns, columns=user_columns, instances=fresh)


def _join_column(tables: Sequence[BoxTable], name: str, *, into_views: bool) -> NDArray[Any]:
    """Concatenate a column; ``into_views`` replaces the columns of the tables by views, to save memory."""
    columns = [getattr(table, name) for table in tables]
    if not into_views or len({(column.dtype, column.shape[1:]) for column in columns}) > 1:
        return np.concatenate(columns)
    whole = neighbors(columns)
    if whole is not None:
        return whole
    # Copy one table at a time, and replace its column by a view of the result, which frees the old array.
    start, whole = 0, np.empty((sum(map(len, columns)), *columns[0].shape[1:]), dtype=columns[0].dtype)
    del columns
    for table in tables:
        part = whole[start : start + len(table)]
        part[:] = getattr(table, name)
        table.hold(name, part)
        start += len(table)
    return whole


def concatenate(
    tables: Sequence[Table], *, into_views: bool = False
) -> tuple[Table, NDArray[np.intp] | None]:
    """Concatenate tables of disjoint images, in ascending order of image ids.

    Also returns the new position of each row, [N], or None if rows stay in order. In that case, with
    ``into_views``, the columns of the tables, except vocabulary rows, become views of the result.
    """
    # Merge the vocabularies, and renumber the rows of each table through one array per table.
    images = Images.union([table.images for table in tables])
    categories = Categories.union([table.categories for table in tables])
    classes = [categories.rows(table.categories.ids) for table in tables]
    image = np.concatenate([images.rows(table.images.ids)[table.image] for table in tables])
    known: dict[str, Any] = {"images": images, "categories": categories, "image": image}
    # Classes that all tables number alike stay as they are.
    if any((rows != np.arange(len(rows))).any() for rows in classes):
        each = [rows[table.category] for rows, table in zip(classes, tables, strict=True)]
        known["category"] = np.concatenate(each)
    # Concatenate the columns. Tables in ascending order of images, such as shards, are not sorted.
    in_order = bool((image[1:] >= image[:-1]).all())
    known |= joined_labels(tables, images, classes)
    whole = _stack(tables, known, into_views=into_views and in_order)
    if in_order:
        return whole, None
    # Otherwise sort by image; the sort is stable, so rows of an image stay in file order.
    order = stable_order(image, len(images))
    return whole.take(order), inverse_order(order)
