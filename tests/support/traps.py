"""What real COCO files hold and made-up ones do not: ids from 0, rows of nothing listed, sides below 0."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

Record = dict[str, Any]

ID_ZERO = ("counted", "unmatched")


def with_traps(
    truth: Record, results: list[Record], seed: int, *, per_class: bool = True
) -> tuple[Record, list[Record], str]:
    """Set some traps, and choose a value of ``matching.annotation_id_zero``.

    Not with classes pooled: a repeated id and a class that is not listed. pycocotools then counts what stands in
    for an annotation of such a class, and per class it does not; a loader does not know. Nor, with masks, a
    repeated id and an image that is not listed, which is a KeyError there.
    """
    rng = np.random.default_rng(seed)
    truth, results = copy.deepcopy(truth), copy.deepcopy(results)
    annotations, images, classes = truth["annotations"], truth["images"], truth["categories"]
    if annotations and rng.random() < 0.6:  # from 0, in any order
        if rng.random() < 0.3:  # some share an id, in one image or several
            numbers = rng.integers(0, 1 + len(annotations) // 2, len(annotations)).tolist()
        else:
            numbers = rng.permutation(len(annotations)).tolist()
        for row, number in zip(annotations, numbers, strict=True):
            row["id"] = number
    each_once = len({row["id"] for row in annotations}) == len(annotations)
    cut_classes = per_class or each_once
    cut_images = each_once or "segmentation" not in annotations[0]
    if annotations and rng.random() < 0.3:
        for row in annotations:
            if rng.random() < 0.3:
                key = "category_id" if rng.random() < 0.5 else "image_id"
                if cut_classes if key == "category_id" else cut_images:
                    row[key] = 990 + int(rng.integers(2))
    if (
        cut_images and len(images) > 1 and rng.random() < 0.2
    ):  # somebody cut the list of images, and the results to it
        gone = images[int(rng.integers(len(images)))]
        left = [row for row in results if row["image_id"] != gone["id"]]
        if left:  # pycocotools takes no empty list
            images.remove(gone)
            results = left
    if cut_classes and len(classes) > 1 and rng.random() < 0.2:
        classes.pop(int(rng.integers(len(classes))))
    if rng.random() < 0.2:
        for row in (*images, *classes):
            row["id"] = float(row["id"])
    if rng.random() < 0.4:
        for row in (*annotations, *results):
            if "bbox" in row and rng.random() < 0.3:
                row["bbox"][int(rng.integers(2, 4))] = float(rng.choice([-1e-9, -1e-14, -9e-4]))
    return truth, results, str(rng.choice(ID_ZERO))


def truth_as_counted(truth: Record, id_zero: str) -> Record:
    """Return what pycocotools must be given: numbered from 1 where 0 is an id like any other."""
    if id_zero == "unmatched":
        return truth
    return {**truth, "annotations": [{**row, "id": row["id"] + 1} for row in truth["annotations"]]}
