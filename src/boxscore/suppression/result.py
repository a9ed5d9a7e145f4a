"""Define the result of suppression, one type for every method."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from boxscore._utils.array_types import FloatArray, IntArray

if TYPE_CHECKING:
    from boxscore.data.tables import Detections


Changes = Literal["nothing", "scores", "boxes"]


class Survivors(NamedTuple):
    """The boxes that survive a method, best first."""

    indices: IntArray  # [K], rows of the input
    scores: FloatArray  # [K]
    boxes: FloatArray | None = None  # [K, 4], corners, where the method changes them
    suppressed_by: IntArray | None = None  # [N], where asked for


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Suppression:
    """The remaining boxes, best first, and the box that suppressed each of the others.

    Attributes
    ----------
    indices : ndarray of int64, [K]
        Rows kept, by descending score, ties by lowest row.
    scores : ndarray of float64, [K]
        Their scores afterwards: lowered by the soft methods, otherwise unchanged.
    boxes : ndarray of float64, [K, 4]
        Their boxes afterwards, in the form of the input: merged by the merging methods, otherwise unchanged.
    suppressed_by : ndarray of int64, [N], or None
        For each given row, the kept row that dropped it or that it was merged into; -1 if it survived, or was
        left out by a score threshold or a top-k. It describes the method before ``max_per_group`` and
        ``max_per_image``. None for methods in which boxes are not dropped by a single box: the ``soft`` and
        ``matrix`` ones and ``fast``.
    changes : {"nothing", "scores", "boxes"}
        The columns that the method changes in the rows it keeps.
    given : int
        Number of rows before suppression.
    """

    indices: IntArray
    scores: FloatArray
    boxes: FloatArray
    suppressed_by: IntArray | None
    changes: Changes
    given: int

    def __len__(self) -> int:
        return len(self.indices)

    def __repr__(self) -> str:
        return f"Suppression({len(self):,} of {self.given:,} kept, changes={self.changes!r})"

    def apply(self, detections: Detections) -> Detections:
        """Return the remaining detections, in the order of the table, with new scores and boxes.

        Parameters
        ----------
        detections : Detections
            The table that was suppressed.

        Returns
        -------
        Detections
        """
        order = np.argsort(self.indices)
        remaining = detections.take(self.indices[order])
        if self.changes == "scores":
            return dataclasses.replace(remaining, scores=self.scores[order])
        if self.changes == "boxes":
            boxes = self.boxes[order]
            merged = (boxes != remaining.boxes).any(axis=1)
            sizes = np.where(merged[:, None], boxes[:, 2:] - boxes[:, :2], remaining.sizes)
            return dataclasses.replace(remaining, boxes=boxes, sizes=sizes)
        return remaining
