"""Look up images and classes of the ground truth by id or name.

Conventions
-----------
- Images are looked up by id, then by name (:mod:`boxscore.data.image_names`), then by number: ``"000012"``
  and ``12`` are the same. Unknown images and ambiguous names are errors.
- Classes are looked up by id, and strings also by name. Detections of unknown classes are dropped and
  counted; the reference tools drop them silently.
- Results files with their own images and categories (COCO objects) are matched by file name and class name,
  because such files are numbered independently.
- If values are ids of some images and names of others, the boxes decide: under the right interpretation, more
  of the best detections overlap an annotation.
- ``"2299"`` has the same value as 2299, and 7 as ``"07"``. An id is replaced by another spelling only if
  exactly one known id has its value.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.checks import Place
from boxscore._utils.records import NamedTuple
from boxscore._utils.text import counted
from boxscore._utils.user_warnings import warn_user
from boxscore.data.hints import ask
from boxscore.data.image_names import (
    ENDINGS,
    SEVERAL,
    UNKNOWN,
    ImageNames,
    NameMatches,
    names_of,
    stem_of,
    stems_of,
)
from boxscore.data.vocabulary import Categories, Id, Images, Vocabulary, as_ids
from boxscore.errors import BoxscoreWarning, InputError

CountMatched = Callable[[NDArray[np.int32]], int]
"""Count the best detections that overlap an annotation, given their images [D]."""

MOST_DIGITS = 19
"""Stems with this many digits or more are not read as numbers; fewer digits fit in int64."""


class UnlistedImagesError(InputError):
    """Raised for detections in images that the ground truth does not list.

    ``names`` are the ids or names of these images; ``remedy`` is the part of the cause that names the option.
    """

    names: Sequence[Id] = ()
    remedy: str = ""


class DeclaredVocabulary(NamedTuple):
    """The images and categories listed in a results file."""

    images: Images
    categories: Categories


_NO_NAME = -3
"""Special row for a record without a file name."""

_NO_NAMES = NameMatches(np.empty(0, dtype=np.int32), np.empty(0, dtype=bool), {}, None)


def find_images(
    ids: NDArray[Any],
    images: Images,
    *,
    declared: Images | None = None,
    file_names: NDArray[Any] | None = None,
    count_matched: CountMatched | None = None,
    place: Place,
) -> NDArray[np.int32]:
    """Return the image row of each id, int32 [D]; raise if an id is unknown or ambiguous.

    ``declared`` maps ids to file names. The file name of a record takes precedence over its id, if it matches
    a single image.
    """
    if declared is not None and len(declared):
        lookup = _by_declared_images(ids, declared, images)
    elif file_names is not None and len(ids):
        lookup = _by_file_name(ids, file_names, images, count_matched, place)
    else:
        lookup = _by_id(ids, images, count_matched, place)
    rows = _known_rows(lookup, images, place)
    if lookup.names.other_root is not None:
        theirs, ours = lookup.names.other_root
        warn_user(
            f"{_source(place)}: images are in folder {theirs}, those of the ground truth in {ours}; "
            "assuming that the folders are the same.",
        )
    return rows


def rows_of_ids(ids: NDArray[Any], images: Images, *, place: Place) -> NDArray[np.int32]:
    """Return the image row of each id, int32 [D]; raise if an id is unknown. Names are not considered."""
    rows = images.rows(ids)
    _refuse_unknown(_Lookup(rows, lambda at: ids[at].tolist(), _NO_NAMES), images, place)
    return rows


def rows_of_other_images(
    image: NDArray[np.int32], other: Images, images: Images, *, place: Place
) -> NDArray[np.int32]:
    """Return the image row of each row of ``other`` images, int32 [D]; raise as :func:`find_images`."""
    rows, names = images.rows(other.ids), _NO_NAMES
    if len(rows) and rows.min() < 0:
        names = _by_any_name(other.ids.tolist(), images)
        rows = names.rows
    renumbered = rows[image] if len(image) else image
    lookup = _Lookup(renumbered, lambda at: other.ids[image[at]].tolist(), names)
    return _known_rows(lookup, images, place)


class _Lookup(NamedTuple):
    """The rows of values, a function that returns values, and the name matches for error messages."""

    rows: NDArray[np.int32]
    values_at: Callable[[NDArray[np.intp]], list[Id]]
    names: NameMatches


def _source(place: Place) -> str:
    """Return the file of a place."""
    text = place(0)
    return text.partition(" of ")[2] or text.partition(", line ")[0].partition(" in ")[2] or text


def _by_declared_images(ids: NDArray[Any], declared: Images, images: Images) -> _Lookup:
    """Look up ids by the file names in the image list of the results file."""
    used = np.unique(declared.rows(ids))
    used = used[used >= 0]
    pairs = zip(declared.ids[used].tolist(), declared.file_names[used].tolist(), strict=True)
    name_of = {identifier: identifier if name is None else name for identifier, name in pairs}
    names = _by_any_name([*name_of.values()], images)
    translated = np.full(len(declared), UNKNOWN, dtype=np.int32)
    translated[used] = names.rows

    def values_at(rows: NDArray[np.intp]) -> list[Id]:
        return [name_of.get(identifier, identifier) for identifier in ids[rows].tolist()]

    return _Lookup(_translate_rows(declared, ids, translated), values_at, names)


def _by_file_name(
    ids: NDArray[Any],
    file_names: NDArray[Any],
    images: Images,
    count_matched: CountMatched | None,
    place: Place,
) -> _Lookup:
    """Look up records by file name; by id if a record does not have a name, or if all names are unknown."""
    # Look up each distinct name once. If all names are unknown, use the ids of all records.
    unique = [name for name in dict.fromkeys(file_names.tolist()) if name]
    matches = names_of(images).find(unique)

    def values_at(rows: NDArray[np.intp]) -> list[Id]:
        pairs = zip(file_names[rows].tolist(), ids[rows].tolist(), strict=True)
        return [name or identifier for name, identifier in pairs]

    if not len(matches.rows) or matches.rows.max() == UNKNOWN == matches.rows.min():
        by_id = _by_id(ids, images, count_matched, place)
        all_unknown = len(matches.rows) and by_id.rows.max() == UNKNOWN
        return by_id._replace(values_at=values_at) if all_unknown else by_id
    # Map the names back to the records, [D]. Look up records without a name by id; if a name is ambiguous or
    # unknown, the id may decide.
    known = dict(zip(unique, matches.rows.tolist(), strict=True))
    rows = np.fromiter((known.get(name, _NO_NAME) for name in file_names.tolist()), np.int32, len(ids))
    without, unresolved = np.flatnonzero(rows == _NO_NAME), np.flatnonzero((rows < 0) & (rows != _NO_NAME))
    if len(without):
        rows[without] = _by_id(ids[without], images, None, lambda row: place(int(without[row]))).rows
    if len(unresolved):
        names = file_names[unresolved].tolist()
        rows[unresolved] = _resolve_by_id(rows[unresolved], ids[unresolved], names, images)
    return _Lookup(rows, values_at, matches)


def _resolve_by_id(
    rows: NDArray[np.int32], ids: NDArray[Any], names: list[str], images: Images
) -> NDArray[np.int32]:
    """Let ids decide between the images that a file name may refer to, unless ids are derived from names.

    Images without a file name are looked up by id.
    """
    index = names_of(images)
    by_id = images.rows(ids)
    resolved = rows.copy()
    for number, (row, row_by_id) in enumerate(zip(rows.tolist(), by_id.tolist(), strict=True)):
        if row_by_id < 0:
            continue
        if row == UNKNOWN:
            resolved[number] = row_by_id if images.file_names[row_by_id] is None else UNKNOWN
        elif row_by_id in index.candidates(names[number]):
            made_of_name = value_of(ids.tolist()[number]) == value_of(stem_of(names[number]))
            resolved[number] = SEVERAL if made_of_name else row_by_id
    return resolved


def _by_id(
    ids: NDArray[Any],
    images: Images,
    count_matched: CountMatched | None,
    place: Place,
) -> _Lookup:
    """Look up values as ids, as names, or as numbers in another spelling; all numbers the same way."""
    if ids.dtype == object:
        return _by_mixed_ids(ids, images, count_matched, place)
    usual, other = _look_up_numbers(ids, images, as_names=False)
    rows = _resolve(ids, usual, other, count_matched, place)
    return _Lookup(rows, lambda at: ids[at].tolist(), _NO_NAMES)


def _by_mixed_ids(
    ids: NDArray[Any],
    images: Images,
    count_matched: CountMatched | None,
    place: Place,
) -> _Lookup:
    """Look up values of which some are text: as ids, else as names, else as numbers."""
    # Look up each distinct value once; ``at`` [D] maps the results back.
    unique = list(dict.fromkeys(ids.tolist()))
    number = dict(zip(unique, range(len(unique)), strict=True))
    at = np.fromiter((number[identifier] for identifier in ids.tolist()), np.intp, len(ids))

    def values_at(rows: NDArray[np.intp]) -> list[Id]:
        return [unique[position] for position in at[rows].tolist()]

    # The usual case: every value is an id, and boxes cannot contradict it.
    values = as_ids(unique, name="image ids")
    exact = images.rows(values)
    if count_matched is None and exact.min(initial=0) >= 0:
        return _Lookup(exact[at], values_at, _NO_NAMES)
    # Look up texts as file names too, [unique].
    texts = np.array([isinstance(value, str) for value in unique], dtype=bool)
    matches = names_of(images).find([value for value in unique if isinstance(value, str)])
    by_name = np.full(len(unique), UNKNOWN, dtype=np.int32)
    by_name[texts] = matches.rows
    # ``usual`` prefers ids to names; ``other`` is the alternative. If both are the same, we are done.
    by_id = _match_numbers(exact, values, images)
    usual = np.where((exact < 0) & (by_name != UNKNOWN), by_name, by_id)
    other = np.where(usual == by_name, by_id, by_name)
    # Unambiguous names do not have an alternative.
    sure = texts.copy()
    sure[texts] = matches.sure
    if count_matched is not None and len(images):  # a name may equal the id of another image
        written = np.array([str(identifier) for identifier in images.ids[by_id].tolist()], dtype=object)
        sure &= (by_id < 0) | (written != np.array(unique, dtype=object))
    other = np.where(sure, usual, other)
    # A text id may also be the file name of another image.
    known = np.flatnonzero(texts & (exact >= 0))
    if len(known):
        files = ImageNames(images.file_names.tolist())
        other[known] = files.find([unique[position] for position in known.tolist()]).rows
    # Look up numbers as in a file of numbers only; prefer names if some text is not an id.
    as_names = bool((exact[texts] < 0).any())
    if not texts.all():
        numbers = as_ids(values[~texts], name="image ids")
        usual[~texts], other[~texts] = _look_up_numbers(numbers, images, as_names=as_names)
    other = np.where(other < 0, usual, other)
    # The boxes decide where the two interpretations differ.
    rows = _resolve(ids, usual[at], other[at], count_matched, place, as_names=as_names)
    return _Lookup(rows, values_at, matches)


def _look_up_numbers(
    ids: NDArray[Any], images: Images, *, as_names: bool
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the rows of numbers, as ids or as file names, and the alternative.

    The interpretation with the most known numbers is used. If all numbers are known in both, ``as_names``
    decides which one is the usual one, and the other is the alternative.
    """
    by_id = _match_numbers(images.rows(ids), ids, images)
    if not len(ids):
        return by_id, by_id
    # If all numbers are known ids, look up those of images by name instead of those of all rows.
    if images.ids.dtype != object and by_id.min() >= 0:
        occurs = np.zeros(len(images), dtype=bool)
        occurs[by_id] = True
        used = np.flatnonzero(occurs)
        of_used = rows_of_numbered_files(images.ids[used], images)
        if of_used is None or of_used.min() < 0 or (of_used == used).all():
            return by_id, by_id
        named = np.empty(len(images), dtype=np.int32)
        named[used] = of_used
        by_name: NDArray[np.int32] | None = named[by_id]
    else:
        by_name = rows_of_numbered_files(ids, images)
    if by_name is None:
        return by_id, by_id
    if by_name.min() >= 0 and by_id.min() >= 0:
        return (by_name, by_id) if as_names else (by_id, by_name)
    known = (by_name >= 0).sum(), (by_id >= 0).sum()
    rows = by_name if by_id.min() < 0 and known[0] > known[1] else by_id
    return rows, rows


