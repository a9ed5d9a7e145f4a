"""Masks without a pixel, and boxes that do not enclose their mask: named, with what they cost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import boxscore
from boxscore.extensions.validation.digest import quick_findings
from boxscore.validation import validate_files
from support.quiet import quiet
from support.running import Run

SIDE = 100

EMPTY: dict[str, Any] = {
    "collinear": [[10, 10, 30, 10, 30, 10, 10, 10]],
    "outside": [[-40, -40, -10, -40, -10, -10, -40, -10]],
    "counts": {"size": [SIDE, SIDE], "counts": [SIDE * SIDE]},
}


def square(x: float, y: float, side: float) -> list[list[float]]:
    return [[x, y, x + side, y, x + side, y + side, x, y + side]]


def records(count: int = 4) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return COCO records of images with one square each, and results equal to them."""
    annotations = []
    for number in range(1, count + 1):
        x, y, side = 50.0 + number, 60.0, 26.0 + number
        box = {"bbox": [x, y, side, side], "segmentation": square(x, y, side), "area": side * side}
        annotations.append({"id": number, "image_id": number, "category_id": 1, "iscrowd": 0, **box})
    images = [{"id": number, "width": SIDE, "height": SIDE} for number in range(1, count + 1)]
    truth = {"images": images, "annotations": annotations, "categories": [{"id": 1, "name": "leaf"}]}
    keys = ("image_id", "category_id", "segmentation")
    results = [{**{key: one[key] for key in keys}, "score": 0.9 - one["id"] / 100} for one in annotations]
    return truth, results


def written(folder: Path, truth: dict[str, Any], results: list[dict[str, Any]]) -> tuple[Path, Path]:
    (folder / "gt.json").write_text(json.dumps(truth))
    (folder / "dt.json").write_text(json.dumps(results))
    return folder / "gt.json", folder / "dt.json"


@pytest.mark.parametrize("name", EMPTY)
def test_an_empty_mask_of_the_ground_truth(name: str, tmp_path: Path, run: Run) -> None:
    truth, results = records()
    truth["annotations"][1]["segmentation"] = EMPTY[name]
    del results[1]
    printed = run("evaluate", *written(tmp_path, truth, results), "--iou-type", "segm")
    said = " ".join(printed.err.split())
    ap = float(printed.out.split("AP ")[1].split()[0])
    assert ap < 0.8
    assert "warning: 1 annotation with a mask that covers no pixel: no detection can match it." in said
    assert f"Without this annotation, AP would be 1.0000 instead of {ap:.4f}" in said
    assert "area-disagrees" not in said


@pytest.mark.parametrize("name", EMPTY)
def test_an_empty_mask_of_a_detection(name: str, tmp_path: Path) -> None:
    truth, results = records()
    results[0]["segmentation"] = EMPTY[name]
    files = written(tmp_path, truth, results)
    [found] = [one for one in validate_files(*files, protocol="coco-segm") if "empty" in one.code]
    assert (found.code, found.severity, found.count) == ("detection-empty-mask", "warning", 1)
    assert found.message.endswith(": it can match no annotation")
    assert found.effect > 0  # it has the highest score


def test_where_boxes_are_compared_empty_masks_are_a_note(tmp_path: Path, run: Run) -> None:
    truth, results = records()
    truth["annotations"][0]["segmentation"] = EMPTY["collinear"]
    files = written(tmp_path, truth, [{**one, "bbox": [51, 60, 27, 27]} for one in results])
    [found] = [one for one in validate_files(*files) if "empty" in one.code]
    assert (found.severity, found.repair) == ("note", "")
    assert "empty" not in run("evaluate", *files).err


@pytest.mark.parametrize("kind", ["center", "outside", "half"])
def test_boxes_of_other_objects_than_the_masks(kind: str, tmp_path: Path, run: Run) -> None:
    """The boxes are half of width and height, then width and height, as a converter wrote them."""
    truth, results = records(12)
    boxes = [one["bbox"] for one in truth["annotations"]]
    results = [{**one, "bbox": box} for one, box in zip(results, boxes, strict=True)]
    for one, (x, y, w, h) in zip(truth["annotations"], boxes, strict=True):
        others = {
            "center": [w / 2, h / 2, w, h],
            "outside": [90, 90, w, h],
            "half": [x / 2, y / 2, w / 2, h / 2],
        }
        one["bbox"] = others[kind]
    files = written(tmp_path, truth, results)
    said = " ".join(run("evaluate", *files).err.split())
    assert said.startswith(
        "boxscore: error in the input: 12 of 12 boxes of the ground truth do not enclose the"
    )
    assert "With the boxes around the masks, AP would be 1.0000 instead of 0.0000 (+1.0000)." in said
    assert said.count("boxscore: ") == 1  # not also another order of the numbers
    [found] = [one for one in validate_files(files[0]) if one.code == "annotation-box-not-of-mask"]
    assert (found.severity, found.count) == ("warning", 12)


@pytest.mark.parametrize("spoil", ["few", "crowd", "larger", "damaged"])
def test_other_boxes_are_not_named(spoil: str, tmp_path: Path) -> None:
    truth, results = records(6)
    results = [{**one, "bbox": [10, 10, 20, 20]} for one in results]  # AP is 0
    for number, one in enumerate(truth["annotations"]):
        if spoil == "larger":
            one["bbox"] = [0, 0, SIDE, SIDE]
        elif spoil == "damaged":
            one["segmentation"] = {"size": [SIDE, SIDE], "counts": "no mask"}
        elif number < (5 if spoil == "crowd" else 2):
            one["bbox"] = [0, 0, 20, 20]
        one["iscrowd"] = int(spoil == "crowd" and number < 5)
    gt, dt = written(tmp_path, truth, results)
    with quiet():
        table = boxscore.load_ground_truth(gt)
        result = boxscore.evaluate(table, boxscore.load_detections(dt, table))
        codes = {one.code for one in quick_findings(result)}
    assert "annotation-box-not-of-mask" not in codes
