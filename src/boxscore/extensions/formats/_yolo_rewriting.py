"""Copy surviving lines of YOLO predictions to files of the same names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath
from typing import Any, NamedTuple

import numpy as np

from boxscore._utils.array_types import FloatArray, IntArray
from boxscore._utils.files import changed_while_read, is_file, read_bytes, write_folder
from boxscore.errors import InputError
from boxscore.formats._label_files import inner_folders
from boxscore.formats._survivors import Survivors
from boxscore.formats._yolo_folders import CLASS_LISTS, label_files, label_folder
from boxscore.formats._yolo_lines import Lines, read_lines
from boxscore.formats._yolo_numbers import by_count
from boxscore.formats.yolo import NOTE, refuse_other_labels

_COPIED = (*CLASS_LISTS, "data.yaml", NOTE)
"""Files that give the lines a meaning, copied with them."""
_FIELD = re.compile(rb"\S+")
_CLOSE = 1e-9


class _Columns(NamedTuple):
    """The columns of the confidence and of the box, if any, in lines with one count of numbers."""

    score: int | None
    box: int | None
    scale: bool = False
    """Whether the numbers of boxes are the table's divided by the image size."""


def files_of_results(path: Path) -> list[Path]:
    """List the label files in reading order, then class lists and the note on the form of lines."""
    folder = label_folder(path)
    names, files = _labels(folder)
    return [*map(Path, files), *_files_to_copy(folder, names)]


def _files_to_copy(folder: Path, names: Sequence[str]) -> list[Path]:
    """List the files that give the lines a meaning, in the folder of labels and above its inner folders."""
    above = {outer for inner in inner_folders(names) for outer in (PurePath(inner), *PurePath(inner).parents)}
    places = (folder / below / name for below in sorted({PurePath(), *above}) for name in _COPIED)
    return [*filter(is_file, places)]


def rewrite(path: Path, survivors: Survivors, output: Path) -> None:
    """Copy the surviving lines byte for byte, except for new scores and boxes."""
    folder = label_folder(path)
    names, files = _labels(folder)
    lines = read_lines(files)
    if len(lines.counts) != survivors.total:
        raise changed_while_read(path, got=f"more or fewer than {survivors.total} lines")
    # Find out what the columns are from the table, which was read with the options of the user.
    columns = dict(_columns_of(lines, survivors, path)) if survivors.are_changed else {}
    if survivors.are_compared:
        _compare(lines, names, survivors)
    # Copy the lines of each file, and the files that give them a meaning.
    contents: dict[str, str | bytes] = {}
    first = 0
    for file, end in zip(files, lines.ends.tolist(), strict=True):
        mark, kept = _lines_in(Path(file))
        if len(kept) != end - first:
            raise changed_while_read(Path(file), got="other lines")
        rows = survivors.rows_between(first, end).tolist()
        texts = [_changed(kept[row - first], row, lines, columns, survivors) for row in rows]
        contents[Path(file).relative_to(path).as_posix()] = mark + b"".join(texts)
        first = end
    for file_to_copy in _files_to_copy(folder, names):
        contents[file_to_copy.relative_to(path).as_posix()] = read_bytes(file_to_copy)
    survivors.check_files()
    refuse_other_labels(output, output / folder.relative_to(path), contents)
    write_folder(output, contents)


def _labels(folder: Path) -> tuple[list[str], list[str]]:
    """Return the names and paths of the label files."""
    pairs = label_files(folder)
    return [name for name, _ in pairs], [file for _, file in pairs]


def _lines_in(file: Path) -> tuple[bytes, list[bytes]]:
    """Return the byte order mark of a file, and its lines that are not blank, with their ends."""
    content = read_bytes(file)
    text = content.removeprefix(b"\xef\xbb\xbf")
    mark = content[: len(content) - len(text)]
    return mark, [line for line in text.splitlines(keepends=True) if line.strip()]


def _columns_of(lines: Lines, survivors: Survivors, path: Path) -> Iterator[tuple[int, _Columns]]:
    """Yield the columns of lines by their count of numbers: those whose values the table has."""
    for rows in by_count(lines.counts):
        count = int(lines.counts[rows[0]])
        found = next(
            (each for each in _possible(count) if _fit(lines.columns(rows), rows, each, survivors)), None
        )
        if found is None:
            raise changed_while_read(path, got="other numbers")
        yield count, found


def _possible(count: int) -> Iterator[_Columns]:
    """Yield the columns that lines may have, likely ones first."""
    box = 1 if count <= 7 else None
    for scale in (True, False):
        if count == 5:
            yield _Columns(None, box, scale)
        if count == 6:
            yield _Columns(1, 2, scale)
        if count % 2 and count > 5:  # with the number of a track
            yield _Columns(count - 2, box, scale)
        if count > 5:
            yield _Columns(count - 1, box, scale)


def _fit(numbers: FloatArray, rows: IntArray, columns: _Columns, survivors: Survivors) -> bool:
    """Whether columns of lines [n, C] have the scores and boxes of rows of the table."""
    table = survivors.table
    if columns.score is not None and not np.array_equal(numbers[:, columns.score], table.scores[rows]):
        return False
    if columns.box is None:
        return True
    expected = _numbers_of_boxes(table.boxes[rows], rows, columns, survivors)
    return bool(
        (
            np.abs(numbers[:, columns.box : columns.box + 4] - expected) <= _CLOSE * (1 + np.abs(expected))
        ).all()
    )


def _numbers_of_boxes(
    boxes: FloatArray, rows: IntArray, columns: _Columns, survivors: Survivors
) -> FloatArray:
    """Return the numbers of boxes in lines, [n, 4]."""
    table = survivors.table
    if columns.scale and table.units == "pixels":
        boxes = boxes / np.tile(table.images.sizes[table.image[rows]], 2)
    return survivors.written("cxcywh").numbers_of(boxes)


def _compare(lines: Lines, names: Sequence[str], survivors: Survivors) -> None:
    """Reject lines of other images, classes or scores than those of the table."""
    table, per_file = survivors.table, np.diff(lines.ends, prepend=0)
    ids: dict[str, Any] = {"images": np.repeat(np.array(names, dtype=object), per_file)}
    if lines.words is None and table.categories.ids.dtype != object:
        ids["categories"] = lines.values[lines.starts]
    survivors.check_rows(np.arange(len(table)), table.scores, None, **ids)


def _changed(
    line: bytes, row: int, lines: Lines, columns: dict[int, _Columns], survivors: Survivors
) -> bytes:
    """Return a line with its score or box replaced if they changed."""
    score, box = survivors.changes(row)
    if score is None and box is None:
        return line
    count = int(lines.counts[row])
    places, new = columns[count], {}
    if score is not None and places.score is not None:
        new[places.score - count] = repr(score)
    if score is not None and places.score is None:
        raise InputError(
            "a line of predictions", "have a confidence to lower it", got="none", place=lines.place(row)
        )
    if box is not None:
        if places.box is None:
            cause = "write boxes instead: end --output in .json or .csv"
            rule = "be a box to merge it"
            raise InputError(
                "a line of predictions", rule, got="another shape", place=lines.place(row), cause=cause
            )
        corners = np.array([box])
        numbers = _numbers_of_boxes(corners, np.array([row]), places, survivors)[0].tolist()
        new |= {places.box + side - count: repr(value) for side, value in enumerate(numbers)}
    # Count fields from the end, because class names may have spaces.
    spans = [match.span() for match in _FIELD.finditer(line)]
    for place in sorted(new, reverse=True):
        start, stop = spans[place]
        line = line[:start] + new[place].encode() + line[stop:]
    return line
