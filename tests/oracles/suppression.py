"""Slow and obvious: each member of the family as its paper's loop, on a full matrix of overlaps."""

from __future__ import annotations

import numpy as np

from boxscore.similarity.box import box_iou, distance_box_iou


def overlaps(boxes, *, box_format="xyxy", pixel_offset=0, overlap="iou"):
    boxes = np.asarray(boxes, dtype=float).reshape(-1, 4)
    form = {"box_format": box_format, "pixel_offset": pixel_offset}
    if overlap == "diou":
        diou = distance_box_iou(boxes, boxes, **form)
        return np.minimum(np.where(box_iou(boxes, boxes, **form) > 0, diou, 0), 1)
    if overlap == "ios":
        iou = box_iou(boxes, boxes, **form)
        areas = np.diag(box_iou(boxes, boxes, **form))  # 1, or 0 without area
        assert set(areas.round(9)) <= {0, 1}
        size = np.array([_area(box, box_format, pixel_offset) for box in boxes])
        total = size[:, None] + size[None, :]
        shared = _shared(boxes, box_format, pixel_offset)
        smaller = np.minimum(size[:, None], size[None, :])
        assert np.allclose(iou * (total - shared), shared)
        return np.minimum(np.divide(shared, smaller, out=np.zeros_like(shared), where=smaller > 0), 1)
    return np.minimum(box_iou(boxes, boxes, **form), 1)


def _corners(box, box_format):
    a, b, c, d = box
    if box_format == "xywh":
        return a, b, a + c, b + d
    if box_format == "cxcywh":
        return a - c / 2, b - d / 2, a - c / 2 + c, b - d / 2 + d
    return a, b, c, d


def _area(box, box_format, offset):
    x1, y1, x2, y2 = _corners(box, box_format)
    if box_format == "xyxy":
        return (x2 - x1 + offset) * (y2 - y1 + offset)
    return (box[2] + offset) * (box[3] + offset)


def _shared(boxes, box_format, offset):
    corners = np.array([_corners(box, box_format) for box in boxes]).reshape(-1, 4)
    size = (
        np.minimum(corners[:, None, 2:], corners[None, :, 2:])
        - np.maximum(corners[:, None, :2], corners[None, :, :2])
        + offset
    )
    return np.where((size > 0).all(-1), size.prod(-1), 0)


def best_first(scores):
    return sorted(range(len(scores)), key=lambda i: (-float(scores[i]), i))


def hard(matrix, scores, groups, threshold):
    """Rows kept, best first, and who dropped each box."""
    dropped_by = np.full(len(scores), -1)
    kept = []
    groups = np.asarray(groups)
    alive = np.ones(len(scores), dtype=bool)
    for i in best_first(scores):
        if not alive[i]:
            continue
        kept.append(i)
        alive[i] = False
        drops = alive & (groups == groups[i]) & (matrix[i] > threshold)
        dropped_by[drops] = i
        alive &= ~drops
    return kept, dropped_by


def soft(matrix, scores, groups, factor, ignored, floor):
    lowered = np.array(scores, dtype=float)
    left = [i for i in range(len(scores)) if lowered[i] >= floor]
    while left:
        i = min(left, key=lambda j: (-lowered[j], j))
        left.remove(i)
        for j in left:
            if groups[j] == groups[i] and matrix[i, j] > ignored:
                lowered[j] *= factor(matrix[i, j])
        left = [j for j in left if lowered[j] >= floor]
    return lowered


def matrix_decay(matrix, scores, groups, decay):
    order = best_first(scores)
    place = {row: at for at, row in enumerate(order)}
    better = [[i for i in order[: place[j]] if groups[i] == groups[j]] for j in range(len(scores))]
    covered = [max((matrix[k, i] for k in better[i]), default=0) for i in range(len(scores))]
    lowered = np.array(scores, dtype=float)
    for j in range(len(scores)):
        shares = [decay(matrix[i, j]) / decay(covered[i]) for i in better[j] if decay(covered[i]) > 0]
        lowered[j] *= min([1.0, *shares])
    return lowered


def fast(matrix, scores, groups, threshold, rounds):
    order = best_first(scores)
    alive = set(order)
    for _ in range(rounds):
        alive = {
            j
            for at, j in enumerate(order)
            if not any(i in alive and groups[i] == groups[j] and matrix[i, j] > threshold for i in order[:at])
        }
    return [i for i in order if i in alive]


def chained(matrix, scores, groups, threshold):
    """Owner of each box: where the best box it overlaps goes."""
    owner = {}
    order = best_first(scores)
    for at, j in enumerate(order):
        better = (i for i in order[:at] if groups[i] == groups[j] and matrix[i, j] > threshold)
        first = next(better, None)
        owner[j] = j if first is None else owner[first]
    return [owner[j] for j in range(len(scores))]


