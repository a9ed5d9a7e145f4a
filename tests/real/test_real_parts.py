"""Real pairs in parts of random images: the bits of one evaluation, from bytes, for every kind of rule."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore._utils.resampling import Draws, Groups
from boxscore.distributed import Part, merge, scan
from boxscore.distributed.engine import Here
from boxscore.distributed.reduction import header_of
from boxscore.distributed.scanning import partitioned
from boxscore.distributed.weighing import HeldParts, weighed_parts
from boxscore.protocols import load_protocol
from support.real_data import real

pytestmark = pytest.mark.real

PAIRS: dict[str, tuple[str, str, dict[str, Any], str]] = {
    "yolov2_608": ("coco_val2017/ground_truth_boxes.json", "coco_val2017/yolov2_608.json", {}, "coco"),
    "pooled": (
        "coco_val2017_masks206/instances.json",
        "coco_val2017_masks206/yolov2_608.json",
        {},
        "pooled",
    ),
    "masks": ("brain_tumor/ground_truth.json", "brain_tumor/maskrcnn.json", {}, "coco-segm"),
    "boundaries": ("brain_tumor/ground_truth.json", "brain_tumor/maskrcnn.json", {}, "coco-boundary"),
    "fake100": (
        "coco_val2014_fake100/instances_val2014_100.json",
        "coco_val2014_fake100/instances_val2014_fakebbox100_results.json",
        {},
        "tide",
    ),
    "lvis": ("lvis/own/ground_truth.json", "lvis/own/detections_bbox.json", {}, "lvis"),
    "lvis masks": ("lvis/own/ground_truth.json", "lvis/own/detections_segm.json", {}, "lvis-segm"),
    "lvis fixed": ("lvis/own/ground_truth.json", "lvis/own/detections_bbox.json", {}, "fixed"),
    "open images": (
        "openimages/sample/boxes_expanded.csv",
        "openimages/sample/predictions_expanded.csv",
        {"image_labels": "labels_expanded.csv"},
        "openimages-challenge",
    ),
    "keypoints": (
        "coco_keypoints250/person_keypoints.json",
        "coco_keypoints250/openpose_a.json",
        {},
        "coco-keypoints",
    ),
    "voc2007": ("voc2007/VOC2007", "voc2007/results/yolov2", {"image_set": "test"}, "voc2007"),
    "voc2012": ("voc2007/VOC2007", "voc2007/results/yolov2", {"image_set": "test"}, "voc2012"),
}


OWN_RULES = {
    "pooled": {"extends": "coco", "name": "pooled", "matching": {"per_class": False}},
    "fixed": {"extends": "lvis-fixed", "name": "fixed", "matching": {"max_detections": [20]}},
}


def bits(evaluation: boxscore.Evaluation) -> Any:
    arrays = {name: array.tobytes() for name, array in evaluation.arrays().items()}
    return arrays, evaluation.to_json(), np.array(list(evaluation.metrics.values())).tobytes()


def result_of(name: str) -> boxscore.Evaluation:
    truth_path, found_path, options, rules = PAIRS[name]
    if "image_labels" in options:
        options = {"image_labels": real(truth_path).with_name(options["image_labels"])}
    protocol = load_protocol(OWN_RULES.get(rules, rules))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", boxscore.BoxscoreWarning)
        truth: Any = real(truth_path)
        if options:
            truth = boxscore.load_ground_truth(truth, **options)
        return boxscore.evaluate(truth, real(found_path), protocol=protocol)


@pytest.mark.parametrize("name", PAIRS)
def test_real_pairs_in_parts(name: str) -> None:
    result = result_of(name)
    protocol, expected = result.protocol, bits(result)
    rng = np.random.default_rng(len(name))
    tables = result.ground_truth, result.detections
    for count in (2, 7):
        partition = rng.integers(0, count, len(result.images))
        parts = [task.run() for task in partitioned(*tables, partition, protocol)]
        assert bits(merge([Part.from_bytes(part.to_bytes()) for part in reversed(parts)])) == expected
    assert bits(scan(*tables, protocol=protocol, partitions=3)) == expected
    if name == "yolov2_608":  # 12,457 detections, 36,781 objects
        assert sum(part.matches.nbytes for part in parts) / len(result.matched) < 30


@pytest.mark.parametrize("name", PAIRS)
def test_real_images_are_weighed_in_parts(name: str) -> None:
    """Draws and slices: all classes at once, and class by class, the large ones by ranges of scores."""
    result = result_of(name)
    images, rows = len(result.images), result.protocol.rows
    partition = np.arange(images) % 3
    tables = result.ground_truth, result.detections
    parts = [task.run() for task in partitioned(*tables, partition, result.protocol)]
    held = HeldParts(Here(), parts, [header_of(part) for part in parts])
    for weights in (Draws.of_seed(images, 3, 0), Groups((np.arange(images) % 4).astype(np.uint8), 0, 3)):
        expected = result.weighed(rows, weights)
        for sizes in ({}, {"most": 1000, "alone": -1}):
            ours = weighed_parts(held, rows, weights, **sizes)
            assert [one.tobytes() for one in ours] == [one.tobytes() for one in expected]
