"""Select the columns of printed tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from boxscore._utils import checks
from boxscore._utils.text import Columns, printable
from boxscore.errors import InputError

NAME = "--show (in Python columns=)"
"""The name of the option in messages."""


def shown_columns(tables: Sequence[Columns], wanted: Sequence[str]) -> list[dict[str, Any]]:
    """Return each table with only the wanted columns, in the given order; all columns if ``wanted`` is empty.

    A name may be another tool's (``mAP50``), or differ in case. A table without any of the columns comes back
    empty; a name that matches no table is an error.
    """
    if not wanted:
        return [dict(table) for table in tables]
    known = list(dict.fromkeys(name for table in tables for name in table))
    words = [word for text in wanted for word in _words(text, known)]
    for word in words:
        if _column(word, known) is None:
            cause = checks.nearest(word, known) or f"the columns are {', '.join(map(printable, known))}"
            if "=" in word:
                cause = "--columns names the columns of an input table; --show chooses the columns to print"
            raise InputError(NAME, "name columns of the printed tables", got=repr(word), cause=cause)
    chosen = [[_column(word, list(table)) for word in words] for table in tables]
    return [
        {name: table[name] for name in names if name is not None}
        for table, names in zip(tables, chosen, strict=True)
    ]


def _words(text: str, known: Sequence[str]) -> list[str]:
    """Split a text at commas, unless it is the name of a column."""
    return [text] if text in known else [word.strip() for word in text.split(",") if word.strip()]


def _column(word: str, known: Sequence[str]) -> str | None:
    """Return the column that a word names."""
    from boxscore.protocols.metric_names import metric_meant

    if word in known:
        return word
    same = [name for name in known if name.lower() == word.lower()]
    return same[0] if len(same) == 1 else metric_meant(word, list(known))
