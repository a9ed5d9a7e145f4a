"""Hold results as they were read, and the rows of them to write."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import FloatArray
from boxscore._utils.files import Snapshot, changed_while_read
from boxscore._utils.records import NamedTuple
from boxscore.data.boxes import BoxFormat, WrittenForm
from boxscore.data.tables import Detections
from boxscore.formats._format import Format


class Results(NamedTuple):
    """A results file and its rows as a table."""

    path: Path
    format: str
    table: Detections
    """All records or lines, in file order."""
    snapshots: tuple[Snapshot, ...]
    """The state of each file before it was read."""
    written: WrittenForm | None = None
    """The form of the boxes in the file, if the user gives one."""


Changes = tuple[float | None, list[float] | None]
"""The new score and the new box of a row, each None if unchanged."""


class Survivors:
    """The surviving rows of a table, with their new scores and boxes.

    ``form`` is the format of the results; ``files_at`` lists their files.
    """

    def __init__(
        self,
        results: Results,
        rows: NDArray[np.int64],
        scores: FloatArray | None,
        boxes: FloatArray | None,
        form: Format,
        *,
        files_at: Callable[[Path], list[Path]],
    ) -> None:
        table = results.table
        self._files_at, self.form = files_at, form
        self.table, self.count, self._results = table, len(rows), results
        self.are_compared = not all(snapshot.is_old for snapshot in results.snapshots)
        self.rows, self.scores, self.boxes = rows, scores, boxes
        self.wanted = np.zeros(len(table), dtype=bool)
        self.wanted[rows] = True
        self._written = results.written
        self._position = np.cumsum(self.wanted) - 1  # of a row among the survivors
        self._changed_scores = None if scores is None else table.scores[rows] != scores
        self._changed_boxes = None if boxes is None else (table.boxes[rows] != boxes).any(axis=1)

    @property
    def total(self) -> int:
        """Number of rows in the file."""
        return len(self.wanted)

    @property
    def are_changed(self) -> bool:
        """Whether any row may have a new score or box."""
        return self.scores is not None or self.boxes is not None

    def rows_between(self, start: int, stop: int) -> NDArray[np.int64]:
        """Return the surviving rows in [start, stop)."""
        return np.flatnonzero(self.wanted[start:stop]) + start

    def written(self, usual: BoxFormat) -> WrittenForm:
        """Return the form of boxes in the file: ``usual`` unless the user gives another."""
        return self._written or WrittenForm(usual, y_first=False, fractions=False)

    def check_files(self) -> None:
        """Raise if the files have changed since they were read."""
        for snapshot in self._results.snapshots:
            snapshot.check_reading()
        if self._files_at(self._results.path) != [snapshot.path for snapshot in self._results.snapshots]:
            raise changed_while_read(self._results.path, got="other files")

    def check_rows(
        self, rows: NDArray[np.int64], scores: Any, corners: FloatArray | None, **ids: Sequence[Any]
    ) -> None:
        """Raise if rows [K] that were read again differ from the table.

        Boxes with NaN in ``corners`` [K, 4] are not compared; ``ids`` are of ``images`` and ``categories``.
        """
        table = self.table
        try:
            # Compare scores, ids and corners exactly; a value of another type differs too.
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
        """Return the surviving rows as a table, with the new scores and boxes."""
        table, changes = self.table.take(self.rows), {}
        if self.scores is not None:
            changes["scores"] = self.scores
        if self.boxes is not None:
            moved = (table.boxes != self.boxes).any(axis=1)
            changes["boxes"] = self.boxes
            changes["sizes"] = np.where(moved[:, None], self.boxes[:, 2:] - self.boxes[:, :2], table.sizes)
        return table.replaced(**changes)

    def changes(self, row: int, usual: BoxFormat = "xyxy") -> Changes:
        """Return the new score of a row and its new box in the form of the file, each None if unchanged."""
        position, score, box = self._position[row], None, None
        if self.scores is not None and self._changed_scores is not None and self._changed_scores[position]:
            score = float(self.scores[position])
        if self.boxes is not None and self._changed_boxes is not None and self._changed_boxes[position]:
            box = self.written(usual).numbers_of(self.boxes[position][None])[0].tolist()
        return score, box
