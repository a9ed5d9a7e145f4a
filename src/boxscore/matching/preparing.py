"""What becomes of both tables before anything is ranked or compared: rounded, scaled, clipped, dropped.

Conventions
-----------
- Everything here follows from a table alone and the protocol; what depends on pairs is decided in matching.
- The order is that of the functions in :func:`prepared`. Rows keep their order.
- Where the size of an image is unknown, nothing of it is clipped away; only a protocol that clips needs it.
- Min-max scaling needs the least and the largest score of all detections. Scores as given stay beside the
  scaled ones, with both, so that those of several files can be scaled together later
  (:class:`GivenScores`).

References
----------
CrowdDet, ``APMRToolkits/image.py`` (clipping); the VisDrone toolkit, ``dropObjectsInIgr.m`` (regions); WIDER
FACE, ``norm_score.m`` (min-max scaled scores).
"""

from __future__ import annotations

import dataclasses
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore._utils.array_types import BoolArray, FloatArray
from boxscore._utils.ordering import among, stable_order
from boxscore._utils.records import NamedTuple
from boxscore.data.alignment import select_rows
from boxscore.data.rounding import rounded
from boxscore.data.scores import COUNTED
from boxscore.data.tables import BoxTable, Detections, GroundTruth
from boxscore.errors import InputError
from boxscore.matching.ignoring import with_void
from boxscore.matching.ranking import ranked_by, scored_enough
from boxscore.protocols.protocol import Protocol
from boxscore.protocols.rules.annotators import EXHAUSTIVE

Table = TypeVar("Table", bound=BoxTable)

MOST_PIXELS = 1 << 28
"""Of one image's regions."""


class GivenScores(NamedTuple):
    """Scores before they were min-max scaled, which a table keeps in columns of these names."""

    score_as_given: FloatArray
    """[D]"""
    least_given: FloatArray
    """Of all detections, and at most 1; the same in every row, [D]."""
    largest_given: FloatArray
    """Of all detections, and at least 0; the same in every row, [D]."""

    @classmethod
    def of(cls, detections: Detections) -> GivenScores:
        """Read the columns of a table that was prepared."""
        return cls(*(np.asarray(detections.columns[name], dtype=np.float64) for name in cls._fields))

    @classmethod
    def keep(cls, detections: Detections) -> Detections:
        """Add the columns to a table."""
        scores = detections.scores
        ends = min(1.0, float(scores.min(initial=1.0))), max(0.0, float(scores.max(initial=0.0)))
        given = cls(scores, *(np.broadcast_to(end, len(scores)) for end in ends))
        return detections.replaced(columns={**detections.columns, **given._asdict()})

    @property
    def ends(self) -> tuple[float, float] | None:
        """The least and the largest score; None without a detection."""
        if not len(self.score_as_given):
            return None
        return float(self.least_given[0]), float(self.largest_given[0])


def prepared(
    ground_truth: GroundTruth, detections: Detections, protocol: Protocol, *, share: bool = False
) -> tuple[GroundTruth, Detections]:
    """Return both tables, aligned, as the protocol evaluates them.

    Scores of a ``share`` of the images are not scaled yet.
    """
    rounding, boxes = protocol.rounding, protocol.boxes
    if protocol.labels.inexhaustive_images == "drop" and EXHAUSTIVE in ground_truth.images.columns:
        exhaustive = np.flatnonzero(ground_truth.images.columns[EXHAUSTIVE])
        ground_truth, detections = select_rows(ground_truth, detections, images=exhaustive)
    if protocol.similarity == "keypoints":
        from boxscore.matching.joined_keypoints import with_compared_keypoints

        ground_truth, detections = with_compared_keypoints(ground_truth, detections, protocol)
    if protocol.matching.scores != "given":
        detections = detections.without_scores()
    elif not detections.scored:
        raise InputError(
            "the detections",
            f"have scores for the protocol {protocol.name}",
            got="none",
            place=detections.source,
            cause=COUNTED,
        )
    if protocol.matching.ranked_files:
        _check_ranked(detections)
    detections = rounded(detections, scores=rounding.scores, boxes=rounding.boxes)
    if rounding.stretch_scores:
        detections = GivenScores.keep(detections)
        ends = GivenScores.of(detections).ends
        if ends is not None and not share:
            detections = detections.replaced(scores=min_max_scaled(detections.scores, *ends))
    if boxes.longer_sides:
        longer = boxes.longer_sides
        ground_truth, detections = _longer(ground_truth, longer), _longer(detections, longer)
    if boxes.clip == "image":
        sizes = _sizes(ground_truth, detections)
        ground_truth, detections = _clipped(ground_truth, sizes), _clipped(detections, sizes)
    if protocol.ignore.regions:
        ground_truth, detections = _outside_regions(ground_truth, detections, protocol.ignore.regions)
    if protocol.labels.undetected == "drop":
        ground_truth = _detected(ground_truth, detections, protocol)
    if protocol.ignore.void:
        ground_truth = with_void(ground_truth, detections, protocol.ignore.void)
    return ground_truth, detections


