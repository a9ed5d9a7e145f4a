"""Annotation formats: the same objects in each of them, what differs between them, and what is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore.errors import BoxscoreWarning, FileFormatError, InputError
from boxscore.extensions.formats._gathered import rotated_corners, short_names
from boxscore.formats import detect_format, load_detections, load_ground_truth
from support.annotations import BOXES, FORMATS, example, record, write
from support.real_data import real

SIZED = {
    "cvat",
    "cvat predictions",
    "fiftyone",
    "labelme",
    "labelstudio",
    "datumaro",
    "supervisely",
    "sagemaker",
    "vott",
    "tfrecord",
    "ndjson",
    "labelbox",
    "darwin",
    "darwin first",
    "superannotate",
    "labelstudio minimal",
    "odvg",
    "openlabel",
}
"""Formats that know the sizes of images with objects."""

VOC100 = [0.347, 0.61, 0.3537, 0.0752, 0.3395, 0.4979]


def dump(path: Path, content: Any) -> Path:
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def load(folder: Path, name: str) -> boxscore.GroundTruth:
    options: Any = {"box_format": "xyxy"} if name == "text" else {}
    if name.split()[0] in ("ibm", "vertex"):
        options["image_sizes"] = {"a": (200, 100), "b.c": (40, 30)}
    return load_ground_truth(write(folder, name), **options)


def objects(table: boxscore.GroundTruth | boxscore.Detections) -> list[tuple[str, str, list[float]]]:
    """Return image, class and corners of every row."""
    return [
        (str(table.images.ids[image]), str(table.categories.names[category]), box.round(4).tolist())
        for image, category, box in zip(table.image, table.category, table.boxes, strict=True)
    ]


# ---------------------------------------------------------------- the same in every format


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_says_the_same(name: str, tmp_path: Path) -> None:
    table = load(tmp_path, name)
    assert detect_format(tmp_path / FORMATS[name][0])[0] == name.split()[0]
    assert objects(table) == [("a", label, box) for label, box in BOXES]
    assert sorted(table.images.ids.tolist()) == ["a", "b.c"]
    assert sorted(table.categories.names.tolist()) == ["cat", "dog"]
    if name in SIZED:
        assert table.images.sizes[table.images.rows(np.array(["a"], dtype=object))].tolist() == [[200, 100]]


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_is_told_from_the_others(name: str, tmp_path: Path) -> None:
    path = write(tmp_path, name)
    other = next(other for other in ("cvat", "voc", "yolo", "via", "datumaro") if other != name.split()[0])
    with pytest.raises(FileFormatError, match=f"must be in the {other} format"):
        load_ground_truth(path, format=other)


@pytest.mark.parametrize(
    "name",
    ["labelstudio", "datumaro", "bdd", "vertex predictions", "darwin", "darwin first", "cvat predictions"],
)
def test_detections_have_their_scores(name: str, tmp_path: Path) -> None:
    truth = load(tmp_path, "cvat")
    table = load_detections(write(tmp_path, name), truth)
    assert objects(table) == [("a", label, box) for label, box in BOXES]
    assert table.scores.tolist() == ([0.5, 0.5] if name == "bdd" else [0.5, 0.75])


@pytest.mark.parametrize(
    "name", ["cvat", "labelme", "via", "sagemaker", "createml", "vott", "supervisely", "labelbox", "scale"]
)
def test_annotations_are_detections_without_scores(name: str, tmp_path: Path) -> None:
    truth = load(tmp_path, "datumaro")
    table = load_detections(write(tmp_path, name), truth)
    assert len(table) == len(BOXES)
    assert not table.scored


# ---------------------------------------------------------------- FiftyOne

DETECTION = {"label": "cat", "bounding_box": [0.05, 0.2, 0.5, 0.5], "confidence": 0.5}


def test_labels_of_fiftyone_are_fractions_until_sizes_are_known(tmp_path: Path) -> None:
    found = {**DETECTION, "attributes": {"tags": ["x"]}}
    path = dump(tmp_path / "labels.json", {"classes": ["dog", "cat"], "labels": {"a": [found], "b.c": None}})
    assert detect_format(path) == ("fiftyone", "FiftyOne's labels")
    with pytest.warns(BoxscoreWarning, match="the image sizes are unknown"):
        table = load_ground_truth(path)
    assert (table.units, table.images.ids.tolist()) == ("fractions", ["a", "b.c"])
    assert table.categories.names.tolist() == ["dog", "cat"]
    sized = load_ground_truth(path, image_sizes={"a": (200, 100), "b.c": (40, 30)})
    assert (sized.units, objects(sized)) == ("pixels", [("a", "cat", [10, 20, 110, 70])])
    truth = load(tmp_path, "cvat")
    read = load_detections(path, truth)
    assert (objects(read), read.scores.tolist()) == ([("a", "cat", [10, 20, 110, 70])], [0.5])


def samples(folder: Path, **fields: Any) -> Path:
    sample = {"filepath": "data/a.jpg", "metadata": {"width": 200, "height": 100}}
    held = {name: {"_cls": "Detections", "detections": boxes} for name, boxes in fields.items()}
    return dump(folder / "samples.json", {"samples": [{**sample, **held}]})


def test_of_several_fields_of_fiftyone_the_usual_ones_are_read(tmp_path: Path) -> None:
    path = samples(tmp_path, ground_truth=[{**DETECTION, "label": "dog"}], predictions=[DETECTION], vetted=[])
    truth = load_ground_truth(path)
    assert objects(truth) == [("a", "dog", [10, 20, 110, 70])]
    known = load(tmp_path, "cvat")
    assert objects(load_detections(path, known)) == [("a", "cat", [10, 20, 110, 70])]
    assert len(load_ground_truth(samples(tmp_path, vetted=[DETECTION]))) == 1
    assert len(load_ground_truth(samples(tmp_path))) == 0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            {"samples": [{"filepath": "a", "x": {"detections": []}, "y": {"detections": []}}]},
            "samples must have one field of detections, or ground_truth. Got 'x', 'y' in",
        ),
        ({"samples": [{"filepath": ""}]}, "a sample must have a filepath. Got none in sample 0 of"),
        (
            {"labels": {"a": [{"label": "cat", "bounding_box": [0, 0, 1]}]}},
            "bounding_box must have 4 numbers. Got 3 in detection 0 of image 'a' of",
        ),
        (
            {"samples": [{"filepath": "a", "x": {"detections": [{**DETECTION, "bounding_box": "1"}]}}]},
            "bounding_box must be an array. Got a string in detection 0 of sample 0 of",
        ),
    ],
)
def test_what_is_wrong_with_a_file_of_fiftyone(content: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match=re.escape(message)):
        load_ground_truth(dump(tmp_path / "x.json", content))


def test_detections_of_fiftyone_without_a_label_are_left_out(tmp_path: Path) -> None:
    path = samples(tmp_path, ground_truth=[{**DETECTION, "label": None}, DETECTION])
    with pytest.warns(BoxscoreWarning, match="1 detection without label"):
        assert len(load_ground_truth(path)) == 1


# ---------------------------------------------------------------- CVAT

CVAT = "<annotations><version>1.1</version><meta><task>{meta}</task></meta>{rest}</annotations>"


def cvat(folder: Path, rest: str, meta: str = "") -> boxscore.GroundTruth:
    path = folder / "x.xml"
    path.write_text(CVAT.format(meta=meta, rest=rest), encoding="utf-8")
    return load_ground_truth(path)


def test_a_video_has_all_frames_and_no_object_that_is_outside(tmp_path: Path) -> None:
    sides = 'xtl="1" ytl="2" xbr="3" ybr="4"'
    track = f'<track label="cat"><box frame="10" outside="0" {sides}/><box frame="13" outside="1" {sides}/></track>'
    meta = (
        "<start_frame>10</start_frame><stop_frame>19</stop_frame><frame_filter>step=3</frame_filter>"
        "<original_size><width>25</width><height>20</height></original_size>"
    )
    table = cvat(tmp_path, track, meta)
    assert table.images.ids.tolist() == [10, 13, 16, 19]
    assert table.images.sizes.tolist() == [[25, 20]] * 4
    assert objects(table) == [("10", "cat", [1, 2, 3, 4])]


def test_rotated_boxes_next_to_polygons_are_upright(tmp_path: Path) -> None:
    shapes = (
        '<box label="cat" xtl="10" ytl="20" xbr="50" ybr="30" rotation="90"/>'
        '<polygon label="cat" points="1,1;9,1;9,9"/>'
    )
    with pytest.warns(
        BoxscoreWarning, match="1 rotated box compared as upright boxes, because 1 other object"
    ):
        table = cvat(tmp_path, f'<image id="0" name="a.png" width="99" height="99">{shapes}</image>')
    assert table.rotated is None
    assert table.boxes.round(9).tolist() == [[25, 5, 35, 45], [1, 1, 9, 9]]


def test_rotated_boxes_of_cvat(tmp_path: Path) -> None:
    box = '<box label="cat" xtl="10" ytl="20" xbr="50" ybr="30" rotation="90"/>'
    table = cvat(tmp_path, f'<image id="0" name="a.png" width="99" height="99">{box}</image>')
    assert table.boxes.round(9).tolist() == [[25, 5, 35, 45]]
    assert table.area.round(9).tolist() == [400]
    assert table.rotated is not None
    assert table.rotated.round(9).tolist() == [[30, 25, 40, 10, round(np.pi / 2, 9)]]


def test_masks_and_polygons_of_cvat(tmp_path: Path) -> None:
    shapes = (
        '<mask label="cat" left="1" top="1" width="3" height="2" rle="1, 3, 1, 1"/>'
        '<polygon label="cat" points="0,0;4,0;4,2"/><points label="cat" points="1,2"/>'
        '<ellipse label="dog" cx="5" cy="4" rx="2" ry="1"/>'
    )
    with pytest.warns(BoxscoreWarning, match="only boxes and regions with a class are objects: 1 <points>"):
        table = cvat(tmp_path, f'<image id="0" name="a.png" width="8" height="6">{shapes}</image>')
    assert table.boxes.tolist() == [[1, 1, 4, 3], [0, 0, 4, 2], [3, 3, 7, 5]]
    assert table.area.round(4).tolist() == [4, 4, 6.2832]
    assert table.masks is not None
    pixels = table.masks[np.array([0])].arrays()[0]
    assert np.argwhere(pixels).tolist() == [[1, 2], [1, 3], [2, 1], [2, 3]]


def test_subsets_of_a_project_are_image_sets(tmp_path: Path) -> None:
    box = '<box label="cat" xtl="1" ytl="2" xbr="3" ybr="4"/>'
    image = '<image id="0" name="a.png" subset="{}" width="8" height="6">{}</image>'
    path = tmp_path / "x.xml"
    rest = image.format("Train", box) + image.format("Test", "")
    path.write_text(CVAT.format(meta="", rest=rest))
    assert load_ground_truth(path).images.ids.tolist() == ["Test/a", "Train/a"]
    assert load_ground_truth(path, image_set="Train").images.ids.tolist() == ["a"]
    with pytest.raises(InputError, match="image_set must be a subset of the project"):
        load_ground_truth(path, image_set="Tset")


CVAT_REFUSED = {
    '<image name="a"><box label="x" xtl="1" ytl="2" xbr="3"/></image>': "a box must have ybr. Got none in .*line 1",
    '<image name="a"><box label="x" xtl="1" ytl="nan" xbr="3" ybr="4"/></image>': "ytl must be a number. Got 'nan'",
    '<image id=""><box/></image>': "an image must have a name",
    '<image name="a"><polygon label="x" points="1,2;3,4"/></image>': "a polygon must have three points or more",
    '<image name="a"><mask label="x" left="0" top="0" width="9" height="9" rle="81"/></image>': "of known size",
}


@pytest.mark.parametrize("rest", CVAT_REFUSED)
def test_broken_cvat_is_refused(rest: str, tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match=CVAT_REFUSED[rest]):
        cvat(tmp_path, rest)


SHAPES = [
    '<box label="cat" xtl="1" ytl="2" xbr="3" ybr="4">{}</box>',
    '<box label="cat" xtl="1" ytl="2" xbr="3" ybr="4" rotation="30">{}</box>',
    '<polygon label="cat" points="0,0;4,0;4,2">{}</polygon>',
    '<ellipse label="cat" cx="5" cy="4" rx="2" ry="1">{}</ellipse>',
    '<mask label="cat" left="1" top="1" width="3" height="2" rle="1, 3, 1, 1">{}</mask>',
]


def scores_of(folder: Path, rest: str) -> list[float] | None:
    """Return the scores of detections of cats, None if they have none."""
    (folder / "found.xml").write_text(CVAT.format(meta="", rest=rest))
    image = boxscore.data.vocabulary.Images.build([0], file_names=["a.png"])
    truth = boxscore.GroundTruth.from_arrays([0], ["cat"], [[0, 0, 1, 1]], images=image)
    found = load_detections(folder / "found.xml", truth)
    return found.scores.tolist() if found.scored else None


def with_attributes(shape: str, *attributes: tuple[str, str]) -> str:
    texts = (f'<attribute name="{name}">{text}</attribute>' for name, text in attributes)
    return shape.format("".join(texts))


def of_image(*shapes: str) -> str:
    return f'<image id="0" name="a.png" width="8" height="6">{"".join(shapes)}</image>'


@pytest.mark.parametrize("shape", SHAPES)
def test_an_attribute_of_any_shape_of_cvat_is_its_score(shape: str, tmp_path: Path) -> None:
    other = with_attributes(SHAPES[0], ("CONFIDENCE", " 7e-1 "), ("score", ""), ("occlusion", "3"))
    image = of_image(with_attributes(shape, ("color", "red"), ("score", "0.30000000000000004")), other)
    assert scores_of(tmp_path, image) == [0.1 + 0.2, 0.7]
    track = with_attributes(SHAPES[0], ("confidence", "0.5")).replace("<box", '<box frame="0" outside="0"')
    assert scores_of(tmp_path, f'<track id="0" label="cat">{track}</track>') == [0.5]
    for attributes in [[("score", "")], [("scores", "0.5")], []]:
        assert scores_of(tmp_path, of_image(with_attributes(shape, *attributes))) is None
    # An attribute of ground truth may say anything.
    image = of_image(with_attributes(shape, ("score", "high")), SHAPES[0].format(""))
    assert len(cvat(tmp_path, image)) == 2


@pytest.mark.parametrize(
    "attributes",
    [[("confidence", text)] for text in ("high", "nan", "1e999", "1_0")]
    + [[("score", "0.5"), ("confidence", "0.6")]],
)
def test_a_score_of_cvat_is_one_number(attributes: list[tuple[str, str]], tmp_path: Path) -> None:
    texts = ", ".join(sorted(repr(text) for _, text in attributes))
    message = f"a detection must have one number as its score or confidence. Got {texts} in"
    with pytest.raises(FileFormatError, match=re.escape(message)):
        scores_of(tmp_path, of_image(with_attributes(SHAPES[0], *attributes)))
    with pytest.raises(InputError, match="a detection must have a score if another has one"):
        scores_of(tmp_path, of_image(with_attributes(SHAPES[0], ("score", "1")), SHAPES[0].format("")))


def test_a_task_has_not_too_many_frames(tmp_path: Path) -> None:
    meta = "<start_frame>0</start_frame><stop_frame>999999999999</stop_frame>"
    with pytest.raises(FileFormatError, match="a task must have at most 10,000,000 frames"):
        cvat(tmp_path, '<track label="x"></track>', meta)


# ---------------------------------------------------------------- JSON formats


def test_labelme_shapes(tmp_path: Path) -> None:
    shapes = [
        {"label": "a", "points": [[5, 5], [5, 8]], "shape_type": "circle"},
        {"label": "b", "points": [[0, 0], [4, 0], [4, 2]], "shape_type": "polygon"},
        {"label": "b", "points": [[0, 0]], "shape_type": "point"},
    ]
    path = dump(tmp_path / "x.json", {"flags": {}, "shapes": shapes, "imagePath": "x.png", "imageData": None})
    with pytest.warns(BoxscoreWarning, match="1 point"):
        table = load_ground_truth(path)
    assert table.boxes.tolist() == [[2, 2, 8, 8], [0, 0, 4, 2]]
    assert table.area.round(4).tolist() == [28.2743, 4]


def anylabeling(folder: Path, *shapes: tuple[str, list[list[float]]]) -> Path:
    records = [{"label": "a", "points": points, "shape_type": kind} for kind, points in shapes]
    content = {"flags": {}, "shapes": records, "imagePath": "x.png", "imageData": None}
    return dump(folder / "x.json", content)


def test_rectangles_of_four_points(tmp_path: Path) -> None:
    corners = [[10, 20], [110, 20], [110, 70], [10, 70]]
    turned = [corners[at] for at in (2, 1, 0, 3)]
    path = anylabeling(tmp_path, ("rectangle", corners), ("rectangle", turned), ("rectangle", corners[::2]))
    assert load_ground_truth(path).boxes.tolist() == [[10, 20, 110, 70]] * 3
    for points, words in (
        ([[10, 20], [110, 25], [110, 70], [10, 70]], "a rectangle must be upright if it has four points"),
        ([[10, 20], [110, 20], [110, 70]], "a rectangle must have two points, or four. Got 3"),
    ):
        with pytest.raises(FileFormatError, match=words):
            load_ground_truth(anylabeling(tmp_path, ("rectangle", points)))


def test_rotations_are_rotated_boxes(tmp_path: Path) -> None:
    # A square of side 5, turned by the angle of the triangle 3, 4, 5.
    points = [[10.0, 10.0], [14.0, 13.0], [11.0, 17.0], [7.0, 14.0]]
    table = load_ground_truth(anylabeling(tmp_path, ("rotation", points), ("rectangle", [[0, 0], [4, 2]])))
    assert table.boxes.tolist() == [[7, 10, 14, 17], [0, 0, 4, 2]]
    assert table.area.tolist() == [25, 8]
    assert table.rotated is not None
    assert table.rotated[:, :4].round(6).tolist() == [[10.5, 13.5, 5, 5], [2, 1, 4, 2]]
    with pytest.raises(FileFormatError, match=r"a rotation must have four points\. Got 3"):
        load_ground_truth(anylabeling(tmp_path, ("rotation", points[:3])))


def test_labelme_is_told_behind_the_image_in_it(tmp_path: Path) -> None:
    content = {"imageData": "QUJD" * 20_000, "imagePath": "x.png", "shapes": []}
    assert detect_format(dump(tmp_path / "x.json", content))[0] == "labelme"
    assert load_ground_truth(tmp_path / "x.json").images.ids.tolist() == ["x"]


def via(attributes: list[dict[str, Any]], folder: Path) -> Path:
    regions = {
        str(number): {"shape_attributes": {"name": "rect", "x": 1, "y": 2, "width": 3, "height": 4}}
        | {"region_attributes": each}
        for number, each in enumerate(attributes)
    }
    images = {"a1": {"filename": "a.jpg", "size": 1, "regions": regions}}
    return dump(folder / "v.json", {"_via_settings": {}, "_via_img_metadata": images})


def test_images_of_several_folders_stay_apart(tmp_path: Path) -> None:
    for folder in ("x", "y"):
        write(tmp_path / "all" / folder, "labelme")
    table = load_ground_truth(tmp_path / "all", format="labelme")
    assert table.images.ids.tolist() == ["x/l/a", "x/l/b.c", "y/l/a", "y/l/b.c"]
    assert table.image.tolist() == [0, 0, 2, 2]


def test_an_image_that_occurs_twice_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, "createml")
    path.write_text(path.read_text().replace("b.c.jpg", "a.jpg"))
    with pytest.raises(
        FileFormatError, match=r"images must have different names\. Got 'a\.jpg' twice in .*json; sev"
    ):
        load_ground_truth(path)


def test_the_class_of_via_is_the_only_attribute_or_must_be_said(tmp_path: Path) -> None:
    assert objects(load_ground_truth(via([{"kind": "cat"}], tmp_path)))[0][1] == "cat"
    assert objects(load_ground_truth(via([{"x": "", "Class": "dog"}], tmp_path)))[0][1] == "dog"
    assert objects(load_ground_truth(via([{"kind": {"cat": True, "dog": False}}], tmp_path)))[0][1] == "cat"
    path = via([{"kind": "cat", "color": "red"}], tmp_path)
    with pytest.raises(
        InputError, match=r"the class of a region must be its only attribute.*'color', 'kind'"
    ):
        load_ground_truth(path)
    assert objects(load_ground_truth(path, classes=["cat", "dog"]))[0][1] == "cat"


def test_a_region_of_via_has_one_class(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match="a region must have one class"):
        load_ground_truth(via([{"kind": {"cat": True, "dog": True}}], tmp_path))


def test_label_studio_turns_about_the_top_left_corner(tmp_path: Path) -> None:
    path = write(tmp_path, "labelstudio")
    tasks = json.loads(path.read_text())
    tasks[0]["annotations"][0]["result"][0]["value"]["rotation"] = 90
    tasks[0]["annotations"].append(tasks[0]["annotations"][0])
    dump(path, tasks)
    with pytest.warns(BoxscoreWarning, match="1 task has several annotations; the first of each counts"):
        table = load_ground_truth(path)
    assert table.boxes.round(9).tolist() == [[-40, 20, 10, 120], BOXES[1][1]]
    assert table.area.tolist() == [5000, 400]


def test_label_studio_finds_images_with_and_without_the_digits_of_their_upload(tmp_path: Path) -> None:
    truth = load(tmp_path, "labelstudio")
    for name in ("a", "0123abcd-a", "0123abcd-a.jpg"):
        results = [{"image_id": name, "category_id": "cat", "bbox": [1, 2, 3, 4], "score": 0.5}]
        assert len(load_detections(dump(tmp_path / "d.json", results), truth)) == 1


@pytest.mark.parametrize("bad", [b'"wide"', b'"\xff"', b"null"])
def test_a_broken_region_of_json_min_is_no_missing_one(bad: bytes, tmp_path: Path) -> None:
    path = write(tmp_path, "labelstudio minimal")
    path.write_bytes(path.read_bytes().replace(b'"width": 50.0', b'"width": ' + bad))
    with pytest.raises(FileFormatError, match=r"task 0.* of .*lsm\.json"):
        load_ground_truth(path)


def test_a_class_map_of_sagemaker_may_not_change(tmp_path: Path) -> None:
    path = write(tmp_path, "sagemaker")
    path.write_text(path.read_text().replace('"class-map": {}', '"class-map": {"0": "dog"}'))
    with pytest.raises(
        FileFormatError, match=r"class-map must name a class alike in every line. Got 0: 'dog', and"
    ):
        load_ground_truth(path)


@pytest.mark.parametrize("count", [1, 2])
def test_kinds_of_datumaro_are_named_as_they_are_written(count: int, tmp_path: Path) -> None:
    path = write(tmp_path, "datumaro")
    content = json.loads(path.read_text())
    content["items"][0]["annotations"] += [{"type": kind} for kind in ("bus", "label")] * count
    path.write_text(json.dumps(content))
    kinds = f"{count} of type bus, {count} label{'s' * (count > 1)}"
    with pytest.warns(BoxscoreWarning, match=f"are objects: {kinds}"):
        load_ground_truth(path)


def test_a_label_of_datumaro_must_be_declared(tmp_path: Path) -> None:
    path = write(tmp_path, "datumaro")
    path.write_text(path.read_text().replace('"label_id": 1', '"label_id": 7'))
    with pytest.raises(
        FileFormatError, match=r"label_id must be from 0 to 1.*Got 7 in item 'a', annotation 1 of"
    ):
        load_ground_truth(path)


def test_a_wrong_value_is_named_with_its_place(tmp_path: Path) -> None:
    path = write(tmp_path, "createml")
    path.write_text(path.read_text().replace('"x": 60.0', '"x": "wide"'))
    message = (
        r"annotations\[0\]\.coordinates\.x must be a number\. Got a string in image 0 of .*createml\.json"
    )
    with pytest.raises(FileFormatError, match=message):
        load_ground_truth(path)


def test_a_data_set_of_supervisely_may_be_chosen(tmp_path: Path) -> None:
    path = write(tmp_path, "supervisely")
    assert len(load_ground_truth(path, image_set="ds")) == len(load_ground_truth(path / "ds")) == 2
    with pytest.raises(InputError, match="image_set must be a data set of the project"):
        load_ground_truth(path, image_set="dt")


# ---------------------------------------------------------------- TFRecord


def test_detections_in_tfrecord(tmp_path: Path) -> None:
    truth = load(tmp_path, "tfrecord")
    sides: dict[str, Any] = {f"image/detection/bbox/{side}": [0.25] for side in ("xmin", "ymin")}
    sides |= {f"image/detection/bbox/{side}": [0.5] for side in ("xmax", "ymax")}
    detections = {
        "image/source_id": [b"a"],
        "image/detection/label": [2],
        "image/detection/score": [0.5],
        **sides,
    }
    (tmp_path / "tf" / "x.tfrecord").write_bytes(record(example(detections)))
    table = load_detections(tmp_path / "tf", truth)
    assert objects(table) == [("a", "dog", [50, 25, 100, 50])]
    assert table.scores.tolist() == [0.5]


def test_one_of_several_tfrecords_is_named(tmp_path: Path) -> None:
    folder = write(tmp_path, "tfrecord")
    (file,) = folder.glob("*.tfrecord")
    file.with_stem("val").write_bytes(file.read_bytes())
    file.rename(file.with_stem("train"))
    choices = r"choose from train, val\.$"
    with pytest.raises(
        InputError, match=rf"image_set must be given where there are several files\. .*{choices}"
    ):
        load_ground_truth(folder)
    with pytest.raises(
        InputError, match=rf"image_set must be the name of a file of the folder\. .*{choices}"
    ):
        load_ground_truth(folder, image_set="test")
    assert len(load_ground_truth(folder, image_set="val")) == len(
        load_ground_truth(folder, image_set="train")
    )


@pytest.mark.parametrize("length", [8, 40, 200])
def test_a_cut_tfrecord_is_refused(length: int, tmp_path: Path) -> None:
    file = write(tmp_path, "tfrecord") / "x.tfrecord"
    file.write_bytes(file.read_bytes()[:length])
    with pytest.raises(FileFormatError, match=r"a TFRecord file must be complete.*record 0 of .*cut short"):
        load_ground_truth(file, format="tfrecord")


# ---------------------------------------------------------------- text


def text_folder(folder: Path, **files: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / f"{name}.txt").write_text(text)
    return folder


def test_the_form_of_boxes_is_told_by_what_is_impossible(tmp_path: Path) -> None:
    truth = load(tmp_path, "cvat")
    sizes = text_folder(tmp_path / "sizes", a="cat 0.5 100 50 20 10\ndog 0.9 1 2 3 4\n")
    assert objects(load_detections(sizes, truth))[0] == ("a", "cat", [100, 50, 120, 60])
    corners = text_folder(tmp_path / "corners", a="cat 0.5 100 50 180 90\ndog 0.9 1 2 3 4\n")
    assert objects(load_detections(corners, truth))[0] == ("a", "cat", [100, 50, 180, 90])
    both = text_folder(tmp_path / "both", a="cat 0.5 10 5 20 10\n")
    with pytest.raises(
        InputError,
        match=r"valid as x1,y1,x2,y2 and as x,y,w,h from the corner in .*--dt-box-format xyxy\|xywh",
    ):
        load_detections(both, truth)
    assert objects(load_detections(both, truth, box_format="xywh"))[0][2] == [10, 5, 30, 15]


def test_difficult_objects_and_classes_of_several_words(tmp_path: Path) -> None:
    folder = text_folder(tmp_path / "t", a="traffic light 50 50 60 60 difficult\ncat 90 9 99 99\n")
    table = load_ground_truth(folder, box_format="xyxy")
    assert table.categories.names.tolist() == ["cat", "traffic light"]
    assert table.difficult.tolist() == [True, False]


def test_class_numbers_of_text_need_names(tmp_path: Path) -> None:
    truth = load(tmp_path, "vott")
    folder = text_folder(tmp_path / "n", a="1 0.5 100 50 20 10\n")
    assert objects(load_detections(folder, truth, classes=["cat", "dog"]))[0][1] == "dog"


def test_text_detections_are_no_ground_truth(tmp_path: Path) -> None:
    folder = text_folder(tmp_path / "t", a="cat 0.5 100 50 20 10\n")
    with pytest.raises(
        FileFormatError, match=r"Got 'cat 0\.5 100 50 20 10' in .*line 1; are these detections\?"
    ):
        load_ground_truth(folder)


# ---------------------------------------------------------------- small parts


@pytest.mark.parametrize("key", ["annotations", "results", "predictions"])
def test_results_may_lie_under_a_key(key: str, tmp_path: Path) -> None:
    truth = load(tmp_path, "cvat")
    results = [{"image_id": "a", "category_id": "cat", "bbox": [1, 2, 3, 4], "score": 0.5}]
    assert len(load_detections(dump(tmp_path / "d.json", {key: results}), truth)) == 1


def test_short_names_stay_different() -> None:
    assert short_names(["x/a.jpg", "y/b.c.jpg", 7]) == ["a", "b.c", 7]
    assert short_names(["x/a.jpg", "y/a.jpg"]) == ["x/a", "y/a"]
    assert short_names(["a.jpg", "a.png"]) == ["a.jpg", "a.png"]
    assert short_names(["v1.0", "v1.1"]) == ["v1.0", "v1.1"]


def test_boxes_turn_clockwise() -> None:
    corners = rotated_corners((0, 0, 2, 1), 90, center=(0, 0)).round(9) + 0
    assert corners.tolist() == [[0, 0], [0, 2], [-1, 2], [-1, 0]]


# ---------------------------------------------------------------- real data

TRUTHS = {
    "coco v1": "coco_format_v1/data/database/gts/coco_format_v1/instances_default.json",
    "coco v2": "coco_format_v2/data/database/gts/coco_format_v2/instances_v2.json",
    "cvat": "cvat_format/data/database/gts/cvat_format/annotations.xml",
    "imagenet": "imagenet_format/data/database/gts/imagenet_format",
    "voc": "pascalvoc_format/data/database/gts/pascalvoc_format",
    "openimages": "openimages_format/data/database/gts/openimages_format/all_bounding_boxes.csv",
    "tfrecord": "tfrecord_format/data/database/gts/tfrecord_format",
    "yolo": "yolo_format/data/database/gts/yolo_format",
}
"""The same hundred images; the last three layouts hold rounded fractions. LabelMe's has ten images of them."""
ROUNDED = ("openimages", "tfrecord", "yolo")
DETECTIONS = {name: f"{name}/data/database/dets/{name}" for name in ("abs_xywh", "abs_xyx2y2", "rel_xywh")}
DETECTIONS["coco_format"] = "coco_format/data/database/dets/coco_format/coco_dets.json"


