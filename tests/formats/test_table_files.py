"""Tables of boxes: CSV, JSON lines and Parquet, the columns people use, and what is refused."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import boxscore
from boxscore.cli import main
from boxscore.data.box_reading import are_fractions
from boxscore.data.column_names import column_parts
from boxscore.errors import BoxscoreWarning, FileFormatError, InputError
from boxscore.formats import detect_format, load_detections, load_ground_truth
from boxscore.formats._sniffer import Sniffer
from boxscore.formats.registry import format_named
from support.examples import examples
from support.real_data import real
from support.running import Run

Rows = list[tuple[Any, str, list[float]]]
TRUTH: Rows = [("a.jpg", "cat", [1, 2, 31, 42]), ("a.jpg", "dog", [10.5, 20.25, 50, 60])]


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def content(table: boxscore.GroundTruth | boxscore.Detections) -> Rows:
    """Return image, class and corners of each row."""
    return [
        (
            table.images.ids.tolist()[table.image[row]],
            table.categories.names[table.category[row]],
            table.boxes[row].tolist(),
        )
        for row in range(len(table))
    ]


# ---------------------------------------------------------------- column names


@pytest.mark.parametrize(
    ("head", "numbers"),
    [
        ("image_id,class,x1,y1,x2,y2", "1,2,31,42"),
        ("Filename,Label,XMin,YMin,XMax,YMax", "1,2,31,42"),
        ("image_name,label_name,left,top,right,bottom", "1,2,31,42"),
        ("file_name,category,x0,y0,x1,y1", "1,2,31,42"),
        ("img_path,class_name,xtl,ytl,xbr,ybr", "1,2,31,42"),
        ("image,name,bbox_left,bbox_top,bbox_width,bbox_height", "1,2,30,40"),
        ("image,class,left,top,width,height", "1,2,30,40"),
        ("image,class,x1,y1,w,h", "1,2,30,40"),
        ("image,class,xmin,ymin,width,height", "1,2,30,40"),
        ("image,class,cx,cy,w,h", "16,22,30,40"),
        ("image,class,x_center,y_center,width,height", "16,22,30,40"),
        ("image,class,x,y,w,h", "1,2,30,40"),  # 16 or 30 as the center's would leave the image
        ("image,class,bbox_xyxy", '"[1, 2, 31, 42]"'),
        ("image,class,bbox_xywh", "1 2 30 40"),
    ],
)
def test_names_people_use(head: str, numbers: str, tmp_path: Path) -> None:
    table = load_ground_truth(write(tmp_path / "gt.csv", f"{head}\na.jpg,cat,{numbers}\n"))
    assert content(table) == TRUTH[:1]
    assert table.sizes.tolist() == [[30, 40]]
    assert table.columns == {}


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_other_separators(separator: str, tmp_path: Path) -> None:
    lines = ["image,class,x1,y1,x2,y2", "a.jpg,cat,1,2,31,42", "a.jpg,dog,10.5,20.25,50,60"]
    text = "".join(line.replace(",", separator) + "\r\n" for line in lines)
    assert content(load_ground_truth(write(tmp_path / "gt.txt", "\ufeff" + text))) == TRUTH
    text = text.replace(".25", ",25").replace(".5", ",5")
    assert content(load_ground_truth(write(tmp_path / "gt.txt", text))) == TRUTH


def test_ids_are_numbers_only_where_all_are_written_as_numbers(tmp_path: Path) -> None:
    """The readers of pandas take 007, 7 and 7.0 for one number."""
    head = "image,class,x1,y1,x2,y2\n"
    for ids, expected in (
        ("12 7", [7, 12]),
        ("007 7", ["007", "7"]),
        ("7.0 7", ["7", "7.0"]),
        ("1 x", ["1", "x"]),
    ):
        text = head + "".join(f"{name},cat,1,2,3,4\n" for name in ids.split())
        assert load_ground_truth(write(tmp_path / "gt.csv", text)).images.ids.tolist() == expected


def test_numbers_are_read_to_the_last_bit(tmp_path: Path) -> None:
    numbers = np.random.default_rng(0).uniform(0, 1000, (200, 4))
    numbers[:, 2:] += numbers[:, :2]
    text = "image,class,x1,y1,x2,y2\n" + "".join(
        f"a,cat,{','.join(map(repr, row))}\n" for row in numbers.tolist()
    )
    assert load_ground_truth(write(tmp_path / "gt.csv", text)).boxes.tolist() == numbers.tolist()


def test_everything_else_a_row_may_say(tmp_path: Path) -> None:
    text = (
        "id,image_id,file_name,category_id,class,x1,y1,x2,y2,image_width,image_height,area,iscrowd,difficult,"
        "ignore,night,camera\n"
        "7,3,a.jpg,18,dog,0,0,10,20,100,80,55.5,1,false,,0.5,left\n"
        "9,4,b.jpg,17,cat,0,0,10,20,60,70,,0,True,0,2,\n"
    )
    table = load_ground_truth(write(tmp_path / "gt.csv", text))
    assert table.ids.tolist() == [7, 9]
    assert (table.images.ids.tolist(), table.images.file_names.tolist()) == ([3, 4], ["a.jpg", "b.jpg"])
    assert table.images.sizes.tolist() == [[100, 80], [60, 70]]
    assert (table.categories.ids.tolist(), table.categories.names.tolist()) == ([17, 18], ["cat", "dog"])
    assert table.area.tolist() == [55.5, 200]
    flags = (table.crowd.tolist(), table.difficult.tolist(), table.ignore.tolist())
    assert flags == ([True, False], [False, True], [False, False])
    assert {name: column.tolist() for name, column in table.columns.items()} == {
        "night": [0.5, 2],
        "camera": ["left", ""],
    }


def test_images_without_objects(tmp_path: Path) -> None:
    text = "filename,width,height,class,xmin,ymin,xmax,ymax\na.jpg,100,80,cat,1,2,31,42\nb.jpg,60,70,,,,,\n"
    table = load_ground_truth(write(tmp_path / "gt.csv", text))
    assert content(table) == TRUTH[:1]
    assert table.images.ids.tolist() == ["a.jpg", "b.jpg"]
    assert table.images.sizes.tolist() == [[100, 80], [60, 70]]


def test_widths_and_heights_beside_corners(tmp_path: Path) -> None:
    """They are the boxes' where they fit, else the images'."""
    head = "image,class,x1,y1,x2,y2,width,height\n"
    path = write(tmp_path / "gt.csv", head + "a,cat,1,2,31,42,30,40\na,cat,0,0,5,5,5,5\n")
    assert np.isnan(load_ground_truth(path).images.sizes).all()
    with pytest.raises(FileFormatError, match="an image must have one size in the columns width and height"):
        load_ground_truth(write(path, head + "a,cat,1,2,31,42,100,80\na,cat,0,0,5,5,5,5\n"))


def test_columns_of_open_images() -> None:
    names = [
        "ImageID",
        "Source",
        "LabelName",
        "Confidence",
        "XMin",
        "XMax",
        "YMin",
        "YMax",
        "IsOccluded",
        "IsGroupOf",
    ]
    parts = column_parts(names, place="")
    assert parts.box == ("XMin", "YMin", "XMax", "YMax")
    assert (parts.flags, parts.other) == ({"group": "IsGroupOf"}, ("Source", "IsOccluded"))


# ---------------------------------------------------------------- what has several readings


def records(tmp_path: Path, boxes: list[list[float]], *, size: str = "") -> Path:
    head = "image,class,bbox" + (",image_width,image_height" if size else "")
    lines = [f'{number % 2}.jpg,cat,"{box}"{size}' for number, box in enumerate(boxes)]
    return write(tmp_path / "gt.csv", "\n".join([head, *lines]))


def test_four_numbers_are_told_by_the_boxes_or_asked(tmp_path: Path) -> None:
    corners = [[60, 60, 90, 90], [10, 20, 95, 30]]
    with pytest.raises(
        InputError, match=r"valid as x1,y1,x2,y2 and as x,y,w,h from the corner .*use --gt-box-format"
    ):
        load_ground_truth(records(tmp_path, corners))
    table_read = load_ground_truth(records(tmp_path, corners), box_format="xywh")
    assert table_read.sizes.tolist() == [[90, 90], [95, 30]]
    with pytest.raises(InputError, match="valid as x1,y1,x2,y2"):
        load_ground_truth(records(tmp_path, [[10, 10, 20, 20]], size=",100,100"))
    known = load_ground_truth(records(tmp_path, corners, size=",100,100"))  # w,h would leave the image
    assert known.boxes.tolist() == corners
    sides = load_ground_truth(records(tmp_path, [[60, 60, 9, 95], [1, 2, 30, 40]]))
    assert sides.sizes.tolist() == [[9, 95], [30, 40]]  # 9 < 60, and a center at 1 would leave the image
    named = write(tmp_path / "x.csv", "image,class,x1,y1,x2,y2\na,b,1,2,3,4\n")
    assert load_ground_truth(named, box_format="xywh").boxes.tolist() == [[1, 2, 4, 6]]  # the user knows


def test_sizes_of_the_ground_truth_tell_what_detections_are(tmp_path: Path) -> None:
    gt = load_ground_truth(
        write(
            tmp_path / "gt.csv", "image,class,x1,y1,x2,y2,image_width,image_height\na,cat,1,2,3,4,100,100\n"
        )
    )
    path = write(tmp_path / "dt.csv", "image,class,x,y,w,h,score\na,cat,80,80,38,38,0.5\n")
    assert load_detections(path, gt).boxes.tolist() == [[61, 61, 99, 99]]


def test_names_of_coco_are_boxes_of_coco(tmp_path: Path) -> None:
    path = write(tmp_path / "gt.csv", 'image_id,category_id,bbox\n1,1,"[10, 10, 20, 20]"\n')
    assert load_ground_truth(path).boxes.tolist() == [[10, 10, 30, 30]]


def test_fractions(tmp_path: Path) -> None:
    path = write(tmp_path / "gt.csv", "image,class,x1,y1,x2,y2\na.jpg,cat,0.25,0,0.5,1\n")
    assert load_ground_truth(path, image_sizes={"a": (200, 100)}).boxes.tolist() == [[50, 0, 100, 100]]
    with pytest.warns(
        BoxscoreWarning, match="the image sizes are unknown, so boxes stay in fractions of the image size"
    ):
        table = load_ground_truth(path)
    assert (table.units, table.boxes.tolist()) == ("fractions", [[0.25, 0, 0.5, 1]])
    assert not are_fractions(np.array([[0, 0, 1, 1.0]]), str)
    assert not are_fractions(np.array([[0.5, 0.5, 0.25, 0.25], [0, 0, 2, 1]]), str)


# ---------------------------------------------------------------- forms of CSV


def test_keras_retinanet(tmp_path: Path) -> None:
    path = write(
        tmp_path / "gt.csv", "/d/a.jpg,1,2,31,42,cat\n/d/b.jpg,,,,,\n/d/a.jpg,10.5,20.25,50,60,dog\n"
    )
    table = load_ground_truth(path)
    assert detect_format(path) == ("csv", "a table without a header line")
    assert content(table) == [(f"/d/{image}", label, box) for image, label, box in TRUTH]
    assert table.images.ids.tolist() == ["/d/a.jpg", "/d/b.jpg"]
    with pytest.raises(FileFormatError, match="the first line of a table must name the columns"):
        load_ground_truth(write(path, "/d/a.jpg,1,2,31,42,cat,0.5\n"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a.jpg,cat,1,2,31,x\n", r"y2 must be a number. Got 'x' in line 3 of .*gt.csv"),
        ('a.jpg,"c\nat",1,2,31,42\na.jpg,cat,1,2,31,1_0\n', r"y2 must be a number. Got '1_0' in line 5 of"),
        ("a.jpg,cat,1,2,31\n", r"y2 must be a number where a row has a box. Got nothing in line 3 of"),
        ("a.jpg,cat,1,2,31,42,5\n", r"a row must have 6 cells.* Got 7 in line 3 of"),
        ("a.jpg,,1,2,31,42\n", r"class must name a class where a row has a box. Got nothing in line 3"),
        (",cat,1,2,31,42\n", r"image must name an image. Got nothing in line 3"),
        ("a.jpg,cat,1,2,inf,42\n", r"bbox must be finite. .* in line 3"),
        ("a.jpg,cat,nan,2,3,42\n", r"x1 must be a number. Got 'nan' in line 3"),
        ("a.jpg,cat,1,2,-31,42\n", r"boxes must have width >= 0. Got width -32.0 in line 3"),
        ('a.jpg,cat,1,2,31,"42\n', "a table must close its quotes"),
        ("a.jpg,c\0at,1,2,31,42\n", "a table must be UTF-8 text. Got a byte 0"),
    ],
)
def test_what_a_row_may_not_be(text: str, message: str, tmp_path: Path) -> None:
    path = write(tmp_path / "gt.csv", f"image,class,x1,y1,x2,y2\n\n{text}")
    with pytest.raises(InputError, match=message):
        load_ground_truth(path, format="csv")


@pytest.mark.parametrize(
    ("head", "message"),
    [
        ("image,class,x1,y1", "must have the columns of a box"),
        ("class,x1,y1,x2,y2", "must have a column of the image"),
        ("image,x1,y1,x2,y2", "must have a column class, label or category_id.*only one class"),
        ("image,class,label,x1,y1,x2,y2", "must have one column of class names. Got 'class' and 'label'"),
        ("image,class,x1,x1,y1,x2,y2", "a column must occur once"),
        ("image,class,x1,y1,x2,y2,x3,y3,x4,y4", "must have upright boxes"),
        ("ImageId,PredictionString", "must have a row per box"),
    ],
)
def test_what_a_head_line_may_not_be(head: str, message: str, tmp_path: Path) -> None:
    row = ",".join("1" for _ in head.split(","))
    with pytest.raises(InputError, match=message):
        load_ground_truth(write(tmp_path / "gt.csv", f"{head}\n{row}\n"))


def test_coordinates_too_large_beside_an_empty_area(tmp_path: Path) -> None:
    path = write(tmp_path / "gt.csv", "image,class,x1,y1,x2,y2,area\na,c,0,0,1e308,1e308,\na,c,0,0,1,1,1\n")
    with pytest.raises(InputError, match=r"bbox must be at most 1e\+100.* in line 2"):
        load_ground_truth(path)


def test_other_encodings(tmp_path: Path) -> None:
    text = "image,class,x1,y1,x2,y2\na.jpg,c\u00e4t,1,2,31,42\n"
    path = tmp_path / "gt.csv"
    for encoding in ("utf-16", "utf-16-le", "latin-1"):
        path.write_bytes(text.encode(encoding))
        with pytest.raises(FileFormatError, match="a table must be UTF-8"):
            load_ground_truth(path)
    path.write_bytes(text.encode("utf-8-sig"))
    assert load_ground_truth(path).categories.names.tolist() == ["c\u00e4t"]


def test_a_list_of_one_class_stands_for_a_column(tmp_path: Path) -> None:
    path = write(tmp_path / "gt.csv", "image,x1,y1,x2,y2\na.jpg,1,2,31,42\n")
    assert content(load_ground_truth(path, classes=["cat"])) == TRUTH[:1]


def test_class_numbers_by_a_list(tmp_path: Path) -> None:
    path = write(
        tmp_path / "gt.csv", "image,class_id,x1,y1,x2,y2\na.jpg,0,1,2,31,42\na.jpg,1,10.5,20.25,50,60\n"
    )
    assert content(load_ground_truth(path, classes=["cat", "dog"])) == TRUTH
    assert load_ground_truth(path).categories.ids.tolist() == [0, 1]


def test_nothing_else_need_be_said(tmp_path: Path, run: Run) -> None:
    write(tmp_path / "gt.csv", "filename,class,xmin,ymin,xmax,ymax\na.jpg,cat,1,2,31,42\n")
    write(tmp_path / "dt.csv", "image,label,left,top,width,height,conf\na,cat,1,2,30,40,0.9\n")
    files = ["--gt", str(tmp_path / "gt.csv"), "--dt", str(tmp_path / "dt.csv")]
    assert json.loads(run("evaluate", *files, "--output", "json").out)["metrics"]["AP"] == pytest.approx(1)


# ---------------------------------------------------------------- JSON lines and Parquet

BOXES: list[dict[str, Any]] = [
    {"image": "a.jpg", "label": "cat", "bbox": [1, 2, 31, 42], "score": 0.5},
    {"image": "b.jpg", "label": "dog", "bbox": [5, 6, 7, 8], "score": 0.25},
    {"image": "a.jpg", "label": "dog", "bbox": [10.5, 20.25, 50, 60], "score": 1},
]
LISTS: list[dict[str, Any]] = [
    {
        "image": "a.jpg",
        "boxes": [BOXES[0]["bbox"], BOXES[2]["bbox"]],
        "labels": ["cat", "dog"],
        "scores": [0.5, 1.0],
    },
    {"image": "c.jpg", "boxes": [], "labels": [], "scores": []},
    {"image": "b.jpg", "boxes": [[5, 6, 7, 8]], "labels": ["dog"], "scores": [0.25]},
]
OBJECTS: list[dict[str, Any]] = [
    {
        "image": "a.jpg",
        "objects": [
            {"bbox": box["bbox"], "label": box["label"], "score": box["score"]}
            for box in BOXES
            if box["image"] == "a.jpg"
        ],
    },
    {"image": "c.jpg", "objects": []},
    {"image": "b.jpg", "objects": [{"bbox": [5, 6, 7, 8], "label": "dog", "score": 0.25}]},
]
LAYOUTS = {"boxes": BOXES, "lists": LISTS, "objects": OBJECTS}


def save_records(path: Path, rows: list[dict[str, Any]]) -> Path:
    """Write records as JSON lines or Parquet, by the name."""
    if path.suffix == ".jsonl":
        return write(path, "".join(json.dumps(row) + "\n" for row in rows))
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("ending", [".jsonl", ".parquet"])
def test_three_layouts(layout: str, ending: str, tmp_path: Path) -> None:
    path = save_records(tmp_path / f"gt{ending}", LAYOUTS[layout])
    assert detect_format(path)[0] == ending[1:]
    table = load_ground_truth(path, box_format="xyxy")
    expected = [(row["image"], row["label"], row["bbox"]) for row in BOXES]
    assert sorted(content(table)) == sorted(expected)
    assert table.images.ids.tolist() == ["a.jpg", "b.jpg", *(["c.jpg"] if layout != "boxes" else [])]
    detections = load_detections(path, table, box_format="xyxy")
    scores = dict(zip(map(str, detections.boxes.tolist()), detections.scores.tolist(), strict=True))
    assert scores == {str([float(side) for side in row["bbox"]]): row["score"] for row in BOXES}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[1]", "a line must be a JSON object. Got .* in line 2 of"),
        ('{"image": "a.jpg"', "a line must be a JSON object"),
        (
            '{"image": "a.jpg", "label": "cat", "bbox": [1, 2, 3], "score": 1}',
            "bbox must be a list of four numbers",
        ),
        (
            '{"image": "a.jpg", "label": "cat", "bbox": [1, "2", 3, 4]}',
            "bbox must be a number. Got '2' in line 2",
        ),
        ('{"image": {}, "label": "cat", "bbox": [1, 2, 3, 4]}', "image must be a text or a whole number"),
        ('{"image": 1.5, "label": "cat", "bbox": [1, 2, 3, 4]}', "image must be a text or a whole number"),
        ("[" * 5000, "a line must be a JSON object"),
    ],
)
def test_what_a_record_may_not_be(line: str, message: str, tmp_path: Path) -> None:
    path = write(tmp_path / "gt.jsonl", json.dumps(BOXES[0]) + "\n" + line)
    with pytest.raises(InputError, match=message):
        load_ground_truth(path, box_format="xyxy")


def test_objects_that_are_not_objects(tmp_path: Path) -> None:
    path = save_records(tmp_path / "gt.jsonl", [{**OBJECTS[0], "objects": [3]}])
    with pytest.raises(
        FileFormatError, match=r"objects must be a list of objects\. Got a list with an integer in line 1"
    ):
        load_ground_truth(path, box_format="xyxy")


def test_lists_of_other_lengths(tmp_path: Path) -> None:
    for ending in (".jsonl", ".parquet"):
        path = save_records(tmp_path / f"gt{ending}", [{**LISTS[0], "labels": ["cat"]}])
        with pytest.raises(FileFormatError, match=r"labels must be as long as the boxes \(2\). Got 1 in "):
            load_ground_truth(path, box_format="xyxy")


def test_coco_on_one_line_is_no_json_lines(tmp_path: Path) -> None:
    record = {"image_id": 1, "category_id": 1, "bbox": [1, 2, 3, 4], "id": 1}
    whole = {"annotations": [record], "images": [{"id": 1}], "categories": [{"id": 1}]}
    assert detect_format(write(tmp_path / "gt.json", json.dumps(whole)))[0] == "coco"
    assert detect_format(write(tmp_path / "gt.json", json.dumps([record])))[0] == "coco"
    assert detect_format(write(tmp_path / "gt.json", json.dumps(record) + "\n"))[0] == "jsonl"


def test_hugging_face_class_names_and_pictures(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    for number, objects in enumerate(
        (
            [[{"category": 1, "bbox": [1.0, 2, 30, 40]}], []],
            [{"category": [1], "bbox": [[1.0, 2, 30, 40]]}, {"category": [], "bbox": []}],
        )
    ):
        images = [{"bytes": b"\xff\xd8", "path": "a.jpg"}, {"bytes": b"\xff\xd8", "path": "b.jpg"}]
        table = pa.table({"image": images, "objects": objects})
        features = {"objects": {"feature": {"category": {"names": ["dog", "cat"], "_type": "ClassLabel"}}}}
        metadata = {"huggingface": json.dumps({"info": {"features": features}})}
        folder = tmp_path / str(number)
        folder.mkdir()
        pq.write_table(table.replace_schema_metadata(metadata), folder / "train-00000-of-00001.parquet")
        truth = load_ground_truth(folder, box_format="xywh")
        assert content(truth) == TRUTH[:1]
        assert truth.images.ids.tolist() == ["a.jpg", "b.jpg"]
        assert truth.categories.names.tolist() == ["dog", "cat"]


def test_a_folder_of_part_files(tmp_path: Path) -> None:
    for number, row in enumerate(BOXES):
        save_records(tmp_path / f"part-{number}.parquet", [row])
    assert sorted(content(load_ground_truth(tmp_path, box_format="xyxy"))) == sorted(
        (row["image"], row["label"], row["bbox"]) for row in BOXES
    )
    save_records(tmp_path / "train-0.parquet", BOXES)
    with pytest.raises(InputError, match=r"a folder of Parquet files must be one split. Got part, train"):
        load_ground_truth(tmp_path, box_format="xyxy")
    assert len(load_ground_truth(tmp_path, box_format="xyxy", image_set="train")) == 3


def test_dictionaries_and_float32(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    names = pa.DictionaryArray.from_arrays(pa.array([1, 0]), pa.array(["dog", "cat"]))
    sides = {
        name: pa.array([value, 0.1], pa.float32()) for name, value in zip(("x1", "y1"), (1, 2), strict=True)
    }
    sides |= {
        name: pa.array([value, 9], pa.float32()) for name, value in zip(("x2", "y2"), (31, 42), strict=True)
    }
    pq.write_table(pa.table({"image": names, "class": names, **sides}), tmp_path / "gt.parquet")
    table = load_ground_truth(tmp_path / "gt.parquet")
    assert content(table)[0] == ("cat", "cat", [1, 2, 31, 42])
    assert table.boxes[1, 0] == float(np.float32(0.1))


# ---------------------------------------------------------------- writing


@pytest.mark.parametrize("name", ["csv", "parquet"])
def test_what_is_written_is_read_again(name: str, tmp_path: Path) -> None:
    if name == "parquet":
        pytest.importorskip("pyarrow")
    generator = np.random.default_rng(5)
    boxes = generator.uniform(0, 100, (30, 4))
    truth = boxscore.GroundTruth.from_arrays(
        generator.integers(1, 9, 30),
        generator.choice([3, 7], 30),
        boxes,
        box_format="xywh",
        crowd=generator.random(30) < 0.2,
        difficult=generator.random(30) < 0.2,
        area=generator.uniform(1, 100, 30),
        images=range(1, 12),
        categories={3: "=a,b", 7: 'say "x"', **({9: "never"} if name == "parquet" else {})},
        columns={"night": generator.random(30), "label": ["left", "-right"] * 15},
    )
    found = boxscore.Detections.from_arrays(
        truth.images.ids[truth.image],
        truth.categories.ids[truth.category],
        boxes + 1,
        generator.random(30),
        box_format="cxcywh",
        images=truth.images,
        categories=truth.categories,
    )
    format_named(name).save(truth, tmp_path / f"gt.{name}")
    format_named(name).save(found, tmp_path / f"dt.{name}")
    again = load_ground_truth(tmp_path / f"gt.{name}")
    assert again.images.same_as(truth.images)
    assert again.categories.names.tolist() == truth.categories.names.tolist()
    pd.testing.assert_frame_equal(again.to_pandas(), truth.to_pandas(), check_dtype=False)
    detections = load_detections(tmp_path / f"dt.{name}", again)
    pd.testing.assert_frame_equal(detections.to_pandas(), found.to_pandas(), check_dtype=False)


def test_results_are_written_again(tmp_path: Path) -> None:
    path = write(
        tmp_path / "dt.csv",
        "image,label,left,top,width,height,conf,night\na,c,0,0,9,9,.5,1\na,c,0,0,9,8,.9,0\n",
    )
    assert (
        main(["nms", "--dt", str(path), "--output", str(tmp_path / "out.csv"), "--iou-threshold", "0.5"]) == 0
    )
    assert (tmp_path / "out.csv").read_text() == (
        "image_id,category_id,class,x1,y1,x2,y2,w,h,score,night\na,c,c,0.0,0.0,9.0,8.0,9.0,8.0,0.9,0\n"
    )


# ---------------------------------------------------------------- DataFrames


def test_data_frames_of_other_libraries() -> None:
    pa = pytest.importorskip("pyarrow")

    class Other:
        """What Polars, DuckDB and others give."""

        def __init__(self, frame: pd.DataFrame) -> None:
            self.table = pa.Table.from_pandas(frame, preserve_index=False)

        def __arrow_c_stream__(self, schema: object = None) -> object:
            return self.table.__arrow_c_stream__(schema)

    frame = pd.DataFrame(
        {
            "filename": ["a.jpg", "a.jpg"],
            "label": ["cat", "dog"],
            "xmin": [1, 10.5],
            "ymin": [2, 20.25],
            "xmax": [31, 50.0],
            "ymax": [42, 60.0],
            "conf": [0.5, 0.25],
            "night": [True, False],
        }
    )
    for side in (frame, Other(frame), pa.Table.from_pandas(frame)):
        table = boxscore.Detections.from_pandas(side)
        assert content(table) == TRUTH
        assert table.scores.tolist() == [0.5, 0.25]
        assert list(table.columns) == ["night"]
    boxes = frame.assign(bbox=[[1, 2, 30, 40], [10.5, 20.25, 39.5, 39.75]]).drop(
        columns=["xmin", "ymin", "xmax", "ymax"]
    )
    assert content(boxscore.GroundTruth.from_pandas(Other(boxes), box_format="xywh")) == TRUTH
    with pytest.raises(InputError, match=r"the numbers of 'bbox' must have one meaning.*use box_format="):
        boxscore.GroundTruth.from_pandas(boxes)
    with pytest.raises(InputError, match="must be a DataFrame of pandas or Polars, or a table of Arrow"):
        boxscore.GroundTruth.from_pandas({"x1": [1]})
    table_read = boxscore.GroundTruth.from_pandas(frame, box_format="xywh")
    assert table_read.boxes.tolist() == [[1, 2, 32, 44], [10.5, 20.25, 60.5, 80.25]]


def test_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "gt.parquet"
    path.write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(boxscore.errors.MissingDependencyError, match=r"pip install 'boxscore\[tables\]'"):
        load_ground_truth(path)


# ---------------------------------------------------------------- real data


def test_a_table_whose_name_ends_otherwise(tmp_path: Path) -> None:
    path = write(tmp_path / "gt.tar.gz", "image,class,xmin,ymin,xmax,ymax\na.jpg,cat,10,20,30,40\n")
    assert len(load_ground_truth(path, format="csv")) == 1


def padilla(tmp_path: Path, ids: Mapping[str, Any]) -> Path:
    """Write the detections of Padilla's 100 images as CSV."""
    folder = real("formats", "padilla100_dt_abs_xyx2y2", "data/database/dets/abs_xyx2y2")
    yolo = real("formats", "padilla100_gt_yolo_format")
    names = sorted(next(yolo.rglob("obj.names")).read_text().split())
    lines = ["image,label,confidence,xmin,ymin,xmax,ymax"]
    for path in sorted(folder.glob("2*.txt")):
        for line in path.read_text().splitlines():
            label, score, *box = line.split()
            lines.append(",".join([str(ids[path.stem]), names[int(label)], score, *box]))
    return write(tmp_path / "dt.csv", "\n".join(lines))


