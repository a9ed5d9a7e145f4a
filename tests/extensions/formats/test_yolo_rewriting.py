"""What `nms` and `fuse` write for YOLO predictions, and in another format than that of the input."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore import load_detections, load_ground_truth
from support.running import Run

LINES = {
    "a": b"2 0.50 0.5 0.40 0.4 0.9\r\n\r\n2  0.51 0.5 0.4 0.4\t0.7\r\n0 0.2 0.2 0.1 0.1 0.300\r\n",
    "b": b"\xef\xbb\xbf5 0.5 0.5 0.2 0.2 0.5\n5 0.5 0.5 0.2 0.2 0.60",
    "c": b"",
}
NAMES = [f"class {number}" for number in range(6)]
FOUND = {"image_id": 7, "category_id": 1, "bbox": [1, 2, 3, 4], "score": 0.5}


@pytest.fixture
def truth(tmp_path: Path) -> boxscore.GroundTruth:
    images = [
        {"id": n, "file_name": f"{name}.jpg", "width": 200, "height": 100} for n, name in enumerate("abc", 7)
    ]
    box = {"id": 1, "image_id": 7, "category_id": 3, "bbox": [1, 1, 9, 9], "area": 81, "iscrowd": 0}
    content = {
        "images": images,
        "annotations": [box],
        "categories": [{"id": n + 1, "name": name} for n, name in enumerate(NAMES)],
    }
    (tmp_path / "truth.json").write_text(json.dumps(content))
    return load_ground_truth(tmp_path / "truth.json")


def written(folder: Path, lines: dict[str, bytes] = LINES, **more: str) -> Path:
    (folder / "labels").mkdir(parents=True)
    for name, content in lines.items():
        (folder / "labels" / f"{name}.txt").write_bytes(content)
    for name, text in more.items():
        (folder / "labels" / f"{name}.txt").write_text(text)
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def rows(path: Path, truth: boxscore.GroundTruth, **options: Any) -> list[tuple[Any, ...]]:
    table = load_detections(path, truth, **options)
    columns = (table.image, table.category, table.scores.round(12), table.boxes.round(9))
    return sorted(zip(*(column.tolist() for column in columns), strict=True))


def test_lines_are_kept_byte_for_byte_in_files_of_the_same_names(tmp_path: Path, run: Run) -> None:
    path = written(tmp_path / "exp", classes="\n".join("uvwxyz"))
    run("nms", "--dt", path, "--output", tmp_path / "kept", "--iou-threshold", 0.5)
    assert contents(tmp_path / "kept") == {
        "labels/a.txt": b"2 0.50 0.5 0.40 0.4 0.9\r\n0 0.2 0.2 0.1 0.1 0.300\r\n",
        "labels/b.txt": b"\xef\xbb\xbf5 0.5 0.5 0.2 0.2 0.60",
        "labels/c.txt": b"",
        "labels/classes.txt": b"u\nv\nw\nx\ny\nz",
    }


@pytest.mark.parametrize("form", ["yolo", "darknet"])
@pytest.mark.parametrize("sizes", [[], ["--image-sizes", "200x100"]])
@pytest.mark.parametrize("method", ["hard", "soft-linear", "matrix-gaussian", "nmm", "greedy-nmm"])
def test_scores_and_boxes_are_those_of_suppression(
    method: str, sizes: list[str], form: str, tmp_path: Path, truth: boxscore.GroundTruth, run: Run
) -> None:
    random = np.random.default_rng(3)
    lines = {}
    for name in "abc":
        numbers = random.uniform(0.35, 0.6, (9, 4))
        scores = random.permutation(9) / 10 + 0.05
        lines[name] = "".join(
            f"{cls} {' '.join(map(repr, [score, *box] if form == 'darknet' else [*box, score]))}\n"
            for cls, score, box in zip(
                random.integers(0, 6, 9), scores.tolist(), numbers.tolist(), strict=True
            )
        ).encode()
    path = written(tmp_path / "exp", lines)
    found = load_detections(path, truth, format=form, classes=NAMES)
    given = {} if method == "matrix-gaussian" else {"iou_threshold": 0.4}
    expected = boxscore.suppress(found, method=method, **given).apply(found)
    flags = [] if method == "matrix-gaussian" else ["--iou-threshold", 0.4]
    run(
        "nms",
        "--dt",
        path,
        "--dt-format",
        form,
        "--output",
        tmp_path / "kept",
        "--method",
        method,
        *flags,
        *sizes,
    )
    columns = (expected.image, expected.category, expected.scores.round(12), expected.boxes.round(9))
    assert rows(tmp_path / "kept", truth, format=form, classes=NAMES) == sorted(
        zip(*(column.tolist() for column in columns), strict=True)
    )


def test_class_numbers_without_names_stay(tmp_path: Path, truth: boxscore.GroundTruth, run: Run) -> None:
    path = written(tmp_path / "exp")
    run("fuse", path, "--output", tmp_path / "fused")
    assert "labels/classes.txt" not in contents(tmp_path / "fused")
    classes = [row[1] for row in rows(tmp_path / "fused", truth, format="yolo", classes=NAMES)]
    assert [truth.categories.ids[number] for number in classes] == [1, 3, 6]


def test_lists_of_classes_in_another_order_are_fused_by_name(
    tmp_path: Path, truth: boxscore.GroundTruth, run: Run
) -> None:
    one = written(tmp_path / "one", {"a": b"0 .5 .5 .4 .4 .9\n"}, classes="class 0\nclass 4\n")
    other = written(tmp_path / "other", {"a": b"1 .5 .5 .4 .4 .7\n"}, classes="class 4\nclass 0\n")
    run("fuse", one, other, "--dt-format", "yolo", "--output", tmp_path / "fused")
    ((_, category, score, _),) = rows(tmp_path / "fused", truth, format="yolo")
    assert (truth.categories.names[category], score) == ("class 0", pytest.approx(0.8))


def test_fractions_of_unknown_images_have_no_diou(
    tmp_path: Path, truth: boxscore.GroundTruth, run: Run
) -> None:
    path = written(tmp_path / "exp")
    for option in (["--method", "diou"], ["--pixel-offset", 1]):
        call = ("nms", "--dt", path, "--output", tmp_path / "kept", "--iou-threshold", 0.5, *option)
        error = run.error(*call)
        assert "be pixels" in error
        assert "--image-sizes" in error
        run(*call, "--image-sizes", "200x100")


def test_another_extension_names_images_and_classes(
    tmp_path: Path, truth: boxscore.GroundTruth, run: Run
) -> None:
    path, output = written(tmp_path / "exp"), tmp_path / "kept.json"
    call = ("nms", "--dt", path, "--output", output, "--iou-threshold", 0.5, "--image-sizes", "200x100")
    assert "--dt-classes" in run.error(*call)
    assert "--image-sizes" not in run.error(*call)
    both = run.error(*call[:-2])
    assert "--dt-classes FILE" in both
    assert "--image-sizes" in both
    (tmp_path / "names.txt").write_text("\n".join(NAMES))
    note = run(*call, "--dt-classes", tmp_path / "names.txt").err
    assert f"{output}: written as coco, with the names of images and classes" in note
    run("nms", "--dt", path, "--output", tmp_path / "kept", "--iou-threshold", 0.5)
    assert rows(output, truth) == rows(tmp_path / "kept", truth, format="yolo", classes=NAMES)
    assert (
        f"which only boxscore reads; for the ids of a data set, boxscore convert --gt GT --dt {output}"
        in note
    )


@pytest.mark.parametrize("name", ["kept.txt", "kept", "kept.json.gz"])
def test_results_in_one_file_are_not_written_under_the_name_of_another_format(
    name: str, tmp_path: Path, run: Run
) -> None:
    (tmp_path / "raw.json").write_text(json.dumps([FOUND]))
    for command in ("nms", "fuse"):
        error = run.error(command, tmp_path / "raw.json", "--output", tmp_path / name, "--iou-threshold", 0.5)
        assert "end in .json for coco" in error
        assert "--output kept.json" in error
        assert ("--to yolo --output kept makes files" in error) == (name == "kept")
        assert not (tmp_path / name).exists()
    run("nms", tmp_path / "raw.json", "--output", "/dev/null", "--iou-threshold", 0.5)
    lines = ["ImageID,LabelName,Score,XMin,XMax,YMin,YMax", "a,/m/1,0.5,0.1,0.2,0.1,0.2"]
    (tmp_path / "raw.csv").write_text("\n".join(lines) + "\n")
    call = ("nms", tmp_path / "raw.csv", "--dt-format", "openimages", "--iou-threshold", 0.5, "--output")
    assert "end in .csv for openimages" in run.error(*call, tmp_path / name)


def test_ids_without_names_are_said_not_to_be_names(tmp_path: Path, run: Run) -> None:
    (tmp_path / "raw.json").write_text(json.dumps([FOUND]))
    (tmp_path / "names.txt").write_text("none\ncat\n")
    call = ("nms", tmp_path / "raw.json", "--output", tmp_path / "kept.csv", "--iou-threshold", 0.5)
    assert "COCO results have no names" in run(*call).err
    assert "no names" not in run(*call, "--dt-classes", tmp_path / "names.txt").err
    assert ",cat," in (tmp_path / "kept.csv").read_text()


def test_an_output_folder_with_other_labels_is_refused(tmp_path: Path, run: Run) -> None:
    path, output = written(tmp_path / "exp"), written(tmp_path / "kept", {"z": b"0 .5 .5 .1 .1 .1\n"})
    before = contents(output)
    error = run.error("nms", "--dt", path, "--output", output, "--iou-threshold", 0.5)
    assert "z.txt" in error
    assert contents(output) == before


def test_a_format_that_is_not_written_needs_an_extension(tmp_path: Path, run: Run) -> None:
    (tmp_path / "a.txt").write_text("Car -1 -1 -10 12 20 110 68 -1 -1 -1 -1000 -1000 -1000 -10 0.9\n")
    error = run.error("fuse", tmp_path, "--output", tmp_path / "fused")
    assert "end in .json" in error
    assert "--output fused.json" in error
    assert not (tmp_path / "fused").exists()
    run("fuse", tmp_path, "--output", tmp_path / "fused.json")


def test_class_numbers_that_a_pickle_counts_are_not_written_as_ids(tmp_path: Path, run: Run) -> None:
    instance = {"image_id": 7, "category_id": 1, "bbox": [1, 2, 3, 4], "score": 0.5}
    with (tmp_path / "found.pkl").open("wb") as file:
        pickle.dump([{"image_id": 7, "instances": [instance]}], file, protocol=2)
    call = ("nms", "--dt", tmp_path / "found.pkl", "--output", tmp_path / "o.json", "--iou-threshold", 0.5)
    assert "--dt-classes" in run.error(*call)
    (tmp_path / "names.txt").write_text("cat\ndog\n")
    run(*call, "--dt-classes", tmp_path / "names.txt")
    assert json.loads((tmp_path / "o.json").read_text())[0]["category_id"] == "dog"
