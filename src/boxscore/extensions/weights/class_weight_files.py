"""Read class weights from a file: lines ``class,weight``, or a JSON object.

Conventions
-----------
- A class is a name or an id, and ``*`` stands for every class without a line. Blank lines, and lines that
  begin with ``#``, are skipped; a first line such as ``class,weight`` is a header.
- The separator is a comma, or otherwise a tab, a semicolon, or the last blank: ``traffic light 2``.
"""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

from boxscore._utils.checks import plain_number
from boxscore._utils.files import is_there, nearest_file, read_text
from boxscore.errors import FileFormatError, InputError
from boxscore.protocols.tables.ap import LARGEST_WEIGHT

LARGEST = 10_000_000
"""Maximum size of the file in bytes."""

ENDINGS = (".csv", ".txt", ".tsv", ".json")

_HEAD = re.compile(r"\W*(class|category|label|name|id)\w*", re.ASCII | re.IGNORECASE)
_WEIGHT = re.compile(r"(class.?)?(weight|importance)s?\W*", re.ASCII | re.IGNORECASE)


def class_weights_of(text: str) -> dict[str, float] | str:
    """Read the file at a path; any other word is the name of a column of classes.

    Raises
    ------
    InputError
        When a path does not exist.
    FileFormatError
        When a line or value of the file is invalid.
    """
    path = Path(text)
    if is_there(path):
        return class_weights_in_file(path)
    if path.suffix.lower() in ENDINGS or len(path.parts) != 1:
        rule = "be a file that exists, or a column of classes"
        raise InputError("class_weights", rule, got=repr(text), cause=nearest_file(path))
    return text


def class_weights_in_file(path: Path) -> dict[str, float]:
    """Read weights by class."""
    # JSON is recognized by its first character.
    text = read_text(path, "a file of class weights", largest=LARGEST)
    if text.lstrip()[:1] in ("{", "["):
        return _parse_json(text, path)
    # Otherwise read lines of class and weight, with comments and an optional header.
    weights: dict[str, float] = {}
    is_first = True
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        place = f"line {number} of {path}"
        words = _split_line(line)
        if len(words) != 2 or not words[0]:
            rule = "be class,weight"
            cause = "quote a name that has a comma" if len(words) > 2 else ""
            raise FileFormatError(
                "a line of class weights", rule, got=repr(line[:60]), place=place, cause=cause
            )
        # A header is recognized by its two words.
        if not (is_first and _HEAD.fullmatch(words[0]) and _WEIGHT.fullmatch(words[1])):
            _add(weights, words[0], _number(words[1]), repr(words[1]), place)
        is_first = False
    if not weights:
        raise FileFormatError(
            "a file of class weights", "weigh at least one class", got="none", place=str(path)
        )
    return weights


def _split_line(line: str) -> list[str]:
    """Return the class and the weight of a line."""
    mark = next((mark for mark in ",\t;" if mark in line), None)
    if mark is None:
        return line.strip().rsplit(None, 1)
    try:
        cells = next(csv.reader([line], delimiter=mark, skipinitialspace=True, strict=True))
    except csv.Error:
        return []
    return [cell.strip() for cell in cells]


def _number(text: str) -> Any:
    try:
        return plain_number(text)
    except ValueError:
        return text


def _parse_json(text: str, path: Path) -> dict[str, float]:
    """Read an object of numbers by class."""
    # json keeps the last of repeated keys. Pairs show them all, so that a repeated class is an error.
    pairs: list[tuple[str, Any]] = []

    def read(items: list[tuple[str, Any]]) -> dict[str, Any]:
        pairs[:] = items
        return dict(items)

    try:
        value = json.loads(text, object_pairs_hook=read)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict) or not value:
        rule = 'be {"class": weight, ...}'
        raise FileFormatError("a JSON file of class weights", rule, got=repr(text[:40]), place=str(path))
    weights: dict[str, float] = {}
    for name, weight in pairs:
        _add(weights, name, weight, repr(weight), str(path))
    return weights


def _add(weights: dict[str, float], name: str, weight: Any, got: str, place: str) -> None:
    is_number = isinstance(weight, (int, float)) and not isinstance(weight, bool)
    if not is_number or not 0 <= weight <= LARGEST_WEIGHT:
        raise FileFormatError(f"the weight of {name!r}", "be a finite number >= 0", got=got[:60], place=place)
    if name in weights:
        raise FileFormatError(
            "a file of class weights", "name each class once", got=f"{name!r} twice", place=place
        )
    weights[name] = float(weight)
