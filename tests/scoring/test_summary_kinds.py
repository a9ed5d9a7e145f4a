"""Kinds of summary metrics: means over thresholds, points and classes, to the bit."""

from __future__ import annotations

import importlib
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore.protocols.summary import FAMILIES, OF_IMAGES, SUMMARY_KINDS
from support.curves import K, tables
from support.each import each


def case(thresholds: int, points: int, kind: str = "AP") -> boxscore.Evaluation:
    rules: dict[str, Any] = {
        "extends": "coco",
        "name": "case",
        "matching": {
            "iou_thresholds": np.linspace(0.2, 0.9, thresholds).tolist(),
            "per_class": kind not in OF_IMAGES,
        },
        "ap": {"recall_points": np.linspace(0, 1, points).tolist()},
        "summary": [{"key": "every", "metric": kind}, {"key": "first", "metric": kind, "iou": 0.2}],
    }
    return boxscore.evaluate(*tables(3), protocol=rules)


def mean_of_defined(cells: Any) -> float:
    defined = cells[~np.isnan(cells)]
    return float(np.mean(defined)) if len(defined) else float("nan")


@pytest.mark.parametrize(("thresholds", "points"), [(10, 101), (1, 101), (3, 11), (2, 2)])
def test_metrics_have_the_bits_of_the_mean_of_their_cells(thresholds: int, points: int) -> None:
    """A class without an object has no cell."""
    evaluation, recall = (case(thresholds, points, kind) for kind in ("AP", "AR"))
    for result, cells in (
        (evaluation, evaluation.arrays()["precision"][..., 0, -1]),
        (recall, recall.arrays()["recall"][..., 0, -1]),
    ):
        for key, own in (("every", cells), ("first", cells[:1])):
            of_classes = [mean_of_defined(np.ascontiguousarray(own[..., k])) for k in range(K)]
            assert result.class_values[key].tobytes() == np.array(of_classes).tobytes()
            assert result[key] == mean_of_defined(own)
        assert np.isnan(result.class_values["every"]).sum() == 1


def test_without_classes_every_metric_is_undefined() -> None:
    nothing = boxscore.GroundTruth.from_arrays([], [], [], images=[1])
    evaluation = boxscore.evaluate(nothing, boxscore.Detections.from_arrays([], [], [], []))
    assert np.isnan(list(evaluation.metrics.values())).all()
    assert all(len(values) == 0 for values in evaluation.class_values.values())


@pytest.mark.filterwarnings("ignore:.*there are only positive phrases")
@each([kind for kind in SUMMARY_KINDS if not kind.startswith("AOS")])
def test_every_kind_that_a_protocol_may_name_is_computed(kind: str) -> None:
    evaluation = case(3, 11, kind)
    if kind in ("cgF1", "IL_FPR", "IL_MCC"):  # every image has an object and a detection
        assert evaluation["first"] == 0
    elif kind in ("fp_per_image", "exact_images"):  # numbers, not shares
        assert evaluation["first"] >= 0
    else:
        assert 0 < evaluation["first"] < 1
    assert len(evaluation.class_values["every"]) == (1 if kind in OF_IMAGES else K)


def test_a_family_has_the_kinds_that_the_table_names() -> None:
    for module, names in FAMILIES.items():
        assert [kind.name for kind in importlib.import_module(module).KINDS] == names.split(), module
    assert len(set(SUMMARY_KINDS)) == len(SUMMARY_KINDS)


def test_a_protocol_is_read_without_any_family() -> None:
    """Checking a protocol needs the names of the kinds alone."""
    code = (
        "import sys; from boxscore import load_protocol; load_protocol('coco'); load_protocol('kitti');"
        "print(*(name for name in sys.modules if name.startswith('boxscore.scoring')))"
    )
    ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert ran.stdout.strip() == ""


def test_an_unknown_kind_is_refused() -> None:
    rules = {"extends": "coco", "summary": [{"key": "x", "metric": "AB"}]}
    with pytest.raises(boxscore.ProtocolError, match="summary x: metric must be one of"):
        boxscore.load_protocol(rules)


def test_a_value_beside_an_undefined_one_counts_in_the_mean() -> None:
    """One class has no counted detection at the first threshold, another at the second: two values are left."""
    rules = {
        "extends": "coco",
        "name": "two thresholds",
        "matching": {"iou_thresholds": [0.5, 0.75], "max_detections": [100]},
        "miss_rate": {"reading": "first_at_least", "false_positives_per_image": [0.5]},
        "ignore": {"area_ranges": {"all": [0, 1e10]}, "crowd": "iof"},
        "summary": [{"key": "MR", "metric": "MR"}],
    }
    missed, found = [100, 100, 110, 110], [200, 0, 206, 10]
    truth = boxscore.GroundTruth.from_arrays(
        [1] * 4,
        ["a", "a", "b", "b"],
        [missed, [0, 0, 6, 10], [200, 0, 210, 10], found],
        crowd=[False, True, True, False],
    )
    detections = boxscore.Detections.from_arrays(
        [1] * 2, ["a", "b"], [[0, 0, 10, 10], [200, 0, 210, 10]], [0.9] * 2
    )
    assert boxscore.evaluate(truth, detections, protocol=rules)["MR"] == 0.5  # a: 1 at .75; b: 0 at .5
