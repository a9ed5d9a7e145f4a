"""What real files hold: rows of nothing listed, ids in two spellings, sides below 0, boxes inside out."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore.compat.verification import verify
from oracles import kit
from oracles.pycoco import assert_equal_to_pycocotools, run_pycocotools
from support import instances, voc_cases
from support.quiet import quiet
from support.traps import truth_as_counted, with_traps

Record = dict[str, Any]


def sample(seed: int = 0) -> tuple[Record, list[Record]]:
    """A dozen objects in three images and two classes, most of them found."""
    rng = np.random.default_rng(seed)
    annotations, results = [], []
    for number in range(1, 13):
        x, y, w, h = rng.integers(0, 60, 2).tolist() + rng.integers(5, 40, 2).tolist()
        where = {"image_id": int(rng.integers(1, 4)), "category_id": int(rng.integers(1, 3))}
        annotations.append({"id": number, **where, "bbox": [x, y, w, h], "area": w * h, "iscrowd": 0})
        for step in range(2):
            score = float(rng.integers(1, 9)) / 9
            results.append({**where, "bbox": [x + step, y, w, h], "score": score})
    images = [{"id": image, "width": 200, "height": 200} for image in (1, 2, 3)]
    categories = [{"id": label, "name": f"class {label}"} for label in (1, 2)]
    return {"images": images, "categories": categories, "annotations": annotations}, results


def load(
    folder: Path, truth: Record, results: list[Record]
) -> tuple[boxscore.GroundTruth, boxscore.Detections]:
    (folder / "gt.json").write_text(json.dumps(truth))
    (folder / "dt.json").write_text(json.dumps(results))
    table = boxscore.load_ground_truth(folder / "gt.json")
    return table, boxscore.load_detections(folder / "dt.json", table)


def as_pycocotools(
    folder: Path, truth: Record, results: list[Record], *messages: str, pooled: bool = True
) -> None:
    """Load with exactly these warnings, and find every cell equal, per class and with classes pooled."""
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always", boxscore.BoxscoreWarning)
        tables = load(folder, truth, results)
    said = [str(warning.message).replace(f"{folder}/", "") for warning in given]
    assert said == list(messages)
    for per_class in (True, False) if pooled else (True,):
        protocol = {"extends": "coco", "matching": {"per_class": per_class}}
        evaluation = boxscore.evaluate(*tables, protocol=protocol)
        assert_equal_to_pycocotools(evaluation, run_pycocotools(truth, results, per_class=per_class))
        assert verify(evaluation).equal


def test_cut_lists_leave_annotations_out(tmp_path: Path) -> None:
    truth, results = sample()
    truth["annotations"][2] |= {"category_id": 1, "image_id": 2}
    truth["categories"].pop()
    truth["images"].pop(0)
    results = [row for row in results if row["image_id"] != 1]
    unlisted = {key: [row[key] for row in truth["annotations"]] for key in ("category_id", "image_id")}
    classes, images = unlisted["category_id"].count(2), unlisted["image_id"].count(1)
    rows = truth["annotations"]
    total = sum(row["category_id"] == 2 or row["image_id"] == 1 for row in rows)
    found = sum(row["category_id"] == 2 for row in results)
    assert 0 < max(classes, images) < total < len(rows)
    as_pycocotools(
        tmp_path,
        truth,
        results,
        f"gt.json: ignoring {total} annotations, as in pycocotools: {classes} of 1 category that is not listed "
        f"(2), {images} of 1 image that is not listed (1).",
        f"dt.json: ignoring {found} detections of 1 class that the ground truth does not have: 2. No detection remains. The ground truth has 1 (class 1); if classes are numbered differently, use --class-map (in Python class_map=).",
    )


def test_masks_of_annotations_left_out_are_left_out(tmp_path: Path) -> None:
    truth, results = instances.mask_case(7)
    truth["images"] = truth["images"][:1]
    results = [row for row in results if row["image_id"] == 1]
    reference = instances.run_pycocotools(truth, results, "segm")
    later = instances.evaluate(tmp_path, truth, results, "coco-segm")
    instances.assert_same_bits(later, reference)
    with quiet():
        at_once = boxscore.evaluate(
            tmp_path / "truth.json", tmp_path / "results.json", protocol=later.protocol
        )
    instances.assert_same_bits(at_once, reference)
    assert len(at_once.ground_truth) < len(truth["annotations"])


REPEATED = "gt.json: {} more than once; only the last annotation with an id counts, as in pycocotools."


def test_repeated_ids_across_images_classes_and_what_is_not_listed(tmp_path: Path) -> None:
    truth, results = sample(1)
    for row, number in zip(truth["annotations"], [5, 6, 5, 7, 6, 8, 8, 9, 9, 10, 11, 12], strict=True):
        row["id"] = number
    as_pycocotools(tmp_path, truth, results, REPEATED.format("4 annotation ids occur"))
    last, first = truth["annotations"][4], truth["annotations"][5]
    last["image_id"] = 99  # the last of its id is not listed: the other is gone as well
    first["category_id"] = 98  # the first is not listed: only the last is left
    as_pycocotools(
        tmp_path,
        truth,
        results,
        "gt.json: ignoring 2 annotations, as in pycocotools: 1 of 1 category that is not listed (98), 1 of 1 image "
        "that is not listed (99).",
        REPEATED.format("4 annotation ids occur"),
        pooled=False,  # pycocotools then counts what stands in for an annotation of a class that is not listed
    )


def test_repeated_ids_come_in_the_order_of_their_images(tmp_path: Path) -> None:
    """Equal overlaps: the last ground truth is taken, and last is what stands in for a later image's."""
    box = {"category_id": 1, "bbox": [0, 0, 40, 40], "iscrowd": 0}
    rows = [
        {**box, "id": 5, "image_id": 3, "area": 5},  # stands first in the file, last in image 1
        {**box, "id": 6, "image_id": 1, "area": 2000},
        {**box, "id": 5, "image_id": 1, "area": 1600, "bbox": [10, 0, 40, 40]},
    ]
    truth = {**sample()[0], "annotations": rows}
    results = [
        {"image_id": 1, "category_id": 1, "bbox": [5, 0, 40, 40], "score": 0.9},
        {"image_id": 1, "category_id": 1, "bbox": [11, 0, 40, 40], "score": 0.8},
    ]
    as_pycocotools(tmp_path, truth, results, REPEATED.format("1 annotation id occurs"))


