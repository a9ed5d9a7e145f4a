"""Name classes: labels that tell each from all others, and the class that a word refers to.

Conventions
-----------
- A class's label is its name. Where that would not tell it from another class it is ``NAME (ID)``: two
  classes have the name, or names that look alike when printed; the name is another class's id; it is empty;
  it is the name of a row for all classes, such as ``(background)``.
- A word refers to a class by its id, its name or its label; where it is none of these for any class, by
  ``NAME (ID)``; at last by a name that looks alike: other Unicode forms, blanks at the ends, characters that
  are not printed. It must refer to one class only: else the word is refused, with the labels to choose from.
- A number is an id. Text that spells a number is one too where it comes from a command line, which has no
  other way to give a number.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Sequence

from boxscore._utils.text import printable
from boxscore.errors import InputError

BACKGROUND = "(background)"
"""A label next to the classes, for none of them."""

EVERY_CLASS = "(all)"
"""Stands in a ``class`` column for all classes together."""

TRUTH = "truth"
"""The column of the true classes, in front of a column for each class."""

MEAN = "(mean)"
"""Stands in a ``class`` column for the mean over classes."""

Id = int | str

LONGEST_NUMBER = 1000
"""Digits up to which text is read as a number."""

MOST_SHOWN = 6
"""Candidates that a message lists."""


def class_labels(names: Sequence[str], ids: Sequence[Id], *, beside: Iterable[str] = ()) -> list[str]:
    """Return a label for each class that no other class has as label, name or id, and none of ``beside``."""
    # Count what a reader sees: names that differ only in blanks look the same.
    appearances = [_appearance(name) for name in names]
    of_id = _rows_of_texts(ids)
    counts = Counter(appearances)
    reserved = {BACKGROUND, EVERY_CLASS, MEAN, "", *beside}
    # Most names are labels already; the set of all texts is made only if one is not.
    taken: set[str] = set()
    labels: list[str] = []
    for row, (name, appearance) in enumerate(zip(names, appearances, strict=True)):
        if counts[appearance] == 1 and appearance not in reserved and of_id.get(appearance, row) == row:
            labels.append(name)
            continue
        taken = taken or {*appearances, *of_id, *reserved}
        # Add the id, and add it again if that label is taken as well.
        addition = f"({_text_of(ids[row], of_id)})"
        label = f"{name} {addition}" if appearance else addition
        while _appearance(label) in taken:
            label = f"{label} {addition}"
        taken.add(_appearance(label))
        labels.append(label)
    return labels


def _rows_of_texts(ids: Sequence[Id]) -> dict[str, int]:
    """Map each id as text to its row; to -1 where a number and a text are written alike."""
    rows: dict[str, int] = {}
    for row, identifier in enumerate(ids):
        text = str(identifier)
        rows[text] = -1 if text in rows else row
    return rows


def _text_of(identifier: Id, rows: dict[str, int]) -> str:
    return str(identifier) if rows[str(identifier)] >= 0 else repr(identifier)


def _appearance(name: str) -> str:
    """Return what a reader sees of a name: neither Unicode forms nor blanks at the ends show."""
    if name.isascii() and name.isprintable():
        return " ".join(name.split()) if " " in name else name
    import unicodedata

    return " ".join(printable(unicodedata.normalize("NFC", name)).split())


class ClassFinder:
    """Looks up the class that a word refers to.

    Parameters
    ----------
    names, ids : sequence, [K]
        Of the classes.
    numbers : bool, default False
        Whether text that spells a number is an id, as on a command line.
    """

    def __init__(self, names: Sequence[str], ids: Sequence[Id], *, numbers: bool = False) -> None:
        self._names, self._ids, self._numbers = names, ids, numbers
        self._labels = class_labels(names, ids)
        self._exact: dict[Id, list[int]] = {}
        every = [ids, names, self._labels]
        if TRUTH in names:
            every.append(class_labels(names, ids, beside=(TRUTH,)))
        for each in every:
            for row, key in enumerate(each):
                rows = self._exact.setdefault(key, [])
                if row not in rows:
                    rows.append(row)

    def row(self, word: Id, *, what: str, place: str = "") -> int:
        """Return the class that a word refers to, -1 for none; refuse a word that fits several."""
        rows = self.rows(word)
        if len(rows) > 1:
            raise ambiguous(word, [self._labels[row] for row in rows], what=what, place=place)
        return rows[0] if rows else -1

    def rows(self, word: Id) -> list[int]:
        """Return every class that a word can refer to."""
        rows = list(self._exact.get(word, ()))
        if isinstance(word, str):
            number = _number(word) if self._numbers else None
            if number is not None and (str(number) == word or not rows):  # 01 is a name first
                rows += [row for row in self._exact.get(number, ()) if row not in rows]
            rows = rows or self._with_ids.get(word, []) or self._by_appearance.get(_appearance(word), [])
        return sorted(rows)

    @functools.cached_property
    def _with_ids(self) -> dict[str, list[int]]:
        """The rows of ``NAME (ID)``."""
        rows: dict[str, list[int]] = {}
        for row, (name, identifier) in enumerate(zip(self._names, self._ids, strict=True)):
            rows.setdefault(f"{name} ({identifier})", []).append(row)
        return rows

    @functools.cached_property
    def _by_appearance(self) -> dict[str, list[int]]:
        """The rows of names and labels as a reader sees them."""
        rows: dict[str, list[int]] = {}
        for row, (name, label) in enumerate(zip(self._names, self._labels, strict=True)):
            for appearance in {_appearance(name), _appearance(label)}:
                rows.setdefault(appearance, []).append(row)
        return rows


def _number(word: str) -> int | None:
    digits = word.removeprefix("-")
    return int(word) if digits.isascii() and digits.isdecimal() and len(digits) <= LONGEST_NUMBER else None


def ambiguous(word: Id, labels: Sequence[str], *, what: str, place: str = "", cause: str = "") -> InputError:
    """Return the error for a word that can refer to several classes."""
    shown = ", ".join(map(repr, labels[:MOST_SHOWN]))
    more = f", ... ({len(labels):,} in all)" if len(labels) > MOST_SHOWN else ""
    return InputError(
        what,
        "stand for one class",
        got=f"{word!r}, the name or id of {len(labels):,}",
        place=place,
        cause=f"give {shown}{more}{cause and f'; {cause}'}",
    )
