"""Measure how wide a text is on a terminal, and make it fit.

Conventions
-----------
Widths are columns of a terminal: a Chinese character has two, a combining mark none. What does not fit is
broken between words first; no text loses a character here but by :func:`cut`, which says so with a ``…``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator


def display_width(text: str) -> int:
    """Count the columns that a printable text takes."""
    return len(text) if text.isascii() else sum(map(_width, text))


def _width(character: str) -> int:
    import unicodedata

    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def aligned(text: str, width: int, *, right: bool = False) -> str:
    """Fill up a text with blanks."""
    blanks = " " * (width - display_width(text))
    return blanks + text if right else text + blanks


def cut(text: str, width: int) -> str:
    """Shorten a text that is too wide, and mark its end."""
    return text if display_width(text) <= width else f"{text[: _fitting(text, width - 1)]}…"


def _fitting(text: str, width: int) -> int:
    """Count the characters from the start that fit; one at least."""
    taken = 0
    for count, character in enumerate(text):
        taken += _width(character)
        if taken > width:
            return max(count, 1)
    return len(text)


def wrapped(text: str, width: int | None, *, indent: str = "", whole: bool = False) -> str:
    """Break a line between words; later lines begin with ``indent``.

    A word that is too wide itself is broken, unless it has to stay ``whole``: a path, to be copied.
    """
    if width is None or display_width(text) <= width:
        return text
    return "\n".join(_lines(re.findall(r"\s*\S+", text), width, indent, whole=whole))


def folded(text: str, width: int | None, *, after: str) -> str:
    """Break a line after some characters alone, where nothing is lost when the lines are joined."""
    if width is None or display_width(text) <= width:
        return text
    return "\n".join(_lines(re.findall(rf"[^{after}]*[{after}]|[^{after}]+", text), width, ""))


def _lines(words: list[str], width: int, indent: str, *, whole: bool = False) -> Iterator[str]:
    """Fill lines with words, which begin with the blanks between them."""
    line = ""
    for word in words:
        if line.strip() and display_width(line + word) > width:
            yield line
            line = indent
            word = word.lstrip()
        line += word
        while display_width(line) > width and not whole:
            count = max(_fitting(line, width), len(indent) + 1)
            yield line[:count]
            line = indent + line[count:]
    if line.strip():
        yield line
