"""Every command that reads detections, on detections without scores: it answers, or says why not in one line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import boxscore
from boxscore.cli import COMMANDS
from support.running import Run

GT, DT = "datasets/shapes_coco/instances.json", "datasets/shapes_coco/detections.json"

ANSWER = {
    "evaluate": ["--per-class"],
    "validate": [],
    "errors": [],
    "confusion": ["--top", "3"],
    "slices": ["--by", "size"],
    "images": ["--top", "3"],
    "iou": [],
    "presence": [],
    "ties": [],
    "compare-protocols": [],
    "bootstrap": [],
    "check": ["--min", "F1_50=0.1"],
    "report": ["--report", "{tmp}/report", "--resamples", "0"],
    "draw": ["--images", "180", "--output", "{tmp}/drawn"],
}
REFUSED = {
    "error-curves": [],
    "operating-points": [],
    "operating-points --guarantee": ["--guarantee", "recall=.5"],
    "suspects": [],
    "calibration": [],
    "lrp": [],
    "froc": [],
    "explain": ["--from", "voc2007"],
}
ELSEWHERE = {
    *("compare", "suite", "view", "keypoint-errors", "agreement", "history", "merge", "panoptic", "semantic"),
    *("nms", "fuse", "sweep", "stats", "convert", "fix", "demo", "formats", "protocols", "run"),
    *("tiles", "diff", "decode", "epochs"),  # whose images are named otherwise; two results; tensors; files
    "plot",  # tested below: the kind of plot comes first
}
"""Commands of several detectors, of other data, or without detections."""


@pytest.fixture(autouse=True)
def in_the_project(monkeypatch, request):
    monkeypatch.chdir(request.config.rootpath)


@pytest.fixture(scope="module")
def unscored(tmp_path_factory, pytestconfig) -> str:
    records = json.loads((pytestconfig.rootpath / DT).read_text(encoding="utf-8"))
    path = tmp_path_factory.mktemp("unscored") / "detections.json"
    path.write_text(json.dumps([{k: v for k, v in one.items() if k != "score"} for one in records]))
    return str(path)


def test_no_command_is_forgotten():
    assert {name.split()[0] for name in (*ANSWER, *REFUSED)} | ELSEWHERE == {*COMMANDS}


@pytest.mark.parametrize("name", ANSWER)
@pytest.mark.parametrize("way", ["without", "--scoreless"])
def test_commands_that_answer(run: Run, unscored, tmp_path, name, way):
    options = [each.format(tmp=tmp_path) for each in ANSWER[name]]
    detections = [DT, "--scoreless"] if way == "--scoreless" else [unscored]
    shown = run(name, GT, *detections, *options)
    assert "Traceback" not in shown.err
    assert "scores:none" in shown.out or name in ("draw", "iou", "compare-protocols"), shown


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("way", ["without", "--scoreless"])
def test_commands_that_need_scores_say_so_in_one_line(run: Run, unscored, name, way):
    detections = [DT, "--scoreless"] if way == "--scoreless" else [unscored]
    shown = run(name.split()[0], GT, *detections, *REFUSED[name], status=2)
    lines = [line for line in shown.err.splitlines() if "error" in line]
    assert len(lines) == 1
    assert "must have scores" in lines[0]


@pytest.mark.parametrize("way", ["without", "--scoreless"])
def test_plots_of_curves_need_scores(run: Run, unscored, tmp_path, way):
    detections = [DT, "--scoreless"] if way == "--scoreless" else [unscored]
    for kind in ("pr", "f1", "reliability", "error-curves", "froc"):
        path = tmp_path / f"{kind}.png"
        assert "must have scores" in run("plot", kind, GT, *detections, "--output", path, status=2).err, kind
        assert not path.exists()
    run("plot", "confusion", GT, *detections, "--output", tmp_path / "confusion.png")


def test_both_ways_give_the_same_numbers(run: Run, unscored):
    out = [
        json.loads(run("evaluate", GT, *given, "--output", "json").out)
        for given in ([unscored], [DT, "--scoreless"])
    ]
    assert out[0]["metrics"] == out[1]["metrics"]
    assert out[0]["per_class"] == out[1]["per_class"]


def test_scores_that_are_all_equal_look_invented(run: Run, tmp_path):
    records = json.loads(Path(DT).read_text(encoding="utf-8"))
    path = tmp_path / "ones.json"
    path.write_text(json.dumps([{**one, "score": 1.0} for one in records]))
    for name in ("evaluate", "errors", "confusion", "slices", "images", "ties", "validate"):
        more = ["--by", "size"] if name == "slices" else []
        shown = run(name, GT, str(path), *more, status=int(name == "validate"))
        text = " ".join((shown.out + shown.err).split())
        assert (
            "If the scores are placeholders, use --scoreless to count the boxes without ranking them" in text
        ), name
    with pytest.warns(boxscore.BoxscoreWarning, match="If the scores are placeholders, use --scoreless"):
        boxscore.evaluate(GT, path)


def test_table_per_class():
    """False positives and misses of each class, by the list of what became of every box."""
    truth = boxscore.load_ground_truth(GT)
    detections = boxscore.load_detections(DT, truth)
    result = boxscore.evaluate(truth, detections.without_scores())
    table = result._class_table
    assert not {"precision", "recall", "macroF1_50", "macroF1"} & {*table}  # P50, R50, F1_50 and F1 are these
    matches = result.matches
    for k, label in enumerate(result.labels):
        outcome = matches["outcome"][matches["class"] == label]
        assert table["false_positives"][k] == (outcome == "false positive").sum()
        assert table["false_negatives"][k] == table["ground_truths"][k] - (outcome == "true positive").sum()
    images = len(truth.images)
    np.testing.assert_array_equal(table["FPPI50"], table["false_positives"] / images)
    true, false = table["true_positives"].sum(), table["false_positives"].sum()
    assert result["P50"] == true / (true + false)
    assert result["R50"] == true / (true + table["false_negatives"].sum())
    other = boxscore.evaluate(truth, detections.without_scores(), protocol="coco")._class_table
    assert [*other][4:9] == ["false_positives", "false_negatives", "precision", "recall", "F1"]
    scored = boxscore.evaluate(truth, detections)._class_table
    assert "false_positives" not in scored


# ---------------------------------------------------------------- in parts


@pytest.mark.parametrize("name", ["dt.json", "dt.parquet"])
@pytest.mark.parametrize("options", [[], ["--protocol", "scoreless"]])
def test_parts_count_without_scores_as_the_whole(
    name: str, options: list[str], tmp_path: Path, run: Run
) -> None:
    """Three ways that once asked for scores; equal boxes whose IoU rounds to more than 1 among them."""
    pytest.importorskip("pyarrow")
    sides = [tmp_path / "gt.json", tmp_path / "dt.json"]
    rng = np.random.default_rng(3)
    boxes = np.hstack([rng.random((40, 2)) * 90, rng.random((40, 2)) * 60]).tolist()
    images = [{"id": at, "width": 200, "height": 200} for at in range(8)]
    records = [
        {"image_id": at % 8, "category_id": 1, "bbox": box, "area": box[2] * box[3], "iscrowd": 0}
        for at, box in enumerate(boxes)
    ]
    annotations = [{**record, "id": at + 1} for at, record in enumerate(records)]
    truth = {"images": images, "annotations": annotations, "categories": [{"id": 1, "name": "dog"}]}
    found = [{key: record[key] for key in ("image_id", "category_id", "bbox")} for record in records[5:]]
    for path, content in zip(sides, (truth, found), strict=True):
        path.write_text(json.dumps(content))
    expected = run("evaluate", *sides, *options, "--no-digest").out
    assert "F1_50" in expected
    if name.endswith("parquet"):
        run("convert", "--gt", sides[0], "--dt", sides[1], "--to", "parquet", "--output", tmp_path / name)
        sides[1] = tmp_path / name
        for more in (["--workers", "2"], ["--memory-limit", "2GB"]):
            assert run("evaluate", *sides, *options, *more, "--no-digest").out == expected
    parts = [tmp_path / f"{number}.npz" for number in (1, 2, 3)]
    for number, part in enumerate(parts, start=1):
        run("evaluate", *sides, *options, "--shard", f"{number}/3", "--save-part", part, "--no-digest")
    assert run("merge", *parts).out == expected
