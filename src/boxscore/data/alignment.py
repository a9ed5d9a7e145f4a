"""Ids and names to rows: aligning, choosing, pooling and concatenating the images and classes of tables.

Conventions
-----------
- Images are looked up by id. Where no id matches, ``"000012"`` and ``12`` are the same, and a name or path
  stands for the image with that file name, with or without its ending. An unknown image is an error.
- Classes are looked up by id, and strings also by name. Detections of an unknown class are left out and
  counted; every reference tool drops them silently.
- A results file that has images and categories of its own (a COCO object) is matched by file name and by
  class name, because such files are numbered on their own.
- Every function that makes tables makes new ones; row order inside a table is kept, because it is part of the
  answer.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore._utils.checks import Place
from boxscore._utils.ordering import inverse_order, stable_order
from boxscore.data.image_labels import ImageLabels
from boxscore.data.lazy import LazyColumns
from boxscore.data.masks import Masks
from boxscore.data.tables import BoxTable, Detections, GroundTruth
from boxscore.data.vocabulary import Categories, Id, Images, Vocabulary, as_ids
from boxscore.errors import BoxscoreWarning, InputError

__all__ = [
    "OwnVocabulary",
    "align",
    "as_numbers",
    "concatenate",
    "find_categories",
    "find_images",
    "image_rows_by_name",
    "joined_labels",
    "other_spellings",
    "pool_classes",
    "select",
    "spelled_as",
    "warn_left_out",
    "with_labels",
]

Table = TypeVar("Table", bound=BoxTable)

FEW_UNKNOWN = 0.1
"""Images that the ground truth does not have, as a share of those it has, that are not another split's."""

LONGEST_NUMBER = 1000
"""Digits up to which text is read as a number."""


LONGEST = 19
"""Digits of a file's name from which it is no number."""


class OwnVocabulary(NamedTuple):
    """The images and categories that a results file itself declares."""

    images: Images
    categories: Categories


def find_images(
    ids: NDArray[Any],
    images: Images,
    *,
    own: Images | None = None,
    file_names: NDArray[Any] | None = None,
    hits: Callable[[NDArray[np.int32]], int] | None = None,
    place: Place,
) -> NDArray[np.int32]:
    """Return the image row of each id, int32 [D].

    ``own`` translates an id into its file name. A file name of its own stands for the image that alone has
    it, whatever the id. Where numbers are ids of images and the names of others, the more ``hits`` decide.
    """
    if own is not None and len(own):
        names = [
            identifier if name is None else name
            for name, identifier in zip(own.file_names.tolist(), own.ids.tolist(), strict=True)
        ]
        rows = _through(own, ids, _by_any_name(names, images))
    elif file_names is not None and len(ids):
        rows = _by_file_name(file_names, images)
        without = np.flatnonzero(rows < 0)
        if len(without):
            rows[without] = find_images(
                ids[without], images, hits=None, place=lambda row: place(int(without[row]))
            )
    else:
        rows = images.rows(ids)
        by_stem = _rows_of_stems(ids, images) if len(ids) else None
        if by_stem is not None and (by_stem != rows).any():
            return _settled(ids, rows, by_stem, hits, place)
        if len(rows) and rows.min() < 0:
            rows = _each_once(ids, lambda names: _by_any_name(names, images))
    _refuse_unknown(rows, ids, place)
    return rows


def _by_file_name(names: NDArray[Any], images: Images) -> NDArray[np.int32]:
    """Return the row of the image that alone has a file name, with or without its folder; -1 for none."""
    known: dict[Id, int] = {}
    for row, file_name in enumerate(images.file_names.tolist()):
        if file_name is not None:
            path = PurePosixPath(file_name.replace("\\", "/"))
            for key in {file_name, path.name}:
                known[key] = row if key not in known else -1

    def find(values: list[Id]) -> NDArray[np.int32]:
        rows = []
        for value in values:
            name = value if isinstance(value, str) else ""
            row = known.get(name, -1)
            rows.append(row if row >= 0 else known.get(PurePosixPath(name.replace("\\", "/")).name, -1))
        return np.array(rows, dtype=np.int32)

    return _each_once(names, find)


