"""Align tables to the images and classes of others; select, pool and concatenate them.

Conventions
-----------
- :mod:`boxscore.data.lookup` decides which image or class an id or a name refers to.
- Every function that makes tables makes new ones, with rows in their order, which is part of the answer.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore._utils.array_types import IntArray
from boxscore._utils.ordering import inverse_order, stable_order
from boxscore.data.base import neighbours
from boxscore.data.hints import ask
from boxscore.data.lazy import LazyColumns
from boxscore.data.lookup import chosen_images, rows_of_other_images
from boxscore.data.tables import BoxTable, Detections, GroundTruth
from boxscore.data.vocabulary import Categories, Id, Images
from boxscore.errors import InputError

Table = TypeVar("Table", bound=BoxTable)


def check_units(detections: Detections, ground_truth: GroundTruth) -> None:
    """Refuse tables of which one has pixels and another fractions."""
    if detections.units != ground_truth.units and len(detections) and len(ground_truth):
        raise InputError(
            "ground truth and detections",
            "be both in pixels, or both in fractions of the image size",
            got=f"{ground_truth.units} and {detections.units}",
            cause=checks.GIVE_SIZES,
        )


def align(detections: Detections, ground_truth: GroundTruth) -> Detections:
    """Renumber detections into the ground truth's vocabularies.

    Detections of classes that the ground truth does not have are left out, with a warning, and counted
    in ``left_out``.
    """
    check_units(detections, ground_truth)
    # If both tables have equal vocabularies, the row numbers are right already, and no column is copied.
    images, categories = ground_truth.images, ground_truth.categories
    same_names = np.array_equal(detections.categories.names, categories.names)
    if detections.images.same_as(images) and detections.categories.same_as(categories) and same_names:
        return detections.replaced(images=images, categories=categories)
    # Map row numbers through one array per vocabulary: ids are looked up once per image or class, not once
    # per detection.
    image = rows_of_other_images(
        detections.image, detections.images, images, place=lambda row: f"row {row} of {detections.source}"
    )
    rows = _rows_of_their_classes(detections, categories)
    category = rows[detections.category] if len(detections) else detections.category
    # Count the detections of unknown classes, and warn.
    unknown, counts = np.unique(detections.category[category < 0], return_counts=True)
    labels = detections.categories.labels
    left_out = {labels[row]: int(count) for row, count in zip(unknown.tolist(), counts.tolist(), strict=True)}
    if left_out:
        ask("unknown classes", left_out, detections.source, categories, category[category >= 0])
    # Keep the other rows; flags ascend, so the order of the file stays.
    known = np.flatnonzero(category >= 0)
    return dataclasses.replace(
        detections.take(known),
        images=images,
        categories=categories,
        image=image[known],
        category=category[known],
        left_out={**detections.left_out, **left_out},
    )


def _rows_of_their_classes(detections: Detections, categories: Categories) -> NDArray[np.int32]:
    """Return the row of each class of detections, int32 [K]: by id, unless another class has its name."""
    theirs = detections.categories
    rows = np.full(len(theirs), -1, dtype=np.int32)
    used = np.flatnonzero(np.bincount(detections.category, minlength=len(theirs)))
    ids = [theirs.ids.tolist()[row] for row in used.tolist()]
    rows[used] = categories.rows_by_id_or_name(ids, place=detections.source)
    by_name = categories.rows_of_classes(theirs)
    named = theirs.names != [str(identifier) for identifier in theirs.ids.tolist()]
    other = named & (by_name >= 0) & (by_name != rows)
    # A class with an unknown name is not the class with its id where another class has the name of that one.
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
    """Return only these images (by id) and these classes (by id or name); None: all."""
    known_images, known_classes = ground_truth.images, ground_truth.categories
    image_rows = class_rows = None
    if images is not None:
        image_rows = _chosen(chosen_images(images, known_images), images, "a chosen image", known_images.ids)
    if classes is not None:
        rows = known_classes.rows_by_word(list(classes), what="a chosen class")
        class_rows = _chosen(rows, classes, "a chosen class", np.array(known_classes.labels, dtype=object))
    return select_rows(ground_truth, detections, images=image_rows, classes=class_rows)


def without_classes(
    categories: Categories,
    classes: Sequence[Id] | None,
    excluded: Sequence[Id],
    *,
    name: str = "exclude_classes",
) -> list[Id]:
    """Return the labels of these classes (None: all) without the excluded ones; each must exist."""
    rows = {}
    for what, words in (("a chosen class", classes), ("an excluded class", excluded)):
        if words is not None:
            found = categories.rows_by_word(list(words), what=what)
            rows[what] = _chosen(found, words, what, np.array(categories.labels, dtype=object))
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
    """Return only the images and the classes with these ascending rows; None: all."""
    # Take the chosen vocabulary entries. ``_renumber`` gives each old row its new one, or -1.
    known_images, known_classes = ground_truth.images, ground_truth.categories
    image_rows = np.arange(len(known_images)) if images is None else images
    category_rows = np.arange(len(known_classes)) if classes is None else classes
    images_left, classes_left = known_images.take(image_rows), known_classes.take(category_rows)
    image_numbers = _renumber(image_rows, len(known_images))
    category_numbers = _renumber(category_rows, len(known_classes))

    def chosen(table: Table) -> Table:
        # A row stays if both of its numbers do; its columns are copied once.
        image, category = image_numbers[table.image], category_numbers[table.category]
        rows = np.flatnonzero((image >= 0) & (category >= 0))
        return dataclasses.replace(
            table.take(rows),
            images=images_left,
            categories=classes_left,
            image=image[rows],
            category=category[rows],
        )

    truth = with_labels(chosen(ground_truth), images=image_numbers, categories=category_numbers)
    return truth, chosen(detections)


def with_labels(table: Table, **numbers: NDArray[np.int32]) -> Table:
    """Return the table with labels of whole images under new rows of ``images`` and ``categories``, or -1."""
    if not isinstance(table, GroundTruth) or table.image_labels is None:
        return table
    return table.replaced(image_labels=table.image_labels.renumbered(**numbers))


def of_images(table: Table, rows: IntArray, table_rows: IntArray | None = None) -> Table:
    """Return the table of these images, ascending; ``table_rows`` are its rows, where they are known."""
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


def _chosen(rows: NDArray[np.int32], names: Sequence[Id], what: str, known: NDArray[Any]) -> NDArray[Any]:
    for row, value in zip(rows.tolist(), names, strict=True):
        if row < 0:
            cause = checks.did_you_mean(value, map(str, known.tolist()))
            raise InputError(what, "be in the ground truth", got=repr(value), cause=cause)
    return np.unique(rows)


def pool_classes(table: Table) -> Table:
    """Put all classes into one, ``all``; rows stay in file order."""
    pooled = Categories.build(["all"])
    return table.replaced(categories=pooled, category=np.zeros(len(table), dtype=np.int32))


def joined_labels(
    tables: Sequence[BoxTable], images: Images, categories: Sequence[NDArray[np.int32]]
) -> dict[str, Any]:
    """Return the labels of whole images of several ground truths in one, as a column to replace.

    ``categories`` are, per table, the new rows of its classes. Nothing where a table has no labels to join.
    """
    parts = [
        table.image_labels.renumbered(images=images.rows(table.images.ids), categories=rows)
        for table, rows in zip(tables, categories, strict=True)
        if isinstance(table, GroundTruth) and table.image_labels is not None
    ]
    return {"image_labels": type(parts[0]).joined(parts)} if parts else {}


def stacked(tables: Sequence[Table]) -> Table:
    """Put the rows of tables one after the other, as they are numbered, with the columns that all have."""
    return _stacked(tables, {}, into_views=False)


def _stacked(tables: Sequence[Table], known: Mapping[str, Any], *, into_views: bool) -> Table:
    """Stack tables with some columns of the whole that are known; see :func:`concatenate`."""
    # Join the columns that every table has, but for those that the caller already knows.
    first = tables[0]
    filled = [table for table in tables if len(table)] or [first]  # an empty table may lack a column
    columns: dict[str, Any] = {**known}
    for column in first.schema.needed:
        if column.name not in known:
            columns[column.name] = _joined(filled, column.name, into_views=into_views)
    # A plain optional column must be in all tables or in none. Another one that some tables lack is left out.
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
                columns[column.name] = _joined(filled, column.name, into_views=into_views)
    # Columns of users stay only if every table has them.
    shared = [name for name in filled[0].columns if all(name in table.columns for table in filled)]
    user_columns = {name: np.concatenate([table.columns[name] for table in filled]) for name in shared}
    fresh = LazyColumns(tuple(column.name for column in first.schema.instances))
    return filled[0].replaced(**columns, columns=user_columns, instances=fresh)


def _joined(tables: Sequence[BoxTable], name: str, *, into_views: bool) -> NDArray[Any]:
    """Put the rows of a column one after the other; ``into_views`` frees array after array meanwhile."""
    columns = [getattr(table, name) for table in tables]
    if not into_views or len({(column.dtype, column.shape[1:]) for column in columns}) > 1:
        return np.concatenate(columns)
    whole = neighbours(columns)
    if whole is not None:
        return whole
    # Copy table by table into one array, and make each table's column a view of it, which frees the old
    # array: little is in memory twice.
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
    """Put tables of disjoint images into one, by ascending image id.

    Also returns where each row went, [N], or None where all stay in order. ``into_views`` then makes columns
    of the tables views of those of the whole, except rows of vocabularies: nothing large is held twice.
    """
    # Unite the vocabularies and renumber the rows of each table through one array per table.
    images = Images.union([table.images for table in tables])
    categories = Categories.union([table.categories for table in tables])
    classes = [categories.rows(table.categories.ids) for table in tables]
    image = np.concatenate([images.rows(table.images.ids)[table.image] for table in tables])
    category = np.concatenate([rows[table.category] for rows, table in zip(classes, tables, strict=True)])
    # Join the columns. Tables that already ascend by image, as shards do, need no sort and can become views.
    in_order = bool((image[1:] >= image[:-1]).all())
    known = {"images": images, "categories": categories, "image": image, "category": category}
    known |= joined_labels(tables, images, classes)
    whole = _stacked(tables, known, into_views=into_views and in_order)
    if in_order:
        return whole, None
    # Else sort by image; the sort is stable, so rows of an image stay in file order.
    order = stable_order(image, len(images))
    return whole.take(order), inverse_order(order)
