"""``runs/detect`` and other folders lead on to the only data in them."""

from __future__ import annotations

import json
import os
import shutil
import warnings
from pathlib import Path

import pytest

import boxscore
from boxscore import FileFormatError, InputError
from boxscore.cli import main
from support.running import Run
from support.samples import SHAPES, SHAPES_VOC

GT, DT = SHAPES / "instances.json", SHAPES / "detections.json"


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    folder = tmp_path / "runs"
    (folder / "detect" / "val").mkdir(parents=True)
    (folder / "detect" / "train" / "weights").mkdir(parents=True)
    (folder / "detect" / "train" / "args.yaml").write_text("mode: train\n")
    shutil.copy(DT, folder / "detect" / "val" / "predictions.json")
    return folder


@pytest.mark.parametrize("inside", [".", "detect", "detect/val"])
def test_the_only_detections_are_read(inside: str, runs: Path, run: Run) -> None:
    expected = run("evaluate", GT, DT, "--output", "csv").out
    given = runs / inside
    captured = run("evaluate", GT, given, "--output", "csv")
    assert captured.out == expected
    detections = runs / "detect" / "val" / "predictions.json"
    assert " ".join(captured.err.split()) == (
        f"boxscore: note: {given}: reading {detections}, the only detections in this folder."
    )


def test_python_and_nms_too(runs: Path, tmp_path: Path) -> None:
    truth = boxscore.load_ground_truth(GT)
    with pytest.warns(boxscore.BoxscoreWarning, match="the only detections in this folder"):
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
            f"{runs} must contain exactly one file or folder with detections. Got several, the newest first: {path}, {other}; "
            "pass one of them."
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
        with pytest.warns(boxscore.BoxscoreWarning, match="the only detections in this folder"):
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
    with pytest.warns(
        boxscore.BoxscoreWarning, match=r"reading .*instances_val\.json, the only ground truth"
    ):
        assert len(boxscore.load_ground_truth(tmp_path)) == 113


def test_none_says_what_was_looked_for(runs: Path, run: Run) -> None:
    assert run.error("evaluate", GT, runs / "detect" / "train").endswith(
        "; looked for: predictions.json, labels with confidences, *.bbox.json, coco_instances_results.json.\n"
    )


def test_which_folder_was_taken_is_a_note(runs: Path, run: Run) -> None:
    assert run("evaluate", GT, runs, "--strict", "--output", "csv").err.startswith("boxscore: note: ")
    assert run("evaluate", GT, runs, "-q", "--output", "csv").err == ""


def test_a_format_is_said_where_it_surprises(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    monkeypatch.setattr("boxscore.cli.inputs.stderr_is_terminal", lambda: True)
    monkeypatch.chdir(tmp_path)
    shutil.copy(GT, "gt.json")
    shutil.copy(DT, "dt.json")
    assert "reading it as" not in run("evaluate", "gt.json", "dt.json").err
    Path("dt.json").rename("dt.log")
    assert run("evaluate", "gt.json", "dt.log").err.splitlines()[0] == (
        "boxscore: note: detections: dt.log is a JSON file; reading it as coco"
    )


# What tools write, and which of it is ground truth or detections; {} is a file of either.
TREES = {
    "ultralytics val": ["runs/detect/val/predictions.json", "runs/detect/val/confusion_matrix.png"],
    "YOLOv5 val": ["runs/val/exp/best_predictions.json", "runs/val/exp/F1_curve.png"],
    "MMDetection": ["work_dirs/rtmdet/results.bbox.json", "work_dirs/rtmdet/20260101/vis_data/scalars.json"],
    "Detectron2": [
        "output/inference/coco_instances_results.json",
        "output/metrics.json",
        "output/last_checkpoint",
    ],
}


@pytest.mark.parametrize("tree", TREES)
def test_detections_are_found_beside_ground_truth(tree: str, tmp_path: Path, run: Run) -> None:
    for name in TREES[tree]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("{}")
    detections, truth = (
        tmp_path / TREES[tree][0],
        tmp_path / "data" / "annotations" / "instances_val2017.json",
    )
    truth.parent.mkdir(parents=True)
    shutil.copy(DT, detections)
    shutil.copy(GT, truth)
    expected = run("evaluate", GT, DT, "--output", "csv").out
    printed = run("evaluate", tmp_path, tmp_path, "--output", "csv", "--strict")
    assert printed.out == expected
    assert set(printed.err.splitlines()) == {
        f"boxscore: note: {tmp_path}: reading {truth}, the only ground truth in this folder.",
        f"boxscore: note: {tmp_path}: reading {detections}, the only detections in this folder.",
    }
    assert boxscore.evaluate(GT, DT).metrics == quiet_evaluation(tmp_path).metrics


def quiet_evaluation(folder: Path) -> boxscore.Evaluation:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return boxscore.evaluate(folder, folder, digest=False)


def test_labels_of_a_data_set_are_no_detections(tmp_path: Path) -> None:
    labels = tmp_path / "labels" / "val"
    labels.mkdir(parents=True)
    (labels / "a.txt").write_text("0 0.5 0.5 0.1 0.1\n")
    (tmp_path / "runs" / "detect" / "val" / "labels").mkdir(parents=True)
    (tmp_path / "runs" / "detect" / "val" / "labels" / "a.txt").write_text("0 0.5 0.5 0.1 0.1 0.9\n")
    detect = boxscore.formats.detect_format
    truth = boxscore.load_ground_truth(labels, classes=["cat"], image_sizes="100x100")
    assert detect(tmp_path, side="ground truth") == ("yolo", "a folder of YOLO's text files")
    with pytest.warns(
        boxscore.BoxscoreWarning, match=r"reading .*runs/detect/val/labels, the only detections"
    ):
        assert len(boxscore.load_detections(tmp_path, truth, classes=["cat"])) == 1


def test_a_folder_above_a_data_set_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    voc = SHAPES_VOC / "VOC2007"
    shutil.copytree(voc / "Annotations", "data/VOCdevkit/VOC2007/Annotations")
    (tmp_path / "dota" / "val" / "labelTxt").mkdir(parents=True)
    (tmp_path / "dota" / "val" / "labelTxt" / "P1.txt").write_text("10 10 50 10 50 40 10 40 plane 0\n")
    for given, detections in (
        ("data/VOCdevkit", "data/VOCdevkit/VOC2007"),
        ("data", "data/VOCdevkit/VOC2007"),
        ("dota", "dota/val"),
    ):
        with pytest.raises(
            FileFormatError, match=rf"what looks like a folder with \w+; pass {detections}\.$"
        ):
            boxscore.load_ground_truth(given)
    assert len(boxscore.load_ground_truth("data/VOCdevkit/VOC2007").images) == 24
    assert len(boxscore.load_ground_truth("dota/val")) == 1
    shutil.copytree("data/VOCdevkit/VOC2007", "data/VOCdevkit/VOC2012")
    with pytest.raises(
        FileFormatError, match=r"; pass one of data/VOCdevkit/VOC2007, data/VOCdevkit/VOC2012\.$"
    ):
        boxscore.load_ground_truth("data")


def test_image_sets_of_classes_come_last(tmp_path: Path) -> None:
    shutil.copytree(SHAPES_VOC / "VOC2007", tmp_path / "VOC2007")
    with pytest.raises(InputError, match=r"choose from test, train, circle_test, .* and 2 more\.$"):
        boxscore.load_ground_truth(tmp_path / "VOC2007")