@pytest.mark.long
@pytest.mark.parametrize("name", TRUTHS)
def test_a_hundred_images_of_voc_score_alike_in_every_pair_of_layouts(name: str) -> None:
    pixels = load_ground_truth(real("formats", f"padilla100_gt_{TRUTHS['coco v1']}"))
    sizes = dict(zip(pixels.images.file_names.tolist(), pixels.images.sizes.tolist(), strict=True))
    path = real("formats", f"padilla100_gt_{TRUTHS[name]}")
    truth = load_ground_truth(path, image_sizes=sizes if name in ("openimages", "yolo") else None)
    names = real("padilla_toyexample", "voc.names")
    for layout, place in DETECTIONS.items():
        classes = None if layout == "coco_format" else names
        detections = load_detections(real("formats", f"padilla100_dt_{place}"), truth, classes=classes)
        values = list(boxscore.evaluate(truth, detections).metrics.values())
        assert np.allclose(values[:6], VOC100, atol=4e-4 if name in ROUNDED else 5e-5), (layout, values)
        if name not in ROUNDED:
            own = load_detections(real("formats", f"padilla100_dt_{place}"), pixels, classes=classes)
            assert np.allclose(
                values, list(boxscore.evaluate(pixels, own).metrics.values()), rtol=0, atol=1e-12
            )


