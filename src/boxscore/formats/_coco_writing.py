"""Write COCO files: tables as ground truth or results, and subsets of a results file."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from boxscore._utils.files import changed_while_read, write_atomically
from boxscore._utils.lazy import shortcut
from boxscore.data.schema import LISTS_OF_IMAGES, SHAPES_OF_RECORDS
from boxscore.data.tables import BoxTable, Detections, GroundTruth
from boxscore.data.vocabulary import SKELETON, SUPERCATEGORY, Categories, limbs_of_text
from boxscore.errors import InputError
from boxscore.formats import _json
from boxscore.formats._coco_records import DECODING_ERRORS, NumericResult, rotated_records, shapes_of
from boxscore.formats._packed import packed_columns
from boxscore.formats._survivors import Survivors

RECORDS = 1 << 14
"""Number of records encoded at a time."""


def rewrite_results(path: Path, survivors: Survivors, output: Path) -> None:
    """Copy the surviving records of a results file; unchanged records keep their exact bytes."""
    _refuse_folder(output)
    if _json.first_byte(path) == b"[":
        records = _json.decode_records(_json.chunks_of(path), _decode_raw, lambda: _raise_changed(path))
        write_atomically(output, itertools.chain(_array(path, records, survivors), [b"\n"]))
    else:
        write_atomically(output, _object(path, survivors))


def save_ground_truth(table: GroundTruth, output: Path) -> None:
    """Write ground truth, one image or annotation per line, without keys for columns the table lacks."""
    _refuse_folder(output, "COCO ground truth")
    write_atomically(output, _with_named_errors(_ground_truth(table), table.source))


def save_results(table: Detections, output: Path) -> None:
    """Write detections, one per line; boxes are ``x, y, width, height``, or five numbers if rotated."""
    _refuse_folder(output, "COCO results")
    write_atomically(output, _with_named_errors(_array_of(_results(table)), table.source))


def _refuse_folder(path: Path, what: str = "COCO results") -> None:
    if path.is_dir():
        raise InputError(f"the output of {what}", "be a file", got=f"the folder {path}")


def _raise_changed(path: Path) -> bytes:
    raise changed_while_read(path, got="data other than a list of records")


def _array(path: Path, parts: Iterable[list[msgspec.Raw]], survivors: Survivors) -> Iterator[bytes]:
    """Yield the text of the array of surviving records."""
    # Number the records as the reader did, and select the surviving ones of each slice.
    before, row = b"[", 0
    for records in parts:
        if row + len(records) <= survivors.total:
            rows = survivors.rows_between(row, row + len(records))
            if len(rows):
                chosen = [records[index] for index in (rows - row).tolist()]
                # Timestamps do not prove that a file written just before is unchanged; compare its records.
                if survivors.are_compared:
                    _check_records(path, survivors, rows, chosen)
                # Keep the exact bytes of unchanged records.
                texts: Sequence[bytes | msgspec.Raw] = chosen
                if survivors.are_changed:
                    numbered = zip(rows.tolist(), chosen, strict=True)
                    texts = [
                        _record(record, *survivors.changes(number, "xywh")) for number, record in numbered
                    ]
                yield before + b"\n" + b",\n".join(texts)
                before = b","
        row += len(records)
    # Reject a file that grew or shrank, before the closing bracket is written.
    if row != survivors.total:
        raise changed_while_read(path, got=f"{row} records after {survivors.total}")
    survivors.check_files()
    yield b"\n]" if survivors.count else b"[]"


def _object(path: Path, survivors: Survivors) -> Iterator[bytes]:
    """Yield the text of a COCO object with the surviving annotations."""
    text = path.read_bytes().removeprefix(b"\xef\xbb\xbf")
    before = b"{"
    for key, value in msgspec.json.decode(text, type=dict[str, msgspec.Raw]).items():
        yield before + msgspec.json.encode(key) + b":"
        before = b","
        if key == "annotations":
            yield from _array(path, [_decode_raw(bytes(value))], survivors)
        else:
            yield bytes(value)
    yield b"}\n"


def _check_records(
    path: Path, survivors: Survivors, rows: NDArray[np.int64], records: list[msgspec.Raw]
) -> None:
    """Reject records that differ from the rows of the table."""
    # Decode the records, as numbers if possible.
    text = b"[" + b",".join(records) + b"]"
    given = survivors.table.boxes_given
    columns = _decode_numeric(text)
    # Text ids, very large ids, rotated boxes and missing boxes need Python objects.
    if columns is None:
        upright = given and survivors.table.rotated is None
        try:
            stated = _STATED.decode(text)
            columns = {key: [getattr(record, key) for record in stated] for key in _Stated.__struct_fields__}
            columns["bbox"] = np.array(columns["bbox"], dtype=np.float64).reshape(-1, 4) if upright else None
        except (*DECODING_ERRORS, TypeError, ValueError):
            raise changed_while_read(path, got="another form of records") from None
    # Do not compare inverted boxes, which the table stores differently.
    boxes, corners = columns["bbox"], None
    if boxes is not None and given:
        corners = survivors.written("xywh").corners_of(boxes)
        corners[(corners[:, 2:] < corners[:, :2]).any(axis=1)] = np.nan
    survivors.check_rows(
        rows, columns["score"], corners, images=columns["image_id"], categories=columns["category_id"]
    )


def _decode_numeric(text: bytes) -> dict[str, Any] | None:
    """Decode numeric records to columns, with ids as floats; None if an id would not be exact."""
    try:
        records = cast(list[msgspec.Struct], _NUMERIC.decode(text))
    except DECODING_ERRORS:
        return None
    columns: dict[str, Any] = packed_columns([records], NumericResult, expected_slices=1)
    largest = max(np.abs(columns[name]).max() for name in ("image_id", "category_id"))
    return columns if largest < 2.0**53 else None


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
    """Return the text of a record, with its score or box replaced if given."""
    if score is None and box is None:
        return bytes(record)
    keys = _RAW_KEYS.decode(record)
    for key, value in (("score", score), ("bbox", box)):
        if value is not None:
            keys[key] = msgspec.Raw(msgspec.json.encode(value))
    return msgspec.json.encode(keys)


# ---------------------------------------------------------------- tables as records

Record = dict[str, Any]


def _with_named_errors(pieces: Iterator[bytes], source: str) -> Iterator[bytes]:
    """Pass on text, and convert errors of the JSON encoder to errors that name the source."""
    try:
        yield from pieces
    except (OverflowError, UnicodeEncodeError) as error:
        raise InputError("ids and names", "be what JSON can hold", got=str(error), place=source) from None


def _ground_truth(table: GroundTruth) -> Iterator[bytes]:
    """Yield the text of a ground-truth file."""
    yield b'{"info":{},"licenses":[],\n"images":'
    yield from _array_of(_images(table))
    yield b',"categories":'
    yield from _array_of(_categories(table.categories))
    yield b',"annotations":'
    yield from _array_of(_annotations(table))
    yield b"}\n"


def _array_of(records: Iterable[Record]) -> Iterator[bytes]:
    """Yield the text of an array, one record per line."""
    before, records = b"[\n", iter(records)
    while some := list(itertools.islice(records, RECORDS)):
        yield before + b",\n".join(map(msgspec.json.encode, some))
        before = b",\n"
    yield b"[]\n" if before == b"[\n" else b"\n]\n"


def _images(table: GroundTruth) -> Iterator[Record]:
    images = table.images
    rows = zip(images.ids.tolist(), images.file_names.tolist(), images.sizes.tolist(), strict=True)
    labels = table.image_labels
    lists = {} if labels is None else shortcut(LISTS_OF_IMAGES, "lists_by_image")(table, labels)
    for row, (identifier, file_name, (width, height)) in enumerate(rows):
        record = {"id": identifier, "file_name": file_name, "width": _side(width), "height": _side(height)}
        record |= {key: listed[row] for key, listed in lists.items()}
        yield {key: value for key, value in record.items() if value is not None}


def _categories(categories: Categories) -> Iterator[Record]:
    known = {
        name: categories.columns[name].tolist()
        for name in ("frequency", SUPERCATEGORY)
        if name in categories.columns
    }
    for row, (identifier, name) in enumerate(
        zip(categories.ids.tolist(), categories.names.tolist(), strict=True)
    ):
        texts = {key: values[row] for key, values in known.items() if values[row] is not None}
        drawn = categories.columns[SKELETON].tolist()[row] if SKELETON in categories.columns else None
        if drawn is not None:
            texts[SKELETON] = limbs_of_text(drawn)
        yield {"id": identifier, "name": name, **texts}


def _side(side: float) -> float | None:
    """Return the side of an image, as an integer if it is whole; None if unknown."""
    if side != side:
        return None
    return int(side) if side.is_integer() else side


def _annotations(table: GroundTruth) -> Iterator[Record]:
    columns: dict[str, list[Any]] = {
        "id": table.ids.tolist(),
        **_common_columns(table),
        "area": table.area.tolist(),
        "iscrowd": table.crowd.astype(int).tolist(),
    }
    if table.difficult.any():
        columns["difficult"] = table.difficult.astype(int).tolist()
    if table.ignore.any():  # the reader only reads it if images list classes, as in LVIS
        columns["ignore"] = table.ignore.astype(int).tolist()
    if table.keypoint_count is not None:
        columns["num_keypoints"] = table.keypoint_count.tolist()
    return _records(columns)


def _results(table: Detections) -> Iterator[Record]:
    columns = _common_columns(table)
    if not table.boxes_given and ("segmentation" in columns or "keypoints" in columns):
        del columns["bbox"]  # derived from the shapes, as the reader does
    if table.scored:
        columns["score"] = table.scores.tolist()
    return _records(columns)


def _common_columns(table: BoxTable) -> dict[str, list[Any]]:
    """Return the columns that annotations and results share, by key."""
    rotated = table.rotated
    boxes = np.hstack([table.boxes[:, :2], table.sizes]) if rotated is None else rotated_records(rotated)
    columns: dict[str, list[Any]] = {
        "image_id": table.images.ids[table.image].tolist(),
        "category_id": table.categories.ids[table.category].tolist(),
        "bbox": boxes.tolist(),
    }
    for shape in shapes_of(name for name in SHAPES_OF_RECORDS if table.instances[name] is not None):
        columns |= shape.written(table)
    return columns


def _records(columns: dict[str, list[Any]]) -> Iterator[Record]:
    """Yield each row as a record; leave out the key of a missing mask."""
    for row in zip(*columns.values(), strict=True):
        record = dict(zip(columns, row, strict=True))
        if "segmentation" in record and record["segmentation"] is None:
            del record["segmentation"]
        yield record
