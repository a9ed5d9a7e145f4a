"""Parquet files read row group by row group: only the columns of boxes, flat, each row with its place.

Conventions
-----------
- Every layout becomes one row per box. Two columns are added: :data:`KEY`, which ascends in the order of the
  files and is unique to each box, and :data:`AT`, its row in the row group.
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
from boxscore.data.box_reading import LARGEST_FRACTION
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
    """Rows of the file, which may be images."""
    boxes: int
    """Boxes at most."""
    first: int
    """:data:`KEY` of its first box."""
    nbytes: int
    """Bytes of the columns that are read, not compressed."""
    least: Id | None = None
    """No image in it has a smaller id; None where that is not known."""
    largest: Id | None = None


@dataclasses.dataclass(frozen=True)
class ParquetGroups(PicklesFields):
    """The row groups of a Parquet file, or of a folder of them; pickles as paths and numbers.

    Attributes
    ----------
    path : Path
    files : tuple of Path
    groups : tuple of RowGroup
        In the order of the files.
    schema : pyarrow.Schema
        Of the columns that are read, as all files together have them.
    names : tuple of str
        What these are called, one row per box.
    digests : tuple of int
        Of the footer of each file, which has the positions of all data, and the least and largest values.
    column_map : ColumnMap or None
        The user's names of columns.
    absent : mapping of str to str
        The first file that does not have a column, by column.
    held : Path or None
        A folder for what is read of files in a store, which is read from there once.
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
        """Read the footers and schemas of the files; no row is read.

        ``further`` names columns that are read though they have no part; None for all.
        """
        # Everything comes from the footers, so opening terabytes takes moments.
        files = tuple(part_files(path, options))
        groups: list[RowGroup] = []
        digests: list[int] = []
        empty: list[Any] = []
        ends: list[dict[str, tuple[Any, ColumnFacts]]] = []
        first = 0
        for number, file in enumerate(files):
            with converted_errors(str(file)), opened_parquet(file) as (footer, parquet):
                # The checksum of a footer tells later whether the file is still the same.
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
                # A row group's boxes are the values of its lists, or its rows where it has none.
                for group, (count, said) in enumerate(zip(rows, facts, strict=True)):
                    boxes = max((said[i].values for i in lists), default=count)
                    nbytes = sum(said[i].nbytes for i, column in columns if column.path in wanted)
                    groups.append(RowGroup(number, group, count, boxes, first, nbytes))
                    ends.append({column.path: (column, said[i]) for i, column in columns if i not in lists})
                    first += boxes
        # Files of one folder share a schema; a column that a file with rows lacks is noted.
        column_map = options.columns
        schema, names = _needed(joined(empty, str(path)), str(path), further, column_map)
        filled = {group.file for group in groups if group.rows}
        absent = absent_columns({str(files[at]): empty[at].column_names for at in filled})
        opened_groups = cls(path, files, tuple(groups), schema, names, tuple(digests), column_map, absent)
        # Least and largest image ids show which groups a partition needs.
        name = opened_groups.parts.image
        return opened_groups.with_groups(
            [
                _with_ends(group, *said[name]) if name in said else group
                for group, said in zip(groups, ends, strict=True)
            ]
        )

    def with_groups(self, groups: Sequence[RowGroup]) -> ParquetGroups:
        """Return the same with more known of the row groups."""
        return dataclasses.replace(self, groups=tuple(groups))

    def holding(self, folder: Path) -> ParquetGroups:
        """Return the same, which holds what is read of files in a store in a folder."""
        if not any(map(is_far, self.files)):
            return self
        folder.mkdir(parents=True, exist_ok=True)
        return dataclasses.replace(self, held=folder)

    @property
    def boxes(self) -> int:
        """Boxes at most."""
        return sum(group.boxes for group in self.groups)

    @functools.cached_property
    def parts(self) -> ColumnParts:
        """Which column is the image, the class, the box."""
        return column_parts(self.names, place=str(self.path), column_map=self.column_map)

    def _opened(self, file: Path) -> AbstractContextManager[tuple[bytes, Any]]:
        """Open a file; what is read of one in a store is held."""
        if self.held is None or not is_far(file):
            return opened_parquet(file)
        from boxscore.extensions.stores.held_ranges import held_file

        return opened_parquet(file, functools.partial(held_file, self.held, file))

    def read(self, group: RowGroup, columns: Sequence[str] | None = None) -> pa.Table:
        """Read a row group, one row per box; ``columns`` by name, all that are needed by default."""
        pa, _ = arrow()
        # The file must be the one whose footer was read.
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
            # Read the columns that are needed, and give them the types that all files share.
            schema = self.schema if columns is None else pa.schema([self.schema.field(c) for c in columns])
            paths = [
                path
                for path in wanted_columns(parquet, place)
                if any(path == name or path.startswith(f"{name}.") for name in schema.names)
            ]
            table = parquet.read_row_group(group.number, columns=paths)
            table = joined([schema.empty_table(), table], place).select(schema.names)
            # One row per box; then check that every column has a value for each.
            flat, parents = by_box(table, place, self.column_map)
        names = self.names if columns is None else columns
        uneven = [name for name in names if name not in flat]
        if uneven:
            got = "lists of other lengths"
            raise FileFormatError(uneven[0], "have a value for each box", got=got, place=place)
        flat = {name: flat[name] for name in names}
        # Row numbers were given out by the footer's counts, so more boxes would clash.
        count = len(next(iter(flat.values()))) if flat else 0
        if count > group.boxes:
            got = f"{count:,} boxes, where its footer says {group.boxes:,}"
            raise FileFormatError("a row group", "match the footer of its file", got=got, place=place)
        # Each box gets its number in all files and its row in the group.
        flat[KEY] = pa.array(group.first + np.arange(count))
        flat[AT] = pa.array(np.arange(count) if parents is None else parents)
        return pa.table(flat).replace_schema_metadata(self.schema.metadata)

    def read_columns(self, group: RowGroup, names: Sequence[str | None]) -> BoxesTable:
        """Read a few columns by name; with any that is inside a structure or list, all of them."""
        pa, _ = arrow()
        known = [name for name in names if name is not None]
        nested = [field.name for field in self.schema if pa.types.is_nested(field.type)]
        alone = all(name in self.schema.names and name not in nested for name in known)
        return BoxesTable(self, [self.read(group, known if alone else None)])

    def are_fractions(self) -> bool:
        """Whether all coordinates are fractions of the image's size: read until one is none."""
        broken = False
        if not self.parts.box:
            return False
        for group in self.groups:
            boxes = boxes_of(BoxesTable(self, [self.read(group)]), self.parts)
            boxes = boxes[~np.isnan(boxes).any(axis=1)]
            if (np.abs(boxes) > LARGEST_FRACTION).any():
                return False
            broken |= bool((boxes != np.floor(boxes)).any())
        return broken

    def without_sides(self) -> ParquetGroups:
        """Return the same without columns width and height that are those of boxes beside their corners.

        They are the image's size unless an image has two, and all fit their boxes.
        """
        # Only columns that may be either are read, group by group.
        pair = self.parts.image_size
        if pair is None or not may_be_sides(self.parts):
            return self
        first: dict[Any, tuple[float, float]] = {}
        different = False
        # A group that does not fit its boxes settles it: the columns are the image's size.
        for group in self.groups:
            table = BoxesTable(self, [self.read(group)])
            sizes = np.column_stack([table.numbers(name) for name in pair])
            if not are_sides(table, self.parts, sizes):
                return self
            values, positions = images_of(table, self.parts)
            # NaN equals nothing, so an unknown side does not count as a second size.
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
        """Return a table of no boxes."""
        pa, _ = arrow()
        flat, _ = by_box(self.schema.empty_table(), str(self.path), self.column_map)
        empty = pa.array([], pa.int64())
        flat = {name: flat[name] for name in self.names} | {KEY: empty, AT: empty}
        return pa.table(flat).replace_schema_metadata(self.schema.metadata)

    def place_of(self, group: RowGroup) -> str:
        """Name a row group."""
        return f"row group {group.number} of {self.files[group.file]}"

    def place(self, key: int, at: int) -> str:
        """Name the row of a box."""
        firsts = np.array([group.first for group in self.groups])
        return (
            f"row {at} of {self.place_of(self.groups[int(np.searchsorted(firsts, key, side='right')) - 1])}"
        )


def _with_ends(group: RowGroup, column: Any, facts: ColumnFacts) -> RowGroup:
    """Return a row group with the least and the largest id of a column, where its footer says both."""
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
        with contextlib.suppress(UnicodeDecodeError):  # cut inside a character
            return group._replace(least=facts.least.decode(), largest=facts.largest.decode())
    return group


class BoxesTable(ArrowTable):
    """Boxes of some row groups, flat, as a table whose rows have places for messages."""

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
        """Name a row."""
        return self._groups.place(int(self._keys[row]), int(self._at[row]))


def _needed(
    table: pa.Table, place: str, further: Collection[str] | None, column_map: ColumnMap | None
) -> tuple[pa.Schema, tuple[str, ...]]:
    """Return the columns with a part, and what they are called when there is a row per box."""
    pa, _ = arrow()
    flat, _ = by_box(table, place, column_map)
    parts = column_parts(list(flat), place=place, column_map=column_map)
    other = {name for name in parts.other if further is not None and name not in further}  # user columns
    fields = [field for field in table.schema if field.name not in other]
    return pa.schema(fields, metadata=table.schema.metadata), tuple(
        name for name in flat if name not in other
    )
