"""Results files on their own: read without ground truth, and written again with some of their rows.

Goal
----
Programs that drop, rescore or merge detections need the rows as a table, and afterwards the same file with
the remaining rows, each as it stood, with every key it had.

Conventions
-----------
- A row that does not change is written byte for byte as it was read. In one that does, only the score or the
  box is written anew, with every digit.
- Rows keep the order of the file. COCO results files are read a slice at a time, both times.
- Files are written under a temporary name and renamed when they are complete.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore.data.tables import Detections
from boxscore.errors import BoxscoreWarning
from boxscore.formats._box_order import warn_of_box_order
from boxscore.formats._format import PLAIN, ReadOptions
from boxscore.formats.registry import format_at, format_named

__all__ = ["Kept", "Results", "load_results", "save_results", "save_table"]

FloatArray = NDArray[np.float64]


class Results(NamedTuple):
    """A results file and its rows."""

    path: Path
    format: str
    table: Detections
    """Every record or line, in the order of the file."""


def load_results(path: str | Path, options: ReadOptions = PLAIN) -> Results:
    """Read results of any format without ground truth."""
    path = Path(path)
    at = format_at(path, options.format)
    with at.reading(path, options, beside=0) as finish:
        table = finish(None)
    if table.rotated is not None:
        message = f"{path}: rotated boxes; the upright boxes around them are suppressed or fused."
        warnings.warn(message, BoxscoreWarning, stacklevel=2)
    if at.boxes is not None and table.boxes_given:
        warn_of_box_order(table, given_sizes=at.boxes == "xywh")
    return Results(path, at.name, table)


def save_results(
    results: Results,
    rows: NDArray[np.int64],
    path: str | Path,
    *,
    scores: FloatArray | None = None,
    boxes: FloatArray | None = None,
) -> None:
    """Write the remaining rows, int64 [K] ascending, in the format and to the file names of the input."""
    format_named(results.format).rewrite(results.path, Kept(results.table, rows, scores, boxes), Path(path))


class Kept:
    """The rows of a table that are written, with their new scores and boxes."""

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
    """Write a table in the format, and for VOC results under the file names, of ``like``."""
    format_named(like.format).save(table, Path(path), like=like.path)
