"""Hold columns that are given, or read them from the file when they are first needed.

Goal
----
It is not known at load time what will be compared. A file is read for its boxes; its masks and keypoints are
read when a question needs them, once for all selections of the table's rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.records import NamedTuple
from boxscore.data.vocabulary import read_only


class Reader(NamedTuple):
    """What is left in a file."""

    read: Callable[[str], Mapping[str, Any]]
    """Reads a column of a whole file by name, perhaps with others; leaves out one that it does not have."""
    shown: frozenset[str] = frozenset()
    """Columns that the file has, as far as its first record or its header shows."""


class _Shared:
    """The columns read from one file, shared by every table made of its rows."""

    __slots__ = ("known", "reader")

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.known: dict[str, Any] = {}

    def column(self, name: str) -> Any:
        if name not in self.known:
            self.known = {**self.known, name: None, **self.reader.read(name)}
        return self.known[name]


class LazyColumns:
    """Columns by name, each in memory or to be read; None where a table has no such column.

    Parameters
    ----------
    names : tuple of str
        Every name there may be.
    given : mapping of str to column
        Those that are in memory.
    read : Reader, optional
        Reads the others, of every row.
    """

    __slots__ = ("_given", "_names", "_rows", "_shared")

    def __init__(
        self, names: tuple[str, ...], given: Mapping[str, Any] | None = None, read: Reader | None = None
    ) -> None:
        self._names = names
        self._given = {name: _frozen(column) for name, column in (given or {}).items()}
        self._shared = None if read is None else _Shared(read)
        self._rows: NDArray[np.intp] | None = None

    def __getitem__(self, name: str) -> Any:
        if name not in self._given:
            column = None if self._shared is None else self._shared.column(name)
            if column is not None and self._rows is not None:
                column = column[self._rows]
            self._given[name] = _frozen(column)
        return self._given[name]

    def __contains__(self, name: object) -> bool:
        return name in self._names

    @property
    def names(self) -> tuple[str, ...]:
        """Every name there may be."""
        return self._names

    def is_read(self, name: str) -> bool:
        """Whether a column is in memory, or known to be absent."""
        return name in self._given or self._shared is None

    def shows(self, name: str) -> bool:
        """Whether a table has a column, as far as is known without reading it."""
        if self._shared is None or name in self._given:
            return self[name] is not None
        if name in self._shared.known:
            return self._shared.known[name] is not None
        return name in self._shared.reader.shown

    def take(self, rows: NDArray[np.intp]) -> LazyColumns:
        """Return the columns at these rows; what is not read yet stays so."""
        chosen = object.__new__(LazyColumns)
        chosen._names, chosen._shared = self._names, self._shared
        chosen._given = {
            name: None if column is None else _frozen(column[rows]) for name, column in self._given.items()
        }
        chosen._rows = rows if self._rows is None else self._rows[rows]
        return chosen

    def replaced(self, columns: Mapping[str, Any]) -> LazyColumns:
        """Return the columns with others in place of some."""
        chosen = object.__new__(LazyColumns)
        chosen._names, chosen._shared, chosen._rows = self._names, self._shared, self._rows
        chosen._given = {**self._given, **{name: _frozen(column) for name, column in columns.items()}}
        return chosen

    def hold(self, name: str, column: NDArray[Any]) -> None:
        """Hold equal values in place of a column in memory, such as a view of a larger array."""
        self._given[name] = _frozen(column)

    def __getstate__(self) -> tuple[Any, ...]:
        """Read what is missing first: the file may not exist where the pickle is loaded."""
        return self._names, {name: self[name] for name in self._names}

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self._names, given = state
        self._given = {name: _frozen(column) for name, column in given.items()}
        self._shared, self._rows = None, None


def _frozen(column: Any) -> Any:
    return read_only(column) if isinstance(column, np.ndarray) else column
