"""A made-up suite: sets whose models find fewer and fewer objects."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

SETS, MODELS = 6, 2


def write_sets(root: Path, *, sets: int = SETS, models: int = MODELS, images: int = 12) -> None:
    """Write sets whose models find fewer and fewer objects."""
    for s in range(sets):
        rng = np.random.default_rng(s)
        folder = root / f"set{s}"
        folder.mkdir(parents=True)
        places = [
            (i, [30.0 * n, 10.0, 20.0, 20.0 + s]) for i in range(images) for n in range(1 + (i + s) % 3)
        ]
        truth = {
            "images": [
                {"id": i, "file_name": f"{i}.jpg", "width": 200, "height": 100} for i in range(images)
            ],
            "categories": [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}],
            "annotations": [
                {"id": n + 1, "image_id": i, "category_id": 1 + n % 2, "bbox": box, "area": 400, "iscrowd": 0}
                for n, (i, box) in enumerate(places)
            ],
        }
        (folder / "instances.json").write_text(json.dumps(truth))
        for m in range(models):
            found = [
                {
                    "image_id": i,
                    "category_id": 1 + n % 2,
                    "bbox": [box[0] + rng.uniform(0, 2 + 3 * m), *box[1:]],
                    "score": round(rng.uniform(0.1, 1), 3),
                }
                for n, (i, box) in enumerate(places)
                if rng.random() < 0.9 - 0.2 * m
            ]
            (folder / f"model{m}.json").write_text(json.dumps(found))


TOML = """
[suite]
name = "test"
ground_truth = "data/{set}/instances.json"
[models]
model0 = "data/{set}/model0.json"
model1 = "data/{set}/model1.json"
[sets.set0]
group = "small"
[sets.set1]
group = ["small", "large"]
[sets.set2]
[sets.set3]
[sets.set4]
[sets.set5]
"""
