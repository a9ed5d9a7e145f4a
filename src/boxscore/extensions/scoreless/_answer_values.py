"""Parse values in a model's text: JSON, a Python literal, and the complete objects of broken text.

Conventions
-----------
Text is untrusted. Every function takes time and memory in proportion to its length for any content: nothing
recurses, nothing is searched twice from the same place, and nothing is executed.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

DEEPEST = 4
"""Depth to which :func:`complete_objects` searches inside a complete but invalid object."""

_TOKEN = re.compile(
    r"""\s*(?:([\[\](){},:])|("[^"\\]*(?:\\.[^"\\]*)*"|'[^'\\]*(?:\\.[^'\\]*)*')|([-+.\w]+))""", re.DOTALL
)
_SIGNIFICANT = re.compile(r"[\[\]{}\"'\\\n]")
_ESCAPED = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_CLOSED_BY = {"[": "]", "(": ")", "{": "}"}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "\n": ""}
_CONSTANTS = {"true": True, "True": True, "false": False, "False": False, "null": None, "None": None}
_NO_KEY = object()


def value_of(text: str) -> Any:
    """Parse a text as JSON or a Python literal; raise ``ValueError`` for neither."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return _literal(text)


class _Frame:
    """A list or dictionary that is being parsed."""

    __slots__ = ("closing", "items", "key", "wants_value")

    def __init__(self, opening: str) -> None:
        self.closing = _CLOSED_BY[opening]
        self.items: Any = {} if opening == "{" else []
        self.key: Any = _NO_KEY
        # An item, not a comma.
        self.wants_value = True

    def add(self, value: Any) -> None:
        """Add a key or an item where one is allowed."""
        if not self.wants_value:
            raise ValueError
        if isinstance(self.items, list):
            self.items.append(value)
        elif self.key is _NO_KEY:
            if isinstance(value, (list, dict)):
                raise ValueError
            self.key = value
        else:
            self.items[self.key] = value
            self.key = _NO_KEY
        self.wants_value = False

    def separate(self, mark: str) -> None:
        """Accept a comma or a colon where one is allowed."""
        after_key = self.key is not _NO_KEY
        if self.wants_value or (mark == ":") != after_key:
            raise ValueError
        self.wants_value = True


def _literal(text: str) -> Any:
    """Parse JSON or a Python literal with single quotes, tuples and trailing commas, without recursion."""
    # Use a stack instead of recursion, because models may write deeply nested nonsense.
    frames: list[_Frame] = []
    at, end = 0, len(text.rstrip())
    while at < end:
        # Go token by token; the frame rejects a comma or colon at a wrong place.
        found = _TOKEN.match(text, at)
        if found is None:
            raise ValueError
        at = found.end()
        mark, string, word = found.groups()
        # An opening bracket begins a frame; a separator belongs to the innermost one.
        if mark in _CLOSED_BY:
            frames.append(_Frame(mark))
            continue
        if mark in (",", ":"):
            if not frames:
                raise ValueError
            frames[-1].separate(mark)
            continue
        # A closing bracket ends its frame, which is then a value of the enclosing frame.
        if mark is None:
            value = _string(string) if string is not None else _word(word)
        else:
            if not frames or frames[-1].closing != mark or frames[-1].key is not _NO_KEY:
                raise ValueError
            value = frames.pop().items
        if not frames:
            if at < end:
                raise ValueError
            return value
        frames[-1].add(value)
    raise ValueError


def _string(quoted: str) -> str:
    return _ESCAPED.sub(_character, quoted[1:-1]) if "\\" in quoted else quoted[1:-1]


def _character(found: re.Match[str]) -> str:
    escaped = found[1]
    return chr(int(escaped[1:], 16)) if len(escaped) > 1 else _ESCAPES.get(escaped, escaped)


def _word(word: str) -> Any:
    """Convert a constant or a number; a number beyond floats becomes infinite or NaN, so not a coordinate."""
    if word in _CONSTANTS:
        return _CONSTANTS[word]
    number = float(word)
    return int(number) if math.isfinite(number) and number.is_integer() and word.isdecimal() else number


class Span:
    """The position of a complete object in a text, and the complete objects directly inside it."""

    __slots__ = ("children", "end", "start")

    def __init__(self, start: int) -> None:
        self.start = start
        self.end = -1
        self.children: list[Span] = []


class _Open:
    """An object that is not closed yet, and the number of open lists in it."""

    __slots__ = ("lists", "span")

    def __init__(self, start: int) -> None:
        self.span = Span(start)
        self.lists = 0


def complete_objects(text: str) -> tuple[list[Span], bool]:
    """Return the outermost complete ``{...}`` of a text, in order, and whether it ends inside an open one.

    An object or list that is never closed is treated as text around those inside it. Quotes count only inside
    objects, because prose has apostrophes, and a quote ends at the latest with its line.
    """
    # Keep a stack of open objects; only brackets, quotes and line ends matter.
    outside = _Open(0)
    opened: list[_Open] = [outside]
    quote, escaped_at = "", -1
    for found in _SIGNIFICANT.finditer(text):
        at, mark = found.start(), found[0]
        # Skip the character after a backslash.
        if at == escaped_at:
            continue
        # Inside quotes, only their end matters.
        here = opened[-1]
        if mark == "\\":
            escaped_at = at + 1
        elif quote or mark == "\n":
            quote = "" if mark in (quote, "\n") else quote
        elif mark in "\"'":
            quote = mark if here is not outside else ""
        # Brackets of lists are only counted, and objects form the tree.
        elif mark == "{":
            opened.append(_Open(at))
        elif mark == "[":
            here.lists += 1
        elif mark == "]":
            here.lists = max(here.lists - 1, 0)
        # A "}" that closes an object.
        elif here is not outside:
            opened.pop()
            here.span.end = at + 1
            opened[-1].span.children.append(here.span)
    # Complete objects inside one that is never closed count.
    is_cut = len(opened) > 1 or outside.lists > 0
    return [span for each in opened for span in each.span.children], is_cut
