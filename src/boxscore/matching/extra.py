"""Take, merge and renumber extra columns of matches, by the axis that each declares.

Conventions
-----------
- An extra column is one that only one rule needs. The rule declares it
  (:mod:`boxscore.protocols.extra_columns`), and ``Matches.extra`` maps names to arrays. Functions here never
  name a column: they find its declaration by name and act by axis, ``detection``, ``pair``, ``truth`` or
  ``class_image``.
- A column of the axis ``class_image`` is three arrays: its values, and the row numbers of its classes and
  images.
- In the packed form of saved parts, columns of bits have the axis ``outcome``: a row for each combination of
  bits that occurs.
- A name that no rule declares is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore.protocols.extra_columns import ExtraColumn
from boxscore.protocols.protocol import EXTRA_COLUMNS

Extra = Mapping[str, NDArray[Any]]
Take = Callable[[NDArray[Any]], NDArray[Any]]
"""A function that returns some rows of an array, in any order."""


def check_declared(extra: Extra) -> None:
    """Refuse names that no rule declares."""
    known = {name for column in EXTRA_COLUMNS.values() for name in column.names}
    for name in extra:
        if name not in known:
            raise ValueError(f"the unknown column {name}")


def _declared(extra: Extra) -> Iterator[ExtraColumn]:
    """Yield the declarations of the columns that are there."""
    return (EXTRA_COLUMNS[name] for name in extra if name in EXTRA_COLUMNS)


def _counts(extra: Extra) -> Iterator[ExtraColumn]:
    """Yield the declarations of the columns that are there and have the axis ``class_image``."""
    return (column for column in _declared(extra) if column.axis == "class_image")


def taken(extra: Extra, rows: Mapping[str, Take], *, packed: bool = False) -> dict[str, NDArray[Any]]:
    """Take rows of the columns on the axes in ``rows``; other columns stay as they are."""
    columns = dict(extra)
    for column in _declared(extra):
        axis = "outcome" if packed and column.kind == "bits" else column.axis
        if axis in rows:
            columns[column.name] = rows[axis](extra[column.name])
    return columns


def of_rows(extra: Extra) -> dict[str, NDArray[Any]]:
    """Leave out the columns of classes and images: they are valid only for all detections."""
    return {column.name: extra[column.name] for column in _declared(extra) if column.axis != "class_image"}


def of_images(extra: Extra, chosen: NDArray[np.bool_], number: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Take chosen images [I] from the columns of classes and images; ``number`` [I] renumbers them."""
    columns: dict[str, NDArray[Any]] = {}
    for column in _counts(extra):
        category, image, values = (extra[name] for name in column.names)
        rows = np.flatnonzero(chosen[image])
        some = category[rows], number[image[rows]], values[rows]
        columns |= dict(zip(column.names, some, strict=True))
    return columns


def of_classes(extra: Extra, low: int, high: int) -> dict[str, NDArray[Any]]:
    """Cut the columns of classes and images to the classes in [low, high), renumbered from 0."""
    columns = dict(extra)
    for column in _counts(extra):
        category, image, values = (extra[name] for name in column.names)
        of_range = slice(*np.searchsorted(category, [low, high]).tolist())
        some = category[of_range].astype(np.int64) - low, image[of_range], values[of_range]
        columns |= dict(zip(column.names, some, strict=True))
    return columns


def image_numbers(extra: Extra) -> list[NDArray[np.integer[Any]]]:
    """Return the image row numbers of each column of classes and images."""
    return [extra[column.names[1]] for column in _counts(extra)]


def renumbered(
    extra: Extra, images: NDArray[Any] | None, categories: NDArray[Any] | None = None
) -> dict[str, NDArray[Any]]:
    """Replace the image and class row numbers by those that they map to; None leaves them unchanged."""
    columns = dict(extra)
    for column in _counts(extra):
        for name, new in zip(column.names, (categories, images), strict=False):
            if new is not None:
                columns[name] = new[extra[name]]
    return columns


def merged_extra(parts: Sequence[dict[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    """Concatenate the columns of parts that have the same columns and number classes and images alike.

    A column of classes and images is left out if a part lacks it. The parts are emptied to save memory.
    """
    counted = {name for part in parts for column in _counts(part) for name in column.names}
    names = {name: None for part in parts for name in part}
    joined = [name for name in names if name not in counted or all(name in part for part in parts)]
    columns = {name: np.concatenate([part.pop(name) for part in parts]) for name in joined}
    for column in _counts(columns):
        category, image = (columns[name] for name in column.names[:2])
        order = np.lexsort((image, category))
        columns |= {name: columns[name][order] for name in column.names}
    return columns


# ---------------------------------------------------------------- packed


def extra_in_parts(extra: Extra) -> dict[str, NDArray[Any]]:
    """Keep the columns that scores read; whole numbers get the smallest type that holds them."""
    columns: dict[str, NDArray[Any]] = {}
    for column in _declared(extra):
        if column.in_parts:
            *keys, name = column.names
            columns |= {key: narrowed(extra[key]) for key in keys}
            columns[name] = narrowed(extra[name]) if column.kind == "whole" else extra[name]
    return columns


def bits_of(extra: Extra) -> list[str]:
    """Return the names of the columns of bits."""
    return [column.name for column in _declared(extra) if column.kind == "bits"]


def narrowed(values: NDArray[Any]) -> NDArray[np.unsignedinteger[Any]]:
    """Return whole numbers of at least 0 in the smallest unsigned type that holds them."""
    return values.astype(np.min_scalar_type(int(values.max(initial=0))), copy=False)
