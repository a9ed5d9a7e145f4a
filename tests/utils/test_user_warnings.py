"""A warning of any public function names the line of its caller, whatever lies in between."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore import BoxscoreWarning, Detections, GroundTruth
from boxscore.validation import validate_files

BOXES = [[10.0 * i, 10, 10 * i + 9, 19] for i in range(30)]
DEGREES = [[50, 50, 20, 10, 45.0]] * 30
SCORES = np.linspace(0.1, 0.9, 30)


def truth_of(boxes: Any = BOXES, **options: Any) -> GroundTruth:
    return GroundTruth.from_arrays([1] * 30, ["cat"] * 30, boxes, **options)


def found_of(scores: Any = SCORES, **options: Any) -> Detections:
    return Detections.from_arrays([1] * 30, ["cat"] * 30, BOXES, scores, **options)


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Ground truth without areas, and detections whose classes it does not have and whose boxes are corners."""
    truth = {
        "images": [{"id": 1, "width": 320, "height": 40}],
        "categories": [{"id": 1, "name": "cat"}],
        "annotations": [
            {"id": i + 1, "image_id": 1, "category_id": 1, "bbox": [x, y, 9, 9]}
            for i, (x, y, _, _) in enumerate(BOXES)
        ],
    }
    detections = [
        {"image_id": 1, "category_id": 1 + i % 2, "bbox": [*box], "score": 0.5} for i, box in enumerate(BOXES)
    ]
    (tmp_path / "gt.json").write_text(json.dumps(truth))
    (tmp_path / "dt.json").write_text(json.dumps(detections))
    return tmp_path / "gt.json", tmp_path / "dt.json"


def named(call: Callable[[], Any]) -> list[str]:
    """Return the files that warnings name."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return sorted({each.filename for each in caught if isinstance(each.message, BoxscoreWarning)})


def test_of_files(files: tuple[Path, Path], tmp_path: Path) -> None:
    truth, found = files
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tables = boxscore.load_ground_truth(truth)
        detections = boxscore.load_detections(found, tables)
    calls: list[Callable[[], Any]] = [
        lambda: boxscore.load_ground_truth(truth),
        lambda: boxscore.load_detections(found, tables),
        lambda: boxscore.evaluate(truth, found),
        lambda: boxscore.evaluate(tables, found),
        lambda: boxscore.evaluate(tables, detections),
        lambda: boxscore.scan(truth, found),
        lambda: boxscore.save_as(truth_of(crowd=[True] * 30), tmp_path / "x", format="voc", lossy=True),
    ]
    assert [named(call) for call in calls] == [[__file__]] * len(calls)
    assert validate_files(truth, found)


def test_of_arrays() -> None:
    evaluator = boxscore.Evaluator(invalid="drop")
    wide = np.array(BOXES)
    predictions = {"boxes": wide * np.nan, "scores": SCORES, "labels": [1] * 30}
    calls: list[Callable[[], Any]] = [
        lambda: boxscore.evaluate(truth_of(), found_of(100 * SCORES)),
        lambda: boxscore.evaluate(truth_of(), found_of(0 * SCORES + 0.5)),
        lambda: truth_of(boxes=None, rotated=DEGREES),
        lambda: boxscore.merge_tables([truth_of(), truth_of(columns={"heat": np.arange(30)})]),
        lambda: boxscore.nms(wide + 50, SCORES, iou_threshold=0.5, box_format="xywh"),
        lambda: boxscore.soft_nms(wide + 50, SCORES, box_format="xywh"),
        lambda: boxscore.weighted_boxes_fusion([BOXES], [SCORES * 10]),
        lambda: boxscore.rotated_box_iou(DEGREES, DEGREES),
        lambda: boxscore.suppress_boxes(BOXES, SCORES, method="hard", iou_threshold=0.5, sigma=0.5),
        lambda: boxscore.suppress(found_of(), method="hard", iou_threshold=0.5, sigma=0.5),
        lambda: evaluator.update([predictions], [{"boxes": wide, "labels": [1] * 30}]) or evaluator.compute(),
    ]
    assert [named(call) for call in calls] == [[__file__]] * len(calls)


def test_with_the_number_of_the_line() -> None:
    with pytest.warns(BoxscoreWarning) as caught:
        boxscore.rotated_box_iou(DEGREES, DEGREES)
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    assert lines[caught[0].lineno - 1].strip() == "boxscore.rotated_box_iou(DEGREES, DEGREES)"
