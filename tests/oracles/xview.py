"""xView's scoring code in plain Python: one class at a time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

Corners = tuple[float, float, float, float]


class Detection(NamedTuple):
    box: Corners
    label: int
    score: float


class Object(NamedTuple):
    box: Corners
    label: int


def average_precision(
    truth: Mapping[str, Sequence[Object]],
    results: Mapping[str, Sequence[Detection]],
    label: int,
    *,
    by_score: bool = False,
    every_object: bool = False,
) -> float:
    """AP of a class over the images, in their order; NaN without an object that counts."""
    listed: list[tuple[float, bool]] = []
    objects = 0
    for name in truth:
        found = [one for one in results.get(name, ()) if one.label == label and one.score > 0]
        boxes = [one.box for one in truth[name] if one.label == label]
        if not found and not every_object:
            continue
        objects += len(boxes)
        taken: set[int] = set()
        right = {}
        order = list(range(len(found)))
        if by_score:
            order.sort(key=lambda i: (-found[i].score, -i))
        for i in order:
            overlaps = [iou(found[i].box, box) for box in boxes]
            best = max(overlaps, default=0.0)
            at = overlaps.index(best) if best >= 0.5 else -1
            right[i] = at >= 0 and at not in taken
            taken.add(at)
        listed += [(found[i].score, right[i]) for i in range(len(found))]
    if not objects:
        return math.nan
    listed.reverse()  # the last of equal scores comes first
    ranked = sorted(listed, key=lambda one: -one[0])
    points, true = [(0.0, 0.0)], 0
    for count, (_, is_true) in enumerate(ranked, start=1):
        true += is_true
        points.append((true / objects, true / count))
    area = 0.0
    for i in range(1, len(points)):
        area += (points[i][0] - points[i - 1][0]) * max(height for _, height in points[i:])
    return area


def iou(first: Corners, second: Corners) -> float:
    sides = [min(first[i + 2], second[i + 2]) - max(first[i], second[i]) for i in (0, 1)]
    shared = max(sides[0], 0) * max(sides[1], 0)
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (first, second)]
    return shared / (sum(areas) - shared) if shared else 0.0