@pytest.mark.filterwarnings("ignore::boxscore.BoxscoreWarning")
@pytest.mark.parametrize("name", ["openimages", "yolo"])
def test_without_sizes_fractions_score_all_areas_alone(name: str) -> None:
    truth = load_ground_truth(real("formats", f"padilla100_gt_{TRUTHS[name]}"))
    folder = real("formats", f"padilla100_dt_{DETECTIONS['rel_xywh']}")
    detections = load_detections(folder, truth, classes=real("padilla_toyexample", "voc.names"))
    values = np.array(list(boxscore.evaluate(truth, detections).metrics.values()))
    assert np.allclose(values[:3], VOC100[:3], atol=5e-5)
    assert np.isnan(values[[3, 4, 5, 9, 10, 11]]).all()


def test_the_seven_encodings_of_a_toy_data_set_score_alike() -> None:
    folder = real("padilla_toyexample")
    expected = json.loads((folder / "expected_padilla_tool.json").read_text())
    truth = load_ground_truth(folder / "gts_vocpascal_format")
    for path in sorted(folder.glob("dets_*")):
        path = next(path.glob("*.json"), path)
        options: Any = {"classes": folder / "voc.names"} if "classid" in path.name else {}
        detections = load_detections(path, truth, **options)
        for protocol, kind in (("voc2007", "ELEVEN"), ("voc2012", "EVERY")):
            value = next(iter(boxscore.evaluate(truth, detections, protocol=protocol).metrics.values()))
            assert value == pytest.approx(
                expected[f"voc_iou0.5_{kind}_POINT_INTERPOLATION"]["mAP"], abs=1e-12
            )


