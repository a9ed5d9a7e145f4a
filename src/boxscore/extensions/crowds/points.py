"""Measure points: by the distance between two points, or by a point inside a box or a mask.

Conventions
-----------
- A distance becomes a decreasing similarity: 1 if two points coincide, 0 at the largest distance.
- Rounding of ``1 - d / largest`` could miss a threshold ``t`` by a bit. If the similarity is near a
  threshold, the distance is compared with ``(1 - t) * largest``, and the value moves to that side.
- Every detection is compared with every ground truth of its image and class.
- Boxes are closed on all sides. A mask contains a point if the pixel at its floored coordinates is set;
  points outside the image are in no mask. A box or mask that contains the point has similarity ``0.5 + 0.5 /
  (1 + d)``, with the distance ``d`` to the center of the box; others have 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore._utils.array_types import BoolArray, FloatArray
from boxscore.data.tables import BoxTable, Detections, GroundTruth
from boxscore.errors import InputError
from boxscore.similarity.pairs import CHUNK_PAIRS, Comparison, PairValues, at_least, in_chunks
from boxscore.similarity.registry import Similarity

if TYPE_CHECKING:
    from boxscore.protocols.protocol import Protocol

NEAR = 1e-9
"""Tolerance around a threshold, within which the distance decides."""


class DistanceSimilarity(Similarity):
    """The distance between centers or points."""

    measures_foreground = False

    def __init__(self, protocol: Protocol) -> None:
        super().__init__(protocol)
        self.largest, self.anchor = protocol.distance.largest, protocol.distance.anchor
        matching = protocol.matching
        grids = (matching.iou_thresholds, *matching.class_thresholds.values())
        self.levels = np.unique(np.concatenate([np.asarray(grid, dtype=np.float64) for grid in grids]))

    @property
    def fitted_to(self) -> tuple[float, ...]:
        """The IoU thresholds."""
        return tuple(self.levels.tolist())

    def check_units(self, ground_truth: GroundTruth) -> None:
        """Raise if boxes are fractions of unknown image sizes."""
        if ground_truth.units == "fractions":
            raise InputError(
                "the sizes of the images",
                "be known where the protocol compares distances",
                got=f"fractions of unknown sizes, {ground_truth.source}",
                cause=checks.GIVE_SIZES,
            )

    def complete(self, ground_truth: GroundTruth, detections: Detections) -> Detections:
        """Check that both tables have points."""
        for table in (ground_truth, detections):
            _places(table, self.anchor)
        return detections

    def of_pairs(
        self, ground_truth: GroundTruth, detections: Detections, comparison: Comparison
    ) -> PairValues:
        """Find the pairs that are near enough."""
        truths, places = _places(ground_truth, self.anchor), _places(detections, self.anchor)

        def value(detection: NDArray[np.intp], truth: NDArray[np.intp], _: slice) -> FloatArray:
            apart = places[comparison.rows[detection]] - truths[comparison.truth_rows[truth]]
            return self._similarity(np.sqrt((apart**2).sum(axis=1)))

        return in_chunks(comparison, value, size=CHUNK_PAIRS)

    def _similarity(self, distance: FloatArray) -> FloatArray:
        # Near each level, compare the distance itself, and move the rounded value to that side.
        similarity = 1.0 - distance / self.largest
        for level in self.levels.tolist():
            near = np.flatnonzero(np.abs(similarity - level) <= NEAR)
            bound = (1.0 - level) * self.largest
            beyond, within = distance[near] > bound, distance[near] < bound
            similarity[near[~beyond & ~within]] = level
            similarity[near[within]] = np.maximum(similarity[near[within]], np.nextafter(level, 2))
            similarity[near[beyond]] = np.minimum(similarity[near[beyond]], np.nextafter(level, -1))
        return similarity


class PointInBoxSimilarity(Similarity):
    """The point of a detection inside the box of a ground truth."""

    measures_foreground = False

    def __init__(self, protocol: Protocol) -> None:
        super().__init__(protocol)
        self.anchor = protocol.distance.anchor

    def complete(self, ground_truth: GroundTruth, detections: Detections) -> Detections:
        """Check that the detections have points."""
        _places(detections, self.anchor)
        return detections

    def of_pairs(
        self, ground_truth: GroundTruth, detections: Detections, comparison: Comparison
    ) -> PairValues:
        """Find the pairs whose ground truth contains the point."""
        places, boxes = _places(detections, self.anchor), ground_truth.boxes
        centers = (boxes[:, :2] + boxes[:, 2:]) / 2

        def value(detection: NDArray[np.intp], truth: NDArray[np.intp], _: slice) -> FloatArray:
            points, rows = places[comparison.rows[detection]], comparison.truth_rows[truth]
            apart = np.sqrt(((points - centers[rows]) ** 2).sum(axis=1))
            return np.where(self.holds(ground_truth, rows, points), 0.5 + 0.5 / (1.0 + apart), 0.0)

        pairs = in_chunks(comparison, value, size=CHUNK_PAIRS)
        return at_least(pairs, 0.5)

    def holds(self, ground_truth: GroundTruth, rows: NDArray[np.intp], points: FloatArray) -> BoolArray:
        """Return which ground truths contain their points, [P]."""
        boxes = ground_truth.boxes[rows]
        return np.asarray(((points >= boxes[:, :2]) & (points <= boxes[:, 2:])).all(axis=1))


class PointInMaskSimilarity(PointInBoxSimilarity):
    """The point of a detection inside the mask of a ground truth."""

    column = "masks"

    def complete(self, ground_truth: GroundTruth, detections: Detections) -> Detections:
        """Check for points and masks."""
        masks = ground_truth.masks
        if len(ground_truth) and (masks is None or masks.missing.any()):
            row = 0 if masks is None else int(np.argmax(masks.missing))
            raise InputError(
                "ground truth",
                "have a mask in every row",
                got="none",
                place=f"row {row} of {ground_truth.source}",
                cause="is it annotated with masks? boxes: point_in_box",
            )
        return super().complete(ground_truth, detections)

    def holds(self, ground_truth: GroundTruth, rows: NDArray[np.intp], points: FloatArray) -> BoolArray:
        """Return which masks of ground truths contain their points, [P]; each mask is decoded once."""
        masks = ground_truth.masks
        held = np.zeros(len(rows), dtype=bool)
        if masks is None:
            return held
        # Test boxes first, and decode each of the remaining masks once.
        inside_box = np.flatnonzero(super().holds(ground_truth, rows, points))
        pixels = np.floor(points).astype(np.int64)
        for row in np.unique(rows[inside_box]).tolist():
            some = inside_box[rows[inside_box] == row]
            (mask,) = masks[np.array([row])].arrays()
            # Points outside the image are in no mask.
            x, y = pixels[some].T
            known = (x >= 0) & (y >= 0) & (x < mask.shape[1]) & (y < mask.shape[0])
            held[some[known]] = mask[y[known], x[known]]
        return held


def _places(table: BoxTable, anchor: str) -> FloatArray:
    """Return the points of a table, [N, 2]."""
    if anchor == "center":
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
        cause='distance.anchor = "center" uses box centers',
    )
