"""JSON of annotation tools: which image, which class, which split, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore import Detections, GroundTruth, evaluate
from boxscore.cli import main
from boxscore.errors import BoxscoreWarning, FileFormatError, InputError
from boxscore.formats import detect_format, load_detections, load_ground_truth
from support.annotations import BOXES, write

CAT, DOG = (box for _, box in BOXES)
SIZES = {"a.jpg": (200, 100), "b.jpg": (300, 200), "c.jpg": (60, 80)}
OBJECTS = [
    ("a.jpg", "cat", [10.0, 20.0, 100.0, 50.0]),
    ("a.jpg", "dog", [30.5, 40.0, 20.0, 20.0]),
    ("b.jpg", "dog", [5.0, 8.0, 90.0, 120.0]),
    ("c.jpg", "cat", [4.0, 4.0, 40.0, 60.0]),
]
FOUND = [
    ("a.jpg", "cat", [12.0, 20.0, 98.0, 48.0], 0.9),
    ("a.jpg", "cat", [100.0, 20.0, 60.0, 48.0], 0.8),
    ("b.jpg", "dog", [5.0, 18.0, 90.0, 110.0], 0.7),
    ("c.jpg", "dog", [4.0, 4.0, 40.0, 50.0], 0.95),
    ("c.jpg", "cat", [6.0, 4.0, 36.0, 60.0], 0.3),
]
"""Image, class, left, top, width and height, and score."""


def dump(path: Path, content: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def lines(path: Path, records: list[Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records), encoding="utf-8")
    return path


@pytest.fixture
def twin(tmp_path: Path) -> Path:
    """The same objects as COCO; the classes in the order of their names."""
    images = [
        {"id": n, "file_name": name, "width": w, "height": h}
        for n, (name, (w, h)) in enumerate(SIZES.items(), start=1)
    ]
    number = {image["file_name"]: image["id"] for image in images}
    annotations = [
        {"id": n, "image_id": number[image], "category_id": 1 + (label == "dog"), "bbox": box}
        | {"area": box[2] * box[3], "iscrowd": 0}
        for n, (image, label, box) in enumerate(OBJECTS, start=1)
    ]
    categories = [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}]
    content = {"images": images, "annotations": annotations, "categories": categories}
    return dump(tmp_path / "twin.json", content)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """The detections as COCO results with names."""
    found = [
        {"image_id": image, "category_id": label, "bbox": box, "score": score}
        for image, label, box, score in FOUND
    ]
    return dump(tmp_path / "results.json", found)


def metrics(truth: Path, found: Path, **options: Any) -> dict[str, float]:
    table = load_ground_truth(truth, **options)
    return dict(evaluate(table, load_detections(found, table)).metrics)


def objects(table: GroundTruth | Detections) -> list[tuple[str, str, list[float]]]:
    return [
        (str(table.images.ids[image]), str(table.categories.names[label]), box.round(9).tolist())
        for image, label, box in zip(table.image, table.category, table.boxes, strict=True)
    ]


# ---------------------------------------------------------------- the numbers of the twin


def ndjson(path: Path, *, splits: Any = ("val",) * 3, names: Any = None, **head: Any) -> Path:
    records: list[Any] = [
        {"type": "dataset", "task": "detect", "class_names": {"0": "cat", "1": "dog"}} | head
    ]
    for (image, (width, height)), split in zip(SIZES.items(), splits, strict=True):
        boxes = [
            [int(label == "dog"), (x + w / 2) / width, (y + h / 2) / height, w / width, h / height]
            for name, label, (x, y, w, h) in OBJECTS
            if name == image
        ]
        file = image if names is None else names[image]
        record = {"type": "image", "file": file, "width": width, "height": height, "split": split}
        records.append(record | {"annotations": {"boxes": boxes}})
    return lines(path, records)


def labelbox(path: Path) -> Path:
    records = []
    for n, (image, (width, height)) in enumerate(SIZES.items()):
        own = [
            {"name": label, "bounding_box": dict(zip(("left", "top", "width", "height"), box, strict=True))}
            for name, label, box in OBJECTS
            if name == image
        ]
        row = {"id": f"r{n}", "external_id": image, "global_key": f"key-{n}"}
        project = {"labels": [{"annotations": {"objects": own}}]}
        records.append(
            {
                "data_row": row,
                "media_attributes": {"width": width, "height": height},
                "projects": {"p": project},
            }
        )
    return lines(path, records)


def metadata(path: Path, **more: Any) -> Path:
    records = []
    for image, (width, height) in SIZES.items():
        own = [(label, box) for name, label, box in OBJECTS if name == image]
        held = {"bbox": [box for _, box in own], "category": [label for label, _ in own]}
        records.append({"file_name": image, "width": width, "height": height, "objects": held} | more)
    return lines(path, records)


@pytest.mark.parametrize("make", [ndjson, labelbox, metadata])
def test_the_numbers_are_those_of_coco(make: Any, twin: Path, results: Path, tmp_path: Path) -> None:
    options = {"box_format": "xywh"} if make is metadata else {}
    assert metrics(make(tmp_path / "metadata.jsonl"), results, **options) == metrics(twin, results)


# ---------------------------------------------------------------- Ultralytics NDJSON


def test_only_the_split_is_read(tmp_path: Path) -> None:
    path = ndjson(tmp_path / "a.ndjson", splits=("train", "val", "val"))
    with pytest.warns(BoxscoreWarning, match=r"reading the split val; others: train \(1\)"):
        table = load_ground_truth(path)
    assert table.images.ids.tolist() == ["b", "c"]
    assert load_ground_truth(path, image_set="validation").images.ids.tolist() == ["b", "c"]
    assert load_ground_truth(path, image_set="train").images.ids.tolist() == ["a"]
    with pytest.raises(InputError, match=r"Got 'tset' .*known: train, val"):
        load_ground_truth(path, image_set="tset")


def test_without_a_split_val_it_has_to_be_given(tmp_path: Path) -> None:
    for splits in (("train", "train", "train"), ("train", "test", "test")):
        path = ndjson(tmp_path / "a.ndjson", splits=splits)
        known = ", ".join(dict.fromkeys(splits))
        with pytest.raises(InputError, match=f"image_set must be given .*; choose from {known}"):
            load_ground_truth(path)


def lined(path: Path, names: list[str | int]) -> Path:
    """Write the detections under other names of the images."""
    name = dict(zip(SIZES, names, strict=True))
    found = [
        {"image_id": n, "category_id": label, "bbox": box, "score": score} | {"file_name": name[image]}
        for n, (image, label, box, score) in enumerate(FOUND, start=5)
    ]
    return dump(path, found)


@pytest.mark.parametrize("names", [["2.jpg", "3.jpg", "4.jpg"], [f"{'0a' * 16}_{n}.png" for n in (2, 3, 4)]])
def test_images_are_found_by_their_line(names: Any, twin: Path, results: Path, tmp_path: Path) -> None:
    """The first image of the file is of another split, but counts."""
    path = ndjson(tmp_path / "a.ndjson")
    head, first, *rest = path.read_text(encoding="utf-8").splitlines()
    other = json.dumps({"type": "image", "file": "t.jpg", "split": "train"})
    path.write_text("\n".join([head, other, "", first, *rest]), encoding="utf-8")
    table = load_ground_truth(path, image_set="val")
    assert table.images.columns["ndjson_line"].tolist() == [2, 3, 4]
    with pytest.warns(
        BoxscoreWarning, match=f"the number of their line .*: '{names[-1]}' is 'c.jpg'|: '{names[0]}'"
    ):
        found = load_detections(lined(tmp_path / "found.json", names), table)
    assert dict(evaluate(table, found).metrics) == metrics(twin, results)


@pytest.mark.parametrize(
    "names",
    [
        ["1.jpg", "2.jpg", "4.jpg"],  # there is no fourth line
        ["1.jpg", "b.jpg", "3.jpg"],  # one is a name
        ["1.jpg", "01.jpg", "3.jpg"],  # another spelling
    ],
)
def test_a_line_number_needs_proof(names: Any, tmp_path: Path) -> None:
    table = load_ground_truth(ndjson(tmp_path / "a.ndjson"))
    with pytest.raises(InputError, match="must be in the ground truth"):
        load_detections(lined(tmp_path / "found.json", names), table)


def test_names_may_be_numbers_of_other_lines(tmp_path: Path) -> None:
    """It is not known which of the two the detections have."""
    names = dict(zip(SIZES, ("2.jpg", "3.jpg", "1.jpg"), strict=True))
    with pytest.warns(BoxscoreWarning, match="named by numbers, which are the numbers of other lines"):
        load_ground_truth(ndjson(tmp_path / "a.ndjson", names=names))
    for kept in (("1.jpg", "2.jpg", "3.jpg"), ("001.jpg", "002.jpg", "000.jpg"), ("7.jpg", "8.jpg", "1.jpg")):
        load_ground_truth(ndjson(tmp_path / "a.ndjson", names=dict(zip(SIZES, kept, strict=True))))


def test_ids_are_no_line_numbers(tmp_path: Path) -> None:
    """Results of COCO have ids, which may overlap the numbers of lines."""
    table = load_ground_truth(ndjson(tmp_path / "a.ndjson"))
    found = [{"image_id": 1, "category_id": "cat", "bbox": [1, 2, 3, 4], "score": 0.5}]
    with pytest.raises(InputError, match="Got 1 in detection 0"):
        load_detections(dump(tmp_path / "found.json", found), table)


@pytest.mark.parametrize(
    ("shape", "numbers"),
    [
        ("segments", [0, 0.1, 0.2, 0.5, 0.2, 0.5, 0.7]),
        ("obb", [0, 0.1, 0.2, 0.5, 0.2, 0.5, 0.7, 0.1, 0.7]),
        ("pose", [0, 0.3, 0.45, 0.5, 0.5, 0.2, 0.3, 2, 0.4, 0.5, 1]),
    ],
)
def test_labels_are_those_of_yolo(shape: str, numbers: list[float], tmp_path: Path) -> None:
    image = {"type": "image", "file": "a.jpg", "width": 200, "height": 100, "split": "val"}
    head = {"type": "dataset", "task": shape, "class_names": {"0": "cat"}, "kpt_shape": [2, 3]}
    path = lines(tmp_path / "a.ndjson", [head, image | {"annotations": {shape: [numbers]}}])
    labels = tmp_path / "yolo" / "labels" / "a.txt"
    labels.parent.mkdir(parents=True)
    labels.write_text(" ".join(map(str, numbers)))
    shapes = "kpt_shape: [2, 3]\n" if shape == "pose" else ""
    (tmp_path / "yolo" / "data.yaml").write_text(f"path: .\nval: images\nnames: [cat]\n{shapes}")
    (tmp_path / "yolo" / "images").mkdir()
    first, second = (
        load_ground_truth(path),
        load_ground_truth(tmp_path / "yolo", image_sizes={"a": (200, 100)}),
    )
    assert objects(first) == objects(second)
    assert first.area.tolist() == second.area.tolist()
    for column in ("masks", "keypoints", "rotated"):
        mine, theirs = getattr(first, column), getattr(second, column)
        assert (mine is None) == (theirs is None)
        if column != "masks" and mine is not None:
            assert np.array_equal(mine, theirs, equal_nan=True)


@pytest.mark.parametrize(
    ("head", "annotations", "message"),
    [
        ({}, {"boxes": [[2, 0.5, 0.5, 0.5, 0.5]]}, r"from 0 to 1, .*line 2 of"),
        ({"class_names": None}, {"boxes": [[0, 0.5, 0.5, 0.5, 0.5]]}, "class_names must name the classes"),
        ({"class_names": {"1": "cat"}}, {"boxes": [[0, 0.5, 0.5, 0.5, 0.5]]}, "be numbered 0, 1, 2"),
        ({}, {"boxes": [[0, 50, 50, 20, 20]]}, r"must be fractions of the image size. Got 50 in line 2 of"),
        ({}, {"boxes": [[0, "0.5", 0.5, 0.5, 0.5]]}, "a label must be a list of numbers"),
        ({}, {"boxes": [[0, 0.5, 0.5, 0.5]]}, r"a line of labels must be .*line 2 of"),
        ({}, {"boxes": [[0, 0.5, 0.5, 0.5, 0.5]], "obb": [[0]]}, "annotations must be of one kind"),
        ({}, {"classification": [0]}, "Got 'classification' in line 2 .*evaluates detection"),
        ({}, {"depth": "x.png"}, "Got 'depth'"),
    ],
)
def test_labels_that_are_refused(head: Any, annotations: Any, message: str, tmp_path: Path) -> None:
    first = {"type": "dataset", "class_names": {"0": "cat", "1": "dog"}} | head
    image = {"type": "image", "file": "a.jpg", "width": 20, "height": 10, "split": "val"}
    path = lines(tmp_path / "a.ndjson", [first, image | {"annotations": annotations}])
    with pytest.raises(InputError, match=message):
        load_ground_truth(path)


def test_segments_of_four_points_are_no_rotated_boxes(tmp_path: Path) -> None:
    head = {"type": "dataset", "class_names": {"0": "cat"}}
    image = {"type": "image", "file": "a.jpg", "width": 200, "height": 100, "split": "val"}
    label = [0, 0.1, 0.2, 0.5, 0.2, 0.5, 0.7, 0.1, 0.7]
    for shape in ("segments", "obb"):
        path = lines(tmp_path / f"{shape}.ndjson", [head, image | {"annotations": {shape: [label]}}])
        table = load_ground_truth(path)
        assert (table.rotated is not None) == (shape == "obb")
        assert objects(table) == [("a", "cat", [20, 20, 100, 70])]
        assert table.masks is not None
        assert table.area.round(6).tolist() == [4000]


def test_without_sizes_boxes_stay_fractions(tmp_path: Path) -> None:
    head = {"type": "dataset", "class_names": {"0": "cat"}}
    image = {"type": "image", "file": "a.jpg", "split": "val"}
    path = lines(tmp_path / "a.ndjson", [head, image | {"annotations": {"boxes": [[0, 0.5, 0.5, 0.5, 0.5]]}}])
    with pytest.warns(BoxscoreWarning, match="the image sizes are unknown"):
        assert load_ground_truth(path).units == "fractions"
    sized = load_ground_truth(path, image_sizes={"a.jpg": (200, 100)})
    assert sized.boxes.tolist() == [[50, 25, 150, 75]]
    named = load_ground_truth(
        lines(path, [{"type": "dataset"}, image | {"annotations": {"boxes": [[0, 0.5, 0.5, 0.5, 0.5]]}}]),
        classes=["cow"],
        image_sizes={"a.jpg": (200, 100)},
    )
    assert objects(named) == [("a", "cow", [50, 25, 150, 75])]


# ---------------------------------------------------------------- Labelbox


def upload(path: Path, key: str, names: list[str]) -> Path:
    name = dict(zip(SIZES, names, strict=True))
    records = [
        {"uuid": str(n), "dataRow": {key: name[image]}, "name": label, "confidence": score}
        | {"bbox": dict(zip(("left", "top", "width", "height"), box, strict=True))}
        for n, (image, label, box, score) in enumerate(FOUND)
    ]
    return lines(path, records)


@pytest.mark.parametrize(
    ("key", "names", "by"),
    [
        ("globalKey", [*SIZES], None),
        ("globalKey", ["key-0", "key-1", "key-2"], "global key of Labelbox: 'key-0' is 'a.jpg'"),
        ("id", ["r0", "r1", "r2"], "data row of Labelbox: 'r0' is 'a.jpg'"),
    ],
)
def test_predictions_are_found_by_any_name(
    key: str, names: list[str], by: str | None, twin: Path, results: Path, tmp_path: Path
) -> None:
    table = load_ground_truth(labelbox(tmp_path / "export.ndjson"))
    path = upload(tmp_path / "upload.ndjson", key, names)
    if by is None:
        found = load_detections(path, table)
    else:
        with pytest.warns(BoxscoreWarning, match=by):
            found = load_detections(path, table)
    assert dict(evaluate(table, found).metrics) == metrics(twin, results)


@pytest.mark.parametrize("make", [ndjson, labelbox])
def test_other_names_of_images_do_not_count_as_content(
    make: Any, twin: Path, results: Path, tmp_path: Path
) -> None:
    output = tmp_path / "out.json"
    assert main(["convert", str(make(tmp_path / "a.ndjson")), "--output", str(output)]) == 0
    assert metrics(output, results) == metrics(twin, results)


def exported(label: Any, *more: Any, **row: Any) -> dict[str, Any]:
    labels = [label, *more] if label is not None else []
    return {"data_row": {"id": "r", "external_id": "a.jpg"} | row, "projects": {"p": {"labels": labels}}}


TASK = {"task_id": "t", "status": "completed", "params": {"attachment": "https://x/a.jpg?b=c"}}


def label_of(*items: Any, **more: Any) -> dict[str, Any]:
    return {"annotations": {"objects": [*items], **more}}


BOX = {"name": "cat", "bounding_box": {"left": 10, "top": 20, "width": 100, "height": 50}}


def test_an_image_without_a_label_is_left_out(tmp_path: Path) -> None:
    skipped = label_of(BOX) | {"performance_details": {"skipped": True}}
    rows = [
        exported(label_of(BOX)),
        exported(None, external_id="b.jpg"),
        exported(skipped, external_id="c.jpg"),
        exported(label_of(), external_id="d.jpg"),
    ]
    with pytest.warns(BoxscoreWarning, match="left out 2 images without a label, which may"):
        table = load_ground_truth(lines(tmp_path / "a.ndjson", rows))
    assert table.images.ids.tolist() == ["a", "d"]


@pytest.mark.parametrize("record", [exported(None), {**TASK, "response": None}])
def test_nothing_is_left(record: Any, tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match=r"have images with annotations\. Got only 1 image without a"):
        load_ground_truth(dump(tmp_path / "a.json", [record]))


def test_the_first_of_several_labels_counts(tmp_path: Path) -> None:
    other = label_of({**BOX, "name": "dog"})
    path = dump(tmp_path / "a.json", [exported(label_of(BOX), other)])
    with pytest.warns(BoxscoreWarning, match="1 image has several labels; the first of each counts"):
        assert objects(load_ground_truth(path)) == [("a", "cat", CAT)]


def test_an_export_may_be_one_object(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(f"\n{json.dumps(exported(label_of(BOX)), indent=2)}\n", encoding="utf-8")
    assert objects(load_ground_truth(path)) == [("a", "cat", CAT)]


def test_masks_and_points_of_labelbox_are_left_out(tmp_path: Path) -> None:
    mask = {"name": "cat", "annotation_kind": "ImageSegmentationMask", "mask": {"url": "https://x"}}
    corners = [{"x": 0, "y": 0}, {"x": 10, "y": 0}, {"x": 0, "y": 20}]
    polygon = {"name": "dog", "annotation_kind": "ImagePolygon", "polygon": corners}
    path = lines(tmp_path / "a.ndjson", [exported(label_of(BOX, mask, polygon))])
    with pytest.warns(BoxscoreWarning, match="1 SegmentationMask"):
        table = load_ground_truth(path)
    assert objects(table) == [("a", "cat", CAT), ("a", "dog", [0, 0, 10, 20])]
    assert table.area.tolist() == [5000, 100]
    with pytest.raises(FileFormatError, match="Got only 1 SegmentationMask"):
        load_ground_truth(lines(path, [exported(label_of(mask))]))


@pytest.mark.parametrize(
    ("row", "name"),
    [
        ({"external_id": None, "row_data": "https://x/y%20z/k%20l.jpg?Signature=a/b"}, "k l"),
        ({"external_id": None, "row_data": "gs://x/frame#11.jpg"}, "frame#11"),
        ({"external_id": None, "row_data": None, "global_key": "g 1"}, "g 1"),
    ],
)
def test_the_name_of_an_image_of_labelbox(row: Any, name: str, tmp_path: Path) -> None:
    table = load_ground_truth(lines(tmp_path / "a.ndjson", [exported(label_of(BOX), **row)]))
    assert table.images.ids.tolist() == [name]


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (
            exported(label_of(BOX)) | {"projects": {n: {"labels": [label_of(BOX)]} for n in "pq"}},
            "must be labeled in one project. Got 'p', 'q' in line 1 of",
        ),
        (exported(label_of(frames={"1": {}})), "a single image. Got a video in line 1"),
        (exported(label_of(BOX), external_id=None), "an image must have a name"),
        (
            exported(label_of({**BOX, "name": None})),
            "an object must have a name. Got none in object 0, line 1",
        ),
        (exported(label_of({**BOX, "page_number": 1})), "be on an image. Got a page in object 0, line 1"),
        (exported(label_of(classifications=[{"name": "day"}])), "have boxes or regions. Got labels of whole"),
        ({"ID": "1", "Labeled Data": "a.mp4", "Label": [{"frameNumber": 1}]}, "that of an image. Got a list"),
        (
            {"ID": "1", "Labeled Data": "a.jpg", "Label": {"cat": [{"geometry": []}]}},
            "Label must have objects. Got 'cat'",
        ),
    ],
)
def test_exports_of_labelbox_that_are_refused(record: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match=message):
        load_ground_truth(lines(tmp_path / "a.ndjson", [record]))


# ---------------------------------------------------------------- V7 Darwin


def darwin(folder: Path, *annotations: Any, **item: Any) -> Path:
    slots = [{"slot_name": "0", "type": "image", "width": 200, "height": 100}]
    held = {"name": "a.jpg", "path": "/", "slots": slots} | item
    return dump(folder / "a.json", {"version": "2.0", "item": held, "annotations": [*annotations]})


DARWIN_BOX = {"name": "cat", "bounding_box": {"x": 10, "y": 20, "w": 100, "h": 50}}


def test_polygons_and_tags_of_darwin(tmp_path: Path) -> None:
    square = [{"x": 0, "y": 0}, {"x": 4, "y": 0}, {"x": 4, "y": 4}, {"x": 0, "y": 4}]
    away = [{"x": point["x"] + 10, "y": point["y"]} for point in square]
    polygon = {
        "name": "dog",
        "polygon": {"paths": [square, away]},
        "bounding_box": {"x": 0, "y": 0, "w": 9, "h": 9},
    }
    tag = {"name": "day", "tag": {}}
    with pytest.warns(BoxscoreWarning, match="1 annotation without box or polygon"):
        table = load_ground_truth(
            darwin(tmp_path, DARWIN_BOX, polygon, tag, {"name": "l", "line": {"path": []}})
        )
    assert objects(table) == [("a", "cat", CAT), ("a", "dog", [0, 0, 14, 4])]
    assert table.area.tolist() == [5000, 32]
    with pytest.raises(FileFormatError, match=r"labels of whole images alone \('day'\)"):
        load_ground_truth(darwin(tmp_path, tag))


def path_of(low: float, high: float) -> list[dict[str, float]]:
    corners = ((low, low), (high, low), (high, high), (low, high))
    return [{"x": x, "y": y} for x, y in corners]


def test_paths_of_darwin_inside_others_are_holes(tmp_path: Path) -> None:
    paths = [path_of(0, 40), path_of(10, 20), path_of(12, 14), path_of(50, 60)]
    apart = [path_of(0, 40), path_of(40, 50)]
    polygons = [{"name": "cat", "polygon": {"paths": one}} for one in (paths, apart)]
    table = load_ground_truth(darwin(tmp_path, *polygons))
    assert table.area.tolist() == [1600 - 100 + 4 + 100, 1700]
    assert table.boxes.tolist() == [[0, 0, 60, 60], [0, 0, 50, 50]]
    assert table.masks is not None
    assert table.masks.area.tolist() == table.area.tolist()
    expected = np.zeros((100, 200), dtype=bool)
    for low, high, value in ((0, 40, 1), (10, 20, 0), (12, 14, 1), (50, 60, 1)):
        expected[low:high, low:high] = value
    assert np.array_equal(table.masks.arrays()[0], expected)
    assert "1 RLE, 1 polygons" in repr(table.masks)
    with pytest.raises(FileFormatError, match=r"have no holes where image sizes are unknown.*export COCO"):
        load_ground_truth(darwin(tmp_path, polygons[0], slots=None))
    assert len(load_ground_truth(darwin(tmp_path, polygons[1], slots=None))) == 1


def test_a_path_of_darwin_that_ends_with_the_image(tmp_path: Path) -> None:
    whole = [{"x": x, "y": y} for x, y in ((0, 0), (200, 0), (200, 100), (0, 100))]
    table = load_ground_truth(
        darwin(tmp_path, {"name": "cat", "polygon": {"paths": [whole, path_of(10, 20)]}})
    )
    assert table.masks is not None
    assert (table.area.tolist(), table.masks.area.tolist()) == ([19900], [19900])
    table = load_ground_truth(darwin(tmp_path, {"name": "cat", "polygon": {"paths": [whole, whole]}}))
    assert table.area.tolist() == [0]


def test_folders_of_darwin_tell_images_apart(tmp_path: Path) -> None:
    for number, folder in enumerate("xy"):
        darwin(tmp_path / "d" / str(number), DARWIN_BOX, path=f"/{folder}")
    dump(
        tmp_path / "d" / "b.json",
        json.loads((tmp_path / "d" / "0" / "a.json").read_text())
        | {"item": {"name": "b.jpg", "slots": None}},
    )
    assert load_ground_truth(tmp_path / "d").images.ids.tolist() == ["b", "x/a", "y/a"]


@pytest.mark.parametrize(
    ("annotation", "item", "message"),
    [
        ({"frames": {"0": {}}, "name": "cat"}, {}, "be a single image. Got a video"),
        (DARWIN_BOX, {"slots": [{"type": "video", "slot_name": "0"}]}, "Got a video"),
        (DARWIN_BOX, {"slots": [{"slot_name": "0", "frame_count": 9}]}, "Got a video"),
        (DARWIN_BOX, {"slots": [{"slot_name": "0"}, {"slot_name": "1"}]}, "Got 2 slots"),
        (DARWIN_BOX, {"name": ""}, "an item must have a name"),
        ({**DARWIN_BOX, "name": None}, {}, "an annotation must have a name. Got none in annotation 0 of"),
        ({"name": "cat", "polygon": {"paths": []}}, {}, "a polygon must have three points or more"),
        ({"name": "cat", "bounding_box": {"x": 1, "y": 2, "w": -3, "h": 4}}, {}, "must have a size >= 0"),
    ],
)
def test_darwin_that_is_refused(annotation: Any, item: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match=message):
        load_ground_truth(darwin(tmp_path, annotation, **item))


# ---------------------------------------------------------------- SuperAnnotate

SUPER_BOX = {
    "type": "bbox",
    "className": "cat",
    "classId": 1,
    "points": {"x1": 110, "y1": 20, "x2": 10, "y2": 70},
}


def test_shapes_of_superannotate(tmp_path: Path) -> None:
    corners = {"x1": 10, "y1": 0, "x2": 20, "y2": 10, "x3": 10, "y3": 20, "x4": 0, "y4": 10}
    instances = [
        SUPER_BOX,
        {"type": "rbbox", "className": "dog", "points": corners},
        {"type": "point", "className": "dog", "points": {"x": 1, "y": 2}},
        {"type": "bbox", "className": None, "classId": -1, "points": corners},
        {"type": "tag", "className": "day"},
    ]
    path = dump(tmp_path / "a.jpg.json", {"metadata": {"name": "a.jpg"}, "instances": instances})
    with pytest.warns(BoxscoreWarning, match="1 of type point, 1 without a class"):
        table = load_ground_truth(path)
    assert objects(table) == [("a", "cat", CAT), ("a", "dog", [0, 0, 20, 20])]
    assert table.area.round(6).tolist() == [5000, 200]
    assert table.rotated is not None


def test_exclude_of_superannotate_is_a_hole(tmp_path: Path) -> None:
    outer = [0, 0, 40, 0, 40, 40, 0, 40]
    hole = [10, 10, 20, 10, 20, 20, 10, 20]
    beyond = [30, 30, 60, 30, 60, 60, 30, 60]
    polygon = {"type": "polygon", "className": "cat", "points": outer}
    instances = [polygon | {"exclude": holes} for holes in ([hole, hole, beyond], [], None)]
    content = {"metadata": {"name": "a.jpg", "width": 200, "height": 100}, "instances": instances}
    table = load_ground_truth(dump(tmp_path / "a.jpg.json", content))
    assert table.area.tolist() == [1600 - 100 - 100, 1600, 1600]
    assert table.boxes.tolist() == [[0, 0, 40, 40]] * 3
    assert table.masks is not None
    assert table.masks.area.tolist() == table.area.tolist()
    assert not table.masks.arrays()[0][10:20, 10:20].any()
    content["metadata"] = {"name": "a.jpg"}
    with pytest.raises(FileFormatError, match="have no holes where image sizes are unknown"):
        load_ground_truth(dump(tmp_path / "a.jpg.json", content))


def test_older_files_of_superannotate(tmp_path: Path) -> None:
    meta = {"type": "meta", "name": "imageAttributes", "width": 200, "height": 100}
    polygon = {"type": "polygon", "className": "dog", "classId": 2, "points": [0, 0, 10, 0, 0, 20]}
    path = dump(tmp_path / "sa" / "a.jpg___objects.json", [SUPER_BOX, polygon, meta])
    assert detect_format(path.parent)[0] == "superannotate"
    table = load_ground_truth(path.parent)
    assert objects(table) == [("a", "cat", CAT), ("a", "dog", [0, 0, 10, 20])]
    assert table.images.sizes.tolist() == [[200, 100]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"metadata": {"name": "v", "duration": 9.5}, "instances": []}, "be of an image. Got a video"),
        (
            {"metadata": {"name": "v"}, "instances": [{**SUPER_BOX, "points": {"x1": 1, "y1": 2, "x2": 3}}]},
            "a bbox must have y2. Got none in instance 0 of",
        ),
        (
            {"metadata": {"name": "v"}, "instances": [{**SUPER_BOX, "points": [1, 2, 3, 4]}]},
            "points of a bbox",
        ),
        (
            {"metadata": {"name": "v"}, "instances": [{"type": "point", "points": {}}]},
            "Got only 1 of type point",
        ),
    ],
)
def test_superannotate_that_is_refused(content: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match=message):
        load_ground_truth(dump(tmp_path / "a.jpg.json", content))


# ---------------------------------------------------------------- Scale

SCALE_BOX = {"type": "box", "label": "cat", "left": 10, "top": 20, "width": 100, "height": 50}


def test_tasks_that_are_not_completed_are_left_out(tmp_path: Path) -> None:
    done = {**TASK, "response": {"annotations": [SCALE_BOX, {"type": "line", "label": "cat"}]}}
    waiting = {**TASK, "status": "pending", "response": None, "params": {"attachment": "https://x/b.jpg"}}
    path = dump(tmp_path / "tasks.json", [done, waiting])
    with pytest.warns(BoxscoreWarning, match=r"left out 1 image without a completed response|1 line"):
        table = load_ground_truth(path)
    assert objects(table) == [("a", "cat", CAT)]
    assert table.images.ids.tolist() == ["a"]


def test_pages_of_scale(tmp_path: Path) -> None:
    task = {**TASK, "response": {"annotations": [SCALE_BOX]}}
    facts = {"total": 1, "limit": 100, "offset": 0, "has_more": False, "next_token": None}
    unknown = {"status": "ok", "meta": {"docs": [1]}, "docs": [task], "has_more": False}
    for page in ({"docs": [task], **facts}, {**facts, "docs": [task]}, {"docs": [task]}, unknown):
        path = dump(tmp_path / "page.json", page)
        assert detect_format(path)[0] == "scale"
        assert objects(load_ground_truth(path)) == [("a", "cat", CAT)]
    # Without the other pages, objects would be missing.
    more = {"docs": [task], "total": 2, "next_token": "a,b"}
    for page in ({**more, "has_more": True}, more):
        with pytest.raises(
            FileFormatError, match=r"list all tasks\. Got 1 task of a page, and others follow"
        ):
            load_ground_truth(dump(tmp_path / "page.json", page))
    last = {**more, "has_more": False}
    assert len(load_ground_truth(dump(tmp_path / "page.json", last))) == 1
    # A task may have a key of that name.
    for content in ({**task, "docs": [1]}, {**task, "metadata": {"docs": [1]}}):
        assert len(load_ground_truth(dump(tmp_path / "task.json", content))) == 1


def test_shapes_of_scale(tmp_path: Path) -> None:
    diamond = [{"x": 10, "y": 0}, {"x": 20, "y": 10}, {"x": 10, "y": 20}, {"x": 0, "y": 10}]
    boxes = [SCALE_BOX, {**SCALE_BOX, "label": "dog", "rotation": 0.785, "vertices": diamond}]
    table = load_ground_truth(dump(tmp_path / "t.json", [{**TASK, "response": {"annotations": boxes}}]))
    assert objects(table) == [("a", "cat", CAT), ("a", "dog", [0, 0, 20, 20])]
    assert table.rotated is not None
    polygon = {"type": "polygon", "label": "dog", "vertices": diamond}
    path = dump(tmp_path / "p.json", [{**TASK, "response": {"annotations": [polygon]}}])
    assert load_ground_truth(path).area.tolist() == [200]


def test_nucleus_does_not_list_images_without_objects(tmp_path: Path) -> None:
    one = {"label": "cat", "type": "box", "reference_id": "a.jpg", "confidence": 0.5}
    one["geometry"] = {"x": 10, "y": 20, "width": 100, "height": 50}
    for path in (dump(tmp_path / "a.json", [one]), lines(tmp_path / "a.jsonl", [one])):
        assert detect_format(path)[0] == "scale"
        table = load_ground_truth(path)
        assert objects(table) == [("a", "cat", CAT)]
        assert load_detections(path, table).scores.tolist() == [0.5]
    with pytest.warns(BoxscoreWarning, match="listed only in image_sizes"):
        both = load_ground_truth(path, image_sizes={"a.jpg": (200, 100), "b.jpg": (30, 40)})
    assert both.images.ids.tolist() == ["a", "b"]


@pytest.mark.parametrize(
    ("response", "message"),
    [
        (
            {"annotations": {"url": "https://x"}},
            "annotations must be a list. Got an object, perhaps an address",
        ),
        ({"annotations": [{**SCALE_BOX, "left": None}]}, "must have left, top, width and height"),
        (
            {"annotations": [{**SCALE_BOX, "label": None}]},
            "have a label. Got none in annotation 0, record 0 of",
        ),
        ({"annotations": [{**SCALE_BOX, "rotation": 1}]}, "a rotated box must have four vertices"),
        ({"annotations": [{"type": "cuboid", "label": "cat"}]}, "Got only 1 cuboid"),
    ],
)
def test_tasks_of_scale_that_are_refused(response: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match=message):
        load_ground_truth(dump(tmp_path / "t.json", [{**TASK, "response": response}]))


# ---------------------------------------------------------------- Hugging Face

README = """---
dataset_info:
  features:
  - name: image
    dtype: image
  - name: objects
    sequence:
    - name: bbox
      sequence: float32
    - name: categories
      dtype:
        class_label:
          names:
            '0': dog
            '1': cat
