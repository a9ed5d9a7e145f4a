"""Equal scores: image by image, in file order over all images, or true positives first."""

from __future__ import annotations

from typing import Any

import pytest

from support.scenes import (
    BOX_PROTOCOLS,
    BY_IMAGE_FILE,
    BY_RESULTS_FILE,
    COCO,
    PADILLA_COCO,
    ULTRALYTICS,
    Case,
    Scene,
    by_protocol,
    check,
    det,
    obj,
    rules,
)

BY_IMAGE = (*COCO, *PADILLA_COCO, *ULTRALYTICS, *BY_IMAGE_FILE, "tide", "bes-dev")

HIT = det(1, 1, 20, 20, score=0.5)
MISS = det(101, 1, 120, 20, score=0.5)


def two_images(first: Any, second: Any) -> Scene:
    """An object in image 0 or 1, wherever the hit is; the detections in this order of the file."""
    image = next(item.image for item in (first, second) if item.box == HIT.box)
    return Scene([obj(1, 1, 20, 20, image=image)], [first, second], images=2)


test_by_protocol = by_protocol(
    Case(
        "file: a miss in image 1, a hit in image 0",
        two_images(MISS._replace(image=1), HIT),
        {
            BY_IMAGE: ("FT", [(1, 1)]),
            BY_RESULTS_FILE: ("FT", [(1, 1 / 2)]),
            ("fiftyone",): ("FT", [(1, 1)]),
        },
    ),
    Case(
        "file: a hit in image 1, a miss in image 0",
        two_images(HIT._replace(image=1), MISS),
        {
            BY_IMAGE: ("TF", [(1, 1 / 2)]),
            BY_RESULTS_FILE: ("TF", [(1, 1)]),
            ("fiftyone",): ("TF", [(1, 1)]),
        },
    ),
    Case(
        "one image: in file order",
        two_images(MISS, HIT),
        {
            tuple(name for name in BOX_PROTOCOLS if name != "fiftyone"): ("FT", [(1, 1 / 2)]),
            ("fiftyone",): ("FT", [(1, 1)]),
        },
    ),
)


@pytest.mark.parametrize(
    ("order", "steps"),
    [
        ("as_ranked", [(1 / 2, 1 / 2), (1, 1 / 2)]),  # F T F T
        ("true_positives_first", [(1, 1)]),  # T T F F
        ("true_positives_last", [(1, 1 / 2)]),  # F F T T
    ],
)
def test_order_after_matching(order: str, steps: Any) -> None:
    objects = [obj(1, 1, 20, 20), obj(41, 1, 60, 20)]
    hits = [HIT, det(41, 1, 60, 20, score=0.5)]
    scene = Scene(objects, [MISS, hits[0], MISS, hits[1]])
    check(scene, rules("coco", ap={"tie_order": order}), "FTFT", steps)


def test_zero_and_minus_zero_are_equal() -> None:
    scene = Scene([obj(1, 1, 20, 20)], [MISS._replace(score=-0.0), HIT._replace(score=0.0)])
    for name in ("coco", "voc2012"):
        check(scene, name, "FT", [(1, 1 / 2)])
