"""Compute the IoU of the DOTA devkit, operation by operation, for many pairs in each step.

Conventions
-----------
- Every pair goes through the same operations in the same order as in the devkit, in float64 without fused
  multiplication, so that the last bit agrees. Nothing here may be rearranged.
- Both polygons are cut into the triangles from the image's origin to each side; triangles are cut with
  triangles, and the signed pieces are added.
- Two numbers are equal within 1e-8. If the lines of a cut are parallel within that, the devkit adds a point
  that was never set; here it is the corner before.

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
    """IoU of quadrilaterals [P, 8] by the devkit's operations, [P]; NaN for flat with flat.

    For polygons that cross themselves, the value may be anything.
    """
    if len(first) > PAIRS:
        starts = range(0, len(first), PAIRS)
        return np.concatenate([polyiou(first[at : at + PAIRS], second[at : at + PAIRS]) for at in starts])
    # Add the shares of all 16 pairs of sides in the devkit's order, the first polygon in the outer loop; each
    # step computes all pairs [P].
    (px, py), (qx, qy) = _counter_clockwise(first), _counter_clockwise(second)
    total = np.zeros(len(first))
    # Overflow and 0 / 0 give what they give in the devkit.
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
    """Coordinates [4, P], from the last corner on where the area is negative."""
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
    """Signed area that the triangles from the origin to two sides share, [P]."""
    ax, ay, bx, by = one
    cx, cy, dx, dy = other
    # Orientation of the triangles (origin, a, b) and (origin, c, d). The devkit's cross(o, a, b) subtracts
    # the origin's zeros, which changes no bit. A flat triangle shares nothing.
    s1, s2 = _sign(ax * by - bx * ay), _sign(cx * dy - dx * cy)
    value = np.zeros(len(ax))
    rows = np.flatnonzero((s1 != 0) & (s2 != 0))
    if not len(rows):
        return value
    # Swap the ends of a side where its triangle is clockwise, as the devkit does before it cuts.
    s1, s2 = s1[rows], s2[rows]
    ax, ay, bx, by, cx, cy, dx, dy = (side[rows] for side in (ax, ay, bx, by, cx, cy, dx, dy))
    swap = s1 < 0
    ax, bx = np.where(swap, bx, ax), np.where(swap, ax, bx)
    ay, by = np.where(swap, by, ay), np.where(swap, ay, by)
    swap = s2 < 0
    cx, dx = np.where(swap, dx, cx), np.where(swap, cx, dx)
    cy, dy = np.where(swap, dy, cy), np.where(swap, cy, dy)
    # Cut the first triangle [3, P] by the three sides of the second, in the devkit's order: o-c, c-d, d-o.
    zero = np.zeros(len(rows))
    x, y, count = np.stack([zero, ax, bx]), np.stack([zero, ay, by]), np.full(len(rows), 3)
    for line in ((zero, zero, cx, cy), (cx, cy, dx, dy), (dx, dy, zero, zero)):
        x, y, count = _cut(x, y, count, line)
    # Opposite orientations subtract the piece: the signed triangles of a polygon add up to it.
    piece = np.abs(_area_of(x, y, count))
    value[rows] = np.where(s1 * s2 < 0, -piece, piece)
    return value


def _area_of(x: FloatArray, y: FloatArray, count: IntArray) -> FloatArray:
    """Area of polygons [V, P] of which the first ``count`` corners are there."""
    # One corner after the other, as in the devkit's loop; polygons with fewer corners keep their sum.
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
    """Keep the part to the left of a line (a, b), for polygons [V, P]."""
    # ``side`` [V, P] is the devkit's cross(a, b, corner): above 0 to the left of the line. Its subtractions
    # and products come in the devkit's order.
    ax, ay, bx, by = line
    side = np.stack([(bx - ax) * (y[i] - ay) - (x[i] - ax) * (by - ay) for i in range(len(x))])
    signs = _sign(side)
    # A corner yields at most two points, itself and a crossing: 2 V slots, of which ``raw`` [P] are filled.
    columns = np.arange(x.shape[1])
    raw_x, raw_y = np.zeros((2 * len(x), len(columns))), np.zeros((2 * len(x), len(columns)))
    raw = np.zeros(len(columns), dtype=np.int64)
    for i in range(len(x)):
        # Visit corner i of all polygons that have one; the corner after the last is the first.
        here = np.flatnonzero(i < count)
        if not len(here):
            break
        after = np.where(count[here] == i + 1, 0, i + 1)
        t1, s1 = side[i, here], signs[i, here]
        t2, s2 = side[after, here], signs[after, here]
        # Copy the corner if it is strictly to the left of the line.
        keep = here[s1 > 0]
        raw_x[raw[keep], keep], raw_y[raw[keep], keep] = x[i, keep], y[i, keep]
        raw[keep] += 1
        # Add the crossing where the next corner has another sign. The devkit's lineCross computes
        # ``(p * t2 - q * t1) / (t2 - t1)`` in this order.
        crosses = s1 != s2
        t1, t2, at, after = t1[crosses], t2[crosses], here[crosses], after[crosses]
        apart = t2 - t1
        # Parallel within 1e-8: the devkit leaves the point unset; take the corner instead.
        parallel = np.abs(apart) <= SAME
        slot = raw[at]
        for values, out in ((x, raw_x), (y, raw_y)):
            point = (values[i, at] * t2 - values[after, at] * t1) / apart
            out[slot, at] = np.where(parallel, values[i, at], point)
        raw[at] += 1
    # As in the devkit, leave out each corner that equals the one before it within 1e-8.
    width = max(int(raw.max(initial=0)), 1)
    out_x, out_y = np.zeros((width, len(columns))), np.zeros((width, len(columns)))
    left = np.zeros(len(columns), dtype=np.int64)
    for i in range(width):
        there = i < raw
        if i:
            there &= ~_equal(raw_x[i], raw_y[i], raw_x[i - 1], raw_y[i - 1])
        # Move the corners that stay to the next free place of their polygon.
        at = np.flatnonzero(there)
        out_x[left[at], at], out_y[left[at], at] = raw_x[i, at], raw_y[i, at]
        left[at] += 1
    # Then drop corners from the end while they equal the first one.
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
