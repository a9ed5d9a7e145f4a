"""Read class lists: names in the order of class numbers from 0.

Conventions
-----------
A list is a text file with one name per line (``classes.txt``, ``obj.names``), a YOLO ``data.yaml`` with
``names``, a JSON list, a JSON object of names by number, or a sequence. The first name is class 0. Blank
lines are only allowed at the end; elsewhere they would make the numbers of the following classes ambiguous.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from boxscore._utils.files import read_text
from boxscore._utils.text import counted
from boxscore.errors import FileFormatError, InputError
from boxscore.formats._yaml import names_of, read_yaml

LARGEST = 10_000_000
"""Maximum size of a class list in bytes."""

_NUMBERED = re.compile(r"(\d{1,9})\s*[,;:\t].*\S")


class ClassList(tuple[str, ...]):
    """Class names in order; ``source`` is the file, or empty."""

    source = ""


def class_list(source: str | Path | Sequence[str]) -> ClassList:
    """Return class names in order; name ``i`` is class number ``i``."""
    if not isinstance(source, (str, Path)):
        return _check_names([(_text(name), "classes") for name in source], "classes")
    path = Path(source)
    if path.suffix.lower() in (".yaml", ".yml"):
        names = names_of(read_yaml(path), path)
        if names is None:
            raise FileFormatError("a class list", "have names", got="no such key", place=str(path))
        class_names = _check_names([(name, str(path)) for name in names], str(path))
    else:
        text = read_text(path, "a class list", largest=LARGEST)
        class_names = _check_names(_parse_json(text, path) or _parse_lines(text, path), str(path))
    class_names.source = str(path)
    return class_names


def _parse_json(text: str, path: Path) -> list[tuple[str, str]] | None:
    """Return the names in a JSON list or object; None if the text is not JSON. Reject other JSON."""
    try:
        content = json.loads(text) if text.lstrip()[:1] in ("[", "{") else None
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, (list, dict)):
        return None
    # An object has names by number, 0, 1, ..., in any order: an ODVG label map, or Hugging Face's id2label.
    if isinstance(content, dict) and set(content) == set(map(str, range(len(content)))):
        content = [content[str(number)] for number in range(len(content))]
    if isinstance(content, list) and content and all(isinstance(name, str) for name in content):
        return [(name, str(path)) for name in content]
    raise FileFormatError(
        "a class list",
        "have one name per line, or be data.yaml or a JSON list of names",
        got="a JSON object" if isinstance(content, dict) else "another JSON list",
        place=str(path),
        cause="write the names in the order of their numbers, from 0",
    )


def _parse_lines(text: str, path: Path) -> list[tuple[str, str]]:
    """Return the name on each line, with its place."""
    lines = [line.strip() for line in text.rstrip().splitlines()]
    blank = next((number for number, line in enumerate(lines, start=1) if not line), None)
    if blank is not None:
        raise FileFormatError(
            "a class list",
            "not have a blank line before its last name",
            got="one",
            place=f"line {blank} of {path}",
            cause="delete it, or add the missing name: the line number is the class number",
        )
    _refuse_numbered(lines, path)
    return [(line, f"line {number} of {path}") for number, line in enumerate(lines, start=1)]


def _refuse_numbered(lines: list[str], path: Path) -> None:
    """Reject lines such as ``0,cat``; the first line may be a header."""
    numbers = [_NUMBERED.fullmatch(line) for line in lines]
    head = int(bool(numbers) and numbers[0] is None)
    given = [int(match[1]) for match in numbers[head:] if match is not None]
    if len(given) < max(2, len(lines) - head) or given != list(range(given[0], given[0] + len(given))):
        return
    raise FileFormatError(
        "a line of a class list",
        "be a name alone",
        got=repr(lines[head][:60]),
        place=f"line {head + 1} of {path}",
        cause=f"remove the numbers{' and the header line' * head}: the first name is class 0",
    )


def check_listed(numbers: NDArray[Any], names: Sequence[str], path: Path) -> None:
    """Reject class numbers beyond the end of a list; class names are not checked."""
    ids = [number for number in set(numbers.tolist()) if isinstance(number, int)]
    if not ids or (min(ids) >= 0 and max(ids) < len(names)):
        return
    from_one = min(ids) >= 1 and max(ids) == len(names)
    raise InputError(
        "class numbers",
        f"be 0 to {len(names) - 1}, for the {counted(len(names), 'name')} of the {list_name(names)}",
        got=f"{min(ids)} to {max(ids)}",
        place=str(path),
        cause="if they count from 1, add --class-map one-based (in Python class_map=)"
        if from_one
        else "is this the list of another model?",
    )


def list_name(names: Sequence[str]) -> str:
    """Return the name of a list in messages, with its file if known."""
    source = getattr(names, "source", "")
    return f"class list {source}" if source else "class list"


def _text(name: object) -> str:
    if not isinstance(name, str):
        raise InputError("a name in classes", "be a string", got=repr(name))
    return name


def _check_names(names: Sequence[tuple[str, str]], place: str) -> ClassList:
    """Convert pairs of name and place to a class list; reject repeated names."""
    if not names:
        raise InputError("a class list", "name at least one class", got="none", place=place)
    seen: set[str] = set()
    for name, where in names:
        if name in seen:
            raise InputError("a class list", "name each class once", got=f"{name!r} twice", place=where)
        seen.add(name)
    return ClassList(name for name, _ in names)