def test_a_documented_difference_repeated_ids_with_chosen_images(tmp_path: Path) -> None:
    """pycocotools lists the annotations of the chosen images; here what stands in has moved already."""
    truth, _ = sample()
    row = {"category_id": 1, "bbox": [0, 0, 40, 40], "iscrowd": 0, "area": 1600, "id": 5}
    truth["annotations"] = [{**row, "image_id": 1}, {**row, "image_id": 2}]
    results = [{"image_id": 2, "category_id": 1, "bbox": [0, 0, 40, 40], "score": 0.5}]
    with pytest.warns(boxscore.BoxscoreWarning, match="1 annotation id occurs more than once"):
        tables = load(tmp_path, truth, results)
    assert len(boxscore.evaluate(*tables, images=[2]).ground_truth) == 2
    assert run_pycocotools(truth, results, images=[2]).stats[8] == 1.0  # one annotation, found


NEGATIVE = [-1e-9, -1e-300, -9.9e-4]


@pytest.mark.filterwarnings("ignore::boxscore.BoxscoreWarning")
@pytest.mark.parametrize("side", [2, 3])
@pytest.mark.parametrize("value", NEGATIVE)
def test_sides_below_zero_by_rounding(side: int, value: float, tmp_path: Path) -> None:
    truth, results = sample(2)
    for row in (truth["annotations"][0], results[0], results[5]):
        row["bbox"][side] = value
    end = f"with a slightly negative side from rounding (down to {value:g}); as in pycocotools, such boxes match "
    end += "nothing, and such detections are ignored because of their area."
    messages = [f"gt.json: 1 box {end}", f"dt.json: 2 boxes {end}"]
    as_pycocotools(tmp_path, truth, results, *messages)
    for name in ("gt", "dt"):
        good = (tmp_path / f"{name}.json").read_text()
        (tmp_path / "bad.json").write_text(good.replace(repr(value), "-0.01"))
        gt, dt = (tmp_path / ("bad.json" if each == name else f"{each}.json") for each in ("gt", "dt"))
        with pytest.raises(boxscore.InputError, match=r"Got (width|height) -0\.01 in .*bad\.json"):
            boxscore.evaluate(gt, dt)


