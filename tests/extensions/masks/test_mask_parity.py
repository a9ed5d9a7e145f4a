"""Mask evaluation equals pycocotools bit for bit."""

from __future__ import annotations

import dataclasses
import json
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import boxscore
from boxscore.compat.verification import verify
from support.examples import first_of
from support.instances import assert_same_bits, evaluate, mask_case, run_pycocotools
from support.quiet import quiet
from support.real_data import real
from support.running import Run


def files(truth: Path, results: Path) -> tuple[Any, Any]:
    """Read two files, the results cut to the images of the ground truth."""
    ground_truth, found = json.loads(truth.read_text()), json.loads(results.read_text())
    known = {image["id"] for image in ground_truth["images"]}
    return ground_truth, [record for record in found if record["image_id"] in known]


@pytest.mark.real
@pytest.mark.parametrize(
    ("truth", "results"),
    [
        (
            "coco_val2014_fake100/instances_val2014_100.json",
            "coco_val2014_fake100/instances_val2014_fakesegm100_results.json",
        ),
        ("coco_val2017_masks206/instances.json", "coco_val2017_masks206/yolact_base.segm.json"),
        ("coco_val2017_masks206/instances.json", "coco_val2017/yolact_base_100.segm.json"),
        ("coco_val2017_masks206/instances.json", "coco_val2017_masks206/yolov2_608.json"),
    ],
)
def test_real_runs(tmp_path: Path, truth: str, results: str) -> None:
    ground_truth, found = files(real(truth), real(results))
    assert_same_bits(
        evaluate(tmp_path, ground_truth, found, "coco-segm"), run_pycocotools(ground_truth, found, "segm")
    )


@pytest.mark.real
def test_brain_tumor_gives_both_published_variants(tmp_path: Path) -> None:
    truth, found = files(real("brain_tumor", "ground_truth.json"), real("brain_tumor", "maskrcnn.json"))
    without_boxes = [{key: value for key, value in row.items() if key != "bbox"} for row in found]
    mask_areas = {"extends": "coco-segm", "ignore": {"detection_area": "mask"}}

    # pycocotools reads the match with annotation 0 as none. Renumbered, every cell is equal.
    renumbered = {**truth, "annotations": [{**row, "id": row["id"] + 1} for row in truth["annotations"]]}
    kept = evaluate(tmp_path, renumbered, found, "coco-segm")
    assert_same_bits(kept, run_pycocotools(renumbered, found, "segm"))
    dropped = evaluate(tmp_path, renumbered, without_boxes, "coco-segm")
    assert_same_bits(dropped, run_pycocotools(renumbered, without_boxes, "segm"))
    chosen = evaluate(tmp_path, renumbered, found, mask_areas)
    assert chosen.metrics == pytest.approx(dropped.metrics, nan_ok=True, abs=0)

    # The published numbers, with that one match read as pycocotools reads it.
    published = {"AP": 46.8500, "AP50": 60.1649, "AP75": 54.1913}
    for results, protocol, areas in (
        (without_boxes, "coco-segm", {"APm": 5.9368, "APl": 56.6845}),
        (found, mask_areas, {"APm": 5.9368, "APl": 56.6845}),
        (found, "coco-segm", {"APm": 11.83, "APl": 50.64}),
    ):
        strict = _without_matches_of_id_zero(evaluate(tmp_path, truth, results, protocol))
        for key, value in {**published, **areas}.items():
            digits = 2 if value in (11.83, 50.64) else 4
            assert round(100 * strict.metrics[key], digits) == value


def _without_matches_of_id_zero(evaluation: boxscore.Evaluation) -> boxscore.Evaluation:
    matches = evaluation.matched
    zero = evaluation.ground_truth.ids[matches.truth_row] == 0
    return dataclasses.replace(evaluation, matched=matches.without_true_positives_of(zero))


@pytest.mark.long
@given(st.integers(0, 2**32 - 1))
@settings(max_examples=150)
def test_generated_cases(seed: int) -> None:
    truth, found = mask_case(seed)
    with tempfile.TemporaryDirectory() as folder:
        ours = evaluate(Path(folder), truth, found, "coco-segm")
    assert_same_bits(ours, run_pycocotools(truth, found, "segm"))


@pytest.mark.slow
def test_a_thousand_generated_cases(tmp_path: Path) -> None:
    for seed in range(1_000):
        truth, found = mask_case(seed)
        ours = evaluate(tmp_path, truth, found, "coco-segm")
        assert_same_bits(ours, run_pycocotools(truth, found, "segm"))


@pytest.mark.parametrize("seed", range(5))
def test_blocks_and_pooled_classes_change_nothing(tmp_path: Path, seed: int) -> None:
    truth, found = mask_case(seed)
    whole = evaluate(tmp_path, truth, found, "coco-segm")
    blocks = evaluate(tmp_path, truth, found, "coco-segm", workers=2)
    for name, array in whole.arrays().items():
        assert np.array_equal(array, blocks.arrays()[name], equal_nan=True)
    pooled = {"extends": "coco-segm", "matching": {"per_class": False}}
    assert verify(evaluate(tmp_path, truth, found, pooled)).equal


