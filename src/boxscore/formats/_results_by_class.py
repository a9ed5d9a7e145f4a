"""Read results of VOC's and DOTA's devkits, a file per class: lines of an image, a score and the box."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from boxscore._utils import checks
from boxscore._utils.array_types import FloatArray
from boxscore._utils.files import changed_while_read, read_text, write_folder
from boxscore._utils.memory import paused_collector
from boxscore.data.tables import Detections
from boxscore.errors import FileFormatError
from boxscore.formats._survivors import Survivors


class ResultLines(NamedTuple):
    """The lines of a file, or some of them."""

    images: list[str]
    numbers: FloatArray
    """Score and box, [N, columns - 1]."""


Refusal = Callable[[list[str], int, str], FileFormatError]
"""Makes the error of a line with other columns: its fields, what there should be, its place."""


@paused_collector()
def read_results(file: Path, columns: int, refusal: Refusal) -> ResultLines:
    """Return the image of each line of a file, and its score and box."""
    return lines_of(file, read_text(file), 0, columns, refusal)


def lines_of(file: Path, text: str, first: int, columns: int, refusal: Refusal) -> ResultLines:
    """Return the lines of a text; ``first`` lines of the file are before it."""
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
    return ResultLines(images, np.array(values, dtype=np.float64).reshape(-1, columns - 1))


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
