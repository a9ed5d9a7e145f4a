"""Read and write CSV tables of boxes, with commas, semicolons, tabs or pipes as separators.

Conventions
-----------
- The header names the columns. Six columns without a header are ``path,x1,y1,x2,y2,class``, as in
  keras-retinanet.
- pandas reads the columns. Numbers are exact to the last bit; any other text in a numeric column is an error
  that gives the line.
- Decimal commas are supported if the numbers are quoted, or the separator is not a comma.

References
----------
keras-retinanet: "CSV datasets" of its README. Open Images: "Data Formats" of its download page.
"""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import FloatArray
from boxscore._utils.files import write_atomically
from boxscore.data.column_names import ColumnMap, ColumnParts, column_parts
from boxscore.data.tables import BoxTable
from boxscore.errors import FileFormatError, InputError
from boxscore.formats._format import ReadOptions
from boxscore.formats._sniffer import Sniffer
from boxscore.formats._tables import (
    HELD_BY_TABLES,
    MOST_COLUMNS,
    Distinct,
    Table,
    TableFormat,
    ids_of_texts,
    saved_columns,
)

if TYPE_CHECKING:
    import pandas as pd


_SEPARATORS = (",", ";", "\t", "|")
_CLICK = re.compile(r"XClick[1-4][XY]")
"""Points that Open Images annotators clicked: eight columns to skip."""
ROWS_TOGETHER = 1 << 18
_RETINANET = ("path", "x1", "y1", "x2", "y2", "class")
_NUMBER = r"\s*[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?\s*"
_DECIMAL_COMMA = re.compile(r"\s*[-+]?[0-9]+,[0-9]+(?:[eE][-+]?[0-9]+)?\s*")


class CsvFormat(TableFormat):
    """CSV tables of boxes."""

    name = "csv"
    takes = TableFormat.takes | {"segments"}
    endings: ClassVar[tuple[str, ...]] = (".csv",)
    holds: ClassVar[Mapping[str, frozenset[str]]] = {
        "ground truth": HELD_BY_TABLES,
        "detections": frozenset({"columns"}),
    }

    def detect(self, sniffer: Sniffer) -> str | None:
        """Accept a file with a header of boxes, or with the extension of a table."""
        if sniffer.is_folder or sniffer.is_json or sniffer.is_xml:
            return None
        form = None if b"\0" in sniffer.head else form_of(sniffer.text, str(sniffer.path))
        if form is not None:
            return "a table without a header line" if form.head == 0 else "a table of boxes"
        return "a table" if sniffer.suffix in (".csv", ".tsv") and sniffer.head.strip() else None

    def table(self, path: Path, options: ReadOptions) -> Table:
        """Read the columns of a file."""
        sniffer = Sniffer(path)
        column_map = options.columns
        form = form_of(sniffer.text, str(path), column_map) or _form_of_table(sniffer, path, column_map)
        _refuse_nul(path)
        return _CsvTable(path, form, _cells(path, form))

    def save(self, table: BoxTable, path: Path, *, like: Path | None = None) -> None:
        """Write one row per box, with all digits of every number; images without objects come last."""
        self.check_written(table)
        write_csv(path, {name: values.tolist() for name, values in saved_columns(table).items()})


FORMAT = CsvFormat()


def write_csv(path: Path, columns: Mapping[str, Sequence[Any]]) -> None:
    """Write columns with a header."""
    output = io.StringIO(newline="")
    writer = csv.writer(output, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*(map(_cell_text, values) for values in columns.values()), strict=True))
    write_atomically(path, output.getvalue())


def _cell_text(value: Any) -> Any:
    """Convert a value for output: flags to 0 and 1, NaN to an empty cell."""
    if isinstance(value, bool):
        return int(value)
    return None if isinstance(value, float) and value != value else value


# ---------------------------------------------------------------- the form of a file


class _Form(NamedTuple):
    """The dialect and columns of a file."""

    separator: str
    names: tuple[str, ...]
    parts: ColumnParts
    head: int | None
    """Number of header lines, 0 or 1."""
    decimal: str


