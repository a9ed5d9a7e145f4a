"""Every check finds its fault, says where, and what it does to the score; clean data gives none."""

from __future__ import annotations

import copy
import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore.extensions.validation.digest import ACCEPTED, ERRORS
from boxscore.validation import Finding, findings_table, validate, validate_files
from support.instances import mask_case
from support.running import Run
from support.samples import DATASETS, SHAPES_VOC

Record = dict[str, Any]


def data() -> tuple[Record, list[Record]]:
    """Ground truth without a fault, and a good detector's results: 12 images, 4 classes, fractions."""
    random = np.random.default_rng(7)
    annotations: list[Record] = []
    results: list[Record] = []
    for image in range(2, 26, 2):  # ids with gaps
        for label in (1, 2, 3, 5):
            corner = random.uniform([5 + 150 * (label % 4), 5], [30 + 150 * (label % 4), 260])
            size = random.uniform(40, 110, 2)
            box = [*corner.round(2).tolist(), *size.round(2).tolist()]
            annotations.append(
                {
                    "id": len(annotations) + 1,
                    "image_id": image,
                    "category_id": label,
                    "bbox": box,
                    "area": box[2] * box[3],
                    "iscrowd": 0,
                }
            )
            shifted = (np.array(box) + random.uniform(-2, 2, 4)).round(2).tolist()
            score = round(float(random.uniform(0.3, 1)), 3)
            results.append({"image_id": image, "category_id": label, "bbox": shifted, "score": score})
        for _ in range(int(random.integers(1, 9))):
            box = random.uniform([5, 5, 20, 20], [500, 300, 100, 90]).round(2).tolist()
            score = round(float(random.uniform(0.001, 0.3)), 3)
            label = int(random.choice([1, 2, 3, 5]))
            results.append({"image_id": image, "category_id": label, "bbox": box, "score": score})
    results[-1]["score"] = 0.002
    images = [
        {"id": image, "file_name": f"{image}.png", "width": 640, "height": 480} for image in range(2, 26, 2)
    ]
    categories = [{"id": label, "name": f"class {label}"} for label in (1, 2, 3, 5)]
    return {"images": images, "annotations": annotations, "categories": categories}, results


def check(folder: Path, truth: Record, results: list[Record] | None = None, **options: Any) -> list[Finding]:
    (folder / "gt.json").write_text(json.dumps(truth))
    if results is None:
        return validate_files(folder / "gt.json", **options)
    (folder / "dt.json").write_text(json.dumps(results))
    return validate_files(folder / "gt.json", folder / "dt.json", **options)


def test_clean_data_has_no_findings(tmp_path: Path) -> None:
    assert check(tmp_path, *data()) == []
    assert check(tmp_path, data()[0]) == []


Spoil = Callable[[Record, list[Record]], None]


def repeat_id(truth: Record, results: list[Record]) -> None:
    truth["annotations"][3]["id"] = truth["annotations"][9]["id"]


def repeat_image(truth: Record, results: list[Record]) -> None:
    truth["images"].append(dict(truth["images"][0]))


def repeat_category(truth: Record, results: list[Record]) -> None:
    truth["categories"].append(dict(truth["categories"][0]))


def orphan_image(truth: Record, results: list[Record]) -> None:
    truth["annotations"][3]["image_id"] = 999


def orphan_class(truth: Record, results: list[Record]) -> None:
    truth["annotations"][3]["category_id"] = 999


def cut_classes(truth: Record, results: list[Record]) -> None:
    truth["categories"][1:] = []


def below_zero(truth: Record, results: list[Record]) -> None:
    truth["annotations"][3]["bbox"][2] = results[3]["bbox"][3] = -1e-9


def negative(truth: Record, results: list[Record]) -> None:
    truth["annotations"][3]["bbox"][2] = -5


def negative_detection(truth: Record, results: list[Record]) -> None:
    results[3]["bbox"][2] = -5


def no_area(truth: Record, results: list[Record]) -> None:
    del truth["annotations"][3]["area"]


