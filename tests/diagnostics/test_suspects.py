"""Label suspects: planted mistakes are found first."""

from __future__ import annotations

import numpy as np

import boxscore
from boxscore.diagnostics import label_suspects


def planted():
    """A hundred right cats; then one annotated as dog, one not annotated, one badly drawn, one in a crowd."""
    count = 100
    boxes = [[0, 0, 50, 50]] * count
    truth = boxscore.GroundTruth.from_arrays(
        [*range(count), 200, 202, 203],
        [*["cat"] * count, "dog", "cat", "cat"],
        [*boxes, [0, 0, 50, 50], [0, 0, 50, 15], [0, 0, 300, 300]],
        crowd=[*[False] * (count + 2), True],
        images=[*range(count), 200, 201, 202, 203],
        categories=["cat", "dog"],
    )
    found = boxscore.Detections.from_arrays(
        [*range(count), 200, 201, 201, 202, 203],
        ["cat"] * (count + 5),
        [*boxes, [0, 0, 50, 50], [0, 0, 50, 50], [0, 0, 50, 51], [0, 0, 50, 50], [5, 5, 55, 55]],
        [*np.linspace(0.6, 0.99, count), 0.95, 0.9, 0.85, 0.8, 0.9],
    )
    return boxscore.evaluate(truth, found)


def test_planted_mistakes():
    table = label_suspects(planted()).to_frame()
    assert table["kind"].tolist() == ["wrong class", "missing annotation", "poor box"]
    assert table["image_id"].tolist() == [200, 201, 202]
    assert table["true_class"].dropna().tolist() == ["dog", "cat"]
    assert table["true_class"].isna().tolist() == [False, True, False]
    assert table["suspicion"].is_monotonic_decreasing
    assert np.isnan(table["iou"].iloc[1])
    assert table["annotation_id"].iloc[0] == 101


def test_unsure_detections_take_no_part():
    assert label_suspects(planted(), score_threshold=0.92).to_frame()["image_id"].tolist() == [200]


def test_limit_and_scene(scene):
    evaluation = boxscore.evaluate(*scene(0, images=60))
    every = label_suspects(evaluation, score_threshold=0.0, limit=None).to_frame()
    first = label_suspects(evaluation, score_threshold=0.0, limit=5)
    assert first.to_frame().equals(every.head(5))
    assert set(every["kind"]) <= {"wrong class", "missing annotation", "poor box"}
    right = evaluation.matches.query("outcome == 'true positive'")
    keys = set(zip(right["image_id"], right["score"], strict=True))
    assert not keys & set(zip(every["image_id"], every["score"], strict=True))


def test_nothing_to_list():
    truth = boxscore.GroundTruth.from_arrays([1], [1], [[0, 0, 9, 9]])
    found = boxscore.Detections.from_arrays([1], [1], [[0, 0, 9, 9]], [0.9])
    suspects = label_suspects(boxscore.evaluate(truth, found))
    assert len(suspects.detection) == len(suspects.to_frame()) == 0
