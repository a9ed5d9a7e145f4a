"""From a curve to a number: recall points, the area under steps, straight lines; grids to the last bit."""

from __future__ import annotations

from fractions import Fraction

import pytest

from support.each import each
from support.scenes import (
    BOX_PROTOCOLS,
    Case,
    Scene,
    by_protocol,
    check,
    check_oracles,
    det,
    evaluate,
    headline,
    obj,
    rules,
)


def drawn(letters: str, positives: int) -> Scene:
    """Detections in the order of their scores, T a hit and F a miss; objects 20 x 20 in a row."""
    objects = [obj(1 + 40 * n, 1, 20 + 40 * n, 20) for n in range(positives)]
    detections, hits = [], 0
    for place, letter in enumerate(letters):
        corners = objects[hits].box[:4] if letter == "T" else (1, 901, 20, 920)
        hits += letter == "T"
        detections.append(det(*corners, score=0.9 - place / 100))
    return Scene(objects, detections)


#   precision   T 1   F 1/2   T 2/3   F 1/2   T 3/5      recall 1/3, 2/3, 1
SAW = drawn("TFTFT", 3)
#   precision   F 0   T 1/2   T 2/3                      recall 1/2, 1: the envelope is 2/3 all along
RISING = drawn("FTT", 2)
#   precision   T 1   F 1/2   F 1/3                      recall ends at 1/2
ENDS_EARLY = drawn("TFF", 2)


test_by_protocol = by_protocol(
    Case(
        "a saw",
        SAW,
        {
            BOX_PROTOCOLS: (
                "TFTFT",
                [(Fraction(1, 3), 1), (Fraction(2, 3), Fraction(2, 3)), (1, Fraction(3, 5))],
            )
        },
    ),
    Case("a rising saw", RISING, {BOX_PROTOCOLS: ("FTT", [(1, Fraction(2, 3))])}),
)


@pytest.mark.parametrize(
    ("interpolation", "number"),
    [
        ("points", Fraction(51, 101)),  # recall points 0 to .50
        ("area", Fraction(1, 2)),
        # Straight lines: 1 up to .49, then from 1 at .49 to 0 at .50.
        ("trapezoid", Fraction(49, 100) + Fraction(1, 200)),
        # From (.5, 1/3), the last detection, to (1, 0); from .49 to .50 it falls from 1 to 1/3.
        (
            "trapezoid_to_one",
            Fraction(49, 100) + Fraction(1, 100) * Fraction(2, 3) + Fraction(1, 2) * Fraction(1, 3) / 2,
        ),
    ],
)
def test_a_curve_that_ends_early(interpolation: str, number: Fraction) -> None:
    evaluation = evaluate(ENDS_EARLY, rules("coco", ap={"interpolation": interpolation}))
    assert headline(evaluation) == pytest.approx(float(number), abs=1e-12)
    check_oracles(ENDS_EARLY, evaluation)


def test_ultralytics_before_and_after_april_2026() -> None:
    """A single hit among two objects: the old line credits recall that nothing reached."""
    scene = drawn("T", 2)
    assert headline(evaluate(scene, "ultralytics-old")) == pytest.approx(0.5 + 0.25, abs=1e-12)
    for name in ("ultralytics-april2026", "ultralytics"):
        assert headline(evaluate(scene, name)) == pytest.approx(0.495, abs=1e-12)


@pytest.mark.parametrize(
    ("protocol", "number"),
    [
        ("voc2007", Fraction(7, 11)),  # 1 - 4 * .1 is .6
        ("voc2007-numpy", Fraction(6, 11)),  # numpy.arange has .6000000000000001
        ("py-faster-rcnn-voc2007", Fraction(6, 11)),
        ("padilla-voc2007", Fraction(6, 11)),  # so has numpy.linspace(0, 1, 11)
        ("voc2012", Fraction(3, 5)),
    ],
)
def test_a_recall_of_six_tenths(protocol: str, number: Fraction) -> None:
    scene = drawn("TTT", 5)
    evaluation = evaluate(scene, protocol)
    assert headline(evaluation) == pytest.approx(float(number), abs=1e-12)
    check_oracles(scene, evaluation)


@pytest.mark.parametrize(
    ("protocol", "points"), [("coco", 61), ("torchmetrics", 60), ("tide", 61), ("fiftyone", 61)]
)
def test_a_recall_of_six_tenths_at_101_points(protocol: str, points: int) -> None:
    """In single precision .6 is .6000000238418579: torchmetrics' recall point is not reached."""
    scene = drawn("TTT", 5)
    evaluation = evaluate(scene, protocol)
    assert headline(evaluation) == pytest.approx(points / 101, abs=1e-12)
    check_oracles(scene, evaluation)


@pytest.mark.parametrize(
    ("protocol", "number"),
    [("coco", 0.9999999999999998), ("supervision", 0.9999999999999998), ("padilla-coco", 0.9999999999999998),
     ("tide", 1.0), ("fiftyone", 1.0), ("bes-dev", 1.0), ("voc2012", 1.0)],
)  # fmt: skip
def test_a_lone_hit(protocol: str, number: float) -> None:
    """pycocotools divides by tp + fp + numpy.spacing(1)."""
    scene = drawn("T", 1)
    evaluation = evaluate(scene, protocol)
    assert evaluation.arrays()["precision"][0, 0, 0, 0, 0] == number
    check_oracles(scene, evaluation)


@each(BOX_PROTOCOLS)
def test_no_detection_is_zero(protocol: str) -> None:
    check(drawn("", 2), protocol, "", [(1, 0)])