def ignored(truth: Record, results: list[Record]) -> None:
    truth["annotations"][3]["ignore"] = 1


def difficult(truth: Record, results: list[Record]) -> None:
    truth["annotations"][3]["difficult"] = 1


def id_zero(truth: Record, results: list[Record]) -> None:
    truth["annotations"][0]["id"] = 0


def one_name(truth: Record, results: list[Record]) -> None:
    truth["categories"][1]["name"] = truth["categories"][0]["name"]


def empty_image(truth: Record, results: list[Record]) -> None:
    truth["images"].append({"id": 77, "width": 640, "height": 480, "file_name": "77.png"})


def empty_class(truth: Record, results: list[Record]) -> None:
    truth["categories"].append({"id": 9, "name": "nothing"})


def unknown_class(truth: Record, results: list[Record]) -> None:
    results.insert(0, {**results[0], "category_id": 44})


def unknown_image(truth: Record, results: list[Record]) -> None:
    results[3]["image_id"] = 44


def half_a_run(truth: Record, results: list[Record]) -> None:
    results[:] = [row for row in results if row["image_id"] < 10]


def silent_class(truth: Record, results: list[Record]) -> None:
    results[:] = [row for row in results if row["category_id"] != 5]


def corners(truth: Record, results: list[Record]) -> None:
    for row in results:
        x, y, w, h = row["bbox"]
        row["bbox"] = [x, y, x + w, y + h]


def corners_in_truth(truth: Record, results: list[Record]) -> None:
    corners(truth, truth["annotations"])


def swapped_axes(truth: Record, results: list[Record]) -> None:
    for row in results:
        x, y, w, h = row["bbox"]
        row["bbox"] = [y, x, y + h, x + w]


def fractions(truth: Record, results: list[Record]) -> None:
    for row in results:
        row["bbox"] = (np.array(row["bbox"]) / [640, 480, 640, 480]).tolist()


def flat(truth: Record, results: list[Record]) -> None:
    truth["annotations"][3]["bbox"][3] = 0
    truth["annotations"][3]["area"] = 0


def flat_detection(truth: Record, results: list[Record]) -> None:
    results[0]["bbox"][2] = 0


def outside(truth: Record, results: list[Record]) -> None:
    truth["annotations"][3]["bbox"][0] = 620


def outside_detection(truth: Record, results: list[Record]) -> None:
    results[3]["bbox"][1] = -30


def whole(truth: Record, results: list[Record]) -> None:
    for row in results:
        row["bbox"] = [int(side) for side in row["bbox"]]


def twice(truth: Record, results: list[Record]) -> None:
    row = copy.deepcopy(truth["annotations"][3])
    row["bbox"][0] += 0.5
    truth["annotations"].append({**row, "id": 1000})


def large_area(truth: Record, results: list[Record]) -> None:
    truth["annotations"][3]["area"] *= 3


def zero_area(truth: Record, results: list[Record]) -> None:
    truth["annotations"][3]["area"] = 0


def written_twice(truth: Record, results: list[Record]) -> None:
    results += copy.deepcopy(results[:10])


def percent(truth: Record, results: list[Record]) -> None:
    for row in results:
        row["score"] *= 100


def equal_scores(truth: Record, results: list[Record]) -> None:
    for row in results:
        row["score"] = 1.0


def rounded_scores(truth: Record, results: list[Record]) -> None:
    for row in results:
        row["score"] = round(row["score"], 1)


def floor(truth: Record, results: list[Record]) -> None:
    results[:] = [row for row in results if row["score"] > 0.5]


def low_floor(truth: Record, results: list[Record]) -> None:
    results[:] = [row for row in results if row["score"] > 0.1]


def many(truth: Record, results: list[Record]) -> None:
    results += [{**results[0], "score": 0.0001 * number} for number in range(1, 130)]


def cut(truth: Record, results: list[Record]) -> None:
    for image in range(2, 26, 2):
        mine = [row for row in results if row["image_id"] == image]
        box = [1.5, 1.5, 20.25, 30.5]
        for number in range(20 - len(mine)):
            row = {"image_id": image, "category_id": 1, "bbox": box, "score": 0.001 * (number + 1)}
            results.append(row)


