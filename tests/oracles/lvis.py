"""LVIS's rules in plain Python, from their description: every rule is an ``if`` in a loop.

Boxes only. Files as JSON holds them go in; precision [T, R, K, A] and recall [T, K, A] come out, with -1 where
nothing is defined, as lvis-api has them. It shares no code with boxscore.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

Record = dict[str, Any]

THRESHOLDS = np.linspace(0.5, 0.95, 10)
RECALLS = np.linspace(0, 1, 101)
AREAS = ((0.0, 1e10), (0.0, 32.0**2), (32.0**2, 96.0**2), (96.0**2, 1e10))


class Arrays(NamedTuple):
    precision: np.ndarray[Any, Any]
    recall: np.ndarray[Any, Any]


def has_area(area: float) -> bool:
    return 0 < area < math.inf


def capped(results: list[Record], *, per_image: int | None, per_class: int | None) -> list[Record]:
    """The detections that the caps leave, those of one image in the order in which lvis-api has them."""
    if per_class is not None:
        kept: list[Record] = []
        for label in sorted({one["category_id"] for one in results}):
            mine = [one for one in results if one["category_id"] == label]
            kept += sorted(mine, key=lambda one: -one["score"])[:per_class]
        results = [one for one in results if any(one is other for other in kept)]
    if per_image is None:
        return results
    left = []
    for image in dict.fromkeys(one["image_id"] for one in results):
        mine = [one for one in results if one["image_id"] == image]
        if len(mine) > per_image:
            mine = sorted(mine, key=lambda one: -one["score"])[:per_image]
        left += mine
    return left


def iou(found: list[float], truth: list[float]) -> float:
    x, y, w, h = found
    left, top, width, height = truth
    across = min(x + w, left + width) - max(x, left)
    down = min(y + h, top + height) - max(y, top)
    if across <= 0 or down <= 0:
        return 0.0
    shared = across * down
    return shared / (w * h + width * height - shared)


class Match(NamedTuple):
    score: float
    true: bool
    ignored: bool


def match_group(
    found: list[Record],
    truths: list[Record],
    area: tuple[float, float],
    threshold: float,
    *,
    not_exhaustive: bool,
) -> list[Match]:
    """Match the detections of one image and class; those of highest score first."""
    low, high = area
    found = sorted(found, key=lambda one: -one["score"])
    ignored = [bool(one.get("ignore", 0)) or not low <= one["area"] <= high for one in truths]
    order = sorted(range(len(truths)), key=lambda row: ignored[row])
    taken: set[int] = set()
    matches = []
    for one in found:
        best, best_overlap = None, min(threshold, 1 - 1e-10)
        for row in order:
            if row in taken:
                continue
            if best is not None and not ignored[best] and ignored[row]:
                break
            overlap = iou(one["bbox"], truths[row]["bbox"])
            if overlap < best_overlap:
                continue
            best, best_overlap = row, overlap
        size = one["bbox"][2] * one["bbox"][3]
        if best is None:
            matches.append(Match(one["score"], False, not_exhaustive or not low <= size <= high))
            continue
        taken.add(best)
        if truths[best]["id"] == 0:  # stored as the id of the match, which reads as none
            outside = not_exhaustive or not low <= size <= high
            matches.append(Match(one["score"], False, ignored[best] or outside))
        else:
            matches.append(Match(one["score"], not ignored[best], ignored[best]))
    return matches


def curve(matches: list[Match], positives: int) -> tuple[list[float], float]:
    """Precision at the recall points, and the recall reached."""
    counted = [one for one in sorted(matches, key=lambda one: -one.score) if not one.ignored]
    precision, recall = [], []
    true = false = 0
    for one in counted:
        true, false = true + one.true, false + (not one.true)
        precision.append(true / (false + true + np.spacing(1)))
        recall.append(true / positives)
    for place in range(len(precision) - 1, 0, -1):
        precision[place - 1] = max(precision[place - 1], precision[place])
    reached = recall[-1] if recall else 0.0
    points = []
    for point in RECALLS:
        first = next((place for place, value in enumerate(recall) if value >= point), None)
        points.append(0.0 if first is None else precision[first])
    return points, reached


def evaluate(
    dataset: Record, results: list[Record], *, per_image: int | None = 300, per_class: int | None = None
) -> Arrays:
    labels = sorted(one["id"] for one in dataset["categories"])
    images = sorted(dataset["images"], key=lambda one: one["id"])
    truths = [one for one in dataset["annotations"] if has_area(one["area"])]
    found = capped(results, per_image=per_image, per_class=per_class)
    found = [one for one in found if has_area(one["bbox"][2] * one["bbox"][3])]
    precision = -np.ones((len(THRESHOLDS), len(RECALLS), len(labels), len(AREAS)))
    recall = -np.ones((len(THRESHOLDS), len(labels), len(AREAS)))
    for k, label in enumerate(labels):
        for a, area in enumerate(AREAS):
            for t, threshold in enumerate(THRESHOLDS):
                matches: list[Match] = []
                positives = 0
                for image in images:
                    here = [
                        one
                        for one in truths
                        if one["image_id"] == image["id"] and one["category_id"] == label
                    ]
                    if not here and label not in image["neg_category_ids"]:
                        continue  # nobody looked for the class in this image
                    mine = [
                        one for one in found if one["image_id"] == image["id"] and one["category_id"] == label
                    ]
                    positives += sum(
                        area[0] <= one["area"] <= area[1] and not one.get("ignore", 0) for one in here
                    )
                    partly = label in image["not_exhaustive_category_ids"]
                    matches += match_group(mine, here, area, float(threshold), not_exhaustive=partly)
                if positives:
                    precision[t, :, k, a], recall[t, k, a] = curve(matches, positives)
    return Arrays(precision, recall)
