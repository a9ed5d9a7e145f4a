"""What is written is read again, under names that folders of files make hard; what would not be, is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from boxscore import InputError, evaluate, load_detections, load_ground_truth, save_as
from support.running import Run


def data(folder: Path, *names: str) -> tuple[Path, Path]:
    """Write one object and one detection, at the same place, in each image."""
    box = [10, 10, 30, 30]
    images = [
        {"id": row, "width": 100, "height": 100, "file_name": name} for row, name in enumerate(names, start=1)
    ]
    common = [{"image_id": image["id"], "category_id": 1, "bbox": box} for image in images]
    truth = {
        "images": images,
        "annotations": [{**row, "id": row["image_id"], "area": 900, "iscrowd": 0} for row in common],
        "categories": [{"id": 1, "name": "cat"}],
    }
    (folder / "gt.json").write_text(json.dumps(truth))
    (folder / "dt.json").write_text(json.dumps([{**row, "score": 0.5} for row in common]))
    return folder / "gt.json", folder / "dt.json"


@pytest.mark.parametrize("form", ["yolo", "darknet"])
def test_where_the_confidence_is(form: str, tmp_path: Path) -> None:
    """``.5`` and a box of fractions: the lines alone fit both forms, and did so for ordinary names."""
    truth, results = data(tmp_path, "a.jpg", "b.jpg")
    table = load_ground_truth(truth)
    save_as(load_detections(results, table), tmp_path / "out", format=form)
    again = load_detections(tmp_path / "out", table)
    assert again.scores.tolist() == [0.5, 0.5]
    assert evaluate(table, again).metrics["AP"] == 1
    (tmp_path / "out" / "labels" / "notes.boxscore.txt").unlink()
    with pytest.raises(InputError, match="must be declared as last or second"):
        load_detections(tmp_path / "out", table)


@pytest.mark.filterwarnings("ignore:.*extend outside their image")
def test_a_note_that_the_numbers_rule_out(tmp_path: Path) -> None:
    """Labels that were put beside it later decide by themselves."""
    truth, results = data(tmp_path, "a.jpg")
    table = load_ground_truth(truth)
    save_as(load_detections(results, table), tmp_path / "out", format="darknet")
    (tmp_path / "out" / "labels" / "a.txt").write_text("0 -0.0001 0.25 0.3 0.3 0.5\n")
    assert load_detections(tmp_path / "out", table).scores.tolist() == [0.5]


@pytest.mark.parametrize(
    ("name", "form", "side", "message"),
    [
        (
            ".b.jpg",
            "yolo",
            "gt",
            "an image's name must not begin with a dot: hidden label files are not read. Got '.b'.",
        ),
        (
            "classes.jpg",
            "darknet",
            "dt",
            "an image's name must not be that of classes.txt, which is written. Got 'classes'.",
        ),
        (
            "a .jpg",
            "voc",
            "gt",
            "an image must not start or end with a space (without its extension) if a file lists it. "
            "Got 'a ' in {gt}.",
        ),
        (
            "a .jpg",
            "voc",
            "dt",
            "an image must not start or end with a space (without its extension) if a file lists it. "
            "Got 'a ' in {dt}.",
        ),
        (
            "a .jpg",
            "dota",
            "dt",
            "an image must not start or end with a space (without its extension) if a file lists it. "
            "Got 'a ' in {dt}.",
        ),
    ],
)
def test_names_that_are_not_written(
    name: str, form: str, side: str, message: str, tmp_path: Path, run: Run
) -> None:
    truth, results = data(tmp_path, name, "b.jpg")
    words = ["convert", str(truth), "--output", str(tmp_path / "out"), "--to", form, "--lossy", "-q"]
    assert (
        run.error(*words, *(["--dt", str(results)] if side == "dt" else []))
        == f"boxscore: error: {message.format(gt=truth, dt=results)}\n"
    )
    assert not (tmp_path / "out").exists()


def test_corners_whose_area_is_no_number_are_refused_in_one_line(
    tmp_path: Path, run: Run, recwarn: pytest.WarningsRecorder
) -> None:
    corners = {"one": "1 1 5 1 5 5 1 5", "two": "1 1 1 1 5 1e999 5 1e308", "three": "1 1 5 1 5 1e308 1 1e308"}
    for name, numbers in corners.items():
        (tmp_path / f"{name}.txt").write_text(f"{numbers} plane 0\n")
    assert run.error("stats", tmp_path).count("\n") == 1
    assert not recwarn.list


def test_slices_of_a_height_that_is_subnormal(
    tmp_path: Path, run: Run, recwarn: pytest.WarningsRecorder
) -> None:
    truth, results = data(tmp_path, "a.jpg")
    truth.write_text(truth.read_text().replace("10, 10, 30, 30]", "10, 10, 30, 5e-324]"))
    assert run("slices", truth, results, "--by", "aspect_ratio", "-q").err == ""
    assert not recwarn.list
