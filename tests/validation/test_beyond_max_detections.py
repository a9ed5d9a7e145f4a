"""Every scope that max detections may have is said in words."""

from __future__ import annotations

import pytest

import boxscore
from boxscore.validation import validate

BOX = [10.0, 10.0, 50.0, 50.0]


@pytest.mark.parametrize(
    ("scope", "words"),
    [
        ("class", "per image and class"),
        ("image", "per image"),
        ("image_each", "per image"),
        ("data_set_class", "per class of the data set"),
    ],
)
def test_detections_beyond_max_detections(scope: str, words: str) -> None:
    truth = boxscore.GroundTruth.from_arrays([1, 2], ["cat", "cat"], [BOX, BOX])
    found = boxscore.Detections.from_arrays([1] * 5, ["cat"] * 5, [BOX] * 5, [0.9, 0.8, 0.7, 0.6, 0.5])
    matching = {"cap_scope": scope, "max_detections": [1, 3]}
    findings = validate(truth, found, protocol={"extends": "coco", "matching": matching})
    (finding,) = [one for one in findings if one.code == "beyond-max-detections"]
    assert f"2 detections are not evaluated: max detections is 3 {words} (exceeded in 1 " in finding.message
