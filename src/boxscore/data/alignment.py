"""Ids and names to rows: aligning, choosing, pooling and concatenating the images and classes of tables.

Conventions
-----------
- Images are looked up by id, then by name (:mod:`boxscore.data.image_names`), then by number: ``"000012"``
  and ``12`` are the same. An unknown image is an error, and so is a name that two images can have.
- Classes are looked up by id, and strings also by name. Detections of an unknown class are left out and
  counted; every reference tool drops them silently.
- A results file that has images and categories of its own (a COCO object) is matched by file name and by
  class name, because such files are numbered on their own.
- Every function that makes tables makes new ones; row order inside a table is kept, because it is part of the
  answer.
"""

from __future__ import annotations

import dataclasses
import itertools
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore._utils.checks import Place
from boxscore._utils.ordering import inverse_order, stable_order
from boxscore._utils.text import counted, verb
from boxscore._utils.user_warnings import warn_user
from boxscore.data.class_names import likely_classes
from boxscore.data.image_labels import ImageLabels
from boxscore.data.image_names import (
    ENDINGS,
    FEW_SHOWN,
    SEVERAL,
    UNKNOWN,
    FoundNames,
    ImageNames,
    names_of,
    stem_of,
    stems_of,
)
from boxscore.data.lazy import LazyColumns
from boxscore.data.masks import Masks
from boxscore.data.tables import BoxTable, Detections, GroundTruth
from boxscore.data.vocabulary import Categories, Id, Images, Vocabulary, as_ids
from boxscore.errors import BoxscoreWarning, InputError

Table = TypeVar("Table", bound=BoxTable)

FEW_UNKNOWN = 0.1
"""Images that the ground truth does not have, as a share of those it has, that are not another split's."""

LONGEST_NUMBER = 1000
"""Digits up to which text is read as a number."""


LONGEST = 19
"""Digits of a file's name from which it is no number."""


class UnlistedImagesError(InputError):
    """Detections are in images that the ground truth does not list; ``names`` are what they call them.

    ``remedy`` is the part of its cause that names the option.
    """

    names: Sequence[Id] = ()
    remedy: str = ""


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
    """Return the image row of each id, int32 [D]; refuse an id of no image, and one that two can have.

    ``own`` translates an id into its file name. A file name of its own stands for the image that alone can
    have it, whatever the id. Where values are ids of images and names of others, the more ``hits`` decide.
    """
    if own is not None and len(own):
        found = _by_own_images(ids, own, images)
    elif file_names is not None and len(ids):
        found = _by_file_name(ids, file_names, images, hits, place)
    else:
        found = _by_id(ids, images, hits, place)
    _refuse_unknown(found, images, place)
    if found.names.other_root is not None:
        theirs, ours = found.names.other_root
        warn_user(
            f"{_source(place)}: images are in a folder {theirs}, and those of the ground truth in {ours}; "
            "the folders are taken to be the same.",
        )
    return found.rows


class _Found(NamedTuple):
    """The rows of values, what each was looked up by, and what is known of their names."""

    rows: NDArray[np.int32]
    asked: Callable[[NDArray[np.intp]], list[Id]]
    names: FoundNames


_NO_NAME = -3
"""In place of a row, of a record without a file name."""

_NO_NAMES = FoundNames(np.empty(0, dtype=np.int32), np.empty(0, dtype=bool), {}, None)


def _source(place: Place) -> str:
    """Return the file that a place is in."""
    text = place(0)
    return text.partition(" of ")[2] or text.partition(", line ")[0].partition(" in ")[2] or text


def _by_own_images(ids: NDArray[Any], own: Images, images: Images) -> _Found:
    """Look ids up by the file names that their own list of images gives them."""
    used = np.unique(own.rows(ids))
    used = used[used >= 0]
    pairs = zip(own.ids[used].tolist(), own.file_names[used].tolist(), strict=True)
    called = {identifier: identifier if name is None else name for identifier, name in pairs}
    found = _by_any_name([*called.values()], images)
    translated = np.full(len(own), UNKNOWN, dtype=np.int32)
    translated[used] = found.rows

    def asked(rows: NDArray[np.intp]) -> list[Id]:
        return [called.get(identifier, identifier) for identifier in ids[rows].tolist()]

    return _Found(_through(own, ids, translated), asked, found)