TINY = [0.0, 0.0, 1e-200, 1e-200]
LARGE = [0.0, 0.0, 50.0, 50.0]


def tiny_case(truths: list[tuple[list[float], int]], found: list[list[float]]) -> tuple[Record, list[Record]]:
    """Objects (box, iscrowd) and detections in one image and class."""
    where = {"image_id": 1, "category_id": 1}
    rows = [
        {**where, "id": number, "bbox": box, "area": box[2] * box[3], "iscrowd": crowd}
        for number, (box, crowd) in enumerate(truths, start=1)
    ]
    results = [{**where, "bbox": box, "score": 0.9 - 0.1 * number} for number, box in enumerate(found)]
    return {"images": [{"id": 1}], "categories": [{"id": 1, "name": "a"}], "annotations": rows}, results


@pytest.mark.parametrize(
    ("truths", "found"),
    [
        ([(TINY, 0)], [TINY]),
        ([(TINY, 0), (TINY, 0)], [TINY, TINY, TINY]),
        ([(LARGE, 0), (TINY, 0)], [TINY, LARGE]),
        ([(LARGE, 1)], [TINY, LARGE]),
        ([(TINY, 0), (LARGE, 1)], [TINY, TINY, LARGE]),
        ([(LARGE, 0)], [TINY, LARGE]),
        ([([0.0, 0.0, 1e-200, 0.0], 0), (TINY, 0)], [[0.0, 0.0, 1e-200, 0.0], TINY]),
    ],
    ids=str,
)
def test_areas_too_small_for_a_float(
    truths: list[tuple[list[float], int]], found: list[list[float]], tmp_path: Path
) -> None:
    """0 / 0 is NaN in pycocotools, and NaN reaches every threshold."""
    with np.errstate(invalid="raise", divide="raise"):
        as_pycocotools(tmp_path, *tiny_case(truths, found))


def test_a_documented_difference_after_nan_any_object_will_do(tmp_path: Path) -> None:
    """pycocotools goes on from NaN to the next object, which the detection does not overlap."""
    truth, results = tiny_case([(TINY, 0), ([60.0, 60.0, 9.0, 9.0], 0)], [TINY, TINY])
    evaluation = boxscore.evaluate(*load(tmp_path, truth, results))
    assert evaluation.metrics["AR100"] == 0.5
    assert run_pycocotools(truth, results).stats[8] == 1.0


def spelled(record: Record, results: list[Record], which: str) -> None:
    """Write ids of one list in another way."""
    if which == "images as text":
        for row in record["images"]:
            row["id"] = str(row["id"])
    elif which == "one image as text":
        record["images"][1]["id"] = "2"
    elif which == "categories as text":
        for row in record["categories"]:
            row["id"] = str(row["id"])
    elif which == "results as text":
        for row in results:
            row["category_id"], row["image_id"] = str(row["category_id"]), str(row["image_id"])
    elif which == "annotations as text":
        for row in record["annotations"][::2]:
            row["category_id"], row["image_id"] = str(row["category_id"]), f"{row['image_id']:04}"
    elif which == "floats":
        for row in (*record["images"], *record["categories"]):
            row["id"] = float(row["id"])


