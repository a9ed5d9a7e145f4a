"""Open Images: the numbers of the TensorFlow Object Detection API, on made-up sets and on the real hierarchy."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore import Detections, Evaluation, GroundTruth, ImageLabels
from boxscore.data.vocabulary import Categories, Images
from boxscore.extensions.federated.hierarchy import Hierarchy
from boxscore.formats.reading import read_detections, read_options
from support.quiet import quiet
from support.real_data import real

pytestmark = pytest.mark.real

SAMPLE = ("openimages", "sample")
NO_WEIGHT = {"extends": "openimages-challenge", "group": {"weight": 0}}
RUNS: dict[str, tuple[str, str, str, Any]] = {
    "boxes, not expanded": ("boxes.csv", "labels.csv", "predictions.csv", "openimages-challenge"),
    "boxes, truth expanded": (
        "boxes_expanded.csv",
        "labels_expanded.csv",
        "predictions.csv",
        "openimages-challenge",
    ),
    "boxes, truth and detections expanded": (
        "boxes_expanded.csv",
        "labels_expanded.csv",
        "predictions_expanded.csv",
        "openimages-challenge",
    ),
    "boxes, expanded, group weight 0": (
        "boxes_expanded.csv",
        "labels_expanded.csv",
        "predictions_expanded.csv",
        NO_WEIGHT,
    ),
    "boxes, expanded, V2 evaluator": (
        "boxes_expanded.csv",
        "labels_expanded.csv",
        "predictions_expanded.csv",
        "openimages-v2",
    ),
}


def truth_of(name: str, **options: Any) -> GroundTruth:
    with quiet():  # sizes of images are unknown
        return boxscore.load_ground_truth(real(*SAMPLE, name), **options)


def found_in(name: str, truth: GroundTruth) -> Detections:
    return read_detections(real(*SAMPLE, name), truth, read_options(any_sides=True))


def check(result: Evaluation, wanted: dict[str, Any]) -> None:
    ap = dict(zip(result.labels, result.class_values["AP"].tolist(), strict=True))
    expected = {name: math.nan if value is None else value for name, value in wanted["AP"].items()}
    positives = dict(zip(result.labels, result.class_counts["ground_truths"].tolist(), strict=True))
    for name, value in expected.items():
        assert ap.get(name, math.nan) == value or (math.isnan(value) and math.isnan(ap.get(name, value))), (
            name
        )
        assert positives.get(name, 0) == wanted["num_gt"][name]
    whole = math.nan if wanted["mAP"] is None else wanted["mAP"]
    assert result["mAP"] == whole or (math.isnan(whole) and math.isnan(result["mAP"]))


@pytest.mark.parametrize("run", list(RUNS))
def test_the_sample(run: str) -> None:
    boxes, labels, predictions, protocol = RUNS[run]
    truth = truth_of(boxes, image_labels=real(*SAMPLE, labels))
    found = found_in(predictions, truth)
    result = boxscore.evaluate(truth, found, protocol=protocol)
    check(result, json.loads(real(*SAMPLE, "expected.json").read_text(encoding="utf-8"))[run])


@pytest.mark.parametrize("weight", [1, 0])
def test_the_masks_of_the_sample(weight: int) -> None:
    truth = truth_of(
        "boxes_expanded.csv",
        segments=real(*SAMPLE, "segments_expanded.csv"),
        image_labels=real(*SAMPLE, "labels_expanded.csv"),
    )
    found = found_in("mask_predictions.csv", truth)
    name, run = (
        ("openimages-segmentation", "masks, truth expanded")
        if weight
        else ("openimages-segmentation-weight-0", "masks, truth expanded, group weight 0")
    )
    result = boxscore.evaluate(truth, found, protocol=name)
    check(result, json.loads(real(*SAMPLE, "expected.json").read_text(encoding="utf-8"))[run])


def test_the_sample_expanded_here() -> None:
    truth = truth_of(
        "boxes.csv", image_labels=real(*SAMPLE, "labels.csv"), hierarchy=real(*SAMPLE, "hierarchy.json")
    )
    found = found_in("predictions.csv", truth)
    tree = json.loads(real(*SAMPLE, "hierarchy.json").read_text(encoding="utf-8"))
    expanded = boxscore.expand_classes(found, Hierarchy.of(tree))
    result = boxscore.evaluate(truth, expanded, protocol="openimages-challenge")
    expected = json.loads(real(*SAMPLE, "expected.json").read_text(encoding="utf-8"))
    check(result, expected["boxes, truth and detections expanded"])


def test_every_case_by_hand() -> None:
    content = json.loads(real("openimages", "cases.json").read_text(encoding="utf-8"))
    cases = content["cases"]
    for case in cases:
        names = [chr(ord("a") + k) for k in range(case.get("classes", 1))]
        vocabularies: dict[str, Any] = {
            "images": Images.build([image["id"] for image in case["images"]]),
            "categories": Categories.build(range(1, len(names) + 1), names=names),
        }
        truths = [(image["id"], one) for image in case["images"] for one in image.get("gt", [])]
        found = [(image["id"], one) for image in case["images"] for one in image.get("det", [])]
        verified = [(image["id"], one) for image in case["images"] for one in image.get("verified", [])]
        labels = ImageLabels.from_arrays(
            [image for image, _ in verified],
            [one for _, one in verified],
            ["positive"] * len(verified),
            **vocabularies,
        )
        shape = case.get("mask_shape")
        truth = GroundTruth.from_arrays(
            [image for image, _ in truths],
            [one["cls"] for _, one in truths],
            corners([one["box"] for _, one in truths]),
            group=[bool(one.get("group")) for _, one in truths],
            image_labels=labels,
            masks=[drawn(one, shape) for _, one in truths] if case.get("masks") else None,
            **vocabularies,
        )
        boxes = corners([one["box"] for _, one in found])
        boxes[:, 2:] = np.maximum(boxes[:, 2:], boxes[:, :2])  # a side below 0 is dropped like one of 0
        detections = Detections.from_arrays(
            [image for image, _ in found],
            [one["cls"] for _, one in found],
            boxes,
            [one["score"] for _, one in found],
            masks=[drawn(one, shape) for _, one in found] if case.get("masks") else None,
            **vocabularies,
        )
        name = "openimages-v2" if case.get("evaluator") == "v2" else "openimages-challenge"
        if case.get("masks"):
            name = "openimages-segmentation" + "-weight-0" * ("group_of_weight" not in case)
        weight = 0 if case.get("clear_first") else case.get("group_of_weight")
        changes = {} if weight is None else {"group": {"weight": weight}}
        with quiet():
            result = boxscore.evaluate(truth, detections, protocol={"extends": name, **changes})
        check(result, case["expected"])
    assert len(cases) == 34


def drawn(one: dict[str, Any], shape: list[int]) -> Any:
    if "mask" not in one:
        return None
    top, left, bottom, right = one["mask"]
    mask = np.zeros(shape, dtype=bool)
    mask[top:bottom, left:right] = True
    return mask


def corners(boxes: list[list[float]]) -> Any:
    """From y1, x1, y2, x2."""
    return np.array(boxes, dtype=np.float64).reshape(-1, 4)[:, [1, 0, 3, 2]]


def test_the_real_hierarchy() -> None:
    tree = json.loads(real("openimages", "bbox_labels_600_hierarchy.json").read_text(encoding="utf-8"))
    expected = json.loads(real("openimages", "expected_hierarchy_600.json").read_text(encoding="utf-8"))
    hierarchy = Hierarchy.of(tree)
    for side in ("ancestors", "descendants"):
        ours = getattr(hierarchy, side)
        for name, relatives in expected[side].items():
            assert set(ours.get(name, ())) == set(relatives), name
