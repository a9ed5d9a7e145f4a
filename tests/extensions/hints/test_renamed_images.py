"""Images that an exporter renamed: matched where only one image fits, and said so."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import boxscore
from boxscore import BoxscoreWarning, Detections, GroundTruth, InputError
from boxscore.data.vocabulary import Images
from boxscore.extensions.hints.renamed_images import nearest_names
from support.quiet import quiet
from support.running import Run

NAMES = ["street_1.jpg", "street_2.jpg", "park_10.jpg", "park_11.jpg"]

HASHES = [f"{number:08x}" for number in (0x0B3D3F0A, 0x7C0EE0C0, 0x12345678, 0xFEDCBA98)]

RENAMED: dict[str, Callable[[int, str], str]] = {
    "Label Studio": lambda at, name: f"../../label-studio/data/media/upload/1/{HASHES[at]}-{name}",
    "UUID": lambda at, name: f"{HASHES[at]}-1234-4321-abcd-{at:012d}_{name}",
    "Roboflow": lambda at, name: f"{name[:-4]}_jpg.rf.{HASHES[at] * 4}.jpg",
    "Roboflow, newer": lambda at, name: f"{name[:-4]}_jpg.rf.Qz{HASHES[at]}gH.jpg",
    "hash after": lambda at, name: f"{name[:-4]}_{HASHES[at]}.png",
    "prefix": lambda at, name: f"val_{name}",
    "suffix": lambda at, name: f"{name[:-4]}_resized.png",
    "prefix and suffix": lambda at, name: f"tiny-{name[:-4]}@2x.png",
    "letter case": lambda at, name: name.upper(),
    "separators": lambda at, name: name.replace("_", " "),
}


def write_truth(path: Path, names: list[str]) -> Path:
    """Write COCO ground truth with one object per image, each elsewhere, so that no image can be mistaken."""
    images = [{"id": 5 + at, "file_name": name, "width": 400, "height": 300} for at, name in enumerate(names)]
    annotations = [
        {"id": 1 + at, "image_id": 5 + at, "category_id": 1, "bbox": [70 * at, 10, 60, 50], "area": 3000}
        for at in range(len(names))
    ]
    content = {"images": images, "annotations": annotations, "categories": [{"id": 1, "name": "cat"}]}
    path.write_text(json.dumps(content))
    return path


def write_csv(path: Path, names: list[str]) -> Path:
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["image", "class", "x1", "y1", "x2", "y2", "score"])
        for at, name in enumerate(names):
            rows.writerow([name, "cat", 70 * at, 10, 70 * at + 60, 60, 0.9 - 0.1 * at])
    return path


def write_results(path: Path, names: list[str]) -> Path:
    rows: list[dict[str, Any]] = [
        {"image_id": name, "category_id": 1, "bbox": [70 * at, 10, 60, 50], "score": 0.9 - 0.1 * at}
        for at, name in enumerate(names)
    ]
    path.write_text(json.dumps(rows))
    return path


WRITERS = {"csv": write_csv, "json": write_results}


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize("of_truth", [True, False])
@pytest.mark.parametrize("renamed", RENAMED)
def test_renamed_images_are_found(renamed: str, of_truth: bool, kind: str, tmp_path: Path) -> None:
    others = [RENAMED[renamed](at, name) for at, name in enumerate(NAMES)]
    truth = boxscore.load_ground_truth(write_truth(tmp_path / "gt.json", others if of_truth else NAMES))
    path = WRITERS[kind](tmp_path / f"dt.{kind}", NAMES if of_truth else others)
    with pytest.warns(BoxscoreWarning, match="4 images were renamed like this"):
        detections = boxscore.load_detections(path, truth)
    assert detections.image.tolist() == [0, 1, 2, 3]


def test_the_command_says_so(tmp_path: Path, run: Run) -> None:
    gt = write_truth(tmp_path / "gt.json", [f"{HASHES[0]}-a.jpg"])
    printed = run("evaluate", gt, write_csv(tmp_path / "dt.csv", ["a.jpg"]))
    assert f"the ground truth has '{HASHES[0]}-a.jpg' instead of 'a.jpg'" in printed.err
    assert "1 image was renamed like this" in printed.err
    assert "AP      1.0000" in printed.out


def test_names_that_match_are_not_renamed(tmp_path: Path) -> None:
    """``b.jpg`` of another split must not become ``val_b.jpg``, if ``a.jpg`` is found as it is."""
    truth = boxscore.load_ground_truth(write_truth(tmp_path / "gt.json", ["a.jpg", "val_b.jpg"]))
    with quiet(), pytest.raises(InputError, match=r"Got 'b\.jpg'"):
        boxscore.load_detections(write_csv(tmp_path / "dt.csv", ["a.jpg", "b.jpg"]), truth)


@pytest.mark.parametrize(
    ("known", "given"),
    [
        (["train_1.jpg", "train_2.jpg"], ["val_1.jpg", "val_2.jpg"]),
        (["img_11.jpg", "img_12.jpg"], ["img_1.jpg", "img_2.jpg"]),
        (["000000000139.jpg", "000000000285.jpg"], ["000000581929.jpg", "000000000025.jpg"]),
        (["cat.jpg", "dog.jpg"], ["concatenate.jpg", "dogma.jpg"]),
        # An augmented image exists twice: neither is the one.
        ([f"a_jpg.rf.{HASHES[0] * 4}.jpg", f"a_jpg.rf.{HASHES[1] * 4}.jpg"], ["a.jpg"]),
        (["COCO_val2014_000000000042.jpg"], ["COCO_val2014_000000000139.jpg"]),
        # Another camera.
        (["cam1/val_a.jpg", "cam2/val_b.jpg"], ["cam3/a.jpg", "cam4/b.jpg"]),
        # One rule explains too few.
        (["val_a.jpg", "x.jpg", "y.jpg"], ["a.jpg", "b.jpg", "c.jpg"]),
    ],
)
def test_others_are_refused(known: list[str], given: list[str], tmp_path: Path) -> None:
    truth = boxscore.load_ground_truth(write_truth(tmp_path / "gt.json", known))
    with quiet(), pytest.raises(InputError, match="must be in the ground truth"):
        boxscore.load_detections(write_csv(tmp_path / "dt.csv", given), truth)


def test_the_rest_is_unlisted(tmp_path: Path) -> None:
    """A rule for most names leaves the others to ``unlisted_images``, and still holds then."""
    truth = boxscore.load_ground_truth(write_truth(tmp_path / "gt.json", [f"val_{name}" for name in NAMES]))
    path = write_csv(tmp_path / "dt.csv", [*NAMES, "roof.jpg"])
    with quiet():
        with pytest.raises(InputError, match=r"Got 'roof\.jpg'"):
            boxscore.load_detections(path, truth)
        detections = boxscore.load_detections(path, truth, unlisted_images="drop")
    assert detections.image.tolist() == [0, 1, 2, 3]


def test_equal_names_in_several_folders(tmp_path: Path) -> None:
    known = ["cam1/val_1.jpg", "cam2/val_1.jpg", "cam2/val_2.jpg"]
    truth = boxscore.load_ground_truth(write_truth(tmp_path / "gt.json", known))
    given = [name.replace("val_", "") for name in known]
    with quiet():
        detections = boxscore.load_detections(write_csv(tmp_path / "dt.csv", given), truth)
    assert detections.image.tolist() == [0, 1, 2]


def test_tables_are_aligned_by_the_same_rule() -> None:
    boxes = [[0, 0, 9, 9], [20, 20, 40, 40]]
    truth = GroundTruth.from_arrays(["val_a.jpg", "val_b.jpg"], ["cat", "cat"], boxes)
    detections = Detections.from_arrays(["a.jpg", "b.jpg"], ["cat", "cat"], boxes, [0.9, 0.8])
    with pytest.warns(BoxscoreWarning, match="instead of 'a.jpg'"):
        result = boxscore.evaluate(truth, detections, digest=False)
    assert result.metrics["AP"] == pytest.approx(1)


def test_nearest_names() -> None:
    images = Images.build([1, 2, 3], file_names=["street_01.jpg", "park_1.jpg", "roof.jpg"])
    assert nearest_names("streets_01.jpg", images) == ["street_01.jpg"]
    assert nearest_names("street_02.jpg", images) == [], "another image of the same camera"
    assert nearest_names("roof.png", images) == ["roof.jpg"]
    assert nearest_names("zebra", images) == []


def test_the_nearest_names_are_shown(tmp_path: Path) -> None:
    truth = boxscore.load_ground_truth(write_truth(tmp_path / "gt.json", ["street.jpg", "park.jpg"]))
    with quiet(), pytest.raises(InputError, match=r"most similar name: 'street\.jpg'"):
        boxscore.load_detections(write_csv(tmp_path / "dt.csv", ["park.jpg", "streat.jpg"]), truth)
