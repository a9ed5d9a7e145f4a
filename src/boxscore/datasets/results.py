"""Results files on their own: read without ground truth, and written again with some of their rows.

Goal
----
What a program that drops, rescores or merges detections needs: the rows as a table, and afterwards the same
file with the rows that are left, each as it stood, with every key it had.

Conventions
-----------
- A row that does not change is written byte by byte as it was read. Of a row that changes only its score or
  its box is written anew, every digit of it.
- Rows keep the order of the file. COCO results files are read a slice at a time, both times.
- Files are written under another name and renamed when they are whole.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from boxscore._files import write_atomically, write_folder
from boxscore._validate import message
from boxscore.datasets import _box_order, _json, coco, detect_format, voc
from boxscore.errors import FileFormatError, InputError
from boxscore.protocol import Similarity
from boxscore.tables import Detections

__all__ = ["Results", "load_results", "results_records", "save_results"]

FloatArray = NDArray[np.float64]


class Results(NamedTuple):
    """A results file and its rows."""

    path: Path
    format: Literal["coco", "voc"]
    table: Detections
    """Every record or line, in the order of the file."""


def load_results(path: str | Path, *, similarity: Similarity = "box", workers: int = 1) -> Results:
    """Read results without ground truth.

    Parameters
    ----------
    path : str or Path
        A COCO results file, or a folder of the VOC kit's ``comp4_det_<set>_<class>.txt`` files.
    similarity : {"box", "mask", "boundary", "keypoints"}
        What will be compared; masks and keypoints are read only for it.
    workers : int, default 1
        Processes that read a large COCO file together.

    Returns
    -------
    Results

    Raises
    ------
    FileFormatError
        When the file breaks a rule of its format; the message names file, place, rule and value.
    InputError
        When a value does.

    Warns
    -----
    BoxscoreWarning
        When boxes look as if they were of another form.
    """
    path = Path(path)
    found, reason = detect_format(path)
    if found == "columns":
        raise FileFormatError(
            message(str(path), "be a COCO results file or a folder of VOC results", got=reason)
        )
    if found == "voc":
        table = voc.load_results(path)
    else:
        table = coco.load_results(path, similarity=similarity, workers=workers)
    _box_order.warn_of_box_order(table, given_sizes=found == "coco")
    return Results(path, "voc" if found == "voc" else "coco", table)


def save_results(results: Results, kept: Detections, rows: NDArray[np.int64], path: str | Path) -> None:
    """Write the rows that are left in the form, and under the file names, of what was read.

    Parameters
    ----------
    results : Results
    kept : Detections, [K]
        The rows that are left; where a score or box differs from what was read it is written anew.
    rows : ndarray of int64, [K]
        Their rows in ``results.table``, ascending.
    path : str or Path
        A file, or for VOC results a folder, which is made where it is missing.

    Raises
    ------
    InputError
        When it cannot be written, or the folder holds other results, which would be read with these.
    """
    path = Path(path)
    before = results.table.take(rows)
    scores = dict(_changed(rows, kept.scores, before.scores[:, None] != kept.scores[:, None]))
    places = (
        np.concatenate([kept.boxes[:, :2], kept.sizes], axis=1) if results.format == "coco" else kept.boxes
    )
    boxes = dict(_changed(rows, places, before.boxes != kept.boxes))
    if results.format == "voc":
        _save_voc(results, rows, scores, boxes, path)
    else:
        _save_coco(results, rows, scores, boxes, path)


def _changed(
    rows: NDArray[np.int64], values: FloatArray, differs: NDArray[np.bool_]
) -> list[tuple[int, float | list[float]]]:
    """Row and new value of each row with a difference."""
    which = np.flatnonzero(differs.any(axis=1))
    return list(zip(rows[which].tolist(), values[which].tolist(), strict=True))


NewValues = dict[int, "float | list[float]"]


def _save_coco(
    results: Results, rows: NDArray[np.int64], scores: NewValues, boxes: NewValues, path: Path
) -> None:
    if path.is_dir():
        raise InputError(message("the output of COCO results", "be a file", got=f"the folder {path}"))
    is_list = _json.first_byte(results.path) == b"["
    whole: dict[str, msgspec.Raw] = {}
    if is_list:
        chunks = _json.chunks_of(results.path)
        parts = _json.decode_records(chunks, _decode_raw, results.path.read_bytes)
    else:
        text = results.path.read_bytes().removeprefix(b"\xef\xbb\xbf")
        whole = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
        parts = iter([_decode_raw(bytes(whole["annotations"]))])
    wanted = np.zeros(len(results.table), dtype=bool)
    wanted[rows] = True
    output = bytearray(b"[")
    row = 0
    for records in parts:
        for record in records:
            if row < len(wanted) and wanted[row]:
                output += b"\n" if len(output) == 1 else b",\n"
                output += _record(record, scores.get(row), boxes.get(row))
            row += 1
    if row != len(wanted):
        raise FileFormatError(
            message(
                str(results.path), "stay as it is while it is read", got=f"{row} records after {len(wanted)}"
            )
        )
    output += b"\n]\n" if len(rows) else b"]\n"
    if not is_list:
        whole["annotations"] = msgspec.Raw(bytes(output).rstrip())
        output = bytearray(msgspec.json.encode(whole) + b"\n")
    write_atomically(path, bytes(output))


def _decode_raw(text: bytes) -> list[msgspec.Raw]:
    return _RAW_RECORDS.decode(text)


_RAW_RECORDS = msgspec.json.Decoder(list[msgspec.Raw])
_RAW_KEYS = msgspec.json.Decoder(dict[str, msgspec.Raw])


def _record(record: msgspec.Raw, score: float | list[float] | None, box: float | list[float] | None) -> bytes:
    """Text of a record, with a new score or box where there is one; its other keys as they stand."""
    if score is None and box is None:
        return bytes(record)
    keys = _RAW_KEYS.decode(record)
    for key, value in (("score", score), ("bbox", box)):
        if value is not None:
            keys[key] = msgspec.Raw(msgspec.json.encode(value))
    return msgspec.json.encode(keys)


def _save_voc(
    results: Results, rows: NDArray[np.int64], scores: NewValues, boxes: NewValues, path: Path
) -> None:
    if path.is_file():
        raise InputError(message("the output of VOC results", "be a folder", got=f"the file {path}"))
    files = voc.results_files(results.path)
    others = {file.name for file in path.glob("comp[0-9]_det_*.txt")} - {file.name for file in files}
    if others:
        raise InputError(
            message(
                "the output folder",
                "hold no other results, which would be read with these",
                got=f"{min(others)}",
                place=str(path),
            )
        )
    wanted = np.zeros(len(results.table), dtype=bool)
    wanted[rows] = True
    contents: dict[str, str | bytes] = {}
    row = 0
    for file in files:
        lines: list[str] = []
        for line in file.read_text(encoding="utf-8-sig").splitlines():
            if not line.split():
                continue
            if wanted[row]:
                lines.append(_line(line, scores.get(row), boxes.get(row)))
            row += 1
        contents[file.name] = "".join(f"{line}\n" for line in lines)
    write_folder(path, contents)


def _line(line: str, score: float | list[float] | None, box: float | list[float] | None) -> str:
    """Text of a line, with a new score or box where there is one."""
    fields = line.split()
    if score is not None:
        fields[1] = repr(score)
    if isinstance(box, list):
        fields[2:] = map(repr, box)
    return line if score is None and box is None else " ".join(fields)


def results_records(
    image_ids: NDArray[np.generic],
    category_ids: NDArray[np.generic],
    boxes: FloatArray,
    scores: FloatArray,
) -> bytes:
    """Text of a COCO results file: one record a line, boxes as ``x, y, width, height``.

    Parameters
    ----------
    image_ids, category_ids : ndarray, [K]
    boxes : ndarray of float64, [K, 4]
        ``x, y, width, height``.
    scores : ndarray of float64, [K]
    """
    columns = (image_ids.tolist(), category_ids.tolist(), boxes.tolist(), scores.tolist())
    lines = [
        msgspec.json.encode({"image_id": image, "category_id": category, "bbox": box, "score": score})
        for image, category, box, score in zip(*columns, strict=True)
    ]
    return b"[\n" + b",\n".join(lines) + b"\n]\n" if lines else b"[]\n"