def swapped_classes(truth: Record, results: list[Record]) -> None:
    for row in results:
        row["category_id"] = {1: 2, 2: 1}.get(row["category_id"], row["category_id"])


def off_by_one(truth: Record, results: list[Record]) -> None:
    truth["categories"] = [{"id": label, "name": str(label)} for label in (1, 2, 3, 4)]
    for row in truth["annotations"]:
        row["category_id"] = min(row["category_id"], 4)
    for row in results:
        row["category_id"] = min(row["category_id"], 4) - 1


def images_renumbered(truth: Record, results: list[Record]) -> None:
    for record in results:
        record["image_id"] = (record["image_id"] + 8) % 24 + 2


def images_off_by_one(truth: Record, results: list[Record]) -> None:
    truth["images"] = [{"id": image, "width": 640, "height": 480} for image in range(1, 14)]
    for row in truth["annotations"]:
        row["image_id"] //= 2
    for row in results:
        row["image_id"] = row["image_id"] // 2 + 1


CASES: list[tuple[Spoil, str, str, str, int]] = [
    (repeat_id, "repeated-annotation-id", "error", r"1 annotation of 48 shares an id", 1),
    (repeat_image, "repeated-image-id", "error", r"1 image id declared more than once", 1),
    (repeat_category, "repeated-category-id", "error", r"1 category id declared more than once", 1),
    (orphan_image, "annotation-of-unknown-image", "warning", r"1 annotation of 48 of an image", 1),
    (orphan_class, "annotation-of-unknown-class", "warning", r"1 annotation of 48 of a class", 1),
    (cut_classes, "annotation-of-unknown-class", "error", r"they are ignored, as in pycocotools", 0),
    (below_zero, "annotation-inside-out", "warning", r"negative width or height \(down to -1e-09\)", 1),
    (below_zero, "detection-inside-out", "warning", r"such boxes match nothing", 1),
    (negative, "annotation-negative-size", "error", r"with a negative width or height", 1),
    (negative_detection, "detection-negative-size", "error", r"with a negative width or height", 1),
    (no_area, "annotation-without-area", "note", r"without an area", 1),
    (ignored, "ignore-key-without-effect", "warning", r"iscrowd overrides ignore", 1),
    (difficult, "difficult-flag-without-effect", "warning", r"protocol coco does not use", 1),
    (id_zero, "annotation-id-zero", "note", r"pycocotools does not count matches with it", 1),
    (one_name, "classes-of-one-name", "warning", r"2 classes share a name", 2),
    (empty_image, "image-without-annotations", "note", r"1 image of 13 without annotations", 1),
    (empty_class, "class-without-annotations", "note", r"1 class of 5 without annotations", 1),
    (unknown_class, "unknown-class", "warning", r"1 detection \(\d%\) of 1 class", 1),
    (unknown_image, "detection-of-unknown-image", "error", r"Are these results of another split\?", 1),
    (half_a_run, "image-without-detections", "error", r"\(67%\) without detections\. Are these", 8),
    (
        silent_class,
        "class-without-detections",
        "warning",
        r"1 class with annotations but without detections \(AP 0\): class 5$",
        1,
    ),
    (corners, "detection-box-order", "error", r"Are these x1,y1,x2,y2\?", 0),
    (corners_in_truth, "annotation-box-order", "error", r"Are these x1,y1,x2,y2\?", 0),
    (swapped_axes, "detection-box-order", "error", r"Are these y1,x1,y2,x2\?", 0),
    (fractions, "detection-box-order", "error", r"fractions of the image size", 0),
    (flat, "annotation-degenerate", "warning", r"no detection can match such boxes", 1),
    (flat_detection, "detection-degenerate", "warning", r"such boxes cannot match anything", 1),
    (outside, "annotation-outside-image", "warning", r"more than 1 pixel", 1),
    (outside_detection, "detection-outside-image", "note", r"up to 30\.0", 1),
    (whole, "integer-coordinates", "warning", r"100% of the detected boxes .* but only 0%", 0),
    (twice, "near-duplicate-annotation", "warning", r"1 annotation overlaps an earlier one", 1),
    (large_area, "area-exceeds-box", "warning", r"area larger than the box", 1),
    (zero_area, "area-not-positive", "warning", r"area of 0 or less", 1),
    (written_twice, "repeated-detection", "warning", r"10 detections .* written twice\?", 10),
    (percent, "score-outside-0-1", "warning", r"percentages\?", 0),
    (equal_scores, "scores-all-equal", "error", r"all scores are 1", 0),
    (rounded_scores, "tied-scores", "warning", r"share their score .* rounded\?", 0),
    (
        floor,
        "score-floor",
        "warning",
        r"below a score of 0\.511 seem to be missing: export with conf=0\.001",
        0,
    ),
    (low_floor, "score-floor", "note", r"recall never exceeds 0\.9\d \(IoU 0\.50:0\.95\)", 0),
    (many, "beyond-max-detections", "note", r"not evaluated: max detections is 100 per image and class", 0),
    (cut, "detections-cut-per-image", "warning", r"12 images have exactly 20 detections", 12),
    (swapped_classes, "classes-numbered-differently", "error", r"two classes are swapped", 2),
    (off_by_one, "classes-numbered-differently", "error", r"1 too low\. Is it an off-by-one error\?", 3),
    (images_off_by_one, "images-off-by-one", "error", r"Use --image-id-offset -1", 0),
    (
        images_renumbered,
        "detections-off-annotations",
        "warning",
        r"only \d+ of the 48 most confident detections overlap",
        0,
    ),
]


