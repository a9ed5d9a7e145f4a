"""What classes are called: labels that tell each from all others, and the class that a word stands for.

Conventions
-----------
- A class's label is its name. Where that would not tell it from another class it is ``NAME (ID)``: two
  classes have the name, or names that look alike when printed; the name is another class's id; it is empty;
  it is the name of a row for all classes, such as ``(background)``.
- A word stands for a class by its id, its name or its label; where it is none of these for any class, by
  ``NAME (ID)``; at last by a name that looks alike: other Unicode forms, blanks at the ends, characters that
  are not printed. It must stand for one class only: else the word is refused, with the labels to choose from.
- A number is an id. Text that spells a number is one too where it comes from a command line, which has no
  other way to give a number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from boxscore._utils.text import printable
from boxscore.errors import InputError

__all__ = ["BACKGROUND", "EVERY_CLASS", "MEAN", "TRUTH", "ClassFinder", "ambiguous", "class_labels"]

BACKGROUND = "(background)"
"""Stands beside the classes for none of them."""

EVERY_CLASS = "(all)"
"""Stands in a ``class`` column for all classes together."""

TRUTH = "truth"
"""The column of the true classes, beside a column for each class."""

MEAN = "(mean)"
"""Stands in a ``class`` column for the mean over classes."""

Id = int | str

LONGEST_NUMBER = 1000
"""Digits up to which text is read as a number."""

MOST_SHOWN = 6
"""Candidates that a message lists."""


def class_labels(names: Sequence[str], ids: Sequence[Id], *, beside: Iterable[str] = ()) -> list[str]:
    """Return a label for each class that no other class has as label, name or id, and none of ``beside``."""
    looks = [_look(name) for name in names]
    of_id = _rows_of_texts(ids)
    times = Counter(looks)
    reserved = {BACKGROUND, EVERY_CLASS, MEAN, "", *beside}
    taken: set[str] = set()
    labels: list[str] = []
    for row, (name, look) in enumerate(zip(names, looks, strict=True)):
        if times[look] == 1 and look not in reserved and of_id.get(look, row) == row:
            labels.append(name)
            continue
        taken = taken or {*looks, *of_id, *reserved}
        addition = f"({_text_of(ids[row], of_id)})"
        label = f"{name} {addition}" if look else addition
        while _look(label) in taken:
            label = f"{label} {addition}"
        taken.add(_look(label))
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


def _look(name: str) -> str:
    """Return what a reader sees of a name: neither Unicode forms nor blanks at the ends show."""
    if name.isascii() and name.isprintable():
        return " ".join(name.split()) if " " in name else name
    import unicodedata

    return " ".join(printable(unicodedata.normalize("NFC", name)).split())


class ClassFinder:
    """Finds the class that a word stands for.

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
        """Return the class that a word stands for, -1 for none; refuse what stands for several."""
        rows = self.rows(word)
        if len(rows) > 1:
            raise ambiguous(word, [self._labels[row] for row in rows], what=what, place=place)
        return rows[0] if rows else -1

    def rows(self, word: Id) -> list[int]:
        """Return every class that a word can stand for."""
        found = list(self._exact.get(word, ()))
        if isinstance(word, str):
            number = _number(word) if self._numbers else None
            if number is not None and (str(number) == word or not found):  # 01 is a name first
                found += [row for row in self._exact.get(number, ()) if row not in found]
            if not found:
                found = self._where(lambda row: f"{self._names[row]} ({self._ids[row]})" == word)
            if not found:
                look = _look(word)
                found = self._where(lambda row: look in (_look(self._names[row]), _look(self._labels[row])))
        return sorted(found)

    def _where(self, holds: Callable[[int], bool]) -> list[int]:
        return [row for row in range(len(self._names)) if holds(row)]


def _number(word: str) -> int | None:
    digits = word.removeprefix("-")
    return int(word) if digits.isascii() and digits.isdecimal() and len(digits) <= LONGEST_NUMBER else None


def ambiguous(word: Id, labels: Sequence[str], *, what: str, place: str = "", cause: str = "") -> InputError:
    """Return the error for a word that can stand for several classes."""
    shown = ", ".join(map(repr, labels[:MOST_SHOWN]))
    more = f", ... ({len(labels):,} in all)" if len(labels) > MOST_SHOWN else ""
    return InputError(
        what,
        "stand for one class",
        got=f"{word!r}, the name or id of {len(labels):,}",
        place=place,
        cause=f"give {shown}{more}{cause and f'; {cause}'}",
    )
