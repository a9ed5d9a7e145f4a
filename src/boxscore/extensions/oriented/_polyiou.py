"""Compute the IoU of the DOTA devkit, operation by operation, for many pairs in each step.

Conventions
-----------
- Every pair goes through the operations of the devkit in the same order, in float64 without fused
  multiplication, so that the last bit agrees. Do not rearrange any of them.
- Both polygons are split into triangles from the image's origin to each side; triangles are clipped with
  triangles, and the signed areas are added.
- Numbers within 1e-8 are equal. If the lines of a cut are parallel within that, the devkit adds an
  uninitialized point; here it is the previous corner.

References
----------
CAPTAIN-WHU/DOTA_devkit, ``polyiou.cpp``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import FloatArray, IntArray

SAME = 1e-8
PAIRS = 1 << 14


def polyiou(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return the IoU of quadrilaterals [P, 8] as the devkit computes it, [P]; NaN if both are flat.

    Polygons that cross themselves may give any value.
    """
    if len(first) > PAIRS:
        starts = range(0, len(first), PAIRS)
        return np.concatenate([polyiou(first[at : at + PAIRS], second[at : at + PAIRS]) for at in starts])
    # Add the shared areas of all 16 pairs of sides in the order of the devkit, with the first polygon in the
    # outer loop; each step computes all pairs [P].
    (px, py), (qx, qy) = _counter_clockwise(first), _counter_clockwise(second)
    total = np.zeros(len(first))
    # Overflow and 0 / 0 give the same values as in the devkit.
    with np.errstate(all="ignore"):
        for i in range(4):
            for j in range(4):
                a = (px[i], py[i], px[(i + 1) % 4], py[(i + 1) % 4])
                b = (qx[j], qy[j], qx[(j + 1) % 4], qy[(j + 1) % 4])
                total += _shared(a, b)
        union = np.abs(_area(px, py)) + np.abs(_area(qx, qy)) - total
        iou: FloatArray = total / union
    return iou


def _sign(values: FloatArray) -> NDArray[np.int8]:
    return (values > SAME).astype(np.int8) - (values < -SAME).astype(np.int8)


