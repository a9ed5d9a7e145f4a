"""Results in a file per class without the devkit's prefix, as darknet's ``valid -out ""`` writes them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import boxscore as bs
from boxscore.cli import main

BOXES = {
    ("a", "cat"): [10, 20, 100, 50],
    ("b", "cat"): [10, 20, 100, 50],
    ("a", "traffic light"): [30, 40, 20, 20],
}


def truth(folder: Path, names: dict[str, str]) -> Path:
    """Write ground truth; ``names`` are file names of the images a and b."""
    ids = {"a": 1, "b": 2}
    classes = {"cat": 1, "traffic light": 2}
    images = [{"id": ids[one], "file_name": name, "width": 200, "height": 100} for one, name in names.items()]
    annotations = [
        {"id": at + 1, "image_id": ids[image], "category_id": classes[name], "bbox": box}
        | {"area": box[2] * box[3], "iscrowd": 0}
        for at, ((image, name), box) in enumerate(BOXES.items())
    ]
    categories = [{"id": number, "name": name} for name, number in classes.items()]
    path = folder / "gt.json"
    path.write_text(json.dumps({"images": images, "annotations": annotations, "categories": categories}))
    return path


def results(folder: Path, stems: dict[str, str], *, further: dict[str, str] | None = None) -> Path:
    """Write a file per class, with the lines of images by their names in the results."""
    path = folder / "results"
    path.mkdir()
    texts: dict[str, str] = {}
    for (image, name), (x, y, w, h) in BOXES.items():
        texts[name] = texts.get(name, "") + f"{stems[image]} 0.9 {x} {y} {x + w} {y + h}\n"
    for name, text in (texts | (further or {})).items():
        (path / f"{name}.txt").write_text(text)
    return path


@pytest.mark.parametrize(
    ("names", "stems"),
    [
        ({"a": "a.jpg", "b": "b.jpg"}, {"a": "a", "b": "b"}),
        ({"a": "000001.jpg", "b": "000002.jpg"}, {"a": "000001", "b": "000002"}),
        ({"a": "a.jpg", "b": "b.jpg"}, {"a": "a.jpg", "b": "b.jpg"}),
    ],
)
@pytest.mark.parametrize("options", [[], ["--dt-box-format", "xyxy"], ["--protocol", "voc2012"]])
def test_file_names_are_classes(
    tmp_path: Path,
    names: dict[str, str],
    stems: dict[str, str],
    options: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    command = ["evaluate", str(truth(tmp_path, names)), str(results(tmp_path, stems)), *options]
    assert main(command) == 0
    shown = capsys.readouterr()
    assert "AP     1.0000 " in shown.out.replace("AP      ", "AP     ")
    assert "read as VOC results" in shown.err


@pytest.mark.filterwarnings("ignore:.*that the ground truth does not have")
def test_classes_that_the_ground_truth_lacks_are_left_out(tmp_path: Path) -> None:
    stems = {"a": "a", "b": "b"}
    path = results(tmp_path, stems, further={"zebra": "a 0.5 1 2 3 4\n", "horse": ""})
    objects = bs.load_ground_truth(truth(tmp_path, {one: f"{one}.jpg" for one in stems}))
    with pytest.warns(bs.BoxscoreWarning, match="read as VOC results"):
        table = bs.load_detections(path, objects)
    assert table.left_out == {"zebra": 1}
    np.testing.assert_array_equal(table.scores, [0.9] * 3)


def test_a_file_per_image_stays_one(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    """An image has the name of a class: the lines decide."""
    objects = bs.load_ground_truth(truth(tmp_path, {"a": "cat.jpg", "b": "b.jpg"}))
    folder = tmp_path / "dt"
    folder.mkdir()
    (folder / "cat.txt").write_text("cat 0.9 10 20 110 70\n")
    table = bs.load_detections(folder, objects, box_format="xyxy")
    assert table.images.names == ["cat.jpg", "b.jpg"]
    assert table.image.tolist() == [0]
    assert not recwarn.list