@pytest.mark.parametrize(
    ("spoil", "code", "severity", "message", "count"), CASES, ids=[case[0].__name__ for case in CASES]
)
def test_a_fault_is_found(
    spoil: Spoil, code: str, severity: str, message: str, count: int, tmp_path: Path
) -> None:
    truth, results = data()
    spoil(truth, results)
    findings = {finding.code: finding for finding in check(tmp_path, truth, results)}
    assert code in findings, sorted(findings)
    found = findings[code]
    assert found.severity == severity
    assert re.search(message, found.message), found.message
    assert found.count == count or not count
    assert found.count > 0


REPAIRED = [
    corners, swapped_axes, fractions, swapped_classes, images_off_by_one, half_a_run, silent_class, corners_in_truth,
]  # fmt: skip


@pytest.mark.parametrize("spoil", REPAIRED, ids=[spoil.__name__ for spoil in REPAIRED])
def test_the_effect_is_what_the_good_data_score(spoil: Spoil, tmp_path: Path) -> None:
    truth, results = data()
    good = boxscore.evaluate(*_load(tmp_path, truth, results)).metrics["AP"]
    spoil(truth, results)
    best = max(
        (finding for finding in check(tmp_path, truth, results) if finding.repair),
        key=lambda finding: finding.effect,
    )
    assert best.metric == "AP"
    assert best.repaired == pytest.approx(good, abs=0.03)
    assert best.effect == best.repaired - best.value > 0.1


def _load(folder: Path, truth: Record, results: list[Record]) -> tuple[Any, Any]:
    (folder / "gt.json").write_text(json.dumps(truth))
    (folder / "dt.json").write_text(json.dumps(results))
    table = boxscore.load_ground_truth(folder / "gt.json")
    return table, boxscore.load_detections(folder / "dt.json", table)


def test_examples_name_the_place_in_the_file(tmp_path: Path) -> None:
    truth, results = data()
    flat(truth, results)
    unknown_class(truth, results)  # the first row: later ones are still counted from the file's start
    outside_detection(truth, results)
    findings = {finding.code: finding for finding in check(tmp_path, truth, results)}
    first = findings["annotation-degenerate"].examples[0]
    assert first.startswith(
        f"annotation 3 (id 4) of {tmp_path / 'gt.json'}: image 2, class class 5, x,y,w,h "
    )
    assert findings["detection-outside-image"].examples[0].startswith("detection 3 of ")


