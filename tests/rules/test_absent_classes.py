"""Classes without a counted object: undefined, 0 where they have detections, or 0 in any case."""

from __future__ import annotations

import math
from typing import Any

import pytest

from support.each import each
from support.scenes import (
    BOX_PROTOCOLS,
    ULTRALYTICS,
    Scene,
    check_oracles,
    det,
    evaluate,
    headline,
    obj,
    rules,
)

#   class 0 is found; class 1 is only detected; class 2 is not there at all
SCENE = Scene(
    [obj(1, 1, 20, 20)],
    [det(1, 1, 20, 20, score=0.9), det(41, 1, 60, 20, score=0.8, label=1)],
    classes=3,
)
ONE = dict.fromkeys(ULTRALYTICS, 0.995)  # lines fall to (1, 0) from the last point before it
EXPECTED: dict[str, float] = {name: ONE.get(name, 1.0) for name in BOX_PROTOCOLS} | {
    "tide": 1 / 2,
    "bes-dev": 1 / 3,
}


@each(BOX_PROTOCOLS)
def test_by_protocol(protocol: str) -> None:
    evaluation = evaluate(SCENE, protocol)
    assert headline(evaluation) == pytest.approx(EXPECTED[protocol], abs=1e-12)
    check_oracles(SCENE, evaluation)


@pytest.mark.parametrize("base", ["coco", "voc2007", "voc2012", "ultralytics"])
@pytest.mark.parametrize(
    ("rule", "by_class"),
    [("skip", [1, math.nan, math.nan]), ("zero", [1, 0, math.nan]), ("all_zero", [1, 0, 0])],
)
def test_each_value_of_the_field(base: str, rule: str, by_class: list[float]) -> None:
    evaluation = evaluate(SCENE, rules(base, ap={"absent_classes": rule}))
    values: Any = evaluation.ap_by_iou()[0]
    expected = [value * (0.995 if base == "ultralytics" else 1) for value in by_class]
    assert values.tolist() == pytest.approx(expected, abs=1e-12, nan_ok=True)
    check_oracles(SCENE, evaluation)


def test_recall_is_undefined_all_the_same() -> None:
    recall = evaluate(SCENE, "bes-dev").arrays()["recall"][0, :, 0, 0]
    assert recall[0] == 1.0
    assert all(math.isnan(value) for value in recall[1:])


def test_ignored_objects_are_not_counted_ones() -> None:
    """A class with nothing but a difficult object is absent by the VOC kit's rules."""
    scene = Scene([obj(1, 1, 20, 20, difficult=True)], [])
    assert math.isnan(headline(evaluate(scene, "voc2012")))
    assert headline(evaluate(scene, "coco")) == 0.0
