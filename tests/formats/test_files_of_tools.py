"""Files of annotation tools that boxscore does not read are named, with what to export instead."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import boxscore as bs
from boxscore.cli import main

ENCORD = {"label_hash": "x", "data_title": "a.jpg", "data_units": {"u": {"labels": {"objects": []}}}}
KILI = {"externalId": "a", "content": "a.jpg", "jsonResponse": {"JOB": {"annotations": []}}}
AZURE = {"image_url": "AmlDatastore://x/a.jpg", "label": [{"label": "cat", "topX": 0.1, "bottomX": 0.5}]}
PRODIGY = {"image": "a.jpg", "_input_hash": 5, "spans": [{"label": "cat", "points": [[1, 2], [3, 4]]}]}


BOX2D = {"x1": 10, "y1": 20, "x2": 110, "y2": 70}
POLYGON = {"type": "Polygon", "coordinates": [[[1, 2], [30, 2], [30, 40], [1, 2]]]}
CORNERS = [{"x": 0.05, "y": 0.2}, {"x": 0.55, "y": 0.7}]
UNREAD: dict[str, tuple[Any, str]] = {
    "dataloop": (
        {
            "filename": "/a.jpg",
            "annotations": [{"datasetId": "d", "itemId": "i", "type": "box", "label": "cat"}],
        },
        "an export of Dataloop: export the annotations as COCO",
    ),
    "hasty": (
        {
            "label_classes": [{"class_name": "cat"}],
            "images": [{"image_name": "a.jpg", "labels": [{"class_name": "cat", "bbox": [1, 2, 3, 4]}]}],
        },
        "an export of Hasty: export the annotations as COCO",
    ),
    "diffgram": (
        {"label_map": {"1": "cat"}, "11": {"instance_list": [{"type": "box", "x_min": 1}]}},
        "an export of Diffgram",
    ),
    "segments": (
        {"dataset": {"task_type": "bboxes", "samples": [{"labels": {"x": {"label_status": "LABELED"}}}]}},
        "a release of Segments.ai",
    ),
    "rectlabel": (
        {"filename": "a.jpg", "image_w_h": [2, 1], "objects": [{"label": "cat", "x_y_w_h": [1, 2, 3, 4]}]},
        "JSON of RectLabel",
    ),
    "cvat": (
        [
            {
                "version": 0,
                "tags": [],
                "shapes": [{"type": "rectangle", "occluded": False, "frame": 0}],
                "tracks": [],
            }
        ],
        "annotations of a CVAT backup: export the task as CVAT for images",
    ),
    "detectron2": (
        [{"file_name": "a.jpg", "image_id": 0, "annotations": [{"bbox_mode": 0, "category_id": 0}]}],
        "dataset dictionaries of detectron2: convert them with convert_to_coco_json",
    ),
    "mmdet2": ([{"filename": "a.jpg", "ann": {"bboxes": [[1, 2, 3, 4]], "labels": [0]}}], "MMDetection 2"),
    "mmdet3": ({"data_list": [{"instances": [{"bbox_label": 0}]}]}, "annotations of MMDetection 3"),
    "youtube-vis": (
        {"videos": [{"id": 1, "file_names": ["a/0.jpg"]}], "annotations": [{"id": 1, "bboxes": [None]}]},
        "annotations of YouTube-VIS: its metric compares tracks of masks",
    ),
    "youtube-vis results": (
        [{"video_id": 1, "score": 0.9, "category_id": 1, "segmentations": [None]}],
        "results of YouTube-VIS",
    ),
    "cityscapes": (
        {"imgHeight": 4, "imgWidth": 8, "objects": [{"label": "car", "polygon": [[1, 2], [3, 2], [3, 4]]}]},
        "one image of Cityscapes: pass the folder with *_gtFine_instanceIds.png",
    ),
    "citypersons": (
        {"imgHeight": 4, "imgWidth": 8, "objects": [{"bbox": [1, 2, 3, 4], "bboxVis": [1, 2, 3, 4]}]},
        "one image of CityPersons",
    ),
    "mapillary": ({"objects": [{"key": "1", "label": "object--car", "polygon": []}]}, "Mapillary Vistas"),
    "deepfashion2": (
        {"item1": {"bounding_box": [1, 2, 3, 4], "category_id": 1}, "pair_id": 1},
        "DeepFashion2: convert them with its deepfashion2_to_coco.py",
    ),
    "bdd": (
        {"name": "a", "frames": [{"timestamp": 1, "objects": [{"category": "car", "box2d": BOX2D}]}]},
        "BDD100K's labels of one video",
    ),
    "visual genome": (
        [{"image_id": 1, "objects": [{"synsets": [], "merged_object_ids": [], "names": ["cat"]}]}],
        "objects of Visual Genome",
    ),
    "nuimages": (
        [{"token": "a", "category_token": "b", "bbox": [1, 2, 3, 4], "sample_data_token": "s"}],
        "a table of nuImages: convert it to COCO JSON",
    ),
    "nuscenes": (
        [{"sample_token": "b", "instance_token": "i", "translation": [1, 2, 3]}],
        "a table of nuScenes",
    ),
    "argoverse": (
        [{"center": {"x": 1}, "track_label_uuid": "u", "label_class": "VEHICLE"}],
        "labels of Argoverse: boxscore evaluates boxes in images",
    ),
    "vcd": ({"vcd": {"objects": {"0": {"type": "car"}}}}, "VCD, which became OpenLABEL"),
    "qupath": (
        {"features": [{"geometry": POLYGON, "properties": {"objectType": "annotation"}}]},
        "GeoJSON of QuPath",
    ),
    "geojson": ({"features": [{"geometry": POLYGON, "properties": {}}]}, "this looks like GeoJSON:"),
    "rekognition": (
        {"Labels": [{"Name": "Cat", "Instances": [{"BoundingBox": {"Left": 0.1}}]}]},
        "a response of Amazon Rekognition: write JSON lines",
    ),
    "custom vision": (
        {"predictions": [{"probability": 0.9, "tagName": "cat", "boundingBox": {"left": 0.1}}]},
        "a response of Azure Custom Vision",
    ),
    "google": (
        {"localizedObjectAnnotations": [{"name": "Cat", "boundingPoly": {"normalizedVertices": CORNERS}}]},
        "a response of Google Cloud Vision",
    ),
    "clarifai": (
        {"regions": [{"region_info": {"bounding_box": {"top_row": 0.2}}, "data": {}}]},
        "a response of Clarifai",
    ),
    "openpose": ({"people": [{"pose_keypoints_2d": [1, 2, 0.9]}]}, "the output of OpenPose"),
}
"""The least file of a tool, as it is passed as ground truth or detections, and what is said."""


@pytest.mark.parametrize("name", UNREAD)
def test_a_file_of_a_known_tool_is_named_on_both_sides(tmp_path: Path, name: str) -> None:
    content, said = UNREAD[name]
    path = tmp_path / "x.json"
    path.write_text(json.dumps(content, indent=1))
    truth = bs.GroundTruth.from_arrays(["a.jpg"], ["cat"], [[1, 2, 30, 40]])
    for load in (bs.load_ground_truth, lambda file: bs.load_detections(file, truth)):
        with pytest.raises(bs.FileFormatError, match=re.escape(said)):
            load(path)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.roi", b"Iout\0\xe4\1\0", "a region of ImageJ"),
        ("a.feather", b"ARROW1\0\0", "a Feather or Arrow file; save it as Parquet"),
        ("a.tfrecord", b"\x10" + bytes(11) + b"\x0a\x04scene", "a TFRecord file without image/object"),
        ("a.pbtxt", b"item {\n  id: 1\n  name: 'cat'\n}\n", "a label map of TensorFlow"),
        (
            "a.mat",
            b"MATLAB 5.0 MAT-file" + bytes(99),
            "use GroundTruth.from_arrays or Detections.from_arrays",
        ),
        ("a.xml", b"<sequence><frame><target_list/></frame></sequence>", "XML of UA-DETRAC"),
        ("a.txt", b"0 2 Pedestrian 0 0 -2.5" + b" 1.5" * 12 + b"\n", "labels of KITTI tracking"),
        ("b.txt", b"0--Parade/a.jpg\n1\n345 211 4 4 2 0 0 0 2 0\n", "the text file of WIDER FACE"),
    ],
)
def test_a_file_that_is_not_json_is_named(tmp_path: Path, name: str, content: bytes, said: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(bs.FileFormatError, match=re.escape(said)):
        bs.load_ground_truth(tmp_path / name)


def test_converted_feather_is_read(tmp_path: Path) -> None:
    columns = {"image": ["a.jpg"], "class": ["cat"], "x1": [1], "y1": [2], "x2": [30], "y2": [40]}
    pd.DataFrame(columns).to_feather(tmp_path / "a.feather")
    pd.read_feather(tmp_path / "a.feather").to_parquet(tmp_path / "a.parquet")
    assert bs.load_ground_truth(tmp_path / "a.parquet").boxes.tolist() == [[1, 2, 30, 40]]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("encord.json", [ENCORD], "an export of Encord"),
        ("kili.json", [KILI], "an export of Kili"),
        ("prodigy.jsonl", PRODIGY, "an export of Prodigy"),
        ("azure.jsonl", AZURE, "an export of Azure Machine Learning; export the annotations as COCO"),
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
