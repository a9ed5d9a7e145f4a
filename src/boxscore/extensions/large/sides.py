"""One side of a data set in Parquet: what all of its rows together say, and where the rows of a range are.

Conventions
-----------
- Rows of a range of ids are in the row groups that may hold such ids. Where these would be read too often,
  all rows are first written once more, into one file per range.
- What a footer says of the ids of a row group is checked when the group is read.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from boxscore._utils.array_types import IntArray
from boxscore._utils.progress import progress
from boxscore._utils.records import PicklesFields
from boxscore.data.tables import GroundTruth
from boxscore.data.vocabulary import Id
from boxscore.errors import FileFormatError, InputError
from boxscore.extensions.large.image_ranges import (
    IdRange,
    Ranges,
    are_between,
    are_scattered,
    groups_of_ranges,
)
from boxscore.extensions.large.parquet_groups import BoxesTable, ParquetGroups, RowGroup
from boxscore.formats._format import ReadOptions
from boxscore.formats._rows import images_of_unknown_size
from boxscore.formats._tables import images_of, rows_of
from boxscore.formats.parquet import arrow

MOST_PARTITIONS = 512
"""Files that are written at once when a side is regrouped."""


@dataclasses.dataclass(frozen=True)
class Side(PicklesFields):
    """One side of the data set: its row groups, and what all of them together say.

    Attributes
    ----------
    groups : ParquetGroups
    options : ReadOptions
        With what was inferred from the whole.
    fractions : bool
    stays_in_fractions : bool
        Whether sizes are missing, so that boxes of the ground truth stay fractions.
    names : mapping, or None
        The image behind each name that is no id.
    """

    groups: ParquetGroups
    options: ReadOptions
    fractions: bool
    names: Mapping[Id, Id] | None = None
    stays_in_fractions: bool = False

    def read(self, source: Source, ids: IdRange) -> BoxesTable | None:
        """Read the boxes of the images of a range; None without any."""
        # Read row group by row group, so that one group is in memory next to the rows that are kept.
        pa, _ = arrow()
        name, parts = self.groups.parts.image, []
        for table in self._tables(source):
            values, positions = BoxesTable(self.groups, [table]).distinct(name)
            # Decide per distinct id, not per row; a row without an id is kept, since the reader refuses it
            # with its place.
            named = self.translated(values)
            known = np.append(ids.contains(named), True)  # what names no image is refused where rows are read
            chosen = np.flatnonzero(known[positions])
            if not len(chosen):
                continue
            # Replace names by ids as a dictionary column: the rows only change their dictionary.
            if self.names is not None:
                column = pa.DictionaryArray.from_arrays(
                    pa.array(positions, mask=positions < 0), _arrow_ids(named)
                )
                table = table.set_column(table.schema.get_field_index(name), name, column)
            parts.append(table.take(pa.array(chosen)) if len(chosen) < len(table) else table)
        return BoxesTable(self.groups, parts) if parts else None

    def images(self, source: Source, ids: IdRange) -> list[Id]:
        """Return the images of a range, each once."""
        found: dict[Id, None] = {}
        for table in self._tables(source):
            values, positions = images_of(BoxesTable(self.groups, [table]), self.groups.parts)
            used = self.translated([values[at] for at in np.unique(positions).tolist()])
            found |= dict.fromkeys(itertools.compress(used, ids.contains(used).tolist()))
        return list(found)

    def _tables(self, source: Source) -> Iterator[Any]:
        """Read row groups, or a file of regrouped rows, which is not there where it would be empty."""
        _, pq = arrow()
        if source.file is not None:
            yield from [pq.read_table(source.file)] if source.file.exists() else []
        for group in source.groups:
            table = self.groups.read(group)
            self._check_ends(group, *BoxesTable(self.groups, [table]).distinct(self.groups.parts.image))
            yield table

    def _check_ends(self, group: RowGroup, values: Sequence[Id], positions: IntArray) -> None:
        """Refuse a row group with other images than its file says, which nobody would read."""
        if group.least is None or group.largest is None:
            return
        inside = np.append(are_between(values, group.least, group.largest), True)[positions]
        if not inside.all():
            row = int(np.argmin(inside))
            raise FileFormatError(
                self.groups.parts.image,
                "be in the range stated in the footer of the file",
                got=f"{values[positions[row]]!r}, outside {group.least!r} to {group.largest!r}",
                place=f"row {row} of {self.groups.place_of(group)}",
                cause="write the file again",
            )

    def translated(self, values: Sequence[Id]) -> list[Id]:
        """Return the ids of images that the detections call by these names."""
        if self.names is None:
            return list(values)
        return [self.names.get(value, value) for value in values]


class Source(NamedTuple):
    """Where a partition's rows of one side are: in row groups, or in one file."""

    groups: tuple[RowGroup, ...] = ()
    file: Path | None = None


