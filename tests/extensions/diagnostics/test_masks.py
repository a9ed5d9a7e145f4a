"""Questions across classes where masks are compared: by masks, and by boxes taken for masks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore import diagnostics
from boxscore.reports import write_report
from boxscore.similarity.box import BoxSimilarity
from support.instances import evaluate
from support.running import Run
from support.searches import searches

BOX = [10, 10, 40, 40]
LOWER_LEFT = [[10, 10, 10, 50, 50, 50]]
UPPER_RIGHT = [[10, 10, 50, 10, 50, 50]]
LETTER_L = [[10, 10, 18, 10, 18, 42, 50, 42, 50, 50, 10, 50]]
"""Covers 36% of its box."""


def truth_of(*shapes: tuple[str, Any]) -> dict[str, Any]:
    return {
        "images": [{"id": 1, "width": 100, "height": 100, "file_name": "1.png"}],
        "categories": [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}],
        "annotations": [
            {
                "id": number,
                "image_id": 1,
                "category_id": {"cat": 1, "dog": 2}[name],
                "bbox": BOX,
                "area": 800,
                "iscrowd": 0,
                "segmentation": shape,
            }
            for number, (name, shape) in enumerate(shapes, start=1)
        ],
    }


def detection(name: str, score: float, **shape: Any) -> dict[str, Any]:
    return {"image_id": 1, "category_id": {"cat": 1, "dog": 2}[name], "score": score, **shape}


@pytest.fixture
def boxes_for_masks(tmp_path: Path) -> boxscore.Evaluation:
    """An L of class cat; the results have its box, which is no hit where masks are compared."""
    truth, results = truth_of(("cat", LETTER_L)), [detection("cat", 0.9, bbox=BOX)]
    return evaluate(tmp_path, truth, results, "coco-segm")


@pytest.fixture
def two_triangles(tmp_path: Path) -> boxscore.Evaluation:
    """Cat and dog share a box, not a pixel; the detection covers the cat and says dog."""
    truth = truth_of(("dog", UPPER_RIGHT), ("cat", LOWER_LEFT))
    results = [detection("dog", 0.9, segmentation=rle(LOWER_LEFT))]
    return evaluate(tmp_path, truth, results, "coco-segm")


def rle(polygons: Any) -> dict[str, Any]:
    from pycocotools import mask

    packed = mask.merge(mask.frPyObjects(polygons, 100, 100))
    return {"size": packed["size"], "counts": packed["counts"].decode()}


def test_confusion(boxes_for_masks: boxscore.Evaluation, two_triangles: boxscore.Evaluation) -> None:
    matrix = diagnostics.confusion_matrix(boxes_for_masks)
    assert matrix.counts.tolist() == [[0, 0, 1], [0, 0, 0], [1, 0, 0]]
    matrix = diagnostics.confusion_matrix(boxes_for_masks, iou_threshold=0.3)
    assert matrix.counts.tolist() == [[1, 0, 0], [0, 0, 0], [0, 0, 0]]
    matrix = diagnostics.confusion_matrix(two_triangles)
    assert matrix.counts.tolist() == [[0, 1, 0], [0, 0, 1], [0, 0, 0]]


def test_errors(boxes_for_masks: boxscore.Evaluation, two_triangles: boxscore.Evaluation) -> None:
    for result, kind in ((boxes_for_masks, "localization"), (two_triangles, "classification")):
        errors = diagnostics.error_types(result)
        assert errors.total.counts[errors.errors.index(kind)] == 1


def test_suspects(boxes_for_masks: boxscore.Evaluation, two_triangles: boxscore.Evaluation) -> None:
    for result, kind, other in ((boxes_for_masks, "poor box", "cat"), (two_triangles, "wrong class", "cat")):
        frame = diagnostics.label_suspects(result).to_frame()
        assert frame[["kind", "true_class"]].to_numpy().tolist() == [[kind, other]]
    assert diagnostics.label_suspects(boxes_for_masks).iou == pytest.approx([0.36], abs=0.01)


def test_slices(boxes_for_masks: boxscore.Evaluation) -> None:
    result = diagnostics.slice_scores(boxes_for_masks, by="size")
    assert result.detections.sum() == 1


@pytest.mark.long
def test_report(boxes_for_masks: boxscore.Evaluation, tmp_path: Path) -> None:
    write_report(boxes_for_masks, tmp_path / "report", tables="csv")
    assert (tmp_path / "report" / "tables" / "top_confusions.csv").is_file()


@pytest.mark.parametrize(
    "command", [["confusion"], ["errors"], ["suspects"], ["slices", "--by", "size"], ["report"]], ids=" ".join
)
@pytest.mark.filterwarnings("ignore::boxscore.BoxscoreWarning")
def test_commands(
    command: list[str],
    boxes_for_masks: boxscore.Evaluation,
    tmp_path: Path,
    run: Run,
) -> None:
    files = ["--gt", str(tmp_path / "truth.json"), "--dt", str(tmp_path / "results.json")]
    more = ["--report", str(tmp_path / "report")] if command == ["report"] else ["--output", "json"]
    output = run(*command, *files, "--protocol", "coco-segm", *more).out
    if command == ["report"]:
        assert (tmp_path / "report" / "report.html").is_file()
    else:
        assert json.loads(output)["rows"]


@pytest.mark.long
def test_a_report_finds_overlaps_across_classes_once(
    scene: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Each question may ask again; without difficult objects every one is answered from the same overlaps."""
    floors = searches(monkeypatch, BoxSimilarity)
    result = boxscore.evaluate(*scene(3, images=30))
    write_report(result, tmp_path, tables="csv", plots="svg")
    diagnostics.label_suspects(result)
    assert min(floors) == 0.1
    # Shared by all but COCO's analysis, which measures what lies in objects, and matches class by class.
    assert floors.count(0.1) == 3


def test_cells_are_found_once(scene: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from boxscore.extensions.diagnostics import confusion

    calls = []
    search = confusion.greedy_one_to_one
    monkeypatch.setattr(
        confusion, "greedy_one_to_one", lambda first, second: calls.append(0) or search(first, second)
    )
    result = boxscore.evaluate(*scene(3, images=30))
    matrix = diagnostics.confusion_matrix(result)
    for background in (True, False):
        diagnostics.top_confusions(result, background=background)
    assert (diagnostics.confusion_matrix(result, score_threshold=0.25).counts == matrix.counts).all()
    assert len(calls) == 1
    for score in np.linspace(0, 1, 9).tolist():
        diagnostics.confusion_matrix(result, score_threshold=score)
    assert len(calls) == 9