def _rows_of_stems(ids: NDArray[Any], images: Images) -> NDArray[np.int32] | None:
    """Return the image row of each number that is a file's name without ending; None unless all are."""
    if ids.dtype == object or images.ids.dtype == object:
        return None
    names = images.file_names.tolist()
    equal = _numbers_of_equal_names(names)
    if equal is not None:
        order = np.argsort(equal)
        if (np.diff(equal[order]) <= 0).any():
            return None
        at = Vocabulary(equal[order]).rows(ids)
        return None if at.min() < 0 else order.astype(np.int32)[at]
    named = [row for row, name in enumerate(names) if name is not None]
    stems = _stems(images.file_names[named].tolist())
    if not all(map(str.isdecimal, stems)):
        chosen = [place for place, stem in enumerate(stems) if stem.isdecimal()]
        named, stems = [named[place] for place in chosen], [stems[place] for place in chosen]
    numbers = [int(stem) if len(stem) < LONGEST else -1 for stem in stems]
    if not numbers or len(set(numbers)) < len(numbers):
        return None
    order = np.argsort(numbers)
    at = Vocabulary(np.array(numbers, dtype=np.int64)[order]).rows(ids)
    return None if at.min() < 0 else np.array(named, dtype=np.int32)[order][at]


def _numbers_of_equal_names(names: list[Any]) -> NDArray[np.int64] | None:
    """Return the numbers of names that are equally many digits and one ending; None for others."""
    digits, dot, ending = names[0].partition(".") if names and isinstance(names[0], str) else ("", "", "")
    length = len(digits) + 1 + len(ending)
    if not (dot and 0 < len(digits) < LONGEST and "." not in ending) or None in names:
        return None
    together = "".join(names)
    if len(together) != length * len(names) or not together.isascii():
        return None
    text = np.frombuffer(together.encode("ascii"), dtype=np.uint8).reshape(len(names), length)
    tail = np.frombuffer(f".{ending}".encode("ascii"), dtype=np.uint8)
    if not (text[:, len(digits) :] == tail).all():
        return None
    values = text[:, : len(digits)] - np.uint8(ord("0"))
    if values.max() > 9:
        return None
    return values @ 10 ** np.arange(len(digits) - 1, -1, -1, dtype=np.int64)


def _stems(names: list[str]) -> list[str]:
    """Return file names without folder and ending."""
    together = "".join(names)
    if "/" in together or "\\" in together:
        names = [name.replace("\\", "/").rpartition("/")[2] for name in names]
    return [name.rpartition(".")[0] or name for name in names]


def _settled(
    ids: NDArray[Any],
    by_id: NDArray[np.int32],
    by_stem: NDArray[np.int32],
    hits: Callable[[NDArray[np.int32]], int] | None,
    place: Place,
) -> NDArray[np.int32]:
    """Decide whether numbers are ids or file names, where all are names and differ from the ids."""
    if by_id.min() < 0:
        return by_stem
    as_ids_, as_names = (0, 0) if hits is None else (hits(by_id), hits(by_stem))
    source = place(0).partition(" of ")[2]
    counts = (
        f"the best detections lie on {as_ids_:,} annotations read as ids, and on {as_names:,} as file names"
    )
    if as_names > as_ids_ and as_names < 2 * as_ids_:
        raise InputError(
            "image_id",
            "tell one image from another",
            got="numbers that are ids of some images and file names of others",
            place=source,
            cause=f"{counts}; give each record its file_name",
        )
    read_as_names = as_names > as_ids_
    if read_as_names or as_ids_ < 2 * as_names or not as_ids_:
        row = int(np.argmax(by_id != by_stem))
        warnings.warn(
            f"{source}: image_id {ids[row]} is the id of one image and the file name of another; read as "
            f"{'file names' if read_as_names else 'ids'}: {counts}.",
            BoxscoreWarning,
            stacklevel=6,
        )
    return by_stem if read_as_names else by_id


