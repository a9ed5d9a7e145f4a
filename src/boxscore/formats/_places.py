"""Finding the ground truth's images and classes from what a results file calls them.

Conventions
-----------
- An image is found by its id. Where no id fits, ``"000012"`` and ``12`` are taken for each other, and a
  name or path stands for the image with that file name, with or without its ending.
- A results file that has images and categories of its own (a COCO object) is matched by file name and by
  class name, because such files are numbered on their own.
- An unknown image is an error. An unknown class is left out and counted: every reference tool does that,
  silently.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.checks import Place
from boxscore.data.tables import GroundTruth
from boxscore.data.vocabulary import Categories, Id, Images
from boxscore.errors import InputError

__all__ = ["OwnVocabulary", "resolve_categories", "resolve_images"]


class OwnVocabulary(NamedTuple):
    """The images and categories that a results file itself declares."""

    images: Images
    categories: Categories


def resolve_images(
    ids: NDArray[Any], ground_truth: GroundTruth, *, own: OwnVocabulary | None = None, place: Place
) -> NDArray[np.int32]:
    """Return the image row of each detection, [D].

    Raises
    ------
    InputError
        When an image is unknown.
    """
    images = ground_truth.images
    if own is not None and len(own.images):
        rows = own.images.rows(ids)
        names = [
            identifier if name is None else name
            for name, identifier in zip(own.images.file_names.tolist(), own.images.ids.tolist(), strict=True)
        ]
        translated = _by_any_name(names, images)
        rows = np.where(rows >= 0, np.append(translated, -1)[rows], -1).astype(np.int32)
    else:
        rows = images.rows(ids)
        if len(rows) and rows.min() < 0:
            unique = list(dict.fromkeys(ids.tolist()))
            found = dict(zip(unique, _by_any_name(unique, images).tolist(), strict=True))
            rows = np.fromiter((found[identifier] for identifier in ids.tolist()), np.int32, len(ids))
    if len(rows) and rows.min() < 0:
        row = int(np.argmin(rows))
        unknown = len(set(ids[rows < 0].tolist()))
        raise InputError(
            "image_id",
            "be in the ground truth",
            got=f"{ids.tolist()[row]!r}",
            place=place(row),
            cause=f"{unknown} such image{'s' * (unknown > 1)} in all; results of another split?",
        )
    return rows


def _by_any_name(names: Iterable[Id], images: Images) -> NDArray[np.int32]:
    """Find images by id, by a number's other spelling, or by file name."""
    known: dict[Id, int] = {}
    for row, (identifier, file_name) in enumerate(
        zip(images.ids.tolist(), images.file_names.tolist(), strict=True)
    ):
        for key in _spellings(identifier, file_name):
            known.setdefault(key, row)
    known.update(images.index())
    return np.array([_first_known(name, known) for name in names], dtype=np.int32)


def _spellings(identifier: Id, file_name: str | None) -> list[Id]:
    keys: list[Id] = [identifier]
    if isinstance(identifier, str) and identifier.isdecimal():
        keys.append(int(identifier))
    if file_name is not None:
        path = PurePosixPath(file_name.replace("\\", "/"))
        keys += [file_name, path.name, path.stem]
    return keys


def _first_known(name: Id, known: dict[Id, int]) -> int:
    if name in known:
        return known[name]
    if isinstance(name, str):
        path = PurePosixPath(name.replace("\\", "/"))
        for key in (path.name, path.stem):
            if key in known:
                return known[key]
        if name.isdecimal() and int(name) in known:
            return known[int(name)]
    return -1


def resolve_categories(
    ids: NDArray[Any], ground_truth: GroundTruth, *, own: OwnVocabulary | None = None
) -> tuple[NDArray[np.int32], dict[str, int]]:
    """Return the category row of each detection, -1 for an unknown class, and the unknown ones' counts.

    Returns
    -------
    rows : ndarray of int32, [D]
    left_out : dict of str to int
    """
    categories = ground_truth.categories
    if own is not None and len(own.categories):
        own_rows = own.categories.rows(ids)
        by_name: dict[Id, int] = {}
        for row, name in enumerate(categories.names.tolist()):
            by_name.setdefault(name, row)
        names = own.categories.names.tolist()
        translated = np.array([by_name.get(name, -1) for name in names], dtype=np.int32)
        rows = np.where(own_rows >= 0, np.append(translated, -1)[own_rows], -1).astype(np.int32)
        labels = [names[row] if row >= 0 else str(value) for row, value in zip(own_rows, ids, strict=True)]
    else:
        rows = categories.rows(ids)
        if len(rows) and rows.min() < 0 and ids.dtype == object:
            unique = list(dict.fromkeys(ids.tolist()))
            found = dict(zip(unique, categories.rows_by_id_or_name(unique).tolist(), strict=True))
            rows = np.fromiter((found[value] for value in ids.tolist()), np.int32, len(ids))
        labels = []
    if not len(rows) or rows.min() >= 0:
        return rows, {}
    unknown = np.flatnonzero(rows < 0).tolist()
    values = labels or ids.tolist()
    return rows, dict(Counter(str(values[row]) for row in unknown))