def _match_numbers(rows: NDArray[np.int32], values: NDArray[Any], images: Images) -> NDArray[np.int32]:
    """Look up unknown ids by number, in another spelling; return the updated rows."""
    if not len(rows) or rows.min() >= 0 or (values.dtype != object and images.ids.dtype != object):
        return rows
    known: dict[int, int] = {}
    for row, identifier in enumerate(images.ids.tolist()):
        value = value_of(identifier)
        if value is not None:
            known[value] = SEVERAL if value in known else row
    unknown = np.flatnonzero(rows < 0)
    given = values[unknown].tolist()
    by_value = {value: known.get(value_of(value), UNKNOWN) for value in set(given)}  # type: ignore[arg-type]
    rows = rows.copy()
    rows[unknown] = [by_value[value] for value in given]
    return rows


def rows_of_numbered_files(ids: NDArray[Any], images: Images) -> NDArray[np.int32] | None:
    """Return the image row of each number, as a numeric file name; None if file names are not numeric."""
    if ids.dtype == object:
        return None
    # Names of equal length and extension, as in COCO, convert as one byte matrix; others one by one.
    names = images.file_names.tolist()
    numbers, rows = _numbers_of_equal_names(names), None
    if numbers is None:
        named = [row for row, name in enumerate(names) if name is not None]
        stems = stems_of(images.file_names[named].tolist())
        numeric = [at for at, stem in enumerate(stems) if stem.isdecimal() and len(stem) < MOST_DIGITS]
        numbers = np.array([int(stems[at]) for at in numeric], dtype=np.int64)
        rows = np.array([named[at] for at in numeric], dtype=np.int32)
    if not len(numbers):
        return None
    # Sort the numbers; keep one of each repeated number, with the row SEVERAL.
    order = np.argsort(numbers, kind="stable")
    known = numbers[order]
    repeated = np.append(known[1:] == known[:-1], False)
    of_known = (order if rows is None else rows[order]).astype(np.int32)
    if repeated.any():
        first = np.flatnonzero(~np.append(False, repeated[:-1]))
        of_known = np.where(repeated, np.int32(SEVERAL), of_known)[first]
        known = known[first]
    # Look up all ids [D] in one pass.
    at = Vocabulary(known).rows(ids)
    return np.where(at >= 0, of_known[at], np.int32(UNKNOWN))