def image_rows_by_name(ids: NDArray[Any], images: Images) -> NDArray[np.int32]:
    """Return the image row of each id as :func:`find_images` does, int32 [D]; -1 for an unknown one."""
    rows = images.rows(ids)
    return _each_once(ids, lambda names: _by_any_name(names, images)) if (rows < 0).any() else rows


def find_categories(
    ids: NDArray[Any], categories: Categories, *, own: Categories | None = None
) -> tuple[NDArray[np.int32], dict[str, int]]:
    """Return the category row of each id, int32 [D], -1 where unknown, and the count of each unknown id."""
    names: NDArray[Any] | None = None
    if own is not None and len(own):
        translated = categories.rows_of_classes(own)
        rows = _through(own, ids, translated)
        own_rows = own.rows(ids)
        if len(rows) and rows.min() < -1:
            categories.refuse_several(own.names.tolist()[int(own_rows[np.argmin(rows)])])
        names = ids.astype(object)
        names[own_rows >= 0] = own.names[own_rows[own_rows >= 0]]
    else:
        rows = categories.rows(ids)
        if len(rows) and rows.min() < 0 and ids.dtype == object:
            rows = _each_once(ids, categories.rows_by_id_or_name)
    unknown = rows < 0
    return rows, dict(Counter(map(str, (ids if names is None else names)[unknown].tolist())))


def spelled_as(
    ids: NDArray[Any], known: Iterable[Id], *, names: Iterable[Id] = ()
) -> tuple[NDArray[Any], int]:
    """Write ids as known ones of the same value are written; return them and how many changed."""
    known = list(known)
    if ids.dtype != object and not any(issubclass(kind, str) for kind in set(map(type, known))):
        return ids, 0
    given = ids.tolist()
    other = other_spellings(given, known, names=names)
    if not other:
        return ids, 0
    written = as_ids([other.get(identifier, identifier) for identifier in given], name="ids")
    return written, sum(identifier in other for identifier in given)


def other_spellings(ids: Iterable[Id], known: Sequence[Id], *, names: Iterable[Id] = ()) -> dict[Id, Id]:
    """Map each id that is not known to the known one that has its value, where there is exactly one.

    ``"2299"`` has the value of 2299, and 7 that of ``"07"``. ``names`` are not looked up.
    """
    by_value: dict[int, Id | None] = {}
    for identifier in known:
        value = _value(identifier)
        if value is not None:
            by_value[value] = None if value in by_value else identifier
    settled = {*known, *names}
    other = {}
    for identifier in dict.fromkeys(ids):
        value = None if identifier in settled else _value(identifier)
        written = None if value is None else by_value.get(value)
        if written is not None:
            other[identifier] = written
    return other


def as_numbers(ids: NDArray[Any]) -> tuple[NDArray[Any], int]:
    """Write text as the number it spells, where some ids are numbers, and all text spells others.

    Returns the ids and how many changed.
    """
    if ids.dtype != object:
        return ids, 0
    given = ids.tolist()
    texts = sum(isinstance(identifier, str) for identifier in given)
    if not 0 < texts < len(given):
        return ids, 0
    numbers = [_value(identifier) for identifier in given]
    if None in numbers or len(set(numbers)) < len(set(given)):
        return ids, 0
    return as_ids(numbers, name="ids"), texts


def _value(identifier: Id) -> int | None:
    """Return the number that an id is or spells; None where it is other text."""
    if isinstance(identifier, int):
        return identifier
    return int(identifier) if len(identifier) <= LONGEST_NUMBER and _is_decimal(identifier) else None


def _is_decimal(text: str) -> bool:
    return text.isascii() and text.isdecimal()


