"""Class lists: the names behind class numbers that count from 0.

Conventions
-----------
A list is a text file with one name per line (``classes.txt``, ``obj.names``), YOLO's ``data.yaml`` with its
``names``, or a sequence. The first name is class 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from boxscore._utils.files import read_text
from boxscore._utils.text import counted
from boxscore.errors import FileFormatError, InputError
from boxscore.formats._yaml import names_of, read_yaml

__all__ = ["check_listed", "class_list"]

LARGEST = 10_000_000
"""Bytes of a list of names."""


def class_list(source: str | Path | Sequence[str]) -> tuple[str, ...]:
    """Return the names, in their order; the class of name ``i`` is number ``i``."""
    if not isinstance(source, (str, Path)):
        return _checked([_text(name) for name in source], "classes")
    path = Path(source)
    if path.suffix.lower() in (".yaml", ".yml"):
        names = names_of(read_yaml(path), path)
        if names is None:
            raise FileFormatError("a class list", "have names", got="no such key", place=str(path))
        return _checked(names, str(path))
    lines = read_text(path, "a class list", largest=LARGEST).splitlines()
    return _checked([line.strip() for line in lines if line.strip()], str(path))


def check_listed(numbers: NDArray[Any], names: Sequence[str], path: Path) -> None:
    """Refuse class numbers that a list does not have; names are none."""
    found = [number for number in set(numbers.tolist()) if isinstance(number, int)]
    if not found or (min(found) >= 0 and max(found) < len(names)):
        return
    from_one = min(found) >= 1 and max(found) == len(names)
    raise InputError(
        "class numbers",
        f"be 0 to {len(names) - 1} with a list of {counted(len(names), 'name')}",
        got=f"{min(found)} to {max(found)}",
        place=str(path),
        cause="if they count from 1, say so: --class-map one-based beside the list"
        if from_one
        else "is it the list of another model?",
    )


def _text(name: object) -> str:
    if not isinstance(name, str):
        raise InputError("a name in classes", "be a string", got=repr(name))
    return name


def _checked(names: Sequence[str], place: str) -> tuple[str, ...]:
    if not names:
        raise InputError("a class list", "name at least one class", got="none", place=place)
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InputError("a class list", "name each class once", got=f"{name!r} twice", place=place)
        seen.add(name)
    return tuple(names)
