"""What real COCO files hold and made-up ones do not: ids from 0, rows of nothing listed, sides below 0."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

Record = dict[str, Any]

ID_ZERO = ("counted", "unmatched")


def with_traps(truth: Record, results: list[Record], seed: int) -> tuple[Record, list[Record], str]:
    """Set some traps, and choose a value of ``matching.annotation_id_zero``."""
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
    if annotations and rng.random() < 0.3:
        for row in annotations:
            if rng.random() < 0.3:
                row[str(rng.choice(["image_id", "category_id"]))] = 990 + int(rng.integers(2))
    if len(images) > 1 and rng.random() < 0.2:  # somebody cut the list of images, and the results to it
        gone = images.pop(int(rng.integers(len(images))))["id"]
        if len(results) > sum(row["image_id"] == gone for row in results):  # pycocotools takes no empty list
            results = [row for row in results if row["image_id"] != gone]
        else:
            images.append({"id": gone, "height": 20, "width": 20})
    if len(classes) > 1 and rng.random() < 0.2:
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
