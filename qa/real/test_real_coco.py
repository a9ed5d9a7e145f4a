"""Real detectors on real COCO data: every cell equal to pycocotools', from the files, with the loaders."""

from __future__ import annotations

import json
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import boxscore
from boxscore.compat.verification import verify
from oracles.pycoco import assert_equal_to_pycocotools, run_pycocotools
from support.real_data import real

pytestmark = pytest.mark.real

POOLED = {"extends": "coco", "name": "pooled", "matching": {"per_class": False}}
YOLACT_IDS = ("coco_val2017", "yolact_image_ids.json")

PAIRS = {
    "yolov2_608": ("coco_val2017/ground_truth_boxes.json", "coco_val2017/yolov2_608.json", None),
    "yolact_base": (
        "coco_val2017/ground_truth_boxes.json",
        "coco_val2017/yolact_base_100.bbox.json",
        YOLACT_IDS,
    ),
    "yolact_resnet50": (
        "coco_val2017/ground_truth_boxes.json",
        "coco_val2017/yolact_resnet50_100.bbox.json",
        YOLACT_IDS,
    ),
    "fake100": (
        "coco_val2014_fake100/instances_val2014_100.json",
        "coco_val2014_fake100/instances_val2014_fakebbox100_results.json",
        None,
    ),
    "masks206": ("coco_val2017_masks206/instances.json", "coco_val2017_masks206/yolov2_608.json", None),
    "brain_tumor": ("brain_tumor/ground_truth.json", "brain_tumor/maskrcnn.json", None),
    "padilla_database_v1": (
        "padilla_database/gts/coco_format_v1/instances_default.json",
        "padilla_database/dets/coco_format/coco_dets.json",
        None,
    ),
    "padilla_toyexample": (
        "padilla_toyexample/gts_coco_format/toy_example_coco.JSON",
        "padilla_toyexample/dets_coco_format/coco_dets.json",
        None,
    ),
}


@cache
def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def pair_of(name: str) -> tuple[Path, Path, list[int] | None]:
    truth, found, ids = PAIRS[name]
    return real(truth), real(found), read(real(*ids)) if ids else None


def numbered_from_one(truth: dict[str, Any]) -> dict[str, Any]:
    """Give annotations other ids where one is 0, which pycocotools reads as "no match"."""
    if all(row["id"] != 0 for row in truth["annotations"]):
        return truth
    rows = [{**row, "id": number} for number, row in enumerate(truth["annotations"], start=1)]
    return {**truth, "annotations": rows}


def results_of(truth: dict[str, Any], found: Any) -> list[dict[str, Any]]:
    """Results as a list with the ground truth's ids, found by name where the file numbers its own."""
    if isinstance(found, list):
        return found
    files = {row["id"]: row["file_name"] for row in found["images"]}
    names = {row["id"]: row["name"] for row in found["categories"]}
    image_of = {row["file_name"]: row["id"] for row in truth["images"]}
    class_of = {row["name"]: row["id"] for row in truth["categories"]}
    return [
        {
            "image_id": image_of[files[row["image_id"]]],
            "category_id": class_of[names[row["category_id"]]],
            "bbox": row["bbox"],
            "score": row["score"],
        }
        for row in found["annotations"]
    ]


@cache
def loaded(name: str) -> tuple[boxscore.GroundTruth, boxscore.Detections]:
    truth_file, found_file, _ = pair_of(name)
    truth = boxscore.load_ground_truth(truth_file)
    return truth, boxscore.load_detections(found_file, truth)


CASES = [
    pytest.param(name, per_class, id=f"{name}-{'per_class' if per_class else 'pooled'}")
    for name in PAIRS
    for per_class in (True, False)
    if name != "yolov2_608"
]
SLOW = [
    pytest.param("yolov2_608", True, id="yolov2_608-per_class", marks=pytest.mark.slow),
    pytest.param("yolov2_608", False, id="yolov2_608-pooled", marks=pytest.mark.slow),
]


@pytest.mark.parametrize(
    ("name", "per_class"),
    [*CASES, *SLOW],
)
@pytest.mark.filterwarnings("ignore::boxscore.BoxscoreWarning")
def test_equal_to_pycocotools(name: str, per_class: bool) -> None:
    check_pair(name, per_class)


def check_pair(name: str, per_class: bool) -> None:
    truth_file, found_file, images = pair_of(name)
    truth = read(truth_file)
    reference = run_pycocotools(
        numbered_from_one(truth), results_of(truth, read(found_file)), images=images, per_class=per_class
    )
    evaluation = boxscore.evaluate(*loaded(name), images=images, protocol="coco" if per_class else POOLED)
    assert evaluation.counts["detections"] > 0
    assert_equal_to_pycocotools(evaluation, reference)
    again = boxscore.evaluate(
        *loaded(name), images=images, protocol="coco" if per_class else POOLED, workers=3
    )
    assert_equal_to_pycocotools(again, reference)


