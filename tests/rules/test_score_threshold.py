"""The score threshold: detections below it are left out before anything else."""

from __future__ import annotations

from typing import Any

from support.scenes import BOX_PROTOCOLS, ULTRALYTICS, Case, Scene, by_protocol, check, det, obj, rules

WITHOUT = tuple(name for name in BOX_PROTOCOLS if name not in ULTRALYTICS)

OBJECT = obj(1, 1, 20, 20)
FAR = det(101, 1, 120, 20, score=0.0009)

#   a hit at .9, a miss at .0009 before another hit at .0005
BELOW = Scene(
    [OBJECT, obj(41, 1, 60, 20)], [det(1, 1, 20, 20, score=0.9), FAR, det(41, 1, 60, 20, score=0.0005)]
)
#   a hit at exactly .001
ON_IT = Scene([OBJECT], [det(1, 1, 20, 20, score=0.001)])


@by_protocol(
    Case(
        "a miss and a hit below .001",
        BELOW,
        {ULTRALYTICS: ("T--", [(1 / 2, 1)]), WITHOUT: ("TFT", [(1 / 2, 1), (1, 2 / 3)])},
    ),
    Case("a hit at .001", ON_IT, {BOX_PROTOCOLS: ("T", [(1, 1)])}),
)
def test_by_protocol(scene: Scene, protocol: str, letters: str, steps: Any) -> None:
    check(scene, protocol, letters, steps)


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
