"""COCO results as text: records that are left of a file, and records of a table."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from boxscore._utils.files import write_atomically
from boxscore.data.boxes import corners_and_sizes
from boxscore.data.tables import BoxTable, Detections
from boxscore.errors import InputError
from boxscore.formats import _json
from boxscore.formats._coco_records import DECODING_ERRORS, NumericResult, rotated_records
from boxscore.formats._format import changed_while_read
from boxscore.formats._packed import packed_columns
from boxscore.formats.results import Kept

__all__ = ["rewrite_results", "save_results"]

RECORDS = 1 << 14
"""Records made into text together."""


def rewrite_results(path: Path, kept: Kept, output: Path) -> None:
    """Write the records that are left of a file; one in which nothing is new byte by byte."""
    _refuse_folder(output)
    if _json.first_byte(path) == b"[":
        records = _json.decode_records(_json.chunks_of(path), _decode_raw, path.read_bytes)
        write_atomically(output, itertools.chain(_array(path, records, kept), [b"\n"]))
    else:
        write_atomically(output, _object(path, kept))


def save_results(table: BoxTable, output: Path) -> None:
    """Write detections: one record a line, boxes as ``x, y, width, height``, rotated ones as five numbers."""
    _refuse_folder(output)
    if not isinstance(table, Detections):
        raise InputError("a COCO results file", "hold detections", got="ground truth")
    write_atomically(output, _records(table))


def _refuse_folder(path: Path) -> None:
    if path.is_dir():
        raise InputError("the output of COCO results", "be a file", got=f"the folder {path}")


def _array(path: Path, parts: Iterable[list[msgspec.Raw]], kept: Kept) -> Iterator[bytes]:
    """Text of the array of the records that are left, piece by piece."""
    before, row = b"[", 0
    for records in parts:
        if row + len(records) <= len(kept.wanted):
            at = np.flatnonzero(kept.wanted[row : row + len(records)])
            if len(at):
                chosen = [records[index] for index in at.tolist()]
                if kept.is_compared:
                    _check(path, kept, row + at, chosen)
                numbered = zip((row + at).tolist(), chosen, strict=True)
                texts = [_record(record, *_changes(kept, number)) for number, record in numbered]
                yield before + b"\n" + b",\n".join(texts)
                before = b","
        row += len(records)
    if row != len(kept.wanted):
        raise changed_while_read(path, got=f"{row} records after {len(kept.wanted)}")
    kept.check_files()
    yield b"\n]" if kept.count else b"[]"


def _object(path: Path, kept: Kept) -> Iterator[bytes]:
    """Text of a COCO object with the annotations that are left, piece by piece."""
    text = path.read_bytes().removeprefix(b"\xef\xbb\xbf")
    before = b"{"
    for key, value in msgspec.json.decode(text, type=dict[str, msgspec.Raw]).items():
        yield before + msgspec.json.encode(key) + b":"
        before = b","
        if key == "annotations":
            yield from _array(path, [_decode_raw(bytes(value))], kept)
        else:
            yield bytes(value)
    yield b"}\n"


def _check(path: Path, kept: Kept, rows: NDArray[np.int64], records: list[msgspec.Raw]) -> None:
    """Refuse records that are not those of the table."""
    text = b"[" + b",".join(records) + b"]"
    given = kept.table.boxes_given
    try:
        columns: dict[str, Any] = packed_columns(
            [cast(list[msgspec.Struct], _NUMERIC.decode(text))], NumericResult, expected_slices=1
        )
    except DECODING_ERRORS:  # ids that are text, rotated boxes or none
        upright = given and kept.table.rotated is None
        try:
            stated = _STATED.decode(text)
            columns = {name: [getattr(one, name) for one in stated] for name in _Stated.__struct_fields__}
            columns["bbox"] = np.array(columns["bbox"], dtype=np.float64).reshape(-1, 4) if upright else None
        except (*DECODING_ERRORS, TypeError, ValueError):
            raise changed_while_read(path, got="another form of records") from None
    boxes, corners = columns["bbox"], None
    if boxes is not None and given:
        corners = corners_and_sizes(boxes, "xywh")[0]
        corners[(boxes[:, 2:] < 0).any(axis=1)] = np.nan
    kept.check_rows(
        rows, columns["score"], corners, images=columns["image_id"], categories=columns["category_id"]
    )


def _decode_raw(text: bytes) -> list[msgspec.Raw]:
    return _RAW_RECORDS.decode(text)


class _Stated(msgspec.Struct, gc=False):
    image_id: int | float | str
    category_id: int | float | str
    score: float
    bbox: list[float] | None = None


_NUMERIC = msgspec.json.Decoder(list[NumericResult])
_STATED = msgspec.json.Decoder(list[_Stated])
_RAW_RECORDS = msgspec.json.Decoder(list[msgspec.Raw])
_RAW_KEYS = msgspec.json.Decoder(dict[str, msgspec.Raw])


def _record(record: msgspec.Raw, score: float | None, box: list[float] | None) -> bytes:
    """Text of a record, with a new score or box where there is one; its other keys unchanged."""
    if score is None and box is None:
        return bytes(record)
    keys = _RAW_KEYS.decode(record)
    for key, value in (("score", score), ("bbox", box)):
        if value is not None:
            keys[key] = msgspec.Raw(msgspec.json.encode(value))
    return msgspec.json.encode(keys)


def _changes(kept: Kept, row: int) -> tuple[float | None, list[float] | None]:
    """Return the new score of a row and its new box as ``x, y, width, height``, each None where it stays."""
    score, box = kept.changes(row)
    if box is not None:
        box[2:] = box[2] - box[0], box[3] - box[1]
    return score, box


def _records(table: Detections) -> Iterator[bytes]:
    """Text of a results file, piece by piece."""
    image_ids, category_ids = table.images.ids[table.image], table.categories.ids[table.category]
    rotated = table.rotated
    upright = np.hstack([table.boxes[:, :2], table.sizes])
    boxes = upright if rotated is None else rotated_records(rotated)
    columns = (image_ids, category_ids, boxes, table.scores)
    before = b"[\n"
    for low in range(0, len(table), RECORDS):
        some = (column[low : low + RECORDS].tolist() for column in columns)
        lines = [
            msgspec.json.encode({"image_id": image, "category_id": category, "bbox": box, "score": score})
            for image, category, box, score in zip(*some, strict=True)
        ]
        yield before + b",\n".join(lines)
        before = b",\n"
    yield b"\n]\n" if len(table) else b"[]\n"
