"""Made-up data sets: few images and classes, and every rule of LVIS or of Open Images in play."""

from __future__ import annotations

from typing import Any

import numpy as np

from oracles.open_images import Found, Mask, Truth

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


OpenImagesCase = tuple[list[Truth], list[Found], set[tuple[int, int]], int, int]


def tied(case: OpenImagesCase, seed: int) -> OpenImagesCase:
    """Draw seven scores in ten anew, from three values."""
    rng = np.random.default_rng([seed, 1])
    few = rng.choice([-0.5, 0.5, 6.0], len(case[1])).tolist()
    again = (rng.random(len(case[1])) < 0.7).tolist()
    found = [
        one._replace(score=score) if change else one
        for one, score, change in zip(case[1], few, again, strict=True)
    ]
    return case[0], found, *case[2:]


def open_images_case(seed: int) -> OpenImagesCase:
    """Return objects and groups, detections of different scores, labels of images, images and classes."""
    rng = np.random.default_rng(seed)
    images, labels = int(rng.integers(1, 5)), int(rng.integers(1, 12))
    truths, found = [], []
    for image in range(images):
        for _ in range(int(rng.integers(0, 7))):
            corners = _corners(rng)
            truths.append(Truth(image, int(rng.integers(labels)), corners, bool(rng.random() < 0.35)))
    scores = (rng.permutation(400) - (0 if rng.random() < 0.7 else 200)) / 16
    for _ in range(int(rng.integers(0, 25))):
        if truths and rng.random() < 0.8:
            near = truths[rng.integers(len(truths))]
            corners = tuple(value + float(rng.integers(-3, 4)) for value in near.box)
            image, label = near.image, near.label if rng.random() < 0.9 else int(rng.integers(labels))
        else:
            corners, image, label = _corners(rng), int(rng.integers(images)), int(rng.integers(labels))
        found.append(Found(image, label, corners, float(scores[len(found)])))
    listed = {(image, label) for image in range(images) for label in range(labels) if rng.random() < 0.4}
    return truths, found, listed, images, labels


def open_images_mask_case(seed: int) -> OpenImagesCase:
    """Return the same with masks: of most objects, of all detections, whose boxes are those around them."""
    rng = np.random.default_rng(seed)
    truths, found, listed, images, labels = open_images_case(seed)
    kinds = rng.choice(["mask", "box", "empty"], len(truths), p=[0.6, 0.3, 0.1]).tolist()
    masks = {"mask": _drawn, "box": lambda *_: None, "empty": lambda *_: np.zeros(SIZE, dtype=np.uint8)}
    truths = [one._replace(mask=masks[kind](one.box, rng)) for one, kind in zip(truths, kinds, strict=True)]
    drawn = [(one, _drawn(one.box, rng)) for one in found]
    return truths, [one._replace(mask=mask, box=_around(mask)) for one, mask in drawn], listed, images, labels


SIZE = (36, 40)


def _drawn(box: tuple[float, float, float, float], rng: np.random.Generator) -> Mask:
    """A box with a corner missing at times, cut at the image's edges."""
    left, top, right, bottom = (max(0, int(value)) for value in box)
    mask = np.zeros(SIZE, dtype=np.uint8)
    mask[top:bottom, left:right] = 1
    if rng.random() < 0.4:
        mask[top : top + int(rng.integers(0, 5)), left : left + int(rng.integers(0, 5))] = 0
    return mask


def _around(mask: Mask) -> tuple[float, float, float, float]:
    rows, columns = np.nonzero(mask)
    if not len(rows):
        return 0.0, 0.0, 0.0, 0.0
    ends = columns.min(), rows.min(), columns.max() + 1, rows.max() + 1
    return tuple(map(float, ends))  # type: ignore[return-value]


def _corners(rng: np.random.Generator) -> tuple[float, float, float, float]:
    x, y = rng.integers(0, 20, 2).tolist()
    width, height = rng.integers(2, 14, 2).tolist()
    return float(x), float(y), float(x + width), float(y + height)
