"""Rotated boxes: made-up data sets, and pycocotools told their overlaps."""

from __future__ import annotations

import contextlib
import copy
import io
import math
from typing import Any

import numpy as np
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

import boxscore
from oracles.polygons import overlap

Record = dict[str, Any]


def radians(box: list[float]) -> list[float]:
    """A box of a file, whose degrees go counter-clockwise on the screen, as tables have it."""
    return [*box[:4], -math.radians(box[4])]


def rotated_case(seed: int, *, crowds: bool = True, turned: bool = True) -> tuple[Record, list[Record]]:
    """A small data set of rotated boxes in COCO's form, and results that are near them."""
    rng = np.random.default_rng(seed)
    side = float(rng.choice([60, 200, 700]))
    images, classes = int(rng.integers(1, 5)), int(rng.integers(1, 4))
    annotations: list[Record] = []
    found: list[Record] = []

    def box() -> list[float]:
        turn = rng.uniform(-180, 180) if turned else 0.0
        return [*rng.uniform(0, side, 2), *rng.uniform(2, side / 2, 2), turn]

    for number in range(1, int(rng.integers(1, 25)) + 1):
        at = box()
        annotations.append(
            {
                "id": number,
                "image_id": int(rng.integers(1, images + 1)),
                "category_id": int(rng.integers(1, classes + 1)),
                "bbox": at,
                "area": at[2] * at[3] * (rng.uniform(0.5, 1) if rng.random() < 0.3 else 1),
                "iscrowd": int(crowds and rng.random() < 0.15),
            }
        )
    for _ in range(int(rng.integers(1, 50))):
        near = annotations[int(rng.integers(len(annotations)))]
        at = [*(np.array(near["bbox"][:4]) * rng.normal(1, 0.06, 4)), near["bbox"][4]]
        at[4] += rng.normal(0, 8) if turned else 0.0
        found.append(
            {
                "image_id": near["image_id"],
                "category_id": near["category_id"] if rng.random() < 0.9 else 1,
                "bbox": [float(value) for value in (at if rng.random() < 0.85 else box())],
                "score": float(rng.integers(0, 20) / 20),
            }
        )
    return {
        "images": [{"id": i, "width": side, "height": side} for i in range(1, images + 1)],
        "categories": [{"id": i, "name": f"c{i}"} for i in range(1, classes + 1)],
        "annotations": annotations,
    }, found


def tables(truth: Record, found: list[Record]) -> tuple[boxscore.GroundTruth, boxscore.Detections]:
    rows = truth["annotations"]
    ground_truth = boxscore.GroundTruth.from_arrays(
        [row["image_id"] for row in rows],
        [row["category_id"] for row in rows],
        None,
        rotated=[radians(row["bbox"]) for row in rows],
        area=[row["area"] for row in rows],
        crowd=[row["iscrowd"] for row in rows],
        images=[image["id"] for image in truth["images"]],
        categories={row["id"]: row["name"] for row in truth["categories"]},
    )
    return ground_truth, boxscore.Detections.from_arrays(
        [row["image_id"] for row in found],
        [row["category_id"] for row in found],
        None,
        [row["score"] for row in found],
        rotated=[radians(row["bbox"]) for row in found],
        images=ground_truth.images,
        categories=ground_truth.categories,
    )


class RotatedCOCOeval(COCOeval):  # type: ignore[misc]
    """pycocotools that is told the overlaps: polygons clipped, which come within 1e-9 of no threshold."""

    def computeIoU(self, imgId: int, catId: int) -> Any:  # noqa: N802
        truths, found = self._gts[imgId, catId], self._dts[imgId, catId]
        if not truths or not found:
            return []
        found = [found[i] for i in np.argsort([-row["score"] for row in found], kind="mergesort")]
        return np.array(
            [
                [
                    overlap(radians(one["bbox"]), radians(other["bbox"]), over_first=bool(other["iscrowd"]))
                    for other in truths
                ]
                for one in found[: self.params.maxDets[-1]]
            ]
        )


def run_pycocotools(truth: Record, found: list[Record]) -> COCOeval:
    with contextlib.redirect_stdout(io.StringIO()):
        reference = COCO()
        reference.dataset = {"info": {}, **copy.deepcopy(truth)}
        reference.createIndex()
        run = RotatedCOCOeval(reference, reference.loadRes(copy.deepcopy(found)), "bbox")
        run.evaluate()
        run.accumulate()
        run.summarize()
    return run