def _numbers_of_equal_names(names: list[Any]) -> NDArray[np.int64] | None:
    """Convert names with the same count of digits and the same extension to numbers; otherwise None."""
    digits, dot, ending = names[0].partition(".") if names and isinstance(names[0], str) else ("", "", "")
    length = len(digits) + 1 + len(ending)
    if not (dot and 0 < len(digits) < MOST_DIGITS and ending.lower() in ENDINGS) or None in names:
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


def _resolve(
    ids: NDArray[Any],
    usual: NDArray[np.int32],
    other: NDArray[np.int32],
    count_matched: CountMatched | None,
    place: Place,
    *,
    as_names: bool = False,
) -> NDArray[np.int32]:
    """Decide between two interpretations by the boxes; with ``as_names``, the usual one uses names."""
    # Keep the usual interpretation if both agree, or if it leaves a value unknown.
    if other is usual or not len(usual) or usual.min() < 0 or (usual == other).all():
        return usual
    # For each interpretation, count the best detections that match an annotation.
    of_usual, of_other = (0, 0) if count_matched is None else (count_matched(usual), count_matched(other))
    of_ids, of_names = (of_other, of_usual) if as_names else (of_usual, of_other)
    counts = (
        f"confident detections overlap {counted(of_ids, 'annotation')} if these are ids, and "
        f"{of_names:,} if they are file names"
    )
    # A small lead of the alternative is not conclusive: reject the ids as ambiguous.
    if of_usual < of_other < 2 * of_usual:
        raise InputError(
            "image_id",
            "identify images unambiguously",
            got="numbers that are ids of some images and file names of others",
            place=_source(place),
            cause=f"{counts}; add file_name to each record",
        )
    # Warn if the alternative wins, or if the usual one wins by less than a factor of two.
    chosen_names = as_names != (of_other > of_usual)
    if of_other > of_usual or of_usual < 2 * of_other or not of_usual:
        row = int(np.argmax(usual != other))
        warn_user(
            f"{_source(place)}: image_id {ids[row]} is the id of one image and the file name of another; "
            f"read as {'file names' if chosen_names else 'ids'}: {counts}.",
        )
    return other if of_other > of_usual else usual


