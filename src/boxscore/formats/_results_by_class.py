"""Read results of VOC's and DOTA's devkits, a file per class: lines of an image, a score and the box."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from boxscore._utils import checks
from boxscore._utils.array_types import BoolArray, FloatArray, IntArray
from boxscore._utils.files import read_text, write_folder
from boxscore._utils.memory import paused_collector
from boxscore.data.tables import Detections
from boxscore.errors import FileFormatError
from boxscore.formats._snapshots import changed_while_read
from boxscore.formats._survivors import Survivors

PIECE = 1 << 22
"""Letters that are read at a time where some lines are kept."""


class ResultLines(NamedTuple):
    """The lines of a file that were kept.

    Attributes
    ----------
    images : list of str
    numbers : ndarray of float64, [N, columns - 1]
        Score and box.
    rows : ndarray of int64, [N]
        Places among all lines.
    all_lines : int
        How many there are.
    """

    images: list[str]
    numbers: FloatArray
    rows: IntArray
    all_lines: int


@paused_collector()
def read_results(
    file: Path,
    columns: int,
    refusal: Callable[[list[str], int, str], FileFormatError],
    keeps: Callable[[list[str]], BoolArray] | None = None,
) -> ResultLines:
    """Return the image of each line, and its score and box.

    ``refusal`` makes the error of a line with other columns: its fields, what there should be, its place.
    ``keeps`` takes images and returns whether their lines are kept; then only a chunk of lines is in memory.
    """
    text = read_text(file)
    if keeps is None:
        images, numbers = _read_lines(file, text, 0, columns, refusal)
        return ResultLines(images, numbers, np.arange(len(images)), len(images))
    images, parts, rows, count = [], [np.empty((0, columns - 1))], [np.empty(0, np.int64)], 0
    for piece in _pieces(text):
        names, numbers = _read_lines(file, piece, count, columns, refusal)
        kept = np.flatnonzero(keeps(names))
        images += [names[row] for row in kept.tolist()]
        parts.append(numbers[kept])
        rows.append(kept + count)
        count += len(names)
    return ResultLines(images, np.concatenate(parts), np.concatenate(rows), count)


def _pieces(text: str) -> Iterator[str]:
    """Cut a text at ends of lines."""
    start = 0
    while start < len(text):
        end = text.find("\n", start + PIECE) + 1 or len(text)
        yield text[start:end]
        start = end


def _read_lines(
    file: Path,
    text: str,
    first: int,
    columns: int,
    refusal: Callable[[list[str], int, str], FileFormatError],
) -> tuple[list[str], FloatArray]:
    """Return the image of each line of a text, and its numbers; ``first`` lines of the file are before it."""
    # Check the count of fields first, which names the line of a wrong one.
    lines = [fields for line in text.splitlines() if (fields := line.split())]
    for row, fields in enumerate(lines):
        if len(fields) != columns:
            raise refusal(fields, columns, place_of_row([file], [0], first + row))
    # float takes "1_0" and other digits; only where a text has neither may it read all fields.
    images = [fields[0] for fields in lines]
    plain = text.isascii() and text.count("_") == "".join(images).count("_")
    read = float if plain else checks.plain_number
    # One pass over all numbers; the bad one is searched for only when there is one.
    try:
        values = [read(field) for fields in lines for field in fields[1:]]
    except ValueError:
        row, bad = next(
            (row, field) for row, fields in enumerate(lines) for field in fields[1:] if not _is_number(field)
        )
        place = place_of_row([file], [0], first + row)
        raise FileFormatError("scores and coordinates", "be numbers", got=repr(bad), place=place) from None
    return images, np.array(values, dtype=np.float64).reshape(-1, columns - 1)


def _is_number(text: str) -> bool:
    try:
        checks.plain_number(text)
    except ValueError:
        return False
    return True


def place_of_row(files: Sequence[Path], starts: Sequence[int], row: int) -> str:
    """Name the file and line of a row; ``starts`` is the first row of each file."""
    index = int(np.searchsorted(starts, row, side="right")) - 1
    filled = (n for n, line in enumerate(read_text(files[index]).splitlines(), start=1) if line.split())
    return f"{files[index]}, line {next(itertools.islice(filled, row - starts[index], None))}"


def results_texts(table: Detections, images: Sequence[str], boxes: FloatArray) -> list[str]:
    """Return the text of the file of each class."""
    lines: list[list[str]] = [[] for _ in range(len(table.categories))]
    rows = (table.image.tolist(), table.category.tolist(), table.scores.tolist(), boxes.tolist())
    for image, category, score, box in zip(*rows, strict=True):
        lines[category].append(" ".join([images[image], repr(score), *map(repr, box)]) + "\n")
    return ["".join(texts) for texts in lines]


def rewrite_results(
    path: Path,
    files: Sequence[Path],
    columns: int,
    survivors: Survivors,
    output: Path,
    *,
    corners: Callable[[FloatArray], FloatArray | None],
) -> None:
    """Write the remaining lines, each as it stood unless it changes.

    ``corners`` makes those of boxes of the numbers of lines, to be compared with the table's; None for none.
    """
    # Number the lines over all files, as the reader did.
    contents: dict[str, str | bytes] = {}
    row = 0
    for file in files:
        lines = [line for line in read_text(file).splitlines() if line.split()]
        rows = np.arange(row, row + len(lines))
        row += len(lines)
        if row > len(survivors.wanted):
            break
        # The clock cannot show that a young file stayed the same, so its lines are compared.
        if survivors.are_compared:
            images, numbers = _compared(file, lines, columns)
            survivors.check_rows(rows, numbers[:, 0], corners(numbers[:, 1:]), images=images)
        # Lines stay as they are unless a score or a box changes.
        texts = [_line(lines[at - rows[0]], *survivors.changes(at)) for at in rows[survivors.wanted[rows]]]
        contents[file.name] = "".join(f"{text}\n" for text in texts)
    # Nothing is written unless every line was met; then all files appear together.
    if row != len(survivors.wanted):
        raise changed_while_read(path, got=f"more or fewer than {len(survivors.wanted)} lines")
    survivors.check_files()
    write_folder(output, contents)


def _compared(file: Path, lines: Sequence[str], columns: int) -> tuple[list[str], FloatArray]:
    """Return the image of each line, and its numbers."""
    fields = [line.split() for line in lines]
    try:
        numbers = np.array([[float(text) for text in some[1:]] for some in fields]).reshape(-1, columns - 1)
    except ValueError:
        raise changed_while_read(file, got="other lines") from None
    return [some[0] for some in fields], numbers


def _line(line: str, score: float | None, box: list[float] | None) -> str:
    """Text of a line, with a new score or box where there is one."""
    fields = line.split()
    if score is not None:
        fields[1] = repr(score)
    if box is not None:
        fields[2:] = map(repr, box)
    return line if score is None and box is None else " ".join(fields)
