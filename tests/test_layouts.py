"""One data set in many forms: made again to the byte, and the same numbers from every form."""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

import boxscore
from support.each import each

LAYOUTS = Path(__file__).parents[1] / "datasets" / "layouts"
SIZES = LAYOUTS / "csv" / "objects.csv"
"""Images and sizes: text knows none, and Label Studio none of an image without regions."""
YOLO_CLASSES = ["circle", "square", "triangle", "star"]

TRUTHS: dict[str, dict[str, Any]] = {
    "coco/instances.json": {},
    "yolo": {},
    "yolo/data.yaml": {},
    "yolo/labels/val": {},
    "voc": {},
    "voc/Annotations": {},
    "csv/objects.csv": {},
    "cvat/annotations.xml": {},
    "labelme": {},
    "labelstudio/tasks.json": {},
    "text/ground-truth": {"box_format": "xyxy"},
}
DETECTIONS: dict[str, dict[str, Any]] = {
    "yolo/runs/val": {"classes": YOLO_CLASSES, "image_sizes": SIZES},
    "yolo/runs/val/labels": {"classes": YOLO_CLASSES, "image_sizes": SIZES},
    "yolo/runs/val/predictions.json": {"classes": YOLO_CLASSES, "class_map": "one-based"},
    "voc/results": {},
    "csv/detections.csv": {},
    "labelstudio/tasks.json": {},
    "text/detection-results": {"box_format": "xyxy"},
}


@cache
def truth(name: str) -> boxscore.GroundTruth:
    return boxscore.load_ground_truth(LAYOUTS / name, **TRUTHS[name])


@cache
def expected() -> dict[str, float]:
    with contextlib.redirect_stdout(io.StringIO()):
        ground_truth = COCO(str(LAYOUTS / "coco" / "instances.json"))
        detections = ground_truth.loadRes(str(LAYOUTS / "coco" / "results.json"))
        evaluation = COCOeval(ground_truth, detections, "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    names = ("AP", "AP50", "AP75", "APs", "APm", "APl", "AR1", "AR10", "AR100", "ARs", "ARm", "ARl")
    return dict(zip(names, evaluation.stats.tolist(), strict=True))


def test_make_layouts_gives_the_committed_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(LAYOUTS.parent))
    made = importlib.import_module("make_layouts").layouts()
    committed = {str(path.relative_to(LAYOUTS).as_posix()): path for path in LAYOUTS.rglob("*.*")}
    assert sorted(made) == sorted(name for name, path in committed.items() if path.is_file())
    assert [name for name in made if made[name] != committed[name].read_bytes()] == []
    assert sum(map(len, made.values())) < 100_000


@each([(ground_truth, detections) for detections in DETECTIONS for ground_truth in TRUTHS])
def test_every_form_of_one_side_goes_with_every_form_of_the_other(ground_truth: str, detections: str) -> None:
    table = truth(ground_truth)
    options = dict(DETECTIONS[detections])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = boxscore.load_detections(LAYOUTS / detections, table, **options)
        result = boxscore.evaluate(table, found)
    assert dict(result.metrics) == expected()


def test_the_pair_of_coco() -> None:
    result = boxscore.evaluate(LAYOUTS / "coco" / "instances.json", LAYOUTS / "coco" / "results.json")
    assert dict(result.metrics) == expected()


def test_classes_in_another_order_are_found() -> None:
    """Class numbers against those that a VOC folder gets from the alphabet: two of four classes change places."""
    table = truth("voc")
    path = LAYOUTS / "yolo" / "runs" / "val" / "predictions.json"
    with pytest.warns(boxscore.BoxscoreWarning, match=r"AP is 0\.2415 now and would be 0\.4921"):
        boxscore.evaluate(table, boxscore.load_detections(path, table))
    with pytest.warns(boxscore.BoxscoreWarning, match="with another class list, 20 do"):
        found = boxscore.load_detections(path, table, class_map="auto")
    assert dict(boxscore.evaluate(table, found).metrics) == expected()


def test_the_export_of_roboflow() -> None:
    table = boxscore.load_ground_truth(LAYOUTS / "roboflow" / "valid" / "_annotations.coco.json")
    found = boxscore.load_detections(LAYOUTS / "roboflow" / "predictions.json", table)
    with pytest.warns(boxscore.BoxscoreWarning, match="an annotation has id 0"):
        result = boxscore.evaluate(table, found)
    assert dict(result.metrics) == expected()


def test_the_pages_say_these_numbers() -> None:
    numbers = f"AP {expected()['AP']:.4f}, AP50 {expected()['AP50']:.4f}"
    assert numbers in (LAYOUTS.parent / "README.md").read_text(encoding="utf-8")
    counts = json.loads((LAYOUTS / "coco" / "instances.json").read_text())
    assert (len(counts["images"]), len(counts["annotations"])) == (8, 27)