@pytest.mark.parametrize("name", ["gt", "dt"])
def test_a_refused_file_is_a_finding(name: str, tmp_path: Path) -> None:
    check(tmp_path, *data())
    (tmp_path / f"{name}.json").write_text("[{")
    codes = [finding.code for finding in validate_files(tmp_path / "gt.json", tmp_path / "dt.json")]
    assert codes == [{"gt": "ground-truth-refused", "dt": "detections-refused"}[name]]


def test_flags_by_protocol() -> None:
    truth = boxscore.GroundTruth.from_arrays(
        [1, 1], ["a", "a"], [[0, 0, 9, 9], [20, 20, 40, 40]], difficult=[1, 0], crowd=[0, 1]
    )
    assert [finding.code for finding in validate(truth)] == ["difficult-flag-without-effect"]
    assert "difficult-flag-without-effect" not in [f.code for f in validate(truth, protocol="voc2007")]


def test_masks(tmp_path: Path) -> None:
    truth = {
        "images": [{"id": 1, "width": 100, "height": 100}],
        "categories": [{"id": 1, "name": "a"}],
        "annotations": [
            {
                "id": 1,
                "image_id": 1,
                "category_id": 1,
                "bbox": [10, 10, 40, 40],
                "area": 900,
                "iscrowd": 0,
                "segmentation": [[10, 10, 50, 10, 50, 50, 10, 50]],
            }
        ],
    }
    codes = [finding.code for finding in check(tmp_path, truth, protocol="coco-segm")]
    assert codes == ["area-disagrees-with-mask"]
    assert check(tmp_path, truth) == []


def test_masks_of_images_of_several_sizes(tmp_path: Path) -> None:
    """Ids shifted by one would put a mask into an image of another size, which no evaluation takes."""
    truth, results = mask_case(1)
    assert len({(image["width"], image["height"]) for image in truth["images"]}) > 1
    codes = [finding.code for finding in check(tmp_path, truth, results, protocol="coco-segm")]
    assert "images-off-by-one" not in codes


def test_voc() -> None:
    findings = validate_files(
        SHAPES_VOC / "VOC2007",
        SHAPES_VOC / "results",
        protocol="voc2007",
        image_set="test",
    )
    assert "class-without-detections" in [finding.code for finding in findings]
    assert not [finding for finding in findings if finding.severity == "error"]


def test_table(tmp_path: Path) -> None:
    truth, results = data()
    corners(truth, results)
    findings = check(tmp_path, truth, results)
    frame = findings_table(findings)
    assert frame["severity"].iloc[0] == "error"
    assert frame["effect"].iloc[0] == findings[0].effect
    assert list(findings_table([]).columns) == list(frame.columns)


def test_no_rows_at_all() -> None:
    truth = boxscore.GroundTruth.from_arrays([], [], [], images=[1], categories=["a"])
    found = boxscore.Detections.from_arrays([], [], [], [])
    assert {finding.code for finding in validate(truth, found)} == {
        "class-without-annotations",
        "image-without-annotations",
    }
    with pytest.raises(boxscore.InputError, match="ground_truth must be a GroundTruth table"):
        validate("gt.json")  # type: ignore[arg-type]


@pytest.mark.parametrize("output", ["text", "json", "csv", "markdown"])
def test_command(output: str, tmp_path: Path, run: Run) -> None:
    truth, results = data()
    corners(truth, results)
    check(tmp_path, truth, results)
    arguments = ["validate", "--gt", str(tmp_path / "gt.json"), "--dt", str(tmp_path / "dt.json")]
    text, errors = run(*arguments, "--output", output, status=1)
    assert errors == ""
    if output == "json":
        value = json.loads(text)
        assert value["counts"]["error"] >= 1
        first = value["findings"][0]
        assert first["code"] == "detection-box-order"
        assert first["effect"]["difference"] > 0.5
        assert not math.isnan(first["effect"]["value"])
    else:
        assert "detection-box-order" in text


