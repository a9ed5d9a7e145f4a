"""Every scope that max detections may have is said in words."""

from __future__ import annotations

import numpy as np
import pytest

import boxscore
from boxscore.extensions.validation.digest import quick_findings
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


def rows_of_boxes(count: int) -> tuple[list[int], list[str], list[list[float]]]:
    """Return images, classes and boxes that do not overlap: ``count`` in one image."""
    return [1] * count, ["cat"] * count, [[20.0 * at, 0.0, 20.0 * at + 10, 30.0] for at in range(count)]


@pytest.mark.parametrize(
    ("protocol", "limit", "lowest"), [("coco", 100, 0.85), ("coco", 100, 0.01), ("ultralytics-old", 300, 0.5)]
)
def test_a_limit_that_costs_is_said(protocol: str, limit: int, lowest: float) -> None:
    """Ground truth as detections: every object is found, but only ``limit`` detections are evaluated."""
    rows = rows_of_boxes(limit + 50)
    truth = boxscore.GroundTruth.from_arrays(*rows)
    found = boxscore.Detections.from_arrays(*rows, np.linspace(1.0, lowest, limit + 50))
    with pytest.warns(boxscore.FindingWarning, match=rf"With max detections {limit + 50}, \S+ would be"):
        result = boxscore.evaluate(truth, found, protocol=protocol)
    raised = {"extends": protocol, "matching": {"max_detections": [limit + 50]}}
    full = boxscore.evaluate(truth, found, protocol=raised, digest=False)
    [finding] = quick_findings(result)  # not also that scores seem to be cut
    first = next(iter(result.metrics))
    assert (finding.code, finding.severity) == ("beyond-max-detections", "note")
    assert (finding.value, finding.repaired) == (result.metrics[first], next(iter(full.metrics.values())))
    assert finding.effect > 0.05


def test_a_limit_that_costs_nothing_is_not_said() -> None:
    truth = boxscore.GroundTruth.from_arrays(*rows_of_boxes(80))
    rows = [one * 2 for one in rows_of_boxes(80)]
    found = boxscore.Detections.from_arrays(*rows, np.linspace(1.0, 0.0, 160))
    assert quick_findings(boxscore.evaluate(truth, found, digest=False)) == []


@pytest.mark.parametrize(("limit", "is_said"), [(1, False), (2, True)])
def test_a_protocol_of_one_answer_is_not_told_to_take_more(limit: int, is_said: bool) -> None:
    rows = rows_of_boxes(4)
    truth = boxscore.GroundTruth.from_arrays(*rows)
    found = boxscore.Detections.from_arrays(*rows, np.linspace(1.0, 0.6, 4))
    protocol = {"extends": "coco", "matching": {"max_detections": [limit]}}
    findings = quick_findings(boxscore.evaluate(truth, found, protocol=protocol, digest=False))
    assert any(one.code == "beyond-max-detections" for one in findings) == is_said