---
# Cats
"""
ROW = {
    "file_name": "a.jpg",
    "objects": {"bbox": [[10, 20, 100, 50], [30.5, 40, 20, 20]], "categories": [1, 0]},
}
NAMED = [("a.jpg", "cat", CAT), ("a.jpg", "dog", DOG)]


def read(path: Path, **options: Any) -> list[tuple[str, str, list[float]]]:
    return objects(load_ground_truth(path, box_format="xywh", **options))


@pytest.mark.parametrize("place", ["", "data", "data/validation"])
def test_class_numbers_have_the_names_of_the_readme(place: str, tmp_path: Path) -> None:
    path = lines(tmp_path / place / "metadata.jsonl", [ROW])
    assert {label for _, label, _ in read(path)} == {"0", "1"}
    (tmp_path / "README.md").write_text(README)
    assert read(path) == NAMED
    assert read(path, classes=["cow", "owl"])[0][1] == "owl"
    with pytest.raises(InputError, match="a class number must be from 0 to 1"):
        read(lines(path, [{**ROW, "objects": {"bbox": [[1, 2, 3, 4]], "categories": [2]}}]))
    assert read(lines(path, [{**ROW, "objects": {"bbox": [[1, 2, 3, 4]], "categories": ["2"]}}]))[0][1] == "2"


def test_two_lists_of_names_in_the_readme(tmp_path: Path) -> None:
    info = README.replace("dataset_info:\n  features:", "dataset_info:\n- features:").replace(
        "\n  - name", "\n  - name"
    )
    second = info.split("---\n")[1].partition("\n")[2].replace("dog", "cow")
    (tmp_path / "README.md").write_text(info.replace("---\n# Cats", f"{second}---\n# Cats"))
    with pytest.raises(FileFormatError, match=r"name the classes of categories once\. Got different names"):
        read(lines(tmp_path / "metadata.jsonl", [ROW]))


def test_objects_as_a_list_as_csv_and_as_parquet(tmp_path: Path) -> None:
    listed = [
        {"bbox": ROW["objects"]["bbox"][n], "categories": ROW["objects"]["categories"][n]} for n in (0, 1)
    ]
    (tmp_path / "README.md").write_text(README)
    assert read(lines(tmp_path / "l" / "metadata.jsonl", [{**ROW, "objects": listed}])) == NAMED
    cell = json.dumps(ROW["objects"]).replace('"', '""')
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "metadata.csv").write_text(f'file_name,width,objects\na.jpg,200,"{cell}"\nb.jpg,30,\n')
    assert read(tmp_path / "c") == NAMED
    assert load_ground_truth(tmp_path / "c", box_format="xywh").images.ids.tolist() == ["a.jpg", "b.jpg"]
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    (tmp_path / "p").mkdir()
    pq.write_table(pa.Table.from_pylist([ROW]), tmp_path / "p" / "metadata.parquet")
    assert read(tmp_path / "p") == NAMED == read(tmp_path / "p" / "metadata.parquet")


def test_an_image_without_objects_counts(tmp_path: Path) -> None:
    rows = [
        {**ROW, "file_name": "e.jpg", "objects": {"bbox": [], "categories": []}},
        ROW,
        {"file_name": "n.jpg", "objects": None},
        {"file_name": "o.jpg"},
    ]
    table = load_ground_truth(lines(tmp_path / "metadata.jsonl", rows), box_format="xywh")
    assert (len(table), table.images.ids.tolist()) == (2, ["a.jpg", "e.jpg", "n.jpg", "o.jpg"])


def test_crowds_of_hugging_face(tmp_path: Path) -> None:
    crowds = {**ROW, "objects": {**ROW["objects"], "iscrowd": [0, 1]}}
    table = load_ground_truth(lines(tmp_path / "metadata.jsonl", [crowds]), box_format="xywh")
    assert table.crowd.tolist() == [False, True]


def test_splits_of_hugging_face(tmp_path: Path) -> None:
    for split in ("train", "validation", "test"):
        lines(tmp_path / split / "metadata.jsonl", [{**ROW, "file_name": f"{split}.jpg"}])
    with pytest.warns(
        BoxscoreWarning, match=r"reading the split validation; others: train \(1\), test \(1\)"
    ):
        assert read(tmp_path)[0][0] == "validation.jpg"
    assert read(tmp_path, image_set="test")[0][0] == "test.jpg"
    (tmp_path / "validation" / "metadata.jsonl").unlink()
    with pytest.raises(InputError, match="choose from train, test"):
        read(tmp_path)
    # One file for all: the first folder of an image is its split.
    rows = [{**ROW, "file_name": f"{split}/a.jpg"} for split in ("train", "val")]
    path = lines(tmp_path / "one" / "metadata.jsonl", rows)
    with pytest.warns(BoxscoreWarning, match="reading the split val; others: train"):
        assert read(path)[0][0] == "val/a.jpg"
    assert read(path.parent, image_set="train")[0][0] == "train/a.jpg"


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            {"file_name": "a.jpg", "text": "a cat"},
            "have objects with bbox. Got only file_name, text .*captions",
        ),
        (
            {"file_name": "a.jpg", "objects": {"categories": [1]}},
            "objects must have a list bbox. Got categories",
        ),
        (
            {"file_name": "a.jpg", "objects": {"bbox": [[1, 2, 3, 4]], "categories": 1}},
            "be lists of one length",
        ),
        (
            {"file_name": "a.jpg", "objects": {"bbox": [[1, 2, 3, 4]], "categories": [1, 0]}},
            r"categories must be as long as the boxes \(1\)",
        ),
        (
            {"file_name": "a.jpg", "mask_file_name": "b.png", "objects": ROW["objects"]},
            "one column file_name",
        ),
    ],
)
def test_metadata_that_is_refused(row: Any, message: str, tmp_path: Path) -> None:
    path = lines(tmp_path / "metadata.jsonl", [row])
    assert detect_format(path)[0] == "huggingface"
    with pytest.raises(FileFormatError, match=message):
        load_ground_truth(path)


def test_csv_cells_have_to_be_json(tmp_path: Path) -> None:
    path = tmp_path / "metadata.csv"
    path.write_text("file_name,objects\na.jpg,\"{'bbox': [[1, 2, 3, 4]]}\"\n")
    with pytest.raises(
        FileFormatError, match=r"objects must be JSON.*line 2 of .*write metadata.jsonl instead"
    ):
        load_ground_truth(path)


def test_other_json_lines_stay_what_they_are(tmp_path: Path) -> None:
    box = {"file_name": "a.jpg", "bbox": [1, 2, 3, 4], "category": "cat"}
    assert detect_format(lines(tmp_path / "metadata.jsonl", [box]))[0] == "jsonl"
    listed = {"file_name": "a.jpg", "objects": [{"bbox": [1, 2, 3, 4], "category": "cat"}]}
    assert detect_format(lines(tmp_path / "a.jsonl", [listed]))[0] == "jsonl"


# ---------------------------------------------------------------- LabelMe, as X-AnyLabeling writes it


@pytest.mark.parametrize(
    ("kind", "kinds"), [("linestrip", "linestrips"), ("points", "points"), ("bus", "buses"), ("box", "boxes")]
)
def test_ground_truth_of_left_out_shapes_alone_is_refused(kind: str, kinds: str, tmp_path: Path) -> None:
    """It would give a score of no ground truth."""
    path = write(tmp_path, "labelme")
    for file in path.iterdir():
        content = json.loads(file.read_text())
        for shape in content["shapes"]:
            shape["shape_type"] = kind
        file.write_text(json.dumps(content))
    with pytest.raises(FileFormatError, match=rf"have boxes or regions with a class\. Got only 2 {kinds} in"):
        boxscore.load_ground_truth(path)