def test_exit_status(tmp_path: Path, run: Run) -> None:
    truth, results = data()
    twice(truth, results)
    check(tmp_path, truth, results)
    arguments = ["validate", "--gt", str(tmp_path / "gt.json"), "--dt", str(tmp_path / "dt.json")]
    assert "0 errors, 1 warning, 0 notes" in run(*arguments).out
    run(*arguments, "--strict", status=2)
    assert "No such file" in run.error("validate", "--gt", tmp_path / "nowhere.json")


def test_the_page_on_checks_has_every_code() -> None:
    """Codes are words with dashes, the first argument of a finding."""
    source = Path(boxscore.__file__).parent / "extensions" / "validation"
    text = "\n".join(path.read_text(encoding="utf-8") for path in source.glob("*.py"))
    calls = r"(?:\bfinding|\bFinding|Check|_flag_check|\brefused)\(\s*f?\"([a-z{}0-9-]+)\""
    codes = {
        code.format(noun=noun, name=name)
        for code in re.findall(calls, text)
        for noun in ("annotation", "detection")
        for name in (("crowd", "difficult", "ignore") if "flag" in code else ("image", "category"))
    }
    assert {case[1] for case in CASES} <= codes
    page = (DATASETS.parent / "docs" / "reference" / "checks.md").read_text(encoding="utf-8")
    assert sorted(code for code in codes if f"`{code}`" not in page) == []


def test_boxes_of_two_angles_are_not_repeated() -> None:
    """The upright box around both is the same."""
    rotated = [[50, 50, 30, 10, 0.3], [50, 50, 30, 10, -0.3]]
    truth = boxscore.GroundTruth.from_arrays([1] * 2, ["a"] * 2, None, rotated=rotated)
    for boxes, expected in ((rotated, []), (rotated[:1] * 2, [1])):
        table = boxscore.Detections.from_arrays([1] * 2, ["a"] * 2, None, [0.5] * 2, rotated=boxes)
        found = validate(truth, table, protocol="coco-rotated")
        assert [finding.count for finding in found if finding.code == "repeated-detection"] == expected


def test_a_class_without_a_results_file_is_named(tmp_path: Path) -> None:
    """One whose file is empty has none either way; of a results file in COCO's form nothing is said."""
    voc = SHAPES_VOC
    for file in (voc / "results").glob("*.txt"):
        if "star" not in file.name:
            (tmp_path / file.name).write_bytes(file.read_bytes())
    found = {
        one.code: one
        for one in validate_files(voc / "VOC2007", tmp_path, image_set="test", protocol="voc2007")
    }
    assert found["class-without-results-file"].message == (
        f"1 class with annotations lacks a results file in {tmp_path} (AP 0): star"
    )
    assert found["class-without-detections"].message.endswith("(AP 0): hexagon")
    whole = validate_files(voc / "VOC2007", voc / "results", image_set="test", protocol="voc2007")
    assert "class-without-results-file" not in {one.code for one in whole}


BOXES = [[0, 0, 20, 20], [30, 30, 60, 60], [5, 5, 40, 40]]


def test_classes_whose_ids_are_names_of_others_may_lack_detections() -> None:
    """What AP would be without them was asked by id, which stands for two classes, and stopped evaluate."""
    categories = {"1": "cat", "2": "1", "3": "dog"}
    truth = boxscore.GroundTruth.from_arrays(["a", "b", "b"], ["1", "2", "3"], BOXES, categories=categories)
    found = boxscore.Detections.from_arrays(
        ["a"], ["1"], BOXES[:1], [0.9], images=truth.images, categories=categories
    )
    (finding,) = [one for one in validate(truth, found) if one.code == "class-without-detections"]
    assert finding.message == "2 classes with annotations but without detections (AP 0 each): 1 (2) and dog"
    with pytest.warns(boxscore.BoxscoreWarning, match="2 classes with annotations but without detections"):
        boxscore.evaluate(truth, found)