def _by_file_name(
    ids: NDArray[Any],
    file_names: NDArray[Any],
    images: Images,
    hits: Callable[[NDArray[np.int32]], int] | None,
    place: Place,
) -> _Found:
    """Look records up by file name; by id where they have none, or where no name is one of an image."""
    unique = [name for name in dict.fromkeys(file_names.tolist()) if name]
    found = names_of(images).find(unique)
    if not len(found.rows) or found.rows.max() == UNKNOWN == found.rows.min():
        return _by_id(ids, images, hits, place)
    known = dict(zip(unique, found.rows.tolist(), strict=True))
    rows = np.fromiter((known.get(name, _NO_NAME) for name in file_names.tolist()), np.int32, len(ids))
    without, unsettled = np.flatnonzero(rows == _NO_NAME), np.flatnonzero((rows < 0) & (rows != _NO_NAME))
    if len(without):
        rows[without] = _by_id(ids[without], images, None, lambda row: place(int(without[row]))).rows
    if len(unsettled):
        names = file_names[unsettled].tolist()
        rows[unsettled] = _settled_by_id(rows[unsettled], ids[unsettled], names, images)

    def asked(rows: NDArray[np.intp]) -> list[Id]:
        pairs = zip(file_names[rows].tolist(), ids[rows].tolist(), strict=True)
        return [name or identifier for name, identifier in pairs]

    return _Found(rows, asked, found)


def _settled_by_id(
    rows: NDArray[np.int32], ids: NDArray[Any], names: list[str], images: Images
) -> NDArray[np.int32]:
    """Let an id decide among the images that a file name can stand for, unless it is made of the name.

    An image without a file name is found by its id.
    """
    index = names_of(images)
    by_id = images.rows(ids)
    settled = rows.copy()
    for number, (row, own) in enumerate(zip(rows.tolist(), by_id.tolist(), strict=True)):
        if own < 0:
            continue
        if row == UNKNOWN:
            settled[number] = own if images.file_names[own] is None else UNKNOWN
        elif own in index.candidates(names[number]):
            made_of_name = _value(ids.tolist()[number]) == _value(stem_of(names[number]))
            settled[number] = SEVERAL if made_of_name else own
    return settled


def _by_id(
    ids: NDArray[Any],
    images: Images,
    hits: Callable[[NDArray[np.int32]], int] | None,
    place: Place,
) -> _Found:
    """Look values up as ids, as names, or as a number in another spelling; numbers are all of one kind."""
    if ids.dtype == object:
        return _by_mixed_ids(ids, images, hits, place)
    usual, other = _of_numbers(ids, images, as_names=False)
    rows = _settled(ids, usual, other, hits, place)
    return _Found(rows, lambda rows: ids[rows].tolist(), _NO_NAMES)


def _by_mixed_ids(
    ids: NDArray[Any],
    images: Images,
    hits: Callable[[NDArray[np.int32]], int] | None,
    place: Place,
) -> _Found:
    """Do so where some are text: an id, else a name, else a number."""
    unique = list(dict.fromkeys(ids.tolist()))
    number = dict(zip(unique, range(len(unique)), strict=True))
    at = np.fromiter((number[identifier] for identifier in ids.tolist()), np.intp, len(ids))

    def asked(rows: NDArray[np.intp]) -> list[Id]:
        return [unique[position] for position in at[rows].tolist()]

    values = as_ids(unique, name="image ids")
    exact = images.rows(values)
    if hits is None and exact.min(initial=0) >= 0:
        return _Found(exact[at], asked, _NO_NAMES)
    texts = np.array([isinstance(value, str) for value in unique], dtype=bool)
    found = names_of(images).find([value for value in unique if isinstance(value, str)])
    by_name = np.full(len(unique), UNKNOWN, dtype=np.int32)
    by_name[texts] = found.rows
    by_id = _with_numbers(exact, values, images)
    usual = np.where((exact < 0) & (by_name != UNKNOWN), by_name, by_id)
    other = np.where(usual == by_name, by_id, by_name)
    sure = texts.copy()
    sure[texts] = found.sure
    if hits is not None and len(images):  # a name that is written as another image's id: the boxes decide
        written = np.array([str(one) for one in images.ids[by_id].tolist()], dtype=object)
        sure &= (by_id < 0) | (written != np.array(unique, dtype=object))
    other = np.where(sure, usual, other)
    known = np.flatnonzero(texts & (exact >= 0))
    if len(known):  # which may be names of other files
        files = ImageNames(images.file_names.tolist())
        other[known] = files.find([unique[at] for at in known.tolist()]).rows
    as_names = bool((exact[texts] < 0).any())
    if not texts.all():
        numbers = as_ids(values[~texts], name="image ids")
        usual[~texts], other[~texts] = _of_numbers(numbers, images, as_names=as_names)
    other = np.where(other < 0, usual, other)
    rows = _settled(ids, usual[at], other[at], hits, place, as_names=as_names)
    return _Found(rows, asked, found)