SAMPLES = {
    "padilla100_gt_labelme_format/data/database/gts/labelme_format": ("labelme", 19),
    "supervisely": ("supervisely", 26),
    "labelstudio/tests/data/test_export_yolo/data_obb.json": ("labelstudio", 25),
    "labelstudio/tests/data/test_export_json_min/data.json": ("labelstudio", 1),
    "datumaro_cvat_dataset/tests/assets/cvat_dataset/for_video/annotations.xml": ("cvat", 1),
    "datumaro_cvat_dataset/tests/assets/cvat_dataset/for_images/export_task": ("cvat", 1),
    "datumaro_vott_json_dataset/tests/assets/vott_json_dataset/dataset/train-export.json": ("vott", 4),
    "datumaro_tf_detection_api_dataset/tests/assets/tf_detection_api_dataset/train.tfrecord": ("tfrecord", 3),
    "datumaro_roboflow_dataset/tests/assets/roboflow_dataset/tfrecord/train": ("tfrecord", 2),
    "datumaro_roboflow_dataset/tests/assets/roboflow_dataset/createml/train/_annotations.createml.json": (
        "createml",
        2,
    ),
}


@pytest.mark.parametrize("sample", SAMPLES)
@pytest.mark.filterwarnings("ignore::boxscore.errors.BoxscoreWarning")
def test_samples_of_other_projects(sample: str) -> None:
    path = real("formats", *sample.split("/"))
    name, count = SAMPLES[sample]
    assert detect_format(path)[0] == name
    assert len(load_ground_truth(path)) == count


