"""Rotated boxes score as pycocotools' rules say when it is told their IoU, and their IoU is that of polygons."""

from __future__ import annotations

import contextlib
import copy
import io
import math
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

import boxscore
from oracles.polygons import overlap
from oracles.pycoco import assert_equal_to_pycocotools, same_bits
from support.scenes import rules

Record = dict[str, Any]
THRESHOLDS = np.linspace(0.5, 0.95, 10)


def radians(box: list[float]) -> list[float]:
    """A box of a file, whose degrees go counter-clockwise on the screen, as tables have it."""
    return [*box[:4], -math.radians(box[4])]


def rotated_case(seed: int, *, crowds: bool = True, turned: bool = True) -> tuple[Record, list[Record]]:
    """A small data set of rotated boxes in COCO's form, and results that are near them."""
    rng = np.random.default_rng(seed)
    side = float(rng.choice([60, 200, 700]))
    images, classes = int(rng.integers(1, 5)), int(rng.integers(1, 4))
    annotations: list[Record] = []
    found: list[Record] = []

    def box() -> list[float]:
        turn = rng.uniform(-180, 180) if turned else 0.0
        return [*rng.uniform(0, side, 2), *rng.uniform(2, side / 2, 2), turn]

    for number in range(1, int(rng.integers(1, 25)) + 1):
        at = box()
        annotations.append(
            {
                "id": number,
                "image_id": int(rng.integers(1, images + 1)),
                "category_id": int(rng.integers(1, classes + 1)),
                "bbox": at,
                "area": at[2] * at[3] * (rng.uniform(0.5, 1) if rng.random() < 0.3 else 1),
                "iscrowd": int(crowds and rng.random() < 0.15),
            }
        )
    for _ in range(int(rng.integers(1, 50))):
        near = annotations[int(rng.integers(len(annotations)))]
        at = [*(np.array(near["bbox"][:4]) * rng.normal(1, 0.06, 4)), near["bbox"][4]]
        at[4] += rng.normal(0, 8) if turned else 0.0
        found.append(
            {
                "image_id": near["image_id"],
                "category_id": near["category_id"] if rng.random() < 0.9 else 1,
                "bbox": [float(value) for value in (at if rng.random() < 0.85 else box())],
                "score": float(rng.integers(0, 20) / 20),
            }
        )
    return {
        "images": [{"id": i, "width": side, "height": side} for i in range(1, images + 1)],
        "categories": [{"id": i, "name": f"c{i}"} for i in range(1, classes + 1)],
        "annotations": annotations,
    }, found


def tables(truth: Record, found: list[Record]) -> tuple[boxscore.GroundTruth, boxscore.Detections]:
    rows = truth["annotations"]
    ground_truth = boxscore.GroundTruth.from_arrays(
        [row["image_id"] for row in rows],
        [row["category_id"] for row in rows],
        None,
        rotated=[radians(row["bbox"]) for row in rows],
        area=[row["area"] for row in rows],
        crowd=[row["iscrowd"] for row in rows],
        images=[image["id"] for image in truth["images"]],
        categories={row["id"]: row["name"] for row in truth["categories"]},
    )
    return ground_truth, boxscore.Detections.from_arrays(
        [row["image_id"] for row in found],
        [row["category_id"] for row in found],
        None,
        [row["score"] for row in found],
        rotated=[radians(row["bbox"]) for row in found],
        images=ground_truth.images,
        categories=ground_truth.categories,
    )


class RotatedCOCOeval(COCOeval):  # type: ignore[misc]
    """pycocotools that is told the overlaps: polygons clipped, which come within 1e-9 of no threshold."""

    def computeIoU(self, imgId: int, catId: int) -> Any:  # noqa: N802
        truths, found = self._gts[imgId, catId], self._dts[imgId, catId]
        if not truths or not found:
            return []
        found = [found[i] for i in np.argsort([-row["score"] for row in found], kind="mergesort")]
        return np.array(
            [
                [
                    overlap(radians(one["bbox"]), radians(other["bbox"]), over_first=bool(other["iscrowd"]))
                    for other in truths
                ]
                for one in found[: self.params.maxDets[-1]]
            ]
        )


