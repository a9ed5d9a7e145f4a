"""Many copies of few boxes: the same result as box by box, and work that grows with their number alone."""

import numpy as np
import pytest

from boxscore.similarity.measures import BoxMeasure
from boxscore.suppression import nms, suppress_boxes

THRESHOLDS = (0.0, 0.3, 0.5, 0.8, 0.95)


def greedy(boxes, scores, groups, threshold, offset=0):
    """Take the best box left, drop what overlaps it, repeat: NumPy row by row."""
    x1, y1, x2, y2 = boxes.T
    area = (x2 - x1 + offset) * (y2 - y1 + offset)
    order = np.lexsort((np.arange(len(boxes)), -scores))
    by = np.full(len(boxes), -2)
    for row in order.tolist():
        if by[row] != -2:
            continue
        by[row] = -1
        wide = np.maximum(np.minimum(x2, x2[row]) - np.maximum(x1, x1[row]) + offset, 0)
        high = np.maximum(np.minimum(y2, y2[row]) - np.maximum(y1, y1[row]) + offset, 0)
        with np.errstate(invalid="ignore", divide="ignore"):
            iou = wide * high / (area + area[row] - wide * high)
        by[(by == -2) & (groups == groups[row]) & (iou > threshold)] = row
    return by


def copied(seed):
    """Boxes of which some have no area, each many times, some moved by a hair; in one to three groups."""
    random = np.random.default_rng(seed)
    count = int(random.integers(1, 12))
    corner, size = random.random((count, 2)) * 60, random.random((count, 2)) * 50
    size[random.random(count) < 0.2] = 0
    boxes = np.concatenate([corner, corner + size], axis=1)[random.integers(0, count, 3000)]
    moved = random.random(len(boxes)) < random.choice([0, 0.1, 0.9])
    boxes[moved, :2] -= random.random((moved.sum(), 2)) * 0.01
    scores = np.round(random.random(len(boxes)), int(random.integers(0, 5)))
    return boxes, scores, random.integers(0, random.integers(1, 4), len(boxes))


@pytest.mark.parametrize("seed", range(12))
def test_copies_as_box_by_box(seed):
    boxes, scores, groups = copied(seed)
    threshold, offset = THRESHOLDS[seed % len(THRESHOLDS)], seed % 2
    expected = greedy(boxes, scores, groups, threshold, offset)
    result = suppress_boxes(boxes, scores, threshold, groups=groups, pixel_offset=offset)
    assert result.suppressed_by.tolist() == expected.tolist()
    kept = np.flatnonzero(expected == -1)
    assert result.indices.tolist() == sorted(kept.tolist(), key=lambda row: (-scores[row], row))


@pytest.mark.parametrize("moved", [0.0, 0.01])
def test_work_per_box_is_constant(moved, monkeypatch):
    """282 boxes, 25 and 100 times: measured pairs per box do not grow. Before, they grew as the copies."""
    measured = []
    between = BoxMeasure.between

    def counting(self, first, second):
        measured.append(len(first))
        return between(self, first, second)

    monkeypatch.setattr(BoxMeasure, "between", counting)
    random = np.random.default_rng(0)
    corner, size = random.random((282, 2)) * 400, random.uniform(20, 120, (282, 2))
    once, scores = np.concatenate([corner, corner + size], axis=1), np.round(random.random(282), 2)
    per_box = []
    for copies in (25, 100):
        measured.clear()
        boxes = np.tile(once, (copies, 1))
        boxes[:, 2:] += random.random((len(boxes), 2)) * moved
        nms(boxes, np.tile(scores, copies), 0.5)
        per_box.append(sum(measured) / len(boxes))
    assert per_box[1] < (1.2 if moved == 0 else 1.8) * per_box[0], per_box
