"""Rotated boxes score as pycocotools' rules say when it is told their IoU, and their IoU is that of polygons."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import boxscore
from boxscore.compat.verification import verify
from oracles.polygons import overlap
from oracles.pycoco import assert_equal_to_pycocotools, same_bits
from support.each import each
from support.rotated import rotated_case, run_pycocotools, tables
from support.scenes import rules

THRESHOLDS = np.linspace(0.5, 0.95, 10)


def near_a_threshold(overlaps: np.ndarray[Any, Any]) -> bool:
    return bool((np.abs(overlaps[:, None] - THRESHOLDS) < 1e-9).any())


def all_overlaps(truth: boxscore.GroundTruth, found: boxscore.Detections) -> np.ndarray[Any, Any]:
    assert truth.rotated is not None
    assert found.rotated is not None
    return boxscore.rotated_box_iou(found.rotated, truth.rotated)


@each(range(150), first=40)
def test_generated_cases_equal_pycocotools(seed: int) -> None:
    truth, found = rotated_case(seed)
    evaluation = boxscore.evaluate(*tables(truth, found), protocol="coco-rotated")
    assert_equal_to_pycocotools(evaluation, run_pycocotools(truth, found))


@pytest.mark.long
@given(st.integers(0, 2**32 - 1))
def test_overlaps_are_those_of_polygons(seed: int) -> None:
    truth, found = tables(*rotated_case(seed))
    expected = [[overlap(one, other) for other in truth.rotated] for one in found.rotated]
    assert np.abs(all_overlaps(truth, found) - expected).max() < 1e-9


@pytest.mark.long
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


@pytest.mark.long
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


@pytest.mark.long
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


@pytest.mark.long
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
        evaluation = boxscore.evaluate(truth, found, protocol="coco-rotated", digest=False)
    assert evaluation.metrics["AR1"] == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        empty = boxscore.evaluate(truth, found[:0], protocol="coco-rotated", digest=False)
    assert empty.metrics["AP"] == 0


@pytest.mark.parametrize("together", [1, 64])
@pytest.mark.parametrize("seed", range(10))
def test_an_evaluator_sees_the_same(seed: int, together: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("boxscore.extensions.training.evaluating.MATCHED_TOGETHER", together)
    truth, found = tables(*rotated_case(seed))
    evaluator = boxscore.Evaluator(protocol="coco-rotated")
    for image, identifier in enumerate(truth.images.ids.tolist()):
        given, reported = truth[truth.image == image], found[found.image == image]
        target = {
            "image_id": identifier,
            "labels": truth.categories.ids[given.category],
            "rotated": given.rotated,
            "area": given.area,
            "iscrowd": given.crowd,
        }
        prediction = {
            "labels": truth.categories.ids[reported.category],
            "rotated": reported.rotated,
            "scores": reported.scores,
        }
        evaluator.update([prediction], [target])
    whole = boxscore.evaluate(truth, found, protocol="coco-rotated")
    assert evaluator.compute().metrics == pytest.approx(whole.metrics, rel=0, abs=0, nan_ok=True)


def test_an_evaluator_names_the_image_of_a_bad_box() -> None:
    target = {"image_id": 7, "labels": [1], "rotated": [[1, 2, -3, 4, 0]]}
    prediction = {"labels": [], "scores": [], "rotated": []}
    with pytest.raises(boxscore.InputError, match=r"rotated must have width >= 0.* row 0 of the target of"):
        boxscore.Evaluator(protocol="coco-rotated").update([prediction], [target])


def test_pycocotools_cannot_verify_it() -> None:
    evaluation = boxscore.evaluate(*tables(*rotated_case(0)), protocol="coco-rotated")
    with pytest.raises(boxscore.ProtocolError, match=r"have similarity 'box' or 'mask' or .*coco-rotated"):
        verify(evaluation)


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
