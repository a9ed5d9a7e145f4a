"""Caps: how many detections of an image and class, or of an image, are looked at."""

from __future__ import annotations

from typing import Any

import pytest

from support.each import each
from support.scenes import (
    COCO,
    PADILLA_COCO,
    ULTRALYTICS,
    VOC_LIKE,
    Case,
    Scene,
    by_protocol,
    check,
    check_oracles,
    det,
    evaluate,
    obj,
    rules,
)

HUNDRED = (*COCO, *PADILLA_COCO, "fiftyone")
WITHOUT_CAP = (*VOC_LIKE, "bes-dev")


def crowd_of(count: int, *, label: int = 0) -> list[Any]:
    """Better scored detections of nothing, far away."""
    return [det(900, 900, 910, 910, score=0.9, label=label)] * count


HIT = det(1, 1, 20, 20, score=0.5)
OBJECT = obj(1, 1, 20, 20)

AS_101ST = Scene([OBJECT], [*crowd_of(100), HIT])
BEHIND_ANOTHER_CLASS = Scene([OBJECT, obj(41, 1, 60, 20, label=1)], [*crowd_of(100, label=1), HIT], classes=2)
AS_301ST = Scene([OBJECT], [*crowd_of(300), HIT])


test_by_protocol = by_protocol(
    Case(
        "the 101st of its class",
        AS_101ST,
        {
            (*HUNDRED, "tide"): ("F" * 100 + "-", [(1, 0)]),
            (*ULTRALYTICS, *WITHOUT_CAP): ("F" * 100 + "T", [(1, 1 / 101)]),
        },
    ),
    Case(
        "the 301st of its class",
        AS_301ST,
        {
            (*HUNDRED, "tide"): ("F" * 100 + "-" * 201, [(1, 0)]),
            ULTRALYTICS: ("F" * 300 + "-", [(1, 0)]),
            WITHOUT_CAP: ("F" * 300 + "T", [(1, 1 / 301)]),
        },
    ),
)


@each([*[(name, "T") for name in (*HUNDRED, *WITHOUT_CAP, *ULTRALYTICS)], ("tide", "-")])
def test_another_class_of_the_image(protocol: str, last: str) -> None:
    """A hundred better ones of another class: only a cap over the whole image leaves the hit out."""
    evaluation = evaluate(BEHIND_ANOTHER_CLASS, protocol)
    check_oracles(BEHIND_ANOTHER_CLASS, evaluation)
    assert (
        evaluation.matches["outcome"].iloc[-1] == {"T": "true positive", "-": "beyond max detections"}[last]
    )


def test_recall_by_cap() -> None:
    """One class, three objects found by the 1st, 3rd and 11th detection."""
    objects = [obj(0, 0, 20, 20), obj(40, 0, 60, 20), obj(80, 0, 100, 20)]
    hits = [det(*item.box[:4], score=0.5) for item in objects]
    far = crowd_of(1)[0]._replace(score=0.5)
    scene = Scene(objects, [hits[0], far, hits[1], *[far] * 7, hits[2]])
    evaluation = check(scene, "coco", "TFT" + "F" * 7 + "T", [(1 / 3, 1), (2 / 3, 2 / 3), (1, 3 / 11)])
    recalls = [evaluation.metrics[f"AR{cap}"] for cap in (1, 10, 100)]
    assert recalls == pytest.approx([1 / 3, 2 / 3, 1], abs=1e-12)


def test_a_cap_is_of_each_image() -> None:
    scene = Scene([OBJECT, OBJECT._replace(image=1)], [HIT, HIT._replace(image=1)], images=2)
    check(scene, rules("coco", matching={"max_detections": [1]}), "TT", [(1, 1)])


def test_equal_scores_are_cut_in_file_order() -> None:
    far = det(900, 900, 910, 910, score=0.5)
    for base in ("coco", "voc2012"):
        protocol = rules(base, matching={"max_detections": [1]})
        check(Scene([OBJECT], [HIT, far]), protocol, "T-", [(1, 1)])
        check(Scene([OBJECT], [far, HIT]), protocol, "F-", [(1, 0)])


def test_every_cap_over_an_image_takes_the_highest_scores_where_classes_are_pooled() -> None:
    scene = Scene([obj(1, 1, 20, 20)], [det(41, 1, 60, 20, score=0.1), det(1, 1, 20, 20, score=0.9)])
    pooled = {"max_detections": [1, 3], "cap_scope": "image_each", "per_class": False}
    evaluation = check(scene, rules("coco", matching=pooled), "FT", [(1, 1)])
    assert evaluation.metrics["AR1"] == 1
