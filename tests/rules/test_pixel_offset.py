"""Pixels: from edge to edge (COCO), or both ends inside (PASCAL VOC)."""

from __future__ import annotations

from support.scenes import COCO_LIKE, VOC_LIKE, Case, Scene, by_protocol, check, det, evaluate, obj, rules

INCLUSIVE = (*VOC_LIKE, "bes-dev")
ZERO: list[tuple[float, float]] = [(1, 0)]

#   a box of one pixel, from 5 to 5
ONE_PIXEL = Scene([obj(5, 5, 5, 5)], [det(5, 5, 5, 5, score=0.9)])
#   object 1 to 2, detection 2 to 2: edge to edge they do not meet, by pixels they share 1 of 2 columns of 2 rows
HALF_AND_MORE = Scene([obj(1, 1, 3, 2)], [det(1, 1, 2, 2, score=0.9)])


test_by_protocol = by_protocol(
    Case("one pixel", ONE_PIXEL, {COCO_LIKE: ("F", ZERO), INCLUSIVE: ("T", [(1, 1)])}),
    Case(
        "one of two, or two of three",  # IoU 1/2 edge to edge, 4/6 by pixels
        HALF_AND_MORE,
        {(*COCO_LIKE, *INCLUSIVE): ("T", [(1, 1)])},
    ),
)


def test_the_overlap() -> None:
    for offset, iou in ((0, 1 / 2), (1, 4 / 6)):
        evaluation = evaluate(HALF_AND_MORE, rules("coco", boxes={"pixel_offset": offset}))
        assert evaluation.matches["iou"].tolist() == [iou]


def test_boxes_that_only_touch() -> None:
    """Columns 1 to 5 and 5 to 9: one column in common by pixels, none from edge to edge."""
    scene = Scene([obj(1, 1, 5, 5)], [det(5, 1, 9, 5, score=0.9)])
    thresholds = {"iou_thresholds": [0.1]}
    check(scene, rules("coco", matching=thresholds, summary=[{"key": "mAP"}]), "F", ZERO)
    check(scene, rules("voc2012", matching=thresholds), "T", [(1, 1)])  # 5 / 45
