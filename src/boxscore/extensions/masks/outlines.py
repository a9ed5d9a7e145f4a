"""Rasterize polygons: find the pixels at which each image column enters and leaves them.

Pixels are those of pycocotools' C code, bit for bit, without its walk along the outline.

Conventions
-----------
- Corners are rounded to a grid of fifths of a pixel. The C code walks along every edge of this grid and
  records the y of column n at the step from 5n+2 to 5n+3 in x. Only these steps are computed here, one per
  edge and column.
- A recorded position is the number of a pixel, column by column, at which the mask toggles. Every column has
  an even number of them, because the outline is closed.
- The length of outlines is limited, see :data:`LONGEST_OUTLINE`: a position takes 4 bytes.

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
"""Maximum coordinate in pixels: below 2**31 on the grid, so that differences of products are exact."""

LONGEST_OUTLINE = 1 << 26
"""Maximum length in pixels, counting the longer side of each edge; at 4 bytes each, 256 MB."""

STEPS_TOGETHER = 1 << 17
"""Approximate number of steps computed together."""


class Edges(NamedTuple):
    """Edges of polygons on the grid, polygon by polygon, and the lengths of outlines."""

    ends: NDArray[np.int32]  # [4, E], x and y of the start, x and y of the end
    polygon: Positions  # [E]
    length: NDArray[np.int64]  # [P], of the outline on the grid


def edges_of(points: FloatArray, counts: Positions) -> Edges:
    """Return the edges of closed polygons; ``counts`` [P] are their numbers of coordinates (2 per corner)."""
    # Round to the grid as the C code does: ``(int)(5 * x + .5)``, which truncates.
    corners = counts // 2
    if (counts & 1).any():  # ignore an odd last number
        points = np.delete(points, (np.cumsum(counts) - 1)[(counts & 1) == 1])
    grid = (FINENESS * points + 0.5).astype(np.int32).reshape(-1, 2)
    # Edge k goes from corner k to the next one; the last corner connects to the first.
    stops = corners.cumsum()
    following = np.arange(1, len(grid) + 1)
    some = corners > 0
    following[stops[some] - 1] = (stops - corners)[some]
    ends = np.empty((4, len(grid)), dtype=np.int32)
    ends[:2] = grid.T
    for side in (0, 1):
        ends[side].take(following, out=ends[side + 2])
    # Sum the lengths on the grid: the C code walks the longer side of every edge.
    polygon = np.repeat(np.arange(len(counts)), corners)
    longer = np.maximum(np.abs(ends[2] - ends[0]), np.abs(ends[3] - ends[1]))
    length = np.zeros(len(counts), dtype=np.int64)
    if some.any():
        length[some] = np.add.reduceat(longer, (stops - corners)[some], dtype=np.int64)
    return Edges(ends, polygon, length)


def toggles(
    edges: Edges, base: NDArray[np.int64], sizes: NDArray[np.int64]
) -> tuple[NDArray[np.int32], Positions]:
    """Return the sorted positions at which polygons toggle pixels, and their number per polygon [P].

    ``base`` [P] is the number of the first pixel of each polygon's image, ``sizes`` [P, 2] its height and
    width.
    """
    # Find the columns n that each edge [E] records: those inside the image with a step from 5n+2 to 5n+3 on
    # the edge.
    (x1, y1, x2, y2), polygon = edges.ends, edges.polygon
    dx, dy = x2 - x1, y2 - y1
    begin = np.maximum((np.minimum(x1, x2) + np.int32(2)) // FINENESS, 0)
    last = (np.maximum(x1, x2) - np.int32(3)) // FINENESS
    np.minimum(last, (sizes[:, 1] - 1).astype(np.int32).take(polygon), out=last)
    counts = np.maximum(last - begin + np.int32(1), 0).astype(np.intp)
    # Add up the positions per polygon, [P].
    number = np.zeros(len(base), dtype=np.intp)
    starts = run_starts(polygon)
    if len(starts):
        number[polygon[starts]] = np.add.reduceat(counts, starts)
    # The C code walks an edge along its longer side and rounds the other coordinate, so each kind of edge has
    # its own formula for y.
    flat, some = np.abs(dx) >= np.abs(dy), counts > 0
    one_height = bool((sizes[:, 0] == sizes[:1, 0]).all())
    parts = [np.empty(0, dtype=np.int32)]
    for of_edges, chosen, way in ((_along, flat & some, dx), (_across, ~flat & some, dy)):
        rows = chosen.nonzero()[0]
        cuts = run_starts(counts.take(rows).cumsum() // STEPS_TOGETHER).tolist()
        for low, high in itertools.pairwise([*cuts, len(rows)]):
            # Process some edges at a time, so that temporaries fit the cache.
            part = rows[low:high]
            size, first, of = counts.take(part), begin.take(part), polygon.take(part)
            starts = size.cumsum() - size
            # The C code starts at the end with the smaller coordinate.
            backwards = way.take(part) < 0
            x = np.where(backwards, x2.take(part), x1.take(part))
            y = np.where(backwards, y2.take(part), y1.take(part))
            # Number the steps of all these edges continuously; ``first`` is shifted so that ``first + steps``
            # is the column.
            steps = np.arange(starts[-1] + size[-1], dtype=np.int32)
            first = first - starts
            positions = of_edges(
                FINENESS * first + 2, FINENESS * steps, x, y, dx.take(part), dy.take(part), size
            )
            # Convert to pixels: ``ceil((y + .5) / 5 - .5)`` in the C code is ``(y + 2) // 5`` in integers,
            # clipped to the image.
            positions += np.int32(2)
            positions //= np.int32(FINENESS)
            height = sizes[0, 0] if one_height else sizes[:, 0].take(of)
            # This may wrap, and the final sum wraps back: positions are below 2**31.
            lowest = (base.take(of) + first * height).astype(np.int32)
            heights = np.int32(height) if one_height else height.astype(np.int32).repeat(size)
            np.clip(positions, 0, heights, out=positions)
            # Number the pixels: column times height plus row, continuously over all images.
            steps *= heights
            positions += steps
            positions += lowest.repeat(size)
            parts.append(positions)
    # Sort all positions together: each edge is an ascending run, and polygons have disjoint pixel numbers.
    together = np.concatenate(parts)
    sort_runs(together)
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
    """Return y for edges that the C code walks in x, ascending: the smaller of y at c and at c + 1."""
    # The C code computes ``(int)(ys + s * t + .5)`` at c and c + 1, and keeps the smaller: on a falling edge,
    # the one at c + 1. Products and sums have the same order; integers are exact in float64.
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
    """Return y for edges that the C code walks in y, ascending: y before the first step beyond c + 1/2."""
    # Find the first step at which the line is at or beyond c + 1/2. The product is exact below 2**53, and
    # rounding does not make a fractional quotient an integer, so ``ceil`` is exact.
    half = (c - x + 0.5).repeat(size)
    half += steps
    rise = np.abs(dy).astype(np.float64)
    run = np.where(dy < 0, -dx, dx).astype(np.float64)
    exact = half * rise.repeat(size)
    exact /= run.repeat(size)
    first = np.ceil(exact)
    # If the line meets c + 1/2 exactly at a step, the rounding of the C code decides: repeat its expression
    # ``(int)(xs + s * t + .5)``.
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
