"""Read the metadata of each column from the footer of a Parquet file: Thrift in the compact protocol.

pyarrow gives it as well, but aborts the process where the metadata of a column are damaged. Nothing but these
facts is kept while the footer is walked.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from boxscore.errors import FileFormatError

TRUE, FALSE, BYTE, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = 1, 2, 3, 7, 8, 9, 10, 11, 12
INTEGERS = (4, 5, 6)

COLUMN = (4, 1)
"""Field numbers from the file to a column: row groups, and the columns of each."""
ABOUT, NUM_VALUES, SIZE, STATISTICS, LARGEST, LEAST = 3, 5, 6, 12, 5, 6
"""Field numbers: in a column, three in the metadata of that, and two in its statistics."""
KEPT = {
    *((4,), COLUMN, (*COLUMN, ABOUT)),
    *((*COLUMN, ABOUT, number) for number in (NUM_VALUES, SIZE, STATISTICS)),
    *((*COLUMN, ABOUT, STATISTICS, number) for number in (LARGEST, LEAST)),
}


class ColumnFacts(NamedTuple):
    """The metadata of a column of a row group."""

    values: int
    nbytes: int
    """Of its pages, not compressed."""
    least: bytes | None
    """No value is smaller, as values are stored; None where it is not said."""
    largest: bytes | None


def facts_of_columns(footer: bytes, place: str) -> list[list[ColumnFacts]]:
    """Return the metadata of each column in each row group.

    Parameters
    ----------
    footer : bytes
        Without the :data:`~boxscore.formats.parquet.TAIL`.
    place : str
        Names the file.

    Returns
    -------
    list of list of ColumnFacts
        One list for each row group, of its columns.

    Raises
    ------
    FileFormatError
        When the footer is damaged.
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
    """A position in bytes; each step consumes at least one, so that time is bounded by their number."""

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
        """Read the fields of a structure that are kept, by number; of a column its facts."""
        fields: dict[int, Any] = {}
        number = 0
        while byte := self.byte():
            # The number follows from the last one, or is written out.
            number = number + (byte >> 4) if byte >> 4 else self.signed()
            inner = (*path, number)
            value = self.value(byte & 15, inner)
            if inner in KEPT:
                fields[number] = value
        return _facts(fields) if path == COLUMN else fields

    def value(self, kind: int, path: tuple[int, ...], *, listed: bool = False) -> Any:
        """Read a value; one of a kind that is never kept gives None."""
        # Kinds that a footer keeps.
        if kind in INTEGERS:
            return self.signed()
        if kind == BINARY:
            return self.taken(self.varint())
        if kind == STRUCT:
            return self.structure(path)
        if kind in (LIST, SET):
            return self.values(path)
        # Kinds that are passed over: their content is read, and dropped.
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
        elif kind not in (TRUE, FALSE):  # a field of these holds no more than its kind
            raise _DamagedError
        return None

    def values(self, path: tuple[int, ...]) -> list[Any]:
        """Read a list; its values where they are kept."""
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