def side_of(
    groups: ParquetGroups,
    options: ReadOptions,
    truth: GroundTruth | None,
    names: Mapping[Id, Id] | None,
    *,
    of_results: bool,
) -> Side:
    """Infer from the whole whether boxes are fractions, and from the first boxes what four numbers are."""
    groups = groups.without_sides()
    fractions = groups.are_fractions()
    if groups.parts.box_format is None and options.box_format is None and groups.groups:
        first = next((group for group in groups.groups if group.boxes), groups.groups[0])
        table = BoxesTable(groups, [groups.read(first)])
        rows = rows_of(table, options, truth, of_results=of_results, fractions=fractions)
        options = dataclasses.replace(options, box_format=rows.box_format)
    stays = fractions and not of_results and _stays_in_fractions(groups, options)
    return Side(groups, dataclasses.replace(options, image_set=None), fractions, names, stays)


def _stays_in_fractions(groups: ParquetGroups, options: ReadOptions) -> bool:
    """Whether an image with a box has no known size in any of its rows."""
    unknown: set[Id] = set()
    known: set[Id] = set()
    for group in groups.groups:
        table = BoxesTable(groups, [groups.read(group)])
        rows = rows_of(table, options, None, of_results=False, fractions=True)
        without, others = images_of_unknown_size(rows, options)
        unknown |= without
        known |= others
    return bool(unknown - known)


# ---------------------------------------------------------------- where the rows of ranges are


def located(side: Side, ranges: Ranges, chosen: range, folder: Path, buffered: int) -> list[Source]:
    """Return where the rows of each of the chosen ranges are; scattered ones are regrouped."""
    if side.names is None:
        inside = groups_of_ranges(side.groups.groups, ranges)[chosen.start : chosen.stop]
        if not are_scattered(side.groups.groups, inside):
            return [Source(tuple(groups)) for groups in inside]
    return [
        source
        for first in range(chosen.start, chosen.stop, MOST_PARTITIONS)
        for source in _regrouped(
            side, ranges, range(first, min(first + MOST_PARTITIONS, chosen.stop)), folder, buffered
        )
    ]


def _regrouped(side: Side, ranges: Ranges, chosen: range, folder: Path, buffered: int) -> list[Source]:
    """Write the rows of each of the chosen ranges into one file, in their order."""
    # One file for each range, and one buffer of tables for each; files are opened at their first row.
    pa, pq = arrow()
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / f"{number}.parquet" for number in chosen]
    writers: dict[int, Any] = {}
    waiting: list[list[Any]] = [[] for _ in chosen]
    schema, held = None, 0

    # Write what waits, file by file, so that row groups are not tiny.
    def flush() -> None:
        for number, tables in enumerate(waiting):
            if tables:
                if number not in writers:
                    writers[number] = pq.ParquetWriter(files[number], schema, compression="lz4")
                writers[number].write_table(pa.concat_tables(tables))
                tables.clear()

    try:
        for group in progress(
            side.groups.groups, desc=f"regrouping {side.groups.path.name}", unit="row group"
        ):
            # Bring every row group to the columns and types of the first, since a file has one schema.
            table = _decoded(side.groups.read(group))
            schema = schema or table.schema
            try:
                table = table.select(schema.names).cast(schema)
            except (pa.ArrowException, KeyError) as error:
                got, place = str(error).partition("\n")[0][:150], side.groups.place_of(group)
                raise FileFormatError("part files", "have the same columns", got=got, place=place) from None
            # Find the range of each row from its distinct ids, and sort the rows by range; the sort is
            # stable, so rows of a range stay in file order.
            boxes = BoxesTable(side.groups, [table])
            values, positions = images_of(boxes, side.groups.parts)
            of_row = ranges.numbers(side.translated(values))[positions] - chosen.start
            order = np.argsort(of_row, kind="stable")
            bounds = np.searchsorted(of_row[order], np.arange(len(chosen) + 1))
            table = table.take(pa.array(order[: bounds[-1]]))
            # Slices of the sorted table wait without a copy until the buffers are full.
            for number in np.flatnonzero(np.diff(bounds)).tolist():
                waiting[number].append(table.slice(bounds[number], bounds[number + 1] - bounds[number]))
            # Write the buffers when they hold enough rows, so that memory is bounded whatever the size of the
            # side.
            held += int(bounds[-1] - bounds[0])
            if held >= buffered:
                flush()
                held = 0
        flush()
        # A writer that is closed completes its file.
        for writer in writers.values():
            writer.close()
    except OSError as error:
        raise InputError(
            f"{folder}: cannot be written: {error.strerror or error}; sorting rows needs about as much "
            "space there as the files: choose another folder with TMPDIR."
        ) from None
    finally:
        for writer in writers.values():
            with contextlib.suppress(OSError):  # a full disk was refused above
                writer.close()
    return [Source(file=file) for file in files]


def _arrow_ids(values: Sequence[Id]) -> Any:
    """Return ids as Arrow has them; those above 2 ** 63 without a sign."""
    pa, _ = arrow()
    if any(type(one) is int and one >= 2**63 for one in values):
        return pa.array(values, pa.uint64())
    return pa.array(list(values))


def _decoded(table: Any) -> Any:
    """Return a table whose dictionaries are written out, so that all row groups have one type."""
    pa, _ = arrow()
    for number, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            column = table.column(number).cast(field.type.value_type)
            table = table.set_column(number, field.name, column)
    return table
