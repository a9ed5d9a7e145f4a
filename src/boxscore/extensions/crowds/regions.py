"""Handle unannotated image regions: drop everything in them, or ignore them in every class.

References
----------
The VisDrone toolkit, ``dropObjectsInIgr.m`` (:func:`outside_regions`); cityscapesScripts,
``evalInstanceLevelSemanticLabeling.py`` (:func:`with_void`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import FloatArray
from boxscore._utils.ordering import ragged_ranges
from boxscore.data.tables import BoxTable, Detections, GroundTruth
from boxscore.errors import InputError
from boxscore.matching.candidates import Asked
from boxscore.matching.matches import Matches
from boxscore.protocols.protocol import Protocol
from boxscore.protocols.tables.ap import TAKES_PART

MOST_PIXELS = 1 << 28
"""Maximum number of pixels of an image with regions."""


def outside_regions(
    ground_truth: GroundTruth, detections: Detections, protocol: Protocol, share: bool
) -> tuple[GroundTruth, Detections]:
    """Drop boxes that regions cover by half or more; the regions stay, as a class."""
    name = protocol.ignore.regions
    is_region = (np.array(ground_truth.categories.names, dtype=object) == name)[ground_truth.category]
    regions = np.flatnonzero(is_region)
    keep_truth, keep_detection = np.ones(len(ground_truth), dtype=bool), np.ones(len(detections), dtype=bool)
    sizes = ground_truth.images.sizes
    for image in np.unique(ground_truth.image[regions]).tolist():
        here = regions[ground_truth.image[regions] == image]
        covered = _Covered(_given(ground_truth, here), sizes[image], ground_truth.source)
        for table, keep in ((ground_truth, keep_truth), (detections, keep_detection)):
            rows = np.flatnonzero(table.image == image)
            keep[rows] = covered.share(_given(table, rows)) < 0.5
    keep_truth[regions] = True
    return ground_truth.take(np.flatnonzero(keep_truth)), detections.take(np.flatnonzero(keep_detection))


def with_taking_part(asked: Asked, matches: Matches) -> Matches:
    """Record which ground truths take part in matching, for recall."""
    return matches.with_extra({TAKES_PART.name: ~asked.ignoring.deleted})


def _given(table: BoxTable, rows: NDArray[np.intp]) -> FloatArray:
    """Return boxes as ``x, y, w, h``, [n, 4]."""
    return np.hstack([table.boxes[rows, :2], table.sizes[rows]])


class _Covered:
    """The pixels of one image that its regions cover, numbered from 1 with both ends included."""

    def __init__(self, regions: FloatArray, size: FloatArray, source: str) -> None:
        # Round and clip to integer pixels as in the benchmark.
        x, y, w, h = np.maximum(1, _half_away(regions)).astype(np.int64).T
        known = not np.isnan(size).any()
        right, bottom = x + w, y + h
        if known:
            right, bottom = np.minimum(right, int(size[0])), np.minimum(bottom, int(size[1]))
        # Without a known size, use the extent of the regions.
        self._width = int(size[0]) if known else int(right.max())
        self._height = int(size[1]) if known else int(bottom.max())
        self._known = known
        if self._width * self._height > MOST_PIXELS:
            rule = f"be in images of at most {MOST_PIXELS:,} pixels"
            raise InputError("regions", rule, got=f"{self._width} x {self._height}", place=source)
        # Mark the pixels of every region; row and column 0 stay empty.
        covered = np.zeros((self._height + 1, self._width + 1), dtype=np.int64)
        for left, top, end, low in zip(x.tolist(), y.tolist(), right.tolist(), bottom.tolist(), strict=True):
            covered[top : low + 1, left : end + 1] = 1
        # Build a summed-area table: the covered pixels of a box are a sum of four entries.
        self._sum = covered.cumsum(axis=0).cumsum(axis=1)

    def share(self, boxes: FloatArray) -> FloatArray:
        """Return the covered fraction of each box, [n]; the first row and column count only in its area."""
        x, y, w, h = np.maximum(1, _half_away(boxes)).astype(np.int64).T
        left, top = (np.minimum(low, most) for low, most in ((x, self._width), (y, self._height)))
        right, bottom = np.minimum(self._width, left + w), np.minimum(self._height, top + h)
        total = self._sum
        inside = total[top, left] + total[bottom, right] - total[top, right] - total[bottom, left]
        return np.asarray(inside / (h * w), dtype=np.float64)


def _half_away(values: FloatArray) -> FloatArray:
    """Round halves away from zero, as MATLAB does."""
    return np.asarray(np.sign(values) * np.floor(np.abs(values) + 0.5))


def with_void(
    ground_truth: GroundTruth, detections: Detections, protocol: Protocol, share: bool
) -> tuple[GroundTruth, Detections]:
    """Copy objects of the void class, flagged ``ignore``, to each class that is detected in their image."""
    name = protocol.ignore.void
    K = len(ground_truth.categories)
    is_void = np.array(ground_truth.categories.names, dtype=object) == name
    void = np.flatnonzero(is_void[ground_truth.category])
    detected = np.unique(detections.image.astype(np.int64) * K + detections.category)
    detected = detected[~is_void[detected % K]]
    low, high = (
        np.searchsorted(detected, ground_truth.image[void].astype(np.int64) * K + end) for end in (0, K)
    )
    rows = np.append(np.arange(len(ground_truth)), np.repeat(void, high - low))
    added = detected[ragged_ranges(low, high - low)] % K
    table = ground_truth.take(rows)
    ignore, category = table.ignore.copy(), table.category.copy()
    ignore[len(ground_truth) :], category[len(ground_truth) :] = True, added
    return table.replaced(ignore=ignore, category=category), detections
