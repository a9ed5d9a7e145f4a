"""Rotated boxes the slow way: corners, and one polygon clipped by the sides of another."""

from __future__ import annotations

import math
from collections.abc import Sequence

Point = tuple[float, float]


def corners(box: Sequence[float]) -> list[Point]:
    """Corners of ``cx, cy, w, h, angle``, in the order in which x turns towards y."""
    cx, cy, w, h, angle = box
    cosine, sine = math.cos(angle), math.sin(angle)
    return [
        (cx + x * w * cosine - y * h * sine, cy + x * w * sine + y * h * cosine)
        for x, y in ((-0.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5))
    ]


def area(polygon: Sequence[Point]) -> float:
    """Shoelace formula about the first corner, which keeps large coordinates out of it."""
    if not polygon:
        return 0.0
    (x0, y0), total = polygon[0], 0.0
    for (x1, y1), (x2, y2) in zip(polygon, [*polygon[1:], polygon[0]], strict=True):
        total += (x1 - x0) * (y2 - y0) - (x2 - x0) * (y1 - y0)
    return total / 2


def clipped(polygon: Sequence[Point], clip: Sequence[Point]) -> list[Point]:
    """Sutherland and Hodgman: what of a polygon lies inside a convex one."""
    left = list(polygon)
    for (ax, ay), (bx, by) in zip(clip, [*clip[1:], clip[0]], strict=True):
        sides = [(bx - ax) * (y - ay) - (by - ay) * (x - ax) for x, y in left]
        kept: list[Point] = []
        for i, (point, side) in enumerate(zip(left, sides, strict=True)):
            (x, y), (px, py), before = point, left[i - 1], sides[i - 1]
            if (side >= 0) != (before >= 0):
                share = before / (before - side)
                kept.append((px + share * (x - px), py + share * (y - py)))
            if side >= 0:
                kept.append(point)
        left = kept
    return left


def overlap(one: Sequence[float], other: Sequence[float], *, over_first: bool = False) -> float:
    """IoU of two rotated boxes, or the part of the first that lies in the second."""
    area1, area2 = one[2] * one[3], other[2] * other[3]
    if area1 <= 0 or area2 <= 0:
        return 0.0
    shared = area(clipped(corners(one), corners(other)))
    return shared / (area1 if over_first else area1 + area2 - shared)
