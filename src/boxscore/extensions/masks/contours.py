"""Trace masks as polygons: exact outlines of their pixels, or the few corners that show their shape.

Outlines of many masks take a few NumPy calls, in time proportional to their runs of pixels. Pages and
pictures draw the most important corners.

Conventions
-----------
- Corners are on the grid of pixel edges: pixel (x, y) has the corners (x, y) to (x + 1, y + 1).
- A ring follows the outline with its pixels on the right as seen on screen: its area is positive, that of a
  hole negative. The areas of all rings add up to the pixels of the mask.
- Pixels that touch at a corner are in one ring.
- Each run of pixels in a column has an upper and a lower edge. Along a line between two columns, the ends of
  these edges are joined in pairs, from top to bottom: between the two ends of a pair exactly one column is
  filled.
- Corners are ranked in the order in which the Douglas-Peucker algorithm adds them: by the distance to the
  line between their two neighbors so far, capped by the value of the previous step. So the corners for any
  tolerance, and the first corners for any count, are a simplification for one tolerance.

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
from boxscore.extensions.masks.rasterizing import batches
from boxscore.extensions.masks.spans import Spans

MOST_CORNERS = 40
"""Maximum number of corners of one mask, over all rings."""

MOST_RINGS = 6
"""Maximum number of rings of one mask. Each takes up to four corners before the others are distributed."""

SMALLEST_RING = 0.01
"""Minimum area of a ring, relative to the largest of its mask."""


class Rings(NamedTuple):
    """The outlines of several masks."""

    corners: NDArray[np.int64]  # [P, 2], x and y, ring by ring
    counts: Positions  # [R], corners of each ring
    mask: Positions  # [R], ascending
    area: NDArray[np.int64]  # [R]


def outlines(masks: Masks, *, tolerance: float | None = None) -> list[list[NDArray[np.int64]]]:
    """Outline masks exactly, or by their most important corners.

    Parameters
    ----------
    masks : Masks, [N]
        Masks, all of them present.
    tolerance : float, optional
        How far the outline may move in pixels; the limits ``MOST_RINGS`` and ``MOST_CORNERS`` then apply, and
        may move it further. Default: every corner of every ring.

    Returns
    -------
    list of list of ndarray of int64, [C, 2]
        Rings of each mask, largest first, as corners ``x, y``; an empty list for an empty mask.
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
    """Trace the outlines of masks exactly; straight lines may have corners between their ends."""
    # Make an upper and a lower edge for each run of pixels in a column, [2 M] in all.
    mask, x, low, high = _in_columns(spans)
    count = len(mask)
    # Upper edges go right along the top of a run, lower edges go back along its bottom.
    start = np.stack([np.concatenate([x, x + 1]), np.concatenate([low, high])], axis=1)
    end = np.stack([np.concatenate([x + 1, x]), np.concatenate([low, high])], axis=1)
    both = np.concatenate([mask, mask])
    # Sort the starts and ends of all edges along each line between two columns. At one corner, upper edges
    # come first, which joins pixels that touch there.
    place = np.concatenate([start, end])
    lower = np.tile(np.repeat([False, True], count), 2)
    order = np.lexsort((lower, place[:, 1], place[:, 0], np.concatenate([both, both])))
    # Join neighbors in this order in pairs: one edge ends there, the other begins.
    pairs = order.reshape(-1, 2)
    begins = pairs < 2 * count
    following = np.empty(2 * count, dtype=np.intp)
    following[pairs[~begins] - 2 * count] = pairs[begins]
    # Follow the edges to get the rings; their ends are the corners, and vertical sides connect them.
    edges, counts = _cycles(following)
    corners = np.stack([start[edges], end[edges]], axis=1).reshape(-1, 2)
    counts *= 2
    starts = np.cumsum(counts) - counts
    ring_mask = both[edges[starts // 2]]
    # Compute the signed area by the shoelace formula, exactly in integers.
    after = np.arange(1, len(corners) + 1)
    after[starts + counts - 1] = starts
    (x1, y1), (x2, y2) = corners.T, corners[after].T
    area = np.add.reduceat(x1 * y2 - x2 * y1, starts) // 2 if len(starts) else np.empty(0, np.int64)
    # Sort the rings by mask, stably.
    ascending = np.argsort(ring_mask, kind="stable")
    rows = ragged_ranges(starts[ascending], counts[ascending])
    return Rings(corners[rows], counts[ascending], ring_mask[ascending], area[ascending])


def _in_columns(spans: Spans) -> tuple[Positions, NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Split spans into runs within one column: mask, column, first pixel and one past the last."""
    # A span that crosses columns fills the ones in between.
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
    """Return the cycles of a permutation, concatenated, and the length of each."""
    # Use plain lists, which are faster than arrays in a loop of single steps.
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
    """Drop the rings of each mask that are too small or too many."""
    # Rank the rings of each mask by size, and compare each with the largest.
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
    """Return the most important corners of each mask, those that matter by more than a tolerance."""
    if not len(rings.counts):
        return rings
    weight = _weights(rings, tolerance)
    ring = np.repeat(np.arange(len(rings.counts)), rings.counts)
    mask = rings.mask[ring]
    # Take the corners of each mask by weight, up to the maximum, and restore their order in the ring.
    order = np.lexsort((-weight, mask))
    order = order[weight[order] > tolerance]
    order = order[rank_in_runs(mask[order]) < MOST_CORNERS]
    order.sort()
    return rings._replace(
        corners=rings.corners[order],
        counts=np.bincount(ring[order], minlength=len(rings.counts)),
    )


def _weights(rings: Rings, tolerance: float) -> FloatArray:
    """Return the weight of each corner in pixels, [P]: infinite for the first of a ring, 0 if unimportant."""
    # Open the rings: repeat the first corner at the end, so that each ring is a line of counts + 1 points.
    starts = np.cumsum(rings.counts) - rings.counts
    number = len(rings.counts)
    opened = ragged_ranges(starts, rings.counts + 1)
    begin = starts + np.arange(number)
    last = begin + rings.counts
    opened[last] = starts
    points = rings.corners[opened].astype(np.float64)
    weight = np.zeros(len(points))
    weight[begin] = np.inf
    # Start with the section from a ring's first corner to itself; each step of the loop divides all sections
    # of all rings at their furthest point.
    low, high, allowed = begin, last, np.full(number, np.inf)
    for level in range(MOST_CORNERS):
        # Drop sections without inner points.
        wide = high - low > 1
        low, high, allowed = low[wide], high[wide], allowed[wide]
        if not len(low):
            break
        # The weight of the furthest point is its distance, capped by the weight of the previous step. The
        # corners of the first two steps, four per ring, have infinite weight.
        distance, furthest = _furthest(points, low, high)
        allowed = np.minimum(allowed, np.inf if level < 2 else distance)
        matters = allowed > tolerance
        low, high, furthest, allowed = low[matters], high[matters], furthest[matters], allowed[matters]
        # Divide the sections that matter.
        weight[furthest] = allowed
        low, high = np.stack([low, furthest], axis=1).ravel(), np.stack([furthest, high], axis=1).ravel()
        allowed = np.repeat(allowed, 2)
    # Drop the repeated first corners.
    keep = np.ones(len(points), dtype=bool)
    keep[last] = False
    return weight[keep]


def _furthest(points: FloatArray, low: Positions, high: Positions) -> tuple[FloatArray, Positions]:
    """Return the distance and index of the point of each section furthest from the line between its ends."""
    # Expand the inner points of all sections, [Q].
    inside = high - low - 1
    rows = ragged_ranges(low + 1, inside)
    starts = np.cumsum(inside) - inside
    # Compute the distance of each point to the segment between the ends; a segment of length 0 is a point.
    along = points[high] - points[low]
    length = np.maximum((along**2).sum(axis=1), 1e-300)
    off = points[rows] - np.repeat(points[low], inside, axis=0)
    way = np.repeat(along, inside, axis=0)
    part = np.clip((off * way).sum(axis=1) / np.repeat(length, inside), 0.0, 1.0)
    square = ((off - part[:, None] * way) ** 2).sum(axis=1)
    # Take the first point with the largest distance in each section.
    most = np.maximum.reduceat(square, starts)
    at = (square == np.repeat(most, inside)).nonzero()[0]
    first = at[np.searchsorted(at, starts)]
    return np.sqrt(most), rows[first]
