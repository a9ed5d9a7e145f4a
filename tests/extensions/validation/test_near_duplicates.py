"""Near duplicates: the search of neighbors finds what comparing every pair finds."""

from __future__ import annotations

import numpy as np

import boxscore
from boxscore.extensions.validation.semantic import NEAR, _repeats
from boxscore.similarity.box import box_iou
from support.each import each


@each([(seed, scale) for seed in range(20) for scale in [1.0, 1e-3, 1e5]])
def test_every_pair_is_seen(seed: int, scale: float) -> None:
    random = np.random.default_rng(seed)
    count = 300
    corner, size = random.integers(0, 4, (count, 2)) * 10.0, random.choice([0, 10, 20], (count, 2))
    noise = random.choice([0.0, 0.0, 0.25, 0.5, 1.0], (count, 4))
    boxes = np.concatenate([corner, corner + size + 1], axis=1) + noise * random.choice([-1, 1], (count, 4))
    boxes[:, 2:] = np.maximum(boxes[:, 2:], boxes[:, :2])
    image, name = random.integers(0, 3, count), random.choice(["cat", "dog"], count)
    table = boxscore.GroundTruth.from_arrays(image, name, boxes * scale)
    rows = np.sort(random.choice(count, 250, replace=False))
    near = box_iou(table.boxes, table.boxes) >= NEAR
    near &= (table.image[:, None] == table.image) & (table.category[:, None] == table.category)
    expected = [row for row in rows.tolist() if near[row, rows[rows < row]].any()]
    assert expected
    assert _repeats(table, rows).tolist() == expected
    assert _repeats(table, rows[:0]).tolist() == _repeats(table, rows[:1]).tolist() == []
