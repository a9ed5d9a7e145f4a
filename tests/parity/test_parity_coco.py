"""Thousands of made-up COCO data sets: every cell equal to pycocotools'."""

from __future__ import annotations

import dataclasses
import json
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import event, given, settings

import boxscore
from boxscore.compat.verification import verify
from oracles.pycoco import assert_equal_to_pycocotools, run_pycocotools
from support.cases import Case, coco_cases
from support.examples import examples


def check(case: Case, folder: Path) -> None:
    truth, found = case.load(folder)
    evaluation = boxscore.evaluate(truth, found, protocol=case.protocol)
    reference = run_pycocotools(
        case.truth, case.results, caps=case.caps, thresholds=case.thresholds, per_class=case.per_class
    )
    assert_equal_to_pycocotools(evaluation, reference)


@pytest.mark.long
@given(case=coco_cases())
@settings(max_examples=examples(2_000))
def test_arrays_equal_pycocotools(case: Case, folder: Path) -> None:
    event(f"caps {case.caps}")
    event("pooled" if not case.per_class else "per class")
    check(case, folder)


@pytest.mark.slow
@given(case=coco_cases())
@settings(max_examples=examples(20_000), derandomize=False)
def test_arrays_equal_pycocotools_many_more(case: Case, folder: Path) -> None:
    check(case, folder)


def outcomes_of_pycocotools(case: Case, reference: Any, thresholds: int) -> dict[int, tuple[Any, ...]]:
    """Outcome, matched annotation and highest threshold of each row of the results, for area "all"."""
    counted: dict[int, tuple[Any, ...]] = {}
    overlap: dict[tuple[int, int], float] = {}
    for (image, category), values in reference.ious.items():
        if len(values) == 0:
            continue
        key = (image, category)
        rows, truths = reference._dts[key], reference._gts[key]
        rows = [rows[i] for i in np.argsort([-row["score"] for row in rows], kind="mergesort")]
        for row, line in zip(rows[: case.caps[-1]], values, strict=True):
            for truth, value in zip(truths, line, strict=True):
                overlap[row["id"], truth["id"]] = float(value)
    for item in reference.evalImgs:
        if item is None or item["aRng"] != reference.params.areaRng[0]:
            continue
        for place, number in enumerate(item["dtIds"]):
            match, ignored = int(item["dtMatches"][0, place]), bool(item["dtIgnore"][0, place])
            kind = "ignored" if ignored else "true positive" if match else "false positive"
            hits = [
                t for t in range(thresholds) if item["dtMatches"][t, place] and not item["dtIgnore"][t, place]
            ]
            up_to = reference.params.iouThrs[hits[-1]] if hits else math.nan
            iou = overlap[number, match] if match else math.nan
            counted[number - 1] = (kind, match or None, up_to, place, iou)
    return counted


@pytest.mark.long
@given(case=coco_cases(repeated_ids=False))
@settings(max_examples=examples(400))
def test_matches_table_equals_evalimgs(case: Case, folder: Path) -> None:
    known = {row["id"] for row in case.truth["categories"]}
    results = [row for row in case.results if row["category_id"] in known]
    case = dataclasses.replace(case, results=results, per_class=True)
    evaluation = boxscore.evaluate(*case.load(folder), protocol=case.protocol)
    reference = run_pycocotools(case.truth, case.results, caps=case.caps, thresholds=case.thresholds)
    expected = outcomes_of_pycocotools(case, reference, len(reference.params.iouThrs))
    frame = evaluation.matches
    assert len(frame) == len(case.results)
    assert frame["image_id"].tolist() == [row["image_id"] for row in case.results]
    assert frame["score"].tolist() == [row["score"] for row in case.results]
    for row, line in enumerate(frame.itertuples()):
        if row not in expected:
            assert line.outcome == "beyond max detections"
            continue
        kind, annotation, up_to, rank, iou = expected[row]
        assert (line.outcome, line.annotation_id, line.rank) == (kind, annotation, rank), row
        assert np.array_equal([line.matched_up_to, line.iou], [up_to, iou], equal_nan=True), row


@given(case=coco_cases())
@settings(max_examples=examples(100))
def test_verify_agrees(case: Case, folder: Path) -> None:
    """What ``--verify`` says of the tables is what the files say."""
    evaluation = boxscore.evaluate(*case.load(folder), protocol=case.protocol)
    assert verify(evaluation).equal


def test_annotation_id_zero_counts_with_a_warning(tmp_path: Path) -> None:
    truth = {
        "images": [{"id": 0}],
        "categories": [{"id": 0, "name": "thing"}],
        "annotations": [
            {"id": 0, "image_id": 0, "category_id": 0, "bbox": [0, 0, 40, 40], "area": 1600, "iscrowd": 0},
            {"id": 1, "image_id": 0, "category_id": 0, "bbox": [50, 0, 40, 40], "area": 1600, "iscrowd": 0},
        ],
    }
    results = [
        {"image_id": 0, "category_id": 0, "bbox": [0, 0, 40, 40], "score": 0.9},
        {"image_id": 0, "category_id": 0, "bbox": [50, 0, 40, 40], "score": 0.8},
    ]
    for name, value in (("truth", truth), ("results", results)):
        (tmp_path / f"{name}.json").write_text(json.dumps(value))
    loaded = boxscore.load_ground_truth(tmp_path / "truth.json")
    found = boxscore.load_detections(tmp_path / "results.json", loaded)
    with pytest.warns(boxscore.BoxscoreWarning, match="annotation has id 0"):
        evaluation = boxscore.evaluate(loaded, found)
    assert run_pycocotools(truth, results).stats[0] < 0.6  # the defect
    renumbered = {**truth, "annotations": [{**row, "id": row["id"] + 1} for row in truth["annotations"]]}
    assert_equal_to_pycocotools(evaluation, run_pycocotools(renumbered, results))