def form_of(text: str, place: str, column_map: ColumnMap | None = None) -> _Form | None:
    """Infer the form of a file from its beginning; None if it does not look like a table of boxes."""
    for separator in _SEPARATORS:
        lines = _first_lines(text, separator)
        if not lines or not 3 <= len(lines[0]) <= MOST_COLUMNS:
            continue
        for names, head in ((tuple(name.strip() for name in lines[0]), 1), (_RETINANET, 0)):
            if head == 0 and not (separator == "," and _is_retinanet(lines)):
                continue
            if any("{" in name for name in names):  # truncated JSON
                continue
            try:
                parts = column_parts(names, place=place, column_map=column_map if head else None)
            except InputError:
                continue
            return _Form(separator, names, parts, head, _decimal(lines[head:], names, parts))
    return None


def _form_of_table(sniffer: Sniffer, path: Path, column_map: ColumnMap | None) -> _Form:
    """Raise an error that explains why a file is not a table of boxes."""
    # Empty or binary files.
    if not sniffer.head.strip():
        raise FileFormatError("a table", "have a header line", got="an empty file", place=str(path))
    if sniffer.head[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\0" in sniffer.head:
        raise FileFormatError("a table", "be UTF-8", got="other bytes", place=str(path))
    # Split the header at the most frequent separator, and check its names.
    separator = max(_SEPARATORS, key=sniffer.first_line.count)
    lines = _first_lines(sniffer.text, separator)
    names = tuple(name.strip() for name in lines[0]) if lines else ()
    if len(names) > MOST_COLUMNS:
        rule = f"have at most {MOST_COLUMNS:,} columns"
        raise FileFormatError("a table", rule, got=f"{len(names):,}", place=str(path))
    if any(re.fullmatch(_NUMBER, name) for name in names):
        raise FileFormatError(
            "the first line of a table",
            "name the columns",
            got=repr(sniffer.first_line)[:80],
            place=str(path),
            cause="add a header line such as image,class,x1,y1,x2,y2 (detections: also score)",
        )
    # The best message is that of the columns: one is missing, or occurs twice.
    try:
        column_parts(names, place=str(path), column_map=column_map)
    except InputError as error:
        if column_map is not None and error.name == column_map.name:
            raise
        raise FileFormatError(*_parts_of(error)) from None
    raise FileFormatError("a table", "have a header line", got=repr(sniffer.first_line)[:80], place=str(path))


def _parts_of(error: InputError) -> tuple[str]:
    return (str(error),)


def _first_lines(text: str, separator: str, most: int = 50) -> list[list[str]]:
    """Return the cells of the first non-blank lines."""
    lines = []
    try:
        for line in csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True):
            if any(cell.strip() for cell in line):
                lines.append(line)
            if len(lines) >= most:
                break
    except csv.Error:
        pass
    return lines


def _is_retinanet(lines: Sequence[Sequence[str]]) -> bool:
    """Whether all lines have the form ``path,x1,y1,x2,y2,class``."""
    return all(
        len(line) == 6
        and re.fullmatch(_NUMBER, line[0]) is None
        and (
            all(re.fullmatch(_NUMBER, cell) for cell in line[1:5])
            if any(line[1:])
            else re.search(r"\.\w+$", line[0]) is not None
        )
        for line in lines[:-1] or lines  # the last one may be truncated
    )


def _decimal(lines: Sequence[Sequence[str]], names: Sequence[str], parts: ColumnParts) -> str:
    """Infer the decimal separator from the numbers of boxes."""
    if len(parts.box) == 1:
        return "."
    places = [names.index(name) for name in parts.box]
    cells = [line[place] for line in lines for place in places if place < len(line)]
    return "," if any(_DECIMAL_COMMA.fullmatch(cell) for cell in cells) else "."


# ---------------------------------------------------------------- reading


def _refuse_nul(path: Path) -> None:
    """Reject a file with NUL, at which pandas ends a cell."""
    try:
        with path.open("rb") as file:
            while piece := file.read(1 << 22):
                if b"\0" in piece:
                    raise FileFormatError("a table", "be UTF-8 text", got="a byte 0", place=str(path))
    except OSError as error:
        raise FileFormatError(f"{path}: cannot be read: {error.strerror}.") from None


def _number_names(form: _Form) -> list[str]:
    """Return the names of numeric columns."""
    parts = form.parts
    several = parts.box if len(parts.box) == 4 else ()
    area = [parts.flags["area"]] if "area" in parts.flags else []
    names = [*several, *([parts.score] if parts.score else []), *(parts.image_size or ())]
    return [*names, *(parts.sides or ()), *area]


