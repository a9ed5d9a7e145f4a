"""What summary metrics are called per class: no column is lost or renamed by chance, wherever it is shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import boxscore
from boxscore.diagnostics import sweep, tie_bounds
from boxscore.reports import flat_metrics
from support.running import Run
from support.samples import DT, GT, SHAPES

KEYS = ["mean_large", "mAP50", "AP50", "mAP"]
COLUMNS = ["mean_large", "mAP50", "AP50", "AP"]
PROTOCOL: dict[str, Any] = {
    "extends": "coco",
    "name": "mine",
    "summary": [
        {"key": "mean_large", "area": "large"},
        {"key": "mAP50", "iou": 0.5},
        {"key": "AP50", "iou": 0.5, "area": "small"},
        {"key": "mAP"},
    ],
}
TOML = """
extends = "coco"
summary = [
    {key = "mean_large", area = "large"}, {key = "mAP50", iou = 0.5}, {key = "AP50", iou = 0.5, area = "small"},
    {key = "mAP"},
]
"""


@pytest.fixture(scope="module")
def result() -> boxscore.Evaluation:
    truth = boxscore.load_ground_truth(SHAPES / "instances.json")
    found = boxscore.load_detections(SHAPES / "detections.json", truth)
    return boxscore.evaluate(truth, found, protocol=PROTOCOL)


def test_evaluation(result: boxscore.Evaluation) -> None:
    assert list(result.metrics) == KEYS
    assert list(result.class_values) == COLUMNS
    assert list(result.per_class.columns)[-4:] == COLUMNS
    for key, column in zip(KEYS, COLUMNS, strict=True):  # the same number: a mean over classes
        assert np.nanmean(result.class_values[column]) == pytest.approx(result.metrics[key], abs=1e-12)


def test_sweep(result: boxscore.Evaluation) -> None:
    table = sweep(result.ground_truth, result.detections, iou_thresholds=[0.9], protocol=PROTOCOL)
    table = table.printed_frame()
    assert set(COLUMNS) <= set(table.columns)
    assert not table.isna()[COLUMNS].all().any()


def test_ties(result: boxscore.Evaluation) -> None:
    table = tie_bounds(result).printed_frame()
    for (label, key), rows in table.groupby(["class", "metric"]):
        column = dict(zip(KEYS, COLUMNS, strict=True))[key]
        values = result.per_class.set_index("class")[column]
        expected = values[label] if label in values.index else result.metrics[key]
        np.testing.assert_array_equal(rows["value"], [expected])


def test_trackers(result: boxscore.Evaluation) -> None:
    assert flat_metrics(result)["mean_large"] == result.metrics["mean_large"]
    label = result.labels[0]
    first = result.class_values["mean_large"][0]
    assert [value for key, value in flat_metrics(result, per_class=True).items() if label in key] == [first]


@pytest.mark.parametrize(
    ("asked", "columns"),
    [
        ([], KEYS),
        (["mean_large"], ["mean_large"]),
        (["mAP50"], ["mAP50"]),
        (["AP50"], ["AP50"]),
        (["mAP"], ["mAP"]),
        (["AP"], ["mAP"]),
    ],
)
def test_command_line(asked: list[str], columns: list[str], tmp_path: Path, run: Run) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(TOML, encoding="utf-8")
    given = ["--gt", GT, "--dt", DT]
    given += ["--protocol", str(path), "--output", "json"]
    metrics = ["--metrics", *asked] if asked else []
    rows = pd.DataFrame(json.loads(run("sweep", *given, "--iou-threshold", "0.9", *metrics).out)["rows"])
    assert [name for name in rows.columns if name in {*KEYS, *COLUMNS}] == columns
    assert list(json.loads(run("evaluate", *given, "--per-class").out)["per_class"][0])[-4:] == COLUMNS
