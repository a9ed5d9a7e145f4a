"""Open Images' rules in plain Python, from their description: every rule is an ``if`` in a loop. Boxes only.

What evaluates goes image by image and class by class as the TensorFlow Object Detection API does: a list of
entries (score, value) per image, and one curve per class over the lists. It shares no code with boxscore.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

Box = tuple[float, float, float, float]
Entry = tuple[float, float]


class Truth(NamedTuple):
    image: int
    label: int
    box: Box
    group: bool


class Found(NamedTuple):
    image: int
    label: int
    box: Box
    score: float


class Rules(NamedTuple):
    """``verified`` holds the images and classes with a label; None: every class counts everywhere (V2)."""

    weight: float
    verified: set[tuple[int, int]] | None


def area(box: Box) -> float:
    return (box[2] - box[0]) * (box[3] - box[1])


def shared(one: Box, other: Box) -> float:
    across = min(one[2], other[2]) - max(one[0], other[0])
    down = min(one[3], other[3]) - max(one[1], other[1])
    return max(across, 0.0) * max(down, 0.0)


def iou(found: Box, truth: Box) -> float:
    inside = shared(found, truth)
    return inside / (area(found) + area(truth) - inside) if inside else 0.0


def best(values: list[float]) -> int:
    """Where the largest value is, of equal ones the first."""
    return values.index(max(values))


def entries_of(found: list[Found], truths: list[Truth], weight: float) -> list[Entry]:
    """The entries of one image and class."""
    order = sorted(reversed(range(len(found))), key=lambda row: -found[row].score)[:10_000]  # noqa: C414 - stable: the later first
    ordinary = [one for one in truths if not one.group]
    groups = [one for one in truths if one.group]
    free = [True] * len(ordinary)
    remembered: list[float | None] = [None] * len(groups)
    kept: list[Entry] = []
    for row in order:
        one = found[row]
        if ordinary:
            values = [iou(one.box, truth.box) for truth in ordinary]
            candidate = best(values)
            if values[candidate] >= 0.5 and free[candidate]:
                free[candidate] = False
                kept.append((one.score, 1.0))
                continue
        if groups:
            shares = [shared(one.box, group.box) / area(one.box) for group in groups]
            candidate = best(shares)
            if shares[candidate] >= 0.5:
                before = remembered[candidate]
                remembered[candidate] = one.score if before is None else max(before, one.score)
                continue
        kept.append((one.score, 0.0))
    if weight > 0:
        kept += [(score, weight) for score in remembered if score is not None and score > 0]
    return kept


def average_precision(entries: list[Entry], positives: float) -> float:
    entries = sorted(reversed(entries), key=lambda entry: -entry[0])  # noqa: C414 - the last image first
    recall, precision = [0.0], [0.0]
    true = false = 0.0
    for _, value in entries:
        true, false = true + value, false + (value <= 0)
        recall.append(true / positives)
        precision.append(true / (true + false) if true + false else 0.0)
    recall.append(1.0)
    precision.append(0.0)
    for place in range(len(precision) - 2, -1, -1):
        precision[place] = max(precision[place], precision[place + 1])
    steps = [
        (recall[place] - recall[place - 1]) * precision[place]
        for place in range(1, len(recall))
        if recall[place] != recall[place - 1]
    ]
    return float(np.sum(steps))


def evaluate(truths: list[Truth], found: list[Found], images: int, labels: int, rules: Rules) -> list[float]:
    """AP of each class, NaN without an object."""
    values = []
    for label in range(labels):
        entries: list[Entry] = []
        positives = 0.0
        for image in range(images):
            here = [one for one in truths if (one.image, one.label) == (image, label)]
            groups = sum(one.group for one in here)
            positives += len(here) - groups + rules.weight * groups
            if rules.verified is not None and not here and (image, label) not in rules.verified:
                continue
            mine = [
                one
                for one in found
                if (one.image, one.label) == (image, label)
                and one.box[0] < one.box[2]
                and one.box[1] < one.box[3]
                and one.score > -10
            ]
            entries += entries_of(mine, here, rules.weight)
        values.append(average_precision(entries, positives) if positives else math.nan)
    return values
