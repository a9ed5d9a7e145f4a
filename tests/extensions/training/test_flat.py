"""Flat names: the same numbers under names that every logger takes."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

import boxscore
from boxscore import Detections, Evaluation, GroundTruth, InputError

NAMES = {1: "traffic light", 2: "traffic_light", 3: "a/b (c)", 4: "Ä", 5: "AP"}
VALID = re.compile(r"[\w.\-]+(/[\w.\-]+)*")
"""What MLflow takes, without blanks and colons; the part before ``/`` is a group in TensorBoard."""


def evaluation(detected: tuple[int, ...] = (1, 2, 3, 4, 5)) -> Evaluation:
    boxes = np.tile([[0.0, 0, 40, 40]], (5, 1))
    truth = GroundTruth.from_arrays([1, 2, 3, 4, 5], list(NAMES), boxes, categories=NAMES)
    chosen = np.isin(list(NAMES), detected)
    found = Detections.from_arrays(
        np.arange(1, 6)[chosen], list(detected), boxes[chosen], np.full(chosen.sum(), 0.5), categories=NAMES
    )
    return boxscore.evaluate(truth, found, digest=False)


def same(value: float, other: float) -> bool:
    return value == other or (math.isnan(value) and math.isnan(other))


def test_metrics_in_the_order_of_the_summary() -> None:
    result = evaluation()
    flat = result.flat()
    assert list(flat) == list(result.metrics)
    assert all(same(flat[key], value) for key, value in result.metrics.items())
    assert list(result.flat(prefix="val")) == [f"val/{key}" for key in result.metrics]


def test_names_are_valid_unique_and_the_same_in_every_epoch() -> None:
    flat = evaluation().flat(prefix="val", classes=["AP", "AR100"])
    assert all(VALID.fullmatch(name) for name in flat)
    assert len({name.casefold() for name in flat}) == 12 + 2 * 5
    nothing = evaluation(())
    assert list(nothing.flat(prefix="val", classes=["AP", "AR100"])) == list(flat)


def test_classes_have_their_values() -> None:
    result = evaluation((1, 3))
    flat = result.flat(classes=True)
    names = [name for name in flat if name.startswith("per_class/")]
    assert names == [
        f"per_class/AP/{name}" for name in ("traffic_light", "traffic_light_", "a_b_c_", "Ä", "AP")
    ]
    assert [flat[name] for name in names] == result.class_values["AP"].tolist()
    assert result.flat(classes="AP@.5").keys() >= {"per_class/AP50/AP"}


def test_classes_that_are_pooled_have_one_name() -> None:
    result = evaluation()
    pooled = boxscore.evaluate(
        result.ground_truth,
        result.detections,
        protocol={"extends": "coco", "matching": {"per_class": False}},
        digest=False,
    )
    assert "per_class/AP/all" in pooled.flat(classes=True)


def test_a_metric_that_classes_do_not_have() -> None:
    with pytest.raises(InputError, match="a metric of classes"):
        evaluation().flat(classes=["speed"])


def test_names_that_no_file_can_have() -> None:
    """MLflow rejects names of dots, and more than 250 characters, which would end a training."""
    names = dict(enumerate(["..", ".", "x" * 400, "x" * 300, "a.b"]))
    ones = [1] * len(names)
    boxes = [[0.0, 0, 40, 40]] * len(names)
    truth = GroundTruth.from_arrays(ones, list(names), boxes, categories=names)
    found = Detections.from_arrays(ones, list(names), boxes, [0.5] * len(names), categories=names)
    flat = boxscore.evaluate(truth, found, digest=False).flat(prefix="val", classes=True)
    classes = [name.removeprefix("val/per_class/AP/") for name in flat if "per_class" in name]
    assert classes == ["_", "__", "x" * 120, "x" * 120 + "_", "a.b"]
