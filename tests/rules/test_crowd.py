"""Crowd regions: measured over the detection and ignored, ignored by IoU, counted, or deleted."""

from __future__ import annotations

import pytest

from support.scenes import (
    CHAINERCV,
    COCO,
    KIT,
    PADILLA_COCO,
    PADILLA_VOC,
    PORTS,
    ULTRALYTICS,
    Case,
    Scene,
    by_protocol,
    check,
    det,
    obj,
    rules,
)

BY_DETECTION = (*COCO, "fiftyone", "tide")
COUNTING = (*PADILLA_COCO, *PORTS, *PADILLA_VOC, *CHAINERCV, "cartucho", "bes-dev")

#   +-------- crowd --------+      [object]
#   |  [D .9]    [D .8]     |      [D .7]       small detections deep inside the region: their IoU with it is small
#   +-----------------------+
INSIDE = Scene(
    [obj(1, 1, 200, 200, crowd=True), obj(301, 1, 320, 20)],
    [
        det(21, 21, 40, 40, score=0.9),
        det(61, 61, 80, 80, score=0.8),
        det(301, 1, 320, 20, score=0.7),
    ],
)
#   two detections that are the region
WHOLE = Scene(
    [obj(1, 1, 200, 200, crowd=True), obj(301, 1, 320, 20)],
    [
        det(1, 1, 200, 200, score=0.9),
        det(1, 1, 200, 200, score=0.8),
        det(301, 1, 320, 20, score=0.7),
    ],
)


test_by_protocol = by_protocol(
    Case(
        "two inside a crowd",
        INSIDE,
        {
            BY_DETECTION: ("IIT", [(1, 1)]),
            KIT: ("FFT", [(1, 1 / 3)]),
            COUNTING: ("FFT", [(1 / 2, 1 / 3)]),
            ULTRALYTICS: ("FFT", [(1, 1 / 3)]),
        },
    ),
    Case(
        "two that are the crowd",
        WHOLE,
        {
            (*BY_DETECTION, *KIT): ("IIT", [(1, 1)]),
            COUNTING: ("TFT", [(1 / 2, 1), (1, 2 / 3)]),
            ULTRALYTICS: ("FFT", [(1, 1 / 3)]),
        },
    ),
)


@pytest.mark.parametrize("base", ["coco", "voc2012"])
@pytest.mark.parametrize(
    ("rule", "inside", "whole"),
    [("iof", "II", "II"), ("ignore", "FF", "II"), ("count", "FF", "TF"), ("delete", "FF", "FF")],
)
def test_each_value_of_the_field(base: str, rule: str, inside: str, whole: str) -> None:
    protocol = rules(base, ignore={"crowd": rule})
    objects = 1 + (rule == "count")
    steps = {"II": [(1, 1)], "FF": [(1 / objects, 1 / 3)], "TF": [(1 / 2, 1), (1, 2 / 3)]}
    check(INSIDE, protocol, inside + "T", steps[inside])
    check(WHOLE, protocol, whole + "T", steps[whole])


def test_a_counted_object_comes_before_a_crowd() -> None:
    """IoU 1/2 with the object, all of it in the crowd: the object is taken; the next falls to the crowd."""
    scene = Scene(
        [obj(0, 0, 100, 100, crowd=True), obj(10, 10, 20, 20)],
        [det(10, 10, 20, 30, score=0.9), det(10, 10, 20, 30, score=0.8)],
    )
    check(scene, "coco", "TI", [(1, 1)])
    check(scene, rules("coco", matching={"candidate": "best_overall"}), "II", [(1, 0)])
