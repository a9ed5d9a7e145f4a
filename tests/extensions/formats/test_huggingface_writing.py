"""`convert --to huggingface` writes metadata that read back as they were."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

import boxscore
from support.running import Run

BOXES = [[1.0, 2.0, 40.5, 30.25], [50.0, 60.0, 70.0, 70.0], [90.0, 5.0, 99.0, 9.0]]


def table(**changes: object) -> boxscore.GroundTruth:
    names = ["a", "c", "c"]
    crowd = [False, True, False]
    truth = boxscore.GroundTruth.from_arrays(names, ["x", "y", "x"], BOXES, crowd=crowd)
    images = truth.images.build(
        ["a", "c", "e"], file_names=["a.jpg", "b/c.png", "e.jpg"], sizes=[[100, 80]] * 3
    )
    return truth.replaced(images=images, **changes)


def test_metadata_read_back_as_they_were(tmp_path: Path) -> None:
    truth = table(area=np.array([5.0, 200.0, 36.0]))
    assert boxscore.save_as(truth, tmp_path / "data", format="huggingface") == []
    read = boxscore.load_ground_truth(tmp_path / "data", box_format="xywh")
    for name in ("boxes", "sizes", "area", "crowd", "image", "category"):
        np.testing.assert_array_equal(getattr(read, name), getattr(truth, name))
    assert read.categories.names.tolist() == ["x", "y"]
    assert read.images.file_names.tolist() == ["a.jpg", "b/c.png", "e.jpg"]
    assert read.images.sizes.tolist() == [[100.0, 80.0]] * 3


def test_only_what_a_table_has_is_written(tmp_path: Path, run: Run) -> None:
    boxscore.save_as(table(crowd=np.zeros(3, dtype=bool)), tmp_path / "t.json", lossy=True)
    output = tmp_path / "metadata.jsonl"
    run("convert", tmp_path / "t.json", "--to", "huggingface", "--output", output, "--lossy")
    first, _, last = map(json.loads, output.read_text().splitlines())
    assert first == {
        "file_name": "a.jpg",
        "width": 100,
        "height": 80,
        "objects": {"bbox": [[1.0, 2.0, 39.5, 28.25]], "categories": ["x"]},
    }
    assert last["objects"] == {"bbox": [], "categories": []}


def test_what_datasets_would_not_find_is_refused(tmp_path: Path, run: Run) -> None:
    boxscore.save_as(table(), tmp_path / "t.json", lossy=True)
    call = ["convert", tmp_path / "t.json", "--to", "huggingface", "--lossy", "--output"]
    assert "metadata.jsonl" in run.error(*call, tmp_path / "train.jsonl")
    (tmp_path / "n.csv").write_text("image,class,x1,y1,x2,y2\n7,x,1,2,3,4\n")
    assert "have a file name" in run.error("convert", tmp_path / "n.csv", *call[2:], tmp_path / "out")
    assert not (tmp_path / "out").exists()
