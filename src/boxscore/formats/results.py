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

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore.data.tables import Detections
from boxscore.formats._box_order import warn_of_box_order
from boxscore.formats.registry import detect_format, format_named

__all__ = ["Kept", "Results", "load_results", "save_results", "save_table"]

FloatArray = NDArray[np.float64]


class Results(NamedTuple):
    """A results file and its rows."""

    path: Path
    format: str
    table: Detections
    """Every record or line, in the order of the file."""


def load_results(path: str | Path, *, columns: Sequence[str] = (), processes: int = 1) -> Results:
    """Read results without ground truth.

    Parameters
    ----------
    path : str or Path
        A COCO results file, a folder of the VOC kit's ``comp4_det_<set>_<class>.txt`` files, or detections
        saved as columns.
    columns : sequence of str
        Instance columns that will be asked for, to be read at once.
    processes : int, default 1
        That may read a large file together.

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
    name, _ = detect_format(path)
    at = format_named(name)
    with at.reading(path, columns=columns, processes=processes, beside=0) as finish:
        table = finish(None)
    if at.boxes is not None and table.boxes_given:
        warn_of_box_order(table, given_sizes=at.boxes == "xywh")
    return Results(path, name, table)


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
    format_named(results.format).rewrite(results.path, Kept(results.table, rows, scores, boxes), Path(path))


class Kept:
    """Which rows of a table are written, and what is new in them."""

    def __init__(
        self,
        table: Detections,
        rows: NDArray[np.int64],
        scores: FloatArray | None,
        boxes: FloatArray | None,
    ) -> None:
        self.table, self.count = table, len(rows)
        self.rows, self.scores, self.boxes = rows, scores, boxes
        self.wanted = np.zeros(len(table), dtype=bool)
        self.wanted[rows] = True
        self._position = np.cumsum(self.wanted) - 1  # of a row among those kept
        self._changed_scores = None if scores is None else table.scores[rows] != scores
        self._changed_boxes = None if boxes is None else (table.boxes[rows] != boxes).any(axis=1)

    def changes(self, row: int) -> tuple[float | None, list[float] | None]:
        """Return the new score and the new corners of a row, each None where it stays."""
        position, score, box = self._position[row], None, None
        if self.scores is not None and self._changed_scores is not None and self._changed_scores[position]:
            score = float(self.scores[position])
        if self.boxes is not None and self._changed_boxes is not None and self._changed_boxes[position]:
            box = self.boxes[position].tolist()
        return score, box


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
    format_named(like.format).save(table, Path(path), like=like.path)
