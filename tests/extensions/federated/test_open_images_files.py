"""Open Images' files: segments joined to boxes, packed masks, class lists, expansion, and what is refused."""

from __future__ import annotations

import base64
import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore import FileFormatError, InputError, load_detections, load_ground_truth
from boxscore.cli import main
from boxscore.diagnostics import expansions, slice_scores, sweep
from boxscore.extensions.federated.hierarchy import Hierarchy
from boxscore.extensions.masks.column import Masks
from boxscore.formats.reading import read_detections, read_options
from boxscore.formats.registry import detect_format
from boxscore.validation import validate
from support.running import Run

pytestmark = pytest.mark.filterwarnings("ignore::boxscore.BoxscoreWarning")

BOXES = "ImageID,LabelName,Confidence,XMin,XMax,YMin,YMax,IsGroupOf\n"
SEGMENTS = "ImageID,LabelName,ImageWidth,ImageHeight,XMin,XMax,YMin,YMax,IsGroupOf,Mask\n"
DETECTIONS = "ImageID,ImageWidth,ImageHeight,LabelName,Score,Mask\n"
TREE = {
    "LabelName": "Entity",
    "Subcategory": [{"LabelName": "Animal", "Subcategory": [{"LabelName": "Cat"}]}],
}


def packed(rows: slice, columns: slice, size: tuple[int, int] = (10, 10)) -> str:
    mask = np.zeros(size, dtype=bool)
    mask[rows, columns] = True
    return pack(Masks([mask]).codes()[0]["counts"])


def pack(counts: str | bytes) -> str:
    raw = counts.encode() if isinstance(counts, str) else counts
    return base64.b64encode(zlib.compress(raw)).decode()