class _Cells(NamedTuple):
    """The cells of a file, by column."""

    rows: int
    numbers: dict[str, FloatArray]
    texts: dict[str, tuple[list[str], NDArray[np.int64]]]
    """Distinct texts in order of first occurrence, and the index of each cell's text; -1 if missing."""


def _cells(path: Path, form: _Form) -> _Cells:
    """Read all columns in chunks of rows; storing a text per cell would take ten times the memory."""
    import pandas as pd

    # Store numbers as float64, and texts as one code per cell plus the distinct texts.
    numbers = [name for name in _number_names(form) if name in _make_unique(form.names)]
    texts = [name for name in _make_unique(form.names) if name not in numbers and not _CLICK.fullmatch(name)]
    known: dict[str, dict[Any, int]] = {name: {} for name in texts}
    number_parts: dict[str, list[FloatArray]] = {name: [] for name in numbers}
    code_parts: dict[str, list[NDArray[np.int32]]] = {name: [] for name in texts}
    rows = 0
    for frame in _frames(path, form):
        rows += len(frame)
        for name in numbers:
            number_parts[name].append(frame[name].to_numpy(dtype=np.float64))
        for name in texts:
            # pandas numbers the texts within a chunk; map them to their numbers in the file.
            codes, values = pd.factorize(frame[name])
            table = known[name]
            position_of = [table.setdefault(value, len(table)) for value in values.tolist()]
            # The code -1 of a missing cell selects the last element.
            code_parts[name].append(np.array([*position_of, -1], dtype=np.int32)[codes])
    # Concatenate and drop chunks one column at a time, to avoid two copies of everything in memory.
    return _Cells(
        rows,
        {name: _join(number_parts.pop(name), np.float64) for name in numbers},
        {
            name: ([str(text) for text in known[name]], _join(code_parts.pop(name), np.int32))
            for name in texts
        },
    )


def _join(parts: list[NDArray[Any]], dtype: type) -> NDArray[Any]:
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts) if parts else np.empty(0, dtype=dtype)


def _frames(path: Path, form: _Form) -> Iterator[pd.DataFrame]:
    """Read all columns in chunks of rows: numbers as float64, others as text."""
    import pandas as pd

    # The fast parser of older pandas versions rounds differently.
    numbers = _number_names(form)
    unique = _make_unique(form.names)
    precise: dict[str, Any] = {}
    if tuple(int(part) for part in pd.__version__.split(".")[:2]) < (3, 1):
        precise["float_precision"] = "round_trip"  # the only exact option
    try:
        # A parser warning means that a value was lost; make it an error.
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            # Do not let pandas guess: give all types, treat only empty cells as missing, use unique names.
            with pd.read_csv(
                path,
                sep=form.separator,
                header=0 if form.head else None,
                names=unique,
                index_col=False,
                dtype={
                    name: "float64" if name in numbers else "category" if _CLICK.fullmatch(name) else object
                    for name in unique
                },
                keep_default_na=False,
                na_values={name: [""] for name in numbers},
                skipinitialspace=True,
                decimal=form.decimal,
                encoding="utf-8-sig",
                compression=None,
                low_memory=False,
                chunksize=ROWS_TOGETHER,
                **precise,
            ) as reader:
                yield from reader
    except (ValueError, OverflowError, pd.errors.ParserWarning, MemoryError, RecursionError) as error:
        # Read again, slowly, to find the line; the message of pandas is the last resort.
        _explain(path, form, error)
        raise FileFormatError(
            "a table", "be readable", got=str(error).splitlines()[0][:200], place=str(path)
        ) from None


def _make_unique(names: Sequence[str]) -> list[str]:
    """Make column names unique for pandas."""
    seen: set[str] = set()
    unique = []
    for position, name in enumerate(names):
        unique.append(name if name and name not in seen else f"column {position + 1} {name}")
        seen.add(name)
    return unique


