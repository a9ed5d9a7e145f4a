"""Rules of benchmarks of tiny objects: how much a region holds, made of an IoU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore import Detections, GroundTruth
from boxscore.distributed import Part, merge
from support.parted import bits, parts_of, whole

FOUND = (0, 0, 10, 10)  # its area is 100


def counted(region: tuple[float, ...], area: float, *, crowd: bool, share: str, threshold: float) -> float:
    """Precision at recall 1 of one right detection and, of higher score, one on a region."""
    truth = GroundTruth.from_arrays(
        [1, 1],
        ["a", "a"],
        [region, (50, 50, 60, 60)],
        area=[area, 100],
        crowd=[crowd, False],
        ignore=[not crowd, False],
    )
    found = Detections.from_arrays([1, 1], ["a", "a"], [FOUND, (50, 50, 60, 60)], [0.9, 0.5])
    protocol: dict[str, Any] = {
        "extends": "coco",
        "matching": {"iou_thresholds": [threshold]},
        "ignore": {"flagged": "iof", "outside": "iof", "area_ranges": {"all": [0, 1e10]}},
        "boxes": {"foreground_share": share},
        "summary": [{"key": "AP"}],
    }
    return float(boxscore.evaluate(truth, found, protocol=protocol)["AP"])


@pytest.mark.parametrize("share", ["exact", "from_iou"])
def test_a_share_made_of_an_iou_is_the_share_where_areas_are_those_of_the_boxes(share: str) -> None:
    region = (5, 0, 25, 10)  # holds half of it: IoU 50 / 250
    held, out = (
        counted(region, 200, crowd=False, share=share, threshold=threshold) for threshold in (0.49, 0.51)
    )
    assert (held, out) == (pytest.approx(1, abs=1e-15), pytest.approx(0.5, abs=1e-15))


@pytest.mark.parametrize(("area", "threshold", "held"), [(20, 0.19, True), (20, 0.21, False)])
def test_with_a_smaller_area_too_little_is_held(area: float, threshold: float, held: bool) -> None:
    """The formula gives 0.2 / 1.2 * (1 + 20 / 100) = 0.2, where half of the detection is inside."""
    ours = counted((5, 0, 25, 10), area, crowd=False, share="from_iou", threshold=threshold)
    assert ours == pytest.approx(1 if held else 0.5, abs=1e-15)


@pytest.mark.parametrize(("share", "held"), [("exact", False), ("from_iou", True)])
def test_of_a_crowd_too_much_is_held(share: str, held: bool) -> None:
    """The share, 0.5, is taken for an IoU: 0.5 / 1.5 * (1 + 200 / 100) = 1."""
    ours = counted((5, 0, 25, 10), 200, crowd=True, share=share, threshold=0.9)
    assert ours == pytest.approx(1 if held else 0.5, abs=1e-15)


@pytest.mark.parametrize("name", ["aitod", "sodad", "tinyperson"])
@pytest.mark.parametrize("seed", range(3))
def test_images_apart_or_at_once(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    count, images = 80, 5
    corners = rng.uniform(0, 300, (count, 2))
    sides = rng.choice([2, 5, 8, 12, 16, 20, 32, 40, 60], (count, 2)).astype(float)
    boxes = np.column_stack([corners, corners + sides])
    image, label = np.arange(count) % images, rng.integers(2, size=count)
    truth = GroundTruth.from_arrays(
        image,
        label,
        boxes,
        crowd=rng.random(count) < 0.05,
        ignore=rng.random(count) < 0.1,
        images=range(images),
        columns={"uncertain": (rng.random(count) < 0.1).astype(float)},
    )
    found = Detections.from_arrays(
        np.tile(image, 2),
        np.tile(label, 2),
        np.tile(boxes, (2, 1)) + rng.normal(0, 1, (2 * count, 2)).repeat(2, axis=1)[:, [0, 2, 1, 3]],
        rng.integers(8, size=2 * count) / 8,
    )
    parts = parts_of((truth, found), name, np.arange(images) % 2)
    merged = merge([Part.from_bytes(part.to_bytes()) for part in parts])
    assert bits(merged) == bits(whole((truth, found), name))