def test_padilla(tmp_path: Path) -> None:
    coco = next(real("formats", "padilla100_gt_coco_format_v1").rglob("*.json"))
    images = json.loads(coco.read_text())["images"]
    sizes = {image["file_name"]: (image["width"], image["height"]) for image in images}
    by_name = padilla(tmp_path, {Path(name).stem: Path(name).stem for name in sizes})
    open_images = next(real("formats", "padilla100_gt_openimages_format").rglob("*.csv"))
    truth = load_ground_truth(open_images, image_sizes=sizes)
    metrics = boxscore.evaluate(truth, load_detections(by_name, truth)).metrics
    assert (round(metrics["AP"], 3), round(metrics["AP50"], 4)) == (0.347, 0.61)
    for name, expected in (("APs", 0.0752), ("APm", 0.3395), ("APl", 0.4979)):
        assert round(metrics[name], 4) == expected
    hugging = load_ground_truth(real("formats", "hf_objects_parquet"))
    by_id = padilla(tmp_path, {Path(image["file_name"]).stem: image["id"] for image in images})
    metrics = boxscore.evaluate(hugging, load_detections(by_id, hugging)).metrics
    figures = [round(metrics[name], 4) for name in ("AP", "AP50", "AP75", "APs", "APm", "APl")]
    assert figures == [0.3470, 0.6100, 0.3537, 0.0752, 0.3395, 0.4979]


