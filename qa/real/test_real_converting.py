"""Real data sets come back to the bit from the formats that hold them, and score the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import boxscore
from support.quiet import quiet
from support.real_data import real
from support.tables import same_bits

pytestmark = pytest.mark.real


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with quiet():
        yield


@pytest.mark.parametrize(
    "parts",
    [
        ("coco_val2017_masks206", "instances.json"),
        ("coco_keypoints250", "person_keypoints.json"),
        ("coco_val2014_fake100", "instances_val2014_100.json"),
    ],
    ids=lambda parts: parts[0],
)
def test_coco_with_masks_and_keypoints(parts: tuple[str, ...], tmp_path: Path) -> None:
    truth = boxscore.load_ground_truth(real(*parts))
    boxscore.save_as(truth, tmp_path / "a.json")
    same_bits(truth, boxscore.load_ground_truth(tmp_path / "a.json"))


@pytest.mark.parametrize("name", ["openpose_a.json", "openpose_b.json"])
def test_results_with_keypoints(name: str, tmp_path: Path) -> None:
    truth = boxscore.load_ground_truth(real("coco_keypoints250", "person_keypoints.json"))
    found = boxscore.load_detections(real("coco_keypoints250", name), truth)
    boxscore.save_as(found, tmp_path / "dt.json")
    again = boxscore.load_detections(tmp_path / "dt.json", truth)
    same_bits(found, again)
    assert found.boxes_given == again.boxes_given


def test_results_with_masks(tmp_path: Path) -> None:
    truth = boxscore.load_ground_truth(real("coco_val2017_masks206", "instances.json"))
    found = boxscore.load_detections(real("coco_val2017_masks206", "yolact_base.segm.json"), truth)
    boxscore.save_as(found, tmp_path / "dt.json")
    again = boxscore.load_detections(tmp_path / "dt.json", truth)
    same_bits(found, again)
    metrics = [boxscore.evaluate(truth, table, protocol="coco-segm").metrics for table in (found, again)]
    assert metrics[0] == metrics[1]


def test_yolo_scores_as_coco_does(tmp_path: Path) -> None:
    """Fractions move overlaps in their last bits: the twelve numbers stay within 1e-4 of those of pixels."""
    folder = "coco_val2017_masks206"
    truth = boxscore.load_ground_truth(real(folder, "instances.json"))
    found = boxscore.load_detections(real(folder, "yolov2_608.json"), truth)
    truth = boxscore.filter_objects(truth, crowd=False)
    boxes = truth.replaced(area=truth.sizes.prod(axis=1))
    boxscore.save_as(boxes, tmp_path / "gt", format="yolo", lossy=True)
    boxscore.save_as(found, tmp_path / "dt", format="yolo")
    sizes = tmp_path / "gt" / "image_sizes.csv"
    again = boxscore.load_ground_truth(tmp_path / "gt", image_sizes=sizes)
    results = boxscore.load_detections(tmp_path / "dt", again, format="yolo")
    before = boxscore.evaluate(boxes, found).metrics
    after = boxscore.evaluate(again, results).metrics
    assert np.allclose([*before.values()], [*after.values()], rtol=0, atol=1e-4)
