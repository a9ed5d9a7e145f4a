"""Files of annotation tools that boxscore does not read are named, with what to export instead."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import boxscore as bs
from boxscore.cli import main

ENCORD = {"label_hash": "x", "data_title": "a.jpg", "data_units": {"u": {"labels": {"objects": []}}}}
KILI = {"externalId": "a", "content": "a.jpg", "jsonResponse": {"JOB": {"annotations": []}}}
PRODIGY = {"image": "a.jpg", "_input_hash": 5, "spans": [{"label": "cat", "points": [[1, 2], [3, 4]]}]}


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("encord.json", [ENCORD], "an export of Encord"),
        ("kili.json", [KILI], "an export of Kili"),
        ("prodigy.jsonl", PRODIGY, "an export of Prodigy"),
    ],
)
@pytest.mark.parametrize("below", [False, True])
def test_the_tool_is_named(
    tmp_path: Path, name: str, content: object, said: str, below: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder with one file per image is no other case."""
    path = tmp_path / "data" / name
    path.parent.mkdir()
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    (path.parent / "0_label_map.json").write_text('{"0": "cat"}')  # such a file says nothing
    assert main(["stats", str(path.parent if below else path)]) == 2
    shown = capsys.readouterr().err
    assert said in shown
    assert "--columns" not in shown


def test_what_is_advised_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"image": "a.jpg", "objects": [{"bbox": [1, 2, 30, 40], "category": "cat"}]}\n')
    table = bs.load_ground_truth(path, box_format="xywh")
    assert table.boxes.tolist() == [[1, 2, 31, 42]]


@pytest.mark.parametrize("key", ["className", "instances", "data_row", "Labeled Data", "slot_names"])
def test_such_a_key_in_a_file_that_is_read(tmp_path: Path, key: str) -> None:
    images = [{"id": 1, "file_name": "a.jpg", "width": 200, "height": 100}]
    box = {"id": 1, "image_id": 1, "category_id": 1, "bbox": [1, 2, 30, 40], "area": 1200, "iscrowd": 0}
    categories = [{"id": 1, "name": "cat"}]
    further = {"metadata": {}, "item": {}, "projects": [], "instances": [], "className": "x", "detection": {}}
    content = {"images": images, "annotations": [box | {key: "x"}], "categories": categories} | further
    (tmp_path / "gt.json").write_text(json.dumps(content))
    assert len(bs.load_ground_truth(tmp_path / "gt.json")) == 1
    key = key.replace("className", "my className")  # a column of classes
    (tmp_path / "gt.csv").write_text(f"image,class,x1,y1,x2,y2,{key}\na.jpg,cat,1,2,31,42,x\n")
    assert len(bs.load_ground_truth(tmp_path / "gt.csv")) == 1
