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

import dataclasses
import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from boxscore._utils.files import write_atomically, write_folder
from boxscore.data.tables import Detections
from boxscore.errors import FileFormatError, InputError
from boxscore.formats import _box_order, _json, coco, columns, detect_format, voc_results
from boxscore.formats._voc_files import read_text
from boxscore.protocols.protocol import Similarity

__all__ = ["Results", "load_results", "save_results", "save_table"]

FloatArray = NDArray[np.float64]

RECORDS = 1 << 14
"""Records made into text together."""


class Results(NamedTuple):
    """A results file and its rows."""

    path: Path
    format: Literal["coco", "voc", "columns"]
    table: Detections
    """Every record or line, in the order of the file."""


def load_results(path: str | Path, *, similarity: Similarity = "box", workers: int = 1) -> Results:
    """Read results without ground truth.

    Parameters
    ----------
    path : str or Path
        A COCO results file, a folder of the VOC kit's ``comp4_det_<set>_<class>.txt`` files, or detections
        saved as columns.
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
    found, _ = detect_format(path)
    if found == "columns":
        return Results(path, "columns", columns.load_detections(path, similarity=similarity))
    if found == "voc":
        table = voc_results.load_results(path)
    else:
        table = coco.load_results(path, similarity=similarity, workers=workers)
    _box_order.warn_of_box_order(table, given_sizes=found == "coco")
    return Results(path, "voc" if found == "voc" else "coco", table)


def save_results(
    results: Results,
    rows: NDArray[np.int64],
    path: str | Path,
    *,
    scores: FloatArray | None = None,
    boxes: FloatArray | None = None,
) -> None:
    """Write the rows that are left in the form, and under the file names, of what was read.

    Parameters
    ----------
    results : Results
    rows : ndarray of int64, [K]
        Of ``results.table``, ascending.
    path : str or Path
        A file, for columns one named ``*.npz``, or for VOC results a folder, which is made where missing.
    scores : ndarray of float64, [K], optional
        New scores; a row whose score stays is written as it was.
    boxes : ndarray of float64, [K, 4], optional
        New corners; a row whose box stays is written as it was.

    Raises
    ------
    InputError
        When it cannot be written, or the folder holds other results, which would be read with these.
    """
    path = Path(path)
    kept = _Kept(results, rows, scores, boxes)
    if results.format == "columns":
        _save_columns(results, kept, path)
    elif results.format == "voc":
        _save_voc(results, kept, path)
    else:
        _save_coco(results, kept, path)


class _Kept:
    """Which rows are written, and what is new in them."""

    def __init__(
        self,
        results: Results,
        rows: NDArray[np.int64],
        scores: FloatArray | None,
        boxes: FloatArray | None,
    ) -> None:
        table, self.count = results.table, len(rows)
        self.rows, self.scores, self.boxes = rows, scores, boxes
        self.wanted = np.zeros(len(table), dtype=bool)
        self.wanted[rows] = True
        self._place = np.cumsum(self.wanted) - 1  # of a row among those kept
        self._changed_scores = None if scores is None else table.scores[rows] != scores
        self._changed_boxes = None if boxes is None else (table.boxes[rows] != boxes).any(axis=1)
        self._as_sizes = results.format == "coco"

    def changes(self, row: int) -> tuple[float | None, list[float] | None]:
        """Return the new score and box of a row, each None where it stays."""
        place, score, box = self._place[row], None, None
        if self.scores is not None and self._changed_scores is not None and self._changed_scores[place]:
            score = float(self.scores[place])
        if self.boxes is not None and self._changed_boxes is not None and self._changed_boxes[place]:
            box = self.boxes[place].tolist()
            if self._as_sizes:
                box[2:] = box[2] - box[0], box[3] - box[1]
        return score, box


def _refuse_folder(path: Path) -> None:
    if path.is_dir():
        raise InputError("the output of COCO results", "be a file", got=f"the folder {path}")


def _save_coco(results: Results, kept: _Kept, path: Path) -> None:
    _refuse_folder(path)
    if _json.first_byte(results.path) == b"[":
        chunks = _json.chunks_of(results.path)
        records = _json.decode_records(chunks, _decode_raw, results.path.read_bytes)
        write_atomically(path, itertools.chain(_array(results, records, kept), [b"\n"]))
    else:
        write_atomically(path, _object(results, kept))


def _array(results: Results, parts: Iterable[list[msgspec.Raw]], kept: _Kept) -> Iterator[bytes]:
    """Text of the array of the records that are left, piece by piece."""
    before, row = b"[", 0
    for records in parts:
        if row + len(records) <= len(kept.wanted):
            places = np.flatnonzero(kept.wanted[row : row + len(records)]).tolist()
            if places:
                texts = [_record(records[place], *kept.changes(row + place)) for place in places]
                yield before + b"\n" + b",\n".join(texts)
                before = b","
        row += len(records)
    if row != len(kept.wanted):
        got = f"{row} records after {len(kept.wanted)}"
        raise FileFormatError(str(results.path), "stay as it is while it is read", got=got)
    yield b"\n]" if kept.count else b"[]"


def _object(results: Results, kept: _Kept) -> Iterator[bytes]:
    """Text of a COCO object with the annotations that are left, piece by piece."""
    text = results.path.read_bytes().removeprefix(b"\xef\xbb\xbf")
    before = b"{"
    for key, value in msgspec.json.decode(text, type=dict[str, msgspec.Raw]).items():
        yield before + msgspec.json.encode(key) + b":"
        before = b","
        if key == "annotations":
            yield from _array(results, [_decode_raw(bytes(value))], kept)
        else:
            yield bytes(value)
    yield b"}\n"


def _decode_raw(text: bytes) -> list[msgspec.Raw]:
    return _RAW_RECORDS.decode(text)


_RAW_RECORDS = msgspec.json.Decoder(list[msgspec.Raw])
_RAW_KEYS = msgspec.json.Decoder(dict[str, msgspec.Raw])


def _record(record: msgspec.Raw, score: float | None, box: list[float] | None) -> bytes:
    """Text of a record, with a new score or box where there is one; its other keys as they stand."""
    if score is None and box is None:
        return bytes(record)
    keys = _RAW_KEYS.decode(record)
    for key, value in (("score", score), ("bbox", box)):
        if value is not None:
            keys[key] = msgspec.Raw(msgspec.json.encode(value))
    return msgspec.json.encode(keys)


def _refuse_file(path: Path) -> None:
    if path.is_file():
        raise InputError("the output of VOC results", "be a folder", got=f"the file {path}")


def _refuse_other_results(path: Path, own: set[str]) -> None:
    """Refuse a folder of VOC results that holds files which are not written anew."""
    others = {file.name for file in path.glob("comp[0-9]_det_*.txt")} - own
    if others:
        raise InputError(
            "the output folder",
            "hold no other results, which would be read with these",
            got=f"{min(others)}",
            place=str(path),
        )


def _save_voc(results: Results, kept: _Kept, path: Path) -> None:
    _refuse_file(path)
    files = voc_results.results_files(results.path)
    _refuse_other_results(path, {file.name for file in files})
    contents: dict[str, str | bytes] = {}
    row = 0
    for file in files:
        lines: list[str] = []
        for line in read_text(file).splitlines():
            if not line.split():
                continue
            if kept.wanted[row]:
                lines.append(_line(line, *kept.changes(row)))
            row += 1
        contents[file.name] = "".join(f"{line}\n" for line in lines)
    write_folder(path, contents)


def _line(line: str, score: float | None, box: list[float] | None) -> str:
    """Text of a line, with a new score or box where there is one."""
    fields = line.split()
    if score is not None:
        fields[1] = repr(score)
    if box is not None:
        fields[2:] = map(repr, box)
    return line if score is None and box is None else " ".join(fields)


def _save_columns(results: Results, kept: _Kept, path: Path) -> None:
    table = results.table.take(kept.rows)
    if kept.scores is not None:
        table = dataclasses.replace(table, scores=kept.scores)
    if kept.boxes is not None:
        moved = (table.boxes != kept.boxes).any(axis=1)
        sizes = np.where(moved[:, None], kept.boxes[:, 2:] - kept.boxes[:, :2], table.sizes)
        table = dataclasses.replace(table, boxes=kept.boxes, sizes=sizes)
    columns.save_columns(table, path)


def save_table(table: Detections, path: str | Path, *, like: Results) -> None:
    """Write a table of its own as results, in the form of others.

    Parameters
    ----------
    table : Detections
    path : str or Path
        A file, for columns one named ``*.npz``, or for VOC results a folder, which is made where missing.
    like : Results
        Whose form and, for VOC results, file names are taken. A class's file is there when it is empty.

    Raises
    ------
    InputError
        When it cannot be written, or the folder holds other results, which would be read with these.
    """
    path = Path(path)
    if like.format == "columns":
        columns.save_columns(table, path)
        return
    image_ids, category_ids = table.images.ids[table.image], table.categories.ids[table.category]
    if like.format == "coco":
        _refuse_folder(path)
        places = np.concatenate([table.boxes[:, :2], table.sizes], axis=1)
        write_atomically(path, _records(image_ids, category_ids, places, table.scores))
        return
    _refuse_file(path)
    prefix = voc_results.stem_parts(voc_results.results_files(like.path)[0])[0]
    names = [f"{prefix}_{label}.txt" for label in table.categories.ids.tolist()]
    _refuse_other_results(path, set(names))
    lines: list[list[str]] = [[] for _ in names]
    rows = (image_ids.tolist(), table.category.tolist(), table.scores.tolist(), table.boxes.tolist())
    for image, category, score, box in zip(*rows, strict=True):
        lines[category].append(" ".join([image, repr(score), *map(repr, box)]) + "\n")
    write_folder(path, {name: "".join(texts) for name, texts in zip(names, lines, strict=True)})


def _records(
    image_ids: NDArray[np.generic],
    category_ids: NDArray[np.generic],
    boxes: FloatArray,
    scores: FloatArray,
) -> Iterator[bytes]:
    """Text of a COCO results file, piece by piece: one record a line, boxes as ``x, y, width, height``."""
    before = b"[\n"
    for low in range(0, len(scores), RECORDS):
        some = (column[low : low + RECORDS].tolist() for column in (image_ids, category_ids, boxes, scores))
        lines = [
            msgspec.json.encode({"image_id": image, "category_id": category, "bbox": box, "score": score})
            for image, category, box, score in zip(*some, strict=True)
        ]
        yield before + b",\n".join(lines)
        before = b",\n"
    yield b"\n]\n" if len(scores) else b"[]\n"
