"""Read one side of a data set in Parquet: infer its box format, and locate the rows of id ranges.

Conventions
-----------
- The rows of an id range are in the row groups that may have such ids. If these would be read too often, all
  rows are first rewritten to one file per range.
- The ids of a row group are checked against the footer on reading.
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
from boxscore.data.box_reading import Readings
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
from boxscore.formats._tables import add_to_readings, images_of, report_fractions, rows_of, usual_form
from boxscore.formats.parquet import arrow

MOST_PARTITIONS = 512
"""Maximum number of open files while regrouping."""


@dataclasses.dataclass(frozen=True)
class Side(PicklesFields):
    """One side of the data set: its row groups, and properties of the whole side.

    Attributes
    ----------
    groups : ParquetGroups
    options : ReadOptions
        With options inferred from the whole side.
    fractions : bool
    stays_in_fractions : bool
        Whether image sizes are missing, so that ground-truth boxes stay fractions.
    names : mapping, or None
        Image id of each name that is not an id.
    """

    groups: ParquetGroups
    options: ReadOptions
    fractions: bool
    names: Mapping[Id, Id] | None = None
    stays_in_fractions: bool = False

    def read(self, source: Source, ids: IdRange) -> BoxesTable | None:
        """Read the boxes of the images in a range; return None if there are none."""
        # Read row group by row group, so that only one group is in memory besides the kept rows.
        pa, _ = arrow()
        name, parts = self.groups.parts.image, []
        for table in self._tables(source):
            values, positions = BoxesTable(self.groups, [table]).distinct(name)
            # Decide per distinct id. Keep rows without an id: the reader rejects them with their place.
            named = self.translated(values)
            known = np.append(ids.contains(named), True)  # rows without an id
            chosen = np.flatnonzero(known[positions])
            if not len(chosen):
                continue
            # Replace names by ids in a dictionary column, so that only the dictionary changes.
            if self.names is not None:
                column = pa.DictionaryArray.from_arrays(
                    pa.array(positions, mask=positions < 0), _arrow_ids(named)
                )
                table = table.set_column(table.schema.get_field_index(name), name, column)
            parts.append(table.take(pa.array(chosen)) if len(chosen) < len(table) else table)
        return BoxesTable(self.groups, parts) if parts else None

    def images(self, source: Source, ids: IdRange) -> list[Id]:
        """Return the distinct images in a range."""
        found: dict[Id, None] = {}
        for table in self._tables(source):
            values, positions = images_of(BoxesTable(self.groups, [table]), self.groups.parts)
            used = self.translated([values[at] for at in np.unique(positions).tolist()])
            found |= dict.fromkeys(itertools.compress(used, ids.contains(used).tolist()))
        return list(found)

    def _tables(self, source: Source) -> Iterator[Any]:
        """Read row groups, or a file of regrouped rows, which does not exist if it would be empty."""
        _, pq = arrow()
        if source.file is not None:
            yield from [pq.read_table(source.file)] if source.file.exists() else []
        for group in source.groups:
            table = self.groups.read(group)
            self._check_ends(group, *BoxesTable(self.groups, [table]).distinct(self.groups.parts.image))
            yield table

    def _check_ends(self, group: RowGroup, values: Sequence[Id], positions: IntArray) -> None:
        """Raise if a row group has ids outside the range in its footer; such rows would be missed."""
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
        """Replace names in the detections by image ids."""
        if self.names is None:
            return list(values)
        return [self.names.get(value, value) for value in values]


class Source(NamedTuple):
    """Location of a partition's rows on one side: row groups, or a file."""

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
    """Infer from the whole side whether boxes are fractions, and their format."""
    groups = groups.without_sides()
    fractions = groups.are_fractions()
    if fractions and options.box_format is None and not groups.parts.open_images:
        report_fractions(str(groups.path))
    # Infer the form from all boxes, row group by row group.
    if groups.parts.box_format is None and options.box_format is None and groups.groups:
        readings, usual = Readings(groups.parts.box), None
        for group in groups.groups:
            table = BoxesTable(groups, [groups.read(group)])
            usual = usual_form(table)
            add_to_readings(readings, table, options, truth, fractions=fractions)
        option = f"--{'dt' if of_results else 'gt'}-box-format"
        form = readings.chosen(usual=usual, option=option, source=str(groups.path))
        options = dataclasses.replace(options, box_format=form)
    stays = fractions and not of_results and _stays_in_fractions(groups, options)
    return Side(groups, dataclasses.replace(options, image_set=None), fractions, names, stays)


