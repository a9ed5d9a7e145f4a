"""Hold columns that are given, or read them from the file when they are first needed.

Goal
----
A loader does not know what will be compared. It reads the boxes of a file; masks and keypoints are read when
a question needs them, once for all tables made from rows of the first.

Conventions
-----------
- ``table.instances`` is a :class:`LazyColumns`: a column by name, None where the table has no such column.
- The file is read whole; each selection of rows takes its rows of the column.
- A pickle holds every column: the file may not exist where the pickle is loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.records import NamedTuple
from boxscore.data.vocabulary import read_only


class Reader(NamedTuple):
    """Reads columns that a loader left in the file."""

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
        # A column that the file lacks is None, so that it is not looked for again.
        if name not in self.known:
            self.known = {**self.known, name: None, **self.reader.read(name)}
        return self.known[name]


class LazyColumns:
    """Columns by name, each in memory or to be read; None where a table has no such column.

    Parameters
    ----------
    names : tuple of str
        Every name that a column may have.
    given : mapping of str to column
        The columns that are in memory.
    read : Reader, optional
        Reads the other columns, for every row of the file.
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
        """Every name that a column may have."""
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
        """Return the columns at these rows; columns that are not read yet stay unread."""
        # Share the reader, so that a column is read once for all selections. Rows are those of the file.
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
        """Replace a column in memory by equal values, such as a view of a larger array."""
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
