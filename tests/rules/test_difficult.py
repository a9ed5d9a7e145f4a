"""Difficult objects: counted like any other, ignored and absorbing any number of detections, or deleted."""

from __future__ import annotations

from typing import Any

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
    obj,
    rules,
)

IGNORING = (*KIT, *PORTS, *CHAINERCV, "cartucho")
COUNTING = (*COCO_LIKE, *PADILLA_VOC, "bes-dev")

#   difficult      plain
#   [D .9 .8]      [D .7]        two detections on a difficult object, one on another object
TWICE = Scene(
    [obj(1, 1, 20, 20, difficult=True), obj(41, 1, 60, 20)],
    [det(1, 1, 20, 20, score=0.9), det(1, 1, 20, 20, score=0.8), det(41, 1, 60, 20, score=0.7)],
)
#   [ difficult ]
#   [D .9   [D .8     the first overlaps it too little: a false positive by every rule
BESIDE = Scene(
    [obj(1, 1, 20, 20, difficult=True), obj(41, 1, 60, 20)],
    [det(15, 15, 34, 34, score=0.9), det(41, 1, 60, 20, score=0.8)],
)
ALONE = Scene([obj(1, 1, 20, 20, difficult=True)], [det(1, 1, 20, 20, score=0.9)])


test_by_protocol = by_protocol(
    Case(
        "two on a difficult object",
        TWICE,
        {
            IGNORING: ("IIT", [(1, 1)]),
            COUNTING: ("TFT", [(1 / 2, 1), (1, 2 / 3)]),
        },
    ),
    Case(
        "one beside a difficult object",
        BESIDE,
        {
            IGNORING: ("FT", [(1, 1 / 2)]),
            COUNTING: ("FT", [(1 / 2, 1 / 2)]),
        },
    ),
    Case(
        "nothing but a difficult object",
        ALONE,
        {
            IGNORING: ("I", None),
            COUNTING: ("T", [(1, 1)]),
        },
    ),
)


@pytest.mark.parametrize("base", ["coco", "voc2012"])
@pytest.mark.parametrize(
    ("rule", "letters", "steps"),
    [
        ("count", "TFT", [(1 / 2, 1), (1, 2 / 3)]),
        ("ignore", "IIT", [(1, 1)]),
        ("delete", "FFT", [(1, 1 / 3)]),
    ],
)
def test_each_value_of_the_field(base: str, rule: str, letters: str, steps: Any) -> None:
    check(TWICE, rules(base, ignore={"difficult": rule}), letters, steps)
