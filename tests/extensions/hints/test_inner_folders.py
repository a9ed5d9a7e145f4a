"""Folders of labels inside a folder of labels: never left out without a word."""

from __future__ import annotations

import json
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import boxscore
from boxscore import BoxscoreWarning, Detections
from support.running import Run

FORMATS = ("yolo", "darknet", "text", "visdrone")
LINES = {
    "yolo": "0 0.1 0.1 0.2 0.2 0.9\n",
    "darknet": "0 0.9 0.1 0.1 0.2 0.2\n",
    "text": "cat 0.9 50 50 70 70\n",
    "visdrone": "0,0,20,20,0.9,1,0,0\n",
}
XML = (
    "<annotation><filename>{0}.jpg</filename><size><width>100</width><height>100</height></size><object>"
    "<name>cat</name><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>20</xmax><ymax>20</ymax></bndbox></object></annotation>"
)
DOTA = "0 0 20 0 20 20 0 20 cat 0\n"
CSV = ", or combine them in one CSV file with images named 'cam1/0001'"


def _truth(folder: Path, *names: str) -> Path:
    boxes = [[0, 0, 20, 20], [50, 50, 20, 20]]
    content = {
        "images": [
            {"id": at, "width": 100, "height": 100, "file_name": f"{name}.jpg"}
            for at, name in enumerate(names)
        ],
        "categories": [{"id": 1, "name": "cat"}],
        "annotations": [
            {"id": at + 1, "image_id": at, "category_id": 1, "bbox": boxes[at % 2], "area": 400, "iscrowd": 0}
            for at in range(len(names))
        ],
    }
    (folder / "gt.json").write_text(json.dumps(content))
    return folder / "gt.json"


def _written(folder: Path, texts: dict[str, str]) -> Path:
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def _said(caught: list[warnings.WarningMessage]) -> list[str]:
    return [str(one.message) for one in caught if "directly in this folder" in str(one.message)]


def _message(folder: Path, advice: str = CSV, inner: str = "folder cam1") -> str:
    return (
        f"{folder}: read only the files directly in this folder, not those in its {inner}; "
        f"pass the folder to read{advice}."
    )


@pytest.mark.parametrize("name", FORMATS)
def test_predictions_in_folders_beside_the_files_that_are_read_are_said(name: str, tmp_path: Path) -> None:
    truth = boxscore.load_ground_truth(_truth(tmp_path, "0002", "cam1/0001"))
    texts = {"0002.txt": LINES[name], "cam1/0001.txt": LINES[name], "classes.txt": "cat\n"}
    if name == "visdrone":
        del texts["classes.txt"]
        truth = boxscore.load_ground_truth(_written(tmp_path / "truth", {"0002.txt": "0,0,20,20,1,1,0,0\n"}))
    folder = _written(tmp_path / "dt", texts)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        detections = boxscore.load_detections(folder, truth, format=name)
    assert len(detections) == 1
    assert _said(caught) == [_message(folder)]


@pytest.mark.parametrize(
    ("texts", "inside", "advice"),
    [
        ({"0001.xml": XML.format("0001"), "cam1/0001.xml": XML.format("0001")}, ".", CSV),
        (
            {"Annotations/0001.xml": XML.format("0001"), "Annotations/cam1/0001.xml": XML.format("0001")},
            "Annotations",
            CSV,
        ),
        ({"0001.txt": DOTA, "cam1/0001.txt": DOTA}, ".", CSV),
        ({"labelTxt/0001.txt": DOTA, "labelTxt/cam1/0001.txt": DOTA}, "labelTxt", CSV),
        ({"0001.txt": "cat 60 60 80 80\n", "cam1/0001.txt": "cat 60 60 80 80\n"}, ".", CSV),
        ({"0001.txt": "0,0,20,20,1,1,0,0\n", "cam1/0001.txt": "0,0,20,20,1,1,0,0\n"}, ".", CSV),
    ],
)
def test_ground_truth_in_folders_beside_the_files_that_are_read_is_said(
    texts: dict[str, str], inside: str, advice: str, tmp_path: Path
) -> None:
    folder = _written(tmp_path / "gt", texts)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        boxscore.load_ground_truth(folder, image_sizes="100x100" if "cat 60" in str(texts) else None)
    assert _said(caught) == [_message(folder / inside, advice)]


