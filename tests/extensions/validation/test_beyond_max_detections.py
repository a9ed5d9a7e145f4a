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


@pytest.mark.parametrize(
    ("scope", "words"),
    [
        ("class", "image and class"),
        ("image", "image"),
        ("image_each", "image"),
        ("data_set_class", "class of"),
    ],
)
def test_detections_that_stop_at_a_number(scope: str, words: str) -> None:
    images = [image for image in range(30) for _ in range(6)]
    corners = [[9.0 * n, 5.0, 9.0 * n + 8, 9.0 + n] for _ in range(30) for n in range(6)]
    truth = boxscore.GroundTruth.from_arrays(images, ["cat"] * 180, corners)
    found = boxscore.Detections.from_arrays(images, ["cat"] * 180, corners, [i / 180 for i in range(180)])
    protocol = {"extends": "coco", "matching": {"cap_scope": scope, "max_detections": [1, 300]}}
    findings = validate(truth, found, protocol=protocol)
    (finding,) = [one for one in findings if one.code == "detections-cut-per-image"]
    assert f"limited to 6, below the protocol's max detections of 300 per {words}" in finding.message
    with pytest.warns(boxscore.FindingWarning, match="30 images have exactly 6 detections"):
        boxscore.evaluate(truth, found, protocol=protocol)