PUBLISHED = {
    "yolov2_608": ".1938 .3180 .2116 / .1732 .2195 .2195",
    "yolact_base": ".3981 .6425 .4253 / .3460 .4663 .4740",
    "yolact_resnet50": ".3587 .5908 .3481 / .3130 .4265 .4352",
    "masks206": ".2183 .3364 .2636 .0627 .2436 .3981 / .1857 .2291 .2291 .0633 .2471 .4179",
    "fake100": ".505 .697 .573 .586 .519 .501 / .387 .594 .595 .640 .566 .564",
}
"""What the data's README and the COCO authors' own output state."""


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_numbers(name: str) -> None:
    _, _, images = pair_of(name)
    metrics = boxscore.evaluate(*loaded(name), images=images).metrics
    precisions, recalls = (half.split() for half in PUBLISHED[name].split("/"))
    keys = [*list(metrics)[: len(precisions)], *list(metrics)[6 : 6 + len(recalls)]]
    stated = [*precisions, *recalls]
    digits = len(stated[0]) - 1
    assert [f"{metrics[key]:.{digits}f}".lstrip("0") for key in keys] == stated


def test_fake100_to_the_last_digit() -> None:
    metrics = boxscore.evaluate(*loaded("fake100")).metrics
    assert [metrics[key] for key in ("AP", "AP50", "AP75", "APs", "APm", "APl")] == [
        0.5045806987249628,
        0.6969727247299577,
        0.5729816669904824,
        0.5856257209410443,
        0.5193996948036719,
        0.5013978986347466,
    ]


def test_brain_tumor_differs_from_the_published_numbers_by_the_annotation_with_id_zero() -> None:
    truth_file, found_file, _ = pair_of("brain_tumor")
    defective = run_pycocotools(read(truth_file), read(found_file)).stats
    stated = {0: 44.1335, 1: 60.1680, 2: 52.8806, 5: 48.0779}  # by detectron2, which runs pycocotools
    assert {place: round(100 * defective[place], 4) for place in stated} == stated
    assert round(100 * defective[4], 1) == 10.5
    text = r"an annotation has id 0.*: AP 0\.\d+; .*\(1 true positive here\): AP 0\.4413\."
    with pytest.warns(boxscore.BoxscoreWarning, match=text):
        metrics = boxscore.evaluate(*loaded("brain_tumor")).metrics
    assert metrics["AP"] > defective[0]
    unmatched = {"extends": "coco", "matching": {"annotation_id_zero": "unmatched"}}
    as_published = boxscore.evaluate(*loaded("brain_tumor"), protocol=unmatched)
    assert_equal_to_pycocotools(as_published, run_pycocotools(read(truth_file), read(found_file)))
    found = verify(boxscore.evaluate(*loaded("brain_tumor"), protocol=unmatched))
    assert found.equal


@pytest.mark.filterwarnings("ignore::boxscore.BoxscoreWarning")
def test_brain_tumor_keeps_category_zero_and_two_classes_of_one_name() -> None:
    truth, found = loaded("brain_tumor")
    ids, names = truth.categories.ids.tolist(), truth.categories.names.tolist()
    assert 0 in ids
    assert len(set(names)) < len(names)
    labels = boxscore.evaluate(truth, found).per_class["class"].tolist()
    assert labels == [f"{name} ({number})" for name, number in zip(names, ids, strict=True)]


@pytest.mark.parametrize("name", ["masks206", "brain_tumor", "fake100"])
@pytest.mark.filterwarnings("ignore::boxscore.BoxscoreWarning")
def test_verify_finds_no_difference(name: str) -> None:
    verification = verify(boxscore.evaluate(*loaded(name)))
    if name == "brain_tumor":  # it has a matched annotation 0
        assert verification.largest["precision"] > 0.6
        assert "which explains the whole difference: " in verification.id_zero
        return
    assert verification.equal
    assert verification.largest == {"precision": 0.0, "recall": 0.0, "scores": 0.0}


def test_wrong_box_order_evaluates_with_a_warning() -> None:
    truth = loaded("yolov2_608")[0]
    with pytest.warns(boxscore.BoxscoreWarning, match=r"Are these y1,x1,y2,x2\?") as caught:
        found = boxscore.load_detections(real("coco_val2017/yolov2_416_wrong_box_order.json"), truth)
    assert len(caught) == 1
    assert round(boxscore.evaluate(truth, found).metrics["AP"], 4) == 0.0018


@pytest.mark.parametrize(
    "name", ["yolov2_608", "yolact_base", "yolact_resnet50", "fake100", "masks206", "padilla_toyexample"]
)
def test_good_files_load_without_a_warning(name: str) -> None:
    truth_file, found_file, _ = pair_of(name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        boxscore.load_detections(found_file, boxscore.load_ground_truth(truth_file))


def test_classes_without_ground_truth_are_undefined_and_no_other() -> None:
    truth, found = loaded("masks206")
    few = truth.images.ids.tolist()[:20]
    evaluation = boxscore.evaluate(truth, found, images=few)
    frame = evaluation.per_class
    without_truth = frame["ground_truths"] == 0
    assert 0 < without_truth.sum() < len(frame)
    assert (frame["AP"].isna() == without_truth).all()
    assert (frame["AR100"].isna() == without_truth).all()
    assert len(evaluation.matches) == evaluation.counts["detections"]
    reference = run_pycocotools(read(pair_of("masks206")[0]), read(pair_of("masks206")[1]), images=few)
    assert_equal_to_pycocotools(evaluation, reference)