REFUSED = {
    "datumaro_labelme_dataset/tests/assets/labelme_dataset/Annotations/subset1": "LabelMe's old XML",
    "datumaro_datumaro_dataset/tests/assets/datumaro_dataset/legacy/annotations/train.json": "labels of whole "
    "images alone",
    "labelstudio/tests/data/test_export_json_min/data_repeater.json": "a task must have one image",
    "datumaro_tf_detection_api_dataset/tests/assets/tf_detection_api_dataset": "choose from test, train, val",
    "datumaro_kitti_dataset/tests/assets/kitti_dataset/kitti_raw/tracklet_labels.xml": "KITTI's tracklets",
    "datumaro_dota_dataset/tests/assets/dota_dataset/train/labelTxt/train_001.txt": "be the folder of the .txt files",
}


@pytest.mark.parametrize("sample", REFUSED)
def test_samples_that_are_refused_say_what_they_are(sample: str) -> None:
    with pytest.raises(InputError, match=re.escape(REFUSED[sample])):
        load_ground_truth(real("formats", *sample.split("/")))


KINDS = {
    "datumaro_dota_dataset": {"dota"},
    "datumaro_cvat_dataset": {"cvat"},
    "datumaro_datumaro_dataset": {"datumaro"},
    "datumaro_vott_json_dataset": {"vott", "coco"},
    "datumaro_tf_detection_api_dataset": {"tfrecord"},
    "datumaro_roboflow_dataset": {"createml", "tfrecord", "coco", "voc", "yolo", "dota"},
    "labelstudio": {"labelstudio", "coco", "voc"},
    "padilla100_gt_cvat_format": {"cvat"},
    "padilla100_gt_labelme_format": {"labelme"},
    "padilla100_gt_tfrecord_format": {"tfrecord"},
    "supervisely": {"supervisely", "coco"},
}
OURS = {
    "cvat",
    "labelme",
    "labelstudio",
    "datumaro",
    "supervisely",
    "sagemaker",
    "via",
    "vott",
    "createml",
    "bdd",
    "fiftyone",
}