def _records(path: Path, form: _Form) -> Iterator[tuple[int, list[str]]]:
    """Read the rows again one by one, with the number of their last line, for messages."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, delimiter=form.separator, skipinitialspace=True)
            first = bool(form.head)
            for row in reader:
                if not any(cell.strip() for cell in row) and len(row) < 2:
                    continue
                if first:
                    first = False
                    continue
                yield reader.line_num, row
    except UnicodeDecodeError:
        raise FileFormatError("a table", "be UTF-8", got="other bytes", place=str(path)) from None
    except csv.Error as error:
        raise FileFormatError("a table", "be CSV", got=str(error), place=str(path)) from None


def _explain(path: Path, form: _Form, error: Exception) -> None:
    """Raise an error that gives the line that pandas cannot read."""
    numbers = set(_number_names(form))
    for line, row in _records(path, form):
        place = f"line {line} of {path}"
        if len(row) > len(form.names):
            rule = f"have {len(form.names)} cells, like the header line"
            raise FileFormatError("a row", rule, got=f"{len(row)}", place=place)
        for name, cell in zip(form.names, row, strict=False):
            if name in numbers and cell and not _is_number(cell, form.decimal):
                decimal = "are these decimal commas?" if _DECIMAL_COMMA.fullmatch(cell) else ""
                raise FileFormatError(name, "be a number", got=repr(cell)[:60], place=place, cause=decimal)
    if "EOF inside string" in str(error):
        cause = "was the file cut off?"
        raise FileFormatError("a table", "close its quotes", got="an open one", place=str(path), cause=cause)


def _is_number(cell: str, decimal: str) -> bool:
    try:
        number = float(cell.replace(decimal, "."))
    except ValueError:
        return False
    return number == number and "_" not in cell


class _CsvTable(Table):
    """The columns of a CSV file."""

    def __init__(self, path: Path, form: _Form, cells: _Cells) -> None:
        names = [name for name in _make_unique(form.names) if name in cells.numbers or name in cells.texts]
        self.source, self.count, self.names = str(path), cells.rows, names
        self._path, self._form, self._cells = path, form, cells
        self._known: dict[str, Distinct] = {}

    def distinct(self, name: str) -> Distinct:
        """Return the distinct values of a column."""
        if name not in self._known:
            texts, codes = self._texts(name)
            self._known[name] = _strip_texts(texts, codes)
        return self._known[name]

    def _texts(self, name: str) -> tuple[list[str], NDArray[np.int64]]:
        """Return the distinct texts of a column, and the index of each cell's text."""
        if name in self._cells.texts:
            return self._cells.texts[name]
        import pandas as pd

        codes, numbers = pd.factorize(self._cells.numbers[name])
        return [str(number) for number in numbers.tolist()], codes

    def numbers(self, name: str) -> FloatArray:
        """Return a column of numbers."""
        return self._cells.numbers[name]

    def fours(self, name: str) -> FloatArray:
        """Parse a column of texts with four numbers each, such as ``[1, 2, 3, 4]`` or ``1 2 3 4``."""
        texts, codes = self._texts(name)
        fours = np.full((len(texts), 4), np.nan)
        for number, text in enumerate(texts):
            cells = text.translate(_NO_BRACKETS).split()
            if not cells or cells == ["nan"]:
                continue
            if len(cells) != 4 or not all(_is_number(cell, ".") for cell in cells):
                got, place = repr(text)[:60], self.place(int(np.argmax(codes == number)))
                raise FileFormatError(name, "hold four numbers", got=got, place=place)
            fours[number] = [float(cell) for cell in cells]
        return fours[codes]

    def user_column(self, name: str) -> NDArray[Any] | None:
        """Return a user column, as numbers if all cells are numbers."""
        if name in self._cells.numbers:
            return self._cells.numbers[name]
        texts, codes = self._texts(name)
        values: NDArray[Any]
        if texts and all(_is_number(text, ".") or not text for text in texts):
            whole = all(re.fullmatch(r"-?[0-9]{1,15}", text) for text in texts)
            numbers = [int(text) if whole else float(text or "nan") for text in texts]
            values = np.array(numbers)
        else:
            values = np.empty(len(texts), dtype=object)
            values[:] = texts
        return values[codes]

    def place(self, row: int) -> str:
        """Return the line of a row."""
        for number, (line, _) in enumerate(_records(self._path, self._form)):
            if number == row:
                return f"line {line} of {self._path}"
        return f"row {row} of {self._path}"


_NO_BRACKETS = str.maketrans("[](){},;", "        ")


def _strip_texts(texts: list[str], codes: NDArray[np.int64]) -> Distinct:
    """Strip texts and merge equal ones, with updated codes; "" is empty."""
    known: dict[str, int] = {}
    position_of = np.empty(len(texts) + 1, dtype=np.int64)
    position_of[-1] = -1
    for number, text in enumerate(texts):
        short = text.strip()
        position_of[number] = known.setdefault(short, len(known)) if short else -1
    return Distinct(ids_of_texts(list(known)), position_of[codes])
