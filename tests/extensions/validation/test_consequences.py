"""What follows from a cause that is sure is not said as if it were a cause."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from boxscore import Detections, GroundTruth
from boxscore.extensions.validation.checking import FROM_CLASSES, FROM_PLACES
from boxscore.validation import validate, validate_files
from support.real_data import real


def pair(count: int = 90) -> tuple[GroundTruth, Detections]:
    """Objects of three classes, all found, by a detector whose scores are cut at 0.5; sizes are known."""
    image, name = np.arange(count) // 3, ["a", "b", "c"] * (count // 3)
    low = np.random.default_rng(0).uniform([300, 0], [600, 300], (count, 2))
    boxes = np.column_stack([low, low + np.random.default_rng(1).uniform(30, 90, (count, 2))])
    sizes = np.tile([[700.0, 400.0]], (count // 3, 1))
    truth = GroundTruth.from_arrays(image, name, boxes)
    truth = dataclasses.replace(truth, images=dataclasses.replace(truth.images, sizes=sizes))
    scores = 0.5 + 0.49 * np.random.default_rng(2).random(count)
    found = Detections.from_arrays(
        image, name, boxes, scores, images=truth.images, categories=truth.categories
    )
    return truth, found


def codes(*tables: GroundTruth | Detections) -> set[str]:
    return {finding.code for finding in validate(*tables)}  # type: ignore[arg-type]


def test_boxes_in_another_order_explain_what_lies_nowhere() -> None:
    truth, found = pair()
    turned = dataclasses.replace(found, boxes=found.boxes[:, [1, 0, 3, 2]])
    said = codes(truth, turned)
    assert "detection-box-order" in said
    assert not said.intersection(FROM_PLACES)


def test_lists_of_classes_explain_classes_that_are_called_another() -> None:
    truth, found = pair(120)
    found = found.take(np.flatnonzero(found.category < 2))
    said = codes(truth, dataclasses.replace(found, category=found.category + np.int32(1)))
    assert "classes-numbered-differently" in said
    assert not said.intersection(FROM_CLASSES)


def test_without_a_sure_cause_nothing_is_left_out() -> None:
    truth, found = pair(120)
    called = np.where(found.category == 0, 1, found.category).astype(np.int32)
    assert {"class-always-called-another", "class-without-detections"} <= codes(
        truth, dataclasses.replace(found, category=called)
    )
    rest = dataclasses.replace(found, boxes=found.boxes + np.array([900.0, 0, 900.0, 0]))
    assert "detections-off-annotations" in codes(truth, rest)


@pytest.mark.real
def test_yolov2_with_boxes_in_another_order() -> None:
    found = validate_files(
        real("coco_val2017", "ground_truth_boxes.json"),
        real("coco_val2017", "yolov2_416_wrong_box_order.json"),
    )
    assert [finding.code for finding in found if finding.severity != "note"] == [
        "detection-box-order",
        "class-without-detections",
        "near-duplicate-annotation",
    ]
