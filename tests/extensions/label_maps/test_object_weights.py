"""iIoU and categories: by hand, against a loop over objects, and the figures of cityscapesScripts."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore import ProtocolError, SemanticIoU
from boxscore.label_maps import load_semantic_rules, semantic_iou_of_folders
from support.real_data import real

CAR, BUS, ROAD, CARAVAN = 26, 28, 7, 29


def read(truth: Any, prediction: Any) -> SemanticIoU:
    maps = [np.asarray(one, dtype=np.uint16) for one in (truth, prediction)]
    return boxscore.semantic_iou(*maps, rules="cityscapes-instances")


def test_by_hand() -> None:
    # Two cars, of 4 and 2 pixels; a group of one pixel; a bus of one pixel that is taken for a car.
    truth = [[26000, 26000, 26000, 26000, 26001, 26001, 26, 28000, 7, 7]]
    found = [[26, 26, 26, 7, 26, 7, 7, 26, 7, 7]]
    result = read(truth, found)
    frame = result.to_frame().set_index("class")
    mean = 12794.0202738185
    right, missed = 3 * mean / 4 + mean / 2, mean / 4 + mean / 2
    assert frame.loc["car", "iIoU"] == pytest.approx(right / (right + 1 + missed), abs=1e-15)
    assert frame.loc["bus", "iIoU"] == 0
    assert math.isnan(frame.loc["road", "iIoU"])
    assert result.metrics["iIoU"] == pytest.approx(right / (right + 1 + missed) / 2, abs=1e-15)
    # vehicles: 5 + 1 right, the bus too; 3 missed; flat: 2 right, 3 false.
    assert result.metrics["mIoU_categories"] == pytest.approx((5 / 8 + 2 / 5) / 2, abs=1e-15)


def test_a_predicted_caravan_is_right_for_vehicles_by_object() -> None:
    result = read([[26000, 26000, 7]], [[29, 29, 7]])
    assert result.metrics["iIoU"] == 0
    assert result.metrics["iIoU_categories"] == 1
    assert result.metrics["mIoU_categories"] == 0.5


@pytest.mark.parametrize("seed", range(10))
def test_it_is_a_loop_over_objects(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = np.array([26, 26000, 26001, 28000, 24000, 24001, 29000, 7, 4])
    truth = rng.choice(values, (3, 12, 15))
    labels = np.where(truth >= 1000, truth // 1000, truth)
    found = np.where(rng.random(truth.shape) < 0.6, labels, rng.choice([7, 24, 26, 28, 29], truth.shape))
    rules = load_semantic_rules("cityscapes-instances")
    result = boxscore.semantic_iou(truth, found, rules=rules)
    scores = []
    for label, name in ((24, "person"), (26, "car"), (28, "bus")):
        right = missed = 0.0
        for picture, predicted in zip(truth, found, strict=True):
            for one in np.unique(picture[(picture >= 1000) & (picture // 1000 == label)]):
                weight = rules.object_sizes[name] / (picture == one).sum()
                hits = int((predicted[picture == one] == label).sum())
                right += weight * hits
                missed += weight * (int((picture == one).sum()) - hits)
        counted = np.isin(labels, rules.classes)
        false = int(((found == label) & (labels != label) & counted).sum())
        scores.append(right / (right + false + missed))
    assert result.metrics["iIoU"] == pytest.approx(np.mean(scores), rel=1e-13)


def test_images_apart_count_as_together() -> None:
    rng = np.random.default_rng(1)
    truth = rng.choice([26000, 26001, 24000, 7], (4, 9, 9))
    found = rng.choice([26, 24, 7], truth.shape)
    every = boxscore.semantic_iou(truth, found, images="abcd", rules="cityscapes-instances")
    parts = [
        boxscore.semantic_iou(truth[some], found[some], images=names, rules="cityscapes-instances")
        for some, names in ((slice(2), "ab"), (slice(2, 4), "cd"))
    ]
    assert (parts[0] + parts[1]).metrics == every.metrics
    twice = boxscore.semantic_iou(
        np.concatenate([truth, truth]), np.concatenate([found, found]), rules="cityscapes-instances"
    )
    weighed = every._metrics_by_weights()(np.full(4, 2.0))
    assert weighed == pytest.approx(twice.metrics, rel=1e-13)


def test_sizes_need_objects() -> None:
    with pytest.raises(ProtocolError, match="objects_from must be given where objects have sizes"):
        load_semantic_rules({"extends": "cityscapes", "object_sizes": {"car": 9}})
    with pytest.raises(ProtocolError, match=r"object_sizes\.car must be"):
        load_semantic_rules({"extends": "cityscapes", "objects_from": 1000, "object_sizes": {"car": 0}})
    with pytest.raises(ProtocolError, match="categories must be a table"):
        load_semantic_rules({"extends": "cityscapes", "categories": [1]})


@pytest.mark.real
def test_every_score_of_the_script() -> None:
    pytest.importorskip("PIL", reason="Pillow reads the pictures")
    result = semantic_iou_of_folders(
        real("cityscapes", "gt"),
        real("cityscapes", "semantic"),
        truth_ending="_gtFine_instanceIds.png",
        prediction_ending="_labelIds.png",
        rules="cityscapes-instances",
    )
    scores = json.loads(real("cityscapes", "expected.json").read_text())["pixels"]
    assert result.metrics["mIoU"] == scores["averageScoreClasses"]
    assert result.metrics["iIoU"] == scores["averageScoreInstClasses"] == 0.7578169253432431
    assert result.metrics["mIoU_categories"] == scores["averageScoreCategories"] == 0.7407907601528326
    assert result.metrics["iIoU_categories"] == scores["averageScoreInstCategories"] == 0.8186506740843351
    frame = result.to_frame().set_index("class")
    for name in frame.index:
        for column, key in (("IoU", "classScores"), ("iIoU", "classInstScores")):
            value = scores[key][name]
            assert np.isnan(frame.loc[name, column]) if value is None else frame.loc[name, column] == value