def image_rows_by_name(ids: NDArray[Any], images: Images) -> NDArray[np.int32]:
    """Return the image row of each id or name, int32 [D], or ``UNKNOWN`` or ``SEVERAL``."""
    rows = images.rows(ids)
    if len(rows) and rows.min() < 0:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", BoxscoreWarning)
            rows = _by_id(ids, images, None, str).rows
    return rows


def chosen_images(names: Sequence[Id], images: Images) -> NDArray[np.int32]:
    """Return the row of each image chosen by id or name; raise if a name is ambiguous."""
    matches = _by_any_name(list(names), images)
    several = np.flatnonzero(matches.rows == SEVERAL)
    if len(several):
        value = names[int(several[0])]
        cause = ask("one of several images", value, matches, images)
        raise InputError("a chosen image", "be one image", got=repr(value), cause=cause)
    return matches.rows


def find_categories(
    ids: NDArray[Any], categories: Categories, *, declared: Categories | None = None
) -> tuple[NDArray[np.int32], dict[str, int]]:
    """Return the category row of each id, int32 [D], -1 if unknown, and counts of unknown classes by name."""
    names: NDArray[Any] | None = None
    if declared is not None and len(declared):
        translated = categories.rows_of_classes(declared)
        rows = _translate_rows(declared, ids, translated)
        declared_rows = declared.rows(ids)
        if len(rows) and rows.min() < -1:
            categories.refuse_several(declared.names.tolist()[int(declared_rows[np.argmin(rows)])])
        names = ids.astype(object)
        names[declared_rows >= 0] = declared.names[declared_rows[declared_rows >= 0]]
    else:
        rows = categories.rows(ids)
        if len(rows) and rows.min() < 0 and ids.dtype == object:
            rows = _look_up_distinct(ids, categories.rows_by_id_or_name)
    unknown = rows < 0
    return rows, dict(Counter(map(str, (ids if names is None else names)[unknown].tolist())))


