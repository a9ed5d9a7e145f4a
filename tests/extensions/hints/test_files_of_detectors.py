"""Files that detectors and exporters write: how they are read, and what the error advises."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import boxscore
from boxscore import FileFormatError, GroundTruth

TRUTH = GroundTruth.from_arrays(
    ["a.jpg", "a.jpg", "b.jpg"],
    ["cat", "dog", "cat"],
    [[10, 20, 110, 70], [30, 40, 50, 60], [5, 5, 55, 55]],
    images=["a.jpg", "b.jpg", "c.jpg"],
)

TORCHVISION = [{"image_id": "a.jpg", "boxes": [[10, 20, 110, 70]], "labels": [1], "scores": [0.9]}]


@pytest.mark.filterwarnings("ignore::boxscore.BoxscoreWarning")
def test_one_image_per_line_is_read(tmp_path: Path) -> None:
    (tmp_path / "results.jsonl").write_text("".join(json.dumps(one) + "\n" for one in TORCHVISION))
    detections = boxscore.load_detections(
        tmp_path / "results.jsonl", TRUTH, classes=["background", "cat"], box_format="xyxy"
    )
    assert detections.boxes.tolist() == [[10, 20, 110, 70]]
    assert detections.categories.names[detections.category].tolist() == ["cat"]


@pytest.mark.parametrize("others", [(), ("score", "label", "box")])
def test_boxes_with_named_sides_are_corners(tmp_path: Path, others: tuple[str, ...]) -> None:
    """As transformers' pipelines write them; the same numbers are read as from_predictions reads them."""
    objects = [
        {"score": 0.9, "label": "cat", "box": {"xmin": 10, "ymin": 20, "xmax": 110, "ymax": 70}},
        {"score": 0.8, "label": "dog", "box": {"ymax": 60, "xmax": 50, "ymin": 40, "xmin": 30}},
    ]
    expected = boxscore.Detections.from_predictions([objects, []], image_ids=["a.jpg", "b.jpg"])
    if others:  # a record per box
        lines = [{"image": "a.jpg", **{key: one[key] for key in others}} for one in objects]
    else:
        lines = [{"image": "a.jpg", "predictions": objects}, {"image": "b.jpg", "predictions": []}]
    (tmp_path / "results.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    table = boxscore.load_detections(tmp_path / "results.jsonl", TRUTH)
    assert table.boxes.tolist() == expected.boxes.tolist() == [[10, 20, 110, 70], [30, 40, 50, 60]]
    assert table.scores.tolist() == [0.9, 0.8]
    assert table.categories.names[table.category].tolist() == ["cat", "dog"]


def test_boxes_without_an_image_are_named(tmp_path: Path) -> None:
    """And what the error advises is read."""
    record = {"class": "cat", "confidence": 0.9, "bbox": [10, 20, 110, 70]}
    (tmp_path / "x.json").write_text(json.dumps([record]))
    with pytest.raises(
        FileFormatError, match="this looks like detections that do not name their image: add it"
    ):
        boxscore.load_detections(tmp_path / "x.json", TRUTH)
    (tmp_path / "x.json").write_text(json.dumps([{"image": "a.jpg", **record}]))
    table = boxscore.load_detections(tmp_path / "x.json", TRUTH, box_format="xyxy")
    assert table.boxes.tolist() == [[10, 20, 110, 70]]
