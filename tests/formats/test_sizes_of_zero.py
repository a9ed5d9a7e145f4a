"""An image width or height of 0, which some programs write, is an unknown size in every format."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import boxscore as bs
from boxscore.cli import main
from boxscore.data.vocabulary import Images

BOX = [10, 20, 110, 70]


def coco(folder: Path, width: float, height: float) -> Path:
    path = folder / "gt.json"
    path.write_text(
        json.dumps(
            {
                "images": [{"id": 1, "file_name": "p0.jpg", "width": width, "height": height}],
                "categories": [{"id": 0, "name": "person"}],
                "annotations": [
                    {"id": 1, "image_id": 1, "category_id": 0, "bbox": [10, 20, 100, 50], "area": 5000}
                ],
            }
        )
    )
    return path


def voc(folder: Path, width: float, height: float) -> Path:
    (folder / "x").mkdir()
    (folder / "x" / "p0.xml").write_text(
        f"<annotation><filename>p0.jpg</filename><size><width>{width}</width><height>{height}</height></size>"
        "<object><name>person</name><bndbox><xmin>10</xmin><ymin>20</ymin><xmax>110</xmax><ymax>70</ymax>"
        "</bndbox></object></annotation>"
    )
    return folder / "x"


def csv(folder: Path, width: float, height: float) -> Path:
    path = folder / "gt.csv"
    path.write_text(
        "image,class,x1,y1,x2,y2,image_width,image_height\n"
        f"p0.jpg,person,{','.join(map(str, BOX))},{width},{height}\n"
    )
    return path


def json_lines(folder: Path, width: float, height: float) -> Path:
    path = folder / "gt.jsonl"
    record = {"image": "p0.jpg", "class": "person", **dict(zip(("x1", "y1", "x2", "y2"), BOX, strict=True))}
    path.write_text(json.dumps(record | {"image_width": width, "image_height": height}) + "\n")
    return path


def cvat(folder: Path, width: float, height: float) -> Path:
    path = folder / "annotations.xml"
    path.write_text(
        f'<annotations><version>1.1</version><image id="0" name="p0.jpg" width="{width}" height="{height}">'
        '<box label="person" xtl="10" ytl="20" xbr="110" ybr="70"/></image></annotations>'
    )
    return path


def labelme(folder: Path, width: float, height: float) -> Path:
    (folder / "lm").mkdir()
    shape = {"label": "person", "points": [[10, 20], [110, 70]], "shape_type": "rectangle"}
    content = {"shapes": [shape], "imagePath": "p0.jpg", "imageHeight": height, "imageWidth": width}
    (folder / "lm" / "p0.json").write_text(json.dumps(content))
    return folder / "lm"


@pytest.mark.parametrize("size", [(0, 0), (0, 100), (200, 0)])
@pytest.mark.parametrize("make", [coco, voc, csv, json_lines, cvat, labelme])
def test_fractions_of_an_unknown_size_are_refused(
    tmp_path: Path,
    make: Callable[[Path, float, float], Path],
    size: tuple[float, float],
    capsys: pytest.CaptureFixture[str],
) -> None:
    truth = make(tmp_path, *size)
    assert np.isnan(bs.load_ground_truth(truth).images.sizes).all()
    folder = tmp_path / "yolo"
    folder.mkdir()
    (folder / "p0.txt").write_text("0 0.3 0.45 0.5 0.5 0.9\n")
    (tmp_path / "names.txt").write_text("person\n")
    command = ["evaluate", str(truth), str(folder), "--dt-format", "yolo"]
    command += ["--dt-classes", str(tmp_path / "names.txt")]
    assert main(command) == 2
    assert re.search("known size.*--image-sizes", capsys.readouterr().err)
    assert main([*command, "--image-sizes", "200x100"]) == 0
    assert "\nAP      1.0000 " in capsys.readouterr().out


@pytest.mark.parametrize("make", [coco, voc, csv, json_lines, cvat, labelme])
def test_pixels_need_no_size(tmp_path: Path, make: Callable[[Path, float, float], Path]) -> None:
    (tmp_path / "dt.csv").write_text("image,class,score,x1,y1,x2,y2\np0.jpg,person,0.9,10,20,110,70\n")
    assert bs.evaluate(make(tmp_path, 0, 0), tmp_path / "dt.csv")["AP"] == pytest.approx(1.0)


def test_other_forms_of_fractions_say_what_to_type(tmp_path: Path) -> None:
    detection = {"image_id": 1, "category_id": 0, "bbox": [0.05, 0.2, 0.5, 0.5], "score": 0.9}
    (tmp_path / "dt.json").write_text(json.dumps([detection]))
    truth = bs.load_ground_truth(coco(tmp_path, 0, 0))
    with pytest.raises(bs.InputError, match=r"known size.*--image-sizes"):
        bs.load_detections(tmp_path / "dt.json", truth, box_format="xywhn")


def test_arrays_and_frames() -> None:
    """One unknown side makes the size unknown; the others stay as they are."""
    right = [[np.nan, np.nan], [200, 100], [np.nan, np.nan]]
    images = Images.build([1, 2, 3], sizes=[[0, 0], [200, 100], [0, 100]])
    np.testing.assert_array_equal(images.sizes, right)
    frame = pd.DataFrame({"image_id": [1, 2, 3], "width": [0, 200, 0], "height": [0, 100, 100]})
    boxes = pd.DataFrame([[1, "person", *BOX]], columns=["image_id", "class", "x1", "y1", "x2", "y2"])
    np.testing.assert_array_equal(bs.GroundTruth.from_pandas(boxes, images=frame).images.sizes, right)
