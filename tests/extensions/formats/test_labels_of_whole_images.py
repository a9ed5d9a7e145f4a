"""A file with labels of whole images alone, a classification data set, is refused in every format."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import boxscore as bs

BOX = (10, 20, 110, 70)


def cvat(folder: Path, label: str, boxes: bool) -> Path:
    sides = 'xtl="10" ytl="20" xbr="110" ybr="70"'
    box = f'<box label="cat" {sides}/>' if boxes else ""
    path = folder / "annotations.xml"
    path.write_text(
        '<annotations><version>1.1</version><image id="0" name="a.jpg" width="200" height="100">'
        f'<tag label="{label}"/>{box}</image></annotations>'
    )
    return path


def labelme(folder: Path, label: str, boxes: bool) -> Path:
    (folder / "lm").mkdir()
    shape = {"label": "cat", "points": [BOX[:2], BOX[2:]], "shape_type": "rectangle"}
    content = {"flags": {label: True, "other": False}, "shapes": [shape] * boxes, "imagePath": "a.jpg"}
    return written(folder / "lm" / "a.json", content).parent


def label_studio(folder: Path, label: str, boxes: bool) -> Path:
    choices = {"type": "choices", "from_name": "c", "to_name": "image", "value": {"choices": [label]}}
    value = {"x": 5, "y": 20, "width": 50, "height": 50, "rectanglelabels": ["cat"]}
    box = {"type": "rectanglelabels", "to_name": "image", "value": value}
    box |= {"original_width": 200, "original_height": 100}
    result = [choices, *[box] * boxes]
    task = {"id": 1, "data": {"image": "/data/a.jpg"}, "annotations": [{"id": 1, "result": result}]}
    return written(folder / "ls.json", [task])


def via(folder: Path, label: str, boxes: bool) -> Path:
    shape = {"name": "rect", "x": 10, "y": 20, "width": 100, "height": 50}
    region = {"shape_attributes": shape, "region_attributes": {"label": "cat"}}
    image = {"filename": "a.jpg", "size": 1, "regions": [region] * boxes}
    return written(folder / "via.json", {"a.jpg1": image | {"file_attributes": {"kind": label}}})


def sagemaker(folder: Path, label: str, boxes: bool) -> Path:
    kind = {"class-name": label, "type": "groundtruth/image-classification", "human-annotated": "yes"}
    line: dict[str, Any] = {"source-ref": "s3://b/a.jpg", "label": 1, "label-metadata": kind}
    if boxes:
        box = {"class_id": 0, "left": 10, "top": 20, "width": 100, "height": 50}
        line["boxes"] = {"annotations": [box], "image_size": [{"width": 200, "height": 100}]}
        line["boxes-metadata"] = {"class-map": {"0": "cat"}}
    return written(folder / "output.manifest", line)


def datumaro(folder: Path, label: str, boxes: bool) -> Path:
    given = [{"type": "label", "label_id": 1}]
    given += [{"type": "bbox", "label_id": 0, "bbox": [10, 20, 100, 50]}] * boxes
    categories = {"label": {"labels": [{"name": "cat"}, {"name": label}]}}
    return written(
        folder / "d.json", {"categories": categories, "items": [{"id": "a", "annotations": given}]}
    )


def supervisely(folder: Path, label: str, boxes: bool) -> Path:
    (folder / "set" / "ann").mkdir(parents=True)
    box = {"classTitle": "cat", "geometryType": "rectangle", "points": {"exterior": [[10, 20], [109, 69]]}}
    content = {"size": {"width": 200, "height": 100}, "tags": [{"name": label}], "objects": [box] * boxes}
    return written(folder / "set" / "ann" / "a.jpg.json", content).parents[1]


def fiftyone(folder: Path, label: str, boxes: bool) -> Path:
    sample: dict[str, Any] = {"filepath": "/x/a.jpg", "metadata": {"width": 200, "height": 100}}
    sample |= {label: {"_cls": "Classification", "label": "x"}}
    if boxes:
        box = {"label": "cat", "bounding_box": [0.05, 0.2, 0.5, 0.5]}
        sample["ground_truth"] = {"detections": [box]}
    return written(folder / "samples.json", {"samples": [sample]})


def written(path: Path, content: object) -> Path:
    path.write_text(json.dumps(content))
    return path


FORMATS = [cvat, labelme, label_studio, via, sagemaker, datumaro, supervisely, fiftyone]


@pytest.mark.parametrize("make", FORMATS)
def test_labels_of_whole_images_alone_are_refused(
    tmp_path: Path, make: Callable[[Path, str, bool], Path]
) -> None:
    path = make(tmp_path, "Cardinal", False)
    with pytest.raises(bs.InputError, match=r"labels of whole images alone \('Cardinal'\)"):
        bs.load_ground_truth(path)


@pytest.mark.parametrize("make", FORMATS)
@pytest.mark.filterwarnings("ignore:.*left out, because only boxes")
def test_labels_of_whole_images_next_to_boxes_are_left_out(
    tmp_path: Path, make: Callable[[Path, str, bool], Path]
) -> None:
    table = bs.load_ground_truth(make(tmp_path, "Cardinal", True))
    assert table.categories.names[table.category].tolist() == ["cat"]


def test_images_without_objects_and_without_labels_are_no_classification(tmp_path: Path) -> None:
    content = {"flags": {"blurred": False}, "shapes": [], "imagePath": "a.jpg", "imageData": None}
    assert len(bs.load_ground_truth(written(tmp_path / "a.json", content))) == 0
