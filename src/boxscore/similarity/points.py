"""The distance of two points as a similarity: 1 where they meet, 0 at the largest distance and beyond.

Conventions
-----------
- ``1 - d / largest`` is rounded, so a threshold ``t`` could be missed by a bit. Where the similarity is near
  one, the distance is compared with ``(1 - t) * largest``, and the value put on the side that it says.
- Every detection is compared with every ground truth of its image and class.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore._utils.array_types import FloatArray
from boxscore.data.tables import BoxTable, Detections, GroundTruth
from boxscore.errors import InputError
from boxscore.protocols.protocol import Protocol
from boxscore.similarity.base import Similarity
from boxscore.similarity.pairs import CHUNK_PAIRS, Comparison, PairValues, in_chunks

NEAR = 1e-9
"""How near to a threshold a similarity is decided by its distance."""


class DistanceSimilarity(Similarity):
    """The distance between centres or points."""

    measures_foreground = False

    def __init__(self, protocol: Protocol) -> None:
        super().__init__(protocol)
        self.largest, self.anchor = protocol.distance.largest, protocol.distance.anchor
        matching = protocol.matching
        grids = (matching.iou_thresholds, *matching.class_thresholds.values())
        self.levels = np.unique(np.concatenate([np.asarray(grid, dtype=np.float64) for grid in grids]))

    @property
    def fitted_to(self) -> tuple[float, ...]:
        """The thresholds."""
        return tuple(self.levels.tolist())

    def check_units(self, ground_truth: GroundTruth) -> None:
        """Refuse fractions of images of unknown size."""
        if ground_truth.units == "fractions":
            raise InputError(
                "the sizes of the images",
                "be known where the protocol compares distances",
                got=f"fractions of unknown sizes, {ground_truth.source}",
                cause=checks.GIVE_SIZES,
            )

    def complete(self, ground_truth: GroundTruth, detections: Detections) -> Detections:
        """Check that there are points."""
        for table in (ground_truth, detections):
            self._places(table)
        return detections

    def of_pairs(
        self, ground_truth: GroundTruth, detections: Detections, comparison: Comparison
    ) -> PairValues:
        """Find the pairs that are near enough."""
        truths, places = self._places(ground_truth), self._places(detections)

        def value(detection: NDArray[np.intp], truth: NDArray[np.intp], _: slice) -> FloatArray:
            apart = places[comparison.rows[detection]] - truths[comparison.truth_rows[truth]]
            return self._similarity(np.sqrt((apart**2).sum(axis=1)))

        return in_chunks(comparison, value, size=CHUNK_PAIRS)

    def _similarity(self, distance: FloatArray) -> FloatArray:
        similarity = 1.0 - distance / self.largest
        for level in self.levels.tolist():
            near = np.flatnonzero(np.abs(similarity - level) <= NEAR)
            bound = (1.0 - level) * self.largest
            beyond, within = distance[near] > bound, distance[near] < bound
            similarity[near[~beyond & ~within]] = level
            similarity[near[within]] = np.maximum(similarity[near[within]], np.nextafter(level, 2))
            similarity[near[beyond]] = np.minimum(similarity[near[beyond]], np.nextafter(level, -1))
        return similarity

    def _places(self, table: BoxTable) -> FloatArray:
        """Return the points of a table, [N, 2]."""
        if self.anchor == "centre":
            return np.asarray((table.boxes[:, :2] + table.boxes[:, 2:]) / 2)
        points = table.columns.get("point")
        if points is not None and points.ndim == 2 and points.shape[1] == 2:
            return np.asarray(points, dtype=np.float64)
        if not len(table):
            return np.empty((0, 2))
        raise InputError(
            table.schema.name,
            "have point, two numbers, in every row, which the protocol compares",
            got="none" if points is None else "others",
            place=table.source,
            cause='distance.anchor = "centre" takes the centres of boxes',
        )
