"""Masks as polygons: the outline of their pixels, and the few of its corners that show its shape.

Goal
----
What a page or a picture draws of a mask: exact outlines of many masks in a few NumPy calls, in time
proportional to their runs of pixels, and of each the corners that matter most.

Conventions
-----------
- Corners are on the grid of pixel edges: pixel (x, y) has the corners (x, y) to (x + 1, y + 1).
- A ring goes along the outline with its pixels on the right hand, as they are seen: its area is positive, and
  that of a hole negative. The areas of all rings add up to the pixels of the mask.
- Pixels that touch at a corner are in one ring.
- Every run of pixels in a column has an upper and a lower edge. Along a line between two columns, the ends of
  these edges are joined in pairs, from top to bottom: between the two of a pair exactly one column is filled.
- Corners are ranked as Douglas and Peucker's algorithm would take them in, one by one: by the distance to the
  line between the two neighbours that are there already, never larger than that of the step before. The
  corners of any tolerance, and any number of the first ones, are then the result for one tolerance.

References
----------
D. H. Douglas and T. K. Peucker, "Algorithms for the reduction of the number of points required to represent
a digitized line or its caricature", Cartographica 10(2), 1973.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import FloatArray, Positions
from boxscore._utils.ordering import ragged_ranges, rank_in_runs
from boxscore.extensions.masks.column import Masks
from boxscore.extensions.masks.rasterising import batches
from boxscore.extensions.masks.spans import Spans

MOST_CORNERS = 40
"""Corners of one mask, all rings together."""

MOST_RINGS = 6
"""Rings of one mask: the largest. Each takes at most four corners before the others are shared out."""

SMALLEST_RING = 0.01
"""Smallest ring, over the largest of its mask."""


class Rings(NamedTuple):
    """The outlines of several masks."""

    corners: NDArray[np.int64]  # [P,2], x and y, ring after ring
    counts: Positions  # [R], corners of each ring
    mask: Positions  # [R], ascending
    area: NDArray[np.int64]  # [R]


def outlines(masks: Masks, *, tolerance: float | None = None) -> list[list[NDArray[np.int64]]]:
    """Outline masks, exactly or by their most important corners.

    Parameters
    ----------
    masks : Masks, [N]
        None of them missing.
    tolerance : float, optional
        How far the outline may move, in pixels; then there are at most ``MOST_RINGS`` with ``MOST_CORNERS``
        in all, and where these are too few it moves further. None for every corner of every ring.

    Returns
    -------
    list of list of ndarray of int64, [C, 2]
        For each mask its rings, the largest first, as corners ``x, y``; none for an empty mask.
    """
    made: list[list[NDArray[np.int64]]] = []
    for low, high in batches(masks.weights) if len(masks) else []:
        spans, position = masks[low:high].spans()
        rings = rings_of(spans)
        if tolerance is not None:
            rings = simplified(largest(rings), tolerance=tolerance)
        of_mask: list[list[NDArray[np.int64]]] = [[] for _ in range(high - low)]
        order = np.lexsort((-np.abs(rings.area), rings.mask))
        stops = np.cumsum(rings.counts)
        for ring in order.tolist():
            corners = rings.corners[stops[ring] - rings.counts[ring] : stops[ring]]
            of_mask[rings.mask[ring]].append(corners)
        made += [of_mask[at] for at in position.tolist()]
    return made


def rings_of(spans: Spans) -> Rings:
    """Trace the outlines of masks exactly; corners of a straight line may be more than its two ends."""
    # Each run of pixels in a column is one upper and one lower edge, [2 M] in all.
    mask, x, low, high = _in_columns(spans)
    count = len(mask)
    # Upper edges go right, along the top of a run; lower edges go back, along its bottom.
    start = np.stack([np.concatenate([x, x + 1]), np.concatenate([low, high])], axis=1)
    end = np.stack([np.concatenate([x + 1, x]), np.concatenate([low, high])], axis=1)
    both = np.concatenate([mask, mask])
    # Sort the starts and ends of all edges along each line between two columns. Of two at one corner that of
    # an upper edge comes first, which joins pixels that touch there.
    place = np.concatenate([start, end])
    lower = np.tile(np.repeat([False, True], count), 2)
    order = np.lexsort((lower, place[:, 1], place[:, 0], np.concatenate([both, both])))
    # Neighbors in this order are joined in pairs: one edge ends there, the other begins.
    pairs = order.reshape(-1, 2)
    begins = pairs < 2 * count
    following = np.empty(2 * count, dtype=np.intp)
    following[pairs[~begins] - 2 * count] = pairs[begins]
    # Following the edges gives the rings. The two ends of each edge are its corners, which adds the vertical
    # sides between them.
    edges, counts = _cycles(following)
    corners = np.stack([start[edges], end[edges]], axis=1).reshape(-1, 2)
    counts *= 2
    starts = np.cumsum(counts) - counts
    ring_mask = both[edges[starts // 2]]
    # Signed area by the shoelace formula, in integers: exact.
    after = np.arange(1, len(corners) + 1)
    after[starts + counts - 1] = starts
    (x1, y1), (x2, y2) = corners.T, corners[after].T
    area = np.add.reduceat(x1 * y2 - x2 * y1, starts) // 2 if len(starts) else np.empty(0, np.int64)
    # Bring the rings into the order of the masks; the sort is stable.
    ascending = np.argsort(ring_mask, kind="stable")
    rows = ragged_ranges(starts[ascending], counts[ascending])
    return Rings(corners[rows], counts[ascending], ring_mask[ascending], area[ascending])


def _in_columns(spans: Spans) -> tuple[Positions, NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Cut spans into runs of one column: mask, column, first pixel and the one after the last."""
    # Cut each span where it passes to the next column: full height in between, the rest at both ends.
    spans = spans.merged()
    mask = np.repeat(np.arange(len(spans.counts)), spans.counts)
    height = spans.sizes[mask, 0]
    begin, end = spans.bounds.astype(np.int64).T - spans.base[mask]
    first, last = begin // height, (end - 1) // height
    columns = last - first + 1
    run = np.repeat(np.arange(len(mask)), columns)
    x = ragged_ranges(first, columns).astype(np.int64)
    low = np.where(x == first[run], (begin - first * height)[run], 0)
    high = np.where(x == last[run], (end - last * height)[run], height[run])
    return mask[run], x, low, high


