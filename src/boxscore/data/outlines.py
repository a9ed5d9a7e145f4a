"""Polygons as pixels: where each column of an image enters and leaves them.

Goal
----
The pixels that pycocotools' C code gives a polygon, bit for bit, without its walk along the outline.

Conventions
-----------
- A corner lies on a grid of fifths of a pixel. The C code walks along every edge of this grid and, where the
  walk goes from 5n+2 to 5n+3 in x, notes its y in column n. Only these steps are computed here, one per edge
  and column.
- A noted place is a pixel's number, column by column, from which on the mask is the other way round. Every
  column has an even number of them, because the outline is closed.
- Polygons are limited in the length of their outlines, see :data:`LONGEST_OUTLINE`: a place costs 4 bytes.

References
----------
pycocotools 2.0.11, ``maskApi.c`` (``rleFrPoly``). It is compiled without fused multiply-add on x86-64; a
build that fuses may round a place differently.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.ordering import run_starts

__all__ = ["FINENESS", "LARGEST_VERTEX", "LONGEST_OUTLINE", "Edges", "edges_of", "toggles"]

FloatArray = NDArray[np.float64]
Positions = NDArray[np.intp]

FINENESS = 5
"""Grid lines per pixel."""

LARGEST_VERTEX = 1e6
"""Pixels; below 2**31 on the grid, and differences of products are exact."""

LONGEST_OUTLINE = 1 << 26
"""Pixels, an edge counted by its longer side: 4 bytes for each are 256 MB."""

PLACES_TOGETHER = 1 << 18
"""Steps computed together, about."""


class Edges(NamedTuple):
    """Edges of polygons on the grid, those of one polygon together, with what is asked of each polygon."""

    ends: NDArray[np.int32]  # [4,E], x and y of the start, x and y of the end
    polygon: Positions  # [E]
    length: NDArray[np.int64]  # [P], of the outline on the grid


def edges_of(points: FloatArray, counts: Positions) -> Edges:
    """Return the edges of closed polygons; ``counts`` [P] are the numbers of each, x and y in turn."""
    corners = counts // 2
    if (counts & 1).any():  # an odd last number is not read
        points = np.delete(points, (np.cumsum(counts) - 1)[(counts & 1) == 1])
    grid = (FINENESS * points + 0.5).astype(np.int32).reshape(-1, 2).T  # towards 0
    stops = np.cumsum(corners)
    following = np.arange(1, grid.shape[1] + 1)
    some = corners > 0
    following[stops[some] - 1] = (stops - corners)[some]
    ends = np.concatenate([grid, grid[:, following]])
    polygon = np.repeat(np.arange(len(counts)), corners)
    longer = np.maximum(np.abs(ends[2] - ends[0]), np.abs(ends[3] - ends[1]))
    length = np.zeros(len(counts), dtype=np.int64)
    if some.any():
        length[some] = np.add.reduceat(longer, (stops - corners)[some], dtype=np.int64)
    return Edges(ends, polygon, length)


def toggles(
    edges: Edges, base: NDArray[np.int64], sizes: NDArray[np.int64]
) -> tuple[NDArray[np.int32], Positions]:
    """Return the sorted places of polygons, and how many each has [P].

    ``base`` [P] is the number of each one's first pixel, ``sizes`` [P,2] are height and width of its image.
    """
    (x1, y1, x2, y2), polygon = edges.ends, edges.polygon
    dx, dy = np.abs(x2 - x1), np.abs(y2 - y1)
    flat = dx >= dy
    swap = np.where(flat, x1 > x2, y1 > y2)
    x1, x2 = np.where(swap, x2, x1), np.where(swap, x1, x2)
    y1, y2 = np.where(swap, y2, y1), np.where(swap, y1, y2)
    left, right = np.minimum(x1, x2), np.maximum(x1, x2)
    begin = np.maximum(-((2 - left) // FINENESS), 0)  # the first step from 5n+2 at or after the left end
    end = np.minimum((right - 3) // FINENESS, (sizes[:, 1] - 1).astype(np.int32)[polygon])
    counts = np.maximum(end - begin + 1, 0)
    number = np.zeros(len(base), dtype=np.intp)
    starts = run_starts(polygon)
    if len(starts):
        number[polygon[starts]] = np.add.reduceat(counts, starts)
    places = np.empty(int(counts.sum()), dtype=np.int32)
    heights = np.int32(sizes[0, 0]) if len(sizes) else np.int32(0)
    one_height = bool((sizes[:, 0] == heights).all())
    at = 0
    for chosen, of_edges in ((flat, _along), (~flat, _across)):
        rows = np.flatnonzero(chosen & (counts > 0))
        some = counts[rows]
        cuts = run_starts(np.cumsum(some) // PLACES_TOGETHER).tolist()
        for low, high in itertools.pairwise([*cuts, len(rows)]):
            part, size = rows[low:high], some[low:high]
            steps = np.arange(int(size.sum()), dtype=np.int32)
            steps -= np.repeat((np.cumsum(size) - size - begin[part]).astype(np.int32), size)
            y = of_edges(FINENESS * steps + np.int32(2), x1[part], y1[part], x2[part], y2[part], size)
            y += np.int32(2)
            y //= np.int32(FINENESS)
            height = heights if one_height else np.repeat(sizes[polygon[part], 0].astype(np.int32), size)
            np.clip(y, 0, height, out=y)
            steps *= height
            y += steps
            y += np.repeat(base[polygon[part]].astype(np.int32), size)
            places[at : at + len(y)] = y
            at += len(y)
    places.sort()
    return places, number


def _along(
    c: NDArray[np.int32],
    x1: NDArray[np.int32],
    y1: NDArray[np.int32],
    x2: NDArray[np.int32],
    y2: NDArray[np.int32],
    size: Positions,
) -> NDArray[np.int32]:
    """Y of edges that the C code walks in x, x ascending: the smaller of those at c and c+1."""
    slope = (y2 - y1) / (x2 - x1)
    edge = np.repeat(np.stack([x1 - (slope < 0), y1, slope], axis=1), size, axis=0)
    t = c - edge[:, 0]
    t *= edge[:, 2]
    t += edge[:, 1]
    t += 0.5
    y: NDArray[np.int32] = t.astype(np.int32)
    return y


def _across(
    c: NDArray[np.int32],
    x1: NDArray[np.int32],
    y1: NDArray[np.int32],
    x2: NDArray[np.int32],
    y2: NDArray[np.int32],
    size: Positions,
) -> NDArray[np.int32]:
    """Y of edges that the C code walks in y, y ascending: that before the first beyond c+1/2."""
    rise = (y2 - y1).astype(np.float64)
    edge = np.repeat(np.stack([x1, y1, rise, (x2 - x1).astype(np.float64)], axis=1), size, axis=0)
    exact = c + 0.5
    exact -= edge[:, 0]
    exact *= edge[:, 2]
    exact /= edge[:, 3]
    first = np.ceil(exact)
    # Only where the line meets c+1/2 at a whole step does the rounding of the C code decide on its side.
    tied = np.flatnonzero(first == exact)
    start, _, rise, run = edge[tied].T
    beyond = (start + run / rise * first[tied]) + 0.5 >= c[tied] + 1
    first[tied] += beyond != (run > 0)
    first += edge[:, 1]
    first -= 1
    y: NDArray[np.int32] = first.astype(np.int32)
    return y