@pytest.mark.parametrize(
    ("which", "warns"),
    [
        ("images as text", True),
        ("one image as text", True),
        ("categories as text", True),
        ("annotations as text", True),
        ("results as text", True),
        ("floats", False),
    ],
)
def test_ids_are_read_by_value(which: str, warns: bool, tmp_path: Path) -> None:
    truth, results = sample(3)
    plain = boxscore.evaluate(*load(tmp_path, truth, results))
    spelled(truth, results, which)
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always", boxscore.BoxscoreWarning)
        tables = load(tmp_path, truth, results)
    assert bool(given) == warns
    assert all('boxscore reads "7" and 7 as the same id' in str(warning.message) for warning in given)
    again = boxscore.evaluate(*tables)
    for name, values in plain.arrays().items():
        assert np.array_equal(again.arrays()[name], values, equal_nan=True), name
    if not warns:
        assert_equal_to_pycocotools(again, run_pycocotools(truth, results))


def test_an_ambiguous_id_is_not_read_by_value(tmp_path: Path) -> None:
    truth, _ = sample()
    truth["images"] = [{"id": "7"}, {"id": "07"}, {"id": 3}]
    truth["annotations"] = [{**row, "image_id": 7} for row in truth["annotations"]]
    with pytest.warns(boxscore.BoxscoreWarning, match="1 image that is not listed") as given:
        table, _ = load(tmp_path, truth, [])
    assert len(given) == 1
    assert len(table) == 0
    assert table.images.ids.tolist() == [3, "07", "7"]


def test_results_on_their_own_have_one_image_of_one_value(tmp_path: Path) -> None:
    _, results = sample()
    results[0]["image_id"] = str(results[0]["image_id"])
    (tmp_path / "dt.json").write_text(json.dumps(results))
    from boxscore.formats.results import load_results

    with pytest.warns(boxscore.BoxscoreWarning, match="dt.json: 1 image_id written as text"):
        table = load_results(tmp_path / "dt.json").table
    assert table.images.ids.tolist() == [1, 2, 3]


@pytest.mark.parametrize("count", [2**63, 2**64, 10**400, -1, 17.0, 0.0, 0], ids=lambda count: str(count)[:8])
def test_any_number_of_keypoints(count: float, tmp_path: Path) -> None:
    points = [value for number in range(17) for value in (3 * number + 1, 2 * number + 1, 2)]
    row = {"image_id": 1, "category_id": 1, "bbox": [0, 0, 50, 50], "area": 2500, "iscrowd": 0}
    truth = {
        "images": [{"id": 1, "width": 200, "height": 100}],
        "categories": [{"id": 1, "name": "person"}],
        "annotations": [
            {**row, "id": 1, "keypoints": points, "num_keypoints": count},
            {**row, "id": 2, "keypoints": points[::-1], "num_keypoints": 17},
        ],
    }
    results = [{"image_id": 1, "category_id": 1, "keypoints": points, "score": 0.5}]
    evaluation = instances.evaluate(tmp_path, truth, results, "coco-keypoints")
    instances.assert_same_bits(evaluation, instances.run_pycocotools(truth, results, "keypoints"))


@pytest.mark.parametrize("make", [instances.mask_case, instances.keypoint_case])
@pytest.mark.parametrize("seed", range(6))
def test_traps_in_masks_and_keypoints(make: Callable[..., Any], seed: int, tmp_path: Path) -> None:
    truth, results, id_zero = with_traps(*make(seed), seed)
    kind = "segm" if make is instances.mask_case else "keypoints"
    protocol = {"extends": instances.PROTOCOLS[kind], "matching": {"annotation_id_zero": id_zero}}
    reference = instances.run_pycocotools(truth_as_counted(truth, id_zero), results, kind)
    instances.assert_same_bits(instances.evaluate(tmp_path, truth, results, protocol), reference)