def test_which_findings_may_be_errors() -> None:
    """Those that ``--allow`` knows are the errors of the page on checks that files can be read with."""
    page = (DATASETS.parent / "docs" / "reference" / "checks.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`[^|]+) \| ([^|]*\bE\b[^|]*) \|", page, re.MULTILINE)
    named = {code for codes, _ in rows for code in re.findall(r"`([a-z-]+)`", codes)}
    in_files_alone = {
        *("ground-truth-refused", "detections-refused", "repeated-image-id", "repeated-category-id"),
        *("annotation-of-unknown-image", "annotation-of-unknown-class", "detection-of-unknown-image"),
        *("annotation-negative-size", "detection-negative-size"),
    }
    assert named - in_files_alone == set(ERRORS)


def test_what_allow_takes() -> None:
    """``--allow`` takes what ``--strict`` fails on: errors, and findings of ``evaluate`` that are warnings."""
    page = (DATASETS.parent / "docs" / "reference" / "checks.md").read_text(encoding="utf-8")
    said = page.partition("## Checks of `evaluate`")[2].partition("Loaders warn of")[0]
    flags = {f"{name}-flag-without-effect" for name in ("crowd", "difficult", "ignore")}
    assert set(ACCEPTED) == {*re.findall(r"`([a-z0-9-]+-[a-z0-9-]+)`", said), *flags, *ERRORS}


FORMS: dict[str, Callable[..., list[float]]] = {
    "xyxy": lambda x, y, w, h: [x, y, x + w, y + h],
    "cxcywh": lambda x, y, w, h: [x + w / 2, y + h / 2, w, h],
    "yxyx": lambda x, y, w, h: [y, x, y + h, x + w],
    "yxhw": lambda x, y, w, h: [y, x, h, w],
    "xywhn": lambda x, y, w, h: [x / 640, y / 480, w / 640, h / 480],
}


@pytest.mark.long
@pytest.mark.parametrize("side", ["dt", "gt"])
@pytest.mark.parametrize("form", FORMS)
def test_the_option_that_is_named_gives_the_number_that_is_said(form: str, side: str, tmp_path: Path) -> None:
    """Boxes at the right and lower edges of an image that is 640 by 480, written in every form."""
    random = np.random.default_rng(2)
    size = random.uniform(20, 150, (60, 2))
    boxes = np.hstack(
        [np.array([635, 475]) - size - random.uniform(0, [400, 90], (60, 2)).clip(0, None), size]
    )
    boxes[:, :2] = boxes[:, :2].clip(1, None)
    moved = boxes + random.normal(0, 2, boxes.shape)

    def written(rows: Any, kind: str) -> list[list[float]]:
        return [FORMS[form](*row) if kind == side else row for row in rows.tolist()]

    keys = [{"image_id": 1 + row % 6, "category_id": 1 + row % 2} for row in range(60)]
    truth = {
        "images": [{"id": number, "width": 640, "height": 480} for number in range(1, 7)],
        "categories": [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}],
        "annotations": [
            {"id": row + 1, **key, "bbox": box, "area": box[2] * box[3], "iscrowd": 0}
            for row, (key, box) in enumerate(zip(keys, written(boxes, "gt"), strict=True))
        ],
    }
    results = [
        {**key, "bbox": box, "score": 0.9 - row / 100}
        for row, (key, box) in enumerate(zip(keys, written(moved, "dt"), strict=True))
    ]
    noun = {"dt": "detection", "gt": "annotation"}[side]
    finding = next(one for one in check(tmp_path, truth, results) if one.code == f"{noun}-box-order")
    assert finding.message.endswith(f"Use --{side}-box-format {form}")
    assert finding.repair == f"with --{side}-box-format {form}"
    options: Any = {"box_format": form}
    gt = boxscore.load_ground_truth(tmp_path / "gt.json", **(options if side == "gt" else {}))
    dt = boxscore.load_detections(tmp_path / "dt.json", gt, **(options if side == "dt" else {}))
    typed = boxscore.evaluate(gt, dt, digest=False)["AP"]
    assert finding.repaired == pytest.approx(typed, rel=0, abs=1e-12)
    assert typed > 0.5 > finding.value + 0.1
