"""Odd masks: what is read, what is refused, and how much it takes."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pycocotools import mask as coco_mask

import boxscore
from boxscore.data import base
from boxscore.extensions.masks.column import Masks
from boxscore.extensions.masks.mask import mask_iou
from boxscore.extensions.masks.outlines import LONGEST_OUTLINE
from boxscore.extensions.masks.run_lengths import MOST_PIXELS


def test_runs_of_length_0_stop_the_count_as_in_pycocotools() -> None:
    """Both codes hold one at pixel 4: what lies behind it is not counted, though both masks go on."""
    one, other = ({"size": [4, 3], "counts": runs} for runs in ([2, 2, 0, 4, 4], [1, 3, 0, 3, 5]))
    codes = [coco_mask.frPyObjects(code, 4, 3) for code in (one, other)]
    theirs = coco_mask.iou([codes[0]], [codes[1]], [0]).item()
    assert mask_iou([one], [other]).item() == theirs == 2 / 3
    assert mask_iou(Masks([one]).arrays(), Masks([other]).arrays()).item() == 5 / 7


def test_rows_are_in_any_order_and_more_than_a_batch() -> None:
    pixels = np.random.default_rng(0).random((3000, 9, 11)) < 0.4
    masks = Masks(
        [
            array if row % 2 else coco_mask.encode(np.asfortranarray(array, dtype=np.uint8))
            for row, array in enumerate(pixels)
        ]
    )
    rows = np.random.default_rng(1).integers(0, 3000, 200)
    wide = Masks([{"size": [2, 400_000], "counts": [row, 1, 799_999 - row]} for row in range(5)])
    assert masks[rows].area.tolist() == pixels[rows].sum(axis=(1, 2)).tolist()
    assert mask_iou(wide, wide).tolist() == np.eye(5).tolist()


@pytest.mark.parametrize(
    ("mask", "size", "message"),
    [
        (
            [[0, 0, 9, 0, 9, 9]],
            [0, 180],
            r"at most 2,147,483,647 in all\. Got 0 x 180 in mask 0; set the real width",
        ),
        ([[0, 0, 9, 0, 9, 9]], [0.999, 180], r"Got 0 x 180 in mask 0"),
        ([[0, 0, 9, 0, 9, 9]], [-3, 180], r"Got none in mask 0"),
        ([[0, 0, 9, 0, 9, 9]], [46_341, 46_341], r"Got 46341 x 46341 in mask 0"),
        ([[0, 0, 9, 0, 9, 9]], [1e9, 1], r"Got 2000000 x 1 or more in mask 0"),
        (
            [[0, 0, 1e6, 1e6] * 34],
            [9, 9],
            rf"an outline of at most {LONGEST_OUTLINE:,} pixels\. Got 68,000,000",
        ),
        ({"size": [0, 5], "counts": []}, None, r"Got 5 x 0 in mask 0; is its size"),
        ({"size": [5, 0], "counts": b""}, None, r"Got 0 x 5 in mask 0"),
        (np.zeros((0, 4)), None, r"Got 4 x 0 in mask 0"),
        ({"size": [float("nan"), 4], "counts": "4"}, None, r"Got none in mask 0"),
        ({"size": [1, 4], "counts": [2.5, 1.5]}, None, r"a list of whole numbers\. Got \[2\.5, 1\.5\]"),
        ({"size": [1, 4], "counts": [2**70]}, None, r"a mask must have counts"),
        ({"size": [1, 4], "counts": [-1, 5]}, None, r"Got invalid counts for size \[1, 4\]"),
        ([{"size": [1, 4], "counts": [4]}], [4, 1], r"a mask must be polygons"),
        ([[1, 2, "x", 4, 5, 6]], [4, 4], r"a polygon in mask 0 must be numbers"),
        ([[1, 2, 3, 4], [0, 0, 3, 0, 3, 3]], [4, 4], r"a mask must be polygons of at least 3 points"),
    ],
)
def test_what_is_refused(mask: Any, size: Any, message: str) -> None:
    with pytest.raises(boxscore.InputError, match=message):
        _ = Masks([mask], image_sizes=None if size is None else [size]).area


def test_the_largest_masks_take_little() -> None:
    """A billion pixels and more, in milliseconds and kilobytes."""
    sides = [30_000, 30_000]
    half = {"size": sides, "counts": [0, 450_000_000, 450_000_000]}
    striped = {"size": sides, "counts": [100_000, 300_000_000, 7, 299_899_993, 300_000_000]}
    assert Masks([half, striped]).area.tolist() == [450_000_000, 599_899_993]
    shared = 450_000_000 - 100_000 - 7
    assert mask_iou([half], [striped]).item() == shared / (450_000_000 + 599_899_993 - shared)
    assert 0 < boxscore.boundary_iou([half], [striped]).item() < 0.5
    full = {"size": [1_000_000, 2_147], "counts": [0, 2_147_000_000]}
    assert mask_iou([full], [full]).item() == boxscore.boundary_iou([full], [full]).item() == 1
    assert MOST_PIXELS > 2_147_000_000
    again = Masks(Masks([full, half]).codes())
    assert again.area.tolist() == [2_147_000_000, 450_000_000]


def test_evaluation_asks_for_no_boxes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Boxes around masks are computed for those who ask: reports, suppression, nobody here."""
    code = {"size": [8, 8], "counts": [0, 32, 32]}
    row = {"id": 1, "image_id": 1, "category_id": 1, "bbox": [0, 0, 4, 8], "area": 32, "iscrowd": 0}
    truth = {
        "images": [{"id": 1, "width": 8, "height": 8}],
        "categories": [{"id": 1, "name": "a"}],
        "annotations": [{**row, "segmentation": code}],
    }
    records = [{"image_id": 1, "category_id": 1, "segmentation": code, "score": 0.5}]
    (tmp_path / "gt.json").write_text(json.dumps(truth))
    (tmp_path / "dt.json").write_text(json.dumps(records))
    calls = []
    real_function = base.boxes_around
    monkeypatch.setattr(base, "boxes_around", lambda *given: calls.append(1) or real_function(*given))
    result = boxscore.evaluate(tmp_path / "gt.json", tmp_path / "dt.json", protocol="coco-segm")
    assert (result["AP"] > 0.999, calls) == (True, [])
    assert result.detections.take([0]).boxes.tolist() == [[0, 0, 4, 8]]
    assert result.detections.sizes.tolist() == [[4, 8]]
    assert len(calls) == 2


