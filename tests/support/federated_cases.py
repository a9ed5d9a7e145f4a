"""Made-up LVIS data sets: few images and classes, and every rule of federated evaluation in play."""

from __future__ import annotations

from typing import Any

import numpy as np

Record = dict[str, Any]


def federated_case(seed: int) -> tuple[Record, list[Record]]:
    """Return ground truth and results, as JSON holds them."""
    rng = np.random.default_rng(seed)
    labels = list(range(1, int(rng.integers(1, 5)) + 1))
    images: list[Record] = []
    annotations: list[Record] = []
    results: list[Record] = []
    scores = rng.permutation(1000) / 1000 if rng.random() < 0.5 else rng.integers(1, 6, 1000) / 10
    first = int(rng.integers(0, 2))
    for image in range(1, int(rng.integers(1, 5)) + 1):
        images.append(
            {
                "id": image,
                "width": 200,
                "height": 200,
                "neg_category_ids": [one for one in labels if rng.random() < 0.3],
                "not_exhaustive_category_ids": [one for one in labels if rng.random() < 0.3],
            }
        )
        boxes = []
        for _ in range(int(rng.integers(0, 5))):
            box = _box(rng)
            boxes.append(box)
            annotations.append(
                {
                    "id": first + len(annotations),
                    "image_id": image,
                    "category_id": int(rng.choice(labels)),
                    "bbox": box,
                    "area": box[2] * box[3]
                    if rng.random() < 0.8
                    else float(rng.choice([0.0, 500.0, 9216.0])),
                    "segmentation": [],
                    **({"ignore": 1} if rng.random() < 0.1 else {}),
                    **({"iscrowd": 1} if rng.random() < 0.1 else {}),
                }
            )
        for _ in range(int(rng.integers(0, 9))):
            near = boxes and rng.random() < 0.7
            box = (
                [value + float(rng.integers(-6, 7)) for value in boxes[rng.integers(len(boxes))]]
                if near
                else _box(rng)
            )
            results.append(
                {
                    "image_id": image,
                    "category_id": int(rng.choice(labels)),
                    "bbox": box,
                    "score": float(scores[len(results)]),
                }
            )
    categories = [
        {"id": one, "name": f"class {one}", "frequency": str(rng.choice(["r", "c", "f"]))} for one in labels
    ]
    return {"images": images, "annotations": annotations, "categories": categories}, results


def _box(rng: np.random.Generator) -> list[float]:
    x, y = rng.integers(0, 120, 2).tolist()
    width, height = rng.choice([0, 4, 16, 32, 40, 96, 100], 2).tolist()
    return [float(x), float(y), float(width), float(height)]