def test_small_samples() -> None:
    vott = real("formats", "datumaro_vott_csv_dataset", "tests/assets/vott_csv_dataset/dataset")
    assert content(load_ground_truth(vott / "test-export.csv")) == [
        ("img0001.jpg", "helmet", [10, 5, 20, 7]),
        ("img0002.jpg", "person", [11.5, 12, 21.7, 32.5]),
    ]
    kaggle = real("formats", "datumaro_kaggle_dataset", "tests/assets/kaggle_dataset/image_csv_det")
    first = content(load_ground_truth(kaggle / "ann.csv"))
    assert content(load_ground_truth(kaggle / "ann2.csv")) == first
    with pytest.raises(InputError, match="the numbers of 'bbox' must have one meaning"):
        load_ground_truth(kaggle / "ann3.csv")
    assert content(load_ground_truth(kaggle / "ann3.csv", box_format="xyxy")) == first
    for path in real("formats", "datumaro_tabular_dataset").rglob("*.csv"):
        with pytest.raises(InputError, match="and the columns of a box"):
            load_ground_truth(path)


def test_no_other_sample_is_taken_for_a_table() -> None:
    samples = [
        path
        for path in (*real("formats").rglob("*"), *(Path(__file__).parents[2] / "datasets").rglob("*"))
        if path.is_dir() or path.suffix in (".json", ".txt", ".yaml", ".names", ".xml", ".npz", ".data", "")
    ]
    taken = {
        str(path)
        for path in samples
        for name in ("csv", "jsonl", "parquet")
        if path.name != "hf_objects_parquet" and format_named(name).detect(Sniffer(path)) is not None
    }
    assert taken == set()


