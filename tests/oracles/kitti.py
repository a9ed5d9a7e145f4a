"""KITTI's devkit in plain Python, as ``evaluate_object.cpp`` walks through the data: every threshold anew.

Slow, and written to be read. A label is ``(type, truncated, occluded, alpha, box)``; a detection has its score
behind. Boxes are ``x1, y1, x2, y2``.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from oracles.crowds import Box, area, shared

NEIGHBORS = {"Car": ["Van"], "Pedestrian": ["Person_sitting"], "Cyclist": []}
OVERLAP = {"Car": 0.7, "Pedestrian": 0.5, "Cyclist": 0.5}
LEVELS = {"easy": (40, 0, 0.15), "moderate": (25, 1, 0.3), "hard": (25, 2, 0.5)}


class Label(NamedTuple):
    name: str
    truncated: float
    occluded: int
    alpha: float
    box: Box
    score: float = 0.0


Image = tuple[list[Label], list[Label]]


def iou(a: Box, b: Box) -> float:
    inter = shared(a, b)
    return inter / (area(a) + area(b) - inter) if inter > 0 else 0.0


def states(image: Image, name: str, level: str) -> tuple[list[int], list[int]]:
    least, occluded, truncated = LEVELS[level]
    truths, found = [], []
    for label in image[0]:
        valid = 1 if label.name == name else 0 if label.name in NEIGHBORS[name] else -1
        hard = label.occluded > occluded or label.truncated > truncated
        hard = hard or label.box[3] - label.box[1] <= least
        truths.append(-1 if valid == -1 else int(hard or valid == 0))
    for item in image[1]:
        small = item.box[3] - item.box[1] < least
        found.append(1 if small else 0 if item.name == name else -1)
    return truths, found


def statistics(
    image: Image, name: str, level: str, threshold: float | None
) -> tuple[list[float], int, int, float]:
    """Scores of true positives, their number, false positives, and the sum of similarities."""
    least = OVERLAP[name]
    truth_states, states_found = states(image, name, level)
    truths, found = image
    taken = [False] * len(found)
    low = [threshold is not None and item.score < threshold for item in found]
    scores, similarity = [], 0.0
    for truth, state in zip(truths, truth_states, strict=True):
        if state == -1:
            continue
        held, best, holds_ignored = -1, -1e7, False
        for j, item in enumerate(found):
            if states_found[j] == -1 or taken[j] or low[j]:
                continue
            overlap = iou(item.box, truth.box)
            if threshold is None:
                if overlap > least and item.score > best:
                    held, best = j, item.score
            elif overlap > least and (overlap > best or holds_ignored) and states_found[j] == 0:
                held, best, holds_ignored = j, overlap, False
            elif overlap > least and held == -1 and states_found[j] == 1:
                held, best, holds_ignored = j, 0.0, True
        if held == -1:
            continue
        taken[held] = True
        if state == 0 and states_found[held] == 0:
            scores.append(found[held].score)
            similarity += (1 + math.cos(truth.alpha - found[held].alpha)) / 2
    left = [j for j in range(len(found)) if not taken[j] and states_found[j] == 0 and not low[j]]
    regions = [truth.box for truth in truths if truth.name == "DontCare"]
    left = [j for j in left if not any(shared(found[j].box, r) / area(found[j].box) > least for r in regions)]
    return scores, len(scores), len(left), similarity


def thresholds(scores: list[float], count: int) -> list[float]:
    chosen, current = [], 0.0
    scores = sorted(scores, reverse=True)
    for i, score in enumerate(scores):
        left = (i + 1) / count
        right = (i + 2) / count if i < len(scores) - 1 else left
        if right - current < current - left and i < len(scores) - 1:
            continue
        chosen.append(score)
        current += 1.0 / 40
    return chosen


def evaluate(images: list[Image], name: str, level: str) -> dict[str, float]:
    count = sum(states(image, name, level)[0].count(0) for image in images)
    if not count:
        return dict.fromkeys(("AP_R40", "AP_R11", "AOS_R40", "AOS_R11"), math.nan)
    every = [score for image in images for score in statistics(image, name, level, None)[0]]
    precision, aos = [0.0] * 41, [0.0] * 41
    for k, threshold in enumerate(thresholds(every, count)):
        counts = [statistics(image, name, level, threshold) for image in images]
        total = sum(true + false for _, true, false, _ in counts)
        if total:
            precision[k] = sum(true for _, true, _, _ in counts) / total
            aos[k] = sum(similarity for *_, similarity in counts) / total
    numbers = {}
    for key, values in (("AP", precision), ("AOS", aos)):
        best = [max(values[k:]) for k in range(41)]
        numbers[f"{key}_R40"] = sum(best[1:]) / 40
        numbers[f"{key}_R11"] = sum(best[::4]) / 11
    return numbers