def _counter_clockwise(corners: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return coordinates [4, P] in counterclockwise order; reverse them if the area is negative."""
    x, y = corners[:, 0::2].T, corners[:, 1::2].T
    clockwise = _area(x, y) < 0
    return np.where(clockwise, x[::-1], x), np.where(clockwise, y[::-1], y)


def _area(x: FloatArray, y: FloatArray) -> FloatArray:
    total = np.zeros(x.shape[1])
    for i in range(len(x)):
        k = (i + 1) % len(x)
        total += x[i] * y[k] - y[i] * x[k]
    return total / 2.0


Side = tuple[FloatArray, FloatArray, FloatArray, FloatArray]


def _shared(one: Side, other: Side) -> FloatArray:
    """Return the signed area shared by the triangles from the origin to two sides, [P]."""
    ax, ay, bx, by = one
    cx, cy, dx, dy = other
    # Compute the orientation of the triangles (origin, a, b) and (origin, c, d). The devkit's cross(o, a, b)
    # subtracts zeros, which is exact. Flat triangles are skipped.
    s1, s2 = _sign(ax * by - bx * ay), _sign(cx * dy - dx * cy)
    value = np.zeros(len(ax))
    rows = np.flatnonzero((s1 != 0) & (s2 != 0))
    if not len(rows):
        return value
    # Swap the ends of a side if its triangle is clockwise, as the devkit does before clipping.
    s1, s2 = s1[rows], s2[rows]
    ax, ay, bx, by, cx, cy, dx, dy = (side[rows] for side in (ax, ay, bx, by, cx, cy, dx, dy))
    swap = s1 < 0
    ax, bx = np.where(swap, bx, ax), np.where(swap, ax, bx)
    ay, by = np.where(swap, by, ay), np.where(swap, ay, by)
    swap = s2 < 0
    cx, dx = np.where(swap, dx, cx), np.where(swap, cx, dx)
    cy, dy = np.where(swap, dy, cy), np.where(swap, cy, dy)
    # Clip the first triangle [3, P] by the three sides of the second, in the devkit's order: o-c, c-d, d-o.
    zero = np.zeros(len(rows))
    x, y, count = np.stack([zero, ax, bx]), np.stack([zero, ay, by]), np.full(len(rows), 3)
    for line in ((zero, zero, cx, cy), (cx, cy, dx, dy), (dx, dy, zero, zero)):
        x, y, count = _cut(x, y, count, line)
    # Subtract the area for opposite orientations: signed triangles add up to the polygon.
    piece = np.abs(_area_of(x, y, count))
    value[rows] = np.where(s1 * s2 < 0, -piece, piece)
    return value


def _area_of(x: FloatArray, y: FloatArray, count: IntArray) -> FloatArray:
    """Return the area of polygons [V, P] with ``count`` corners each."""
    # Add corner by corner, as in the devkit; polygons with fewer corners keep their sum.
    total = np.zeros(x.shape[1])
    for i in range(len(x)):
        last = count == i + 1
        k = min(i + 1, len(x) - 1)
        next_x, next_y = np.where(last, x[0], x[k]), np.where(last, y[0], y[k])
        total = np.where(i < count, total + (x[i] * next_y - y[i] * next_x), total)
    return total / 2.0


def _cut(
    x: FloatArray, y: FloatArray, count: IntArray, line: Side
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Clip polygons [V, P] to the left of a line (a, b)."""
    # ``side`` [V, P] is the devkit's cross(a, b, corner), positive to the left of the line, with operations
    # in the devkit's order.
    ax, ay, bx, by = line
    side = np.stack([(bx - ax) * (y[i] - ay) - (x[i] - ax) * (by - ay) for i in range(len(x))])
    signs = _sign(side)
    # A corner yields at most two points, itself and a crossing, so there are 2 V slots; ``raw`` [P] counts
    # them.
    columns = np.arange(x.shape[1])
    raw_x, raw_y = np.zeros((2 * len(x), len(columns))), np.zeros((2 * len(x), len(columns)))
    raw = np.zeros(len(columns), dtype=np.int64)
    for i in range(len(x)):
        # Visit corner i of all polygons that have one; the first corner follows the last.
        here = np.flatnonzero(i < count)
        if not len(here):
            break
        after = np.where(count[here] == i + 1, 0, i + 1)
        t1, s1 = side[i, here], signs[i, here]
        t2, s2 = side[after, here], signs[after, here]
        # Copy the corner if it is strictly left of the line.
        keep = here[s1 > 0]
        raw_x[raw[keep], keep], raw_y[raw[keep], keep] = x[i, keep], y[i, keep]
        raw[keep] += 1
        # Add the crossing if the next corner has another sign, in the order of the devkit's lineCross:
        # ``(p * t2 - q * t1) / (t2 - t1)``.
        crosses = s1 != s2
        t1, t2, at, after = t1[crosses], t2[crosses], here[crosses], after[crosses]
        apart = t2 - t1
        # For lines parallel within 1e-8, the devkit leaves the point uninitialized; take the corner.
        parallel = np.abs(apart) <= SAME
        slot = raw[at]
        for values, out in ((x, raw_x), (y, raw_y)):
            point = (values[i, at] * t2 - values[after, at] * t1) / apart
            out[slot, at] = np.where(parallel, values[i, at], point)
        raw[at] += 1
    # As in the devkit, drop each corner that equals the previous one within 1e-8.
    width = max(int(raw.max(initial=0)), 1)
    out_x, out_y = np.zeros((width, len(columns))), np.zeros((width, len(columns)))
    left = np.zeros(len(columns), dtype=np.int64)
    for i in range(width):
        there = i < raw
        if i:
            there &= ~_equal(raw_x[i], raw_y[i], raw_x[i - 1], raw_y[i - 1])
        # Move the remaining corners to the next free slot of their polygon.
        at = np.flatnonzero(there)
        out_x[left[at], at], out_y[left[at], at] = raw_x[i, at], raw_y[i, at]
        left[at] += 1
    # Then drop corners from the end that equal the first one.
    while True:
        at = np.flatnonzero(left > 1)
        last = left[at] - 1
        drop = at[_equal(out_x[last, at], out_y[last, at], out_x[0, at], out_y[0, at])]
        if not len(drop):
            break
        left[drop] -= 1
    width = max(int(left.max(initial=0)), 1)
    return out_x[:width], out_y[:width], left


def _equal(x1: FloatArray, y1: FloatArray, x2: FloatArray, y2: FloatArray) -> NDArray[np.bool_]:
    same: NDArray[np.bool_] = (_sign(x1 - x2) == 0) & (_sign(y1 - y2) == 0)
    return same
