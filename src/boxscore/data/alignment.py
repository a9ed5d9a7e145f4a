"""Bringing two tables together: one vocabulary, chosen images and classes, pooled classes.

Conventions
-----------
Every function returns new tables; row order inside a table is kept, because it is part of the answer.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore._utils.ordering import stable_order
from boxscore.data.masks import Masks
from boxscore.data.tables import BoxTable, Detections, GroundTruth
from boxscore.data.vocabulary import Categories, Id, Images
from boxscore.errors import BoxscoreWarning, InputError

__all__ = ["align", "concatenate", "pool_classes", "select", "warn_left_out"]

Table = TypeVar("Table", bound=BoxTable)


def align(detections: Detections, ground_truth: GroundTruth) -> Detections:
    """Renumber detections into the ground truth's vocabularies.

    Detections of classes that the ground truth does not have are left out, with a warning, and counted
    in ``left_out``.

    Parameters
    ----------
    detections : Detections
    ground_truth : GroundTruth

    Returns
    -------
    Detections

    Raises
    ------
    InputError
        When a detection's image is not in the ground truth.
    """
    images, categories = ground_truth.images, ground_truth.categories
    if detections.images.same_as(images) and detections.categories.same_as(categories):
        return dataclasses.replace(detections, images=images, categories=categories)
    image = _translate(images.rows(detections.images.ids), detections.image)
    if len(image) and image.min() < 0:
        row = int(np.argmin(image))
        raise InputError(
            "image id",
            "be in the ground truth",
            got=repr(detections.images.ids.tolist()[detections.image[row]]),
            place=f"row {row} of {detections.source}",
            cause="results of another split?",
        )
    category = _translate(
        categories.rows_by_id_or_name(detections.categories.ids.tolist()), detections.category
    )
    unknown, counts = np.unique(detections.category[category < 0], return_counts=True)
    labels = detections.categories.labels
    left_out = {labels[row]: int(count) for row, count in zip(unknown.tolist(), counts.tolist(), strict=True)}
    warn_left_out(left_out, detections.source)
    kept = np.flatnonzero(category >= 0)
    return dataclasses.replace(
        detections.take(kept),
        images=images,
        categories=categories,
        image=image[kept],
        category=category[kept],
        left_out={**detections.left_out, **left_out},
    )


def warn_left_out(left_out: Mapping[str, int], source: str, *, stacklevel: int = 3) -> None:
    """Warn of detections whose class the ground truth does not have."""
    if left_out:
        total = sum(left_out.values())
        names = ", ".join(list(left_out)[:10]) + (", ..." if len(left_out) > 10 else "")
        warnings.warn(
            f"{source}: {total} detection{'s' * (total > 1)} left out, of {len(left_out)} "
            f"class{'es' * (len(left_out) > 1)} that the ground truth does not have: {names}.",
            BoxscoreWarning,
            stacklevel=stacklevel + 1,
        )


def _translate(mapping: NDArray[np.int32], rows: NDArray[np.int32]) -> NDArray[np.int32]:
    return mapping[rows] if len(rows) else rows


def select(
    ground_truth: GroundTruth,
    detections: Detections,
    *,
    images: Sequence[Id] | None = None,
    classes: Sequence[Id] | None = None,
) -> tuple[GroundTruth, Detections]:
    """Keep only these images (by id) and these classes (by id or name).

    Parameters
    ----------
    ground_truth, detections : GroundTruth, Detections
        With the same vocabularies.
    images, classes : sequence of ids, optional
        None keeps all.

    Returns
    -------
    GroundTruth, Detections

    Raises
    ------
    InputError
        When a chosen image or class is not in the ground truth.
    """
    known_images, known_classes = ground_truth.images, ground_truth.categories
    image_rows = np.arange(len(known_images))
    category_rows = np.arange(len(known_classes))
    if images is not None:
        image_rows = _chosen(known_images.rows(list(images)), images, "image", known_images.ids)
    if classes is not None:
        rows = known_classes.rows_by_id_or_name(list(classes))
        category_rows = _chosen(rows, classes, "class", known_classes.names)
    kept_images, kept_classes = known_images.take(image_rows), known_classes.take(category_rows)
    chosen = []
    for table in (ground_truth, detections):
        image = _renumber(image_rows, len(known_images))[table.image]
        category = _renumber(category_rows, len(known_classes))[table.category]
        kept = np.flatnonzero((image >= 0) & (category >= 0))
        chosen.append(
            dataclasses.replace(
                table.take(kept),
                images=kept_images,
                categories=kept_classes,
                image=image[kept],
                category=category[kept],
            )
        )
    return chosen[0], chosen[1]  # type: ignore[return-value]


def _renumber(rows: NDArray[Any], count: int) -> NDArray[np.int32]:
    numbers = np.full(count, -1, dtype=np.int32)
    numbers[rows] = np.arange(len(rows), dtype=np.int32)
    return numbers


def _chosen(rows: NDArray[np.int32], asked: Sequence[Id], what: str, known: NDArray[Any]) -> NDArray[Any]:
    for row, value in zip(rows.tolist(), asked, strict=True):
        if row < 0:
            cause = checks.did_you_mean(value, map(str, known.tolist()[:1000]))
            raise InputError(f"a chosen {what}", "be in the ground truth", got=repr(value), cause=cause)
    return np.unique(rows)


def pool_classes(table: Table) -> Table:
    """Put all classes into one, ``all``; rows stay in file order."""
    pooled = Categories.build(["all"])
    return dataclasses.replace(table, categories=pooled, category=np.zeros(len(table), dtype=np.int32))


def concatenate(tables: Sequence[Table]) -> tuple[Table, NDArray[np.intp]]:
    """Put tables of disjoint images into one, image by image as their ids ascend.

    Parameters
    ----------
    tables : sequence of tables
        Of one kind, with the same optional columns.

    Returns
    -------
    table : table
        With the united vocabularies.
    rows : ndarray of intp, [N]
        Where each row went, the tables taken one after the other.
    """
    first = tables[0]
    images = Images.union([table.images for table in tables])
    categories = Categories.union([table.categories for table in tables])
    filled = [table for table in tables if len(table)] or [first]  # an empty table may lack a column
    columns: dict[str, Any] = {}
    for field in dataclasses.fields(first):
        values = [getattr(table, field.name) for table in filled]
        if isinstance(values[0], np.ndarray):
            columns[field.name] = np.concatenate(values)
        elif isinstance(values[0], Masks):
            columns[field.name] = Masks.concatenate(values)
    for name, vocabulary in (("image", images), ("category", categories)):
        columns[name] = np.concatenate(
            [
                vocabulary.rows(getattr(table, "images" if name == "image" else "categories").ids)[
                    getattr(table, name)
                ]
                for table in tables
            ]
        )
    order = stable_order(columns["image"], len(images))
    rows = np.empty_like(order)
    rows[order] = np.arange(len(order))
    whole = dataclasses.replace(filled[0], **columns, images=images, categories=categories)
    return whole.take(order), rows
