"""Thresholds: closed or open, the largest that is asked for, and grids to the last bit."""

from __future__ import annotations

import pytest

from support.scenes import (
    CHAINERCV,
    COCO_LIKE,
    KIT,
    PADILLA_VOC,
    PORTS,
    Case,
    Scene,
    by_protocol,
    check,
    det,
    evaluate,
    obj,
    rules,
)

CLOSED_PIXELS = (*KIT, *PADILLA_VOC, *CHAINERCV, "cartucho")

#   [object 10 x 10]
#   [D .9   10 x 20   ]     IoU 1/2, measured from edge to edge
HALF = Scene([obj(0, 0, 10, 10)], [det(0, 0, 10, 20, score=0.9)])
#   the same by pixels 1 to 10 and 1 to 20, both ends inside; from edge to edge 81/171
HALF_OF_PIXELS = Scene([obj(1, 1, 10, 10)], [det(1, 1, 10, 20, score=0.9)])
NOTHING: list[tuple[float, float]] = [(1, 0)]


test_by_protocol = by_protocol(
    Case(
        "an overlap of exactly a half, edge to edge",
        HALF,
        {(*COCO_LIKE, *CLOSED_PIXELS, *PORTS, "bes-dev"): ("T", [(1, 1)])},  # by pixels 121/231
    ),
    Case(
        "an overlap of exactly a half, by pixels",
        HALF_OF_PIXELS,
        {
            CLOSED_PIXELS: ("T", [(1, 1)]),
            (*COCO_LIKE, *PORTS, "bes-dev"): ("F", NOTHING),
        },
    ),
)


@pytest.mark.parametrize("base", ["coco", "voc2012"])
def test_closed_and_open(base: str) -> None:
    scene = HALF if base == "coco" else HALF_OF_PIXELS
    for closed, letter, steps in ((True, "T", [(1, 1)]), (False, "F", NOTHING)):
        check(scene, rules(base, matching={"threshold_closed": closed}), letter, steps)


def test_just_above_an_open_threshold() -> None:
    above = Scene([obj(0, 0, 10, 10)], [det(0, 0, 10, 19.9999999999999, score=0.9)])
    check(above, rules("coco", matching={"threshold_closed": False}), "T", [(1, 1)])


#   an object of 1 x 1 and a detection short of it by 5e-11: IoU 1 - 5e-11
ALMOST = Scene([obj(0, 0, 1, 1)], [det(0, 0, 1, 1 - 5e-11, score=0.9)])


@pytest.mark.parametrize(
    ("protocol", "letter"),
    [
        ("coco", "T"),  # pycocotools lowers a threshold of 1 to 1 - 1e-10
        ("torchmetrics", "T"),
        ("padilla-coco", "T"),
        ("globox", "F"),
        ("fiftyone", "F"),
        ("tide", "F"),
        ("ultralytics", "F"),
        ("bes-dev", "F"),
        ("voc2012", "F"),
    ],
)
def test_a_threshold_of_one(protocol: str, letter: str) -> None:
    chosen = rules(
        protocol, boxes={"pixel_offset": 0}, matching={"iou_thresholds": [1.0]}, summary=[{"key": "mAP"}]
    )
    check(ALMOST, chosen, letter, [(1, 1)] if letter == "T" else NOTHING)


@pytest.mark.parametrize(
    ("protocol", "recall"),
    [("coco", 1.0), ("torchmetrics", 0.0), ("tide", 1.0), ("padilla-coco", 1.0), ("ultralytics", 1.0)],
)
def test_an_overlap_of_eleven_twentieths(protocol: str, recall: float) -> None:
    """In single precision the threshold .55 is .550000011920929: torchmetrics misses what .55 hits."""
    scene = Scene([obj(0, 0, 10, 11)], [det(0, 0, 10, 20, score=0.9)])
    evaluation = check(scene, protocol, "T", [(1, 1)])
    assert evaluation.arrays()["recall"][1, 0, 0, -1] == recall


def test_every_threshold_is_asked_alone() -> None:
    """IoU .6 and .9 with one object: the better placed, worse scored, is a hit where the first is none."""
    scene = Scene([obj(0, 0, 10, 10)], [det(0, 0, 10, 6, score=0.9), det(0, 0, 10, 9, score=0.8)])
    evaluation = evaluate(scene, "coco")
    check(scene, "coco", "TF", [(1, 1)])
    ap = evaluation.ap_by_iou()[:, 0].round(12).tolist()
    assert ap[:3] == [1, 1, 1]  # .50 .55 .60
    assert ap[3:9] == [0.5] * 6  # .65 to .90: F T
    assert ap[9] == 0
