"""Parquet files read row group by row group: only the columns of boxes, flat, each row with its place.

Conventions
-----------
- Every layout comes out as one row per box. Two columns are added: :data:`KEY`, which ascends in the order of
  the files and tells a box from every other, and :data:`AT`, its row in the row group.
- Columns of the user's own are not read.
"""

from __future__ import annotations

import dataclasses
import functools
import zlib
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from boxscore._utils.pickling import PicklesFields
from boxscore.data.box_reading import LARGEST_FRACTION
from boxscore.data.column_names import ColumnParts, column_parts
from boxscore.errors import FileFormatError
from boxscore.formats._format import ReadOptions
from boxscore.formats._tables import Distinct, boxes_of
from boxscore.formats.parquet import (
    ArrowTable,
    arrow,
    by_box,
    class_names_of,
    part_files,
    refused,
    wanted_columns,
    whole,
)

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["AT", "KEY", "BoxesTable", "ParquetGroups", "RowGroup"]

TAIL = 8
"""Bytes after the footer: its length, and the mark of the format."""

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


@dataclasses.dataclass(frozen=True)
class ParquetGroups(PicklesFields):
    """The row groups of a Parquet file, or of a folder of them; pickles as paths and numbers.

    Attributes
    ----------
    path : Path
    files : tuple of Path
    groups : tuple of RowGroup
        In the order of the files.
    columns : tuple of str
        Paths of the columns that are read.
    names : tuple of str
        What these are called, one row per box.
    digests : tuple of int
        Of the footer of each file, which says where everything is, and the least and largest values.
    """

    path: Path
    files: tuple[Path, ...]
    groups: tuple[RowGroup, ...]
    columns: tuple[str, ...]
    names: tuple[str, ...]
    digests: tuple[int, ...]

    @classmethod
    def open(cls, path: Path, options: ReadOptions, *, further: Collection[str] = ()) -> ParquetGroups:
        """Look at what the files say of themselves; no row is read but the first ones.

        ``further`` names columns that are read though they have no part.
        """
        pa, pq = arrow()
        files = tuple(part_files(path, options))
        groups: list[RowGroup] = []
        digests: list[int] = []
        columns: tuple[str, ...] = ()
        names: tuple[str, ...] = ()
        first = 0
        for number, file in enumerate(files):
            with refused(str(file)), pa.OSFile(str(file)) as opened, pq.ParquetFile(opened) as parquet:
                digests.append(_digest(opened))
                if not columns:
                    columns, names = _needed(parquet, str(file), further)
                leaf = {parquet.schema.column(i).path: i for i in range(len(parquet.schema))}
                missing = [column for column in columns if column not in leaf]
                if missing:
                    got = f"no {missing[0]!r}"
                    raise FileFormatError("part files", "have the same columns", got=got, place=str(file))
                for group in range(parquet.metadata.num_row_groups):
                    said = parquet.metadata.row_group(group)
                    boxes = max((said.column(leaf[column]).num_values for column in columns), default=0)
                    groups.append(RowGroup(number, group, said.num_rows, boxes, first))
                    first += boxes
        return cls(path, files, tuple(groups), columns, names, tuple(digests))

    @property
    def boxes(self) -> int:
        """Boxes at most."""
        return sum(group.boxes for group in self.groups)

    @functools.cached_property
    def parts(self) -> ColumnParts:
        """Which column is the image, the class, the box."""
        return column_parts(self.names, place=str(self.path))

    def read(self, group: RowGroup, columns: Sequence[str] | None = None) -> pa.Table:
        """Read a row group, one row per box; ``columns`` are paths, all that are needed by default."""
        pa, pq = arrow()
        file = self.files[group.file]
        with refused(self.place_of(group)), pa.OSFile(str(file)) as opened, pq.ParquetFile(opened) as parquet:
            if _digest(opened) != self.digests[group.file]:
                raise FileFormatError(
                    "a Parquet file",
                    "stay as it is while it is read",
                    got="another file of this name",
                    place=self.place_of(group),
                    cause="was it replaced, or does a worker see other data?",
                )
            table = parquet.read_row_group(group.number, columns=list(columns or self.columns))
        flat, parents = by_box(table, self.place_of(group))
        count = len(next(iter(flat.values()))) if flat else 0
        flat[KEY] = pa.array(group.first + np.arange(count))
        flat[AT] = pa.array(np.arange(count) if parents is None else parents)
        return pa.table(flat).replace_schema_metadata(table.schema.metadata)

    def some(self, group: RowGroup, names: Sequence[str | None]) -> BoxesTable:
        """Read a few columns by name; with any that is inside a structure or list, all of them."""
        known = [name for name in names if name is not None]
        alone = all(name in self.columns for name in known)
        return BoxesTable(self, [self.read(group, known if alone else None)])

    def images(self, table: BoxesTable) -> Distinct:
        """Return the images of a table, and the position of each row's among them."""
        name = self.parts.image
        found = table.distinct(name)
        if len(found.positions) and found.positions.min() < 0:
            place = table.place(int(np.argmin(found.positions)))
            raise FileFormatError(name, "name an image", got="nothing", place=place)
        return found

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

    def place_of(self, group: RowGroup) -> str:
        """Name a row group."""
        return f"row group {group.number} of {self.files[group.file]}"

    def place(self, key: int, at: int) -> str:
        """Name the row of a box."""
        firsts = np.array([group.first for group in self.groups])
        return (
            f"row {at} of {self.place_of(self.groups[int(np.searchsorted(firsts, key, side='right')) - 1])}"
        )