@given(
    values=st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(0, 3), max_size=40),
    repeats=st.lists(st.integers(1, 5), min_size=40, max_size=40),
    kind=st.sampled_from(["int64", "int32", "uint64", "uint8"]),
)
@settings(max_examples=examples(60))
def test_integers_are_each_once_in_the_order_of_their_rows(
    values: list[int], repeats: list[int], kind: str
) -> None:
    pa = pytest.importorskip("pyarrow")
    from boxscore.formats.parquet import ArrowTable

    column = np.repeat(np.array(values, dtype=np.int64), repeats[: len(values)]).astype(kind)
    boxes = {name: np.zeros(len(column)) for name in ("x1", "y1", "x2", "y2")}
    table = ArrowTable("a table", pa.table({"image_id": column, "class": column.astype(str), **boxes}))
    distinct = table.distinct("image_id")
    assert distinct.values == list(dict.fromkeys(column.tolist()))
    assert all(type(value) is int for value in distinct.values)
    assert [distinct.values[at] for at in distinct.positions.tolist()] == column.tolist()


@pytest.mark.parametrize(
    ("column", "names", "label", "scored"),
    [
        ("class", {1: "2", 2: "1"}, "1", None),
        ("label", {1: "2", 2: "1"}, "1", None),
        ("class_name", {1: "2", 2: "1"}, "1", "1 (2)"),
        ("LabelName", {1: "2", 2: "1"}, "1", "1 (2)"),
        ("category_id", {1: "2", 2: "1"}, "1", "2 (1)"),
        ("class", {1: "-1", 2: "7"}, "7", "7"),
        ("class", {1: "cat", 2: "7"}, "1", "cat"),
        ("class", {1: "cat", 2: "cat"}, "cat", None),
        ("class", {1: "cat", 2: "cat"}, "cat (2)", "cat (2)"),
    ],
)
def test_a_class_that_can_be_two_is_refused(
    column: str, names: dict[int, str], label: str, scored: str | None, tmp_path: Path
) -> None:
    truth = boxscore.GroundTruth.from_arrays(
        ["a"] * 2, [1, 2], [[0, 0, 9, 9], [20, 0, 29, 9]], categories=names
    )
    path = write(tmp_path / "dt.csv", f"image,{column},score,x1,y1,x2,y2\na,{label},.9,0,0,9,9\n")
    if scored is None:
        several = ", ".join(map(repr, truth.categories.labels))
        message = f"stand for one class. Got {label!r}, the name or id of 2"
        with pytest.raises(InputError, match=f"{re.escape(message)}.*{re.escape(f'; give {several}')}"):
            load_detections(path, truth)
    else:
        (row,) = load_detections(path, truth).category
        assert truth.categories.labels[row] == scored


