"""Match ids in other spellings: text that spells a number, and the number.

Conventions
-----------
``"2299"`` has the value of 2299, and 7 that of ``"07"``. An id is replaced only where a single known id has
its value.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from numpy.typing import NDArray

from boxscore.data.vocabulary import Id, as_ids

LONGEST_NUMBER = 1000
"""Digits up to which text is read as a number."""


def spelled_as(
    ids: NDArray[Any], known: Iterable[Id], *, names: Iterable[Id] = ()
) -> tuple[NDArray[Any], int]:
    """Write ids as known ones of the same value are written; return them and how many changed."""
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
    """Map each id that is not known to the known one that has its value, where there is exactly one.

    ``names`` are not looked up.
    """
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
    """Write text as the number it spells, where some ids are numbers and texts spell others.

    Returns the ids and how many changed.
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
    """Return the number that an id is or spells; None where it is other text."""
    if isinstance(identifier, int):
        return identifier
    return int(identifier) if len(identifier) <= LONGEST_NUMBER and _is_decimal(identifier) else None


def _is_decimal(text: str) -> bool:
    return text.isascii() and text.isdecimal()
