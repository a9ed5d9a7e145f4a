"""Scores of each image: an image evaluated alone gives the same."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import boxscore
from boxscore.diagnostics import image_scores
from support.running import Run
from support.samples import DT, GT, SHAPES


def alone(truth: boxscore.GroundTruth, found: boxscore.Detections, image: object, t: float) -> list[float]:
    """Score one image by evaluating nothing else, counting row by row."""
    protocol = {
        "extends": "coco",
        "matching": {"iou_thresholds": [t]},
        "summary": [{"key": "AP"}],
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("warnings.warn", lambda *_, **__: None)
        result = boxscore.evaluate(truth, found, protocol=protocol, images=[image])  # type: ignore[list-item]
    outcome = result.matches["outcome"]
    true, false = int((outcome == "true positive").sum()), int((outcome == "false positive").sum())
    return [true, false, int((~result.ground_truth.crowd).sum()) - true, result["AP"]]


def assert_as_alone(truth: boxscore.GroundTruth, found: boxscore.Detections, t: float) -> None:
    scores = image_scores(boxscore.evaluate(truth, found), iou_threshold=t)
    for row, image in enumerate(truth.images.ids.tolist()):
        got = [
            column[row] for column in (scores.true_positives, scores.false_positives, scores.false_negatives)
        ]
        expected = alone(truth, found, image, t)
        assert got == expected[:3]
        np.testing.assert_allclose(scores.average_precision[row], expected[3], rtol=1e-14)


@pytest.mark.long
@pytest.mark.parametrize("t", [0.5, 0.75])
def test_every_image_scores_as_it_does_alone(t: float) -> None:
    truth = boxscore.load_ground_truth(SHAPES / "instances.json")
    assert_as_alone(truth, boxscore.load_detections(SHAPES / "detections.json", truth), t)


BOX = st.tuples(*[st.integers(0, 5)] * 2, *[st.integers(6, 9)] * 2)
ROW = st.tuples(st.integers(1, 3), st.integers(1, 2), BOX)


@pytest.mark.long
@given(st.lists(ROW, min_size=1, max_size=8), st.lists(st.tuples(ROW, st.integers(1, 3)), max_size=12))
def test_drawn_images(objects: list, detections: list) -> None:  # type: ignore[type-arg]
    truth = boxscore.GroundTruth.from_arrays(
        [row[0] for row in objects],
        [row[1] for row in objects],
        [row[2] for row in objects],
        images=[1, 2, 3],
        categories=[1, 2],
    )
    found = boxscore.Detections.from_arrays(
        [row[0] for row, _ in detections],
        [row[1] for row, _ in detections],
        np.array([row[2] for row, _ in detections], dtype=float).reshape(-1, 4),
        [score / 4 for _, score in detections],
        images=[1, 2, 3],
        categories=[1, 2],
    )
    assert_as_alone(truth, found, 0.5)


def test_a_confidence_threshold_moves_counts_and_not_ap() -> None:
    truth = boxscore.GroundTruth.from_arrays([1, 1], ["cat", "cat"], [[0, 0, 9, 9], [20, 0, 29, 9]])
    found = boxscore.Detections.from_arrays(
        [1, 1], ["cat", "cat"], [[0, 0, 9, 9], [20, 0, 29, 9]], [0.9, 0.2]
    )
    result = boxscore.evaluate(truth, found)
    frame = image_scores(result, score_threshold=0.5).to_frame()
    assert frame.iloc[0].to_dict() == {
        "image_id": 1,
        "objects": 2,
        "detections": 1,
        "TP": 1,
        "FP": 0,
        "FN": 1,
        "precision": 1.0,
        "recall": 0.5,
        "F1": pytest.approx(2 / 3),
        "AP": 1.0,
    }


def test_images_without_objects_or_detections() -> None:
    truth = boxscore.GroundTruth.from_arrays([1], ["cat"], [[0, 0, 9, 9]], images=[1, 2, 3])
    found = boxscore.Detections.from_arrays([2], ["cat"], [[0, 0, 9, 9]], [0.9], images=[1, 2, 3])
    scores = image_scores(boxscore.evaluate(truth, found))
    assert scores.false_negatives.tolist() == [1, 0, 0]
    assert scores.false_positives.tolist() == [0, 1, 0]
    assert np.isnan(scores.precision).tolist() == [True, False, True]
    assert np.isnan(scores.average_precision).tolist() == [False, True, True]


def test_command(run: Run) -> None:
    files = ["--gt", GT, "--dt", DT]
    lines = run("images", *files, "--output", "csv").out.splitlines()
    assert lines[0] == "image_id,file_name,objects,detections,TP,FP,FN,precision,recall,F1,AP"
    assert len([line for line in lines[1:] if line and line[0].isdigit()]) == 24