@pytest.mark.parametrize("side", [0, 0.5, 0.999])
@pytest.mark.parametrize("protocol", ["coco-segm", "coco-boundary"])
def test_an_image_without_pixels_ends_with_a_message(tmp_path: Path, side: float, protocol: str) -> None:
    """pycocotools never comes to an end on two polygons that overlap in such an image."""
    polygon = [[0, 0, 9, 0, 9, 9, 0, 9]]
    row = {"id": 1, "image_id": 1, "category_id": 1, "bbox": [0, 0, 9, 9], "area": 81, "iscrowd": 0}
    truth = {
        "images": [{"id": 1, "width": side, "height": 180}],
        "categories": [{"id": 1, "name": "a"}],
        "annotations": [{**row, "segmentation": polygon}],
    }
    records = [{"image_id": 1, "category_id": 1, "segmentation": polygon, "score": 0.5}]
    (tmp_path / "gt.json").write_text(json.dumps(truth))
    (tmp_path / "dt.json").write_text(json.dumps(records))
    # A side of 0 is an unknown size, so no box can reach outside the image.
    got = "0 x 180" if side else "none"
    warns = pytest.warns(boxscore.BoxscoreWarning) if side else contextlib.nullcontext()
    message = rf"Got {got} in annotation 0 \(id 1\) of .*; set the real width and height of the image"
    with warns, pytest.raises(boxscore.InputError, match=message):
        boxscore.evaluate(tmp_path / "gt.json", tmp_path / "dt.json", protocol=protocol)
