"""Create unique labels for classes, and find the class that a word refers to.

Conventions
-----------
- The label of a class is its name, or ``NAME (ID)`` if the name is ambiguous: it is shared by two classes,
  looks the same as another name when printed, equals the id of another class, is empty, or is reserved for a
  row such as ``(background)``.
- A word refers to a class by id, name or label; if that fails, by ``NAME (ID)``; otherwise by a name that
  looks the same (other Unicode forms, surrounding spaces, characters that are not printable). If a word
  refers to several classes, an error lists their labels.
- A number is an id. On the command line, text that spells a number is an id too.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Sequence

from boxscore._utils.text import printable
from boxscore.errors import InputError

BACKGROUND = "(background)"
"""Label of the background, next to classes."""

EVERY_CLASS = "(all)"
"""Value of a ``class`` column for all classes together."""

TRUTH = "truth"
"""Name of the column of true classes, before a column for each class."""

MEAN = "(mean)"
"""Value of a ``class`` column for the mean over classes."""

Id = int | str

LONGEST_NUMBER = 1000
"""Maximum number of digits of text that is read as a number."""

MOST_SHOWN = 6
"""Maximum number of candidates in a message."""


def class_labels(names: Sequence[str], ids: Sequence[Id], *, avoid: Iterable[str] = ()) -> list[str]:
    """Return labels that differ from the labels, names and ids of other classes, and from ``avoid``."""
    # Count names as they appear to a reader: names that only differ in spaces look the same.
    appearances = [_appearance(name) for name in names]
    of_id = _rows_of_texts(ids)
    counts = Counter(appearances)
    reserved = {BACKGROUND, EVERY_CLASS, MEAN, "", *avoid}
    # Most names are valid labels; only build the set of all texts if one is not.
    taken: set[str] = set()
    labels: list[str] = []
    for row, (name, appearance) in enumerate(zip(names, appearances, strict=True)):
        if counts[appearance] == 1 and appearance not in reserved and of_id.get(appearance, row) == row:
            labels.append(name)
            continue
        taken = taken or {*appearances, *of_id, *reserved}
        # Append the id, repeatedly if the label is still taken.
        addition = f"({_text_of(ids[row], of_id)})"
        label = f"{name} {addition}" if appearance else addition
        while _appearance(label) in taken:
            label = f"{label} {addition}"
        taken.add(_appearance(label))
        labels.append(label)
    return labels


def _rows_of_texts(ids: Sequence[Id]) -> dict[str, int]:
    """Map each id as text to its row; to -1 if a number and a text id look the same."""
    rows: dict[str, int] = {}
    for row, identifier in enumerate(ids):
        text = str(identifier)
        rows[text] = -1 if text in rows else row
    return rows


def _text_of(identifier: Id, rows: dict[str, int]) -> str:
    return str(identifier) if rows[str(identifier)] >= 0 else repr(identifier)


def _appearance(name: str) -> str:
    """Return a name as it appears to a reader: normalize Unicode and spaces."""
    if name.isascii() and name.isprintable():
        return " ".join(name.split()) if " " in name else name
    import unicodedata

    return " ".join(printable(unicodedata.normalize("NFC", name)).split())


class ClassFinder:
    """Find the class that a word refers to.

    Parameters
    ----------
    names, ids : sequence, [K]
        Names and ids of the classes.
    numbers : bool, default False
        Whether text that spells a number is an id, as on the command line.
    """

    def __init__(self, names: Sequence[str], ids: Sequence[Id], *, numbers: bool = False) -> None:
        self._names, self._ids, self._numbers = names, ids, numbers
        self._labels = class_labels(names, ids)
        self._exact: dict[Id, list[int]] = {}
        every = [ids, names, self._labels]
        if TRUTH in names:
            every.append(class_labels(names, ids, avoid=(TRUTH,)))
        for each in every:
            for row, key in enumerate(each):
                rows = self._exact.setdefault(key, [])
                if row not in rows:
                    rows.append(row)

    def row(self, word: Id, *, what: str, place: str = "") -> int:
        """Return the class that a word refers to, or -1; raise if the word is ambiguous."""
        rows = self.rows(word)
        if len(rows) > 1:
            raise ambiguous(word, [self._labels[row] for row in rows], what=what, place=place)
        return rows[0] if rows else -1

    def rows(self, word: Id) -> list[int]:
        """Return every class that a word can refer to."""
        rows = list(self._exact.get(word, ()))
        if isinstance(word, str):
            number = _number(word) if self._numbers else None
            if number is not None and (str(number) == word or not rows):  # 01 is primarily a name
                rows += [row for row in self._exact.get(number, ()) if row not in rows]
            rows = rows or self._with_ids.get(word, []) or self._by_appearance.get(_appearance(word), [])
        return sorted(rows)

    @functools.cached_property
    def _with_ids(self) -> dict[str, list[int]]:
        """Rows by ``NAME (ID)``."""
        rows: dict[str, list[int]] = {}
        for row, (name, identifier) in enumerate(zip(self._names, self._ids, strict=True)):
            rows.setdefault(f"{name} ({identifier})", []).append(row)
        return rows

    @functools.cached_property
    def _by_appearance(self) -> dict[str, list[int]]:
        """Rows by names and labels as they appear to a reader."""
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
