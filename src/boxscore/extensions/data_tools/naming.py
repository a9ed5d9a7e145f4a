"""Name the classes of model objects: by numbers, names, or numbers together with names.

Conventions
-----------
- If numbers have names, the names are used if the other side has names too; else the numbers, as they are.
- Names on one side and numbers alone on the other cannot agree: that is refused, not guessed.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from boxscore.data.tables import ClassNames
from boxscore.data.vocabulary import Categories, Id, as_ids
from boxscore.errors import InputError

Columns = dict[str, Any]


def names_by_number(class_names: ClassNames) -> dict[int, str]:
    """Return names by number of a mapping, or of a list that starts at 0."""
    named = isinstance(class_names, Mapping)
    names = dict(class_names) if isinstance(class_names, Mapping) else dict(enumerate(class_names))
    wrong = [number for number in names if isinstance(number, bool) or not isinstance(number, int)]
    if wrong or isinstance(class_names, str):
        got = repr(wrong[0]) if named and wrong else repr(class_names)
        raise InputError("class names", "be a list, or a mapping from numbers", got=got)
    for number, name in names.items():
        if not isinstance(name, str):
            raise InputError("a class name", "be text", got=repr(name), place=f"class {number}")
    return names


def named_by(columns: Columns, names: Mapping[int, str], *, place: str) -> Columns:
    """Put names, by number, in place of the class numbers of a prediction or target."""
    labels = columns["labels"].tolist()
    for label in labels:
        if not isinstance(label, str) and label not in names:
            cause = f"{len(names)} are known"
            raise InputError("a class number", "have a name", got=label, place=place, cause=cause)
    named = [label if isinstance(label, str) else names[label] for label in labels]
    return {**without_names(columns), "labels": as_ids(named, name="labels")}


def by_name(columns: Columns) -> Columns:
    """Put the names of classes in place of their numbers, where there are names."""
    return {**without_names(columns), "labels": columns["names"]} if "names" in columns else columns


def without_names(columns: Columns) -> Columns:
    """Leave the numbers of classes as they are."""
    return {key: value for key, value in columns.items() if key != "names"}


def in_classes(columns: Columns, categories: Categories, *, place: str) -> Columns:
    """Put the ids of known classes in place of names; a name that none of them has stays."""
    # Numbers alone are ids already.
    if "names" not in columns and columns["labels"].dtype != object:
        return columns
    known = _looked_up(categories)
    if "names" in columns and not known.are_named:
        return without_names(columns)
    # A number whose name differs from the class's is looked up by name: another model's numbering.
    labels = columns["labels"].tolist()
    names = columns["names"].tolist() if "names" in columns else labels
    ids = []
    for label, name in zip(labels, names, strict=True):
        row = known.row_of_id.get(label)
        if row is None or ("names" in columns and known.names[row] != name):
            row = _row_named(known, name, categories, place)
        ids.append(name if row is None else known.ids[row])
    # Names can only be looked up among classes that have names.
    if not known.are_named and ids == names and kinds_of_labels(columns) == {"names"}:
        got = f"{ids[0]!r}, and classes without names"
        cause = "give the classes as a mapping from number to name"
        raise InputError("labels", "be among the classes", got=got, place=place, cause=cause)
    return {**without_names(columns), "labels": as_ids(ids, name="labels")}


def _row_named(known: _Known, name: Any, categories: Categories, place: str) -> int | None:
    rows = known.rows_of_names.get(name, ())
    if len(rows) > 1:
        categories.refuse_several(name, place=place)
    return rows[0] if rows else None


class _Known(NamedTuple):
    ids: list[Id]
    names: list[str]
    row_of_id: Mapping[Id, int]
    rows_of_names: Mapping[str, Sequence[int]]
    are_named: bool


@functools.lru_cache(maxsize=4)
def _looked_up(categories: Categories) -> _Known:
    ids, names = categories.ids.tolist(), categories.names.tolist()
    are_named = names != [str(identifier) for identifier in ids] or any(isinstance(item, str) for item in ids)
    return _Known(ids, names, categories.index(), categories.rows_of_names(), are_named)


def kinds_of_labels(columns: Columns) -> set[str]:
    """Return how the classes of an image are given: as numbers, names or both; nothing if it is empty."""
    if not len(columns["labels"]):
        return set()
    if "names" in columns:
        return {"both"}
    if columns["labels"].dtype != object:
        return {"numbers"}
    return {"names" if isinstance(label, str) else "numbers" for label in columns["labels"].tolist()}


def names_are_used(predictions: set[str], targets: set[str]) -> bool | None:
    """Decide for kinds of labels that occur on the two sides; None while one side may still decide.

    Raises
    ------
    InputError
        When one side has names alone and the other numbers alone, or only some numbers have names.
    """
    # Kinds of one side must agree over all images.
    for side, kinds in (("predictions", predictions), ("targets", targets)):
        if "both" in kinds and len(kinds) > 1:
            cause = "pass the same kind of object for every image, or classes="
            raise InputError(f"the classes of {side}", "all have names, or none", got="some", cause=cause)
    # Names on one side and numbers on the other have nothing in common.
    pair = {*predictions}, {*targets}
    if "both" not in pair[0] | pair[1]:
        if pair in (({"names"}, {"numbers"}), ({"numbers"}, {"names"})):
            raise InputError(
                "labels of predictions and targets",
                "be both numbers or both names",
                got=f"{_only(pair[0])} and {_only(pair[1])}",
                cause="pass classes={number: name, ...}",
            )
        return False
    # With names for numbers, both sides must have them.
    if not predictions or not targets:
        return None
    return "numbers" not in predictions | targets


def _only(kinds: set[str]) -> str:
    (kind,) = kinds
    return kind
