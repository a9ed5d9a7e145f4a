"""Masks compared by several processes: the same matches, areas counted once, and a child that fails."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore._utils.processes import Forked
from boxscore.extensions.masks import mask_pairs
from boxscore.extensions.masks.mask import MaskSimilarity
from support import limits
from support.examples import first_of
from support.instances import Record, evaluate, load
from support.matches import assert_same_matches
from support.searches import searches


def mask_case(seed: int) -> tuple[Record, list[Record]]:
    """Outlines and, near them, what a detector may have found; some of two parts, some crowds."""
    random = np.random.default_rng(seed)
    annotations: list[Record] = []
    results: list[Record] = []
    sizes = random.integers(20, 60, (8, 2)).tolist()
    for image, (height, width) in enumerate(sizes, start=1):
        for _ in range(random.integers(1, 6)):
            parts = [random.uniform(0, (width, height), (5, 2)) for _ in range(random.integers(1, 3))]
            record = {"image_id": image, "category_id": int(random.integers(1, 3)), "iscrowd": 0}
            area = float(width * height / 4)
            annotations.append({**record, "area": area, "bbox": [0, 0, width, height]})
            annotations[-1] |= {
                "id": len(annotations),
                "segmentation": [part.ravel().tolist() for part in parts],
            }
            for _ in range(random.integers(0, 4)):
                moved = [(part + random.normal(0, 2, part.shape)).ravel().tolist() for part in parts]
                results.append({**record, "segmentation": moved, "score": float(random.integers(0, 9)) / 8})
                del results[-1]["iscrowd"]
    for each in annotations[::5]:
        each["iscrowd"] = 1
    images = [{"id": i, "height": h, "width": w} for i, (h, w) in enumerate(sizes, start=1)]
    categories = [{"id": 1, "name": "one"}, {"id": 2, "name": "two"}]
    return {"images": images, "annotations": annotations, "categories": categories}, results


@pytest.mark.long
@pytest.mark.parametrize("protocol", ["coco-segm", "coco-boundary"])
@pytest.mark.parametrize("workers", first_of(1, [5, 2]))
def test_processes_find_the_same(
    protocol: str, workers: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mask_pairs, "SHARE", 1e-9)
    started: list[int] = []

    class Counted(Forked[Any]):
        def __init__(self, tasks: Any) -> None:
            started.append(len(tasks))
            super().__init__(tasks)

    monkeypatch.setattr(mask_pairs, "Forked", Counted)
    for seed in range(2):
        alone = evaluate(tmp_path, *mask_case(seed), protocol)
        assert not started
        shared = evaluate(tmp_path, *mask_case(seed), protocol, workers=workers)
        assert started == [workers - 1]
        started.clear()
        assert_same_matches(alone.matched, shared.matched)


@pytest.mark.long
def test_what_children_have_measured_is_not_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mask_pairs, "SHARE", 1e-9)
    truth, results = mask_case(5)
    ground_truth, detections = load(tmp_path, truth, results)
    boxscore.evaluate(ground_truth, detections, protocol="coco-segm", workers=3)
    masks = detections.masks
    assert masks is not None
    measured = masks.area
    monkeypatch.setattr(boxscore.extensions.masks.rasterizing, "spans_of", None)
    assert masks.area.tobytes() == measured.tobytes()
    monkeypatch.undo()
    fresh = boxscore.extensions.masks.column.Masks(
        masks.given, image_sizes=detections.images.sizes[detections.image]
    )
    assert fresh.area.tobytes() == measured.tobytes()


def test_where_no_process_can_be_started_the_work_is_done_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = evaluate(tmp_path, *mask_case(2), "coco-segm")

    def refuse() -> int:
        raise BlockingIOError

    monkeypatch.setattr(mask_pairs, "SHARE", 1e-9)
    monkeypatch.setattr(os, "fork", refuse)
    assert_same_matches(alone.matched, evaluate(tmp_path, *mask_case(2), "coco-segm", workers=2).matched)


def test_too_many_pairs_of_all_processes_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = evaluate(tmp_path, *mask_case(3), "coco-segm")
    monkeypatch.setattr(mask_pairs, "SHARE", 1e-9)
    limits.few_pairs_at_a_time(monkeypatch, len(alone.matched.iou) - 1)
    calls = searches(monkeypatch, MaskSimilarity)
    blocks = evaluate(tmp_path, *mask_case(3), "coco-segm", workers=2)
    assert np.array_equal(list(alone.metrics.values()), list(blocks.metrics.values()), equal_nan=True)
    assert len(calls) > 2  # all at once, then block by block


def test_little_work_is_not_shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fork", None)
    evaluate(tmp_path, *mask_case(1), "coco-segm", workers=2)


def test_a_damaged_mask_of_a_child_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mask_pairs, "SHARE", 1e-9)
    truth, results = mask_case(0)
    for each in truth["annotations"]:
        each["segmentation"] = {"size": [5, 5], "counts": "0"}
    with pytest.raises(boxscore.InputError):
        evaluate(tmp_path, truth, results, "coco-segm", workers=2)


def test_every_mask_is_decoded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ground_truth, detections = load(tmp_path, *mask_case(6))
    decoded: list[int] = []
    spans_of = boxscore.extensions.masks.rasterizing.spans_of

    def counted(columns: Any, rows: Any, place: Any) -> Any:
        decoded.append(len(rows))
        return spans_of(columns, rows, place)

    monkeypatch.setattr(boxscore.extensions.masks.rasterizing, "spans_of", counted)
    boxscore.evaluate(ground_truth, detections, protocol="coco-segm", digest=False)
    assert len(detections) < sum(decoded) <= len(ground_truth) + len(detections)
