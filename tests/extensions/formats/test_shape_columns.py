"""Keypoints, rotated boxes and corners in Parquet: every column comes back, in partitions too."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import boxscore
from boxscore import Detections, GroundTruth
from support import limits
from support.running import Run

pytest.importorskip("pyarrow", reason="needs boxscore[tables]")

import pyarrow.parquet as pq

from boxscore.formats.parquet import FORMAT

IMAGES = list(range(1, 9))
Tables = tuple[GroundTruth, Detections]


def keypoints(*, boxes: bool) -> Tables:
    """Persons with 17 joints, some not labeled; detections with or without boxes of their own."""
    rng = np.random.default_rng(3)
    image = rng.choice(IMAGES[:-1], 12)  # the last image has no person
    points = np.concatenate([rng.uniform(5, 90, (12, 17, 2)), rng.integers(0, 3, (12, 17, 1))], axis=2)
    points[points[:, :, 2] == 0] = 0
    truth = GroundTruth.from_arrays(
        image.tolist(),
        ["person"] * 12,
        None,
        keypoints=points,
        keypoint_count=[*(points[:-1, :, 2] > 0).sum(axis=1).tolist(), 0],
        crowd=[False] * 11 + [True],
        area=rng.uniform(900, 9000, 12),
        images=IMAGES,
    )
    found = np.repeat(points, 2, axis=0) + rng.normal(0, 2, (24, 17, 3))
    own = None
    if boxes:
        corner = rng.uniform(0, 40, (24, 2))
        own = np.hstack([corner, corner + rng.uniform(10, 50, (24, 2))])
    scores = rng.random(24).round(2)
    detections = Detections.from_arrays(
        np.repeat(image, 2).tolist(), ["person"] * 24, own, scores, keypoints=found
    )
    return truth, detections


def oriented(name: str) -> Tables:
    """Rotated boxes, or quadrilaterals, of two classes."""
    rng = np.random.default_rng(4)
    count = 20
    image, label = rng.choice(IMAGES[:-1], count).tolist(), rng.choice(["ship", "plane"], count).tolist()
    rotated = np.column_stack(
        [rng.uniform(30, 70, (count, 2)), rng.uniform(8, 30, (count, 2)), rng.uniform(-1.5, 1.5, count)]
    )
    shapes = rotated
    if name == "quadrilaterals":
        from boxscore.extensions.oriented.quadrilaterals import corners_of_rotated

        shapes = corners_of_rotated(rotated).reshape(count, 8)
    moved = shapes + rng.normal(0, 0.4, shapes.shape)
    truth = GroundTruth.from_arrays(image, label, None, images=IMAGES, **{name: shapes})
    return truth, Detections.from_arrays(image, label, None, rng.random(count), **{name: moved})


CASES: dict[str, tuple[Callable[[], Tables], str]] = {
    "keypoints": (lambda: keypoints(boxes=False), "coco-keypoints"),
    "keypoints and boxes": (lambda: keypoints(boxes=True), "coco-keypoints"),
    "rotated": (lambda: oriented("rotated"), "coco-rotated"),
    "quadrilaterals": (lambda: oriented("quadrilaterals"), "dota"),
}


def equal(one: GroundTruth | Detections, other: GroundTruth | Detections) -> None:
    """Compare every column, row by row, to the last bit."""
    for column in (*one.schema.needed, *one.schema.instances):
        mine, yours = getattr(one, column.name), getattr(other, column.name)
        assert (mine is None) == (yours is None), column.name
        if mine is not None:
            np.testing.assert_array_equal(mine, yours, column.name)
    assert one.images.ids.tolist() == other.images.ids.tolist()
    assert one.categories.labels == other.categories.labels
    if isinstance(one, Detections) and isinstance(other, Detections):
        assert one.boxes_given == other.boxes_given


@pytest.mark.parametrize("case", CASES)
def test_every_column_comes_back(case: str, tmp_path: Path) -> None:
    truth, found = CASES[case][0]()
    FORMAT.save(truth, tmp_path / "truth.parquet")
    FORMAT.save(found, tmp_path / "found.parquet")
    again = boxscore.load_ground_truth(tmp_path / "truth.parquet")
    equal(again, truth)
    expected = boxscore.data.alignment.align(found, truth)
    equal(boxscore.load_detections(tmp_path / "found.parquet", again), expected)


@pytest.mark.parametrize("case", CASES)
def test_partitions_have_the_numbers_of_one_process(
    case: str, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits.small_partitions(monkeypatch, 15)
    tables, protocol = CASES[case]
    truth, found = tables()
    FORMAT.save_partitions(truth, tmp_path / "truth", 3)
    FORMAT.save_partitions(found, tmp_path / "found", 3)
    expected = dict(boxscore.evaluate(truth, found, protocol=protocol).metrics)
    call = ["evaluate", tmp_path / "truth", tmp_path / "found", "--protocol", protocol, "--output", "json"]
    for more in ([], ["--memory-limit", "1GB", "--workers", "1"]):
        metrics = json.loads(run(*call, *more).out)["metrics"]
        assert {name: metrics[name] for name in expected} == {
            name: None if np.isnan(value) else value for name, value in expected.items()
        }
    assert next(iter(expected.values())) > 0


def test_a_joint_that_is_missing_is_said(tmp_path: Path, run: Run) -> None:
    truth, _ = keypoints(boxes=False)
    FORMAT.save(truth, tmp_path / "truth.parquet")
    table = pq.read_table(tmp_path / "truth.parquet")
    pq.write_table(table.drop_columns(["keypoint_y4"]), tmp_path / "cut.parquet")
    error = run.error("stats", tmp_path / "cut.parquet")
    assert "columns of keypoints must all be there. Got no keypoint_y4" in error
