"""DOTA's files: what is warned of, and that tables come back as they were written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import boxscore
from boxscore import BoxscoreWarning, Detections, GroundTruth, load_detections, load_ground_truth


def test_corners_that_cross_and_a_class_without_a_file(tmp_path: Path) -> None:
    labels, results = tmp_path / "labelTxt", tmp_path / "task1"
    labels.mkdir()
    results.mkdir()
    (labels / "P1.txt").write_text("gsd:0.2\n0 0 9 9 9 0 0 9 ship 0\n20 20 40 20 40 30 20 30 plane 2\n")
    (results / "Task1_ship.txt").write_text("P1 0.5 0 0 9 0 9 9 0 9\n")
    with pytest.warns(BoxscoreWarning, match="1 of 2 quadrilaterals crosses itself, the first in .*line 2"):
        truth = load_ground_truth(labels)
    assert truth.difficult.tolist() == [False, True]
    with pytest.warns(
        BoxscoreWarning, match="no Task1_plane.txt: every object of the class counts as missed"
    ):
        detections = load_detections(results, truth)
    assert len(detections) == 1


def test_tables_come_back(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    corners = boxscore.rotated_convert(
        np.column_stack([rng.uniform(50, 90, (5, 2)), rng.uniform(4, 9, (5, 2)), rng.random(5)]),
        "rotated",
        "corners",
    )
    names = {1: "ship", 2: "plane"}
    truth = GroundTruth.from_arrays(
        ["a", "b", "a", "b", "b"],
        [1, 2, 1, 1, 2],
        None,
        quadrilaterals=corners,
        difficult=[True, False, False, True, False],
        categories=names,
    )
    boxscore.save_as(truth, tmp_path / "labels", format="dota")
    again = load_ground_truth(tmp_path / "labels")
    rows = np.argsort(truth.image, kind="stable")
    assert again.quadrilaterals is not None
    assert np.array_equal(again.quadrilaterals, corners[rows])
    assert np.array_equal(again.difficult, truth.difficult[rows])
    detections = Detections.from_arrays(
        ["a", "b"], [1, 2], None, [0.5, 0.25], quadrilaterals=corners[:2], categories=names
    )
    boxscore.save_as(detections, tmp_path / "task1", format="dota")
    back = load_detections(tmp_path / "task1", again)
    assert back.quadrilaterals is not None
    assert np.array_equal(np.sort(back.quadrilaterals, axis=0), np.sort(corners[:2], axis=0))
    assert sorted(back.scores.tolist()) == [0.25, 0.5]


def test_degrees_are_suspected() -> None:
    with pytest.warns(BoxscoreWarning, match="is more than a full turn"):
        boxscore.rotated_box_iou([[0, 0, 2, 1, 30]], [[0, 0, 2, 1, 0]])
    with pytest.warns(BoxscoreWarning, match="row 0 of arrays: the angle of every rotated box"):
        Detections.from_arrays([1], [1], None, [0.5], rotated=[[0, 0, 2, 1, 45]])


def test_which_of_two_folders_of_labels_is_read_is_said(tmp_path: Path) -> None:
    """DOTA 1.0 and 1.5 label the same images: one folder was read without a word."""
    for name, count in (("labelTxt", 1), ("labelTxt-v1.5", 2)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.txt").write_text("0 0 9 0 9 9 0 9 ship 0\n" * count)
    with pytest.warns(BoxscoreWarning) as caught:
        assert len(load_ground_truth(tmp_path)) == 1
    (warning,) = caught
    text = f"{tmp_path}: labelTxt is read, not labelTxt-v1.5; give the folder itself to choose."
    assert (str(warning.message), warning.message.severity) == (text, "note")  # type: ignore[union-attr]
    assert len(load_ground_truth(tmp_path / "labelTxt-v1.5")) == 2