CORNER = packed(slice(0, 4), slice(0, 4))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two cats, one of them without a mask, and two detections of them."""
    monkeypatch.chdir(tmp_path)
    rows = "a,Cat,1,0,0.4,0,0.4,0\nb,Cat,1,0.5,0.9,0.5,0.9,0\n"
    (tmp_path / "boxes.csv").write_text(BOXES + rows)
    (tmp_path / "segments.csv").write_text(f"{SEGMENTS}a,Cat,10,10,0,0.4,0,0.4,0,{CORNER}\n")
    other = packed(slice(5, 9), slice(5, 9))
    (tmp_path / "found.csv").write_text(f"{DETECTIONS}a,10,10,Cat,0.9,{CORNER}\nb,10,10,Cat,0.8,{other}\n")
    (tmp_path / "labels.csv").write_text("ImageID,LabelName,Confidence\na,Cat,1\nb,Cat,1\nb,Animal,1\n")
    (tmp_path / "tree.json").write_text(json.dumps(TREE))
    return tmp_path


def test_segments_are_joined_to_their_boxes(folder: Path) -> None:
    truth = load_ground_truth("boxes.csv", segments="segments.csv")
    assert truth.masks is not None
    assert truth.masks.missing.tolist() == [False, True]
    detections = load_detections("found.csv", truth)
    assert detections.boxes.tolist() == [[0, 0, 0.4, 0.4], [0.5, 0.5, 0.9, 0.9]]
    result = boxscore.evaluate(truth, detections, protocol="openimages-segmentation")
    assert result["mAP"] == 1.0
    assert result.matches["outcome"].tolist() == ["true positive", "ignored"]
    assert result.class_counts["ground_truths"].tolist() == [1]


def test_segments_that_fit_no_box_are_objects_of_their_own(folder: Path) -> None:
    (folder / "segments.csv").write_text(f"{SEGMENTS}a,Cat,10,10,0,0.41,0,0.4,0,{CORNER}\n")
    with pytest.warns(
        boxscore.BoxscoreWarning, match="1 of 1 segment does not match any row in boxes.csv by label"
    ):
        truth = load_ground_truth("boxes.csv", segments="segments.csv")
    assert len(truth) == 3


def test_nearly_equal_overlaps_are_one_in_single_precision() -> None:
    """40000 / 60002 is less than 30001 / 45003, by less than float32 shows: there the first is the best."""
    predicted, first, second = np.zeros((3, 400 * 300), dtype=bool)
    predicted[:40000] = first[:60002] = True
    second[10_000 - 1 : 40_000] = second[70_000 : 70_000 + 5003] = True
    masks = [mask.reshape(300, 400).T for mask in (first, second)]
    boxes = [[0, 0, 300, 400]] * 2
    truth = boxscore.GroundTruth.from_arrays([1, 1], ["a", "a"], boxes, masks=masks)
    one = boxscore.Detections.from_arrays([1], ["a"], boxes[:1], [0.5], masks=[predicted.reshape(300, 400).T])
    for precision, taken in (("double", 1), ("single", 0)):
        rules = {"extends": "openimages-segmentation", "masks": {"precision": precision}}
        matches = boxscore.evaluate(truth, one, protocol=rules).matches
        assert matches["annotation_id"].tolist() == [truth.ids[taken]]


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        ("%%%", r"Mask must be base64 of zlib of the counts of a COCO RLE. Got '%%%' in line 2 of found.csv"),
        (base64.b64encode(b"not zlib").decode(), "Mask must be base64 of zlib"),
        (CORNER[:-8], "Mask must be base64 of zlib"),
        (pack("é"), "Mask must be base64 of zlib"),
        (pack(b"0" * (1 << 25)), r"Got more than 16,777,216 characters unpacked in line 2 of found.csv"),
        (
            packed(slice(0, 4), slice(0, 4), (10, 11)),
            "a mask must have counts that add up to height times width",
        ),
    ],
)
def test_damaged_masks_are_refused(folder: Path, mask: str, message: str) -> None:
    (folder / "found.csv").write_text(f"{DETECTIONS}a,10,10,Cat,0.9,{mask}\n")
    truth = load_ground_truth("boxes.csv", segments="segments.csv")
    with pytest.raises(InputError, match=message):
        load_detections("found.csv", truth)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "ImageWidth,",
            "Width,",
            "a table of masks must have the columns ImageWidth and ImageHeight in addition to Mask",
        ),
        ("Mask", "MaskPath", "masks of Open Images must be in a column Mask, next to ImageWidth"),
        ("a,10,10", "a,,10", r"a row with a mask must have ImageWidth and ImageHeight in whole pixels"),
        ("a,10,10", "a,10.5,10", r"Got 10.5 x 10 in line 2 of found.csv"),
        ("a,10,10", "a,1e9,10", r"Got 1e\+09 x 10"),
    ],
)
def test_tables_of_masks_that_lack_something(folder: Path, old: str, new: str, message: str) -> None:
    path = folder / "found.csv"
    path.write_text(path.read_text().replace(old, new, 1))
    truth = load_ground_truth("boxes.csv", segments="segments.csv")
    with pytest.raises(InputError, match=message):
        load_detections("found.csv", truth)


def test_segments_must_have_masks_and_boxes(folder: Path) -> None:
    with pytest.raises(FileFormatError, match=r"segments must have the columns XMin.*file of boxes"):
        load_ground_truth("boxes.csv", segments="boxes.csv")
    with pytest.raises(FileFormatError, match=r"segments must have the columns XMin.*these predictions"):
        load_ground_truth("boxes.csv", segments="found.csv")


def test_class_descriptions_give_names(folder: Path) -> None:
    for name, text in (
        ("names.csv", "LabelName,DisplayName\nCat,House cat\nAnimal,Any animal\n"),
        ("map.csv", "LabelName,Id\nAnimal,1\nCat,2\nDog,3\n"),
        ("map.pbtxt", 'item {\n name: "Animal"\n id: 1\n display_name: "x"\n}\nitem { name: "Cat" id: 2 }\n'),
    ):
        (folder / name).write_text(text)
    named = load_ground_truth("boxes.csv", classes="names.csv").categories
    assert (named.ids.tolist(), named.names.tolist()) == (["Cat"], ["House cat"])
    mapped = load_ground_truth("boxes.csv", classes="map.csv")
    assert (mapped.categories.ids.tolist(), mapped.categories.names.tolist()) == (
        [1, 2, 3],
        ["Animal", "Cat", "Dog"],
    )
    assert mapped.category.tolist() == [1, 1]
    assert load_ground_truth("boxes.csv", classes="map.pbtxt").categories.ids.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("LabelName,Id\nDog,1\n", "a class must be in the list of classes. Got 'Cat'"),
        ("LabelName,Id\nCat,1\nCat,2\n", "name each class once"),
        ("LabelName,Id\nCat,1\nDog,1\n", "the Id of a class must be a whole number of its own"),
        ("LabelName,Id\nCat,x\n", "the Id of a class must be a whole number of its own"),
        ("LabelName,Id\nCat\n", "a class of a list must have a label and a description"),
        ("LabelName,DisplayName\nCat,\n", "a class of a list must have a label and a description"),
    ],
)
def test_class_lists_that_are_wrong(folder: Path, text: str, message: str) -> None:
    (folder / "map.csv").write_text(text)
    with pytest.raises(InputError, match=message):
        load_ground_truth("boxes.csv", classes="map.csv")


def test_expansion_writes_open_images_files(folder: Path, run: Run) -> None:
    given = [
        "convert",
        "--gt",
        "boxes.csv",
        "--image-labels",
        "labels.csv",
        "--expand-hierarchy",
        "tree.json",
    ]
    to = ["--to", "openimages", "--output", "wide.csv", "--output-image-labels", "wide_labels.csv"]
    run(*given, *to)
    assert (folder / "wide.csv").read_text().splitlines() == [
        BOXES.strip(),
        "a,Cat,1,0.0,0.4,0.0,0.4,0",
        "a,Animal,1,0.0,0.4,0.0,0.4,0",
        "b,Cat,1,0.5,0.9,0.5,0.9,0",
        "b,Animal,1,0.5,0.9,0.5,0.9,0",
    ]
    assert "a,Animal,1" in (folder / "wide_labels.csv").read_text()
    assert detect_format("wide.csv")[0] == "openimages"
    run("convert", "--gt", "segments.csv", "--to", "openimages", "--output", "again.csv")
    truth = load_ground_truth("boxes.csv", segments="again.csv")
    assert len(truth) == 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"tree.json": '{"LabelName": "E", "Subcategory": [{"LabelName": "Dog"}]}'},
            "a class must be in the",
        ),
        (
            {
                "tree.json": '{"LabelName": "E", "Subcategory": [{"LabelName": "Cat", "Subcategory": '
                '[{"LabelName": "Cat"}]}]}'
            },
            "a class of a hierarchy must not be its own ancestor. Got Cat > Cat",
        ),
        ({"labels.csv": "ImageID,LabelName\na,Cat\n"}, "must have the columns ImageID, LabelName and Conf"),
        (
            {"labels.csv": "ImageID,Confidence,LabelName\na,1\n"},
            "LabelName must be there in every row. Got no",
        ),
        ({"labels.csv": "ImageID,LabelName,Confidence\n,Cat,1\n"}, "Got nothing in line 2 of labels.csv"),
        ({"labels.csv": "ImageID,LabelName,Confidence\na,Cat,0.7\n"}, "Confidence must be 1 or 0. Got '0.7'"),
        ({"boxes.csv": "ImageID,LabelName,XMin,XMax,YMin\na,Cat,0,1,0\n"}, "have the columns of a box"),
    ],
)
def test_one_line_each(folder: Path, changes: dict[str, str], message: str) -> None:
    for name, text in changes.items():
        (folder / name).write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        load_ground_truth("boxes.csv", image_labels="labels.csv", hierarchy="tree.json")
    assert "\n" not in str(caught.value)


def test_labels_that_contradict_each_other(folder: Path) -> None:
    (folder / "labels.csv").write_text("ImageID,LabelName,Confidence\na,Cat,1\na,Cat,0\nb,Cat,1\n")
    with pytest.warns(boxscore.BoxscoreWarning, match="1 label says 0 of a class that another label"):
        truth = load_ground_truth("boxes.csv", image_labels="labels.csv")
    codes = codes_of(truth, None)
    assert {"image-label-contradicts", "absent-class-with-object"} <= set(codes)


def predictions(truth: boxscore.GroundTruth, *rows: str) -> boxscore.Detections:
    head = "ImageID,LabelName,Score,XMin,XMax,YMin,YMax"
    Path("predictions.csv").write_text("\n".join([head, *rows, ""]))
    return load_detections("predictions.csv", truth)


def codes_of(truth: Any, detections: Any) -> dict[str, str]:
    findings = validate(truth, detections, protocol="openimages-challenge")
    return {finding.code: finding.severity for finding in findings}


def test_what_validation_says_of_labels_and_hierarchies(folder: Path) -> None:
    truth = load_ground_truth("boxes.csv", hierarchy="tree.json")
    narrow = predictions(truth, "a,Cat,0.9,0,0.4,0,0.4")
    codes = codes_of(truth, narrow)
    assert codes["image-labels-missing"] == "error"
    assert codes["detections-not-expanded"] == "warning"
    bare = load_ground_truth("boxes.csv", image_labels="labels.csv")
    assert "detections-unlisted" not in codes_of(bare, predictions(bare, "a,Cat,0.9,0,0.4,0,0.4"))
    animals = predictions(bare, "a,Animal,0.9,0,0.4,0,0.4")
    assert codes_of(bare, animals)["detections-unlisted"] == "error"


def test_readings_with_and_without_the_hierarchy(folder: Path) -> None:
    truth = load_ground_truth("boxes.csv", image_labels="labels.csv")
    detections = predictions(truth, "a,Cat,0.9,0,0.4,0,0.4", "b,Cat,0.8,0.5,0.9,0.5,0.9")
    table = expansions(truth, detections, Hierarchy.of(TREE))
    assert table["value"].tolist() == [1.0, 1.0, 0.5, 1.0]


def test_sizes_of_fractions_are_relative(folder: Path) -> None:
    truth = load_ground_truth("boxes.csv")
    detections = predictions(truth, "a,Cat,0.9,0,0.4,0,0.4", "b,Cat,0.8,0.5,0.9,0.5,0.9")
    result = boxscore.evaluate(truth, detections, protocol="openimages-v2")
    with pytest.raises(InputError, match="slices by size must have boxes in pixels"):
        slice_scores(result, by="size")
    table = slice_scores(result, by="relative_size").to_frame()
    assert table["ground_truths"].tolist() == [0, 0, 2]


def test_sweeps_leave_out_what_the_protocol_drops(folder: Path) -> None:
    truth = load_ground_truth("boxes.csv")
    rows = ["a,Cat,0.9,0,0.4,0,0.4", "a,Cat,0.8,0.4,0.3,0,0.4"]
    path = folder / "predictions.csv"
    path.write_text("\n".join(["ImageID,LabelName,Score,XMin,XMax,YMin,YMax", *rows, ""]))
    detections = read_detections(path, truth, read_options(any_sides=True))
    result = sweep(truth, detections, iou_thresholds=[0.5], protocol="openimages-v2")
    assert result.total_detections.tolist() == [1]


@pytest.mark.parametrize("command", ["compare", "explain"])
def test_commands_read_what_the_protocol_drops(folder: Path, command: str) -> None:
    """An inverted box is dropped by the protocol, without an error."""
    rows = ["a,Cat,0.9,0,0.4,0,0.4", "a,Cat,0.8,0.4,0.3,0,0.4"]
    for name in ("one.csv", "two.csv"):
        (folder / name).write_text("\n".join(["ImageID,LabelName,Score,XMin,XMax,YMin,YMax", *rows, ""]))
    given = ["--gt", "boxes.csv", "--dt", "one.csv"]
    if command == "compare":
        given += ["two.csv", "--protocol", "openimages-v2", "--resamples", "5"]
    else:
        given += ["--from", "openimages-v2", "--to", "openimages-challenge"]
    assert main([command, *given]) == 0


@pytest.mark.parametrize("option", ["--image-labels", "--hierarchy"])
def test_a_path_that_no_system_takes(option: str, tmp_path: Path, run: Run) -> None:
    shapes = Path(__file__).parents[3] / "datasets" / "shapes_coco"
    given = ["--gt", str(shapes / "instances.json"), "--dt", str(shapes / "detections.json")]
    assert "cannot be read: embedded null byte" in run.error("evaluate", *given, option, "a\0b")
