"""Read JSON records as tables; one is a box, an image with parallel lists, or an image with objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import FloatArray
from boxscore.data.column_names import ColumnMap, has_part, is_box
from boxscore.errors import FileFormatError
from boxscore.formats import _json
from boxscore.formats._tables import MOST_COLUMNS, OBJECTS, Distinct, Table

_SIDES = {"xmin", "ymin", "xmax", "ymax"}


def flat_record(record: Any) -> tuple[dict[str, Any], str | None]:
    """Return the keys of a record and of its first box, and the key of its list of boxes."""
    if not isinstance(record, dict):
        raise TypeError
    key = next(
        (k for k, v in record.items() if k.lower() in OBJECTS and isinstance(v, (list, type(None)))), None
    )
    if key is None:
        return record, None
    first = next((item for item in record[key] or () if isinstance(item, dict)), {})
    return {**{k: v for k, v in record.items() if k != key}, **first}, key


def decoded_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Decode a file, line by line."""
    # Decode line by line, to hold one line in memory and to name it in errors.
    decoder = msgspec.json.Decoder(dict[str, Any])
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                text = line.removeprefix(b"\xef\xbb\xbf").strip() if number == 1 else line.strip()
                if not text:
                    continue
                try:
                    yield number, decoder.decode(text)
                except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
                    raise FileFormatError(
                        "a line",
                        "be a JSON object",
                        got=repr(text[:40].decode("utf-8", errors="replace")),
                        place=f"line {number} of {path}",
                        cause=str(error)[:80].replace("\n", " "),
                    ) from None
    except OSError as error:
        raise FileFormatError(f"{path}: cannot be read: {error.strerror}.") from None


def read_records(path: Path, column_map: ColumnMap | None, most: int | None = None) -> Iterator[RecordTable]:
    """Read the records of a file into tables of about ``most`` rows each, or into one table."""
    kind, table = None, RecordTable(path, column_map)
    for line, record in decoded_lines(path):
        if kind is None:
            kind = _kind(record, column_map)
        table.add(line, record, kind)
        if most is not None and table.count >= most:
            yield table
            table = RecordTable(path, column_map)
    if kind is None:
        raise FileFormatError("JSON lines", "hold a record", got="none", place=str(path))
    if table.count or most is None:
        yield table


def table_of_records(
    path: Path, records: Sequence[dict[str, Any]], column_map: ColumnMap | None
) -> RecordTable:
    """Return the records of a JSON list as a table; the first one decides what a record is."""
    table = RecordTable(path, column_map, noun="record")
    kind = _kind(records[0], column_map) if records else "record"
    for number, record in enumerate(records):
        table.add(number, record, kind)
    return table


