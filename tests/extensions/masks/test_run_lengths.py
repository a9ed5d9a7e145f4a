"""Codes are added up as pycocotools' C code reads them, before it is handed any that would never end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pycocotools import mask as coco_mask

import boxscore
from boxscore.extensions.masks.column import Masks
from boxscore.extensions.masks.run_lengths import DAMAGED, read_runs
from oracles.run_lengths import slow_total
from support.program import run_boxscore


def test_totals_of_masks() -> None:
    rng = np.random.default_rng(0)
    codes, sizes = [b""], [0]
    for _ in range(2000):
        shape = rng.integers(1, 60, 2)
        mask = rng.random(shape) < rng.choice([0, 0.01, 0.5, 0.99, 1])
        codes.append(coco_mask.encode(np.asfortranarray(mask, dtype=np.uint8))["counts"])
        sizes.append(int(shape.prod()))
    assert read_runs(codes).totals().tolist() == sizes
    assert list(map(slow_total, codes)) == sizes
    assert read_runs([b"", b""]).totals().tolist() == [0, 0]


def test_totals_of_anything() -> None:
    rng = np.random.default_rng(1)
    codes = []
    for _ in range(5000):
        length = int(rng.integers(1, 30))
        high = 112 if rng.random() < 0.95 else 256
        code = rng.integers(48, high, length).astype(np.uint8)
        small = rng.random(length) < 0.8  # or nearly all are negative, or go on too long
        code[small] = 48 + (code[small] - 48) % 16
        code[-1] = 48 + (code[-1] - 48) % 32  # none is cut short
        codes.append(code.tobytes())
    totals = read_runs(codes).totals()
    assert totals.tolist() == list(map(slow_total, codes))
    assert 0.1 < (totals == DAMAGED).mean() < 0.9
    assert read_runs([b"p"]).totals().tolist() == [DAMAGED]  # foreign, and without an end


@pytest.mark.parametrize(
    ("counts", "got"),
    [
        ("08h1", "counts that add up to 64"),
        ("o2p", "invalid counts"),
        ("0N", "invalid counts"),
        (b"", "counts that add up to 0"),
    ],
)
def test_a_damaged_code_is_refused(counts: Any, got: str) -> None:
    message = (
        rf"a mask must have counts that add up to height times width\. Got {got} for size \[8, 10\] in "
        r"mask 1; are its counts damaged\?"
    )
    codes = [
        coco_mask.encode(np.ones((8, 10), dtype=np.uint8, order="F")),
        {"size": [8, 10], "counts": counts},
    ]
    with pytest.raises(boxscore.InputError, match=message):
        Masks(codes).codes()


def test_the_program_ends(tmp_path: Path) -> None:
    """pycocotools' loop over two masks whose runs do not add up to the same number never ends."""
    image = {"id": 1, "width": 10, "height": 8}
    box = {"image_id": 1, "category_id": 1, "bbox": [0, 0, 9, 8], "area": 72, "iscrowd": 0}
    row = {**box, "id": 1, "segmentation": {"size": [8, 10], "counts": [0, 72, 8]}}
    truth = {"images": [image], "categories": [{"id": 1, "name": "a"}], "annotations": [row]}
    records = [
        {"image_id": 1, "category_id": 1, "segmentation": {"size": [8, 10], "counts": "08h1"}, "score": 1}
    ]
    (tmp_path / "gt.json").write_text(json.dumps(truth))
    (tmp_path / "dt.json").write_text(json.dumps(records))
    arguments = ["evaluate", "--gt", "gt.json", "--dt", "dt.json", "--iou-type", "segm"]
    status, output, errors = run_boxscore(arguments, folder=tmp_path)
    assert (status, output) == (2, "")
    assert errors == (
        "boxscore: error: a mask must have counts that add up to height times width. Got counts that add up "
        "to 64 for size [8, 10] in detection 0 of dt.json; are its counts damaged?\n"
    )