def run_pycocotools(truth: Record, found: list[Record]) -> COCOeval:
    with contextlib.redirect_stdout(io.StringIO()):
        reference = COCO()
        reference.dataset = {"info": {}, **copy.deepcopy(truth)}
        reference.createIndex()
        run = RotatedCOCOeval(reference, reference.loadRes(copy.deepcopy(found)), "bbox")
        run.evaluate()
        run.accumulate()
        run.summarize()
    return run


def near_a_threshold(overlaps: np.ndarray[Any, Any]) -> bool:
    return bool((np.abs(overlaps[:, None] - THRESHOLDS) < 1e-9).any())


def all_overlaps(truth: boxscore.GroundTruth, found: boxscore.Detections) -> np.ndarray[Any, Any]:
    assert truth.rotated is not None
    assert found.rotated is not None
    return boxscore.rotated_box_iou(found.rotated, truth.rotated)


@pytest.mark.parametrize("seed", range(150))
def test_generated_cases_equal_pycocotools(seed: int) -> None:
    truth, found = rotated_case(seed)
    evaluation = boxscore.evaluate(*tables(truth, found), protocol="coco-rotated")
    assert_equal_to_pycocotools(evaluation, run_pycocotools(truth, found))


@given(st.integers(0, 2**32 - 1))
def test_overlaps_are_those_of_polygons(seed: int) -> None:
    truth, found = tables(*rotated_case(seed))
    expected = [[overlap(one, other) for other in truth.rotated] for one in found.rotated]
    assert np.abs(all_overlaps(truth, found) - expected).max() < 1e-9


@given(st.integers(0, 2**32 - 1))
def test_matches_carry_the_overlap_of_the_public_function(seed: int) -> None:
    truth, found = tables(*rotated_case(seed, crowds=False))
    matches = boxscore.evaluate(truth, found, protocol="coco-rotated").matches
    hits = matches[matches["outcome"] == "true positive"]
    whole = all_overlaps(truth, found)
    rows = {identifier: row for row, identifier in enumerate(truth.ids.tolist())}
    expected = [
        whole[detection, rows[annotation]]
        for detection, annotation in zip(hits.index, hits["annotation_id"], strict=True)
    ]
    assert hits["iou"].tolist() == expected


@given(st.integers(0, 2**32 - 1), st.floats(-3.2, 3.2), st.floats(-500, 500), st.floats(-500, 500))
@settings(max_examples=60)
def test_turning_the_scene_changes_nothing(seed: int, turn: float, x: float, y: float) -> None:
    truth, found = tables(*rotated_case(seed, crowds=False))
    assume(not near_a_threshold(all_overlaps(truth, found).ravel()))
    cosine, sine = math.cos(turn), math.sin(turn)

    def turned(table: Any) -> Any:
        from_x, from_y = table.rotated[:, 0] - x, table.rotated[:, 1] - y
        moved = [x + cosine * from_x - sine * from_y, y + sine * from_x + cosine * from_y]
        rest = [*table.rotated[:, 2:4].T, table.rotated[:, 4] + turn]
        return table.replaced(rotated=np.column_stack([*moved, *rest]))

    before = boxscore.evaluate(truth, found, protocol="coco-rotated").arrays()
    after = boxscore.evaluate(turned(truth), turned(found), protocol="coco-rotated").arrays()
    assert all(same_bits(after[name], np.nan_to_num(before[name], nan=-1)) for name in before)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=60)
def test_upright_boxes_score_as_upright_boxes(seed: int) -> None:
    truth, found = tables(*rotated_case(seed, turned=False))
    assume(not near_a_threshold(all_overlaps(truth, found).ravel()))
    rotated = boxscore.evaluate(truth, found, protocol="coco-rotated").arrays()
    upright = boxscore.evaluate(
        truth.replaced(rotated=None), found.replaced(rotated=None), protocol="coco"
    ).arrays()
    assert all(same_bits(rotated[name], np.nan_to_num(upright[name], nan=-1)) for name in rotated)


@given(st.integers(0, 2**32 - 1))
def test_boxes_stand_around_rotated_boxes(seed: int) -> None:
    truth, _ = tables(*rotated_case(seed))
    for box, (cx, cy, w, h, angle) in zip(truth.boxes, truth.rotated, strict=True):
        x = [cx + i * w / 2 * math.cos(angle) - j * h / 2 * math.sin(angle) for i in (-1, 1) for j in (-1, 1)]
        y = [cy + i * w / 2 * math.sin(angle) + j * h / 2 * math.cos(angle) for i in (-1, 1) for j in (-1, 1)]
        np.testing.assert_allclose(box, [min(x), min(y), max(x), max(y)], rtol=0, atol=1e-9)


