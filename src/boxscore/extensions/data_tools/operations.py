"""Filter, sample, split and merge tables, and rename their classes.

Conventions
-----------
- Every function returns new tables; rows keep their order.
- Images are kept or dropped whole; a split never divides the rows of an image. Images without objects stay by
  default, because detections in them count.
- Random choices depend only on the seed and the number of images, so that ground truth and detections of
  the same images are split alike.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore._utils.user_warnings import warn_user
from boxscore.data.alignment import concatenate, of_images, with_labels
from boxscore.data.lookup import chosen_images
from boxscore.data.tables import BoxTable, GroundTruth
from boxscore.data.vocabulary import Categories, Id, Images, as_ids
from boxscore.errors import InputError
from boxscore.extensions.large.joining import with_all_instances

Table = TypeVar("Table", bound=BoxTable)
RowArray = NDArray[np.int64]


def filter_objects(
    table: Table,
    *,
    images: Sequence[Id] | None = None,
    classes: Sequence[Id] | None = None,
    area: tuple[float, float] | None = None,
    crowd: bool | None = None,
    without_empty: bool = False,
) -> Table:
    """Select images, classes and rows.

    Parameters
    ----------
    table : GroundTruth or Detections
    images : sequence of ids, optional
        Only these images.
    classes : sequence of ids or names, optional
        Only these classes; images without an object of them stay.
    area : (float, float), optional
        Only rows whose area is in this range, both ends included, in square pixels. Ground truth uses
        ``area``, detections the area of the box.
    crowd : bool, optional
        True: only crowd regions; False: only other objects. Ground truth only.
    without_empty : bool, default False
        Drop images without a row, after all other filters.

    Returns
    -------
    GroundTruth or Detections

    Raises
    ------
    InputError
        When an image or class is unknown, or the area range is invalid.

    Examples
    --------
    >>> truth = GroundTruth.from_arrays([1, 2], ["cat", "dog"], [[0, 0, 9, 9], [5, 5, 9, 9]])
    >>> cats = filter_objects(truth, classes=["cat"])
    >>> len(cats), len(cats.images), len(cats.categories)
    (1, 2, 1)
    """
    # Select images and classes first, then rows.
    if images is not None:
        table = of_images(
            table, _check_known(chosen_images(images, table.images), images, "image", table.images.ids)
        )
    if classes is not None:
        rows = table.categories.rows_by_word(list(classes), what="a chosen class")
        known = np.array(table.categories.labels, dtype=object)
        table = _of_classes(table, _check_known(rows, classes, "class", known))
    # Then select rows by area, both ends included, and by the crowd flag. Last, drop images without rows if
    # asked.
    if area is not None:
        low, high = (float(bound) for bound in area)
        if not low <= high:
            raise InputError("a range of areas", "be two numbers, low and high", got=f"{low:g} to {high:g}")
        areas = table.area if isinstance(table, GroundTruth) else table.sizes.prod(axis=1)
        table = table.take((areas >= low) & (areas <= high))
    if crowd is not None:
        if not isinstance(table, GroundTruth):
            raise InputError("crowd", "be used with ground truth", got="detections")
        table = table.take(table.crowd == crowd)
    return of_images(table, np.unique(table.image).astype(np.int64)) if without_empty else table


def sample_images(table: Table, count: int, *, seed: int = 0) -> Table:
    """Draw whole images without replacement.

    Parameters
    ----------
    table : GroundTruth or Detections
    count : int
        Number of images to draw.
    seed : int, default 0

    Returns
    -------
    GroundTruth or Detections
        The drawn images, in ascending order of their ids.

    Raises
    ------
    InputError
        When there are fewer images.

    Examples
    --------
    >>> truth = GroundTruth.from_arrays([1, 2, 3], ["cat"] * 3, [[0, 0, 9, 9]] * 3)
    >>> len(sample_images(truth, 2, seed=1).images)
    2
    """
    total = len(table.images)
    checks.whole_number(count, 0, name="the number of images to draw", high=total)
    return of_images(table, np.sort(_shuffle(total, seed)[:count]))


def split_images(table: Table, shares: Mapping[str, float], *, seed: int = 0) -> dict[str, Table]:
    """Split a table by image: all rows of an image go to one split.

    Parameters
    ----------
    table : GroundTruth or Detections
    shares : mapping of str to float
        Names of the splits and their shares of the images, which add up to 1: ``{"train": 0.8, "val": 0.2}``.
    seed : int, default 0

    Returns
    -------
    dict of str to GroundTruth or Detections

    Raises
    ------
    InputError
        When shares are not positive or do not add up to 1.

    Examples
    --------
    >>> truth = GroundTruth.from_arrays([1, 2, 3, 4], ["cat"] * 4, [[0, 0, 9, 9]] * 4)
    >>> parts = split_images(truth, {"train": 0.75, "val": 0.25})
    >>> {name: len(part.images) for name, part in parts.items()}
    {'train': 3, 'val': 1}
    """
    values = np.array(list(shares.values()), dtype=np.float64)
    if not len(values) or not (values > 0).all() or abs(values.sum() - 1) > 1e-6:
        got = ", ".join(f"{name}={value:g}" for name, value in shares.items()) or "none"
        raise InputError("shares of a split", "be above 0 and add up to 1", got=got)
    total = len(table.images)
    ends = np.rint(np.cumsum(values) / values.sum() * total).astype(np.int64)
    parts = np.split(_shuffle(total, seed), ends[:-1])
    return {name: of_images(table, np.sort(rows)) for name, rows in zip(shares, parts, strict=True)}


def remap_classes(table: Table, mapping: Mapping[Any, Id | None]) -> Table:
    """Rename, merge or drop classes.

    Parameters
    ----------
    table : GroundTruth or Detections
    mapping : mapping of id or name to id, name or None
        The new name of a class, or the id of the class to merge it into; None or an empty name drops the
        class and its rows. Other classes stay.

    Returns
    -------
    GroundTruth or Detections
        A merged class has the id of the class that had its name, otherwise that of the first class.

    Raises
    ------
    InputError
        When a class is unknown.

    Examples
    --------
    >>> truth = GroundTruth.from_arrays([1, 1], ["car", "bus"], [[0, 0, 9, 9], [5, 5, 9, 9]])
    >>> remap_classes(truth, {"car": "vehicle", "bus": "vehicle"}).categories.names.tolist()
    ['vehicle']
    """
    # Find the new name of each class, [K]; a number is the id of the class whose name it takes.
    old = table.categories
    rows = old.rows_by_word(list(mapping), what="a class to rename")
    _check_known(rows, list(mapping), "class", np.array(old.labels, dtype=object))
    names: list[str | None] = old.names.tolist()
    by_id = old.index()
    for row, to in zip(rows.tolist(), mapping.values(), strict=True):
        known = by_id.get(to) if isinstance(to, int) else None
        names[row] = (None if to in (None, "") else str(to)) if known is None else old.names[known]
    # Merge classes of one new name under the class that had the name, otherwise under the first.
    touched = {names[row] for row in rows.tolist()} - {None}
    target: dict[str, int] = {}  # the row whose id a merged class keeps
    for row, (before, name) in enumerate(zip(old.names.tolist(), names, strict=True)):
        if (
            name is not None
            and name in touched
            and (name not in target or (before == name and old.names[target[name]] != name))
        ):
            target[name] = row
    # Number the remaining classes, and map the rows through one array [K + 1]; the last entry is for
    # dropped rows.
    new = [-1 if name is None else target.get(name, row) for row, name in enumerate(names)]
    left = np.unique(np.array([row for row in new if row >= 0], dtype=np.int64))
    renamed = Categories(old.ids, np.array([*names, None], dtype=object)[:-1], old.columns).take(left)
    number = np.full(len(old) + 1, -1, dtype=np.int32)
    number[left] = np.arange(len(left), dtype=np.int32)
    return _with_classes(table, renamed, number[np.array(new, dtype=np.int64)])


def merge_tables(tables: Sequence[Table]) -> Table:
    """Merge several data sets into one.

    Classes are joined by name. Ids of images, classes and annotations stay unless an earlier data set uses
    the same id: images and classes then get the next free number (text: the id with ``-2``, ...), and
    annotations are renumbered 1, 2, ...

    Parameters
    ----------
    tables : sequence of GroundTruth, or of Detections
        At least one. Detections refer to the images and classes of their ground truth.

    Returns
    -------
    GroundTruth or Detections
        Rows are grouped by image. User columns are kept if all tables have them.

    Raises
    ------
    InputError
        When tables mix pixels and fractions, or have different numbers of keypoints.

    Warns
    -----
    BoxscoreWarning
        When columns are dropped because some tables lack them.

    Examples
    --------
    >>> truth = GroundTruth.from_arrays([1], ["cat"], [[0, 0, 9, 9]])
    >>> merge_tables([truth, truth]).images.ids.tolist()
    [1, 2]
    """
    # All tables must use one unit. A single table is returned as is.
    if not tables:
        raise InputError("tables to merge", "be one at least", got="none")
    if len({table.units for table in tables}) > 1:
        cause = checks.GIVE_SIZES
        raise InputError("tables to merge", "all be in pixels", got="fractions in some", cause=cause)
    if len(tables) == 1:
        return tables[0]
    _warn_of_columns(tables)
    # Give the images of each table free ids, and join its classes to known ones by name.
    known_images: dict[Id, Any] = {}
    known_classes: dict[Id, tuple[str, int]] = {}
    parts = []
    for table in with_all_instances(tables):
        images = table.images
        ids = _free_ids(images.ids.tolist(), known_images)
        known_images |= dict.fromkeys(ids)
        merged = Images.build(
            ids, file_names=images.file_names.tolist(), sizes=images.sizes, columns=images.columns
        )
        classes, category = _merge_classes(table.categories, known_classes)
        # Renumber rows and labels of whole images through one array per vocabulary.
        image = merged.rows(as_ids(ids, name="image ids"))
        renumbered = table.replaced(
            images=merged, image=image[table.image], categories=classes, category=category[table.category]
        )
        parts.append(with_labels(renumbered, images=image, categories=category))
    # Group rows by image. Renumber annotations from 1 if an id occurs twice.
    whole: Any = concatenate(cast(Any, parts))[0]
    source = ", ".join(dict.fromkeys(table.source for table in tables))
    if isinstance(whole, GroundTruth) and len(set(whole.ids.tolist())) < len(whole):
        whole = whole.replaced(ids=np.arange(1, len(whole) + 1))
    return cast(Table, whole.replaced(source=source))


def _shuffle(count: int, seed: int) -> RowArray:
    checks.whole_number(seed, 0, name="seed")
    return np.random.default_rng(seed).permutation(count)


def _check_known(rows: NDArray[Any], names: Sequence[Id], what: str, known: NDArray[Any]) -> RowArray:
    for row, value in zip(rows.tolist(), names, strict=True):
        if row < 0:
            cause = checks.did_you_mean(value, map(str, known.tolist()))
            raise InputError(f"a chosen {what}", "be in the data set", got=repr(value), cause=cause)
    return np.unique(rows).astype(np.int64)


def _of_classes(table: Table, rows: RowArray) -> Table:
    """Return the rows of these classes; ``classes`` is ascending."""
    number = np.full(len(table.categories), -1, dtype=np.int32)
    number[rows] = np.arange(len(rows), dtype=np.int32)
    return _with_classes(table, table.categories.take(rows), number)


def _with_classes(table: Table, categories: Categories, number: NDArray[np.int32]) -> Table:
    """Return the table with other classes; ``number`` [K] is the new row of each class, -1 drops it."""
    category = number[table.category]
    rows = np.flatnonzero(category >= 0)
    chosen = table.take(rows).replaced(categories=categories, category=category[rows])
    return with_labels(chosen, categories=number)


def _free_ids(ids: Sequence[Id], taken: Mapping[Id, Any]) -> list[Id]:
    """Return the ids, with taken ones replaced by free ones."""
    used = {*taken, *ids}
    highest = max((known for known in used if isinstance(known, int)), default=0)
    numbers = itertools.count(highest + 1)
    free: list[Id] = []
    for identifier in ids:
        if identifier not in taken:
            free.append(identifier)
        elif isinstance(identifier, int):
            free.append(next(numbers))
        else:
            text = next(text for n in itertools.count(2) if (text := f"{identifier}-{n}") not in used)
            used.add(text)
            free.append(text)
    return free


def _merge_classes(
    categories: Categories, known: dict[Id, tuple[str, int]]
) -> tuple[Categories, NDArray[np.int32]]:
    """Return the classes with their merged ids, and the new row of each; add new classes to ``known``."""
    by_name = {name: identifier for identifier, name in known.items()}
    seen: dict[str, int] = {}
    keys = []
    for name in categories.names.tolist():
        keys.append((name, seen.get(name, 0)))  # two classes of a data set may share a name
        seen[name] = keys[-1][1] + 1
    ids = categories.ids.tolist()
    new = [identifier for identifier, key in zip(ids, keys, strict=True) if key not in by_name]
    free = dict(zip(new, _free_ids(new, known), strict=True))
    pairs = zip(ids, keys, strict=True)
    chosen = [by_name.get(key, free.get(identifier, identifier)) for identifier, key in pairs]
    known.update(dict(zip(chosen, keys, strict=True)))
    whole = Categories.build(chosen, names=categories.names.tolist(), columns=categories.columns)
    return whole, whole.rows(as_ids(chosen, name="category ids"))


def _warn_of_columns(tables: Sequence[Table]) -> None:
    names: list[set[str]] = [{*table.columns} | {*table.images.columns} for table in tables]
    partly = set[str]().union(*names) - names[0].intersection(*names)
    if partly:
        warn_user(
            f"columns that not all of the merged tables have are left out: {', '.join(sorted(partly))}."
        )
