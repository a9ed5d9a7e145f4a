"""A COCO file with crowds, areas, masks and keypoints, and predictions near its objects, image by image."""

from __future__ import annotations

from typing import Any

import numpy as np
from pycocotools import mask as codes

SIZE = (60, 80)

NAMES = {7: "cat", 3: "dog", 5: "bird"}


def dataset(seed: int = 0, count: int = 16, joints: int = 17) -> dict[str, Any]:
    """Return the parts of a COCO annotation file; one image has no object."""
    random = np.random.default_rng(seed)
    rows: list[dict[str, Any]] = []
    for image in range(count):
        for _ in range(0 if image == 4 else int(random.integers(1, 8))):
            box = random.uniform([0, 0, 6, 6], [40, 30, 40, 30]).round(2).tolist()
            x, y, w, h = box
            points = np.column_stack([x + random.random(joints) * w, y + random.random(joints) * h]).round(1)
            seen = random.integers(0, 3, joints) * (random.random() > 0.15)
            rows.append(
                {
                    "id": len(rows) + 1,
                    "image_id": 100 + image,
                    "category_id": int(random.choice(list(NAMES))),
                    "bbox": box,
                    "area": float(random.uniform(50, 12000)),
                    "iscrowd": int(random.random() < 0.15),
                    "segmentation": [[x, y, x + w, y, x + w, y + h, x, y + h / 2]],
                    "keypoints": np.column_stack([points, seen]).ravel().tolist(),
                    "num_keypoints": int((seen > 0).sum()),
                }
            )
            if rows[-1]["iscrowd"]:
                polygon = codes.frPyObjects(rows[-1]["segmentation"], *SIZE)[0]
                rows[-1]["segmentation"] = {"size": [*SIZE], "counts": polygon["counts"].decode()}
    return {
        "images": [
            {"id": 100 + image, "height": SIZE[0], "width": SIZE[1], "file_name": f"{image}.jpg"}
            for image in range(count)
        ],
        "annotations": rows,
        "categories": [{"id": number, "name": name} for number, name in sorted(NAMES.items())],
    }


def predictions(data: dict[str, Any], seed: int = 1) -> dict[int, dict[str, Any]]:
    """Return arrays by image: boxes [N, 4] of corners in float32, scores, contiguous labels, masks, keypoints."""
    random = np.random.default_rng(seed)
    numbers = {identifier: row for row, identifier in enumerate(sorted(NAMES))}
    made = {}
    for image in data["images"]:
        rows = [row for row in data["annotations"] if row["image_id"] == image["id"]]
        boxes = np.array([row["bbox"] for row in rows]).reshape(-1, 4)
        boxes = np.hstack([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]])
        more = random.uniform([0, 0, 30, 30], [30, 30, 60, 60], (3, 4))
        boxes = np.vstack([boxes + random.normal(0, 1, boxes.shape), more])
        boxes = boxes.clip(0, [80, 60, 80, 60]).astype(np.float32)
        labels = np.array([numbers[row["category_id"]] for row in rows] + [0, 1, 2])
        joints = [np.array(row["keypoints"]).reshape(-1, 3) for row in rows]
        length = len(data["annotations"][0]["keypoints"]) // 3
        points = np.array([*joints, *random.uniform(0, 60, (3, length, 3))]) + random.normal(
            0, 0.4, (1, length, 1)
        )
        x, y = np.arange(SIZE[1]), np.arange(SIZE[0])[:, None]
        made[image["id"]] = {
            "boxes": boxes,
            "scores": (random.integers(1, 40, len(labels)) / 40).astype(np.float32),
            "labels": labels,
            "masks": np.array([(x >= a) & (x < c) & (y >= b) & (y < d) for a, b, c, d in boxes]),
            "keypoints": points.astype(np.float32),
        }
    made[102] = {key: value[:0] for key, value in made[102].items()}  # nothing detected
    return made