@pytest.mark.parametrize("classes", [1, 3])
@pytest.mark.parametrize("caps", [(1, 10, 100), (2, 5)])
def test_more_detections_than_the_cap(classes: int, caps: tuple[int, ...], tmp_path: Path) -> None:
    """A hundred and more detections in an image: cut before the overlaps, each cap on its own."""
    rng = np.random.default_rng(classes)
    rows = [
        {
            "id": 1 + number,
            "image_id": 1 + number % 2,
            "category_id": 1 + number % classes,
            "bbox": rng.integers(0, 40, 4).astype(float).tolist(),
            "iscrowd": int(number % 9 == 0),
        }
        for number in range(40)
    ]
    for row in rows:
        row["area"] = row["bbox"][2] * row["bbox"][3]
    results = [
        {
            "image_id": int(rng.integers(1, 3)),
            "category_id": int(rng.integers(1, classes + 1)),
            "bbox": rng.integers(0, 40, 4).astype(float).tolist(),
            "score": float(rng.integers(0, 50)) / 50,
        }
        for _ in range(900)
    ]
    truth = {
        "images": [{"id": 1}, {"id": 2}],
        "categories": [{"id": k, "name": str(k)} for k in range(1, classes + 1)],
        "annotations": rows,
    }
    check(Case(truth, results, caps, None, True), tmp_path)


def test_area_ranges_are_closed_at_both_ends(tmp_path: Path) -> None:
    sides = {32.0: {"APs", "APm"}, 96.0: {"APm", "APl"}, 31.0: {"APs"}, 97.0: {"APl"}}
    for side, defined in sides.items():
        box = [0.0, 0.0, side, side]
        truth = {
            "images": [{"id": 1}],
            "categories": [{"id": 1, "name": "thing"}],
            "annotations": [
                {"id": 1, "image_id": 1, "category_id": 1, "bbox": box, "area": side * side, "iscrowd": 0}
            ],
        }
        results = [{"image_id": 1, "category_id": 1, "bbox": box, "score": 0.5}]
        case = Case(truth, results, (1, 10, 100), None, True)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            metrics = boxscore.evaluate(*case.load(tmp_path)).metrics
        assert {key for key in ("APs", "APm", "APl") if not math.isnan(metrics[key])} == defined
        check(case, tmp_path)


WIDTHS = [
    *((count, 4) for count in (1, 2, 9, 16, 17, 21, 22, 32, 33, 63, 64)),
    *((10, n) for n in (1, 3, 9, 17)),
    (5, 13),  # 65 bits: one more than fit
]


@pytest.mark.parametrize(("count", "ranges"), WIDTHS)
def test_many_thresholds_and_area_ranges(count: int, ranges: int) -> None:
    """Both are bits of integers inside: every width of them."""
    rng = np.random.default_rng(count * 100 + ranges)
    thresholds = np.linspace(0.05, 1.0, count).tolist()
    area_ranges = {"all": [0.0, 1e10]}
    area_ranges |= {f"from {low}": [float(low), float(low + 40)] for low in range(0, 20 * (ranges - 1), 20)}
    boxes = rng.integers(0, 12, (120, 4)).astype(float)
    boxes[:, 2:] += 6
    images, labels = rng.integers(1, 3, 120).tolist(), rng.integers(1, 3, 120).tolist()
    rows = [
        {"id": n, "image_id": i, "category_id": k, "bbox": b, "area": b[2] * b[3], "iscrowd": int(n % 7 == 0)}
        for n, (i, k, b) in enumerate(zip(images, labels, boxes.tolist(), strict=True), start=1)
    ]
    truth = {
        "images": [{"id": 1}, {"id": 2}],
        "categories": [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}],
        "annotations": rows[:40],
    }
    results = [
        {"image_id": row["image_id"], "category_id": row["category_id"], "bbox": row["bbox"], "score": score}
        for row, score in zip(rows[40:], (rng.integers(0, 9, 80) / 9).tolist(), strict=True)
    ]
    reference = run_pycocotools(
        truth, results, thresholds=thresholds, area_ranges=list(area_ranges.values()), caps=(1, 5, 100)
    )
    table = boxscore.GroundTruth.from_arrays(
        images[:40],
        labels[:40],
        boxes[:40],
        box_format="xywh",
        crowd=[row["iscrowd"] for row in rows[:40]],
        images=[1, 2],
        categories={1: "a", 2: "b"},
    )
    found = boxscore.Detections.from_arrays(
        images[40:], labels[40:], boxes[40:], [row["score"] for row in results], box_format="xywh"
    )
    protocol = {
        "extends": "coco",
        "matching": {"iou_thresholds": thresholds, "max_detections": [1, 5, 100]},
        "ignore": {"area_ranges": area_ranges},
    }
    assert_equal_to_pycocotools(boxscore.evaluate(table, found, protocol=protocol), reference)