def _check_ranked(detections: Detections) -> None:
    order = stable_order(detections.image, len(detections.images))
    image, score = detections.image[order], detections.scores[order]
    rising = np.flatnonzero((image[1:] == image[:-1]) & (score[1:] > score[:-1]))
    if len(rising):
        at = int(rising[0])
        names = detections.images.ids.tolist()
        raise InputError(
            "the detections of an image",
            "come by descending score, since the benchmark reads their order as their rank",
            got=f"{score[at + 1]:g} after {score[at]:g}",
            place=f"image {names[int(image[at])]!r} of {detections.source}",
            cause="sort the lines of each file by score, the highest first",
        )


def min_max_scaled(scores: FloatArray, low: float, high: float) -> FloatArray:
    """Scale scores to [0, 1] by the least and the largest of all."""
    if high == low:
        cause = "all scores are the same: does the detector write its confidences?"
        raise InputError("scores", "differ, to be stretched over [0, 1]", got=f"{low:g} alone", cause=cause)
    return np.asarray((scores - low) / (high - low))


def _sizes(ground_truth: GroundTruth, detections: Detections) -> FloatArray:
    """Width and height of every image [I, 2], from either file; an image with both objects must have them."""
    sizes = np.array(ground_truth.images.sizes, dtype=np.float64)
    if {"image_width", "image_height"} <= set(detections.columns):
        given = np.stack(
            [
                np.asarray(detections.columns[name], dtype=np.float64)
                for name in ("image_width", "image_height")
            ],
            axis=1,
        )
        missing = np.isnan(sizes[detections.image]).any(axis=1)
        sizes[detections.image[missing]] = given[missing]
    unknown = np.asarray(np.isnan(sizes).any(axis=1))
    if len(detections) and unknown[detections.image].any():
        image = int(detections.image[np.argmax(unknown[detections.image])])
        raise InputError(
            "an image",
            "have a known size where the protocol clips boxes to it",
            got=repr(ground_truth.images.ids.tolist()[image]),
            place=detections.source,
            cause=f"write width and height beside each ID, or {checks.GIVE_SIZES}",
        )
    return sizes


def _longer(table: Table, pixels: float) -> Table:
    """Add pixels to the width and height of boxes."""
    corners, sides = table.boxes.copy(), table.sizes + pixels
    corners[:, 2:] += pixels
    changes = {"area": sides.prod(axis=1)} if isinstance(table, GroundTruth) else {}
    return dataclasses.replace(table, boxes=corners, sizes=sides, **changes)


def _clipped(table: Table, sizes: FloatArray) -> Table:
    limit = np.where(np.isnan(sizes), np.inf, sizes)[table.image]
    corners = table.boxes.copy()
    corners[:, :2] = np.minimum(np.maximum(corners[:, :2], 0), limit - 1)
    corners[:, 2:] = np.maximum(np.minimum(corners[:, 2:], limit), 0)
    sides = corners[:, 2:] - corners[:, :2]
    changes = {"area": sides.prod(axis=1)} if isinstance(table, GroundTruth) else {}
    return dataclasses.replace(table, boxes=corners, sizes=sides, **changes)


