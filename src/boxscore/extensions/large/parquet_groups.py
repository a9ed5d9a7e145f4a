"""Read Parquet files row group by row group, as flat tables with one row per box.

Conventions
-----------
- Two columns are added: :data:`KEY`, unique to each box and ascending in the order of the files, and
  :data:`AT`, the row in the row group.
- User columns are not read.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import zlib
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from boxscore._utils.given_paths import is_far
from boxscore._utils.records import PicklesFields
from boxscore.data.box_reading import Units
from boxscore.data.column_names import ColumnMap, ColumnParts, column_parts
from boxscore.data.vocabulary import Id
from boxscore.errors import FileFormatError
from boxscore.extensions.large.parquet_footer import ColumnFacts, facts_of_columns
from boxscore.formats._format import ReadOptions
from boxscore.formats._tables import are_sides, boxes_of, images_of, may_be_sides
from boxscore.formats.parquet import (
    TEXTS,
    ArrowTable,
    absent_columns,
    are_around,
    arrow,
    by_box,
    class_names_of,
    converted_errors,
    joined,
    one_array,
    opened_parquet,
    part_files,
    wanted_columns,
)

if TYPE_CHECKING:
    import pyarrow as pa

KEY, AT = "__boxscore_key", "__boxscore_at"


class RowGroup(NamedTuple):
    """A row group of one of the files."""

    file: int
    number: int
    rows: int
    """Number of rows, which are images in some layouts."""
    boxes: int
    """Upper bound on the number of boxes."""
    first: int
    """:data:`KEY` of the first box."""
    nbytes: int
    """Uncompressed size of the columns that are read."""
    least: Id | None = None
    """Lower bound of the image ids; None if unknown."""
    largest: Id | None = None


@dataclasses.dataclass(frozen=True)
class ParquetGroups(PicklesFields):
    """The row groups of a Parquet file or folder; pickles as paths and numbers.

    Attributes
    ----------
    path : Path
    files : tuple of Path
    groups : tuple of RowGroup
        In the order of the files.
    schema : pyarrow.Schema
        Schema of the columns that are read, common to all files.
    names : tuple of str
        Names of these columns in a table with one row per box.
    digests : tuple of int
        Checksum of the footer of each file, which has the offsets of all data and column statistics.
    column_map : ColumnMap or None
        Column names given by the user.
    absent : mapping of str to str
        The first file without a column, by column.
    held : Path or None
        Cache folder for ranges of remote files, each downloaded once.
    """

    path: Path
    files: tuple[Path, ...]
    groups: tuple[RowGroup, ...]
    schema: pa.Schema
    names: tuple[str, ...]
    digests: tuple[int, ...]
    column_map: ColumnMap | None = None
    absent: Mapping[str, str] = dataclasses.field(default_factory=dict)
    held: Path | None = None

    @classmethod
    def open(cls, path: Path, options: ReadOptions, *, further: Collection[str] | None = ()) -> ParquetGroups:
        """Read the footers and schemas of the files, but no rows.

        ``further`` names extra columns to read; None reads all.
        """
        # Only footers are read, so opening terabytes takes moments.
        files = tuple(part_files(path, options))
        groups: list[RowGroup] = []
        digests: list[int] = []
        empty: list[Any] = []
        ends: list[dict[str, tuple[Any, ColumnFacts]]] = []
        first = 0
        for number, file in enumerate(files):
            with converted_errors(str(file)), opened_parquet(file) as (footer, parquet):
                # The checksum of the footer detects later changes of the file.
                digests.append(zlib.crc32(footer))
                wanted = wanted_columns(parquet, str(file))
                empty.append(parquet.read_row_groups([], columns=wanted))
                columns = [(i, parquet.schema.column(i)) for i in range(len(parquet.schema))]
                lists = [i for i, column in columns if column.path in wanted and column.max_repetition_level]
                rows = [parquet.metadata.row_group(i).num_rows for i in range(parquet.num_row_groups)]
                facts = facts_of_columns(footer, str(file))
                if len(facts) != len(rows) or {*map(len, facts)} - {len(columns)}:
                    got = "other row groups or columns"
                    raise FileFormatError(
                        "a Parquet file", "describe its content once", got=got, place=str(file)
                    )
                # Count the boxes of a row group: the values of its lists, or else its rows.
                for group, (count, said) in enumerate(zip(rows, facts, strict=True)):
                    boxes = max((said[i].values for i in lists), default=count)
                    nbytes = sum(said[i].nbytes for i, column in columns if column.path in wanted)
                    groups.append(RowGroup(number, group, count, boxes, first, nbytes))
                    ends.append({column.path: (column, said[i]) for i, column in columns if i not in lists})
                    first += boxes
        # All files share one schema; record the columns that a file with rows lacks.
        column_map = options.columns
        schema, names = _needed(joined(empty, str(path)), str(path), further, column_map)
        filled = {group.file for group in groups if group.rows}
        absent = absent_columns({str(files[at]): empty[at].column_names for at in filled})
        opened_groups = cls(path, files, tuple(groups), schema, names, tuple(digests), column_map, absent)
        # The minimum and maximum image id show which row groups a partition needs.
        name = opened_groups.parts.image
        return opened_groups.with_groups(
            [
                _with_ends(group, *said[name]) if name in said else group
                for group, said in zip(groups, ends, strict=True)
            ]
        )

    def with_groups(self, groups: Sequence[RowGroup]) -> ParquetGroups:
        """Return a copy with other row groups, e.g. with more statistics."""
        return dataclasses.replace(self, groups=tuple(groups))

    def holding(self, folder: Path) -> ParquetGroups:
        """Return a copy that caches ranges of remote files in a folder."""
        if not any(map(is_far, self.files)):
            return self
        folder.mkdir(parents=True, exist_ok=True)
        return dataclasses.replace(self, held=folder)

    @property
    def boxes(self) -> int:
        """Upper bound on the number of boxes."""
        return sum(group.boxes for group in self.groups)

    @functools.cached_property
    def parts(self) -> ColumnParts:
        """The columns by role: image, class, box, ..."""
        return column_parts(self.names, place=str(self.path), column_map=self.column_map)

    def _opened(self, file: Path) -> AbstractContextManager[tuple[bytes, Any]]:
        """Open a file; ranges of a remote file are cached."""
        if self.held is None or not is_far(file):
            return opened_parquet(file)
        from boxscore.extensions.stores.held_ranges import held_file

        return opened_parquet(file, functools.partial(held_file, self.held, file))

    def read(self, group: RowGroup, columns: Sequence[str] | None = None) -> pa.Table:
        """Read a row group, one row per box; ``columns`` are names, by default all that are needed."""
        pa, _ = arrow()
        # Check that the file is the one whose footer was read.
        file = self.files[group.file]
        place = self.place_of(group)
        with converted_errors(place), self._opened(file) as (footer, parquet):
            if zlib.crc32(footer) != self.digests[group.file]:
                raise FileFormatError(
                    "a Parquet file",
                    "not change while it is read",
                    got="another file of this name",
                    place=place,
                    cause="was it replaced, or does a worker see another file?",
                )
            # Read the columns and cast them to the types that all files share.
            schema = self.schema if columns is None else pa.schema([self.schema.field(c) for c in columns])
            paths = [
                path
                for path in wanted_columns(parquet, place)
                if any(path == name or path.startswith(f"{name}.") for name in schema.names)
            ]
            table = parquet.read_row_group(group.number, columns=paths)
            table = joined([schema.empty_table(), table], place).select(schema.names)
            # Flatten to one row per box, then check that every column has a value for each.
            flat, parents = by_box(table, place, self.column_map)
        names = self.names if columns is None else columns
        uneven = [name for name in names if name not in flat]
        if uneven:
            got = "lists of other lengths"
            raise FileFormatError(uneven[0], "have a value for each box", got=got, place=place)
        flat = {name: flat[name] for name in names}
        # Keys come from the counts in the footer, so more boxes would give duplicate keys.
        count = len(next(iter(flat.values()))) if flat else 0
        if count > group.boxes:
            got = f"{count:,} boxes, where its footer says {group.boxes:,}"
            raise FileFormatError("a row group", "match the footer of its file", got=got, place=place)
        # Add the key of each box and its row in the group.
        flat[KEY] = pa.array(group.first + np.arange(count))
        flat[AT] = pa.array(np.arange(count) if parents is None else parents)
        return pa.table(flat).replace_schema_metadata(self.schema.metadata)

    def read_columns(self, group: RowGroup, names: Sequence[str | None]) -> BoxesTable:
        """Read a few columns by name; if one is nested, read all columns."""
        pa, _ = arrow()
        known = [name for name in names if name is not None]
        nested = [field.name for field in self.schema if pa.types.is_nested(field.type)]
        alone = all(name in self.schema.names and name not in nested for name in known)
        return BoxesTable(self, [self.read(group, known if alone else None)])

    def are_fractions(self) -> bool:
        """Return whether all coordinates are fractions of the image size; raise if most are, but not all.

        If most boxes of the first, the middle and the last row group are pixels, the others are not read.
        """
        if not self.parts.box:
            return False
        filled = [group for group in self.groups if group.boxes]
        ends = {0, len(filled) // 2, len(filled) - 1} if filled else set()
        units = Units()
        for at in sorted(range(len(filled)), key=lambda at: at not in ends):
            if at not in ends and units.are_clearly_pixels:
                return False
            table = BoxesTable(self, [self.read(filled[at])])
            boxes = boxes_of(table, self.parts)
            rows = np.flatnonzero(~np.isnan(boxes).any(axis=1))
            units.add(boxes[rows], lambda row, table=table, rows=rows: table.place(int(rows[row])))  # type: ignore[misc]
        return units.are_fractions()

    def without_sides(self) -> ParquetGroups:
        """Return a copy without width and height columns that are sizes of boxes, not of images.

        They are box sizes if they fit every box and some image has two different values.
        """
        # Read only if the columns may be either.
        pair = self.parts.image_size
        if pair is None or not may_be_sides(self.parts):
            return self
        first: dict[Any, tuple[float, float]] = {}
        different = False
        # If a group does not fit its boxes, the columns are the image size.
        for group in self.groups:
            table = BoxesTable(self, [self.read(group)])
            sizes = np.column_stack([table.numbers(name) for name in pair])
            if not are_sides(table, self.parts, sizes):
                return self
            values, positions = images_of(table, self.parts)
            # NaN differs from itself, so unknown sides are skipped.
            for image, size in zip(positions.tolist(), sizes.tolist(), strict=True):
                known = first.setdefault(values[image], tuple(size))
                different |= any(
                    side == side and side != side_before
                    for side, side_before in zip(size, known, strict=True)
                )
        if not different:
            return self
        return dataclasses.replace(self, names=tuple(name for name in self.names if name not in pair))

    def empty(self) -> pa.Table:
        """Return a table without rows."""
        pa, _ = arrow()
        flat, _ = by_box(self.schema.empty_table(), str(self.path), self.column_map)
        empty = pa.array([], pa.int64())
        flat = {name: flat[name] for name in self.names} | {KEY: empty, AT: empty}
        return pa.table(flat).replace_schema_metadata(self.schema.metadata)

    def place_of(self, group: RowGroup) -> str:
        """Return the name of a row group for messages."""
        return f"row group {group.number} of {self.files[group.file]}"

    def place(self, key: int, at: int) -> str:
        """Return the name of the row of a box for messages."""
        firsts = np.array([group.first for group in self.groups])
        return (
            f"row {at} of {self.place_of(self.groups[int(np.searchsorted(firsts, key, side='right')) - 1])}"
        )


def _with_ends(group: RowGroup, column: Any, facts: ColumnFacts) -> RowGroup:
    """Return a row group with the minimum and maximum id, if the footer has both."""
    if facts.least is None or facts.largest is None:
        return group
    kind, logical = column.physical_type, column.logical_type.type
    if kind in ("INT32", "INT64") and logical in ("NONE", "INT"):
        if not len(facts.least) == len(facts.largest) == int(kind[3:]) // 8:
            return group
        signed = not str(column.converted_type or "").startswith("UINT")
        least, largest = (
            int.from_bytes(end, "little", signed=signed) for end in (facts.least, facts.largest)
        )
        return group._replace(least=least, largest=largest)
    if kind == "BYTE_ARRAY" and logical in TEXTS:
        with contextlib.suppress(UnicodeDecodeError):  # truncated inside a character
            return group._replace(least=facts.least.decode(), largest=facts.largest.decode())
    return group


class BoxesTable(ArrowTable):
    """Boxes of some row groups as a flat table, with row names for messages."""

    def __init__(self, groups: ParquetGroups, tables: Sequence[pa.Table]) -> None:
        self.source, self._groups, self._known = str(groups.path), groups, {}
        self.absent = groups.absent
        table = joined(tables, self.source)
        self._keys, self._at = (np.asarray(table.column(name)) for name in (KEY, AT))
        names = [name for name in table.column_names if name != AT]
        self._columns = {name: one_array(table.column(name)) for name in names}
        self.names, self.count = names, len(table)
        parts = groups.parts
        label = parts.class_name if parts.class_id is None else parts.class_id
        metadata = table.schema.metadata or {}
        self.class_list, self.class_names = class_names_of(metadata, label)
        self.boxes_around = are_around(metadata)

    def place(self, row: int) -> str:
        """Return the name of a row for messages."""
        return self._groups.place(int(self._keys[row]), int(self._at[row]))


def _needed(
    table: pa.Table, place: str, further: Collection[str] | None, column_map: ColumnMap | None
) -> tuple[pa.Schema, tuple[str, ...]]:
    """Return the schema of the columns to read, and their names in a table with one row per box."""
    pa, _ = arrow()
    flat, _ = by_box(table, place, column_map)
    parts = column_parts(list(flat), place=place, column_map=column_map)
    kept = {parts.late_name, *(further or ())}
    other = {name for name in parts.other if further is not None and name not in kept}  # user columns
    fields = [field for field in table.schema if field.name not in other]
    return pa.schema(fields, metadata=table.schema.metadata), tuple(
        name for name in flat if name not in other
    )
