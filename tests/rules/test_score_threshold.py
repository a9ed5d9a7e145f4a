"""The score threshold: detections below it, or at it, are left out before anything else."""

from __future__ import annotations

import numpy as np

import boxscore
from boxscore.extensions.diagnostics._tools import CHOICES
from support.each import each
from support.scenes import (
    BOX_PROTOCOLS,
    ULTRALYTICS,
    Case,
    Scene,
    by_protocol,
    check,
    det,
    evaluate,
    obj,
    rules,
)

WITHOUT = tuple(name for name in BOX_PROTOCOLS if name not in ULTRALYTICS)

OBJECT = obj(1, 1, 20, 20)
FAR = det(101, 1, 120, 20, score=0.0009)

#   a hit at .9, a miss at .0009 before another hit at .0005
BELOW = Scene(
    [OBJECT, obj(41, 1, 60, 20)], [det(1, 1, 20, 20, score=0.9), FAR, det(41, 1, 60, 20, score=0.0005)]
)
#   a hit at exactly .001
ON_IT = Scene([OBJECT], [det(1, 1, 20, 20, score=0.001)])


test_by_protocol = by_protocol(
    Case(
        "a miss and a hit below .001",
        BELOW,
        {ULTRALYTICS: ("T--", [(1 / 2, 1)]), WITHOUT: ("TFT", [(1 / 2, 1), (1, 2 / 3)])},
    ),
    Case("a hit at .001", ON_IT, {BOX_PROTOCOLS: ("T", [(1, 1)])}),
)


def test_it_comes_before_the_cap() -> None:
    """Of three, one is below the threshold; the cap of two does not count it."""
    scene = Scene([OBJECT], [FAR, FAR._replace(score=0.5), det(1, 1, 20, 20, score=0.4)])
    chosen = rules("coco", matching={"score_threshold": 0.1, "max_detections": [2]})
    check(scene, chosen, "-FT", [(1, 1 / 2)])


def test_negative_scores_are_scores() -> None:
    scene = Scene([OBJECT], [det(1, 1, 20, 20, score=-3.0)])
    check(scene, "coco", "T", [(1, 1)])
    check(scene, rules("coco", matching={"score_threshold": -3.0}), "T", [(1, 1)])
    check(scene, rules("coco", matching={"score_threshold": -2.0}), "-", [(1, 0)])


# ---------------------------------------------------------------- a score equal to the threshold

#   hits at .5 and .3, a miss at .3
EQUAL = Scene(
    [OBJECT, obj(41, 1, 60, 20)],
    [det(1, 1, 20, 20, score=0.5), det(41, 1, 60, 20, score=0.3), FAR._replace(score=0.3)],
)


@each(["class", "image", "image_each", "data_set_class"])
def test_a_score_equal_to_an_open_threshold_is_left_out(scope: str) -> None:
    low = {"score_threshold": 0.3, "max_detections": [3], "cap_scope": scope}
    check(EQUAL, rules("coco", matching=low), "TTF", [(1, 1)])
    check(EQUAL, rules("coco", matching={**low, "score_closed": False}), "T--", [(1 / 2, 1)])
    just = np.nextafter(0.3, 0)
    check(
        EQUAL,
        rules("coco", matching={**low, "score_threshold": just, "score_closed": False}),
        "TTF",
        [(1, 1)],
    )


def test_it_comes_before_the_cap_and_takes_no_place_in_it() -> None:
    low = {"score_threshold": 0.5, "score_closed": False, "max_detections": [1], "cap_scope": "image"}
    scene = Scene([OBJECT], [FAR._replace(score=0.5), det(1, 1, 20, 20, score=0.6)])
    check(scene, rules("coco", matching=low), "-T", [(1, 1)])


def test_without_a_threshold_every_score_counts() -> None:
    scene = Scene([OBJECT], [det(1, 1, 20, 20, score=-1e300)])
    check(scene, rules("coco", matching={"score_closed": False}), "T", [(1, 1)])


@each(["class", "image", "data_set_class"])
def test_parts_leave_out_the_same(scope: str) -> None:
    """Under a cap over the data set, what is not evaluated uses it up only above the threshold."""
    scene = Scene(
        [OBJECT, obj(1, 1, 20, 20, image=1)],
        [
            det(1, 1, 20, 20, score=0.3),
            FAR._replace(score=0.9),
            det(1, 1, 20, 20, score=0.5, image=1),
            det(1, 1, 20, 20, score=0.3, image=1),
        ],
        images=2,
    )
    for closed in (True, False):
        low = {"score_threshold": 0.3, "score_closed": closed, "max_detections": [3], "cap_scope": scope}
        chosen = rules("coco", matching=low, labels={"unlisted": "drop"})
        whole = evaluate(scene, chosen)
        scanned = boxscore.scan(*scene.tables(), protocol=chosen, partitions=2)
        assert str(scanned.metrics) == str(whole.metrics)


def test_a_waterfall_says_whether_it_is_open() -> None:
    (choice,) = (one for one in CHOICES if one.field.path == "matching.score_threshold")
    assert choice.paths == ("matching.score_threshold", "matching.score_closed")
    written = [
        choice.field.written(rules("coco", matching=low), choice.step.text)
        for low in ({}, {"score_threshold": 0.25}, {"score_threshold": 0.25, "score_closed": False})
    ]
    assert written == ["none", "0.25", "above 0.25"]
