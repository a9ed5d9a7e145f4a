"""Detections without scores: in tables, DataFrames and every file that may lack them; or with scores of some."""

from __future__ import annotations

import dataclasses
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from boxscore import Detections, GroundTruth, InputError, load_detections, save_as
from boxscore.data.alignment import concatenate
from boxscore.data.vocabulary import Images

BOXES = [[10, 10, 30, 40], [20, 15, 44, 50], [1, 2, 11, 12]]
TRUTH = GroundTruth.from_arrays(
    ["a", "b", "b"],
    ["cat", "dog", "cat"],
    BOXES,
    images=Images.build(["a", "b"], sizes=np.full((2, 2), 100.0)),
)
NUMBERED = GroundTruth.from_arrays([1], [1], BOXES[:1])
NAMED = GroundTruth.from_arrays(["a"] * 3, ["cat", "traffic light", "Car"], BOXES)


def table(**options: Any) -> Detections:
    return Detections.from_arrays(
        ["a", "b", "b"],
        ["cat", "dog", "cat"],
        BOXES,
        images=TRUTH.images,
        categories=TRUTH.categories,
        **options,
    )


def refused(make: Any) -> str:
    with pytest.raises(InputError) as caught:
        make()
    return str(caught.value)


def test_a_table_without_scores_says_so_and_refuses_them() -> None:
    plain = table()
    assert not plain.scored
    assert "scores: none" in repr(plain)
    assert refused(lambda: plain.scores) == (
        "the detections must have scores for this. Got none in arrays; boxes without scores are counted, not "
        "ranked."
    )
    scored = table(scores=[0.1, 0.2, 0.3])
    assert scored.scored
    assert not scored.without_scores().scored
    assert dataclasses.replace(plain, scores=np.ones(3)).scores.tolist() == [1, 1, 1]
    assert not plain[1:].scored
    assert Detections.from_arrays([], [], []).scored  # nothing says otherwise


def test_scores_of_some_are_refused() -> None:
    assert refused(lambda: table(scores=[0.5, None, 0.25])) == (
        "a detection must have a score if another has one. Got none in row 1 of arrays; row 0 of arrays has "
        "0.5; give every detection a score, or none."
    )
    assert not table(scores=[None, None, None]).scored
    assert "score must be finite" in refused(lambda: table(scores=[0.5, np.nan, 0.25]))
    with_scores = Detections.from_arrays(["c"], ["cat"], BOXES[:1], [0.5], source="c.json")
    assert refused(lambda: concatenate([table(), with_scores])) == (
        "scores must be in all merged tables, or in none. Got none in arrays; c.json has them."
    )


def test_data_frames() -> None:
    frame = table(columns={"night": [1, 0, 1]}).to_pandas()
    assert "score" not in frame
    assert not Detections.from_pandas(frame).scored
    frame["score"] = [0.5, np.nan, 0.25]
    assert "Got none in row 1 of DataFrame; row 0 of DataFrame has 0.5" in refused(
        lambda: Detections.from_pandas(frame)
    )
    frame["score"] = pd.array([None] * 3, dtype="Float64")
    assert not Detections.from_pandas(frame).scored
    assert list(table(scores=[1, 2, 3], columns={"night": [1, 0, 1]}).to_pandas())[-2:] == ["score", "night"]


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("dt.json", None),
        ("dt.npz", None),
        ("dt.csv", None),
        ("dt.parquet", None),
        ("dt.csv", "openimages"),
        ("dt", "yolo"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*no line has a confidence")
def test_files_come_back_without_scores(name: str, form: str | None, tmp_path: Path) -> None:
    given = table()
    save_as(given, tmp_path / name, **({} if form is None else {"format": form}))
    back = load_detections(tmp_path / name, TRUTH, classes=["cat", "dog"] if name == "dt" else None)
    assert not back.scored
    order = np.lexsort((back.category, back.image)), np.lexsort((given.category, given.image))
    assert back.boxes[order[0]] == pytest.approx(given.boxes[order[1]], abs=1e-9)


def test_pickles() -> None:
    assert not pickle.loads(pickle.dumps(table())).scored


def results(**changes: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [
        {"image_id": 1, "category_id": 1, "bbox": [0, 0, 5, 5]} | ({"area": "x"} if row == 0 else {})
        for row in range(3)
    ]
    for row, score in changes.items():
        rows[int(row[1:])]["score"] = score
    return rows


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ({"_1": 0.5}, "Got none in detection 0 of {}; detection 1 of {} has 0.5"),
        ({"_0": 0.5, "_2": 0.25}, "Got none in detection 1 of {}; detection 0 has one"),
        ({"_2": 0.5, "_0": None}, "Got none in detection 0 of {}; detection 2 of {} has 0.5"),
    ],
)
def test_results_with_scores_of_some(scores: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = tmp_path / "dt.json"
    path.write_text(json.dumps(results(**scores)))
    assert message.replace("{}", str(path)) in refused(lambda: load_detections(path, NUMBERED))


def test_annotations_of_a_ground_truth_are_no_results(tmp_path: Path) -> None:
    path = tmp_path / "gt.json"
    path.write_text(json.dumps([{**row, "iscrowd": 0} for row in results()]))
    assert "Got none in detection 0" in refused(lambda: load_detections(path, NUMBERED))
    assert "is this a ground-truth file?" in refused(lambda: load_detections(path, NUMBERED))


@pytest.mark.parametrize(
    ("plain", "scored"),
    [
        ("cat 10 10 30 40\ntraffic light 1 2 11 12\n", "cat 0.5 10 10 30 40\ntraffic light 1 2 11 12\n"),
        ("Car 0 0 0 1 2 30 40 1 1 1 1 1 1 0\n" * 2, "Car 0 0 0 1 2 30 40 1 1 1 1 1 1 0{}\n"),
    ],
    ids=["text", "kitti"],
)
def test_text_files(plain: str, scored: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(plain)
    back = load_detections(tmp_path, NAMED, box_format="xyxy" if "cat" in plain else None)
    assert not back.scored
    assert len(back) == 2
    (tmp_path / "a.txt").write_text(scored.format(" 0.5") + scored.format("") if "{}" in scored else scored)
    message = refused(lambda: load_detections(tmp_path, NAMED, box_format="xyxy" if "cat" in plain else None))
    assert "must have a score if another has one" in message
    assert "line 2" in message
    assert "line 1" in message


def test_predictions_of_a_loop() -> None:
    predictions = [
        {"boxes": [[0, 0, 5, 5]], "labels": [1]},
        {"boxes": np.empty((0, 4)), "labels": [], "scores": []},
    ]
    assert not Detections.from_predictions(predictions, image_ids=[1, 2]).scored
    predictions[1] = {"boxes": [[0, 0, 5, 5]], "labels": [1], "scores": [0.5]}
    assert refused(lambda: Detections.from_predictions(predictions, image_ids=[1, 2])) == (
        "scores must be set for every image or for none. Got 1 of 2 images with it; image 2, not 1."
    )
    predictions[1] = {"boxes": [[0, 0, 5, 5]], "labels": [1], "conf": [0.5]}
    assert "is 'conf' the scores?" in refused(
        lambda: Detections.from_predictions(predictions, image_ids=[1, 2])
    )
