"""Files of Google, Unity, IBM, Edge Impulse, Grounding DINO, OpenLABEL and keras-yolo3: what is peculiar to each."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore.data.vocabulary import Images
from boxscore.errors import BoxscoreWarning, FileFormatError, InputError
from boxscore.formats import detect_format, load_detections, load_ground_truth
from support.annotations import write

SIZES = {"a.jpg": (200, 100), "b.jpg": (200, 100)}


def dump(path: Path, content: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def lines(path: Path, *records: Any) -> Path:
    return dump(path, "".join(f"{json.dumps(record)}\n" for record in records))


def objects(table: boxscore.GroundTruth | boxscore.Detections) -> list[tuple[str, str, list[float]]]:
    return [
        (str(table.images.ids[image]), str(table.categories.names[category]), box.round(4).tolist())
        for image, category, box in zip(table.image, table.category, table.boxes, strict=True)
    ]


CAT = ("a", "cat", [10, 20, 110, 70])

# ---------------------------------------------------------------- the same numbers as COCO


@pytest.mark.parametrize(
    "name", ["via csv", "vertex", "vertex csv", "keras", "ibm", "unity", "odvg", "openlabel"]
)
def test_ap_is_that_of_the_same_boxes_in_coco(name: str, tmp_path: Path) -> None:
    options: Any = {"image_sizes": {"a": (200, 100), "b.c": (40, 30)}} if name[:3] in ("ibm", "ver") else {}
    truth = load_ground_truth(write(tmp_path, name), **options)
    images = [
        {"id": 1, "file_name": "a.jpg", "width": 200, "height": 100},
        {"id": 2, "file_name": "b.c.jpg", "width": 40, "height": 30},
    ]
    annotations = [
        {"id": n, "image_id": 1, "category_id": n, "bbox": box, "area": box[2] * box[3], "iscrowd": 0}
        for n, box in ((1, [10, 20, 100, 50]), (2, [30.5, 40, 20, 20]))
    ]
    categories = [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}]
    twin = {"images": images, "annotations": annotations, "categories": categories}
    coco = load_ground_truth(dump(tmp_path / "twin.json", twin))
    found = [
        {"image_id": image, "category_id": label, "bbox": box, "score": score}
        for image, label, box, score in (
            ("a.jpg", "cat", [13, 20, 100, 50], 0.9),
            ("a.jpg", "dog", [33, 43, 18, 19], 0.8),
            ("b.c.jpg", "dog", [1, 2, 3, 4], 0.95),
            ("a.jpg", "cat", [100, 10, 9, 9], 0.7),
        )
    ]
    path = dump(tmp_path / "found.json", found)
    values = [boxscore.evaluate(each, load_detections(path, each)).metrics["AP"] for each in (truth, coco)]
    assert values[0] == values[1]
    assert 0.1 < values[0] < 0.9


# ---------------------------------------------------------------- Google


def vertex(name: str, label: str = "cat", subset: str | None = None, **box: float) -> Any:
    content = {"imageGcsUri": f"gs://b/{name}", "boundingBoxAnnotations": [{"displayName": label, **box}]}
    key = "aiplatform.googleapis.com/ml_use"
    return content if subset is None else content | {"dataItemResourceLabels": {key: subset}}


def predicted(name: str, *boxes: list[float], **more: Any) -> Any:
    count = len(boxes)
    prediction = {"displayNames": ["cat"] * count, "confidences": [0.5] * count, "bboxes": list(boxes)}
    return {"instance": {"content": f"gs://b/{name}"}, "prediction": prediction | more}


def test_boxes_that_vertex_predicts_have_both_x_first(tmp_path: Path) -> None:
    path = lines(tmp_path / "p.jsonl", predicted("a.jpg", [0.05, 0.55, 0.2, 0.7]), predicted("b.jpg"))
    assert detect_format(path) == ("vertex", "predictions of Vertex AI")
    truth = load_ground_truth(lines(tmp_path / "t.jsonl", vertex("a.jpg", xMax=1, yMax=1)), image_sizes=SIZES)
    found = load_detections(path, truth)
    assert (objects(found), found.scores.tolist()) == ([CAT], [0.5])


def test_zeros_that_google_leaves_out(tmp_path: Path) -> None:
    path = lines(tmp_path / "t.jsonl", vertex("a.jpg", xMax=0.5, yMax=0.25))
    assert objects(load_ground_truth(path, image_sizes=SIZES)) == [("a", "cat", [0, 0, 100, 25])]


AUTOML = """\
TRAIN,gs://b/b.jpg,cat,0.05,0.2,,,0.55,0.7,,
TEST,gs://b/a.jpg,cat,0.05,0.7,,,0.55,0.2,,
VALIDATION,gs://b/c.jpg,,,,,,,,,
"""


def test_of_several_sets_of_google_test_is_read(tmp_path: Path) -> None:
    path = dump(tmp_path / "import.csv", AUTOML)
    with pytest.warns(
        BoxscoreWarning, match=re.escape("reading the split test; others: train (1), validation (1)")
    ):
        table = load_ground_truth(path, image_sizes=SIZES)
    assert objects(table) == [CAT]  # two opposite corners, in any order
    assert table.images.ids.tolist() == ["a"]
    assert objects(load_ground_truth(path, image_set="TRAIN", image_sizes=SIZES))[0][0] == "b"
    other = lines(
        tmp_path / "t.jsonl", vertex("a.jpg", subset="training"), vertex("b.jpg", subset="validation")
    )
    with pytest.raises(InputError, match="choose from train, validation"):
        load_ground_truth(other, image_sizes=SIZES)


def test_automl_without_a_set_or_with_a_local_path(tmp_path: Path) -> None:
    for number, line in enumerate(
        ["gs://b/a.jpg,cat,0.05,0.2,,,0.55,0.7,,", "TEST,a.jpg,cat,.05,.2,,,.55,.7,,"]
    ):
        path = dump(tmp_path / f"{number}.csv", line)
        assert objects(load_ground_truth(path, image_sizes=SIZES)) == [CAT]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "p.jsonl",
            predicted("a.jpg", [0.2, 0.1, 0.04, 0.7]),
            "a box must have xMin <= xMax and yMin <= yMax. Got 0.2, 0.1 and 0.04, 0.7",
        ),
        (
            "p.jsonl",
            predicted("a.jpg", [0.2, 0.1, 0.04, 0.7]),
            "the order in bboxes is xMin, xMax, yMin, yMax",
        ),
        ("p.jsonl", predicted("a.jpg", confidences=[0.5]), "Got 0, 1 and 0 in line 1 of"),
        (
            "t.jsonl",
            {"imageGcsUri": "gs://b/a.jpg", "classificationAnnotation": {"displayName": "cat"}},
            "an image must have boundingBoxAnnotations. Got the class of a whole image in line 1 of",
        ),
        (
            "t.csv",
            AUTOML + "TEST,gs://b/a.jpg,cat,0.05,x,,,1,1,,",
            "corners must be numbers. Got",
        ),
        ("t.csv", AUTOML + "a.jpg,cat", "a line must have a set, an address and a label, and eight cells"),
    ],
)
def test_what_is_wrong_with_a_file_of_google(name: str, content: Any, message: str, tmp_path: Path) -> None:
    path = dump(tmp_path / name, content)
    with pytest.raises(FileFormatError, match=re.escape(message)):
        load_ground_truth(path, image_sizes=SIZES)


def test_an_image_twice_in_a_prediction(tmp_path: Path) -> None:
    path = lines(tmp_path / "p.jsonl", predicted("a.jpg"), predicted("a.jpg"))
    with pytest.raises(
        FileFormatError,
        match=re.escape("an image must be in one line. Got 'gs://b/a.jpg' in line 1 in line 2"),
    ):
        load_ground_truth(path)


# ---------------------------------------------------------------- keras-yolo3


def test_a_path_with_spaces_and_numbers_without_a_list(tmp_path: Path) -> None:
    path = dump(tmp_path / "train.txt", "/my images/b.jpg\n/my images/a.jpg 10,20,110,70,2\n")
    table = load_ground_truth(path)
    assert table.images.ids.tolist() == ["a", "b"]
    assert objects(table) == [("a", "2", [10, 20, 110, 70])]
    with pytest.raises(InputError, match="a class number must be from 0 to 1, for the 2 names"):
        load_ground_truth(path, classes=["cat", "dog"])


def test_paths_alone_are_the_list_of_yolo(tmp_path: Path) -> None:
    path = dump(tmp_path / "train.txt", "images/a.jpg\nimages/b.jpg\n")
    assert detect_format(path)[0] == "yolo"


def test_a_broken_box_is_an_error_of_its_line(tmp_path: Path) -> None:
    path = dump(tmp_path / "train.txt", "a.jpg 10,20,110,70,2\n" * 1 + "\n" * 200 + "b.jpg 1,2,3,4\n")
    with pytest.raises(FileFormatError, match=re.escape("Got 'b.jpg 1,2,3,4' in line 202 of")):
        load_ground_truth(path)


# ---------------------------------------------------------------- IBM, Edge Impulse


def test_ibm_stays_in_fractions_until_sizes_are_known(tmp_path: Path) -> None:
    with pytest.warns(BoxscoreWarning, match="the image sizes are unknown"):
        assert load_ground_truth(write(tmp_path, "ibm")).units == "fractions"
    box = {"x": 0.1, "y": 0.2, "x2": 0.3, "label": "cat"}
    path = dump(
        tmp_path / "x.json", {"type": "localization", "labels": ["cat"], "annotations": {"a.jpg": [box]}}
    )
    with pytest.raises(
        FileFormatError, match=re.escape("a box must have x, y, x2 and y2. Got not all in image 'a.jpg'")
    ):
        load_ground_truth(path)


@pytest.mark.parametrize("name", ["ibm", "edgeimpulse"])
def test_images_without_a_box_come_from_the_list_of_sizes(name: str, tmp_path: Path) -> None:
    sizes = {"a.jpg": (200, 100), "b.c.jpg": (40, 30), "none.jpg": (40, 30)}
    with pytest.warns(BoxscoreWarning, match="1 image is listed only in"):
        table = load_ground_truth(write(tmp_path, name), image_sizes=sizes)
    assert table.images.ids.tolist() == ["a", "b.c", "none"]
    complete = load_ground_truth(write(tmp_path, "edgeimpulse files"), image_sizes=sizes)
    assert complete.images.ids.tolist() == ["a", "b.c"]


def test_the_sets_of_edge_impulse(tmp_path: Path) -> None:
    box = {"label": "cat", "x": 10, "y": 20, "width": 100, "height": 50}
    files = [
        {"path": f"{name}.jpg", "category": subset, "label": {"label": name}, "boundingBoxes": [box]}
        for name, subset in (("a", "testing"), ("b", "training"))
    ]
    path = dump(tmp_path / "info.labels", {"version": 1, "files": files})
    with pytest.warns(BoxscoreWarning, match=re.escape("reading the split testing; others: training (1)")):
        assert objects(load_ground_truth(path)) == [CAT]
    assert objects(load_ground_truth(path, image_set="training"))[0][0] == "b"


@pytest.mark.parametrize("more", [{}, {"boundingBoxes": []}])
def test_classes_of_whole_images_of_edge_impulse(tmp_path: Path, more: Any) -> None:
    files = [{"path": "a.jpg", "category": "testing", "label": {"type": "label", "label": "cat"}, **more}]
    with pytest.raises(FileFormatError, match="labels of whole images alone"):
        load_ground_truth(dump(tmp_path / "info.labels", {"version": 1, "files": files}))


# ---------------------------------------------------------------- VIA, VoTT


def test_a_csv_of_via_has_the_shapes_of_its_json(tmp_path: Path) -> None:
    polygon = {"name": "polygon", "all_points_x": [0, 4, 4], "all_points_y": [0, 0, 2]}
    cells = [json.dumps(one).replace('"', '""') for one in (polygon, {"class": "cat", "color": "red"})]
    head = (
        "#filename,file_size,file_attributes,region_count,region_id,region_shape_attributes,region_attributes"
    )
    path = dump(tmp_path / "v.csv", f'{head}\na.jpg,1,"{{}}",1,0,"{cells[0]}","{cells[1]}"\n')
    table = load_ground_truth(path)
    assert (objects(table), table.area.tolist()) == ([("a", "cat", [0, 0, 4, 2])], [4])
    broken = dump(tmp_path / "w.csv", f'{head}\na.jpg,1,"{{}}",1,0,"{{""name"":1}}","{{}}"\n')
    with pytest.raises(FileFormatError, match=r"name must be a string\. Got an integer in .*line 2"):
        load_ground_truth(broken)


def test_a_csv_of_via_without_a_class(tmp_path: Path) -> None:
    head = (
        "filename,file_size,file_attributes,region_count,region_id,region_shape_attributes,region_attributes"
    )
    shape = '"{""name"":""rect"",""x"":1,""y"":2,""width"":3,""height"":4}"'
    path = dump(tmp_path / "v.csv", f'{head}\na.jpg,1,"{{}}",1,0,{shape},"{{}}"\n')
    with pytest.raises(InputError, match="add an attribute with the class to the regions in VIA"):
        load_ground_truth(path)


def region(**more: Any) -> Any:
    asset = {"asset": {"name": "a.jpg", "size": {"width": 200, "height": 100}}}
    return {"assets": {"0": {**asset, "regions": [{"tags": ["cat"], **more}]}}, "tags": [{"name": "cat"}]}


def test_a_region_of_vott_without_a_bounding_box(tmp_path: Path) -> None:
    points = [{"x": x, "y": y} for x, y in ((10, 30), (60, 20), (110, 70))]
    path = dump(tmp_path / "v.json", region(type="POLYGON", points=points))
    assert objects(load_ground_truth(path)) == [CAT]
    with pytest.raises(
        FileFormatError, match=re.escape("a region must have a boundingBox or points. Got neither")
    ):
        load_ground_truth(dump(tmp_path / "w.json", region(type="POLYGON")))
    with pytest.raises(
        FileFormatError, match=re.escape("must have boxes or regions with a class. Got only 1 polyline")
    ):
        load_ground_truth(dump(tmp_path / "x.json", region(type="POLYLINE", points=points)))


# ---------------------------------------------------------------- Unity


def solo(folder: Path, *annotations: Any, sequence: int = 0) -> Path:
    capture = {"@type": "x", "filename": "step0.camera.png", "dimension": [200.0, 100.0]}
    content = {"frame": 0, "captures": [{**capture, "annotations": list(annotations)}]}
    dump(folder / f"sequence.{sequence}" / "step0.frame_data.json", content)
    return folder


def boxes2d(*values: Any, of: str = "BoundingBox2DAnnotation") -> Any:
    return {"@type": f"type.unity.com/unity.solo.{of}", "values": list(values)}


VALUE = {"labelId": 1, "labelName": "cat", "origin": [10, 20], "dimension": [100, 50]}


def test_images_of_solo_have_the_name_of_their_sequence(tmp_path: Path) -> None:
    path = solo(tmp_path / "solo", boxes2d(VALUE), boxes2d({"size": [1, 2, 3]}, of="BoundingBox3DAnnotation"))
    solo(path, boxes2d(), sequence=1)
    spec = [{"label_id": 2, "label_name": "cat"}, {"label_id": 1, "label_name": "dog"}]
    definitions = {"annotationDefinitions": [{"id": "b", **boxes2d(), "spec": spec}]}
    dump(path / "annotation_definitions.json", definitions)
    assert detect_format(path) == ("unity", "a folder of Unity's SOLO")
    table = load_ground_truth(path)
    assert table.images.ids.tolist() == ["sequence.0/step0.camera", "sequence.1/step0.camera"]
    assert table.images.sizes.tolist() == [[200, 100], [200, 100]]
    assert table.categories.names.tolist() == ["dog", "cat"]
    assert objects(table) == [("sequence.0/step0.camera", *CAT[1:])]
    assert objects(load_ground_truth(path / "sequence.0")) == [("step0.camera", *CAT[1:])]


def test_a_capture_with_two_sets_of_boxes_is_refused(tmp_path: Path) -> None:
    path = solo(tmp_path / "solo", boxes2d(VALUE), boxes2d(VALUE))
    with pytest.raises(
        FileFormatError, match=re.escape("a capture must have one annotation of 2D boxes. Got 2")
    ):
        load_ground_truth(path)
    path = solo(tmp_path / "other", boxes2d({"labelName": "cat", "origin": [1, 2]}))
    with pytest.raises(FileFormatError, match="a box must have a label, and origin and dimension"):
        load_ground_truth(path)


# ---------------------------------------------------------------- ODVG


def odvg(*instances: Any, **more: Any) -> Any:
    return {
        "filename": "a.jpg",
        "width": 200,
        "height": 100,
        "detection": {"instances": list(instances)},
        **more,
    }


BOX = [10, 20, 110, 70]


def test_numbers_of_odvg_are_named_by_the_label_map(tmp_path: Path) -> None:
    path = lines(tmp_path / "d.jsonl", odvg({"bbox": BOX, "label": 1}))
    with pytest.raises(FileFormatError, match=re.escape("put label_map.json next to the file")):
        load_ground_truth(path)
    assert objects(load_ground_truth(path, classes=["dog", "cat"])) == [CAT]
    dump(tmp_path / "label_map.json", {"0": "dog", "1": "cat"})
    table = load_ground_truth(path)
    assert (objects(table), table.categories.names.tolist()) == ([CAT], ["dog", "cat"])


def test_what_is_wrong_with_a_file_of_odvg(tmp_path: Path) -> None:
    pair = [{"bbox": BOX, "label": 0, "category": name} for name in ("cat", "dog")]
    with pytest.raises(
        FileFormatError, match=re.escape("a label must have one category in the whole file. Got 0: 'dog'")
    ):
        load_ground_truth(lines(tmp_path / "d.jsonl", odvg(*pair)))
    phrases = {
        "filename": "a.jpg",
        "grounding": {"caption": "a cat", "regions": [{"bbox": BOX, "phrase": "cat"}]},
    }
    with pytest.raises(FileFormatError, match="phrases of a caption are not classes"):
        load_ground_truth(lines(tmp_path / "g.jsonl", phrases))


def test_a_size_in_place_of_the_second_corner_of_odvg_is_refused(tmp_path: Path) -> None:
    for box in ([120, 20, 30, 40], [20, 60, 30, 40]):
        path = lines(tmp_path / "d.jsonl", odvg({"bbox": box, "category": "cat"}))
        with pytest.raises(InputError, match=r"line 1, instance 0 of .*are these x,y,w,h\?"):
            load_ground_truth(path)
        x, y, width, height = box
        table = load_ground_truth(path, box_format="xywh")
        assert objects(table) == [("a", "cat", [x, y, x + width, y + height])]


# ---------------------------------------------------------------- OpenLABEL


def openlabel(path: Path, *frames: Any, objects: Any = None, **data: Any) -> Path:
    known = {"1": {"name": "one", "type": "cat", **data}} if objects is None else objects
    content = {"objects": known, "frames": {str(number): frame for number, frame in enumerate(frames)}}
    return dump(path, {"openlabel": content})


def frame(*boxes: Any, **properties: Any) -> Any:
    return {"frame_properties": properties, "objects": {"1": {"object_data": {"bbox": list(boxes)}}}}


SHAPE = {"name": "shape", "val": [60, 45, 100, 50]}


def test_frames_of_openlabel_without_names_have_numbers(tmp_path: Path) -> None:
    path = openlabel(tmp_path / "o.json", frame(SHAPE), frame(SHAPE))
    with pytest.warns(BoxscoreWarning, match="images have the numbers of their frames"):
        table = load_ground_truth(path)
    assert table.images.ids.tolist() == [0, 1]
    stream = {"camera": {"stream_properties": {"uri": "images/a.jpg"}}}
    path = openlabel(tmp_path / "p.json", frame(SHAPE, streams=stream))
    assert objects(load_ground_truth(path)) == [CAT]
    with pytest.raises(
        FileFormatError, match=re.escape("a frame must name its image, as others do. Got no name in frame 1")
    ):
        load_ground_truth(openlabel(tmp_path / "q.json", frame(SHAPE, file_name="a.jpg"), frame(SHAPE)))


def test_openlabel_without_frames_is_one_image(tmp_path: Path) -> None:
    path = openlabel(tmp_path / "a.json", object_data={"bbox": [SHAPE]})
    assert objects(load_ground_truth(path)) == [CAT]


@pytest.mark.parametrize(
    ("boxes", "message"),
    [
        ([SHAPE, {**SHAPE, "name": "head"}], "an object of a frame must have one box. Got shape, head"),
        (
            [{**SHAPE, "coordinate_system": "left"}, {**SHAPE, "coordinate_system": "right"}],
            "a frame must have its boxes in one camera. Got left, right",
        ),
    ],
)
def test_boxes_of_openlabel_that_are_ambiguous(boxes: list[Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match=re.escape(message)):
        load_ground_truth(openlabel(tmp_path / "o.json", frame(*boxes, file_name="a.jpg")))


def test_shapes_of_openlabel_that_are_no_boxes(tmp_path: Path) -> None:
    cuboid = {"object_data": {"cuboid": [{"name": "c", "val": [0] * 10}]}}
    path = openlabel(
        tmp_path / "o.json", {"frame_properties": {"file_name": "a.jpg"}, "objects": {"1": cuboid}}
    )
    with pytest.raises(
        FileFormatError, match=re.escape("must have boxes or regions with a class. Got only 1 cuboid")
    ):
        load_ground_truth(path)
    path = openlabel(tmp_path / "p.json", frame(SHAPE, file_name="a.jpg"), objects={})
    with pytest.raises(FileFormatError, match="an object must be in objects, with its type"):
        load_ground_truth(path)
    assert np.isnan(
        load_ground_truth(openlabel(tmp_path / "a.json", object_data={"bbox": [SHAPE]})).images.sizes
    ).all()


# ---------------------------------------------------------------- Roboflow


def test_responses_on_resized_images_are_refused(tmp_path: Path) -> None:
    truth = boxscore.GroundTruth.from_arrays(
        ["a"],
        ["cat"],
        [CAT[2]],
        images=Images.build(["a", "b"], file_names=["a.jpg", "b.jpg"], sizes=[(200, 100)] * 2),
    )

    def respond(width: float, height: float, *, scale: float = 1) -> Path:
        center = {"x": 60 * scale, "y": 45 * scale, "width": 100 * scale, "height": 50 * scale}
        found = {"class": "cat", "confidence": 0.9, **center}
        # An image without predictions may have any size.
        size = {"width": width, "height": height}
        dump(tmp_path / "r" / "b.json", {"image": {"width": 7, "height": 7}, "predictions": []})
        return dump(tmp_path / "r" / "a.json", {"image": size, "predictions": [found]}).parent

    for path in (respond(200, 100), respond(201, 99)):
        assert objects(load_detections(path, truth)) == [CAT]
    path = respond(400, 200, scale=2)
    message = r"image 'a' must have the size that the ground truth states, 200 x 100\. Got 400 x 200"
    with pytest.raises(FileFormatError, match=message + r".*--network-input stretch:400x200"):
        load_detections(path, truth)
    assert objects(load_detections(path, truth, network_input="stretch:400x200")) == [CAT]


# ---------------------------------------------------------------- COCO with further keys


@pytest.mark.parametrize("key", ["captures", "openlabel", "sensor"])
@pytest.mark.parametrize("first", [True, False])
def test_coco_with_a_key_of_another_format_is_coco(key: str, *, first: bool, tmp_path: Path) -> None:
    coco = {
        "images": [{"id": 1, "file_name": "a.jpg", "width": 200, "height": 100}],
        "annotations": [
            {"id": 1, "image_id": 1, "category_id": 1, "bbox": [10, 20, 100, 50], "area": 5000, "iscrowd": 0}
        ],
        "categories": [{"id": 1, "name": "cat"}],
    }
    more: dict[str, Any] = {"captures": [], key: {} if key == "openlabel" else []}
    path = dump(tmp_path / "truth.json", {**more, **coco} if first else {**coco, **more})
    assert detect_format(path)[0] == "coco"
    table = load_ground_truth(path)
    assert table.boxes.tolist() == [CAT[2]]