def _cycles(following: Positions) -> tuple[Positions, Positions]:
    """Return the cycles of a permutation one after the other, and the length of each."""
    # Follow each cycle once; plain lists are faster than array elements in a loop of single steps.
    after, seen = following.tolist(), bytearray(len(following))
    order: list[int] = []
    lengths: list[int] = []
    for first in range(len(after)):
        at, before = first, len(order)
        while not seen[at]:
            seen[at] = 1
            order.append(at)
            at = after[at]
        if len(order) > before:
            lengths.append(len(order) - before)
    return np.array(order, dtype=np.intp), np.array(lengths, dtype=np.intp)


def largest(rings: Rings) -> Rings:
    """Leave out the rings of each mask that are too small, or too many."""
    # Rank the rings of each mask by size, and compare each with the largest of its mask.
    size = np.abs(rings.area)
    order = np.lexsort((-size, rings.mask))
    rank = rank_in_runs(rings.mask[order])
    most = np.zeros(int(rings.mask.max(initial=-1)) + 1, dtype=np.int64)
    np.maximum.at(most, rings.mask, size)
    chosen = order[(rank < MOST_RINGS) & (size[order] >= SMALLEST_RING * most[rings.mask[order]])]
    chosen.sort()
    starts = np.cumsum(rings.counts) - rings.counts
    rows = ragged_ranges(starts[chosen], rings.counts[chosen])
    return Rings(rings.corners[rows], rings.counts[chosen], rings.mask[chosen], rings.area[chosen])