def _digest(file: Any) -> int:
    """Return a checksum of the footer of an open file that is known to have one."""
    file.seek(file.size() - TAIL)
    length = int.from_bytes(file.read(4), "little")
    file.seek(file.size() - TAIL - length)
    return zlib.crc32(file.read(length))


class BoxesTable(ArrowTable):
    """Boxes of some row groups, flat, as a table whose rows know where they stand."""

    def __init__(self, groups: ParquetGroups, tables: Sequence[pa.Table]) -> None:
        pa, _ = arrow()
        self.source, self._groups, self._known = str(groups.path), groups, {}
        try:
            table = tables[0] if len(tables) == 1 else pa.concat_tables(tables, promote_options="permissive")
        except (pa.ArrowException, TypeError) as error:
            got = str(error).partition("\n")[0][:150]
            raise FileFormatError("part files", "have the same columns", got=got, place=self.source) from None
        self._keys, self._at = (np.asarray(table.column(name)) for name in (KEY, AT))
        names = [name for name in table.column_names if name != AT]
        self._columns = {name: whole(table.column(name)) for name in names}
        self.names, self.count = names, len(table)
        parts = groups.parts
        label = parts.class_name if parts.class_id is None else parts.class_id
        self.class_list, self.class_names = class_names_of(table.schema.metadata or {}, label)

    def place(self, row: int) -> str:
        """Name a row."""
        return self._groups.place(int(self._keys[row]), int(self._at[row]))


def _needed(parquet: Any, place: str, further: Collection[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the paths of the columns with a part, and what they are called when there is a row per box."""
    wanted = wanted_columns(parquet, place)
    pa, _ = arrow()
    few = next(parquet.iter_batches(batch_size=1, columns=wanted), None)
    table = pa.table({}) if few is None else pa.Table.from_batches([few])
    if few is None:
        table = parquet.schema_arrow.empty_table().select(
            [name for name in parquet.schema_arrow.names if any(w.split(".")[0] == name for w in wanted)]
        )
    flat, _ = by_box(table, place)
    parts = column_parts(list(flat), place=place)
    other = {name for name in parts.other if name in wanted and name not in further}  # of their own
    columns = tuple(path for path in wanted if path not in other)
    return columns, tuple(name for name in flat if name not in other)