def _stays_in_fractions(groups: ParquetGroups, options: ReadOptions) -> bool:
    """Return whether an image with a box has no known size in any of its rows."""
    unknown: set[Id] = set()
    known: set[Id] = set()
    for group in groups.groups:
        table = BoxesTable(groups, [groups.read(group)])
        rows = rows_of(table, options, None, of_results=False, fractions=True)
        without, others = images_of_unknown_size(rows, options)
        unknown |= without
        known |= others
    return bool(unknown - known)


# ---------------------------------------------------------------- locations of rows


def located(side: Side, ranges: Ranges, chosen: range, folder: Path, buffered: int) -> list[Source]:
    """Return the location of the rows of each chosen range; regroup scattered rows."""
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
    """Write the rows of each chosen range to one file, in order."""
    # Buffer tables per range; open a file at its first row.
    pa, pq = arrow()
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / f"{number}.parquet" for number in chosen]
    writers: dict[int, Any] = {}
    waiting: list[list[Any]] = [[] for _ in chosen]
    schema, held = None, 0

    # Write the buffers file by file, so that row groups are not tiny.
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
            # Cast every row group to the schema of the first, since a file has one schema.
            table = _decoded(side.groups.read(group))
            schema = schema or table.schema
            try:
                table = table.select(schema.names).cast(schema)
            except (pa.ArrowException, KeyError) as error:
                got, place = str(error).partition("\n")[0][:150], side.groups.place_of(group)
                raise FileFormatError("part files", "have the same columns", got=got, place=place) from None
            # Sort the rows by range, looked up per distinct id. The sort is stable and keeps file order.
            boxes = BoxesTable(side.groups, [table])
            values, positions = images_of(boxes, side.groups.parts)
            of_row = ranges.numbers(side.translated(values))[positions] - chosen.start
            order = np.argsort(of_row, kind="stable")
            bounds = np.searchsorted(of_row[order], np.arange(len(chosen) + 1))
            table = table.take(pa.array(order[: bounds[-1]]))
            # Buffer slices of the sorted table, without copies.
            for number in np.flatnonzero(np.diff(bounds)).tolist():
                waiting[number].append(table.slice(bounds[number], bounds[number + 1] - bounds[number]))
            # Flush when the buffers hold enough rows, to bound memory.
            held += int(bounds[-1] - bounds[0])
            if held >= buffered:
                flush()
                held = 0
        flush()
        # Closing a writer completes its file.
        for writer in writers.values():
            writer.close()
    except OSError as error:
        raise InputError(
            f"{folder}: cannot be written: {error.strerror or error}; sorting rows needs about as much "
            "space there as the files: choose another folder with TMPDIR."
        ) from None
    finally:
        for writer in writers.values():
            with contextlib.suppress(OSError):  # reported above
                writer.close()
    return [Source(file=file) for file in files]


def _arrow_ids(values: Sequence[Id]) -> Any:
    """Return ids as an Arrow array; unsigned if any id is 2 ** 63 or more."""
    pa, _ = arrow()
    if any(type(one) is int and one >= 2**63 for one in values):
        return pa.array(values, pa.uint64())
    return pa.array(list(values))


def _decoded(table: Any) -> Any:
    """Return a table with plain columns in place of dictionaries, so that all row groups have one type."""
    pa, _ = arrow()
    for number, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            column = table.column(number).cast(field.type.value_type)
            table = table.set_column(number, field.name, column)
    return table
