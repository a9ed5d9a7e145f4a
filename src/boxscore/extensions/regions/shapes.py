"""Check the shapes of regions, and find out which points are in them.

Conventions
-----------
- A polygon is a tuple of rings [V, 2]: its outline, then its holes. A ring need not repeat its first point.
- A point is in a ring if a ray from it crosses the ring an odd number of times. A point is in a polygon if it
  is in the outline and in no hole. Points on any edge of a polygon are in it.
- A mask is a compressed RLE, as in COCO. A point is in it if the pixel that contains the point is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from boxscore._utils.array_types import BoolArray, FloatArray
from boxscore.errors import InputError
from boxscore.extensions.masks.column import Masks

Polygon: TypeAlias = tuple[FloatArray, ...]
Shape: TypeAlias = "Polygon | Mapping[str, Any]"

MOST_POINTS = 10_000
"""Maximum number of points of a ring: every edge is compared with every other."""

MOST_SIDES = 1 << 18
"""Number of points and edges to compare at a time."""

LARGEST = 1e9
"""Maximum coordinate."""


def checked_ring(ring: FloatArray, place: str) -> FloatArray:
    """Return a ring [V, 2] without repeated points; raise if it has no area or crosses itself."""
    if not (np.abs(ring) <= LARGEST).all():  # also NaN
        wrong = ring[~(np.abs(ring) <= LARGEST).all(axis=1)][0].tolist()
        raise InputError("a region", f"have finite coordinates up to {LARGEST:.0e}", got=wrong, place=place)
    if len(ring) > MOST_POINTS:
        raise InputError(
            "a region", f"have at most {MOST_POINTS:,} points", got=f"{len(ring):,}", place=place
        )
    ring = ring[(ring != np.roll(ring, 1, axis=0)).any(axis=1)]
    x, y = (ring - ring[:1]).T
    twice_area = (x * np.roll(y, -1) - np.roll(x, -1) * y).sum() if len(ring) else 0.0
    crossing = crossing_edges(ring) if len(ring) > 2 else None
    if crossing is not None:
        first, second = (f"{ring[at].tolist()} to {ring[(at + 1) % len(ring)].tolist()}" for at in crossing)
        cause = "list its points in order around it, or split it into several regions"
        raise InputError(
            "a region", "not cross itself", got=f"edges {first} and {second}", place=place, cause=cause
        )
    if twice_area == 0:
        raise InputError("a region", "have an area", got=f"{len(ring)} different points", place=place)
    return ring


def crossing_edges(ring: FloatArray) -> tuple[int, int] | None:
    """Return two edges of a ring [V, 2] that cross or that are the same, by their first points; or None.

    Edges that only touch are allowed, so that a ring may go around a hole and back along the same edge.
    """
    start, edge = ring, np.roll(ring, -1, axis=0) - ring
    # Find the side of each edge for each point, [edge, point].
    strict = np.empty((len(ring), len(ring)), dtype=bool)
    rows = max(1, MOST_SIDES // len(ring))
    for low in range(0, len(ring), rows):
        away = start - start[low : low + rows, None]
        across = edge[low : low + rows, None]
        side = np.sign(across[..., 0] * away[..., 1] - across[..., 1] * away[..., 0])
        strict[low : low + rows] = side * np.roll(side, -1, axis=1) < 0
    # Two edges cross if each has the ends of the other on its two sides.
    first, second = np.nonzero(np.triu(strict & strict.T))
    if len(first):
        return int(first[0]), int(second[0])
    # An edge that is passed twice in the same direction surrounds the region twice.
    edges = list(map(tuple, np.hstack([start, edge]).tolist()))
    if len(set(edges)) < len(edges):
        at = next(at for at, one in enumerate(edges) if edges.count(one) > 1)
        return at, edges.index(edges[at], at + 1)
    return None


def contains(shape: Shape, points: FloatArray) -> BoolArray:
    """Whether points [N, 2] are in a shape, [N]."""
    return _mask_contains(shape, points) if isinstance(shape, Mapping) else _polygon_contains(shape, points)


def _polygon_contains(polygon: Polygon, points: FloatArray) -> BoolArray:
    # Only look at points in the box around the outline.
    outline, *holes = polygon
    inside = np.zeros(len(points), dtype=bool)
    near = np.flatnonzero(((points >= outline.min(axis=0)) & (points <= outline.max(axis=0))).all(axis=1))
    odd, on_edge = _sides(outline, points[near])
    found = odd | on_edge
    for hole in holes:
        odd, on_edge = _sides(hole, points[near])
        found &= ~odd | on_edge
    inside[near] = found
    return inside


def _sides(ring: FloatArray, points: FloatArray) -> tuple[BoolArray, BoolArray]:
    """Whether each point is in a ring by the number of crossings, and whether it is on an edge, [N] each."""
    x, y = points.T
    odd, on_edge = np.zeros(len(points), dtype=bool), np.zeros(len(points), dtype=bool)
    for (x1, y1), (x2, y2) in zip(ring.tolist(), np.roll(ring, -1, axis=0).tolist(), strict=True):
        # The side of the edge; 0 on its line.
        side = (x2 - x1) * (y - y1) - (y2 - y1) * (x - x1)
        # A ray to the right crosses edges that span its y, without their lower end, so that it crosses one of
        # two edges that meet there.
        odd ^= ((y1 <= y) != (y2 <= y)) & ((side > 0) == (y2 > y1))
        within = (x >= min(x1, x2)) & (x <= max(x1, x2)) & (y >= min(y1, y2)) & (y <= max(y1, y2))
        on_edge |= (side == 0) & within
    return odd, on_edge


def _mask_contains(code: Mapping[str, Any], points: FloatArray) -> BoolArray:
    height, width = code["size"]
    inside = np.asarray(((points >= 0) & (points < [width, height])).all(axis=1))
    column, row = points[inside].astype(np.int64).T
    inside[inside] = Masks([dict(code)]).arrays()[0][row, column]
    return inside


def box_around(shape: Shape) -> FloatArray:
    """Return ``x1, y1, x2, y2`` around a shape, [4]."""
    if isinstance(shape, Mapping):
        box: FloatArray = Masks([dict(shape)]).boxes[0]
        return box
    return np.concatenate([shape[0].min(axis=0), shape[0].max(axis=0)])
