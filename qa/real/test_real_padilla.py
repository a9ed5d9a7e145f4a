"""The emulations of Padilla's tool against what the tool itself printed for its two data sets.

It sums in another order, so the last bits of some averages differ: at most 4e-16 was seen. The counts of
true and false positives are equal.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import boxscore
from support.quiet import quiet
from support.real_data import real

LAST_BITS = 1e-15

SETS = {
    "padilla_database": (
        ["gts/coco_format_v1/instances_default.json", "gts/coco_format_v2/instances_v2.json"],
        "dets/coco_format/coco_dets.json",
    ),
    "padilla_toyexample": (["gts_coco_format/toy_example_coco.JSON"], "dets_coco_format/coco_dets.json"),
}
CASES = [(name, truth, found) for name, (truths, found) in SETS.items() for truth in truths]


def load(name: str, truth: str, found: str) -> tuple[Any, Any, dict[str, Any]]:
    with quiet():
        ground_truth = boxscore.load_ground_truth(real(name, *truth.split("/")))
        detections = boxscore.load_detections(real(name, *found.split("/")), ground_truth)
    return ground_truth, detections, json.loads(real(name, "expected_padilla_tool.json").read_text())


@pytest.mark.real
@pytest.mark.parametrize(("name", "truth", "found"), CASES)
@pytest.mark.parametrize("threshold", [0.5, 0.75])
@pytest.mark.parametrize(
    ("protocol", "method"),
    [("padilla-voc", "EVERY_POINT_INTERPOLATION"), ("padilla-voc2007", "ELEVEN_POINT_INTERPOLATION")],
)
def test_voc_metrics(name: str, truth: str, found: str, threshold: float, protocol: str, method: str) -> None:
    ground_truth, detections, printed = load(name, truth, found)
    expected = printed[f"voc_iou{threshold}_{method}"]
    rules = {"extends": protocol, "matching": {"iou_thresholds": [threshold]}}
    result = boxscore.evaluate(ground_truth, detections, protocol=rules)
    assert result.metrics["mAP"] == pytest.approx(expected["mAP"], abs=LAST_BITS, rel=0)
    rows = result.per_class.set_index("class")
    for label, (precision, truths, true_positives, false_positives) in expected["per_class"].items():
        row = rows.loc[label]
        assert row["AP"] == pytest.approx(precision, abs=LAST_BITS, rel=0), label
        counts = (row["ground_truths"], row["true_positives"], row["detections"] - row["true_positives"])
        assert counts == (truths, true_positives, false_positives), label
    assert set(expected["per_class"]) == set(rows.index)


@pytest.mark.real
@pytest.mark.parametrize(("name", "truth", "found"), CASES)
def test_coco_metrics(name: str, truth: str, found: str) -> None:
    ground_truth, detections, printed = load(name, truth, found)
    with quiet():  # the toy example has an id 0
        result = boxscore.evaluate(ground_truth, detections, protocol="padilla-coco")
    names = {"APs": "APsmall", "APm": "APmedium", "APl": "APlarge"}
    names |= {"ARs": "ARsmall", "ARm": "ARmedium", "ARl": "ARlarge"}
    compared = 0
    for key, value in result.metrics.items():
        expected = printed["coco"].get(names.get(key, key))
        if expected is not None:
            assert np.isnan(value) == np.isnan(expected)
            assert np.isnan(value) or value == pytest.approx(expected, abs=LAST_BITS, rel=0), key
            compared += 1
    assert compared >= 3
