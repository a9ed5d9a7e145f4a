"""Read column metadata from the footer of a Parquet file (Thrift compact protocol).

pyarrow reads it too, but aborts the process if column metadata is damaged. The parser keeps only the fields
in ``KEPT``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from boxscore.errors import FileFormatError

TRUE, FALSE, BYTE, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = 1, 2, 3, 7, 8, 9, 10, 11, 12
INTEGERS = (4, 5, 6)

COLUMN = (4, 1)
"""Field numbers of the row groups, and of the columns of a row group."""
ABOUT, NUM_VALUES, SIZE, STATISTICS, LARGEST, LEAST = 3, 5, 6, 12, 5, 6
"""Field numbers: of a column's metadata, of three fields in it, and of two in its statistics."""
KEPT = {
    *((4,), COLUMN, (*COLUMN, ABOUT)),
    *((*COLUMN, ABOUT, number) for number in (NUM_VALUES, SIZE, STATISTICS)),
    *((*COLUMN, ABOUT, STATISTICS, number) for number in (LARGEST, LEAST)),
}


class ColumnFacts(NamedTuple):
    """Metadata of a column of a row group."""

    values: int
    nbytes: int
    """Size of its pages, uncompressed."""
    least: bytes | None
    """Lower bound of the values, as stored; None if missing."""
    largest: bytes | None


def facts_of_columns(footer: bytes, place: str) -> list[list[ColumnFacts]]:
    """Return the metadata of each column of each row group.

    Parameters
    ----------
    footer : bytes
        The footer without the :data:`~boxscore.formats.parquet.TAIL`.
    place : str
        Name of the file for messages.

    Returns
    -------
    list of list of ColumnFacts
        One list of columns per row group.

    Raises
    ------
    FileFormatError
        If the footer is damaged.
    """
    try:
        groups = _Reader(footer).structure(()).get(COLUMN[0], [])
        facts = [list(group.get(COLUMN[1], [])) for group in groups]
        if not all(isinstance(column, ColumnFacts) for group in facts for column in group):
            raise _DamagedError
    except (IndexError, AttributeError, TypeError, RecursionError, _DamagedError):
        raise FileFormatError(
            "the footer of a Parquet file",
            "describe its columns",
            got="damaged bytes",
            place=place,
            cause="copy or write the file again",
        ) from None
    return facts


class _DamagedError(Exception):
    """The bytes are not a footer."""


class _Reader:
    """A position in bytes. Every step consumes at least one byte, which bounds the time."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def taken(self, count: int) -> bytes:
        self.at += count
        if self.at > len(self.data):
            raise _DamagedError
        return self.data[self.at - count : self.at]

    def byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
            if shift > 63:
                raise _DamagedError

    def signed(self) -> int:
        number = self.varint()
        return (number >> 1) ^ -(number & 1)  # zigzag: 0, -1, 1, -2, 2, ...

    def structure(self, path: tuple[int, ...]) -> Any:
        """Read a structure and return its kept fields by number; for a column, return its facts."""
        fields: dict[int, Any] = {}
        number = 0
        while byte := self.byte():
            # The field number is relative to the last one, or written out.
            number = number + (byte >> 4) if byte >> 4 else self.signed()
            inner = (*path, number)
            value = self.value(byte & 15, inner)
            if inner in KEPT:
                fields[number] = value
        return _facts(fields) if path == COLUMN else fields

    def value(self, kind: int, path: tuple[int, ...], *, listed: bool = False) -> Any:
        """Read a value; return None for kinds that are never kept."""
        # Kinds that may be kept.
        if kind in INTEGERS:
            return self.signed()
        if kind == BINARY:
            return self.taken(self.varint())
        if kind == STRUCT:
            return self.structure(path)
        if kind in (LIST, SET):
            return self.values(path)
        # Kinds that are read and dropped.
        if kind == MAP:
            count = self.varint()
            kinds = self.byte() if count else 0
            for _ in range(count):
                self.value(kinds >> 4, (), listed=True)
                self.value(kinds & 15, (), listed=True)
        elif kind == DOUBLE:
            self.taken(8)
        elif kind == BYTE or (listed and kind in (TRUE, FALSE)):
            self.byte()
        elif kind not in (TRUE, FALSE):  # the kind of a boolean field is its value
            raise _DamagedError
        return None

    def values(self, path: tuple[int, ...]) -> list[Any]:
        """Read a list; return its values if they are kept."""
        byte = self.byte()
        found = []
        for _ in range(self.varint() if byte >> 4 == 15 else byte >> 4):
            value = self.value(byte & 15, path, listed=True)
            if path in KEPT:
                found.append(value)
        return found


def _facts(column: dict[int, Any]) -> ColumnFacts:
    about = column.get(ABOUT, {})
    ends = about.get(STATISTICS)
    least, largest = (ends.get(end) if isinstance(ends, dict) else None for end in (LEAST, LARGEST))
    values = about.get(NUM_VALUES, -1)
    if values < 0:
        raise _DamagedError
    return ColumnFacts(
        values,
        max(about.get(SIZE, 0), 0),
        least if isinstance(least, bytes) else None,
        largest if isinstance(largest, bytes) else None,
    )
