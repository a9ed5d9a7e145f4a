"""What both tables hold and the protocol does not read: which protocol was meant, with both numbers."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore import Detections, FindingWarning, GroundTruth
from boxscore.formats import load_both
from boxscore.validation import validate
from support.instances import keypoint_case, mask_case
from support.real_data import real
from support.running import Run

RANDOM = np.random.default_rng(5)
COUNT = 30
IMAGE = np.repeat(np.arange(6), 5)
CORNERS = (RANDOM.uniform(0, 400, (COUNT, 1, 2)) + RANDOM.normal(0, 30, (COUNT, 4, 2))).reshape(COUNT, 8)


def scores() -> Any:
    return np.linspace(0.001, 0.9, COUNT)


def found(*tables: Any, **options: Any) -> list[FindingWarning]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        boxscore.evaluate(*tables, **options)
    return [each.message for each in caught if isinstance(each.message, FindingWarning)]


def by_keypoints(count: int, *, boxes: bool) -> tuple[GroundTruth, Detections]:
    points = RANDOM.uniform(0, 300, (COUNT, count, 2))
    visible = np.full((COUNT, count, 1), 2.0)
    keypoints = np.concatenate([points, visible], axis=2).reshape(COUNT, -1)
    around = np.hstack([points.min(axis=1) - 20, points.max(axis=1) + 20])
    truth = GroundTruth.from_arrays(IMAGE, ["person"] * COUNT, around, keypoints=keypoints)
    noise = np.concatenate([points + RANDOM.normal(0, 4, points.shape), visible], axis=2).reshape(COUNT, -1)
    given = around if boxes else None
    return truth, Detections.from_arrays(IMAGE, ["person"] * COUNT, given, scores(), keypoints=noise)


def test_keypoints_without_boxes_under_boxes() -> None:
    tables = by_keypoints(17, boxes=False)
    here = boxscore.evaluate(*tables, digest=False)["AP"]
    there = boxscore.evaluate(*tables, protocol="coco-keypoints")["AP"]
    (warning,) = (each for each in found(*tables) if each.code == "keypoints-without-effect")
    assert str(warning) == (
        "the detections are keypoints without boxes, but the protocol coco compares the "
        f"boxes around them. With --iou-type keypoints, AP would be {there:.4f} (AP is {here:.4f} now)."
    )
    assert there != here
    assert "keypoints-without-effect" not in {w.code for w in found(*tables, protocol="coco-keypoints")}


@pytest.mark.parametrize("kind", ["masks", "keypoints"])
def test_what_is_left_in_the_file_is_named_and_not_read(kind: str, tmp_path: Path) -> None:
    truth, rows = keypoint_case(3, joints=17) if kind == "keypoints" else mask_case(3)
    for row in rows:
        row.pop("bbox", None)
    paths = tmp_path / "gt.json", tmp_path / "dt.json"
    truth["annotations"][1]["segmentation" if kind == "masks" else "keypoints"] = {"size": "damaged"}
    for path, content in zip(paths, (truth, rows), strict=True):
        path.write_text(json.dumps(content))
    tables = load_both(*paths)
    iou_type = {"masks": "segm", "keypoints": "keypoints"}[kind]
    assert [str(each) for each in found(*tables) if each.code == f"{kind}-without-effect"] == [
        f"the detections are {kind} without boxes, but the protocol coco compares the boxes "
        f"around them: use --iou-type {iou_type} to compare the {kind}."
    ]
    assert not tables[0].instances.is_read(kind)
    for annotation in truth["annotations"]:
        annotation["segmentation" if kind == "masks" else "keypoints"] = []
    paths[0].write_text(json.dumps(truth))
    assert not [each for each in found(*load_both(*paths)) if each.code == f"{kind}-without-effect"]


@pytest.mark.parametrize("given", ["quadrilaterals", "rotated"])
def test_oriented_boxes_under_upright_ones(given: str) -> None:
    place = RANDOM.uniform(50, 400, (COUNT, 2))
    values = np.column_stack(
        [place, RANDOM.uniform([60, 10], [90, 20], (COUNT, 2)), RANDOM.uniform(0, 1.5, COUNT)]
    )
    if given == "quadrilaterals":
        x, y, half = place[:, 0], place[:, 1], values[:, 2] / 2
        values = np.column_stack([x - half, y, x, y - 9, x + half, y, x, y + 9])
    other, key, words = {
        "quadrilaterals": ("dota", "mAP", "four corners"),
        "rotated": ("coco-rotated", "AP", "rotated boxes"),
    }[given]
    flags = np.arange(COUNT) == 3
    truth = GroundTruth.from_arrays(IMAGE, ["ship"] * COUNT, None, difficult=flags, **{given: values})
    noise = values + RANDOM.normal(0, 0.5, values.shape) * (np.arange(values.shape[1]) != 4)
    detections = Detections.from_arrays(IMAGE, ["ship"] * COUNT, None, scores(), **{given: noise})
    here = boxscore.evaluate(truth, detections, digest=False)["AP"]
    there = boxscore.evaluate(truth, detections, protocol=other, digest=False)[key]
    said = [each for each in found(truth, detections) if "without-effect" in each.code]
    assert [str(each) for each in said] == [
        f"ground truth and detections have {words}, but the protocol coco compares the upright boxes around "
        "them; 1 difficult object counts like any other. "
        f"With --protocol {other}, {key} would be {there:.4f} (AP is {here:.4f} now)."
    ]
    assert here != there
    upright = Detections.from_arrays(IMAGE, ["ship"] * COUNT, detections.boxes, scores())
    assert not any("upright" in str(each) for each in found(truth, upright))


def test_boxes_beside_keypoints_are_normal() -> None:
    assert "keypoints-without-effect" not in {each.code for each in found(*by_keypoints(17, boxes=True))}


def test_no_option_is_named_where_the_protocol_knows_other_keypoints() -> None:
    (warning,) = (
        each for each in found(*by_keypoints(5, boxes=False)) if each.code == "keypoints-without-effect"
    )
    assert str(warning).endswith("compares the boxes around them.")


def difficult() -> tuple[GroundTruth, Detections]:
    boxes = np.hstack([CORNERS[:, :2], CORNERS[:, :2] + RANDOM.uniform(20, 60, (COUNT, 2))])
    truth = GroundTruth.from_arrays(IMAGE, ["cat"] * COUNT, boxes, difficult=np.arange(COUNT) % 3 == 0)
    return truth, Detections.from_arrays(
        IMAGE, ["cat"] * COUNT, boxes + RANDOM.normal(0, 2, (COUNT, 4)), scores()
    )


def test_difficult_objects_that_count() -> None:
    tables = difficult()
    here = boxscore.evaluate(*tables, digest=False)["AP"]
    there = boxscore.evaluate(*tables, protocol="voc2007", digest=False)["mAP"]
    (warning,) = (each for each in found(*tables) if each.code == "difficult-flag-without-effect")
    assert str(warning) == (
        "10 annotations flagged difficult, which the protocol coco does not use: they "
        f"count like any other. With --protocol voc2007, mAP would be {there:.4f} (AP is {here:.4f} now)."
    )


def test_the_same_words_and_numbers_everywhere(tmp_path: Path, run: Run) -> None:
    """The bundled VOC folder under ``coco``: in Python, on the command line, and the option typed."""
    folder = Path("datasets/shapes_voc").resolve()
    paths = (folder / "VOC2007", folder / "results")
    arguments = [*map(str, paths), "--image-set", "test"]
    truth = boxscore.load_ground_truth(paths[0], image_set="test")
    tables = (truth, boxscore.load_detections(paths[1], truth))
    (warning,) = found(*tables)
    assert " ".join(run("evaluate", *arguments).err.split()) == f"boxscore: warning: {warning}"
    here = boxscore.evaluate(*tables)["AP"]
    typed = boxscore.evaluate(*tables, protocol="voc2007")["mAP"]
    assert str(warning).endswith(f"With --protocol voc2007, mAP would be {typed:.4f} (AP is {here:.4f} now).")
    (finding,) = (one for one in validate(*tables) if one.code == warning.code)
    assert (finding.repaired, finding.repaired_metric) == (typed, "mAP")


def test_large_tables_are_not_evaluated_again(monkeypatch: pytest.MonkeyPatch) -> None:
    from boxscore.extensions.validation import _findings

    monkeypatch.setattr(_findings, "MOST_ROWS", {"box": 59})
    monkeypatch.setattr("boxscore.extensions.validation.digest.FEW", 0)
    (warning,) = (each for each in found(*difficult()) if each.code == "difficult-flag-without-effect")
    assert str(warning).endswith("they count like any other.")


@pytest.mark.real
def test_dota_under_coco() -> None:
    folder = real("dota", "evaluation_example")
    truth = boxscore.load_ground_truth(folder / "row_DOTA_labels", image_set=folder / "imgnamefile.txt")
    detections = boxscore.load_detections(folder / "result_classname", truth)
    first = found(truth, detections)[0]
    assert str(first) == (
        "ground truth and detections have four corners, but the protocol coco compares the upright boxes "
        "around them; 97 difficult objects count like any other. With --protocol dota, mAP would be 0.7146 (AP is 0.4660 now)."
    )
    assert not any("corners" in str(each) for each in found(truth, detections, protocol="dota"))


@pytest.mark.real
def test_a_voc_folder_under_coco() -> None:
    truth = boxscore.load_ground_truth(real("voc2007", "VOC2007"), image_set="test")
    first = found(truth, boxscore.load_detections(real("voc2007", "results") / "yolov2", truth))[0]
    assert str(first) == (
        "2,944 annotations flagged difficult, which the protocol coco does not use: they "
        "count like any other. With --protocol voc2007, mAP would be 0.7219 (AP is 0.3632 now)."
    )


@pytest.mark.real
@pytest.mark.parametrize(("name", "ap"), [("openpose_a", "0.2154"), ("openpose_b", "0.4019")])
def test_keypoints_under_coco(name: str, ap: str) -> None:
    truth = boxscore.load_ground_truth(real("coco_keypoints250", "person_keypoints.json"))
    detections = boxscore.load_detections(real("coco_keypoints250", f"{name}.json"), truth)
    first = found(truth, detections)[0]
    assert str(first).endswith("the boxes around them: use --iou-type keypoints to compare the keypoints.")
    assert not truth.instances.is_read("keypoints")
    (finding,) = (each for each in validate(truth, detections) if each.code == first.code)
    assert finding.effect_text.startswith(f"With --iou-type keypoints, AP would be {ap} (AP is ")
