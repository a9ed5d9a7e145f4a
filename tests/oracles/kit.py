"""The PASCAL VOC development kit in plain Python: one loop a rule, nothing clever.

Written from the kit's ``VOCevaldet.m`` and ``VOCap.m``; it shares no code with boxscore.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

Box = tuple[float, float, float, float]


class Object(NamedTuple):
    """An annotated object."""

    image: Any
    label: Any
    box: Box  # xmin, ymin, xmax, ymax, inclusive pixels
    difficult: bool


class Found(NamedTuple):
    """A detection."""

    image: Any
    label: Any
    score: float
    box: Box


class Outcome(NamedTuple):
    """What became of a detection; ``best`` is the position of its object among all objects, or None."""

    kind: str  # "true", "false" or "ignored"
    best: int | None
    overlap: float


KIT_GRID = [0.0, 0.1, 0.2, 3 * 0.1, 0.4, 0.5, 1 - 4 * 0.1, 1 - 3 * 0.1, 1 - 2 * 0.1, 1 - 1 * 0.1, 1.0]
PORT_GRID = [float(point) for point in np.arange(0.0, 1.1, 0.1)]


def overlap(a: Box, b: Box) -> float:
    """Intersection over union with inclusive pixels; 0 where they do not meet."""
    width = min(a[2], b[2]) - max(a[0], b[0]) + 1
    height = min(a[3], b[3]) - max(a[1], b[1]) + 1
    if width <= 0 or height <= 0:
        return 0.0
    area_a = (a[2] - a[0] + 1) * (a[3] - a[1] + 1)
    area_b = (b[2] - b[0] + 1) * (b[3] - b[1] + 1)
    return width * height / (area_a + area_b - width * height)


def outcomes(
    objects: list[Object], found: list[Found], label: Any, *, threshold: float = 0.5, closed: bool = True
) -> list[tuple[int, Outcome]]:
    """Judge a class's detections, best score first; gives each one's position in ``found``."""
    mine = [number for number, item in enumerate(found) if item.label == label]
    mine.sort(key=lambda number: -found[number].score)  # stable: file order among equals
    taken: set[int] = set()
    judged = []
    for number in mine:
        best, largest = None, -math.inf
        for position, item in enumerate(objects):
            if item.image != found[number].image or item.label != label:
                continue
            value = overlap(found[number].box, item.box)
            if value > 0 and value > largest:
                best, largest = position, value
        reached = best is not None and (largest >= threshold if closed else largest > threshold)
        if not reached:
            outcome = Outcome("false", None, math.nan)
        elif objects[best].difficult:
            outcome = Outcome("ignored", best, largest)
        elif best in taken:
            outcome = Outcome("false", None, math.nan)
        else:
            taken.add(best)
            outcome = Outcome("true", best, largest)
        judged.append((number, outcome))
    return judged


def curve(kinds: list[str], positives: int) -> tuple[list[float], list[float]]:
    """Recall and precision after each detection; NaN where the kit divides 0 by 0."""
    true = false = 0
    recall, precision = [], []
    for kind in kinds:
        true += kind == "true"
        false += kind == "false"
        recall.append(true / positives)
        precision.append(true / (true + false) if true + false else math.nan)
    return recall, precision


def points_ap(recall: list[float], precision: list[float], grid: list[float]) -> float:
    """``ap = ap + p / 11`` over the recall points."""
    ap = 0.0
    for point in grid:
        best = 0.0
        for r, p in zip(recall, precision, strict=True):
            if r >= point and p > best:  # NaN never is
                best = p
        ap = ap + best / len(grid)
    return ap


def area_ap(recall: list[float], precision: list[float]) -> float:
    """The area under the falling envelope, summed the way NumPy sums."""
    mrec = [0.0, *recall, 1.0]
    mpre = [0.0, *(0.0 if math.isnan(p) else p for p in precision), 0.0]
    for i in range(len(mpre) - 2, -1, -1):
        mpre[i] = max(mpre[i], mpre[i + 1])
    steps = [(mrec[i] - mrec[i - 1]) * mpre[i] for i in range(1, len(mrec)) if mrec[i] != mrec[i - 1]]
    return float(np.sum(steps))


def average_precision(
    objects: list[Object],
    found: list[Found],
    label: Any,
    *,
    rule: str,
    threshold: float = 0.5,
    closed: bool = True,
) -> float:
    """AP of a class by ``rule`` "kit", "port" (11 points on either grid) or "area"; NaN without positives."""
    positives = sum(item.label == label and not item.difficult for item in objects)
    if not positives:
        return math.nan
    kinds = [o.kind for _, o in outcomes(objects, found, label, threshold=threshold, closed=closed)]
    recall, precision = curve(kinds, positives)
    if rule == "area":
        return area_ap(recall, precision)
    return points_ap(recall, precision, {"kit": KIT_GRID, "port": PORT_GRID}[rule])