@pytest.mark.parametrize(
    ("file", "line"),
    [("Task2_cat.txt", "0001 0.9 0 0 20 20\n"), ("comp4_det_test_cat.txt", "0001 0.9 0 0 20 20\n")],
)
def test_results_files_in_folders_beside_those_that_are_read_are_said(
    file: str, line: str, tmp_path: Path
) -> None:
    truth = boxscore.load_ground_truth(_truth(tmp_path, "0001"))
    folder = _written(tmp_path / "dt", {file: line, f"old/{file}": line, f"a/new/{file}": line})
    with pytest.warns(BoxscoreWarning) as caught:
        assert len(boxscore.load_detections(folder, truth)) == 1
    assert _said([*caught]) == [_message(folder, "", "folders a/new, old")]


def test_strict_refuses_predictions_that_are_left_out(tmp_path: Path, run: Run) -> None:
    truth = _truth(tmp_path, "0001", "cam1/0002")
    folder = _written(
        tmp_path / "dt", {"0001.txt": LINES["yolo"], "cam1/0002.txt": LINES["yolo"], "classes.txt": "cat"}
    )
    assert "not those in its folder cam1" in " ".join(
        run.error("evaluate", truth, folder, "--strict").split()
    )


def test_folders_that_hold_something_else_are_not_spoken_of(tmp_path: Path) -> None:
    truth = boxscore.load_ground_truth(_truth(tmp_path, "0001"))
    texts = {
        "0001.txt": LINES["yolo"],
        "classes.txt": "cat",
        "log/run.txt": "epoch 1 of 3\n",
        "plots/a.csv": "x\n",
    }
    folder = _written(tmp_path / "dt", texts)
    (folder / "link").symlink_to(folder)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert isinstance(boxscore.load_detections(folder, truth), Detections)


BOXES = {"cam1/0001": "0 0 20 20", "cam2/0001": "50 50 70 70"}
YOLO = {"cam1/0001": "0.1 0.1 0.2 0.2", "cam2/0001": "0.6 0.6 0.2 0.2"}


def _predictions(folder: Path, name: str, prefix: str = "", *, classes: bool = True) -> Path:
    """Write the two predictions of the ground truth, which are right, in folders of their own."""
    lines = {
        "text": {image: f"cat 0.9 {box}\n" for image, box in BOXES.items()},
        "yolo": {image: f"0 {box} 0.9\n" for image, box in YOLO.items()},
        "darknet": {image: f"0 0.9 {box}\n" for image, box in YOLO.items()},
    }[name]
    texts = {f"{prefix}{image}.txt": line for image, line in lines.items()}
    return _written(folder, texts | ({f"{prefix}classes.txt": "cat\n"} if classes and name != "text" else {}))


@pytest.mark.parametrize("prefix", ["", "labels/", "detections/"])
@pytest.mark.parametrize("name", ["text", "yolo", "darknet"])
def test_folders_that_images_lie_in_are_read_as_one_set(
    name: str, prefix: str, tmp_path: Path, run: Run
) -> None:
    truth = _truth(tmp_path, "cam1/0001", "cam2/0001")
    (tmp_path / "dt.csv").write_text(
        "image,class,x1,y1,x2,y2,score\n"
        + "".join(f"{image},cat,{box.replace(' ', ',')},0.9\n" for image, box in BOXES.items())
    )
    expected = run("evaluate", truth, tmp_path / "dt.csv", "--strict").out
    assert "AP      1.0000 " in expected
    folder = _predictions(tmp_path / "dt", name, prefix)
    options = ["--dt-classes", str(folder / prefix / "classes.txt")] if name != "text" else []
    assert run("evaluate", truth, folder, "--strict", *options).out == expected
    detections = boxscore.load_detections(
        folder, truth_table := boxscore.load_ground_truth(truth), format=name
    )
    assert [truth_table.images.file_names[row] for row in detections.image] == [
        "cam1/0001.jpg",
        "cam2/0001.jpg",
    ]
    assert detections.boxes.tolist() == [[0, 0, 20, 20], [50, 50, 70, 70]]


@pytest.mark.parametrize("name", ["text", "yolo"])
@pytest.mark.parametrize(
    "images", [("0001", "0002"), ("exp1/0001", "b/0001"), ("x/cam1/0001", "y/cam2/0001")]
)
def test_runs_side_by_side_are_not_one_set(name: str, images: tuple[str, str], tmp_path: Path) -> None:
    truth = boxscore.load_ground_truth(_truth(tmp_path, *images))
    folder = _predictions(tmp_path / "dt", name)
    if "x/" in images[0]:
        assert len(boxscore.load_detections(folder, truth)) == 2  # folders of the images, below others
        return
    with pytest.raises(boxscore.FileFormatError) as refused:
        boxscore.load_detections(folder, truth)
    assert str(refused.value) == (
        f"{folder} must be one folder of label files, or contain folders that match images of the ground truth. Got "
        f"cam1, cam2, which match no image; pass one of {folder / 'cam1'}, {folder / 'cam2'}; if they are parts "
        "of one run, move their files to one folder."
    )