@pytest.mark.long
def test_no_other_sample_is_taken_for_an_annotation_format() -> None:
    for sample in sorted(real("formats").iterdir()):
        paths = [
            path for path in sample.rglob("*") if path.is_dir() or path.suffix in (".json", ".xml", ".txt")
        ]
        formats = set()
        for path in paths[:60]:
            try:
                formats.add(detect_format(path)[0])
            except FileFormatError:
                continue
        allowed = KINDS.get(sample.name)
        if allowed is None:
            assert not formats & {*OURS, "tfrecord", "dota", "hrsc"}, (sample.name, formats)
            assert "text" not in formats or "dt_abs" in sample.name or "dets_class" in sample.name, (
                sample.name,
                formats,
            )
        else:
            assert formats <= {*allowed, "columns"} | ({"csv"} if "roboflow" in sample.name else set()), (
                formats
            )


def test_boxes_are_those_of_globox(tmp_path: Path) -> None:
    globox = pytest.importorskip("globox")
    path = write(tmp_path, "cvat")
    theirs = [box for each in globox.AnnotationSet.from_cvat(path) for box in each.boxes]
    assert [(box.label, [box.xmin, box.ymin, box.xmax, box.ymax]) for box in theirs] == BOXES
    folder = write(tmp_path, "labelme")
    theirs = [box for each in globox.AnnotationSet.from_labelme(folder) for box in each.boxes]
    corners = [(box.label, [box.xmin, box.ymin, box.xmax, box.ymax]) for box in theirs]
    assert corners == [(label, box) for _, label, box in objects(load_ground_truth(folder))]


