"""Read JSON lines: one JSON object per line, for a box or for an image with its boxes.

Conventions
-----------
- ``{"image": "a.jpg", "class": "cat", "bbox": [1, 2, 3, 4], "score": 0.9}``: a box.
- ``{"image": "a.jpg", "boxes": [[1, 2, 3, 4], ...], "labels": ["cat", ...], "scores": [0.9, ...]}`` or
  ``{"image": "a.jpg", "objects": [{"bbox": [1, 2, 3, 4], "category": "cat"}, ...]}``: an image. Empty lists
  are an image without objects.
- The keys are the column names of tables. The first line decides which of the three forms the file has.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import msgspec

from boxscore._utils.files import write_atomically
from boxscore._utils.memory import paused_collector
from boxscore.data.column_names import column_parts
from boxscore.data.tables import BoxTable
from boxscore.errors import InputError
from boxscore.extensions.formats._record_tables import flat_record, read_records
from boxscore.formats._format import ReadOptions
from boxscore.formats._sniffer import Sniffer
from boxscore.formats._tables import Table, TableFormat, saved_columns


class JsonLinesFormat(TableFormat):
    """JSON lines."""

    name = "jsonl"
    endings: ClassVar[tuple[str, ...]] = (".jsonl",)
    holds: ClassVar[Mapping[str, frozenset[str]]] = {"detections": frozenset({"columns"})}

    def detect(self, sniffer: Sniffer) -> str | None:
        """Detect a first line that is a complete object with a box, or a JSON lines extension."""
        if sniffer.is_folder:
            return None
        if sniffer.suffix in (".jsonl", ".ndjson") and sniffer.is_json:
            return "JSON lines"
        if not sniffer.first_line.startswith("{") or not sniffer.first_line.endswith("}"):
            return None
        try:
            first = msgspec.json.decode(sniffer.first_line)
            flat, _ = flat_record(first)
            image = column_parts(list(flat), place="").image
            if not isinstance(first.get(image), (str, int)):
                return None  # COCO and similar, where a box refers to its image
        except (msgspec.MsgspecError, InputError, RecursionError, TypeError, ValueError):
            return None
        return "JSON lines"

    @paused_collector()
    def table(self, path: Path, options: ReadOptions) -> Table:
        """Read the records of a file."""
        (table,) = read_records(path, options.columns)
        return table

    def save(self, table: BoxTable, path: Path, *, like: Path | None = None) -> None:
        """Write one object per box, with the columns of a CSV file; a missing value has no key."""
        columns = {name: values.tolist() for name, values in saved_columns(table).items()}
        records = (
            {
                key: value
                for key, value in zip(columns, row, strict=True)
                if value is not None and value == value
            }
            for row in zip(*columns.values(), strict=True)
        )
        write_atomically(path, (msgspec.json.encode(record) + b"\n" for record in records))


FORMAT = JsonLinesFormat()
