"""The rules of the DOTA devkit's polygon IoU, one number at a time, as they are described."""

from __future__ import annotations

import math

Point = tuple[float, float]


def sign(value: float) -> int:
    return 1 if value > 1e-8 else -1 if value < -1e-8 else 0


def cross(o: Point, a: Point, b: Point) -> float:
    return (a[0] - o[0]) * (b[1] - o[1]) - (b[0] - o[0]) * (a[1] - o[1])


def area(points: list[Point]) -> float:
    total = 0.0
    for (x, y), (next_x, next_y) in zip(points, [*points[1:], *points[:1]], strict=True):
        total += x * next_y - y * next_x
    return total / 2.0


def same(a: Point, b: Point) -> bool:
    return sign(a[0] - b[0]) == 0 and sign(a[1] - b[1]) == 0


def cut(points: list[Point], a: Point, b: Point) -> list[Point]:
    raw: list[Point] = []
    for p, q in zip(points, [*points[1:], *points[:1]], strict=True):
        t1, t2 = cross(a, b, p), cross(a, b, q)
        if sign(t1) > 0:
            raw.append(p)
        if sign(t1) != sign(t2):
            raw.append(((p[0] * t2 - q[0] * t1) / (t2 - t1), (p[1] * t2 - q[1] * t1) / (t2 - t1)))
    kept = [p for i, p in enumerate(raw) if i == 0 or not same(p, raw[i - 1])]
    while len(kept) > 1 and same(kept[-1], kept[0]):
        kept.pop()
    return kept


def triangles(a: Point, b: Point, c: Point, d: Point) -> float:
    o = (0.0, 0.0)
    s1, s2 = sign(cross(o, a, b)), sign(cross(o, c, d))
    if s1 == 0 or s2 == 0:
        return 0.0
    if s1 == -1:
        a, b = b, a
    if s2 == -1:
        c, d = d, c
    left = cut(cut(cut([o, a, b], o, c), c, d), d, o)
    piece = abs(area(left)) if left else 0.0
    return -piece if s1 * s2 == -1 else piece


def polyiou(first: list[float], second: list[float]) -> float:
    p, q = (list(zip(corners[0::2], corners[1::2], strict=True)) for corners in (first, second))
    p, q = (points[::-1] if area(points) < 0 else points for points in (p, q))
    shared = 0.0
    for i in range(4):
        for j in range(4):
            shared += triangles(p[i], p[(i + 1) % 4], q[j], q[(j + 1) % 4])
    union = abs(area(p)) + abs(area(q)) - shared
    if union == 0:
        return math.nan if shared == 0 else math.copysign(math.inf, shared)
    return shared / union
