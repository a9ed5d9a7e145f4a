"""Whether a detection whose best object is taken may turn to the next (COCO), or is false (the VOC kit)."""

from __future__ import annotations

import pytest

from support.scenes import COCO, PADILLA_COCO, VOC_LIKE, Case, Scene, by_protocol, check, det, obj, rules

ENDS = [(1 / 2, 1), (1 / 2, 1 / 2)]  # a hit, then a miss: the curve ends at recall 1/2

AVAILABLE = (*COCO, *PADILLA_COCO, "fiftyone", "tide", "ultralytics", "bes-dev")
OVERALL = ("ultralytics-april2026", "ultralytics-old", *VOC_LIKE)

#   [ first ]
#     [ second ]
#   [D .9   ]       the first alone
#    [ D .8 ]       most of it the first's, which is taken; enough of it the second's
SECOND_CHOICE = Scene(
    [obj(0, 0, 40, 40), obj(10, 0, 50, 40)],
    [det(0, 0, 40, 40, score=0.9), det(2, 0, 42, 40, score=0.8)],
)
#   a second detection of an object has nowhere to go
TWICE = Scene([obj(0, 0, 40, 40)], [det(0, 0, 40, 40, score=0.9), det(0, 0, 40, 40, score=0.8)])
#   the worse placed of two is the better scored: it takes the object
BY_SCORE = Scene([obj(0, 0, 40, 40)], [det(0, 0, 40, 40, score=0.8), det(0, 0, 40, 30, score=0.9)])


test_by_protocol = by_protocol(
    Case(
        "a second choice",
        SECOND_CHOICE,
        {AVAILABLE: ("TT", [(1, 1)]), OVERALL: ("TF", ENDS)},
    ),
    Case("two on one object", TWICE, {(*AVAILABLE, *OVERALL): ("TF", [(1, 1)])}),
    Case("by score, not by overlap", BY_SCORE, {(*AVAILABLE, *OVERALL): ("FT", [(1, 1)])}),
)


@pytest.mark.parametrize("base", ["coco", "voc2012"])
def test_each_value_of_the_field(base: str) -> None:
    for rule, letters, steps in (("best_available", "TT", [(1, 1)]), ("best_overall", "TF", ENDS)):
        check(SECOND_CHOICE, rules(base, matching={"candidate": rule}), letters, steps)


def test_classes_do_not_meet_unless_pooled() -> None:
    scene = Scene([obj(0, 0, 40, 40)], [det(0, 0, 40, 40, score=0.9, label=1)], classes=2)
    check(scene, "coco", "F", [(1, 0)])
    check(scene, rules("coco", matching={"per_class": False}), "T", [(1, 1)])