def fuse(boxes, scores, groups, models, weights, threshold, confidence="average", allow_overflow=False):
    """Weighted boxes fusion, one box at a time; (boxes, scores, groups, clusters), not sorted."""
    weighted = [score * weights[model] for score, model in zip(scores, models, strict=True)]
    fused, clusters = [], []
    for i in best_first(weighted):
        best, into = threshold, None
        for number, cluster in enumerate(clusters):
            if groups[cluster[0]] == groups[i]:
                iou = float(box_iou([fused[number]], [boxes[i]])[0, 0])
                if iou > best:
                    best, into = iou, number
        if into is None:
            clusters.append([i])
            fused.append(np.array(boxes[i], dtype=float))
            continue
        clusters[into].append(i)
        total = sum(weighted[k] for k in clusters[into])
        if total > 0:
            fused[into] = sum(weighted[k] * np.array(boxes[k], dtype=float) for k in clusters[into]) / total
    out = []
    for cluster in clusters:
        count, total = len(cluster), sum(weighted[k] for k in cluster)
        trust = sum(weights[models[k]] for k in cluster)
        present = {models[k] for k in cluster}
        if confidence == "average":
            counted = count if allow_overflow else min(count, len(weights))
            out.append(total / count * counted / sum(weights))
        elif confidence == "max":
            out.append(max(weighted[k] for k in cluster) / max(weights))
        elif confidence == "box_and_model_average":
            out.append(total / trust * sum(weights[m] for m in present) / sum(weights))
        else:
            absent = sum(weight for m, weight in enumerate(weights) if m not in present)
            out.append(total / (trust + absent))
    return fused, out, [groups[cluster[0]] for cluster in clusters], clusters


def average_into_survivors(boxes, scores, groups, threshold):
    """Non-maximum weighted of one model; (boxes, scores, clusters)."""
    clusters = []
    for i in best_first(scores):
        best, into = threshold, None
        for number, cluster in enumerate(clusters):
            if groups[cluster[0]] == groups[i]:
                iou = float(box_iou([boxes[cluster[0]]], [boxes[i]])[0, 0])
                if iou > best:
                    best, into = iou, number
        if into is None:
            clusters.append([i])
        else:
            clusters[into].append(i)
    fused = []
    for cluster in clusters:
        weights = [scores[k] * float(box_iou([boxes[cluster[0]]], [boxes[k]])[0, 0]) for k in cluster]
        weights[0] = scores[cluster[0]]
        rows = [np.array(boxes[k], dtype=float) for k in cluster]
        fused.append(
            sum(w * r for w, r in zip(weights, rows, strict=True)) / sum(weights) if sum(weights) else rows[0]
        )
    return fused, [scores[cluster[0]] for cluster in clusters], clusters


def random_case(seed):
    """Boxes, scores and groups of one of many kinds: ties, integer grids, points, copies, wide ranges."""
    random = np.random.default_rng(seed)
    count = int(random.choice([0, 1, 2, 3, 8, 20, 60, 110]))
    kind = int(random.integers(6))
    if kind == 0:  # integer grid, with points and lines
        corner, size = random.integers(-5, 12, (count, 2)), random.integers(0, 8, (count, 2))
    elif kind == 1:
        corner, size = random.random((count, 2)) * 100 - 50, random.random((count, 2)) * 40
    elif kind == 2:  # copies
        corner = np.repeat(random.random((1, 2)), count, 0)
        size = np.repeat(random.random((1, 2)), count, 0) * random.choice([0, 1])
    elif kind == 3:  # sizes over five orders of magnitude
        corner, size = random.random((count, 2)) * 1000, 10 ** random.uniform(-2, 3, (count, 2))
    elif kind == 4:  # many guesses at one object
        corner, size = 100 + random.normal(0, 2, (count, 2)), 50 + random.normal(0, 3, (count, 2))
    else:  # quarters, far from the origin
        corner = random.integers(-40, 40, (count, 2)) / 4 - 3000
        size = random.integers(1, 30, (count, 2)) / 4
    box_format = str(random.choice(["xyxy", "xywh", "cxcywh"]))
    first = corner + size / 2 if box_format == "cxcywh" else corner
    boxes = np.concatenate([first, corner + size if box_format == "xyxy" else size], axis=1)
    boxes = boxes.astype(random.choice(["f4", "f8"]))
    if box_format == "xyxy":
        boxes[:, 2:] = np.maximum(boxes[:, 2:], boxes[:, :2])
    scores = random.random(count) if random.random() < 0.5 else random.integers(0, 4, count) / 4
    scores = scores.astype(random.choice(["f4", "f8"]))
    groups = random.integers(0, random.choice([1, 1, 2, 5, 50, 4000]), count) * int(random.choice([1, 7]))
    threshold = float(random.choice([0, 0.04, 0.1, 0.3, 1 / 3, 0.5, 0.75, 0.95, 1, random.random()]))
    options = {"box_format": box_format, "pixel_offset": int(random.integers(2))}
    return boxes, scores, groups, threshold, options