# ---------------------------------------------------------------- VOC results with boxes inside out

INSIDE_OUT = [
    (10.0, 379.6, 30.0, 375.0),  # clipped side by side, as darknet writes at an image's edge
    (30.0, 10.0, 29.3, 29.0),  # by less than a pixel: +1 leaves some of it
    (30.0, 30.0, 10.0, 10.0),  # both sides: their product is positive
    (30.0, 30.0, 29.0, 29.0),  # by exactly a pixel
]


@pytest.mark.parametrize("protocol", sorted(voc_cases.RULES))
@pytest.mark.parametrize("box", INSIDE_OUT, ids=str)
def test_boxes_inside_out_are_false_positives(protocol: str, box: kit.Box, tmp_path: Path) -> None:
    objects = [
        kit.Object("000001", "cat", (10.0, 10.0, 30.0, 30.0), False),
        kit.Object("000001", "cat", (29.5, 10.0, 30.0, 29.0), False),
        kit.Object("000002", "cat", (30.0, 30.0, 30.0, 30.0), False),
    ]
    found = [
        kit.Found("000001", "cat", 0.9, box),
        kit.Found("000001", "cat", 0.8, (10.0, 10.0, 30.0, 30.0)),
        kit.Found("000002", "cat", 0.7, box),
        kit.Found("000002", "cat", 0.6, (30.0, 30.0, 30.0, 30.0)),
    ]
    case = voc_cases.Case(["000001", "000002"], objects, found, protocol, 0.01, True)
    truth, results = voc_cases.write(case, tmp_path)
    table = boxscore.load_ground_truth(truth, image_set="test")
    message = (
        f"{results}: 2 of 4 boxes have xmax < xmin or ymax < ymin, the first in "
        f"{results / 'comp4_det_test_cat.txt'}, line 1; as in the VOC devkit they are false positives."
    )
    with pytest.warns(boxscore.BoxscoreWarning) as given:
        detections = boxscore.load_detections(results, table)
    assert [str(warning.message) for warning in given] == [message]
    evaluation = boxscore.evaluate(table, detections, protocol=case.rules)
    assert evaluation.class_values["AP"].tolist() == case.expected()
    kinds = {"true": "true positive", "false": "false positive"}
    expected = [kinds[outcome.kind] for _, outcome in kit.outcomes(objects, found, "cat", threshold=0.01)]
    assert evaluation.matches["outcome"].tolist() == expected

    boxscore.save_columns(detections, tmp_path / "dt.npz")
    again = boxscore.load_detections(tmp_path / "dt.npz", table)
    assert again.boxes.tolist() == detections.boxes.tolist()
    assert again.sizes.tolist() == detections.sizes.tolist()
    with pytest.raises(
        boxscore.InputError, match=r"(width|height) >= 0.*in row 0 of .*scored as a false pos"
    ):
        boxscore.suppress(detections, iou_threshold=0.5)


def test_dropping_them_is_not_the_same(tmp_path: Path) -> None:
    """The numbers that darknet's own runs publish count them."""
    objects = [kit.Object("000001", "cat", (10.0, 10.0, 30.0, 30.0), False)]
    found = [kit.Found("000001", "cat", 0.9, INSIDE_OUT[0]), kit.Found("000001", "cat", 0.8, objects[0].box)]
    case = voc_cases.Case(["000001"], objects, found, "voc2012", 0.5, True)
    paths = voc_cases.write(case, tmp_path)
    with pytest.warns(boxscore.BoxscoreWarning, match="1 of 2 boxes"):
        evaluation = boxscore.evaluate(*paths, protocol="voc2012")
    assert evaluation.metrics["mAP"] == 0.5
    assert case.expected() == [0.5]