def _through(own: Vocabulary, ids: NDArray[Any], translated: NDArray[np.int32]) -> NDArray[np.int32]:
    """Look ids up in their own vocabulary, whose rows correspond to the ``translated`` ones."""
    rows = own.rows(ids)
    return np.where(rows >= 0, np.append(translated, -1)[rows], -1).astype(np.int32)


def _each_once(ids: NDArray[Any], find: Callable[[list[Id]], NDArray[np.int32]]) -> NDArray[np.int32]:
    """Look up each distinct id once."""
    unique = list(dict.fromkeys(ids.tolist()))
    known = dict(zip(unique, find(unique).tolist(), strict=True))
    return np.fromiter((known[identifier] for identifier in ids.tolist()), np.int32, len(ids))


def _refuse_unknown(rows: NDArray[np.int32], ids: NDArray[Any], place: Place) -> None:
    if not len(rows) or rows.min() >= 0:
        return
    row = int(np.argmin(rows))
    unknown, known = len(set(ids[rows < 0].tolist())), len(set(ids[rows >= 0].tolist()))
    why = "results of another split?"
    if unknown <= known * FEW_UNKNOWN:
        why = "images without objects? The ground truth must list them (in a table: a row without a box)"
    raise InputError(
        "image_id",
        "be in the ground truth",
        got=f"{ids.tolist()[row]!r}",
        place=place(row),
        cause=f"{unknown} such image{'s' * (unknown > 1)} in all; {why}",
    )


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
    value = _value(identifier)
    if value is not None:
        keys.append(value)
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
        value = _value(name)
        if value is not None and value in known:
            return known[value]
    return -1


def align(detections: Detections, ground_truth: GroundTruth) -> Detections:
    """Renumber detections into the ground truth's vocabularies.

    Detections of classes that the ground truth does not have are left out, with a warning, and counted
    in ``left_out``.
    """
    if detections.units != ground_truth.units and len(detections) and len(ground_truth):
        raise InputError(
            "ground truth and detections",
            "be both in pixels, or both in fractions of the image's size",
            got=f"{ground_truth.units} and {detections.units}",
            cause="give the image sizes (--image-sizes FILE.csv), so that both are in pixels",
        )
    images, categories = ground_truth.images, ground_truth.categories
    if detections.images.same_as(images) and detections.categories.same_as(categories):
        return detections.replaced(images=images, categories=categories)
    own = detections.images.ids
    known = images.rows(own)
    if len(known) and known.min() < 0:
        known = _by_any_name(own.tolist(), images)
    image = known[detections.image] if len(detections) else detections.image
    _refuse_unknown(image, own[detections.image], lambda row: f"row {row} of {detections.source}")
    rows = _rows_of_own_classes(detections, categories)
    category = rows[detections.category] if len(detections) else detections.category
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


def _rows_of_own_classes(detections: Detections, categories: Categories) -> NDArray[np.int32]:
    """Return the class of each class of detections, int32 [K]: by id, unless another class has its name."""
    own = detections.categories
    rows = np.full(len(own), -1, dtype=np.int32)
    used = np.flatnonzero(np.bincount(detections.category, minlength=len(own)))
    ids = [own.ids.tolist()[row] for row in used.tolist()]
    rows[used] = categories.rows_by_id_or_name(ids, place=detections.source)
    by_name = categories.rows_of_classes(own)
    named = own.names != [str(identifier) for identifier in own.ids.tolist()]
    other = np.flatnonzero((by_name >= 0) & (by_name != rows) & named)
    rows[other] = by_name[other]
    return rows