class RecordTable(Table):
    """Records of a JSON file, one value per box and key; ``noun`` is what messages count."""

    def __init__(self, path: Path, column_map: ColumnMap | None, *, noun: str = "line") -> None:
        self.source, self._column_map, self._noun = str(path), column_map, noun
        self._columns: dict[str, list[Any]] = {}
        self._lines: list[int] = []
        self._texts: dict[str, str] = {}  # equal texts are stored once

    @property
    def count(self) -> int:  # type: ignore[override]
        """Number of rows."""
        return len(self._lines)

    @property
    def names(self) -> list[str]:  # type: ignore[override]
        """The keys."""
        return list(self._columns)

    def take(self, other: RecordTable, rows: Sequence[int], more: Mapping[str, list[Any]]) -> None:
        """Add rows of another table with the same keys, and the cells of further columns."""
        for name in other.names:
            cells = other._cells(name)
            self._columns.setdefault(name, []).extend([cells[row] for row in rows])
        for name, cells in more.items():
            self._columns.setdefault(name, []).extend(cells)
        self._lines += [other._lines[row] for row in rows]

    def add(self, line: int, record: dict[str, Any], kind: str) -> None:
        """Add the rows of a record."""
        # A record is one row.
        place = f"{self._noun} {line} of {self.source}"
        if kind == "record":
            self._append(line, record)
        elif kind == "lists":
            # Parallel lists: lists as long as the boxes give one value per row, other values repeat.
            lists = {key: value for key, value in record.items() if isinstance(value, list)}
            count = max(
                (len(value) for key, value in lists.items() if is_box(key, column_map=self._column_map)),
                default=0,
            )
            for key, value in lists.items():
                if len(value) != count and has_part(key, column_map=self._column_map):
                    rule, got = f"be as long as the boxes ({count})", f"{len(value)}"
                    raise FileFormatError(key, rule, got=got, place=place)
            lists = {key: value for key, value in lists.items() if len(value) == count}
            rest = {key: value for key, value in record.items() if key not in lists}
            for values in zip(*lists.values(), strict=True):
                self._append(line, {**rest, **dict(zip(lists, values, strict=True))})
            # A record without boxes still adds an image.
            if not count:
                self._append(line, {**rest, **dict.fromkeys(lists)})
        else:
            # A record with a list of objects: each becomes a row with the record's other keys.
            objects = record.get(kind)
            rest = {key: value for key, value in record.items() if key != kind}
            if not isinstance(objects, (list, type(None))):
                got = _json.kind_of(objects)
                raise FileFormatError(kind, "be a list of objects", got=got, place=place)
            for item in objects or ():
                if not isinstance(item, dict):
                    got = f"a list with {_json.kind_of(item)}"
                    raise FileFormatError(kind, "be a list of objects", got=got, place=place)
                self._append(line, {**rest, **item})
            if not objects:
                self._append(line, rest)

    def _append(self, line: int, row: dict[str, Any]) -> None:
        """Add a row."""
        # Sides with names, as transformers' pipelines write them, are columns.
        box = row.get("box")
        if type(box) is dict and box.keys() == _SIDES:
            row = {**{key: value for key, value in row.items() if key != "box"}, **box}
        count = len(self._lines)
        self._lines.append(line)
        # Columns grow by key; a late one is padded with None.
        for key, value in row.items():
            column = self._columns.get(key)
            if column is None:
                if len(self._columns) >= MOST_COLUMNS:
                    rule = f"have at most {MOST_COLUMNS:,} keys"
                    place = f"{self._noun} {line} of {self.source}"
                    raise FileFormatError("records", rule, got="more", place=place)
                column = self._columns[key] = []
            column.extend([None] * (count - len(column)))
            # Equal texts share one object, and a tuple of four numbers takes less than a list.
            if type(value) is str:
                value = self._texts.setdefault(value, value)
            elif type(value) is list and len(value) == 4:
                value = tuple(value)
            column.append(value)

    def _cells(self, name: str) -> list[Any]:
        cells = self._columns[name]
        cells.extend([None] * (self.count - len(cells)))
        return cells

    def distinct(self, name: str) -> Distinct:
        """Return the distinct values of a column."""
        return self.ids_of_cells(name, self._cells(name), np.arange(self.count))

    def numbers(self, name: str) -> FloatArray:
        """Return a column of numbers."""
        numbers = np.empty(self.count)
        for row, cell in enumerate(self._cells(name)):
            numbers[row] = self._number(name, cell, row)
        return numbers

    def _number(self, name: str, cell: Any, row: int) -> float:
        if cell is None:
            return np.nan
        if type(cell) not in (int, float):
            raise FileFormatError(name, "be a number", got=_short_repr(cell), place=self.place(row))
        try:
            return float(cell)
        except OverflowError:
            raise FileFormatError(name, "be finite", got=_short_repr(cell), place=self.place(row)) from None

    def fours(self, name: str) -> FloatArray:
        """Return a column of lists of four numbers."""
        cells = self._cells(name)
        fours = np.full((self.count, 4), np.nan)
        for row, cell in enumerate(cells):
            if cell is None or cell == []:
                continue
            if type(cell) is not tuple:
                got = _short_repr(cell)
                raise FileFormatError(name, "be a list of four numbers", got=got, place=self.place(row))
            for side, number in enumerate(cell):
                fours[row, side] = self._number(name, number, row)
                if number is None:
                    raise FileFormatError(name, "hold four numbers", got="null", place=self.place(row))
        return fours

    def user_column(self, name: str) -> NDArray[Any] | None:
        """Return a user column, if its cells are texts, numbers and flags."""
        cells = self._cells(name)
        kinds = {type(cell) for cell in cells}
        if not kinds <= {str, int, float, bool, type(None)}:
            return None
        if kinds <= {int, float} and all(abs(cell) < 2**53 for cell in cells):
            return np.array(cells)
        values = np.empty(self.count, dtype=object)
        values[:] = cells
        return values

    def place(self, row: int) -> str:
        """Name the line of a row."""
        return f"{self._noun} {self._lines[row]} of {self.source}"


def _kind(record: dict[str, Any], column_map: ColumnMap | None) -> str:
    """Return the kind of records: ``"record"`` for boxes, ``"lists"`` for images, or the key of the boxes."""
    _, key = flat_record(record)
    if key is not None:
        return key
    boxes = next((v for k, v in record.items() if is_box(k, columns=1, column_map=column_map)), None)
    if isinstance(boxes, list):
        nested = any(isinstance(box, list) for box in boxes) or not boxes
        return "lists" if nested else "record"
    listed = any(isinstance(value, list) for k, value in record.items() if is_box(k, column_map=column_map))
    return "lists" if listed else "record"


def _short_repr(cell: Any) -> str:
    return repr(cell)[:60]
