"""The drop-in beside the reference on real detectors: arrays, evalImgs, ious and text."""

from __future__ import annotations

import copy
import json
from typing import Any

import numpy as np
import pytest
from side_by_side import OURS, REFERENCE, Library, assert_same_evaluation, load, outcome

from support.real_data import real

pytestmark = pytest.mark.real

VAL2017 = "coco_val2017/ground_truth_boxes.json"
FAKE100 = "coco_val2014_fake100/instances_val2014_100.json"
FAKE_SEGM = "coco_val2014_fake100/instances_val2014_fakesegm100_results.json"
PEOPLE = "coco_keypoints250/person_keypoints.json"
TUMOR = ("brain_tumor/ground_truth.json", "brain_tumor/maskrcnn.json")
MASKS206 = "coco_val2017_masks206/instances.json"
YOLACT_IDS = "coco_val2017/yolact_image_ids.json"

RUNS: dict[str, tuple[str, str, str, str | None]] = {
    "yolact": (VAL2017, "coco_val2017/yolact_base_100.bbox.json", "bbox", YOLACT_IDS),
    "fake100": (FAKE100, "coco_val2014_fake100/instances_val2014_fakebbox100_results.json", "bbox", None),
    "masks206": (MASKS206, "coco_val2017_masks206/yolov2_608.json", "bbox", None),
    "brain_tumor": (*TUMOR, "bbox", None),
    "fake100_segm": (FAKE100, FAKE_SEGM, "segm", None),
    "yolact_segm": (MASKS206, "coco_val2017_masks206/yolact_base.segm.json", "segm", None),
    "brain_tumor_segm": (*TUMOR, "segm", None),
    "openpose_a": (PEOPLE, "coco_keypoints250/openpose_a.json", "keypoints", None),
    "openpose_b": (PEOPLE, "coco_keypoints250/openpose_b.json", "keypoints", None),
}


def read(path: str) -> Any:
    return json.loads(real(*path.split("/")).read_text())


def evaluate(library: Library, dataset: Any, results: Any, kind: str, **changes: Any) -> Any:
    evaluation = library.COCOeval(*load(library, dataset, results), kind)
    for name, value in changes.items():
        setattr(evaluation.params, name, value)
    evaluation.evaluate()
    evaluation.accumulate()
    evaluation.summarize()
    return evaluation


def check(truth: str, found: str, kind: str, **changes: Any) -> Any:
    dataset, results = read(truth), read(found)
    (reference, text), (ours, our_text) = (
        outcome(lambda library=library: evaluate(library, dataset, results, kind, **copy.deepcopy(changes)))
        for library in (REFERENCE, OURS)
    )
    assert text == our_text
    assert ours._run is not None or (kind == "keypoints" and changes.get("useCats") == 0)
    assert_same_evaluation(reference, ours)
    return ours


@pytest.mark.parametrize("pooled", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("run", RUNS)
def test_real_detectors(run: str, pooled: bool) -> None:
    truth, found, kind, ids = RUNS[run]
    changes = {"imgIds": read(ids)} if ids else {}
    check(truth, found, kind, **changes, **({"useCats": 0} if pooled else {}))


@pytest.mark.slow
@pytest.mark.parametrize("run", ["yolov2_608", "yolov2_416_wrong_box_order"])
def test_all_of_val2017(run: str) -> None:
    check(VAL2017, f"coco_val2017/{run}.json", "bbox")


def test_accumulating_again_from_what_was_handed_out() -> None:
    ours = check(*RUNS["masks206"][:3])
    before = ours.eval["precision"]
    outcome(ours.accumulate)
    assert np.array_equal(before, ours.eval["precision"])


def test_the_published_numbers_of_brain_tumor() -> None:
    dataset, results = (read(name) for name in TUMOR)
    for result in results:
        del result["bbox"]  # as detectron2 does
    ours, _ = outcome(lambda: evaluate(OURS, dataset, results, "segm"))
    published = [46.8500, 60.1649, 54.1913, float("nan"), 5.9368, 56.6845]
    for value, expected in zip(ours.stats[:6] * 100, published, strict=True):
        assert np.isnan(expected) or abs(value - expected) < 1e-4
