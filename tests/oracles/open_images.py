"""Open Images' rules in plain Python, from their description: every rule is an ``if`` in a loop.

What evaluates goes image by image and class by class as the TensorFlow Object Detection API does: a list of
entries (score, value) per image, and one curve per class over the lists. It shares no code with boxscore.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

Box = tuple[float, float, float, float]
Entry = tuple[float, float]


Mask = np.ndarray[tuple[int, int], np.dtype[np.uint8]]


class Truth(NamedTuple):
    image: int
    label: int
    box: Box
    group: bool
    mask: Mask | None = None


class Found(NamedTuple):
    image: int
    label: int
    box: Box
    score: float
    mask: Mask | None = None


class Rules(NamedTuple):
    """``verified`` holds the images and classes with a label; None: every class counts everywhere (V2)."""

    weight: float
    verified: set[tuple[int, int]] | None
    masks: bool = False


def area(box: Box) -> float:
    return (box[2] - box[0]) * (box[3] - box[1])


def shared(one: Box, other: Box) -> float:
    across = min(one[2], other[2]) - max(one[0], other[0])
    down = min(one[3], other[3]) - max(one[1], other[1])
    return max(across, 0.0) * max(down, 0.0)


def iou(found: Box, truth: Box) -> float:
    inside = shared(found, truth)
    return inside / (area(found) + area(truth) - inside) if inside else 0.0


def ioa(found: Box, truth: Box) -> float:
    return shared(found, truth) / area(found)


def pixels(mask: Mask) -> np.float32:
    return np.sum(mask, dtype=np.float32)


def mask_iou(found: Mask, truth: Mask) -> float:
    inside = pixels(np.minimum(found, truth))
    return float(inside / max(pixels(found) + pixels(truth) - inside, np.float32(1e-7)))


def mask_ioa(found: Mask, truth: Mask) -> float:
    return float(pixels(np.minimum(found, truth)) / (pixels(found) + np.float32(1e-7)))


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


def mask_entries_of(found: list[Found], truths: list[Truth], weight: float) -> list[Entry]:
    """The entries of one image and class where masks are compared, step by step."""
    order = sorted(reversed(range(len(found))), key=lambda row: -found[row].score)[:10_000]  # noqa: C414 - stable: the later first
    drawn = [one for one in truths if one.mask is not None and one.mask.any()]
    boxes = [one for one in truths if one.mask is None or not one.mask.any()]
    true, gone = set(), set()
    ordinary, groups = ([one for one in drawn if one.group is kind] for kind in (False, True))
    free = [True] * len(ordinary)
    for row in order:
        values = [mask_iou(found[row].mask, truth.mask) for truth in ordinary]
        if values and values[best(values)] >= 0.5 and free[best(values)]:
            free[best(values)] = False
            true.add(row)
    remembered: list[float | None] = [None] * len(groups)
    for row in order:
        values = [mask_ioa(found[row].mask, group.mask) for group in groups]
        if values and row not in true and values[best(values)] >= 0.5:
            before = remembered[best(values)]
            remembered[best(values)] = found[row].score if before is None else max(before, found[row].score)
            gone.add(row)
    ordinary, groups = ([one for one in boxes if one.group is kind] for kind in (False, True))
    free = [True] * len(ordinary)
    for row in order:
        values = [iou(found[row].box, truth.box) for truth in ordinary]
        if values and row not in true | gone and values[best(values)] >= 0.5 and free[best(values)]:
            free[best(values)] = False
            gone.add(row)
    for row in order:
        values = [ioa(found[row].box, group.box) for group in groups]
        if values and row not in true | gone and values[best(values)] >= 0.5:
            gone.add(row)
    kept = [(found[row].score, float(row in true)) for row in order if row not in gone]
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
            counted = [one for one in here if not rules.masks or (one.mask is not None and one.mask.any())]
            groups = sum(one.group for one in counted)
            positives += len(counted) - groups + rules.weight * groups
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
            entries += (mask_entries_of if rules.masks else entries_of)(mine, here, rules.weight)
        values.append(average_precision(entries, positives) if positives else math.nan)
    return values


def expanded(
    truths: list[Truth], found: list[Found], verified: dict[tuple[int, int], bool], parents: list[list[int]]
) -> tuple[list[Truth], list[Found], set[tuple[int, int]]]:
    """Give everything to all classes above its own; what is not there (False) is of none of those below either."""
    above: list[set[int]] = []
    for own in parents:  # those of a class come before it
        above.append(set())
        for parent in own:
            above[-1] |= {parent} | above[parent]
    pairs: set[tuple[int, int]] = set()
    for (image, label), there in verified.items():
        pairs.add((image, label))
        for other in range(len(parents)):
            if other in above[label] if there else label in above[other]:
                pairs.add((image, other))
    more_truths = [
        one._replace(label=label) for one in truths for label in [one.label, *sorted(above[one.label])]
    ]
    more_found = [
        one._replace(label=label) for one in found for label in [one.label, *sorted(above[one.label])]
    ]
    return more_truths, more_found, pairs