def _of_numbers(
    ids: NDArray[Any], images: Images, *, as_names: bool
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the rows of numbers in the reading that knows most, ids or file names, and in the other.

    Of two that know all, ``as_names`` says which is the usual one.
    """
    by_id = _with_numbers(images.rows(ids), ids, images)
    by_name = _rows_of_stems(ids, images) if len(ids) else None
    if by_name is None:
        return by_id, by_id
    if by_name.min() >= 0 and by_id.min() >= 0:
        return (by_name, by_id) if as_names else (by_id, by_name)
    known = (by_name >= 0).sum(), (by_id >= 0).sum()
    rows = by_name if by_id.min() < 0 and known[0] > known[1] else by_id
    return rows, rows


def _with_numbers(rows: NDArray[np.int32], values: NDArray[Any], images: Images) -> NDArray[np.int32]:
    """Return the rows of ids, of unknown ones those of ids that are the same number in another spelling."""
    if not len(rows) or rows.min() >= 0 or (values.dtype != object and images.ids.dtype != object):
        return rows
    known: dict[int, int] = {}
    for row, identifier in enumerate(images.ids.tolist()):
        value = _value(identifier)
        if value is not None:
            known[value] = SEVERAL if value in known else row
    unknown = np.flatnonzero(rows < 0)
    asked = values[unknown].tolist()
    found = {value: known.get(_value(value), UNKNOWN) for value in set(asked)}  # type: ignore[arg-type]
    rows = rows.copy()
    rows[unknown] = [found[value] for value in asked]
    return rows


def _rows_of_stems(ids: NDArray[Any], images: Images) -> NDArray[np.int32] | None:
    """Return the image row of each number that a file's name is, without ending; None where none is one."""
    if ids.dtype == object:
        return None
    names = images.file_names.tolist()
    numbers, rows = _numbers_of_equal_names(names), None
    if numbers is None:
        named = [row for row, name in enumerate(names) if name is not None]
        stems = stems_of(images.file_names[named].tolist())
        chosen = [at for at, stem in enumerate(stems) if stem.isdecimal() and len(stem) < LONGEST]
        numbers = np.array([int(stems[at]) for at in chosen], dtype=np.int64)
        rows = np.array([named[at] for at in chosen], dtype=np.int32)
    if not len(numbers):
        return None
    order = np.argsort(numbers, kind="stable")
    known = numbers[order]
    repeated = np.append(known[1:] == known[:-1], False)
    of_known = (order if rows is None else rows[order]).astype(np.int32)
    if repeated.any():
        first = np.flatnonzero(~np.append(False, repeated[:-1]))
        of_known = np.where(repeated, np.int32(SEVERAL), of_known)[first]
        known = known[first]
    at = Vocabulary(known).rows(ids)
    return np.where(at >= 0, of_known[at], np.int32(UNKNOWN))


def _numbers_of_equal_names(names: list[Any]) -> NDArray[np.int64] | None:
    """Return the numbers of names that are equally many digits and one ending; None for others."""
    digits, dot, ending = names[0].partition(".") if names and isinstance(names[0], str) else ("", "", "")
    length = len(digits) + 1 + len(ending)
    if not (dot and 0 < len(digits) < LONGEST and ending.lower() in ENDINGS) or None in names:
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


def _settled(
    ids: NDArray[Any],
    usual: NDArray[np.int32],
    other: NDArray[np.int32],
    hits: Callable[[NDArray[np.int32]], int] | None,
    place: Place,
    *,
    as_names: bool = False,
) -> NDArray[np.int32]:
    """Decide between two readings of values by what the boxes tell; ``as_names`` is the usual one."""
    if other is usual or not len(usual) or usual.min() < 0 or (usual == other).all():
        return usual
    ours, others = (0, 0) if hits is None else (hits(usual), hits(other))
    of_ids, of_names = (others, ours) if as_names else (ours, others)
    counts = (
        f"the best detections lie on {counted(of_ids, 'annotation')} read as ids, "
        f"and on {of_names:,} as file names"
    )
    if ours < others < 2 * ours:
        raise InputError(
            "image_id",
            "tell one image from another",
            got="numbers that are ids of some images and file names of others",
            place=_source(place),
            cause=f"{counts}; give each record its file_name",
        )
    chosen_names = as_names != (others > ours)
    if others > ours or ours < 2 * others or not ours:
        row = int(np.argmax(usual != other))
        warn_user(
            f"{_source(place)}: image_id {ids[row]} is the id of one image and the file name of another; "
            f"read as {'file names' if chosen_names else 'ids'}: {counts}.",
        )
    return other if others > ours else usual


def image_rows_by_name(ids: NDArray[Any], images: Images) -> NDArray[np.int32]:
    """Return the image row of each id, int32 [D]; ``UNKNOWN`` or ``SEVERAL`` where not one image has it."""
    rows = images.rows(ids)
    if len(rows) and rows.min() < 0:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", BoxscoreWarning)
            rows = _by_id(ids, images, None, str).rows
    return rows


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


def _by_any_name(values: list[Id], images: Images) -> FoundNames:
    """Look each value up by itself: an id, a name, or a number in another spelling."""
    given = as_ids(values, name="image ids")
    exact = images.rows(given)
    texts = np.array([isinstance(value, str) for value in values], dtype=bool)
    found = names_of(images).find([value for value in values if isinstance(value, str)])
    by_name = np.full(len(values), UNKNOWN, dtype=np.int32)
    by_name[texts] = found.rows
    rows = np.where((exact < 0) & (by_name != UNKNOWN), by_name, _with_numbers(exact, given, images))
    return found._replace(rows=rows)


def _refuse_unknown(found: _Found, images: Images, place: Place) -> None:
    """Refuse values that no image has, and those that stand for none alone."""
    rows = found.rows
    if not len(rows) or rows.min() >= 0:
        return
    several = np.flatnonzero(rows == SEVERAL)
    if len(several):
        value = found.asked(several[:1])[0]
        raise InputError(
            "image_id",
            "stand for one image of the ground truth",
            got=repr(value),
            place=place(int(several[0])),
            cause=_which(value, found.names, images),
        )
    row = int(np.argmin(rows))
    asked = found.asked(np.flatnonzero(rows < 0))
    value, unknown = asked[0], dict.fromkeys(asked)
    near = names_of(images).nearest(value) if isinstance(value, str) else ""
    few = len(unknown) <= len(np.unique(rows[rows >= 0])) * FEW_UNKNOWN
    them, their = ("them", "their") if len(unknown) > 1 else ("it", "its")
    why = f", perhaps {'without objects' if few else 'of another split'}"
    remedy = (
        f"--unlisted-images background (in Python unlisted_images=) adds {them} without objects, drop leaves "
        f"{their} detections out"
    )
    error = UnlistedImagesError(
        "image_id",
        "be in the ground truth",
        got=f"{value!r}",
        place=place(row),
        cause=f"{counted(len(unknown), 'such image')} in all"
        f"{f' (the nearest name is {near!r})' if near else why}; {remedy}",
    )
    error.names, error.remedy = list(unknown), remedy
    raise error


def _which(value: Id, names: FoundNames, images: Images) -> str:
    """Say which images a value can stand for, or which other name stands for its image."""
    if value in names.clashes:
        return (
            f"by its name it is the image that {names.clashes[value]!r} is; they differ in folder or ending"
        )
    rows = names_of(images).candidates(value) if isinstance(value, str) else []
    number = _value(value)
    rows = rows or [row for row, one in enumerate(images.ids.tolist()) if _value(one) == number]
    if len(rows) < 2:
        files = enumerate(images.file_names.tolist())
        rows = [row for row, name in files if name is not None and _value(stem_of(name)) == number]
    pairs = zip(images.file_names[rows].tolist(), images.ids[rows].tolist(), strict=True)
    texts = [repr(identifier if name is None else name) for name, identifier in pairs]
    more = f", ... ({len(texts):,} in all)" if len(texts) > FEW_SHOWN else ""
    return f"it can be {' or '.join(texts[:FEW_SHOWN])}{more}: give more of the path, or the image's id"


def check_units(detections: Detections, ground_truth: GroundTruth) -> None:
    """Refuse pixels beside fractions."""
    if detections.units != ground_truth.units and len(detections) and len(ground_truth):
        raise InputError(
            "ground truth and detections",
            "be both in pixels, or both in fractions of the image's size",
            got=f"{ground_truth.units} and {detections.units}",
            cause=checks.GIVE_SIZES,
        )


def align(detections: Detections, ground_truth: GroundTruth) -> Detections:
    """Renumber detections into the ground truth's vocabularies.

    Detections of classes that the ground truth does not have are left out, with a warning, and counted
    in ``left_out``.
    """
    check_units(detections, ground_truth)
    images, categories = ground_truth.images, ground_truth.categories
    same_names = np.array_equal(detections.categories.names, categories.names)
    if detections.images.same_as(images) and detections.categories.same_as(categories) and same_names:
        return detections.replaced(images=images, categories=categories)
    own = detections.images.ids
    known, names = images.rows(own), _NO_NAMES
    if len(known) and known.min() < 0:
        names = _by_any_name(own.tolist(), images)
        known = names.rows
    image = known[detections.image] if len(detections) else detections.image
    found = _Found(image, lambda rows: own[detections.image[rows]].tolist(), names)
    _refuse_unknown(found, images, lambda row: f"row {row} of {detections.source}")
    rows = _rows_of_own_classes(detections, categories)
    category = rows[detections.category] if len(detections) else detections.category
    unknown, counts = np.unique(detections.category[category < 0], return_counts=True)
    labels = detections.categories.labels
    left_out = {labels[row]: int(count) for row, count in zip(unknown.tolist(), counts.tolist(), strict=True)}
    renamed = renamed_classes(left_out, categories, category[category >= 0])
    warn_left_out(left_out, detections.source, hint=question_of_renamed(renamed))
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
    other = named & (by_name >= 0) & (by_name != rows)
    # A class of a name that is unknown is not the one of its id where another class has the name of that.
    rows[named & (by_name < 0) & np.isin(rows, by_name[other])] = -1
    rows[other] = by_name[other]
    return rows


def renamed_classes(
    left_out: Iterable[str], categories: Categories, category: NDArray[np.int32]
) -> dict[str, str]:
    """Return which classes without a detection those left out likely are, by another name."""
    names = [*left_out]
    if not names:
        return {}
    silent = np.bincount(category, minlength=len(categories)) == 0
    return likely_classes(names, [*itertools.compress(categories.labels, silent)])


def question_of_renamed(renamed: Mapping[str, str]) -> str:
    """Ask whether classes left out are those that have no detection; empty where there is none."""
    if not renamed:
        return ""
    pairs = [f"{own} the class {other}" for own, other in list(renamed.items())[:FEW_SHOWN]]
    more = f" ({len(renamed):,} such classes in all)" * (len(renamed) > FEW_SHOWN)
    are, have = verb(len(pairs), "are").capitalize(), verb(len(pairs), "have")
    return f" {are} {' and '.join(pairs)}, which {have} no detection{more}?"


def warn_left_out(
    left_out: Mapping[str, int], source: str, *, all_of_them: bool = False, hint: str = ""
) -> None:
    """Warn of detections whose class the ground truth does not have; ``hint`` is what to do about it."""
    if left_out:
        total = sum(left_out.values())
        names = ", ".join(list(left_out)[:10]) + (", ..." if len(left_out) > 10 else "")
        if all_of_them:
            hint = " None is left" + (
                f".{hint}"
                if hint
                else "; are classes numbered differently? See --class-map (in Python class_map=)."
            )
        warn_user(
            f"{source}: {counted(total, 'detection')} left out, of "
            f"{counted(len(left_out), 'class')} that the ground truth does not have: {names}.{hint}"
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
    image_rows = class_rows = None
    if images is not None:
        image_rows = _chosen(chosen_images(images, known_images), images, "image", known_images.ids)
    if classes is not None:
        rows = known_classes.rows_asked(list(classes), what="a chosen class")
        class_rows = _chosen(rows, classes, "class", np.array(known_classes.labels, dtype=object))
    return select_rows(ground_truth, detections, images=image_rows, classes=class_rows)


def select_rows(
    ground_truth: GroundTruth,
    detections: Detections,
    *,
    images: NDArray[Any] | None = None,
    classes: NDArray[Any] | None = None,
) -> tuple[GroundTruth, Detections]:
    """Keep only the images and the classes of these ascending rows; None keeps all."""
    known_images, known_classes = ground_truth.images, ground_truth.categories
    image_rows = np.arange(len(known_images)) if images is None else images
    category_rows = np.arange(len(known_classes)) if classes is None else classes
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


def chosen_images(asked: Sequence[Id], images: Images) -> NDArray[np.int32]:
    """Return the row of each image that is asked for, by its id or a name that is its alone."""
    found = _by_any_name(list(asked), images)
    several = np.flatnonzero(found.rows == SEVERAL)
    if len(several):
        value = asked[int(several[0])]
        raise InputError(
            "a chosen image", "be one image", got=repr(value), cause=_which(value, found, images)
        )
    return found.rows


def _chosen(rows: NDArray[np.int32], asked: Sequence[Id], what: str, known: NDArray[Any]) -> NDArray[Any]:
    for row, value in zip(rows.tolist(), asked, strict=True):
        if row < 0:
            cause = checks.did_you_mean(value, map(str, known.tolist()))
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
