"""Read a JSON list of records, each a box or an image with its boxes.

Conventions
-----------
- Records and their keys are those of JSON lines. supervision's ``JSONSink`` writes a record per box; loops of
  torchvision and Hugging Face often save a record per image, with ``boxes``, ``labels`` and ``scores``.
- Every record names its image.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from boxscore._utils.memory import paused_collector
from boxscore._utils.text import short_list
from boxscore.data.column_names import ColumnMap, column_parts
from boxscore.errors import FileFormatError, InputError
from boxscore.extensions.formats._gathered import decoded
from boxscore.extensions.formats._json_folders import first_object
from boxscore.extensions.formats._record_tables import flat_record, table_of_records
from boxscore.formats._format import ReadOptions
from boxscore.formats._sniffer import Sniffer
from boxscore.formats._tables import Table, TableFormat

_LISTS = {"boxes", "labels", "scores"}
_COCO = {"category_id", "segmentation", "keypoints"}
_SUPERVISION = {"x_min", "y_min", "x_max", "y_max", "class_id", "confidence", "tracker_id"}


class RecordsFormat(TableFormat):
    """JSON lists with one record per image or per box."""

    name = "records"

    def detect(self, sniffer: Sniffer) -> str | None:
        """Detect a first record with a box that is not a result of COCO."""
        if sniffer.is_folder:
            return None
        first = first_object(sniffer)
        if first.keys() >= _SUPERVISION:
            return "JSON of supervision"
        if _LISTS & first.keys() and "boxes" in first and "labels" in first:
            return "a JSON list of images with boxes and labels"
        if not first or first.keys() & _COCO or any(f'"{key}"' in sniffer.text for key in _COCO):
            return None
        try:
            parts = column_parts(list(flat_record(first)[0]), place="")
        except InputError:
            return None
        is_named = isinstance(first.get(parts.image), (str, int)) and parts.score is not None
        return "a JSON list of boxes" if is_named and parts.class_name is not None else None

    @paused_collector()
    def table(self, path: Path, options: ReadOptions) -> Table:
        """Read the records of a file."""
        records = decoded(path, list[dict[str, Any]], record="record", whole=("JSON", "a list of records"))
        table = table_of_records(path, records, options.columns)
        if records and _lacks_image(table.names, options.columns):
            cause = "add image, file_name or image_id to every record"
            if {*table.names} >= _SUPERVISION:
                cause = 'pass custom_data={"image_name": name} to append() of the sink'
            got = f"only {short_list(table.names)}"
            raise FileFormatError("a record", "name its image", got=got, place=str(path), cause=cause)
        return table


FORMAT = RecordsFormat()


def _lacks_image(names: list[str], column_map: ColumnMap | None) -> bool:
    """Whether the only missing column is that of the image."""
    for columns, is_last in ((names, False), ([*names, "image"], True)):
        try:
            column_parts(columns, place="", column_map=column_map)
        except InputError:
            continue
        return is_last
    return False
