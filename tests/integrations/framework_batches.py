"""Batches as training loops have them, and what is equal to the last bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

Batch = list[dict[str, Any]]

CLASSES = 3
SIZE = (64, 60)


def batches(
    seed: int = 0, count: int = 12, *, dtype: Any = torch.float32, ids: bool = False
) -> tuple[Batch, Batch]:
    """Predictions and targets with empty images, equal scores, crowds, and areas that some lack."""
    rng = np.random.default_rng(seed)
    predictions, targets = [], []
    for image in range(count):
        found, truth = _shapes(rng, dtype), _shapes(rng, dtype)
        near = min(len(found["labels"]), len(truth["labels"]))
        moved = torch.tensor(rng.uniform(-0.4, 0.4, (near, 4)), dtype=dtype)
        found["boxes"][:near] = truth["boxes"][:near] + moved
        for key in ("masks", "labels"):
            found[key][:near] = truth[key][:near]
        n = len(truth["labels"])
        found["scores"] = torch.tensor(rng.integers(0, 20, len(found["labels"])) / 20, dtype=dtype)
        if image % 3:
            truth["iscrowd"] = torch.tensor((rng.random(n) < 0.2).astype(int))
        if image % 2:
            stated = np.where(rng.random(n) < 0.3, 0, rng.uniform(1, 3000, n))
            truth["area"] = torch.tensor(stated, dtype=torch.float32)
        if ids:
            truth["image_id"] = torch.tensor([1000 - image])
        predictions.append(found)
        targets.append(truth)
    return predictions, targets


def _shapes(rng: np.random.Generator, dtype: Any) -> dict[str, Any]:
    count = int(rng.integers(0, 9))
    corner = rng.uniform(0, 30, (count, 2))
    boxes = np.concatenate([corner, corner + rng.uniform(1, 25, (count, 2))], axis=1)
    x, y = np.arange(SIZE[1]), np.arange(SIZE[0])[:, None]
    masks = [(x >= b[0]) & (x < b[2]) & (y >= b[1]) & (y < b[3]) for b in boxes.round()]
    return {
        "boxes": torch.tensor(boxes, dtype=dtype),
        "masks": torch.tensor(np.array(masks, dtype=bool).reshape(count, *SIZE)),
        "labels": torch.tensor(rng.integers(0, CLASSES, count)),
    }


def fed(metric: Any, predictions: Batch, targets: Batch, size: int = 5) -> Any:
    """Update a metric batch by batch."""
    for start in range(0, len(predictions), size):
        metric.update(predictions[start : start + size], targets[start : start + size])
    return metric


def unlike(one: dict[str, Any], other: dict[str, Any]) -> set[str]:
    """Keys that one result lacks, or whose types, shapes or float32 bits differ."""
    return {key for key in one.keys() | other.keys() if not _alike(one.get(key), other.get(key))}


def _alike(one: Any, other: Any) -> bool:
    if isinstance(one, dict):
        return isinstance(other, dict) and not unlike(one, other)
    if not (torch.is_tensor(one) and torch.is_tensor(other)):
        return type(one) is type(other) and one == other
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    exact = torch.float32 if one.is_floating_point() else one.dtype
    return one.to(exact).numpy().tobytes() == other.to(exact).numpy().tobytes()