def test_one_folder_that_no_image_lies_in_is_enough_to_refuse(tmp_path: Path) -> None:
    truth = boxscore.load_ground_truth(_truth(tmp_path, "cam1/0001", "cam3/0001"))
    folder = _predictions(tmp_path / "dt", "text")
    with pytest.raises(boxscore.FileFormatError, match=r"Got cam2, which match no image; pass one of "):
        boxscore.load_detections(folder, truth)


def test_two_runs_of_the_same_cameras_are_not_one_set(tmp_path: Path) -> None:
    truth = boxscore.load_ground_truth(_truth(tmp_path, "cam1/0001", "cam2/0001"))
    for experiment in ("exp1/", "exp2/"):
        _predictions(tmp_path / "dt", "text", experiment)
    with pytest.raises(
        boxscore.FileFormatError, match=r"Got exp1/cam1, exp1/cam2, exp2/cam1, exp2/cam2, which match"
    ):
        boxscore.load_detections(tmp_path / "dt", truth)


def test_an_empty_folder_and_deep_ones_are_part_of_the_set(tmp_path: Path) -> None:
    truth = boxscore.load_ground_truth(_truth(tmp_path, "cam1/0001", "cam2/0001", "cam3/left/0001"))
    folder = _predictions(tmp_path / "dt", "yolo")
    _written(
        folder,
        {
            "cam1/0007.txt": "0 0.1 0.1 0.2 0.2 0.8\n",
            "cam1/0002.txt": "",
            "cam3/left/0001.txt": "0 0.1 0.1 0.2 0.2 0.8\n",
            "cam3/classes.txt": "",
        },
    )
    with pytest.raises(boxscore.InputError, match=r"'cam1/0007'"):
        boxscore.load_detections(folder, truth)
    (folder / "cam1" / "0007.txt").unlink()
    detections = boxscore.load_detections(folder, truth)
    assert (detections.image.tolist(), detections.scores.tolist()) == ([0, 1, 2], [0.9, 0.9, 0.8])


def test_class_lists_of_folders_that_are_one_set_must_be_equal(tmp_path: Path) -> None:
    truth = boxscore.load_ground_truth(_truth(tmp_path, "cam1/0001", "cam2/0001"))
    folder = _predictions(tmp_path / "dt", "yolo", classes=False)
    _written(folder, {"cam1/classes.txt": "cat\n", "cam2/classes.txt": "cat\n"})
    assert len(boxscore.load_detections(folder, truth)) == 2
    _written(folder, {"cam2/classes.txt": "dog\ncat\n"})
    with pytest.raises(boxscore.InputError) as refused:
        boxscore.load_detections(folder, truth)
    assert str(refused.value) == (
        f"the class lists of folders that are read as one must be equal. Got those in {folder / 'cam1'} "
        f"and {folder / 'cam2'}, which differ; pass a common class list with --dt-classes, or one folder."
    )
    assert len(boxscore.load_detections(folder, truth, classes=["cat"])) == 2


def test_folders_of_predictions_are_read_by_a_class_map(tmp_path: Path) -> None:
    truth = boxscore.load_ground_truth(_truth(tmp_path, "cam1/0001", "cam2/0001"))
    folder = _predictions(tmp_path / "dt", "yolo", classes=False)
    assert len(boxscore.load_detections(folder, truth, class_map={0: "cat"})) == 2


@pytest.mark.long
@settings(max_examples=10, deadline=None)
@given(st.lists(st.from_regex(r"[ab](/[ab]){0,2}/[01]", fullmatch=True), min_size=1, max_size=6, unique=True))
def test_folders_give_what_a_csv_file_gives(names: list[str]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        truth = boxscore.load_ground_truth(_truth(folder, *names))
        boxes = {image: f"{at} {at} {at + 60} {at + 60}" for at, image in enumerate(names)}
        dt = _written(folder / "dt", {f"{image}.txt": f"cat 0.9 {box}\n" for image, box in boxes.items()})
        rows = "".join(f"{image},cat,{box.replace(' ', ',')},0.9\n" for image, box in boxes.items())
        (folder / "dt.csv").write_text(f"image,class,x1,y1,x2,y2,score\n{rows}")
        expected = boxscore.load_detections(folder / "dt.csv", truth)
        detections = boxscore.load_detections(dt, truth, format="text", box_format="xyxy")
    order = np.argsort(expected.image)
    assert sorted(expected.image.tolist()) == list(range(len(names)))
    assert detections.boxes[np.argsort(detections.image)].tolist() == expected.boxes[order].tolist()