@pytest.mark.parametrize(
    ("name", "file", "pattern", "new", "message"),
    [
        # Keys of the file, of a record, of a value in it, and of values of an object that may have any keys.
        ("labelme", "l/b.json", '"shapes"', '"x"', "LabelMe's JSON must have shapes. Got none in "),
        (
            *("createml", "createml.json", '"height"', '"x"'),
            "annotations[0].coordinates must have height. Got none in image 0 of ",
        ),
        (
            *("via", "via.json", '"shape_attributes"', '"x"'),
            "regions[0] must have shape_attributes. Got none in 'a.jpg123' of ",
        ),
        (
            "via",
            "via.json",
            '"filename": "b.c.jpg"',
            '"x": 1',
            "an image must have filename. Got none in 'b.c",
        ),
        (
            "via",
            "via.json",
            '"b.c.jpg", ',
            "7, ",
            "filename must be a string. Got an integer in 'b.c.jpg9' of ",
        ),
        (
            *("openlabel", "openlabel.json", '"val"', '"x"'),
            "objects['cat'].object_data.bbox[0] must have val. Got none in '0' of ",
        ),
        (
            *("datumaro", "datumaro.json", '"labels"', '"x"'),
            "Datumaro's JSON must have the names of classes in categories.label.labels. Got none in ",
        ),
        (
            *("edgeimpulse", "bounding_boxes.labels", '"boundingBoxes": .*', '"boundingBoxes": null}'),
            "a label file of Edge Impulse must be an object with boundingBoxes or files. Got neither in ",
        ),
        (
            *("fiftyone", "samples.json", '"filepath": "[^"]*"', '"filepath": 7'),
            "filepath must be a string or null. Got an integer in sample 0 of ",
        ),
        (
            "sagemaker",
            "output.manifest",
            '"source-ref"',
            '"x"',
            "must hold one value. Got another one at byte ",
        ),
        (
            "vertex csv",
            "automl.csv",
            "0.55",
            "abc",
            "corners must be numbers. Got '0.05,0.2,,,abc,0.7,,' in line 1",
        ),
    ],
)
def test_messages_name_the_place(
    name: str, file: str, pattern: str, new: str, message: str, tmp_path: Path
) -> None:
    path = write(tmp_path, name)
    text = (tmp_path / file).read_text()
    (tmp_path / file).write_text(re.sub(pattern, new, text, count=1, flags=re.DOTALL))
    with pytest.raises(FileFormatError, match=re.escape(message)):
        load_ground_truth(path)