@pytest.mark.parametrize("protocol", ["coco-segm", "coco-boundary"])
@pytest.mark.parametrize("seed", first_of(3, range(12)))
def test_verify(tmp_path: Path, protocol: str, seed: int) -> None:
    evaluation = evaluate(tmp_path, *mask_case(seed), protocol)
    result = verify(evaluation)
    assert result.equal, result
    frame = evaluation.matches
    assert len(frame) == len(evaluation.detections)
    assert set(frame["outcome"]) <= {"true positive", "false positive", "ignored", "beyond max detections"}


def test_boxes_stand_in_for_masks_as_in_pycocotools(tmp_path: Path) -> None:
    truth, found = mask_case(3)
    boxes = [
        {**{key: row[key] for key in ("image_id", "category_id", "score")}, "bbox": [1.0, 1.0, 6.0, 5.0]}
        for row in found
    ]
    assert_same_bits(evaluate(tmp_path, truth, boxes, "coco-segm"), run_pycocotools(truth, boxes, "segm"))
    mixed = [
        {**box, "segmentation": row["segmentation"]} if i % 2 else box
        for i, (row, box) in enumerate(zip(found, boxes, strict=True))
    ]
    assert_same_bits(evaluate(tmp_path, truth, mixed, "coco-segm"), run_pycocotools(truth, mixed, "segm"))


def test_results_with_boxes_and_masks_warn() -> None:
    square = np.zeros((60, 60), dtype=bool)
    square[:10, :50] = True
    images = boxscore.evaluation.GroundTruth.from_arrays([1], [1], None, masks=[square]).images
    truth = boxscore.GroundTruth.from_arrays([1], [1], None, masks=[square], images=images)
    found = boxscore.Detections.from_arrays([1], [1], [[0, 0, 50, 50]], [0.5], masks=[square])
    with pytest.warns(boxscore.BoxscoreWarning, match="contain boxes as well as masks"):
        boxscore.evaluate(truth, found, protocol="coco-segm")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        boxscore.evaluate(
            truth, found, protocol={"extends": "coco-segm", "ignore": {"detection_area": "mask"}}
        )
        plain = boxscore.Detections.from_arrays([1], [1], None, [0.5], masks=[square])
        boxscore.evaluate(truth, plain, protocol="coco-segm")


def test_command_line(tmp_path: Path, run: Run) -> None:
    truth, found = mask_case(1)
    (tmp_path / "truth.json").write_text(json.dumps(truth))
    (tmp_path / "found.json").write_text(json.dumps(found))
    files = ["--gt", str(tmp_path / "truth.json"), "--dt", str(tmp_path / "found.json"), "--output", "json"]
    expected = evaluate(tmp_path, truth, found, "coco-segm")
    with quiet():
        answer = json.loads(run("evaluate", *files, "--iou-type", "segm", "--verify").out)
        assert answer["protocol"] == "coco-segm"
        assert answer["metrics"]["AP"] == expected.metrics["AP"]
        assert (
            "|dtarea:mask|"
            in json.loads(run("evaluate", *files, "--iou-type", "boundary", "--detection-area", "mask").out)[
                "signature"
            ]
        )
        assert (
            json.loads(run("evaluate", *files, "--iou-type", "segm", "--protocol", "voc2012").out)["protocol"]
            == "voc2012-segm"
        )
        assert "voc2012 must compare keypoints" in run.error(
            "evaluate", *files, "--iou-type", "keypoints", "--protocol", "voc2012"
        )
        (tmp_path / "run.toml").write_text(
            '[ground_truth]\npath = "truth.json"\n[detections]\npath = "found.json"\n'
            '[evaluation]\niou_type = "segm"\ndetection_area = "mask"\n[output]\nform = "json"\n'
        )
        assert "|dtarea:mask|" in json.loads(run("run", tmp_path / "run.toml").out)["signature"]


def test_records_that_break_a_rule_are_named(tmp_path: Path) -> None:
    truth, found = mask_case(1)
    image = next(image for image in truth["images"] if image["id"] == found[0]["image_id"])
    size = [image["height"], image["width"]]
    cases = [
        ({"segmentation": 5}, r"segmentation must be .*detection 0 of .*results\.json"),
        ({"segmentation": {"size": [4]}}, r"detection 0 of .*results\.json"),
        ({"segmentation": {"size": size, "counts": "0l"}}, r"a mask must be whole.*in detection 0 of"),
    ]
    for change, message in cases:
        with pytest.raises(boxscore.InputError, match=message):
            evaluate(tmp_path, truth, [{**found[0], **change}], "coco-segm")
    with pytest.raises(boxscore.FileFormatError, match=r"bbox must be an array\. Got null in detection 1 of"):
        evaluate(
            tmp_path, truth, [{**found[0], "bbox": [1, 1, 2, 2]}, {**found[0], "bbox": None}], "coco-segm"
        )
    turned = {"size": [3, 4], "counts": "0<"}
    category, image = (truth["annotations"][0][key] for key in ("category_id", "image_id"))
    changed = {"segmentation": turned, "category_id": category, "image_id": image, "score": 1}
    with pytest.raises(boxscore.InputError, match=r"a mask must have the size .* in detection 0 of"):
        evaluate(tmp_path, truth, [changed], "coco-segm")