def _detected(ground_truth: GroundTruth, detections: Detections, protocol: Protocol) -> GroundTruth:
    """Drop the objects of classes of which their image has no detection."""
    K = len(ground_truth.categories)
    found = scored_enough(ranked_by(detections), protocol)
    pairs = detections.image[found].astype(np.int64) * K + detections.category[found]
    objects = ground_truth.image.astype(np.int64) * K + ground_truth.category
    return ground_truth.take(np.flatnonzero(among(pairs, objects, len(ground_truth.images) * K)))


# ---------------------------------------------------------------- regions


def _outside_regions(
    ground_truth: GroundTruth, detections: Detections, name: str
) -> tuple[GroundTruth, Detections]:
    """Drop what lies in regions by half or more; the regions stay, as a class."""
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


def _given(table: BoxTable, rows: NDArray[np.intp]) -> FloatArray:
    """Boxes as ``x, y, w, h``, [n, 4]."""
    return np.hstack([table.boxes[rows, :2], table.sizes[rows]])


class _Covered:
    """The pixels of one image that its regions cover, counted from 1 and both ends included."""

    def __init__(self, regions: FloatArray, size: FloatArray, source: str) -> None:
        x, y, w, h = np.maximum(1, _half_away(regions)).astype(np.int64).T
        known = not np.isnan(size).any()
        right, bottom = x + w, y + h
        if known:
            right, bottom = np.minimum(right, int(size[0])), np.minimum(bottom, int(size[1]))
        self._width = int(size[0]) if known else int(right.max())
        self._height = int(size[1]) if known else int(bottom.max())
        self._known = known
        if self._width * self._height > MOST_PIXELS:
            rule = f"lie in images of at most {MOST_PIXELS:,} pixels"
            raise InputError("regions", rule, got=f"{self._width} x {self._height}", place=source)
        covered = np.zeros((self._height + 1, self._width + 1), dtype=np.int64)  # pixel 0 is none
        for left, top, end, low in zip(x.tolist(), y.tolist(), right.tolist(), bottom.tolist(), strict=True):
            covered[top : low + 1, left : end + 1] = 1
        # A summed-area table: what a box covers is a sum of four of its numbers.
        self._sum = covered.cumsum(axis=0).cumsum(axis=1)

    def share(self, boxes: FloatArray) -> FloatArray:
        """Share of each box that is covered, [n]; its first row and column are not counted, its area is."""
        x, y, w, h = np.maximum(1, _half_away(boxes)).astype(np.int64).T
        left, top = (np.minimum(low, most) for low, most in ((x, self._width), (y, self._height)))
        right, bottom = np.minimum(self._width, left + w), np.minimum(self._height, top + h)
        total = self._sum
        inside = total[top, left] + total[bottom, right] - total[top, right] - total[bottom, left]
        return np.asarray(inside / (h * w), dtype=np.float64)


def _half_away(values: FloatArray) -> FloatArray:
    """Round as MATLAB does: halves away from zero."""
    return np.asarray(np.sign(values) * np.floor(np.abs(values) + 0.5))


def shares_of_regions(ground_truth: GroundTruth, is_region: BoolArray, protocol: Protocol) -> FloatArray:
    """Largest share of each ground truth that lies in one region of its image and class, [G]."""
    share = np.zeros(len(ground_truth))
    group = ground_truth.image.astype(np.int64) * len(ground_truth.categories) + ground_truth.category
    regions, rest = np.flatnonzero(is_region), np.flatnonzero(~is_region)
    rest = rest[stable_order(group[rest], int(group.max(initial=0)) + 1)]
    low, high = (np.searchsorted(group[rest], group[regions], side=side) for side in ("left", "right"))
    boxes = ground_truth.boxes
    for region, first, end in zip(regions.tolist(), low.tolist(), high.tolist(), strict=True):
        rows = rest[first:end]
        near, far = (
            np.maximum(boxes[rows, :2], boxes[region, :2]),
            np.minimum(boxes[rows, 2:], boxes[region, 2:]),
        )
        shared = np.maximum(0, far - near).prod(axis=1)
        area = np.maximum(0, boxes[rows, 2:] - boxes[rows, :2]).prod(axis=1)
        area = area + protocol.boxes.overlap_epsilon
        share[rows] = np.maximum(
            share[rows], np.divide(shared, area, out=np.zeros(len(rows)), where=area > 0)
        )
    return share