def simplified(rings: Rings, *, tolerance: float) -> Rings:
    """Return the corners of rings that matter by more than a tolerance, the first ones of each mask."""
    if not len(rings.counts):
        return rings
    weight = _weights(rings, tolerance)
    ring = np.repeat(np.arange(len(rings.counts)), rings.counts)
    mask = rings.mask[ring]
    # Take the corners of each mask by weight, the most important ones only, and put them back into the order
    # of the ring.
    order = np.lexsort((-weight, mask))
    order = order[weight[order] > tolerance]
    order = order[rank_in_runs(mask[order]) < MOST_CORNERS]
    order.sort()
    return rings._replace(
        corners=rings.corners[order],
        counts=np.bincount(ring[order], minlength=len(rings.counts)),
    )


def _weights(rings: Rings, tolerance: float) -> FloatArray:
    """Weigh each corner in pixels, [P]: infinite for the first ones of a ring, 0 for the rest."""
    # Open the rings: the first corner comes again at the end, so each ring is a line of counts + 1 points.
    starts = np.cumsum(rings.counts) - rings.counts
    number = len(rings.counts)
    # Rings are opened: the first corner comes again at the end.
    opened = ragged_ranges(starts, rings.counts + 1)
    begin = starts + np.arange(number)
    last = begin + rings.counts
    opened[last] = starts
    points = rings.corners[opened].astype(np.float64)
    weight = np.zeros(len(points))
    weight[begin] = np.inf
    # From a ring's first corner to itself, then along both ways to the one that is furthest from it. One step
    # of the loop divides all sections of all rings.
    low, high, allowed = begin, last, np.full(number, np.inf)
    for level in range(MOST_CORNERS):
        # Sections without inner points are done.
        wide = high - low > 1
        low, high, allowed = low[wide], high[wide], allowed[wide]
        if not len(low):
            break
        # The furthest point of a section divides it. Its weight is its distance, at most the weight of the
        # step before; the corners of the first two steps, four of each ring, have infinite weight.
        distance, furthest = _furthest(points, low, high)
        allowed = np.minimum(allowed, np.inf if level < 2 else distance)
        matters = allowed > tolerance
        low, high, furthest, allowed = low[matters], high[matters], furthest[matters], allowed[matters]
        # Divide each section that matters into two.
        weight[furthest] = allowed
        low, high = np.stack([low, furthest], axis=1).ravel(), np.stack([furthest, high], axis=1).ravel()
        allowed = np.repeat(allowed, 2)
    # Drop the repeated first corners.
    keep = np.ones(len(points), dtype=bool)
    keep[last] = False
    return weight[keep]


def _furthest(points: FloatArray, low: Positions, high: Positions) -> tuple[FloatArray, Positions]:
    """Return, of the points between two, the distance of the one that is furthest from their line."""
    # Lay out the inner points of all sections, [Q].
    inside = high - low - 1
    rows = ragged_ranges(low + 1, inside)
    starts = np.cumsum(inside) - inside
    # Distance of each point to the line between the ends of its section, clipped to it; a section of no
    # length is a point.
    along = points[high] - points[low]
    length = np.maximum((along**2).sum(axis=1), 1e-300)
    off = points[rows] - np.repeat(points[low], inside, axis=0)
    way = np.repeat(along, inside, axis=0)
    part = np.clip((off * way).sum(axis=1) / np.repeat(length, inside), 0.0, 1.0)
    square = ((off - part[:, None] * way) ** 2).sum(axis=1)
    # The first point with the largest distance of each section.
    most = np.maximum.reduceat(square, starts)
    at = (square == np.repeat(most, inside)).nonzero()[0]
    first = at[np.searchsorted(at, starts)]
    return np.sqrt(most), rows[first]
