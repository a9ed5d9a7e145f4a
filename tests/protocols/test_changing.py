"""Flags that write a protocol: the numbers are those of a protocol file with the same values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import boxscore
from boxscore.protocols import changed_protocol, load_protocol
from boxscore.protocols.changing import area_ranges_of_text, iou_thresholds_of_text
from boxscore.protocols.fields import OTHER_NAMES, all_fields
from support.running import Run
from support.samples import DT, GT

FILES = ["--gt", GT, "--dt", DT]

FLAGS = [
    (["--max-detections", "1", "10", "300"], {"matching": {"max_detections": [1, 10, 300]}}),
    (["--max-detections", "5"], {"matching": {"max_detections": [5]}}),
    (["--iou-thresholds", "0.75", "0.3"], {"matching": {"iou_thresholds": [0.3, 0.75]}}),
    (
        ["--iou-thresholds", "0.5:0.95/4"],
        {"matching": {"iou_thresholds": {"start": 0.5, "stop": 0.95, "count": 4}}},
    ),
    (
        ["--area-ranges", "small=0:900", "rest=900:inf"],
        {"ignore": {"area_ranges": {"all": [0, 1e10], "small": [0, 900], "rest": [900, float("inf")]}}},
    ),
    (["--score-threshold", "0.4"], {"matching": {"score_threshold": 0.4}}),
]


@pytest.mark.parametrize(("flags", "values"), FLAGS)
def test_flags_score_as_a_protocol_of_the_same_values(
    flags: list[str], values: dict[str, object], run: Run
) -> None:
    result = json.loads(run("evaluate", *FILES, *flags, "--output", "json").out)
    expected = boxscore.evaluate(FILES[1], FILES[3], protocol={"extends": "coco", "name": "coco+", **values})
    assert result["signature"] == expected.signature
    same = set(result["metrics"]) & set(expected.metrics)
    assert "AP" in same
    assert {key: result["metrics"][key] for key in same} == {key: expected.metrics[key] for key in same}
    assert set(expected.metrics) <= set(result["metrics"])


def test_every_new_threshold_area_and_cap_has_a_metric() -> None:
    protocol = changed_protocol(
        load_protocol("coco"),
        iou_thresholds=[0.3, 0.5, 0.6, 0.75],
        area_ranges={"tiny": (0, 100)},
        max_detections=[1, 2, 3, 4],
    )
    assert [row.key for row in protocol.rows] == [
        *("AP", "AP30", "AP50", "AP60", "AP75", "AP_tiny", "AR1", "AR2", "AR3", "AR4", "AR_tiny")
    ]
    low = boxscore.evaluate(FILES[1], FILES[3], protocol=protocol)
    alone = boxscore.evaluate(
        FILES[1],
        FILES[3],
        protocol={
            "extends": "coco",
            "matching": {"iou_thresholds": [0.3], "max_detections": [4]},
            "summary": [{"key": "AP"}],
        },
    )
    assert low["AP30"] == alone["AP"]


@pytest.mark.parametrize("change", [{"max_detections": [1, 10, 100]}, {"score_threshold": 0.4}])
def test_thresholds_that_stay_get_no_metrics(change: dict[str, Any]) -> None:
    coco = load_protocol("coco")
    assert [row.key for row in changed_protocol(coco, **change).rows] == [row.key for row in coco.rows]


def test_nothing_changed_is_the_same_protocol() -> None:
    coco = load_protocol("coco")
    assert changed_protocol(coco) is coco
    assert changed_protocol(changed_protocol(coco, score_threshold=0.1), max_detections=[9]).name == "coco++"


def test_a_run_configuration_takes_the_same_changes(tmp_path: Path, run: Run) -> None:
    (tmp_path / "run.toml").write_text(
        f'[ground_truth]\npath = "{FILES[1]}"\n[detections]\npath = "{FILES[3]}"\n[output]\nform = "json"\n'
        "[evaluation]\nmax_detections = [1, 10, 300]\nscore_threshold = 0\niou_thresholds = [0.5, 0.75]\n"
    )
    configured = json.loads(run("run", tmp_path / "run.toml").out)["metrics"]
    flags = [
        "--max-detections",
        "1",
        "10",
        "300",
        "--score-threshold",
        "0",
        "--iou-thresholds",
        "0.5",
        "0.75",
    ]
    assert configured == json.loads(run("evaluate", *FILES, *flags, "--output", "json").out)["metrics"]


def test_names_of_other_tools_are_answered_with_ours() -> None:
    fields = {field.path for field in all_fields(load_protocol("coco"))}
    assert set(OTHER_NAMES.values()) <= fields
    for values, answer in (
        ({"maxDets": [1]}, "here it is max_detections in the table [matching]"),
        ({"matching": {"iouThrs": [0.5]}}, "here it is iou_thresholds in the table [matching]"),
        ({"iouType": "segm"}, "here it is similarity, at the top"),
        ({"matching": {"area_ranges": {}}}, "here it is area_ranges in the table [ignore]"),
    ):
        with pytest.raises(boxscore.ProtocolError) as error:
            load_protocol({"extends": "coco", **values})  # type: ignore[dict-item]
        assert answer in str(error.value)


@pytest.mark.parametrize(
    ("words", "rule"),
    [
        (["abc"], "--iou-thresholds must be numbers"),
        (["0.5:0.95"], "first:last/count"),
        (["0.5:x/3"], "--iou-thresholds must be numbers"),
        (["0_5"], "--iou-thresholds must be numbers"),
    ],
)
def test_wrong_thresholds(words: list[str], rule: str) -> None:
    with pytest.raises(boxscore.ProtocolError, match=rule):
        iou_thresholds_of_text(words)


@pytest.mark.parametrize("word", ["small", "small=5", "=0:5", "small=a:5", "small=nan:5"])
def test_wrong_area_ranges(word: str) -> None:
    with pytest.raises(boxscore.ProtocolError, match="--area-ranges must be"):
        area_ranges_of_text([word])
