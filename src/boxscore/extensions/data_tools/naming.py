"""Decide whether model objects name their classes by number or by name.

Conventions
-----------
- If numbers have names, the names are used if the other side has names too; otherwise the numbers.
- Names on one side and bare numbers on the other are an error.
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
    """Replace the class numbers of a prediction or target by names."""
    labels = columns["labels"].tolist()
    for label in labels:
        if not isinstance(label, str) and label not in names:
            cause = f"{len(names)} are known"
            raise InputError("a class number", "have a name", got=label, place=place, cause=cause)
    named = [label if isinstance(label, str) else names[label] for label in labels]
    return {**without_names(columns), "labels": as_ids(named, name="labels")}


def by_name(columns: Columns) -> Columns:
    """Replace class numbers by names where names are known."""
    return {**without_names(columns), "labels": columns["names"]} if "names" in columns else columns


def without_names(columns: Columns) -> Columns:
    """Keep the class numbers."""
    return {key: value for key, value in columns.items() if key != "names"}


def in_classes(columns: Columns, categories: Categories, *, place: str) -> Columns:
    """Replace class names by the ids of known classes; unknown names stay."""
    # Bare numbers are ids already.
    if "names" not in columns and columns["labels"].dtype != object:
        return columns
    known = _lookup_of(categories)
    if "names" in columns and not known.are_named:
        return without_names(columns)
    # A number whose name differs from that of the class comes from another numbering: look it up by name.
    labels = columns["labels"].tolist()
    names = columns["names"].tolist() if "names" in columns else labels
    ids = []
    for label, name in zip(labels, names, strict=True):
        row = known.row_of_id.get(label)
        if row is None or ("names" in columns and known.names[row] != name):
            row = _row_by_name(known, name, categories, place)
        ids.append(name if row is None else known.ids[row])
    # Look names up among classes that have names.
    if not known.are_named and ids == names and kinds_of_labels(columns) == {"names"}:
        got = f"{ids[0]!r}, and classes without names"
        cause = "give the classes as a mapping from number to name"
        raise InputError("labels", "be among the classes", got=got, place=place, cause=cause)
    return {**without_names(columns), "labels": as_ids(ids, name="labels")}


def _row_by_name(known: _Known, name: Any, categories: Categories, place: str) -> int | None:
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
def _lookup_of(categories: Categories) -> _Known:
    ids, names = categories.ids.tolist(), categories.names.tolist()
    are_named = names != [str(identifier) for identifier in ids] or any(isinstance(item, str) for item in ids)
    return _Known(ids, names, categories.index(), categories.rows_of_names(), are_named)


def kinds_of_labels(columns: Columns) -> set[str]:
    """Return whether an image gives its classes as numbers, names or both; an empty set if it is empty."""
    if not len(columns["labels"]):
        return set()
    if "names" in columns:
        return {"both"}
    if columns["labels"].dtype != object:
        return {"numbers"}
    return {"names" if isinstance(label, str) else "numbers" for label in columns["labels"].tolist()}


def names_are_used(predictions: set[str], targets: set[str]) -> bool | None:
    """Return whether names are compared, by the kinds of labels on the two sides; None if still undecided.

    Raises
    ------
    InputError
        When one side has only names and the other only numbers, or when only some numbers have names.
    """
    # All images of one side must use one kind.
    for side, kinds in (("predictions", predictions), ("targets", targets)):
        if "both" in kinds and len(kinds) > 1:
            cause = "pass the same kind of object for every image, or classes="
            raise InputError(f"the classes of {side}", "all have names, or none", got="some", cause=cause)
    # Names cannot be compared with numbers.
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
    # Compare names only if both sides have them.
    if not predictions or not targets:
        return None
    return "numbers" not in predictions | targets


def _only(kinds: set[str]) -> str:
    (kind,) = kinds
    return kind