def test_a_wrong_file_among_those_of_a_format_is_named(tmp_path: Path) -> None:
    folder = write(tmp_path, "darwin")
    first, second = sorted(folder.iterdir())[:2]
    first.write_text('{"a": 1}')
    with pytest.raises(FileFormatError, match=f"of the format darwin, of which {first.name} is not; correct"):
        load_ground_truth(folder)
    second.write_text('{"a": 1}')
    with pytest.raises(FileFormatError, match="a folder with JSON files"):
        load_ground_truth(folder)


def test_lists_in_lists_and_objects_of_lists(tmp_path: Path) -> None:
    truth = load(tmp_path, "cvat")
    one = {"score": 0.9, "label": "cat", "box": {"xmin": 1, "ymin": 1, "xmax": 9}}
    for content, place in (
        ({"a.jpg": [], "b.c.jpg": [one]}, "box must have ymax. Got none in detection 0 of 'b.c.jpg' of "),
        ([[], [one]], "box must have ymax. Got none in detection 0 of list 1 of "),
    ):
        path = dump(tmp_path / "p.json", content)
        with pytest.raises(FileFormatError, match=place):
            load_detections(path, truth, format="pipeline")


def test_one_of_a_kind_is_singular(tmp_path: Path) -> None:
    for count, words in ((1, "1 detection without label"), (2, "2 detections without label")):
        path = samples(tmp_path, ground_truth=[{**DETECTION, "label": None}] * count + [DETECTION])
        with pytest.warns(BoxscoreWarning, match=f"are objects: {words}"):
            load_ground_truth(path)
