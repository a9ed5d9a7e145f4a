"""Keypoints that are read as structs of numbers: the same as read record by record, and the same errors."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore.errors import BoxscoreError
from boxscore.formats import _coco_records
from boxscore.formats._json import PART_BYTES
from boxscore.formats.reading import read_detections, read_ground_truth, read_options

MISSING = object()


def records(joints: int, *, of_results: bool, count: int = 40) -> list[dict[str, Any]]:
    draw, made = random.Random(joints), []
    for number in range(count):
        points = [draw.choice([0, 1, 2.5, 1e-3, 639.25, -7]) for _ in range(3 * joints)]
        one = {"image_id": 1 + number % 3, "category_id": 1, "keypoints": points}
        one |= (
            {"score": draw.random()} if of_results else {"num_keypoints": number % 4, "bbox": [1, 2, 3, 4.5]}
        )
        made.append(one if of_results else {**one, "id": number + 1, "area": 13.5, "iscrowd": 0})
    return made


def tables(
    folder: Path, truth: list[dict[str, Any]], found: list[dict[str, Any]], processes: int
) -> list[Any]:
    images = [{"id": number, "width": 640, "height": 480, "file_name": ""} for number in (1, 2, 3)]
    whole = {"images": images, "categories": [{"id": 1, "name": "person"}], "annotations": truth}
    (folder / "gt.json").write_text(json.dumps(whole))
    (folder / "dt.json").write_text(json.dumps(found))
    made = []
    for columns in (("keypoints",), ()):  # at once, and when first asked for
        options = read_options(instances=columns, processes=processes)
        try:
            ground_truth = read_ground_truth(folder / "gt.json", options)
            detections = read_detections(folder / "dt.json", ground_truth, options)
            made += [
                (table.keypoints, table.boxes, table.image, getattr(table, "keypoint_count", None))
                for table in (ground_truth, detections)
            ]
        except BoxscoreError as error:
            made.append(str(error))
    return made


CHANGES: dict[str, dict[str, Any]] = {
    "nothing": {},
    "no keypoints": {"keypoints": MISSING},
    "null keypoints": {"keypoints": None},
    "no numbers": {"keypoints": []},
    "fewer": {"keypoints": [1, 2, 2]},
    "text": {"keypoints": "none"},
    "too large": {"keypoints": [int("9" * 400)] * 6},
    "no count": {"num_keypoints": MISSING},
    "null count": {"num_keypoints": None},
    "half a count": {"num_keypoints": 1.5},
    "a huge count": {"num_keypoints": 1e300},
    "a box": {"bbox": [1, 2, 3, 4]},
    "no box": {"bbox": MISSING},
    "null box": {"bbox": None},
    "an empty box": {"bbox": []},
    "a box of text": {"bbox": "none"},
    "a text id": {"image_id": "2"},
    "an id that is no whole number": {"image_id": 1.5},
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("row", [0, 25])
@pytest.mark.parametrize("joints", [5, 6])
@pytest.mark.filterwarnings("ignore::boxscore.BoxscoreWarning")
def test_numbers_and_records_give_the_same(
    change: str, row: int, joints: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    truth, detections = records(joints, of_results=False), records(joints, of_results=True)
    for one in (truth[row], detections[row]):
        for key, value in CHANGES[change].items():
            if value is MISSING:
                one.pop(key, None)
            elif key in one or key == "bbox":
                one[key] = value
    with np.errstate(all="ignore"):
        fast = tables(tmp_path, truth, detections, 1)
        monkeypatch.setattr(_coco_records, "_add_numeric_fields", lambda *_, **__: None)
        slow = tables(tmp_path, truth, detections, 1)
    assert len(fast) == len(slow)
    for one, other in zip(fast, slow, strict=True):
        assert isinstance(one, str) == isinstance(other, str), (one, other)
        if isinstance(one, str):
            assert one == other
        else:
            for column, same in zip(one, other, strict=True):
                np.testing.assert_array_equal(column, same)
                assert getattr(column, "dtype", None) == getattr(same, "dtype", None)


def test_two_readers_may_read_differently(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    truth, detections = records(17, of_results=False), records(17, of_results=True, count=300)
    monkeypatch.setattr(_coco_records._json, "PART_BYTES", 1 << 12)
    monkeypatch.setattr(_coco_records._json, "SLICE_BYTES", 1 << 12)
    assert PART_BYTES > 1 << 12
    detections[-1]["keypoints"] = None
    (_, one), (_, two) = (tables(tmp_path, truth, detections, processes)[:2] for processes in (1, 2))
    np.testing.assert_array_equal(one[0], two[0])
    assert not two[0][-1].any()
    scores = [
        boxscore.load_detections(
            tmp_path / "dt.json", boxscore.load_ground_truth(tmp_path / "gt.json")
        ).scores
    ]
    assert len(scores[0]) == 300