@pytest.mark.parametrize("names", [{0: "-1", 1: "7"}, {0: "0", 1: "-0"}, {0: "1", 1: "0"}, {1: "2", 2: "3"}])
def test_names_that_are_numbers_come_back_from_open_images(names: dict[int, str], tmp_path: Path) -> None:
    boxes = [[0, 0, 9, 9], [20, 0, 29, 9]]
    images = boxscore.data.vocabulary.Images.build(["a"], sizes=[[100, 100]])
    truth = boxscore.GroundTruth.from_arrays(["a"] * 2, list(names), boxes, categories=names, images=images)
    detections = boxscore.Detections.from_arrays(
        ["a"] * 2, list(names), boxes, [0.9, 0.8], categories=names, images=images
    )
    boxscore.save_as(detections, tmp_path / "dt.csv", format="openimages")
    back = load_detections(tmp_path / "dt.csv", truth)
    assert back.category.tolist() == [0, 1]


def test_open_images_has_no_place_for_two_classes_of_one_name(tmp_path: Path) -> None:
    truth = boxscore.GroundTruth.from_arrays(
        ["a"] * 2,
        [1, 2],
        [[0, 0, 9, 9], [20, 0, 29, 9]],
        categories={1: "cat", 2: "cat"},
        images=boxscore.data.vocabulary.Images.build(["a"], sizes=[[100, 100]]),
    )
    with pytest.raises(InputError, match="class names must differ where a format knows classes by name"):
        boxscore.save_as(truth, tmp_path / "gt.csv", format="openimages", lossy=True)


@pytest.mark.parametrize("rows", [0, 1])
def test_parquet_files_of_two_layouts_are_refused(tmp_path: Path, rows: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    flat = {
        "image_id": [1],
        "class": ["a"],
        "score": [0.5],
        "x1": [0.0],
        "y1": [0.0],
        "x2": [9.0],
        "y2": [9.0],
    }
    objects = [{"bbox": [[0.0, 0, 9, 9]], "class": ["a"], "score": [0.5]}]
    pq.write_table(pa.table(flat).slice(0, rows), tmp_path / "part-0.parquet")
    pq.write_table(pa.table({"image_id": [1], "objects": objects}), tmp_path / "part-1.parquet")
    message = (
        "part files must have one layout. Got lists of objects in 1 of 2, and boxes in columns in the others"
    )
    truth = boxscore.GroundTruth.from_arrays([1], ["a"], [[0, 0, 9, 9]])
    with pytest.raises(FileFormatError, match=message):
        load_detections(tmp_path, truth)
    with pytest.raises(FileFormatError, match=message):
        boxscore.scan(truth, tmp_path)
