"""COCO's analysis of errors with pycocotools alone: one run per class and step, on changed annotations."""

from __future__ import annotations

import contextlib
import copy
import io
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

Record = dict[str, Any]


def error_steps(
    truth: Record, results: list[Record], *, iou_type: str = "bbox", max_detections: int = 100
) -> NDArray[np.float64]:
    """Precision of the seven steps, [7, 101, K], classes by id; -1 for a class without ground truth."""
    classes = sorted({one["id"] for one in truth["categories"]})
    group = {one["id"]: one.get("supercategory") for one in truth["categories"]}
    plain = _precision(truth, results, [0.75, 0.5, 0.1], iou_type, max_detections)
    steps = np.full((7, *plain.shape[1:]), -1.0)
    steps[:3] = plain
    for k, one in enumerate(classes):

        def is_similar(other: Any, one: Any = one) -> bool:
            return group[one] is not None and group[other] == group[one]

        of_class = [result for result in results if result["category_id"] == one]
        for step, forgives in ((3, is_similar), (4, lambda _: True)):
            changed = _forgiving(truth, one, forgives)
            steps[step, :, k] = _precision(changed, of_class, [0.1], iou_type, max_detections)[0, :, k]
        if (steps[4, :, k] > -1).all():
            steps[5, :, k] = steps[4, :, k] > 0
            steps[6, :, k] = 1.0
    return steps


def _forgiving(truth: Record, one: Any, forgives: Callable[[Any], bool]) -> Record:
    """Turn objects of some other classes into crowds of this one."""
    annotations = []
    for annotation in truth["annotations"]:
        other = annotation["category_id"]
        if other != one and forgives(other):
            annotation = {**annotation, "category_id": one, "iscrowd": 1, "ignore": 1}
        annotations.append(annotation)
    return {**truth, "annotations": annotations}


def _precision(
    truth: Record, results: list[Record], thresholds: list[float], iou_type: str, max_detections: int
) -> NDArray[np.float64]:
    """Precision over objects of every area, [T, 101, K]."""
    with contextlib.redirect_stdout(io.StringIO()):
        reference = COCO()
        reference.dataset = copy.deepcopy(truth)
        reference.createIndex()
        found = COCO()
        found.dataset = {**truth, "annotations": []}
        found.createIndex()
        if results:
            found = reference.loadRes(copy.deepcopy(results))
        run = COCOeval(reference, found, iou_type)
        run.params.iouThrs = np.array(thresholds)
        run.params.maxDets = [max_detections]
        run.params.areaRng, run.params.areaRngLbl = [[0, 1e10]], ["all"]
        run.evaluate()
        run.accumulate()
    precision: NDArray[np.float64] = run.eval["precision"][:, :, :, 0, 0]
    return precision
