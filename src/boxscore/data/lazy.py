"""Store columns in memory, or read them from the file lazily.

A loader reads the boxes of a file. Masks and keypoints are read on first use, once for all tables that are
made of rows of the loaded table.

Conventions
-----------
- ``table.instances`` is a :class:`LazyColumns`; a missing column is None.
- A column is read as a whole; each selection takes its rows of it.
- A pickle contains all columns, because the file may not exist where it is loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.records import NamedTuple
from boxscore.data.vocabulary import read_only


class Reader(NamedTuple):
    """A reader of the remaining columns of a file."""

    read: Callable[[str], Mapping[str, Any]]
    """Read a column by name; the result may include other columns, and excludes missing ones."""
    shown: frozenset[str] = frozenset()
    """Columns of the file according to its first record or header."""


class _Shared:
    """The columns read from a file, shared by all tables of its rows."""

    __slots__ = ("known", "reader")

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.known: dict[str, Any] = {}

    def column(self, name: str) -> Any:
        # Store None for a missing column, to avoid reading again.
        if name not in self.known:
            self.known = {**self.known, name: None, **self.reader.read(name)}
        return self.known[name]


class LazyColumns:
    """Columns by name, in memory or read lazily; None for missing columns.

    Parameters
    ----------
    names : tuple of str
        All valid names.
    given : mapping of str to column
        Columns in memory.
    read : Reader, optional
        Reader of the other columns, for all rows of the file.
    """

    __slots__ = ("_given", "_names", "_rows", "_shared")

    def __init__(
        self, names: tuple[str, ...], given: Mapping[str, Any] | None = None, read: Reader | None = None
    ) -> None:
        self._names = names
        self._given = {name: _freeze(column) for name, column in (given or {}).items()}
        self._shared = None if read is None else _Shared(read)
        self._rows: NDArray[np.intp] | None = None

    def __getitem__(self, name: str) -> Any:
        if name not in self._given:
            column = None if self._shared is None else self._shared.column(name)
            if column is not None and self._rows is not None:
                column = column[self._rows]
            self._given[name] = _freeze(column)
        return self._given[name]

    def __contains__(self, name: object) -> bool:
        return name in self._names

    @property
    def names(self) -> tuple[str, ...]:
        """All valid names."""
        return self._names

    def is_read(self, name: str) -> bool:
        """Whether a column is in memory or known to be missing."""
        return name in self._given or self._shared is None

    def shows(self, name: str) -> bool:
        """Whether a table seems to have a column, without reading it."""
        if self._shared is None or name in self._given:
            return self[name] is not None
        if name in self._shared.known:
            return self._shared.known[name] is not None
        return name in self._shared.reader.shown

    def take(self, rows: NDArray[np.intp]) -> LazyColumns:
        """Select rows; columns that are not read yet stay lazy."""
        # Share the reader, to read a column once for all selections. Rows refer to the file.
        chosen = object.__new__(LazyColumns)
        chosen._names, chosen._shared = self._names, self._shared
        chosen._given = {
            name: None if column is None else _freeze(column[rows]) for name, column in self._given.items()
        }
        chosen._rows = rows if self._rows is None else self._rows[rows]
        return chosen

    def replaced(self, columns: Mapping[str, Any]) -> LazyColumns:
        """Return a copy with some columns replaced."""
        chosen = object.__new__(LazyColumns)
        chosen._names, chosen._shared, chosen._rows = self._names, self._shared, self._rows
        chosen._given = {**self._given, **{name: _freeze(column) for name, column in columns.items()}}
        return chosen

    def hold(self, name: str, column: NDArray[Any]) -> None:
        """Replace a column by an array of equal values, such as a view of a larger array."""
        self._given[name] = _freeze(column)

    def __getstate__(self) -> tuple[Any, ...]:
        """Read all columns, because the file may not exist where the pickle is loaded."""
        return self._names, {name: self[name] for name in self._names}

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self._names, given = state
        self._given = {name: _freeze(column) for name, column in given.items()}
        self._shared, self._rows = None, None


def _freeze(column: Any) -> Any:
    return read_only(column) if isinstance(column, np.ndarray) else column
