"""Read and write results of the VOC and DOTA devkits: a file per class, lines of image, score and box."""

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
    """Lines of a file."""

    images: list[str]
    numbers: FloatArray
    """Score and box, [N, columns - 1]."""


Refusal = Callable[[list[str], int, str], FileFormatError]
"""Return the error for a line with a wrong number of columns: (fields, expected number, place)."""


@paused_collector()
def read_results(file: Path, columns: int, refusal: Refusal) -> ResultLines:
    """Read all lines of a file."""
    return lines_of(file, read_text(file), 0, columns, refusal)


def lines_of(file: Path, text: str, first: int, columns: int, refusal: Refusal) -> ResultLines:
    """Parse the lines of a text that starts after the ``first`` lines of a file."""
    # Check the number of fields first, to report the line.
    lines = [fields for line in text.splitlines() if (fields := line.split())]
    for row, fields in enumerate(lines):
        if len(fields) != columns:
            raise refusal(fields, columns, place_of_row([file], [0], first + row))
    # float accepts "1_0" and non-ASCII digits, so use it only if the text has neither.
    images = [fields[0] for fields in lines]
    plain = text.isascii() and text.count("_") == "".join(images).count("_")
    read = float if plain else checks.plain_number
    # Convert all numbers in one pass; search for the invalid one only if that fails.
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
    """Return the file and line of a row; ``starts`` has the first row of each file."""
    index = int(np.searchsorted(starts, row, side="right")) - 1
    filled = (n for n, line in enumerate(read_text(files[index]).splitlines(), start=1) if line.split())
    return f"{files[index]}, line {next(itertools.islice(filled, row - starts[index], None))}"


def results_texts(table: Detections, images: Sequence[str], boxes: FloatArray) -> list[str]:
    """Return the text of the results file of each class."""
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
    """Copy the surviving lines, with new scores and boxes where they change.

    ``corners`` converts the box columns to corners to compare with the table; None skips the comparison.
    """
    # Number the lines across files, as the reader did.
    contents: dict[str, str | bytes] = {}
    row = 0
    for file in files:
        lines = [line for line in read_text(file).splitlines() if line.split()]
        rows = np.arange(row, row + len(lines))
        row += len(lines)
        if row > len(survivors.wanted):
            break
        # Timestamps do not prove that a file written just before is unchanged; compare its lines.
        if survivors.are_compared:
            images, numbers = _parse_lines(file, lines, columns)
            survivors.check_rows(rows, numbers[:, 0], corners(numbers[:, 1:]), images=images)
        # Keep lines unless their score or box changes.
        texts = [
            _format_line(lines[at - rows[0]], *survivors.changes(at)) for at in rows[survivors.wanted[rows]]
        ]
        contents[file.name] = "".join(f"{text}\n" for text in texts)
    # Write all files together, and only if the number of lines is right.
    if row != len(survivors.wanted):
        raise changed_while_read(path, got=f"more or fewer than {len(survivors.wanted)} lines")
    survivors.check_files()
    write_folder(output, contents)


def _parse_lines(file: Path, lines: Sequence[str], columns: int) -> tuple[list[str], FloatArray]:
    """Parse lines to compare them; return images and numbers."""
    fields = [line.split() for line in lines]
    try:
        numbers = np.array([[float(text) for text in some[1:]] for some in fields]).reshape(-1, columns - 1)
    except ValueError:
        raise changed_while_read(file, got="other lines") from None
    return [some[0] for some in fields], numbers


def _format_line(line: str, score: float | None, box: list[float] | None) -> str:
    """Return a line, with its score or box replaced if given."""
    fields = line.split()
    if score is not None:
        fields[1] = repr(score)
    if box is not None:
        fields[2:] = map(repr, box)
    return line if score is None and box is None else " ".join(fields)
