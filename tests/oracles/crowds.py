"""The rules of pedestrian and face benchmarks in plain Python, as their own scripts walk through the data.

Slow, and written to be read. Boxes are ``x1, y1, x2, y2``. Of CrowdHuman, CityPersons and WIDER FACE the scripts
are in Python and were read line by line; Caltech's and VisDrone's are in MATLAB, which was not run.
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np

Box = tuple[float, float, float, float]


class Truth(NamedTuple):
    box: Box
    ignore: bool = False
    height: float = 0.0
    visibility: float = 1.0
    settings: tuple[int, ...] = ()
    label: int = 0


class Found(NamedTuple):
    box: Box
    score: float
    label: int = 0


Image = tuple[list[Truth], list[Found]]
Judged = tuple[float, int]  # score, and 1 for a true positive, 0 for a false one


def shared(a: Box, b: Box) -> float:
    wide, high = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    return max(0, wide) * max(0, high)


def area(box: Box) -> float:
    return (box[2] - box[0]) * (box[3] - box[1])


def by_score(items: list[Judged]) -> list[Judged]:
    return sorted(items, key=lambda item: item[0], reverse=True)


# ---------------------------------------------------------------- CrowdHuman

ANCHORS = [0.0100, 0.0178, 0.03160, 0.0562, 0.1000, 0.1778, 0.3162, 0.5623, 1.000]


def clipped(box: Box, width: float, height: float) -> Box:
    x1, y1, x2, y2 = box
    return (
        min(max(x1, 0), width - 1),
        min(max(y1, 0), height - 1),
        max(min(x2, width), 0),
        max(min(y2, height), 0),
    )


def iou_eps(a: Box, b: Box) -> float:
    inter = shared(a, b)
    return inter / (area(a) + area(b) - inter + 1e-6)


def ioa_eps(a: Box, region: Box) -> float:
    return shared(a, region) / (area(a) + 1e-6)


def crowdhuman(images: list[Image], width: float, height: float) -> dict[str, float]:
    scene = [
        (
            [truth._replace(box=clipped(truth.box, width, height)) for truth in truths],
            [item._replace(box=clipped(item.box, width, height)) for item in found],
        )
        for truths, found in images
    ]
    judged: list[Judged] = []
    for truths, found in scene:
        persons = [truth.box for truth in truths if not truth.ignore]
        regions = [truth.box for truth in truths if truth.ignore]
        taken: set[int] = set()
        for item in sorted(found, key=lambda item: item.score, reverse=True):
            best, at = 0.5, -1
            for number, person in enumerate(persons):
                if number not in taken and iou_eps(item.box, person) > best:
                    best, at = iou_eps(item.box, person), number
            if at >= 0:
                taken.add(at)
                judged.append((item.score, 1))
            elif not any(ioa_eps(item.box, region) > 0.5 for region in regions):
                judged.append((item.score, 0))
    count = sum(not truth.ignore for truths, _ in scene for truth in truths)
    return {**crowd_curve(by_score(judged), count, len(images)), "JI": jaccard(scene)}


def crowd_curve(judged: list[Judged], count: int, images: int) -> dict[str, float]:
    true = false = 0.0
    spent, missed, recall, precision = [], [], [], []
    for _, hit in judged:
        true, false = true + hit, false + (not hit)
        spent.append(false / images)
        missed.append(1.0 - true / count)
        recall.append(true / count)
        precision.append(true / (true + false))
    ap = 0.0
    for i in range(1, len(recall)):
        ap += (recall[i] - recall[i - 1]) * ((precision[i - 1] + precision[i]) / 2)
    at = [next((i for i, value in enumerate(spent) if value >= a), len(spent) - 1) for a in ANCHORS]
    if not judged:
        return {"AP": ap, "MR": math.nan}
    with np.errstate(divide="ignore"):
        return {"AP": ap, "MR": float(np.exp(np.log(np.array([missed[i] for i in at])).mean()))}


def jaccard(scene: list[Image]) -> float:
    results = []
    for step in range(10):
        ratios, there = [], 0
        for truths, found in scene:
            chosen = [item.box for item in found if item.score > 1e-1 * step]
            persons = [truth.box for truth in truths if not truth.ignore]
            regions = [truth.box for truth in truths if truth.ignore]
            pairs = heaviest(
                [[iou_eps(a, b) if iou_eps(a, b) > 0.5 else 0.0 for b in persons] for a in chosen]
            )
            left = [box for i, box in enumerate(chosen) if i not in {a for a, _ in pairs}]
            unseen = [box for i, box in enumerate(persons) if i not in {b for _, b in pairs}]
            n = len(chosen) - sum(any(ioa_eps(box, region) > 0.5 for region in regions) for box in left)
            m = len(persons) - sum(any(ioa_eps(box, region) > 0.5 for region in regions) for box in unseen)
            there += n != 0 or m != 0
            ratios.append(len(pairs) / (m + n - len(pairs) + 1e-6))
        results.append(sum(ratios) / there if there else math.nan)
    return max(results)


def heaviest(weights: list[list[float]]) -> list[tuple[int, int]]:
    """Try every way to match; the heaviest."""
    best: tuple[float, list[tuple[int, int]]] = (0.0, [])

    def walk(row: int, used: frozenset[int], total: float, pairs: list[tuple[int, int]]) -> None:
        nonlocal best
        if total > best[0]:
            best = (total, pairs)
        if row == len(weights):
            return
        walk(row + 1, used, total, pairs)
        for column, weight in enumerate(weights[row]):
            if weight and column not in used:
                walk(row + 1, used | {column}, total + weight, [*pairs, (row, column)])

    walk(0, frozenset(), 0.0, [])
    return best[1]


# ---------------------------------------------------------------- CityPersons and Caltech

CITY = {
    "reasonable": ((50, math.inf), (0.65, math.inf)),
    "small": ((50, 75), (0.65, math.inf)),
    "heavy": ((50, math.inf), (0.2, 0.65)),
    "all": ((20, math.inf), (0.2, math.inf)),
}
CALTECH = {name: CITY[name] for name in ("reasonable", "heavy", "all")}


def dollar(
    truths: list[Truth], ignored: list[bool], found: list[Found], threshold: float, aspect: float | None
) -> list[Judged]:
    """``evalRes``: the later of equals, regions last, each by intersection over the detection."""
    order = [i for i, flag in enumerate(ignored) if not flag] + [i for i, flag in enumerate(ignored) if flag]
    taken: set[int] = set()
    judged = []
    for item in sorted(found, key=lambda item: -item.score):
        best, at, kind = threshold, None, 0
        for i in order:
            if i in taken:
                continue
            if kind != 0 and ignored[i]:
                break
            value = dollar_overlap(item.box, truths[i].box, ignored[i], aspect)
            if value < best:
                continue
            best, at, kind = value, i, -1 if ignored[i] else 1
        if kind == 1 and at is not None:
            taken.add(at)
        if kind != -1:
            judged.append((item.score, kind))
    return judged


def resized(box: Box, aspect: float) -> Box:
    wider = aspect * (box[3] - box[1]) - (box[2] - box[0])
    x1, width = box[0] - wider / 2, box[2] - box[0] + wider
    return (x1, box[1], x1 + width, box[3])


def dollar_overlap(a: Box, b: Box, is_region: bool, aspect: float | None) -> float:
    if aspect is not None:
        a, b = resized(a, aspect), b if is_region else resized(b, aspect)
    inter = shared(a, b)
    if inter <= 0:
        return 0.0
    return inter / (area(a) if is_region else area(a) + area(b) - inter)


def pedestrians(images: list[Image], *, caltech: bool) -> dict[str, float]:
    values = {}
    for name, (heights, visible) in (CALTECH if caltech else CITY).items():
        judged: list[Judged] = []
        count = 0
        for truths, found in images:
            ignored = []
            for truth in truths:
                outside = not (
                    heights[0] <= truth.height <= heights[1] and visible[0] <= truth.visibility <= visible[1]
                )
                x1, y1, x2, y2 = truth.box
                beyond = caltech and not (x1 >= 5 and y1 >= 5 and x2 <= 635 and y2 <= 475)
                ignored.append(truth.ignore or outside or beyond)
            kept = [
                item for item in found if heights[0] / 1.25 <= item.box[3] - item.box[1] < heights[1] * 1.25
            ]
            judged += dollar(truths, ignored, kept, 0.5, 0.41 if caltech else None)
            count += ignored.count(False)
        values[name] = log_average_miss_rate(by_score(judged), count, len(images), caltech=caltech)
    return values


def log_average_miss_rate(judged: list[Judged], count: int, images: int, *, caltech: bool) -> float:
    if not count:
        return math.nan
    true, false = np.cumsum([hit for _, hit in judged]), np.cumsum([1 - hit for _, hit in judged])
    recall, spent = true / count, false / images
    anchors = 10.0 ** np.linspace(-2, 0, 9) if caltech else np.array([*ANCHORS[:2], 0.0316, *ANCHORS[3:]])
    missed = []
    for anchor in anchors:
        last = int(np.searchsorted(spent, anchor, side="right")) - 1
        if last < 0 and (caltech or not judged):
            missed.append(1.0)
        else:
            missed.append(1 - recall[last])  # -1 is the end of the list in Python
    with np.errstate(divide="ignore"):
        return float(np.exp(np.mean(np.log(missed))))


# ---------------------------------------------------------------- WIDER FACE


def widerface(images: list[Image]) -> dict[str, float]:
    scores = [item.score for _, found in images for item in found]
    low, high = min([1.0, *scores]), max([0.0, *scores])
    values = {}
    for number, setting in enumerate(("easy", "medium", "hard")):
        points = np.zeros((1000, 2))
        faces = 0
        for truths, found in images:
            faces += sum(truth.settings[number] for truth in truths)
            if not truths or not found:
                continue
            state, proposal, recalled = [0] * len(truths), [1] * len(found), []
            for row, item in enumerate(found):  # in file order
                overlaps = [overlap_plus_one(item.box, truth.box) for truth in truths]
                best = int(np.argmax(overlaps))
                if overlaps[best] >= 0.5:
                    if not truths[best].settings[number]:
                        state[best], proposal[row] = -1, -1
                    elif state[best] == 0:
                        state[best] = 1
                recalled.append(state.count(1))
            for t in range(1000):
                bar = 1 - (t + 1) / 1000
                rows = [i for i, item in enumerate(found) if (item.score - low) / (high - low) >= bar]
                if rows:
                    points[t] += (proposal[: rows[-1] + 1].count(1), recalled[rows[-1]])
        with np.errstate(invalid="ignore", divide="ignore"):
            precision, recall = points[:, 1] / points[:, 0], points[:, 1] / np.float64(faces)
        values[setting] = voc_area(recall, precision) if faces else math.nan
    return values


def overlap_plus_one(a: Box, b: Box) -> float:
    wide, high = min(a[2], b[2]) - max(a[0], b[0]) + 1, min(a[3], b[3]) - max(a[1], b[1]) + 1
    if wide <= 0 or high <= 0:
        return 0.0
    whole = (a[2] - a[0] + 1) * (a[3] - a[1] + 1) + (b[2] - b[0] + 1) * (b[3] - b[1] + 1)
    return wide * high / (whole - wide * high)


def voc_area(recall: np.ndarray, precision: np.ndarray) -> float:  # type: ignore[type-arg]
    x, y = np.concatenate([[0.0], recall, [1.0]]), np.concatenate([[0.0], precision, [0.0]])
    for i in range(len(y) - 1, 0, -1):
        y[i - 1] = np.maximum(y[i - 1], y[i])
    steps = np.where(x[1:] != x[:-1])[0]
    return float(np.sum((x[steps + 1] - x[steps]) * y[steps + 1]))


# ---------------------------------------------------------------- VisDrone


def visdrone(images: list[Image], width: int, height: int) -> dict[str, float]:
    """Class 0 are regions, 11 others; detections stand in file order, best first."""
    left = []
    for truths, found in images:
        covered = np.zeros((height + 1, width + 1), dtype=int)
        regions = [truth for truth in truths if truth.label == 0]
        for region in regions:
            x, y, w, h = (max(1, half_away(value)) for value in as_sides(region.box))
            covered[y : min(height, y + h) + 1, x : min(width, x + w) + 1] = 1

        def stays(box: Box, covered: np.ndarray = covered, any_region: bool = bool(regions)) -> bool:  # type: ignore[type-arg]
            x, y, w, h = (max(1, half_away(value)) for value in as_sides(box))
            if not any_region:
                return True
            x, y = min(width, x), min(height, y)
            inside = covered[y + 1 : min(height, y + h) + 1, x + 1 : min(width, x + w) + 1].sum()
            return bool(inside / (h * w) < 0.5)

        left.append(
            (
                [truth for truth in truths if truth.label != 0 and stays(truth.box)],
                [item for item in found if stays(item.box)],
            )
        )
    thresholds = [0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.95 - 3 * 0.05, 0.95 - 2 * 0.05, 0.95 - 0.05, 0.95]
    ap, ar = np.zeros((11, 10)), np.zeros((11, 10, 4))
    evaluated = [k for k in range(1, 11) for truths, _ in left if any(truth.label == k for truth in truths)]
    for k, (x, threshold), (y, cap) in itertools.product(
        range(1, 11), enumerate(thresholds), enumerate((1, 10, 100, 500))
    ):
        judged: list[Judged] = []
        total = 0
        for truths, found in left:
            mine = [truth for truth in truths if truth.label == k]
            total += len(mine)
            chosen = [item for item in found[:cap] if item.label == k]
            judged += dollar(mine, [truth.ignore for truth in mine], chosen, threshold, None)
        hits = np.array([hit for _, hit in by_score(judged)], dtype=float)
        true, false = np.cumsum(hits), np.cumsum(1 - hits)
        recall = true / max(1, total)
        ar[k, x, y] = recall.max(initial=0)
        ap[k, x] = voc_area(recall, true / np.maximum(1, true + false)) if len(hits) else 0.0
    return {
        "AP": ap[evaluated].mean(),
        "AP50": ap[evaluated, 0].mean(),
        "AP75": ap[evaluated, 5].mean(),
        **{f"AR{cap}": ar[evaluated, :, y].mean() for y, cap in enumerate((1, 10, 100, 500))},
    }


def as_sides(box: Box) -> Box:
    return (box[0], box[1], box[2] - box[0], box[3] - box[1])


def half_away(value: float) -> int:
    return int(math.copysign(math.floor(abs(value) + 0.5), value))
