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
- What is written belongs to what was read: the file must be the same one, unchanged, at the end. Where that
  cannot be told from its times, because it was written just before, image, class, score and box of every row
  that is written are compared with the table.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore.data.tables import Detections
from boxscore.errors import BoxscoreWarning
from boxscore.formats._box_order import warn_of_box_order
from boxscore.formats._format import PLAIN, ReadOptions, Snapshot, changed_while_read
from boxscore.formats._unpacking import Unpacked
from boxscore.formats.registry import format_at, format_named

__all__ = ["Kept", "Results", "load_results", "save_results", "save_table"]

FloatArray = NDArray[np.float64]


class Results(NamedTuple):
    """A results file and its rows."""

    path: Path
    format: str
    table: Detections
    """Every record or line, in the order of the file."""
    snapshots: tuple[Snapshot, ...]
    """The states of the files before they were read."""


def load_results(path: str | Path, options: ReadOptions = PLAIN, *, oriented: bool = False) -> Results:
    """Read results of any format without ground truth; warn of oriented boxes unless they are compared."""
    path = Path(path)
    at = format_at(path, options.format)
    snapshots = tuple(Snapshot(file) for file in at.results_files(path))
    with at.reading(path, options, beside=0) as finish:
        table = finish(None)
    if not oriented and (table.rotated is not None or table.quadrilaterals is not None):
        message = f"{path}: rotated boxes; the upright boxes around them are suppressed or fused."
        warnings.warn(message, BoxscoreWarning, stacklevel=2)
    if at.boxes is not None and table.boxes_given:
        warn_of_box_order(table, given_sizes=at.boxes == "xywh")
    return Results(at.folder if isinstance(at, Unpacked) else path, at.name, table, snapshots)


def save_results(
    results: Results,
    rows: NDArray[np.int64],
    path: str | Path,
    *,
    scores: FloatArray | None = None,
    boxes: FloatArray | None = None,
) -> None:
    """Write the remaining rows, int64 [K] ascending, in the format and to the file names of the input."""
    kept = Kept(results, rows, scores, boxes)
    format_named(results.format).rewrite(results.path, kept, Path(path))


class Kept:
    """The rows of a table that are written, with their new scores and boxes."""

    def __init__(
        self,
        results: Results,
        rows: NDArray[np.int64],
        scores: FloatArray | None,
        boxes: FloatArray | None,
    ) -> None:
        table = results.table
        self.table, self.count, self._results = table, len(rows), results
        self.is_compared = not all(snapshot.settled for snapshot in results.snapshots)
        self.rows, self.scores, self.boxes = rows, scores, boxes
        self.wanted = np.zeros(len(table), dtype=bool)
        self.wanted[rows] = True
        self._position = np.cumsum(self.wanted) - 1  # of a row among those kept
        self._changed_scores = None if scores is None else table.scores[rows] != scores
        self._changed_boxes = None if boxes is None else (table.boxes[rows] != boxes).any(axis=1)

    def check_files(self) -> None:
        """Refuse results that have changed since their first reading began."""
        for snapshot in self._results.snapshots:
            snapshot.check_reading()
        files = format_named(self._results.format).results_files(self._results.path)
        if files != [snapshot.path for snapshot in self._results.snapshots]:
            raise changed_while_read(self._results.path, got="other files")

    def check_rows(
        self, rows: NDArray[np.int64], scores: Any, corners: FloatArray | None, **ids: Sequence[Any]
    ) -> None:
        """Refuse rows [K], read once more, that are not those of the table.

        ``corners`` [K, 4] are NaN where a box is not compared; ``ids`` are of ``images`` and ``categories``.
        """
        table = self.table
        try:
            same = table.scores[rows] == np.asarray(scores, dtype=np.float64)
            for name, vocabulary, column in (
                ("images", table.images, table.image),
                ("categories", table.categories, table.category),
            ):
                if name in ids:
                    same &= vocabulary.ids[column[rows]] == np.asarray(ids[name], dtype=vocabulary.ids.dtype)
            if corners is not None:
                same &= ((table.boxes[rows] == corners) | np.isnan(corners)).all(axis=1)
        except (TypeError, ValueError, OverflowError):  # an id of another type
            same = np.zeros(len(rows), dtype=bool)
        if not same.all():
            row = int(rows[np.argmin(same)])
            raise changed_while_read(self._results.path, got=f"another detection {row} than before")

    def as_table(self) -> Detections:
        """Return the remaining rows as a table, with the new scores and boxes."""
        table, changes = self.table.take(self.rows), {}
        if self.scores is not None:
            changes["scores"] = self.scores
        if self.boxes is not None:
            moved = (table.boxes != self.boxes).any(axis=1)
            changes["boxes"] = self.boxes
            changes["sizes"] = np.where(moved[:, None], self.boxes[:, 2:] - self.boxes[:, :2], table.sizes)
        return table.replaced(**changes)

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