def _translate_rows(
    declared: Vocabulary, ids: NDArray[Any], translated: NDArray[np.int32]
) -> NDArray[np.int32]:
    """Look up ids in the vocabulary of the file, and map its rows to ``translated`` ones."""
    rows = declared.rows(ids)
    return np.where(rows >= 0, np.append(translated, -1)[rows], -1).astype(np.int32)


def _look_up_distinct(ids: NDArray[Any], find: Callable[[list[Id]], NDArray[np.int32]]) -> NDArray[np.int32]:
    """Look up each distinct id once."""
    unique = list(dict.fromkeys(ids.tolist()))
    known = dict(zip(unique, find(unique).tolist(), strict=True))
    return np.fromiter((known[identifier] for identifier in ids.tolist()), np.int32, len(ids))


def _by_any_name(values: list[Id], images: Images) -> NameMatches:
    """Look up each value separately: as an id, a name, or a number in another spelling."""
    given = as_ids(values, name="image ids")
    exact = images.rows(given)
    texts = np.array([isinstance(value, str) for value in values], dtype=bool)
    matches = names_of(images).find([value for value in values if isinstance(value, str)])
    by_name = np.full(len(values), UNKNOWN, dtype=np.int32)
    by_name[texts] = matches.rows
    rows = np.where((exact < 0) & (by_name != UNKNOWN), by_name, _match_numbers(exact, given, images))
    return matches._replace(rows=rows)


