"""Results of a detector that found nothing are results: every metric is 0."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import boxscore
from boxscore import FindingWarning

BOX = [0, 0, 4, 4]
TRUTH = {
    "images": [{"id": 1, "width": 8, "height": 8, "neg_category_ids": [], "not_exhaustive_category_ids": []}],
    "categories": [{"id": 1, "name": "a", "frequency": "f"}],
    "annotations": [
        {
            "id": 1,
            "image_id": 1,
            "category_id": 1,
            "bbox": BOX,
            "area": 16,
            "segmentation": [[0, 0, 4, 0, 4, 4, 0, 4]],
            "keypoints": [1, 1, 2] * 17,
            "num_keypoints": 17,
        }
    ],
}
PROTOCOLS = ["coco", "coco-segm", "coco-boundary", "coco-keypoints", "lvis-segm", "lvis-pooled-segm"]


@pytest.mark.filterwarnings(f"ignore::{FindingWarning.__module__}.{FindingWarning.__name__}")
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_empty_list_is_a_result(protocol: str, tmp_path: Path) -> None:
    truth, results = tmp_path / "truth.json", tmp_path / "results.json"
    truth.write_text(json.dumps(TRUTH))
    results.write_text("[]")
    evaluation = boxscore.evaluate(truth, results, protocol=protocol)
    assert evaluation.metrics["AP"] == 0.0
