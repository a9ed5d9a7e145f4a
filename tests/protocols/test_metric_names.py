"""Names of metrics as other tools write them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import boxscore
from boxscore.cli import main
from boxscore.diagnostics import bootstrap_intervals
from boxscore.errors import InputError
from boxscore.protocols import load_protocol
from boxscore.protocols.loading import protocol_names
from boxscore.protocols.metric_names import metric_meant, metric_named
from support.each import each
from support.samples import SHAPES

COCO = ["AP", "AP50", "AP75", "APs", "APm", "APl", "AR1", "AR10", "AR100", "ARs", "ARm", "ARl"]
MEANT = {
    "AP": "map mAP MAP ap AP50-95 mAP50-95 mAP@[.5:.95] mAP@.5:.95 mAP@0.5:0.95 mAP@0.5:0.05:0.95 mAP_0.5:0.95 "
    "AP@[IoU=0.50:0.95] metrics/mAP50-95(B) metrics/mAP50-95(M) bbox_mAP coco/bbox_mAP segm_mAP val_map map_bbox",
    "AP50": "map_50 mAP@.5 mAP50 AP@0.5 mAP@0.50 mAP@50 AP_50 AP-50 AP.50 metrics/mAP50(B) coco/bbox_mAP_50 AP@[.5]",
    "AP75": "map_75 mAP@.75 AP@0.75 mAP75 bbox_mAP_75",
    "APs": "map_small mAP_s APsmall ap-small bbox_mAP_s",
    "APl": "map_large AP_l",
    "AR1": "mar_1 AR@1 AR_max_1 mAR1",
    "AR100": "mar_100 AR@100 mAR100 bbox_AR_100",
    "ARm": "mar_medium AR_medium",
}


@each([(name, key) for key, names in MEANT.items() for name in names.split()])
def test_a_name_stands_for_a_key(name: str, key: str) -> None:
    assert metric_named(name, COCO) == key


@pytest.mark.parametrize(
    "name", ["", "area", "apple", "AR", "mAP30", "mar_5", "mr", "F1", "map 50 75", "AP@.5:.9"]
)
def test_other_names_are_refused(name: str) -> None:
    assert metric_meant(name, COCO) is None
    with pytest.raises(InputError, match=r"a metric must be one of 'AP', 'AP50', .*\. Got "):
        metric_named(name, COCO)


@each(protocol_names())
def test_no_two_keys_of_a_protocol_are_called_alike(name: str) -> None:
    keys = [row.key.replace("{cap}", "100") for row in load_protocol(name).rows]
    for key in keys:
        assert metric_named(key, keys) == key
        others = [metric_meant(f"{prefix}{key}", keys) for prefix in ("m", "metrics/")]
        assert set(others) <= {key, None}


def test_a_key_of_its_own_comes_first_and_a_range_needs_single_thresholds_beside_it() -> None:
    assert metric_named("map", ["mAP"]) == "mAP"
    assert metric_named("AP", ["mAP"]) == "mAP"
    assert metric_named("mAP", ["AP", "mAP"]) == "mAP"
    assert metric_meant("map", ["AP", "mAP"]) is None
    assert metric_named("mAP50", ["mAP", "mAP50", "mAP75"]) == "mAP50"
    for wrong in ("mAP50-95", "mAP@[.5:.95]", "mAP50"):  # VOC's only number is of one threshold
        assert metric_meant(wrong, ["mAP"]) is None
    assert metric_meant("map50-95", ["AP", "MR", "JI"]) is None


def test_results_understand_them() -> None:
    result = boxscore.evaluate(SHAPES / "instances.json", SHAPES / "detections.json")
    assert result["map"] == result["mAP@[.5:.95]"] == result["AP"]
    assert result["metrics/mAP50(B)"] == result["AP50"]
    with pytest.raises(InputError, match=r"a metric must be one of 'AP', .* Got 'AP5'; did you mean 'AP"):
        result["AP5"]
    drawn = [bootstrap_intervals(result, metrics=[name]) for name in ("map_50", "AP50")]
    assert drawn[0].to_frame().equals(drawn[1].to_frame())


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    paths = [str(SHAPES / name) for name in ("instances.json", "detections.json")]
    status = main([words[0], *paths, *words[1:], "-q"])
    return status, capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "names", "keys"),
    [
        ("check --min {0}=.1 --min", "map circle\xa0mAP@.5", "AP circle\xa0AP50"),
        ("bootstrap --metrics {0}", "map_50", "AP50"),
        ("sweep --method hard --iou-threshold 0.5 --metrics {0}", "mAP50-95", "AP"),
        ("evaluate --per-class --sort {0}:desc", "map_75", "AP75"),
    ],
)
def test_commands_understand_them(
    command: str, names: str, keys: str, capsys: pytest.CaptureFixture[str]
) -> None:
    outputs = []
    for said in (names, keys):
        first, *others = said.split(" ")
        words = command.format(first).split() + [f"{one}=.1".replace("\xa0", " ") for one in others]
        outputs.append(run(capsys, *words))
    assert outputs[0] == outputs[1]
    assert outputs[0][0] == 0
    assert outputs[0][1]


def test_a_history_understands_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    history = tmp_path / "scores.jsonl"
    assert run(capsys, "check", "--min", "map=.1", "--history", str(history))[0] == 0
    outputs = []
    for name in ("map_50", "AP50"):
        assert main(["history", str(history), "--metrics", name, "-o", "json"]) == 0
        outputs.append(json.loads(capsys.readouterr().out))
    assert outputs[0] == outputs[1]
