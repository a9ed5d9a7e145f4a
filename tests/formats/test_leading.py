"""``runs/detect`` and other folders lead on to the only data in them."""

from __future__ import annotations

import json
import os
import shutil
import warnings
from pathlib import Path

import pytest

import boxscore
from boxscore import FileFormatError
from boxscore.cli import main

DATA = Path(__file__).parents[2] / "datasets" / "shapes_coco"
GT, DT = DATA / "instances.json", DATA / "detections.json"


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    folder = tmp_path / "runs"
    (folder / "detect" / "val").mkdir(parents=True)
    (folder / "detect" / "train" / "weights").mkdir(parents=True)
    (folder / "detect" / "train" / "args.yaml").write_text("mode: train\n")
    shutil.copy(DT, folder / "detect" / "val" / "predictions.json")
    return folder


@pytest.mark.parametrize("inside", [".", "detect", "detect/val"])
def test_the_only_detections_are_read(inside: str, runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", str(GT), str(DT), "--output", "csv"]) == 0
    expected = capsys.readouterr().out
    given = runs / inside
    assert main(["evaluate", str(GT), str(given), "--output", "csv"]) == 0
    captured = capsys.readouterr()
    assert captured.out == expected
    found = runs / "detect" / "val" / "predictions.json"
    assert " ".join(captured.err.split()) == (
        f"boxscore: warning: {given}: reading {found}, the only data in this folder."
    )


def test_python_and_nms_too(runs: Path, tmp_path: Path) -> None:
    truth = boxscore.load_ground_truth(GT)
    with pytest.warns(boxscore.BoxscoreWarning, match="the only data in this folder"):
        table = boxscore.load_detections(runs, truth)
    assert table.source == str(runs / "detect" / "val" / "predictions.json")
    outputs = [tmp_path / name for name in ("a.json", "b.json")]
    for path, output in zip((runs, DT), outputs, strict=True):
        assert main(["nms", str(path), "-o", str(output), "--iou-threshold", "0.5"]) == 0
    assert outputs[0].read_bytes() == outputs[1].read_bytes()


def test_several_are_listed_the_newest_first(runs: Path) -> None:
    first = runs / "detect" / "val" / "predictions.json"
    second = runs / "detect" / "val2" / "labels"
    second.mkdir(parents=True)
    (second / "a.txt").write_text("0 0.5 0.5 0.1 0.1 0.9\n")
    for newest, path, other in ((2e9, first, second), (1e9, second, first)):
        os.utime(first, (newest, newest))
        with pytest.raises(FileFormatError) as caught:
            boxscore.load_detections(runs, boxscore.load_ground_truth(GT))
        assert str(caught.value) == (
            f"{runs} must lead to one file or folder of data. Got several, the newest first: {path}, {other}; "
            "give one of them."
        )


def test_labels_with_confidences(runs: Path) -> None:
    (runs / "detect" / "val" / "predictions.json").unlink()
    (runs / "detect" / "val" / "labels").mkdir()
    (runs / "detect" / "val" / "labels" / "a.txt").write_text("0 0.5 0.5 0.1 0.1 0.9\n")
    annotation = {"id": 1, "image_id": 1, "category_id": 1, "bbox": [1, 1, 4, 4], "area": 16, "iscrowd": 0}
    image = {"id": 1, "file_name": "a.jpg", "width": 10, "height": 10}
    content = {"images": [image], "categories": [{"id": 1, "name": "cat"}], "annotations": [annotation]}
    (runs / "gt.txt").write_text(json.dumps(content))
    truth = boxscore.load_ground_truth(runs / "gt.txt", format="coco")
    (runs / "gt.txt").unlink()
    for folder in (runs, runs / "detect"):
        with pytest.warns(boxscore.BoxscoreWarning, match="the only data in this folder"):
            assert len(boxscore.load_detections(folder, truth, classes=["cat"])) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert boxscore.load_detections(runs / "detect" / "val", truth, classes=["cat"]).boxes.shape == (1, 4)


def test_annotations_are_not_left_for_detections_beside_them(tmp_path: Path) -> None:
    (tmp_path / "labels" / "val").mkdir(parents=True)
    (tmp_path / "labels" / "val" / "a.txt").write_text("0 0.5 0.5 0.1 0.1\n")
    (tmp_path / "predictions.json").write_text("[]")
    assert boxscore.formats.detect_format(tmp_path) == ("yolo", "a folder of YOLO's text files")


def test_ground_truth_below_a_folder(tmp_path: Path) -> None:
    (tmp_path / "coco" / "labels").mkdir(parents=True)
    shutil.copy(GT, tmp_path / "coco" / "instances_val.json")
    with pytest.warns(boxscore.BoxscoreWarning, match=r"reading .*instances_val\.json, the only data"):
        assert len(boxscore.load_ground_truth(tmp_path)) == 113


def test_none_says_what_was_looked_for(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", str(GT), str(runs / "detect" / "train")]) == 2
    assert capsys.readouterr().err.endswith(
        "; looked for in it: predictions.json, labels with confidences, data.yaml, instances*.json.\n"
    )
