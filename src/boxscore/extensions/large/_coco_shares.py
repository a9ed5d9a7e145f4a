"""Read one shard of the images of COCO files, filtering each slice of records as it is decoded.

Conventions
-----------
- Only the records of the shard stay in memory. One process reads, because record numbers need the slices in
  order.
- Messages name records by their number in the whole file. Detections carry these numbers as a column.
- The whole file is read where records depend on each other: repeated annotation ids, ids that are text,
  labels of images, a class list, file names, results without scores or boxes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import BoolArray
from boxscore._utils.checks import Place
from boxscore.data.lazy import Reader
from boxscore.data.tables import Detections, GroundTruth
from boxscore.extensions.large.shares import ROW, ImageShard, NeedsAllRowsError
from boxscore.formats._coco_records import Columns, Kind, Reading, Text, concatenated
from boxscore.formats._format import ReadOptions
from boxscore.formats._packed import packed_columns
from boxscore.formats.coco import ResultsReading, TruthReading

EVERY_ID = "__boxscore_ids"
"""Column with the ids of all annotations, including those that were dropped."""


def ground_truth_of_share(path: Path, options: ReadOptions, share: ImageShard) -> GroundTruth:
    """Read the images of a shard and their objects."""
    return _TruthOfShard(path, options, share).ground_truth()


def detections_of_share(
    path: Path, options: ReadOptions, ground_truth: GroundTruth, share: ImageShard
) -> Detections:
    """Read the results of a shard."""
    with _ResultsOfShard(path, options, share) as reading:
        return reading.detections(ground_truth)


class _KeptReading(Reading):
    """Records filtered by ``keeps``, which maps the columns of a slice to a mask [N].

    The column ``ROW`` holds the number of each kept record in the file.
    """

    def __init__(self, text: Text, path: Path, kind: Kind, keeps: Callable[[Columns], BoolArray]) -> None:
        self._keeps = keeps
        super().__init__(text, path, kind, processes=1)

    def packed(
        self, slices: Iterable[list[msgspec.Struct]], kind: type[msgspec.Struct], expected: float
    ) -> Columns:
        """Return the kept records of slices of float records."""
        return self.joined(packed_columns([one], kind, expected_slices=1) for one in slices)

    def joined(self, slices: Iterable[Columns]) -> Columns:
        """Return the kept records, their numbers in the file, and the ids of all records."""
        parts: list[Columns] = []
        ids: list[NDArray[Any]] = []
        first = 0
        # Keep the ids of all records, one number each: the caller checks for repeated ids.
        for columns in slices:
            ids += [columns["id"]] if "id" in columns else []
            count, rows = len(columns["image_id"]), np.flatnonzero(self._keeps(columns))
            # Keep the first slice even if it is empty: it has the columns and their types.
            if len(rows) or not parts:
                kept = {
                    name: column[rows] if isinstance(column, np.ndarray) else column.take(rows)
                    for name, column in columns.items()
                }
                parts.append(kept | {ROW: rows + first})
            first += count
        return concatenated(parts) | ({EVERY_ID: np.concatenate(ids)} if ids else {})


class _TruthOfShard(TruthReading):
    """The annotations of a shard, and those of unlisted images."""

    def __init__(self, path: Path, options: ReadOptions, share: ImageShard) -> None:
        super().__init__(path, options)
        if self.images.ids.dtype == object or self.is_federated:
            raise NeedsAllRowsError
        self._rows = share.choose(self.images)

    def reading(self) -> Reading:
        """Start reading the annotations."""
        return _KeptReading(self.text, self.path, self.kind, self._keeps)

    def _keeps(self, records: Columns) -> BoolArray:
        """Return which records of a slice are kept [N]."""
        if records["image_id"].dtype == object or records["id"].dtype == object:
            raise NeedsAllRowsError
        rows = self.images.rows(records["image_id"].astype(np.int64))
        kept: BoolArray = (rows < 0) | ((rows >= self._rows.start) & (rows < self._rows.stop))
        return kept

    def records(self) -> Columns:
        """Read the annotations of the shard and restrict ``images`` to it."""
        records = super().records()
        # An annotation with a repeated id may replace one of another image, so such a file is read whole.
        ids = np.sort(records.pop(EVERY_ID))
        if (ids[1:] == ids[:-1]).any():
            raise NeedsAllRowsError
        self.images = self.images.take(np.arange(self._rows.start, self._rows.stop))
        return records

    def keys(self, records: Columns) -> dict[str, NDArray[Any]]:
        """Read the user's keys for the kept annotations."""
        return {name: column[records[ROW]] for name, column in super().keys(records).items()}

    def place(self, records: Columns) -> Place:
        """Return a function that names an annotation in messages."""
        numbers, ids, path = records[ROW], records["id"], self.path
        return lambda row: f"annotation {numbers[row]} (id {ids.tolist()[row]}) of {path}"

    def reader(self, read: Callable[[str], Mapping[str, Any]]) -> Reader | None:
        """Return None: the columns that a protocol needs are already read."""
        return None


class _ResultsOfShard(ResultsReading):
    """The results of a shard."""

    def __init__(self, path: Path, options: ReadOptions, share: ImageShard) -> None:
        self._share = share
        super().__init__(path, options, 0)

    def reading(self, text: Text, kind: Kind) -> Reading:
        """Start reading the records."""
        if self.vocabulary is not None or self.first.names_its_file or not self.first.scored:
            raise NeedsAllRowsError
        return _KeptReading(text, self.path, kind, self._keeps)

    def _keeps(self, records: Columns) -> BoolArray:
        """Return which records of a slice are kept [N]; ``image_id`` may be a name."""
        if "bbox" not in records or not np.isfinite(records["bbox"]).all():
            raise NeedsAllRowsError
        return self._share.keeps(records["image_id"])

    def keys(self, records: Columns) -> dict[str, NDArray[Any]]:
        """Read the user's keys for the kept records, and add the record numbers."""
        numbers = records[ROW]
        return {name: column[numbers] for name, column in super().keys(records).items()} | {ROW: numbers}

    def place(self, records: Columns) -> Place:
        """Return a function that names a detection in messages."""
        numbers, path = records[ROW], self.path
        return lambda row: f"detection {numbers[row]} of {path}"

    def reader(self, read: Callable[[str], Mapping[str, Any]]) -> Reader | None:
        """Return None: the columns that a protocol needs are already read."""
        return None
