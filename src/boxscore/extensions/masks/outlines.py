"""Rasterize polygons: where each column of an image enters and leaves them.

Goal
----
The pixels that pycocotools' C code gives a polygon, bit for bit, without its walk along the outline.

Conventions
-----------
- Corners are rounded to a grid of fifths of a pixel. The C code walks along every edge of this grid and,
  where the walk goes from 5n+2 to 5n+3 in x, notes its y in column n. Only these steps are computed here, one
  per edge and column.
- A noted position is a pixel's number, column by column, at which the mask toggles. Every column has an even
  number of them, because the outline is closed.
- Polygons are limited in the length of their outlines, see :data:`LONGEST_OUTLINE`: a position costs 4 bytes.

References
----------
pycocotools 2.0.11, ``maskApi.c`` (``rleFrPoly``). It is compiled without fused multiply-add on x86-64; a
build that fuses may round a position differently.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import FloatArray, Positions
from boxscore._utils.ordering import run_starts, sort_runs

FINENESS = 5
"""Grid lines per pixel."""

LARGEST_VERTEX = 1e6
"""Pixels; below 2**31 on the grid, and differences of products are exact."""

LONGEST_OUTLINE = 1 << 26
"""Pixels, an edge counted by its longer side: 4 bytes for each are 256 MB."""

STEPS_TOGETHER = 1 << 17
"""Approximate number of steps computed together."""


class Edges(NamedTuple):
    """Edges of polygons on the grid, those of one polygon together, and the lengths of outlines."""

    ends: NDArray[np.int32]  # [4,E], x and y of the start, x and y of the end
    polygon: Positions  # [E]
    length: NDArray[np.int64]  # [P], of the outline on the grid


def edges_of(points: FloatArray, counts: Positions) -> Edges:
    """Return the edges of closed polygons; ``counts`` [P] are the numbers of each, x and y in turn."""
    # Round to the grid as the C code does: ``(int)(5 * x + .5)``, which cuts towards 0.
    corners = counts // 2
    if (counts & 1).any():  # an odd last number is not read
        points = np.delete(points, (np.cumsum(counts) - 1)[(counts & 1) == 1])
    grid = (FINENESS * points + 0.5).astype(np.int32).reshape(-1, 2)
    # Edge k goes from corner k to the next one; the last corner of an outline is followed by its first.
    stops = corners.cumsum()
    following = np.arange(1, len(grid) + 1)
    some = corners > 0
    following[stops[some] - 1] = (stops - corners)[some]  # an outline is closed
    ends = np.empty((4, len(grid)), dtype=np.int32)
    ends[:2] = grid.T
    for side in (0, 1):
        ends[side].take(following, out=ends[side + 2])
    # Length of each outline on the grid: the C code walks the longer side of every edge.
    polygon = np.repeat(np.arange(len(counts)), corners)
    longer = np.maximum(np.abs(ends[2] - ends[0]), np.abs(ends[3] - ends[1]))
    length = np.zeros(len(counts), dtype=np.int64)
    if some.any():
        length[some] = np.add.reduceat(longer, (stops - corners)[some], dtype=np.int64)
    return Edges(ends, polygon, length)


def toggles(
    edges: Edges, base: NDArray[np.int64], sizes: NDArray[np.int64]
) -> tuple[NDArray[np.int32], Positions]:
    """Return the sorted positions at which polygons toggle pixels, and how many each has [P].

    ``base`` [P] is the number of each one's first pixel, ``sizes`` [P,2] are height and width of its image.
    """
    # Columns n that each edge [E] notes: those with a step from 5n+2 to 5n+3 between its ends, inside the
    # image. Count them before any is computed.
    (x1, y1, x2, y2), polygon = edges.ends, edges.polygon
    dx, dy = x2 - x1, y2 - y1
    begin = np.maximum((np.minimum(x1, x2) + np.int32(2)) // FINENESS, 0)  # the first step at or after it
    last = (np.maximum(x1, x2) - np.int32(3)) // FINENESS
    np.minimum(last, (sizes[:, 1] - 1).astype(np.int32).take(polygon), out=last)
    counts = np.maximum(last - begin + np.int32(1), 0).astype(np.intp)
    # Positions per polygon, [P]: those of its edges together.
    number = np.zeros(len(base), dtype=np.intp)
    starts = run_starts(polygon)
    if len(starts):
        number[polygon[starts]] = np.add.reduceat(counts, starts)
    # The C code walks an edge along its longer side, and rounds the other coordinate. So both kinds of edges
    # have their own formula for y at a step.
    flat, some = np.abs(dx) >= np.abs(dy), counts > 0
    one_height = bool((sizes[:, 0] == sizes[:1, 0]).all())
    parts = [np.empty(0, dtype=np.int32)]
    for of_edges, chosen, way in ((_along, flat & some, dx), (_across, ~flat & some, dy)):
        rows = chosen.nonzero()[0]
        cuts = run_starts(counts.take(rows).cumsum() // STEPS_TOGETHER).tolist()
        for low, high in itertools.pairwise([*cuts, len(rows)]):
            # Some edges at a time, so that the temporaries of their steps fit the cache.
            part = rows[low:high]
            size, first, of = counts.take(part), begin.take(part), polygon.take(part)
            starts = size.cumsum() - size
            # The C code walks from the end with the smaller coordinate: take that end as the start.
            backwards = way.take(part) < 0
            x = np.where(backwards, x2.take(part), x1.take(part))
            y = np.where(backwards, y2.take(part), y1.take(part))
            # Number the steps of all these edges through; ``first`` is shifted so that ``first + steps`` is
            # the column.
            steps = np.arange(starts[-1] + size[-1], dtype=np.int32)
            first = first - starts
            positions = of_edges(
                FINENESS * first + 2, FINENESS * steps, x, y, dx.take(part), dy.take(part), size
            )
            # From the grid to pixels: the C code takes ``ceil((y + .5) / 5 - .5)``, which is ``(y + 2) // 5``
            # in integers, clipped to the image.
            positions += np.int32(2)
            positions //= np.int32(FINENESS)
            height = sizes[0, 0] if one_height else sizes[:, 0].take(of)
            # This wraps, and the sum with it wraps back: a position is below 2**31.
            lowest = (base.take(of) + first * height).astype(np.int32)
            heights = np.int32(height) if one_height else height.astype(np.int32).repeat(size)
            np.clip(positions, 0, heights, out=positions)
            # Number of the pixel: column times height plus row, counted on through all images.
            steps *= heights
            positions += steps
            positions += lowest.repeat(size)
            parts.append(positions)
    # Positions of an edge are an ascending run, so the sort merges few runs. Pixel numbers of different
    # polygons touch at most, so sorting all of them sorts each.
    together = np.concatenate(parts)
    sort_runs(together)  # each edge is one
    return together, number


def _along(
    c: Positions,
    steps: NDArray[np.int32],
    x: NDArray[np.int32],
    y: NDArray[np.int32],
    dx: NDArray[np.int32],
    dy: NDArray[np.int32],
    size: Positions,
) -> NDArray[np.int32]:
    """Y of edges that the C code walks in x, x ascending: the smaller of those at c and c+1."""
    # The C code computes ``(int)(ys + s * t + .5)`` at c and at c + 1, and keeps the smaller: on a falling
    # edge that at c + 1. Same products and sums in the same order; whole numbers in float64 are exact.
    slope = dy / dx
    t = (c - x + (slope < 0)).astype(np.float64).repeat(size)
    t += steps
    t *= slope.repeat(size)
    t += y.astype(np.float64).repeat(size)
    t += 0.5
    positions: NDArray[np.int32] = t.astype(np.int32)
    return positions


def _across(
    c: Positions,
    steps: NDArray[np.int32],
    x: NDArray[np.int32],
    y: NDArray[np.int32],
    dx: NDArray[np.int32],
    dy: NDArray[np.int32],
    size: Positions,
) -> NDArray[np.int32]:
    """Y of edges that the C code walks in y, y ascending: that before the first beyond c+1/2."""
    # First step at or after which the line is beyond c + 1/2. The product is exact below 2**53, and a
    # quotient that is not whole stays apart from whole numbers, so ``ceil`` is exact.
    half = (c - x + 0.5).repeat(size)
    half += steps
    rise = np.abs(dy).astype(np.float64)
    run = np.where(dy < 0, -dx, dx).astype(np.float64)
    exact = half * rise.repeat(size)
    exact /= run.repeat(size)
    first = np.ceil(exact)
    # Only where the line meets c+1/2 at a whole step does the rounding of the C code decide on its side.
    # Repeat its expression there: ``(int)(xs + s * t + .5)``.
    tied = (first == exact).nonzero()[0]
    if len(tied):
        edge = np.repeat(np.arange(len(size)), size).take(tied)
        rise, run, start = rise.take(edge), run.take(edge), x.take(edge).astype(np.float64)
        step = first.take(tied)
        beyond = (start + run / rise * step) + 0.5 >= half.take(tied) + start + 0.5
        first[tied] = step + (beyond != (run > 0))
    # The row before this step is the smaller one, which the C code keeps.
    positions: NDArray[np.int32] = first.astype(np.int32)
    positions += (y - np.int32(1)).repeat(size)
    return positions