def warn_left_out(
    left_out: Mapping[str, int], source: str, *, all_of_them: bool = False, stacklevel: int = 3
) -> None:
    """Warn of detections whose class the ground truth does not have."""
    if left_out:
        total = sum(left_out.values())
        names = ", ".join(list(left_out)[:10]) + (", ..." if len(left_out) > 10 else "")
        warnings.warn(
            f"{source}: {total} detection{'s' * (total > 1)} left out, of {len(left_out)} "
            f"class{'es' * (len(left_out) > 1)} that the ground truth does not have: {names}."
            + " None is left; are classes numbered differently? See --class-map and class_map=."
            * all_of_them,
            BoxscoreWarning,
            stacklevel=stacklevel + 1,
        )


def select(
    ground_truth: GroundTruth,
    detections: Detections,
    *,
    images: Sequence[Id] | None = None,
    classes: Sequence[Id] | None = None,
) -> tuple[GroundTruth, Detections]:
    """Keep only these images (by id) and these classes (by id or name); None keeps all."""
    known_images, known_classes = ground_truth.images, ground_truth.categories
    image_rows = np.arange(len(known_images))
    category_rows = np.arange(len(known_classes))
    if images is not None:
        image_rows = _chosen(known_images.rows(list(images)), images, "image", known_images.ids)
    if classes is not None:
        rows = known_classes.rows_asked(list(classes), what="a chosen class")
        category_rows = _chosen(rows, classes, "class", np.array(known_classes.labels, dtype=object))
    kept_images, kept_classes = known_images.take(image_rows), known_classes.take(category_rows)
    image_numbers = _renumber(image_rows, len(known_images))
    category_numbers = _renumber(category_rows, len(known_classes))

    def chosen(table: Table) -> Table:
        image, category = image_numbers[table.image], category_numbers[table.category]
        kept = np.flatnonzero((image >= 0) & (category >= 0))
        return dataclasses.replace(
            table.take(kept),
            images=kept_images,
            categories=kept_classes,
            image=image[kept],
            category=category[kept],
        )

    truth = with_labels(chosen(ground_truth), images=image_numbers, categories=category_numbers)
    return truth, chosen(detections)


def with_labels(table: Table, **numbers: NDArray[np.int32]) -> Table:
    """Return the table with its labels of whole images under new row numbers; -1 leaves a label out.

    ``images`` [I] and ``categories`` [K] are the new rows of the old ones, where they change.
    """
    if not isinstance(table, GroundTruth) or table.image_labels is None:
        return table
    return table.replaced(image_labels=table.image_labels.renumbered(**numbers))


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
    return {"image_labels": ImageLabels.joined(parts)} if parts else {}


def concatenate(tables: Sequence[Table]) -> tuple[Table, NDArray[np.intp]]:
    """Put tables of disjoint images into one, by ascending image id; also return where each row went, [N]."""
    first = tables[0]
    images = Images.union([table.images for table in tables])
    categories = Categories.union([table.categories for table in tables])
    filled = [table for table in tables if len(table)] or [first]  # an empty table may lack a column
    columns: dict[str, Any] = {
        column.name: np.concatenate([getattr(table, column.name) for table in filled])
        for column in first.schema.needed
    }
    for column in first.schema.instances:
        parts = [table.instances[column.name] for table in filled]
        if all(part is not None for part in parts):
            join = Masks.concatenate if column.form == "masks" else np.concatenate
            columns[column.name] = join(parts)
    shared = [name for name in filled[0].columns if all(name in table.columns for table in filled)]
    own = {name: np.concatenate([table.columns[name] for table in filled]) for name in shared}
    columns["image"] = np.concatenate([images.rows(table.images.ids)[table.image] for table in tables])
    classes = [categories.rows(table.categories.ids) for table in tables]
    columns["category"] = np.concatenate(
        [rows[table.category] for rows, table in zip(classes, tables, strict=True)]
    )
    columns |= joined_labels(tables, images, classes)
    order = stable_order(columns["image"], len(images))
    fresh = LazyColumns(tuple(column.name for column in first.schema.instances))
    whole = filled[0].replaced(**columns, columns=own, instances=fresh, images=images, categories=categories)
    return whole.take(order), inverse_order(order)