def _known_rows(lookup: _Lookup, images: Images, place: Place) -> NDArray[np.int32]:
    """Return the rows of values, also of images that were renamed; raise if some are unknown or ambiguous."""
    if len(lookup.rows) and lookup.rows.min() == UNKNOWN:
        rows = ask("images of other names", lookup.rows, lookup.values_at, images, _source(place))
        lookup = lookup._replace(rows=rows)
    _refuse_unknown(lookup, images, place)
    return lookup.rows


def _refuse_unknown(lookup: _Lookup, images: Images, place: Place) -> None:
    """Raise if values are unknown or ambiguous."""
    rows = lookup.rows
    if not len(rows) or rows.min() >= 0:
        return
    raise ask("no image, or several", rows, lookup.values_at, lookup.names, images, place)


# ---------------------------------------------------------------- other spellings of ids

LONGEST_NUMBER = 1000
"""Maximum number of digits of text that is read as a number."""


def spelled_as(
    ids: NDArray[Any], known: Iterable[Id], *, names: Iterable[Id] = ()
) -> tuple[NDArray[Any], int]:
    """Replace ids by known ones of the same value; return the ids and the number of changes."""
    known = list(known)
    if ids.dtype != object and not any(issubclass(kind, str) for kind in set(map(type, known))):
        return ids, 0
    given = ids.tolist()
    spellings = other_spellings(given, known, names=names)
    if not spellings:
        return ids, 0
    ids = as_ids([spellings.get(identifier, identifier) for identifier in given], name="ids")
    return ids, sum(identifier in spellings for identifier in given)


def other_spellings(ids: Iterable[Id], known: Sequence[Id], *, names: Iterable[Id] = ()) -> dict[Id, Id]:
    """Map each unknown id to the known one with the same value, if there is exactly one; skip ``names``."""
    by_value: dict[int, Id | None] = {}
    for identifier in known:
        value = value_of(identifier)
        if value is not None:
            by_value[value] = None if value in by_value else identifier
    excluded = {*known, *names}
    spellings = {}
    for identifier in dict.fromkeys(ids):
        value = None if identifier in excluded else value_of(identifier)
        known_id = None if value is None else by_value.get(value)
        if known_id is not None:
            spellings[identifier] = known_id
    return spellings


def as_numbers(ids: NDArray[Any]) -> tuple[NDArray[Any], int]:
    """Convert text ids to numbers if other ids are numbers and the value is unused.

    Returns the ids and the number of changes.
    """
    if ids.dtype != object:
        return ids, 0
    given = ids.tolist()
    texts = sum(isinstance(identifier, str) for identifier in given)
    if not 0 < texts < len(given):
        return ids, 0
    numbers = [value_of(identifier) for identifier in given]
    if None in numbers or len(set(numbers)) < len(set(given)):
        return ids, 0
    return as_ids(numbers, name="ids"), texts


def value_of(identifier: Id) -> int | None:
    """Return the number that an id is or spells; None for other text."""
    if isinstance(identifier, int):
        return identifier
    return int(identifier) if len(identifier) <= LONGEST_NUMBER and _is_decimal(identifier) else None


def _is_decimal(text: str) -> bool:
    return text.isascii() and text.isdecimal()
