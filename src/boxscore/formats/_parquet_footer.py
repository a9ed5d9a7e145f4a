"""What the footer of a Parquet file says of each column of each row group: Thrift in the compact protocol.

pyarrow returns it as well, but ends the process where the metadata of a column are damaged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeVar

from boxscore.errors import FileFormatError

Read = TypeVar("Read")

TAIL = 8
"""Bytes after the footer: its length, and the mark of the format."""

DEEPEST = 32
"""Lists and structures in each other, at most; sound footers have six."""

TRUE, FALSE, BYTE, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = 1, 2, 3, 7, 8, 9, 10, 11, 12
INTEGERS = (4, 5, 6)

ROW_GROUPS, COLUMNS, ABOUT, NUM_VALUES, SIZE, STATISTICS = 4, 1, 3, 5, 6, 12
"""Field numbers: in the file, in a row group, in a column of it, and three in the metadata of that."""

LARGEST, LEAST = 5, 6
"""Field numbers in the statistics of a column, of values in the order of their logical type."""


class ColumnFacts(NamedTuple):
    """What a footer says of a column of a row group."""

    values: int
    nbytes: int
    """Of its pages, not compressed."""
    least: bytes | None
    """No value is smaller, as values are stored; None where it is not said."""
    largest: bytes | None


def facts_of_columns(footer: bytes, place: str) -> list[list[ColumnFacts]]:
    """Return what is said of each column in each row group.

    Parameters
    ----------
    footer : bytes
        Without the :data:`TAIL`.
    place : str
        Names the file.

    Returns
    -------
    list of list of ColumnFacts
        [row groups][columns].

    Raises
    ------
    FileFormatError
        When the footer is damaged.
    """
    try:
        return _Reader(footer).row_groups()
    except (IndexError, _DamagedError):
        raise FileFormatError(
            "the footer of a Parquet file",
            "say what its columns hold",
            got="damaged bytes",
            place=place,
            cause="copy or write the file again",
        ) from None


class _DamagedError(Exception):
    """The bytes are not a footer."""


class _Reader:
    """A position in bytes; each step consumes at least one, so that time is bounded by their number."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def row_groups(self) -> list[list[ColumnFacts]]:
        return self.structures_in(ROW_GROUPS, lambda: self.structures_in(COLUMNS, self.column))

    def structures_in(self, wanted: int, read: Callable[[], Read]) -> list[Read]:
        """Read what the list in one field of a structure holds, and skip the other fields."""
        values: list[Read] = []
        for number, kind in self.fields():
            if number == wanted:
                values = [read() for _ in range(self.structures(kind))]
            else:
                self.skip(kind)
        return values

    def column(self) -> ColumnFacts:
        facts: ColumnFacts | None = None
        for number, kind in self.fields():
            if number == ABOUT and kind == STRUCT:
                facts = self.facts()
            else:
                self.skip(kind)
        if facts is None:
            raise _DamagedError
        return facts

    def facts(self) -> ColumnFacts:
        numbers = {NUM_VALUES: -1, SIZE: 0}
        ends: dict[int, bytes] = {}
        for number, kind in self.fields():
            if number in numbers and kind in INTEGERS:
                numbers[number] = self.signed()
            elif number == STATISTICS and kind == STRUCT:
                ends = self.ends()
            else:
                self.skip(kind)
        if numbers[NUM_VALUES] < 0:
            raise _DamagedError
        return ColumnFacts(numbers[NUM_VALUES], max(numbers[SIZE], 0), ends.get(LEAST), ends.get(LARGEST))

    def ends(self) -> dict[int, bytes]:
        ends = {}
        for number, kind in self.fields():
            if number in (LEAST, LARGEST) and kind == BINARY:
                ends[number] = self.binary()
            else:
                self.skip(kind)
        return ends

    def binary(self) -> bytes:
        length = self.varint()
        self.at += length
        return self.data[self.at - length : self.at]

    def signed(self) -> int:
        number = self.varint()
        return (number >> 1) ^ -(number & 1)  # zigzag: 0, -1, 1, -2, 2, ...

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
            if shift > 63:
                raise _DamagedError

    def fields(self) -> Iterator[tuple[int, int]]:
        """Yield the number and kind of each field of a structure; the caller reads or skips each."""
        number = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            if not byte:
                return
            number = number + (byte >> 4) if byte >> 4 else self.signed()
            yield number, byte & 15

    def list_of(self) -> tuple[int, int]:
        """Return the number and kind of what a list holds."""
        byte = self.data[self.at]
        self.at += 1
        return (self.varint() if byte >> 4 == 15 else byte >> 4), byte & 15

    def structures(self, kind: int) -> int:
        """Return how many structures a field of this kind holds."""
        count, inner = self.list_of() if kind == LIST else (0, 0)
        if kind != LIST or (count and inner != STRUCT):
            raise _DamagedError
        return count

    def skip(self, kind: int, depth: int = 0, *, listed: bool = False) -> None:
        if kind in INTEGERS:
            while self.data[self.at] >= 0x80:
                self.at += 1
            self.at += 1
        elif kind == BINARY:
            length = self.varint()
            self.at += length
        elif kind == STRUCT and depth < DEEPEST:
            for _, inner in self.fields():
                self.skip(inner, depth + 1)
        elif kind in (LIST, SET) and depth < DEEPEST:
            count, inner = self.list_of()
            for _ in range(count):
                self.skip(inner, depth + 1, listed=True)
        elif kind == MAP and depth < DEEPEST:
            count = self.varint()
            kinds = self.data[self.at] if count else 0
            self.at += bool(count)
            for _ in range(count):
                self.skip(kinds >> 4, depth + 1, listed=True)
                self.skip(kinds & 15, depth + 1, listed=True)
        elif kind == DOUBLE:
            self.at += 8
        elif kind == BYTE or (listed and kind in (TRUE, FALSE)):
            self.at += 1
        elif kind not in (TRUE, FALSE):
            raise _DamagedError
        if self.at > len(self.data):
            raise _DamagedError
