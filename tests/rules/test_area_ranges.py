"""Area ranges: closed at both ends, by the annotation's own area; what lies outside is ignored."""

from __future__ import annotations

import math

import pytest

from boxscore.protocols import load_protocol
from support.scenes import (
    BOX_PROTOCOLS,
    COCO,
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

CLOSED_AT_1E10 = COCO
WITHOUT_END = tuple(name for name in BOX_PROTOCOLS if name not in COCO)

#   an object whose annotation states more than 1e10 square pixels
HUGE = Scene([obj(1, 1, 20, 20, area=2e10)], [det(1, 1, 20, 20, score=0.9)])
#   one of exactly 1e10
AT_THE_END = Scene([obj(1, 1, 20, 20, area=1e10)], [det(1, 1, 20, 20, score=0.9)])


test_by_protocol = by_protocol(
    Case("larger than any", HUGE, {CLOSED_AT_1E10: ("I", None), WITHOUT_END: ("T", [(1, 1)])}),
    Case("as large as any", AT_THE_END, {BOX_PROTOCOLS: ("T", [(1, 1)])}),
)


def ranges(scene: Scene, protocol: str = "coco") -> list[float]:
    """APs, APm, APl; an AP of one is the lone hit's 0.9999999999999998."""
    evaluation = evaluate(scene, protocol)
    assert check_oracles(scene, evaluation) == ["plain", "pycocotools"]
    return [round(evaluation.metrics[key], 12) for key in ("APs", "APm", "APl")]


def same(values: list[float], expected: list[float]) -> bool:
    return all(a == b or (math.isnan(a) and math.isnan(b)) for a, b in zip(values, expected, strict=True))


@pytest.mark.parametrize("protocol", COCO)
@pytest.mark.parametrize(
    ("side", "expected"),
    [
        (31, [1, math.nan, math.nan]),
        (32, [1, 1, math.nan]),  # 1024: the end of small and the start of medium
        (33, [math.nan, 1, math.nan]),
        (96, [math.nan, 1, 1]),  # 9216
        (97, [math.nan, math.nan, 1]),
    ],
)
def test_both_ends_belong(protocol: str, side: int, expected: list[float]) -> None:
    scene = Scene([obj(0, 0, side, side)], [det(0, 0, side, side, score=0.9)])
    assert same(ranges(scene, protocol), expected)


def test_the_annotation_says_the_area() -> None:
    """A box of 40 x 40 around an object of 500 square pixels is a small object."""
    scene = Scene([obj(0, 0, 40, 40, area=500)], [det(0, 0, 40, 40, score=0.9)])
    assert same(ranges(scene), [1, math.nan, math.nan])


def test_a_detection_outside_that_hits_nothing_is_ignored() -> None:
    """A large false positive, best of all, does not touch the small objects' AP."""
    scene = Scene([obj(0, 0, 20, 20)], [det(200, 0, 400, 200, score=0.9), det(0, 0, 20, 20, score=0.8)])
    assert ranges(scene)[0] == 1
    check(scene, "coco", "FT", [(1, 1 / 2)])


def test_a_detection_outside_may_hit() -> None:
    """Object 30 x 30 (small), detection 30 x 40 (medium), IoU 3/4: a hit at six of ten thresholds."""
    scene = Scene([obj(0, 0, 30, 30)], [det(0, 0, 30, 40, score=0.9)])
    assert same(ranges(scene), [0.6, math.nan, math.nan])


def test_an_object_outside_is_taken_once() -> None:
    """Object 33 x 33, not small. Two detections of 30 x 33 on it are: the first is ignored, the second not."""
    scene = Scene(
        [obj(0, 0, 33, 33), obj(100, 0, 120, 20)],
        [det(0, 0, 30, 33, score=0.9), det(0, 0, 30, 33, score=0.8), det(100, 0, 120, 20, score=0.7)],
    )
    evaluation = evaluate(scene, "coco")
    assert check_oracles(scene, evaluation) == ["plain", "pycocotools"]
    at_half = evaluation.arrays()["precision"][0, 100, 0, :, -1].round(12).tolist()
    assert at_half[1] == 1 / 2  # small: ignored, false, true


def test_a_protocols_own_ranges() -> None:
    protocol = rules("voc2012", ignore={"area_ranges": {"all": [0, 400]}})
    scene = Scene(
        [obj(1, 1, 21, 21), obj(41, 1, 62, 22)], [det(1, 1, 21, 21, score=0.9), det(41, 1, 62, 22, score=0.8)]
    )
    # The objects' areas are stated, 400 and 441; with inclusive pixels the detections' are 441 and 484.
    check(scene, protocol, "TI", [(1, 1)])


def test_the_names_of_the_ranges() -> None:
    assert list(load_protocol("coco").ignore.area_ranges) == ["all", "small", "medium", "large"]
