"""Compute the IoU of quadrilaterals: exact, or bit for bit that of the DOTA devkit if rounding could decide.

Conventions
-----------
- A quadrilateral is eight numbers, its corners in order, in either direction.
- The overlap is exact to about 1e-13. It is replaced by the devkit's ``polyiou``, with its rounding errors,
  if a pair is close to an IoU threshold, if two pairs of one detection are nearly equal, or if corners are
  not convex.
- ``polyiou`` cuts triangles from the image's origin, so its error grows with the coordinates: the margin for
  using it is wider for small objects far from the origin.

Method
------
By Green's theorem the shared area is the integral, along one quadrilateral, of the length of the other's row
to the left, times dy. Between neighboring corners in y, a convex quadrilateral is bounded by two straight
lines, so the integral along an edge is that of the positive part of a straight line, twice. No vertices are
collected or sorted, and the result is continuous when edges coincide.

References
----------
CAPTAIN-WHU/DOTA_devkit, ``polyiou.cpp``, with the order of every operation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boxscore._utils import checks
from boxscore._utils.array_types import BoolArray, FloatArray, IntArray
from boxscore._utils.ordering import stable_order
from boxscore.data.tables import Detections, GroundTruth
from boxscore.errors import InputError
from boxscore.extensions.oriented._polyiou import polyiou
from boxscore.extensions.oriented.oriented import corners_of
from boxscore.extensions.oriented.quadrilaterals import area_of_corners, box_of_corners, not_convex
from boxscore.similarity.pairs import (
    CHUNK_PAIRS,
    Comparison,
    PairValues,
    at_least,
    in_chunks,
    over,
    rows_of_pairs,
)
from boxscore.similarity.registry import Similarity

if TYPE_CHECKING:
    from boxscore.protocols.protocol import Protocol

PAIRS = 1 << 13
"""Pairs integrated together, so that temporaries of four edges each fit the cache."""

TINY = 1e-300
"""Added to a denominator that may be 0 together with its numerator."""


def quadrilateral_iou(
    corners1: ArrayLike, corners2: ArrayLike, *, paired: bool = False, devkit: bool = False
) -> FloatArray:
    """Return the intersection over union of convex quadrilaterals.

    Parameters
    ----------
    corners1 : array_like, [N, 8]
        ``x1, y1, ..., x4, y4``, the corners in order, in either direction.
    corners2 : array_like, [M, 8]
        [N, 8] if ``paired``.
    paired : bool, default False
        Compare row ``i`` with row ``i`` instead of every row with every row.
    devkit : bool, default False
        Return the value of the DOTA devkit's ``polyiou`` to the last bit, including its rounding errors;
        slower. The devkit passes the ground truth first.

    Returns
    -------
    ndarray of float64, [N, M], or [N] if ``paired``
        Exact to about 1e-13. Pairs with a concave or self-crossing quadrilateral have the devkit's value,
        which may be negative, above 1 or NaN.

    Raises
    ------
    InputError
        If a shape is not [N, 8] or a number is not finite.

    Examples
    --------
    >>> square, diamond = [0, 0, 2, 0, 2, 2, 0, 2], [1, 0, 2, 1, 1, 2, 0, 1]
    >>> quadrilateral_iou([square], [diamond]).tolist()
    [[0.5]]
    """
    arrays = []
    for name, corners in (("corners1", corners1), ("corners2", corners2)):
        array = checks.float_array(corners, name=name, columns=8)
        checks.finite(array, name=name)
        arrays.append(array)
    count = len(arrays[0])
    first, second, shape = rows_of_pairs(count, len(arrays[1]), paired=paired, names=("corners1", "corners2"))
    if devkit:
        return polyiou(arrays[0][first], arrays[1][second]).reshape(shape)
    both = QuadrilateralMeasure(np.concatenate(arrays), leading=count)
    return both.between(first, second + count).reshape(shape)


class QuadrilateralMeasure:
    """IoU of quadrilaterals [N, 8]; ``x1, y1, x2, y2`` are the upright boxes around them.

    Only the first ``leading`` rows may come first in a pair; by default all. Near each of the ``levels``, the
    devkit's value replaces the exact one; rows must then be ranked, and ``polyiou`` gets the better row of a
    pair first.
    """

    at_most_iou = False
    identity: tuple[FloatArray, ...] = ()

    def __init__(
        self, corners: FloatArray, *, leading: int | None = None, levels: Sequence[float] = ()
    ) -> None:
        self.corners, self._levels = corners, np.asarray(levels, dtype=np.float64)
        self.x1, self.y1, self.x2, self.y2 = box_of_corners(corners).T.copy()
        self.offset = 0.0
        self.area = area_of_corners(corners)
        self.odd = not_convex(corners)
        self._any_odd = bool(self.odd.any())
        # Store the corners relative to their mean: large coordinates round once here, and later steps use
        # small numbers.
        x, y = corners[:, 0::2].T, corners[:, 1::2].T  # [4,N]
        self._center = np.stack([x.mean(axis=0), y.mean(axis=0)])
        x, y = x - self._center[0], y - self._center[1]
        # Reverse the corners if the signed area is negative: the integral needs one direction.
        twice = (x[2] - x[0]) * (y[3] - y[1]) - (y[2] - y[0]) * (x[3] - x[1])
        backwards = twice < 0
        x, y = np.where(backwards, x[::-1], x), np.where(backwards, y[::-1], y)
        self._x, self._y = np.ascontiguousarray(x), np.ascontiguousarray(y)
        # Compute bands only for quadrilaterals that may come first in a pair.
        self._bands = _bands(self._x[:, :leading], self._y[:, :leading])

    def between(self, first: IntArray, second: IntArray, over_second: BoolArray | None = None) -> FloatArray:
        """Return the IoU of each pair, [P]; where ``over_second``, divide by the second area instead."""
        iou = np.zeros(len(first))
        for start in range(0, len(first), CHUNK_PAIRS):
            # Find pairs with area whose upright boxes intersect, in x before y. All others are exactly 0.
            one, other = first[start : start + CHUNK_PAIRS], second[start : start + CHUNK_PAIRS]
            meet = (self.x1.take(one) < self.x2.take(other)) & (self.x1.take(other) < self.x2.take(one))
            where = np.flatnonzero(meet)
            a, b = one.take(where), other.take(where)
            meet = (self.y1.take(a) < self.y2.take(b)) & (self.y1.take(b) < self.y2.take(a))
            meet &= (self.area.take(a) > 0) & (self.area.take(b) > 0)
            where = where.compress(meet)
            # Integrate a few pairs at a time, so that four edges of each fit the cache.
            for low in range(0, len(where), PAIRS):
                some = where[low : low + PAIRS]
                iou[start + some] = self._of(one.take(some), other.take(some), over_second, start + some)
        # The integral needs convex quadrilaterals; other pairs take the devkit's value.
        if self._any_odd:
            rows = np.flatnonzero(self.odd.take(first) | self.odd.take(second))
            iou[rows] = self._devkit(first[rows], second[rows])
        # Take the devkit's value near a level, within the margin of its error.
        if len(self._levels):
            near = np.abs(iou[:, None] - self._levels) <= 1e-3  # preselect, since margins are expensive
            rows = np.flatnonzero(near.any(axis=1))
            margin = _margin(self, first[rows], second[rows])[:, None]
            rows = rows[(np.abs(iou[rows, None] - self._levels) <= margin).any(axis=1)]
            iou[rows] = self._devkit(first[rows], second[rows])
        return iou

    def _devkit(self, first: IntArray, second: IntArray) -> FloatArray:
        if len(self._levels):
            first, second = np.minimum(first, second), np.maximum(first, second)
        return polyiou(self.corners[first], self.corners[second])

    def _of(
        self, first: IntArray, second: IntArray, over_second: BoolArray | None, pairs: IntArray
    ) -> FloatArray:
        shared = self._shared(first, second)
        area = self.area.take(second)
        np.minimum(shared, np.minimum(area, self.area.take(first)), out=shared)
        denominator = over(shared, self.area.take(first), area)
        if over_second is not None:
            np.copyto(denominator, area, where=over_second[pairs])
        shared /= denominator
        return np.minimum(shared, 1.0, out=shared)

    def _shared(self, first: IntArray, second: IntArray) -> FloatArray:
        """Return the area that quadrilaterals share, [P], integrated along the second."""
        # Compute corners [4, P] of the second relative to the center of the first, and the edges between
        # them. Horizontal edges have dy = 0 and add 0.
        shift = self._center.take(second, axis=1) - self._center.take(first, axis=1)
        x1, y1 = self._x.take(second, axis=1) + shift[0], self._y.take(second, axis=1) + shift[1]
        x2, y2 = np.concatenate([x1[1:], x1[:1]]), np.concatenate([y1[1:], y1[:1]])
        rise = y2 - y1
        slope = np.divide(x2 - x1, rise, out=np.zeros_like(rise), where=rise != 0)
        # Clip the edges to the height of the first quadrilateral, given as three bands, [16, P].
        bands = self._bands.take(first, axis=1)
        shared = np.zeros(len(first))
        bottom = bands[0]
        low = np.clip(y1, bottom, bands[15])
        top = np.clip(y2, bottom, bands[15])
        for band in range(3):
            # Clip each edge to the band.
            bottom, left, lean_left, right, lean_right = bands[5 * band : 5 * band + 5]
            ceiling = bands[5 * band + 5]
            from_y, to_y = np.clip(low, bottom, ceiling), np.clip(top, bottom, ceiling)
            height = to_y - from_y
            from_x, to_x = x1 + (from_y - y1) * slope, x1 + (to_y - y1) * slope
            # Left of a point, the row inside the first is as long as its distance from the left side minus
            # that from the right side, each clipped at 0. Both are linear along the edge, so the means are
            # exact. Multiply by dy and sum over the four edges.
            from_y -= bottom
            to_y -= bottom
            beyond_left = _mean_above(from_x - (left + from_y * lean_left), to_x - (left + to_y * lean_left))
            beyond_left -= _mean_above(
                from_x - (right + from_y * lean_right), to_x - (right + to_y * lean_right)
            )
            beyond_left *= height
            shared += beyond_left.sum(axis=0)
        return np.maximum(shared, 0.0, out=shared)


def _mean_above(start: FloatArray, end: FloatArray) -> FloatArray:
    """Return the mean of the positive part along a straight line between two values."""
    above: FloatArray = np.maximum(start, 0.0)
    above += np.maximum(end, 0.0)
    above *= above
    extent = np.abs(start)
    extent += np.abs(end)
    extent *= 2
    extent += TINY
    above /= extent
    return above


def _bands(x: FloatArray, y: FloatArray) -> FloatArray:
    """Split convex quadrilaterals [4, N] into bands between neighboring corners in y; [16, N].

    Each of three bands has its bottom, the x there and dx / dy of its left side, and the same for its right
    side; the last number is the top of the last band.
    """
    count = x.shape[1]
    # Make three bands between the four sorted heights; edge k joins the corners k and k + 1, [4, N].
    levels = np.sort(y, axis=0)
    bands = np.zeros((16, count))
    x2, y2 = np.roll(x, -1, axis=0), np.roll(y, -1, axis=0)
    low, high = np.minimum(y, y2), np.maximum(y, y2)
    rise = y2 - y
    for band in range(3):
        bottom, top = levels[band], levels[band + 1]
        # Find the edges that cross the whole band: two, if convex. Clip x at the bottom and top to the edge
        # against rounding.
        spans = (low <= bottom) & (high >= top) & (low < high)
        with np.errstate(divide="ignore", invalid="ignore"):
            at_bottom = np.clip(x + (x2 - x) * ((bottom - y) / rise), np.minimum(x, x2), np.maximum(x, x2))
            at_top = np.clip(x + (x2 - x) * ((top - y) / rise), np.minimum(x, x2), np.maximum(x, x2))
        # The left side has the smaller x of the two, the right side the larger. ``spans`` masks the NaN of
        # horizontal edges.
        ends = []
        for side in (np.fmin, np.fmax):
            nothing = np.inf if side is np.fmin else -np.inf
            ends.append([side.reduce(np.where(spans, at, nothing), axis=0) for at in (at_bottom, at_top)])
        # In a band of height 0, all numbers stay 0.
        height = top - bottom
        bands[5 * band] = bottom
        there = (height > 0) & spans.any(axis=0)
        for number, (start, end) in enumerate(ends):
            start, end = np.where(there, start, 0.0), np.where(there, end, 0.0)
            bands[5 * band + 1 + 2 * number] = start
            np.divide(end - start, height, out=bands[5 * band + 2 + 2 * number], where=there)
    bands[15] = levels[3]
    return bands


class QuadrilateralSimilarity(Similarity):
    """IoU of quadrilaterals, with the rounding of the DOTA devkit if it could decide."""

    column = "quadrilaterals"

    def __init__(self, protocol: Protocol) -> None:
        super().__init__(protocol)
        self.levels = protocol.matching.effective_thresholds

    @property
    def fitted_to(self) -> tuple[float, ...]:
        """Thresholds near which the devkit's value replaces the exact one."""
        return tuple(self.levels.tolist())

    def complete(self, ground_truth: GroundTruth, detections: Detections) -> Detections:
        """Check that the ground truth is not upright; detections may be any boxes."""
        if len(ground_truth) and ground_truth.quadrilaterals is None and ground_truth.rotated is None:
            cause = "are its boxes upright? then any protocol of boxes compares them"
            raise InputError(
                "ground truth", "have corners", got="none", place=ground_truth.source, cause=cause
            )
        if detections.quadrilaterals is not None:
            return detections
        return detections.replaced(quadrilaterals=corners_of(detections))

    def fallbacks(self, ground_truth: GroundTruth, detections: Detections) -> str:
        """Describe whether upright boxes replace corners."""
        if not len(detections) or detections.quadrilaterals is not None or detections.rotated is not None:
            return ""
        return f"{detections.source}: no corners; those of the upright boxes are compared."

    def detection_areas(self, detections: Detections) -> FloatArray:
        """Return the area of each quadrilateral [D]."""
        if detections.quadrilaterals is None or self.area_rule == "mask":
            return super().detection_areas(detections)
        return area_of_corners(detections.quadrilaterals)

    def of_pairs(
        self, ground_truth: GroundTruth, detections: Detections, comparison: Comparison
    ) -> PairValues:
        """Find the pairs of quadrilaterals that overlap enough."""
        truths, corners = corners_of(ground_truth), detections.quadrilaterals
        if corners is None:  # one table is empty
            return PairValues.none()
        crowd, count = comparison.by_foreground, len(comparison.truth_rows)
        both = np.concatenate([truths[comparison.truth_rows], corners[comparison.rows]])
        measure = QuadrilateralMeasure(both, leading=count)

        def value(detection: NDArray[np.intp], truth: NDArray[np.intp], _: slice) -> FloatArray:
            # Pass the ground truth first, as the devkit does.
            iou = measure.between(truth, detection + count, None if crowd is None else crowd[truth])
            # NaN, if both are flat, fails every threshold.
            return np.where(np.isnan(iou), -np.inf, iou)

        room = 1e-3  # the devkit's rounding may lift pairs slightly below the threshold
        pairs = in_chunks(comparison._replace(lowest=comparison.lowest - room), value, size=CHUNK_PAIRS)
        if crowd is None:
            pairs = self._as_devkit(pairs, measure, count)
        return at_least(pairs, comparison.lowest)

    def _as_devkit(self, pairs: PairValues, measure: QuadrilateralMeasure, count: int) -> PairValues:
        """Replace values by the devkit's if these could decide."""
        truth, detection = pairs.truth, pairs.detection + count
        if not len(truth):
            return pairs
        # The devkit's value decides if it may be on the other side of a threshold, [P, T].
        margin = _margin(measure, truth, detection)
        near = np.abs(pairs.value[:, None] - self.levels) <= margin[:, None]
        refined: BoolArray = np.asarray(near.any(axis=1))
        # It also decides between pairs of one detection. Sort the pairs by detection and value, and mark
        # neighbors that are closer than the sum of both margins.
        order = stable_order(pairs.detection, int(pairs.detection.max()) + 1)
        order = order[np.lexsort((pairs.value[order], pairs.detection[order]))]
        close = (pairs.detection[order[1:]] == pairs.detection[order[:-1]]) & (
            np.diff(pairs.value[order]) <= margin[order[1:]] + margin[order[:-1]]
        )
        for rows in (order[1:][close], order[:-1][close]):
            refined[rows] = True
        # Skip pairs with a non-convex quadrilateral, which have the devkit's value already.
        if measure.odd.any():
            refined &= ~(measure.odd[truth] | measure.odd[detection])
        rows = np.flatnonzero(refined)
        if not len(rows):
            return pairs
        # Recompute the few pairs in question, ground truth first, as in the devkit.
        value = pairs.value.copy()
        value[rows] = polyiou(measure.corners[truth[rows]], measure.corners[detection[rows]])
        return pairs._replace(value=value)


def _margin(measure: QuadrilateralMeasure, truth: IntArray, detection: IntArray) -> FloatArray:
    """Return a generous bound on the error of the devkit's value of each pair, [P]."""
    reach = np.maximum.reduce(
        [
            np.abs(side.take(rows))
            for side in (measure.x1, measure.x2, measure.y1, measure.y2)
            for rows in (truth, detection)
        ]
    )
    area = np.maximum(measure.area.take(truth), measure.area.take(detection)) + TINY
    eps = float(np.finfo(np.float64).eps)
    return np.asarray(1e-8 + (64 * eps * reach**2 + 4e-8 * reach + 1e-6) / area)