def test_areas_are_those_of_the_rotated_boxes() -> None:
    """30 by 30 is small, though the upright box around it is 42 by 42."""
    box = [[50, 50, 30, 30, math.pi / 4]]
    truth = boxscore.GroundTruth.from_arrays([1], ["a"], None, rotated=box)
    found = boxscore.Detections.from_arrays(
        [1, 2], ["a", "a"], None, [0.5, 0.9], rotated=box * 2, images=[1, 2]
    )
    assert truth.area.tolist() == [900]
    assert (truth.boxes[0, 2] - truth.boxes[0, 0]) ** 2 > 1024
    truth = boxscore.GroundTruth.from_arrays([1], ["a"], None, rotated=box, images=found.images)
    metrics = boxscore.evaluate(truth, found, protocol="coco-rotated").metrics
    assert metrics["APs"] == 0.5
    assert math.isnan(metrics["APm"])


def test_a_crowd_takes_what_lies_inside_it() -> None:
    crowd = [[50, 50, 80, 80, 0.4]]
    inside, half = [50, 50, 10, 10, 1.0], [50 + 40 * math.cos(0.4), 50 + 40 * math.sin(0.4), 20, 10, 0.4]
    truth = boxscore.GroundTruth.from_arrays([1], ["a"], None, rotated=crowd, crowd=[True])
    found = boxscore.Detections.from_arrays(
        [1, 1, 1], ["a"] * 3, None, [0.9, 0.8, 0.7], rotated=[inside, half, [300, 50, 10, 10, 0]]
    )
    half_enough = rules("coco-rotated", matching={"iou_thresholds": [0.49]})
    matches = boxscore.evaluate(truth, found, protocol=half_enough).matches
    assert matches["outcome"].tolist() == ["ignored", "ignored", "false positive"]


def test_ground_truth_has_to_be_rotated() -> None:
    truth = boxscore.GroundTruth.from_arrays([1], ["a"], [[0, 0, 9, 9]])
    found = boxscore.Detections.from_arrays([1], ["a"], [[0, 0, 9, 9]], [0.5])
    with pytest.raises(boxscore.InputError, match=r"^ground truth must have rotated boxes") as caught:
        boxscore.evaluate(truth, found, protocol="coco-rotated")
    assert "arrays" in str(caught.value)
    assert "any protocol of boxes compares them" in str(caught.value)


def test_upright_detections_count_as_turned_by_nothing() -> None:
    truth = boxscore.GroundTruth.from_arrays([1], ["a"], None, rotated=[[50, 40, 20, 10, math.pi]])
    found = boxscore.Detections.from_arrays([1], ["a"], [[40, 35, 60, 45]], [0.5])
    with pytest.warns(boxscore.BoxscoreWarning, match="the upright ones are taken as rotated by 0"):
        evaluation = boxscore.evaluate(truth, found, protocol="coco-rotated")
    assert evaluation.metrics["AR1"] == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        empty = boxscore.evaluate(truth, found[:0], protocol="coco-rotated")
    assert empty.metrics["AP"] == 0


@pytest.mark.parametrize(
    ("rotated", "text"),
    [
        ([[1, 2, 3, 4]], r"rotated must have shape \[N, 5\]. Got shape \[1, 4\]"),
        ([[1, 2, -3, 4, 0]], "rotated must have width >= 0. Got width -3.0 in row 0 of arrays.$"),
        ([[1, 2, 3, -4, 0]], "rotated must have height >= 0"),
        ([[1, 2, 3, 4, math.nan]], "rotated must be finite"),
        ([[1, 2, 3, 4, 0]] * 2, "rotated"),
        ("x", "rotated must be numbers"),
    ],
)
def test_bad_rotated_boxes(rotated: Any, text: str) -> None:
    with pytest.raises(boxscore.InputError, match=text):
        boxscore.GroundTruth.from_arrays([1], ["a"], None, rotated=rotated)
    with pytest.raises(boxscore.InputError, match=text):
        boxscore.Detections.from_arrays([1], ["a"], None, [0.5], rotated=rotated)
