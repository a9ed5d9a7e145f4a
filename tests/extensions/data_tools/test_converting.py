"""What is written in a format is read again: exactly, or with what is lost named before."""

from __future__ import annotations

import dataclasses
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pycocotools import mask as coco_mask
from pycocotools.coco import COCO

import boxscore
from boxscore.cli import main
from boxscore.data.vocabulary import Images
from boxscore.errors import InputError
from boxscore.extensions.data_tools.converting import lost
from boxscore.formats import writable_formats
from boxscore.formats._format import CONTENT
from boxscore.formats.registry import format_named
from support.quiet import quiet
from support.samples import SHAPES, SHAPES_VOC
from support.tables import same_bits

COCO_TRUTH = SHAPES / "instances.json"
COCO_FOUND = SHAPES / "detections.json"
VOC_TRUTH = SHAPES_VOC / "VOC2007"


def quietly(call: Any, *arguments: Any, **options: Any) -> Any:
    with quiet():
        return call(*arguments, **options)


# ---------------------------------------------------------------- the words


def test_formats_hold_known_content() -> None:
    for name in writable_formats():
        for words in format_named(name).holds.values():
            assert {word for word in words if not word.startswith("column ")} <= CONTENT
    assert {"coco", "columns", "csv", "darknet", "parquet", "voc", "yolo"} <= {*writable_formats()}


def test_a_side_below_zero_is_written_only_where_it_is_read_again(tmp_path: Path) -> None:
    truth = boxscore.GroundTruth.from_arrays(["a", "b"], ["x", "x"], [[0, 0, 8, 9], [3, 3, 5, 9]])
    boxes = np.array([[8.0, 0, 6, 9], [3, 3, 5, 9]])
    sizes = boxes[:, 2:] - boxes[:, :2]  # one width is -2, as in WIDER FACE
    truth = truth.replaced(boxes=boxes, sizes=sizes, area=sizes.prod(axis=1))
    boxscore.save_as(truth, tmp_path / "a.npz")
    assert boxscore.load_ground_truth(tmp_path / "a.npz").sizes.tolist() == sizes.tolist()
    for name in ("a.json", "a.csv", "a.parquet"):
        with pytest.raises(InputError, match="Got 1 box with a negative side"):
            boxscore.save_as(truth, tmp_path / name)
        with pytest.warns(boxscore.BoxscoreWarning, match="1 box with a negative side"):
            boxscore.save_as(truth, tmp_path / name, lossy=True)
        assert boxscore.load_ground_truth(tmp_path / name).boxes.tolist() == [[3, 3, 5, 9]]


# ---------------------------------------------------------------- COCO


@pytest.mark.long
def test_coco_comes_back_to_the_bit(tmp_path: Path) -> None:
    truth = boxscore.load_ground_truth(COCO_TRUTH)
    boxscore.save_as(truth, tmp_path / "a.json")
    again = boxscore.load_ground_truth(tmp_path / "a.json")
    same_bits(truth, again)
    boxscore.save_as(again, tmp_path / "b.npz")
    boxscore.save_as(boxscore.load_ground_truth(tmp_path / "b.npz"), tmp_path / "c.json")
    rasterized = boxscore.load_ground_truth(tmp_path / "c.json")
    same_bits(truth.replaced(masks=None), rasterized.replaced(masks=None))
    assert truth.masks is not None
    assert rasterized.masks is not None
    codes = [coco_mask.decode(code).tolist() for code in truth.masks.codes()]
    assert codes == [coco_mask.decode(code).tolist() for code in rasterized.masks.codes()]
    truth_of_file = json.loads((tmp_path / "a.json").read_text())
    keys = ("id", "image_id", "category_id", "bbox", "area", "iscrowd", "segmentation")
    assert truth_of_file["annotations"] == [
        {key: record[key] for key in keys} for record in json.loads(COCO_TRUTH.read_text())["annotations"]
    ]


def test_pycocotools_reads_what_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    truth = boxscore.load_ground_truth(VOC_TRUTH, image_set="test")
    quietly(boxscore.save_as, truth, tmp_path / "a.json", lossy=True)
    detections = boxscore.load_detections(SHAPES_VOC / "results", truth)
    boxscore.save_as(detections, tmp_path / "b.json")
    reference = COCO(str(tmp_path / "a.json"))
    reference.loadRes(str(tmp_path / "b.json"))
    assert len(reference.getAnnIds()) == len(truth)
    again = boxscore.load_ground_truth(tmp_path / "a.json")
    assert (
        boxscore.evaluate(
            again, boxscore.load_detections(tmp_path / "b.json", again), protocol="voc2007"
        ).metrics
        == boxscore.evaluate(truth, detections, protocol="voc2007").metrics
    )


def test_keypoints_and_rotated_boxes(tmp_path: Path) -> None:
    points = [[[1.5, 2, 2], [3, 4, 0]], [[0, 0, 0], [0, 0, 0]]]
    truth = boxscore.GroundTruth.from_arrays(
        [1, 2], [1, 1], [[0, 0, 9, 9]] * 2, keypoints=points, keypoint_count=[1, 0]
    )
    boxscore.save_as(truth, tmp_path / "a.json")
    same_bits(truth, boxscore.load_ground_truth(tmp_path / "a.json"))
    rotated_truth = boxscore.GroundTruth.from_arrays(
        [1, 2], [1, 1], None, rotated=[[50, 50, 20, 10, 0.3], [9, 9, 4, 4, -1.2]]
    )
    boxscore.save_as(rotated_truth, tmp_path / "r.json")
    again = boxscore.load_ground_truth(tmp_path / "r.json")
    assert rotated_truth.rotated is not None
    assert again.rotated is not None
    assert np.array_equal(rotated_truth.rotated[:, :4], again.rotated[:, :4])
    assert np.abs(rotated_truth.rotated - again.rotated).max() <= 2**-52  # degrees and back


def test_results_with_masks(tmp_path: Path) -> None:
    square = coco_mask.encode(np.asfortranarray(np.eye(8, dtype=np.uint8)))
    truth = boxscore.GroundTruth.from_arrays([1], ["a"], [[0, 0, 8, 8]])
    detections = boxscore.Detections.from_arrays([1, 1], ["a", "a"], None, [0.5, 1e9], masks=[square, square])
    boxscore.save_as(detections, tmp_path / "dt.json")
    assert "bbox" not in (tmp_path / "dt.json").read_text()
    again = boxscore.load_detections(tmp_path / "dt.json", truth)
    assert again.masks is not None
    assert again.masks.area.tolist() == [8, 8]
    assert again.scores.tolist() == [0.5, 1e9]
    assert not again.boxes_given


# ---------------------------------------------------------------- VOC


def test_voc_comes_back_to_the_bit(tmp_path: Path) -> None:
    truth = boxscore.load_ground_truth(VOC_TRUTH, image_set="test")
    boxscore.save_as(truth, tmp_path / "voc", format="voc")
    again = boxscore.load_ground_truth(tmp_path / "voc")
    same_bits(truth, again)
    assert truth.columns["truncated"].tolist() == again.columns["truncated"].tolist()
    detections = boxscore.load_detections(SHAPES_VOC / "results", truth)
    boxscore.save_as(detections, tmp_path / "results", format="voc")
    assert (
        boxscore.evaluate(
            truth, boxscore.load_detections(tmp_path / "results", truth), protocol="voc2007"
        ).metrics
        == boxscore.evaluate(truth, detections, protocol="voc2007").metrics
    )


def test_coco_results_as_voc_results(tmp_path: Path) -> None:
    """Numbers and names of the ground truth become the names of files and lines."""
    truth = boxscore.load_ground_truth(COCO_TRUTH)
    detections = boxscore.load_detections(COCO_FOUND, truth)
    boxscore.save_as(detections, tmp_path / "results", format="voc")
    again = boxscore.load_detections(tmp_path / "results", truth)
    assert (
        boxscore.evaluate(truth, again).metrics["AP50"]
        == boxscore.evaluate(truth, detections).metrics["AP50"]
    )


def test_a_path_beside_gt_may_be_detections(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = str(tmp_path / "o.json")
    assert main(["convert", "found.json", "--gt", str(COCO_TRUTH), "--output", output]) == 2
    assert "did you mean --dt found.json?" in capsys.readouterr().err
    assert main(["nms", "a.json", "b.json", "--output", output, "--iou-threshold", ".5"]) == 2
    assert "did you mean" not in capsys.readouterr().err


def test_what_is_left_out_is_said_once_the_rest_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where nothing is written, nothing was left out; ``--strict`` ends before anything is written."""
    call = ["convert", "--gt", str(COCO_TRUTH), "--output", str(tmp_path / "voc"), "--to", "voc", "--lossy"]
    assert main([*call, "--strict"]) == 2
    message = capsys.readouterr().err
    assert message.startswith(f"boxscore: error: {tmp_path / 'voc'}: would be written except for ")
    assert not (tmp_path / "voc").exists()
    (tmp_path / "voc" / "Annotations").mkdir(parents=True)
    (tmp_path / "voc" / "Annotations" / "other.xml").write_text("<annotation/>")
    assert main(call) == 2
    assert "left out" not in capsys.readouterr().err
    (tmp_path / "voc" / "Annotations" / "other.xml").unlink()
    assert main(call) == 0
    left_out, written = capsys.readouterr().err.splitlines()
    assert left_out == message.strip().replace("error", "warning").replace("would be written", "written")
    assert written.endswith(f"rows written to {tmp_path / 'voc'}")


def test_a_folder_with_other_annotations(tmp_path: Path) -> None:
    truth = boxscore.load_ground_truth(VOC_TRUTH, image_set="test")
    (tmp_path / "Annotations").mkdir()
    (tmp_path / "Annotations" / "other.xml").write_text("<annotation/>")
    with pytest.raises(boxscore.InputError, match=r"hold no other annotations.*Annotations/other\.xml"):
        boxscore.save_as(truth, tmp_path, format="voc")


# ---------------------------------------------------------------- YOLO


@pytest.mark.parametrize("name", ["yolo", "darknet"])
def test_yolo_with_its_table_of_sizes(name: str, tmp_path: Path) -> None:
    truth = boxscore.load_ground_truth(COCO_TRUTH)
    detections = boxscore.load_detections(COCO_FOUND, truth)
    quietly(boxscore.save_as, truth, tmp_path / "gt", format=name, lossy=True)
    boxscore.save_as(detections, tmp_path / "dt", format=name)
    table = tmp_path / "gt" / "image_sizes.csv"
    again = boxscore.load_ground_truth(tmp_path / "gt", image_sizes=table)
    beside = boxscore.load_ground_truth(tmp_path / "gt")
    assert (beside.units, beside.boxes.tobytes()) == ("pixels", again.boxes.tobytes())
    assert beside.images.sizes.tobytes() == again.images.sizes.tobytes()
    assert boxscore.load_ground_truth(tmp_path / "gt" / "labels").units == "pixels"
    assert boxscore.load_ground_truth(tmp_path / "gt", image_sizes="9x9").images.sizes.tolist()[0] == [9, 9]
    order = np.argsort(truth.image, kind="stable")
    assert np.abs(truth.boxes[order] - again.boxes).max() < 1e-12 * 320
    results = boxscore.load_detections(tmp_path / "dt", again, format=name)
    assert len(results) == len(detections)
    before = boxscore.evaluate(truth.replaced(crowd=~(truth.area < 0) & False), detections).metrics["AP50"]
    assert boxscore.evaluate(again, results).metrics["AP50"] == pytest.approx(before, abs=1e-3)


def test_fractions_become_no_pixels(tmp_path: Path) -> None:
    truth = boxscore.load_ground_truth(COCO_TRUTH)
    quietly(boxscore.save_as, truth, tmp_path / "gt", format="yolo", lossy=True)
    (tmp_path / "gt" / "image_sizes.csv").write_text("name;size\n")  # another table than boxscore writes
    unsized = quietly(boxscore.load_ground_truth, tmp_path / "gt")
    assert unsized.units == "fractions"
    for name in ("coco", "voc"):
        with pytest.raises(boxscore.InputError, match="image-sizes") as error:
            boxscore.save_as(unsized, tmp_path / "out", format=name, lossy=True)
        assert "must be pixels" in str(error.value)
    boxscore.save_as(unsized, tmp_path / "again", format="yolo")
    boxscore.save_as(unsized, tmp_path / "again.npz")


def test_an_image_without_a_size_is_named(tmp_path: Path) -> None:
    truth = boxscore.GroundTruth.from_arrays([475779], ["cat"], [[0, 0, 4, 4]])
    with pytest.raises(
        boxscore.InputError, match=r"Got no size of image 475779 in arrays; pass the image sizes: "
    ):
        boxscore.save_as(truth, tmp_path / "out", format="yolo", lossy=True)


def test_a_result_given_for_data_is_called_so(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text(boxscore.evaluate(COCO_TRUTH, COCO_FOUND).to_json())
    message = (
        "result.json; this looks like a result of boxscore evaluate: pass it to boxscore check --result "
        "or --no-regression."
    )
    with pytest.raises(boxscore.InputError) as of_truth:
        boxscore.load_ground_truth(path)
    with pytest.raises(boxscore.InputError) as of_detections:
        boxscore.evaluate(COCO_TRUTH, path)
    assert [str(error.value)[-len(message) :] for error in (of_truth, of_detections)] == [message, message]


# ---------------------------------------------------------------- what would be lost


def test_what_is_lost_is_named(tmp_path: Path) -> None:
    truth = boxscore.load_ground_truth(COCO_TRUTH)
    names = {name: [*lost(truth, format_named(name))] for name in ("columns", "coco", "voc", "yolo")}
    assert names == {
        "columns": [],
        "coco": [],
        "voc": ["masks", "areas", "crowd", "classes", "ids"],
        "yolo": ["masks", "areas", "crowd", "ids"],
    }
    with pytest.raises(
        boxscore.InputError,
        match=r"113 masks, 89 areas.*5 crowd flags.*these formats can store it: .*coco, .*columns",
    ):
        boxscore.save_as(truth, tmp_path / "voc", format="voc")
    with pytest.warns(boxscore.BoxscoreWarning, match="written except for 113 masks"):
        left_out = boxscore.save_as(truth, tmp_path / "voc", format="voc", lossy=True)
    assert left_out[0] == "113 masks"
    assert len(boxscore.load_ground_truth(tmp_path / "voc")) == len(truth)


@pytest.mark.parametrize("name", ["coco", "csv", "openimages", "parquet", "darknet", "yolo", "dota", "voc"])
def test_columns_of_images_are_refused_where_no_reader_gives_them_back(name: str, tmp_path: Path) -> None:
    truth = boxscore.GroundTruth.from_arrays([1], ["cat"], [[1.0, 2.0, 5.0, 7.0]])
    images = dataclasses.replace(truth.images, columns={"camera": np.array(["left"], dtype=object)})
    truth = truth.replaced(images=images)
    with pytest.raises(InputError, match="column camera of images"):
        boxscore.save_as(truth, tmp_path / "out", format=name)
    boxscore.save_as(truth, tmp_path / "kept.npz")
    assert boxscore.load_ground_truth(tmp_path / "kept.npz").images.columns["camera"].tolist() == ["left"]


def test_ids_that_only_count_are_no_content() -> None:
    boxes = [[0, 0, 9, 9]] * 2
    counted = boxscore.GroundTruth.from_arrays([0, 1], [0, 1], boxes, categories={0: "a", 1: "b"})
    assert lost(counted, format_named("yolo")) == {}
    from_1 = boxscore.GroundTruth.from_arrays([0, 1], [1, 2], boxes, categories={1: "a", 2: "b"})
    assert lost(from_1, format_named("voc")) == {}
    assert lost(from_1, format_named("yolo")) == {"ids": "ids of classes"}  # or results would be off by one
    unsorted = boxscore.GroundTruth.from_arrays([0, 1], [1, 2], boxes, categories={1: "b", 2: "a"})
    assert lost(unsorted, format_named("voc")) == {"ids": "ids of classes"}
    images = boxscore.load_ground_truth(COCO_TRUTH).images
    named = boxscore.GroundTruth.from_arrays(images.ids[:2], [0, 1], boxes, images=images)
    assert lost(named, format_named("yolo")) == {}
    other = boxscore.GroundTruth.from_arrays([7, 9], [1, 3], boxes, ids=[5, 6], categories={1: "a", 3: "b"})
    assert lost(other, format_named("yolo")) == {"ids": "ids of classes, annotations"}
    repeated = boxscore.GroundTruth.from_arrays([1, 2], [1, 2], boxes, ids=[5, 5])
    assert "repeated ids" in lost(repeated, format_named("coco"))


NAMES = ("a\nb", " a", "", "\0", "\ud800", "<&>", "a,b", '"q"', "#c", "null", "1.5", "é")


@pytest.mark.parametrize("name", ["coco", "voc", "yolo", "columns", "csv", "parquet"])
def test_names_come_back_or_are_refused(name: str, tmp_path: Path) -> None:
    at = format_named(name)
    read = 0
    for number, label in enumerate(NAMES):
        truth = boxscore.GroundTruth.from_arrays(
            ["i"],
            [0],
            [[1, 2, 30, 40]],
            images=boxscore.data.vocabulary.Images.build(["i"], sizes=[[64, 64]]),
            categories={0: label},
        )
        path = tmp_path / f"{number}{(at.endings or ('',))[0]}"
        try:
            quietly(boxscore.save_as, truth, path, format=name, lossy=True)
        except boxscore.InputError:
            continue
        again = quietly(boxscore.load_ground_truth, path, format=name)
        assert again.categories.names.tolist() == [label]
        read += 1
    assert read >= 7


# ---------------------------------------------------------------- any table, any format


numbers = st.floats(0, 200, allow_subnormal=False).map(lambda value: round(value, 3))


@st.composite
def tables(draw: st.DrawFn) -> boxscore.GroundTruth:
    images = [f"im{number}" for number in range(draw(st.integers(1, 4)))]
    classes = ["ant", "bee", "cow"][: draw(st.integers(1, 3))]
    count = draw(st.integers(0, 5))
    boxes = [[*(draw(numbers) for _ in range(2)), *(draw(numbers) for _ in range(2))] for _ in range(count)]
    flags = [draw(st.lists(st.booleans(), min_size=count, max_size=count)) for _ in range(2)]
    return boxscore.GroundTruth.from_arrays(
        [draw(st.sampled_from(images)) for _ in range(count)],
        [1 + classes.index(draw(st.sampled_from(classes))) for _ in range(count)],
        np.array(boxes, dtype=float).reshape(-1, 4),
        box_format="xywh",
        crowd=np.array(flags[0], dtype=bool),
        difficult=np.array(flags[1], dtype=bool),
        images=boxscore.data.vocabulary.Images.build(images, sizes=[[640, 480]] * len(images)),
        categories=dict(enumerate(classes, start=1)),
    )


@settings(max_examples=25)
@given(truth=tables(), name=st.sampled_from(["coco", "voc", "yolo", "columns", "csv", "parquet"]))
def test_any_table_in_any_format(truth: boxscore.GroundTruth, name: str) -> None:
    """Nothing is lost but what was named; boxes are exact where their form is the format's own."""
    at = format_named(name)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"out{(at.endings or ('',))[0]}")
        words = {*lost(truth, at)}
        quietly(boxscore.save_as, truth, path, format=name, lossy=True)
        sizes = path / "image_sizes.csv" if name == "yolo" else None
        again = quietly(boxscore.load_ground_truth, path, format=name, image_sizes=sizes)
    order = slice(None) if name not in ("voc", "yolo") else np.argsort(truth.image, kind="stable")
    own = truth.take(order)
    if name not in ("voc", "yolo"):
        assert own.boxes.tolist() == again.boxes.tolist()
        assert own.sizes.tolist() == again.sizes.tolist()
    elif name == "voc":
        assert own.boxes.tolist() == again.boxes.tolist()
    else:
        assert np.abs(own.boxes - again.boxes).max(initial=0) < 1e-12 * 640
    for flag in ("crowd", "difficult", "ignore"):
        assert flag in words or getattr(own, flag).tolist() == getattr(again, flag).tolist()
    assert own.images.ids[own.image].tolist() == again.images.ids[again.image].tolist()
    labels = [table.categories.names[table.category].tolist() for table in (own, again)]
    assert labels[0] == labels[1]
    assert "classes" in words or own.categories.names.tolist() == again.categories.names.tolist()
    assert own.images.ids.tolist() == again.images.ids.tolist()
    assert np.array_equal(own.images.sizes, again.images.sizes)


# ---------------------------------------------------------------- the command


def run(*arguments: object) -> int:
    return main(["convert", *map(str, arguments)])


def test_the_ending_chooses_the_format(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--gt", COCO_TRUTH, "--output", tmp_path / "a.json") == 0
    assert run("--gt", COCO_TRUTH, "--output", tmp_path / "a.npz") == 0
    assert run("--dt", COCO_FOUND, "--output", tmp_path / "dt.npz") == 0
    assert run("--gt", tmp_path / "a.npz", "--dt", tmp_path / "dt.npz", "--output", tmp_path / "dt.json") == 0
    capsys.readouterr()
    assert json.loads((tmp_path / "dt.json").read_text()) == json.loads(COCO_FOUND.read_text())
    assert run("--gt", COCO_TRUTH, "--output", tmp_path / "folder") == 2
    assert "must be set with --to, because the file name does not end in" in capsys.readouterr().err


def test_parts_of_a_data_set(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "classes.csv").write_text("# from,to\ncircle,round\nmoon,round\nstar,\n")
    common = ("--gt", COCO_TRUTH, "--remap-classes", tmp_path / "classes.csv", "--crowd", "none")
    split = ("--split", "train=0.75", "val=0.25", "--seed", 3)
    assert run(*common, *split, "--output", tmp_path / "a.json") == 0
    parts = [boxscore.load_ground_truth(tmp_path / f"a-{name}.json") for name in ("train", "val")]
    assert [len(part.images) for part in parts] == [18, 6]
    assert not {*parts[0].images.ids.tolist()} & {*parts[1].images.ids.tolist()}
    whole = boxscore.load_ground_truth(COCO_TRUTH)
    stars = whole.categories.names[whole.category] == "star"
    assert sum(map(len, parts)) == int((~stars & ~whole.crowd).sum())
    assert "round" in parts[0].categories.names.tolist()
    both_sides = ("--gt", COCO_TRUTH, "--dt", COCO_FOUND)
    assert run(*both_sides, *split, "--output", tmp_path / "dt.json") == 0
    for name, part in zip(("train", "val"), parts, strict=True):  # the same images for both
        rows = json.loads((tmp_path / f"dt-{name}.json").read_text())
        assert {row["image_id"] for row in rows} <= {*part.images.ids.tolist()}
    capsys.readouterr()


@pytest.mark.parametrize("without", range(1, 5))
def test_no_part_is_written_where_one_cannot_be(
    without: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The image without a size is in the first part or in the last."""
    images = [{"id": n, "width": 90, "height": 90} for n in range(1, 5)]
    del images[without - 1]["width"]
    box = {"category_id": 1, "bbox": [0, 0, 9, 9]}
    annotations = [{"id": n, "image_id": n, **box} for n in range(1, 5)]
    truth = {"images": images, "annotations": annotations, "categories": [{"id": 1, "name": "a"}]}
    (tmp_path / "a.json").write_text(json.dumps(truth))
    split = ("--split", "a=0.5", "b=0.5", "--output", tmp_path / "o", "--to", "yolo", "--lossy")
    assert run("--gt", tmp_path / "a.json", *split) == 2
    assert [file.name for file in tmp_path.iterdir()] == ["a.json"]
    assert "have a known size" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["gt.csv", "gt.parquet"])
def test_pixels_that_a_reader_would_take_for_fractions_are_no_table(name: str, tmp_path: Path) -> None:
    truth = boxscore.GroundTruth.from_arrays([1], ["a"], [[0.25, 0, 0.5, 0.75]], box_format="xyxy")
    with pytest.raises(InputError, match=r"the boxes must have a coordinate of 2 pixels or more"):
        boxscore.save_as(truth, tmp_path / name)
    assert not list(tmp_path.iterdir())


SIZED = Images.build([1], sizes=[[90, -2]])
UNREADABLE = {
    "corners": {"boxes": [[1e100, 0, 1e99, 9]], "box_format": "xywh"},
    "sizes": {"boxes": [[0, 0, 9, 9]], "images": SIZED},
}


@pytest.mark.parametrize("name", ["gt.csv", "gt.parquet"])
@pytest.mark.parametrize("what", UNREADABLE)
def test_what_a_reader_refuses_is_not_written(what: str, name: str, tmp_path: Path) -> None:
    truth = boxscore.GroundTruth.from_arrays([1], ["a"], **UNREADABLE[what])
    with pytest.raises(InputError, match=r"at most 1e\+100 in size|be 1 pixel or more"):
        boxscore.save_as(truth, tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_ids_of_more_than_64_bits_are_no_parquet(tmp_path: Path) -> None:
    truth = boxscore.GroundTruth.from_arrays([10**30], ["a"], [[0, 0, 9, 9]])
    with pytest.raises(InputError, match="numbers must be integers of 64 bits"):
        boxscore.save_as(truth, tmp_path / "gt.parquet")


def test_masks_of_one_image_with_two_sizes_are_no_parquet(tmp_path: Path) -> None:
    """As of a file of ground truth that declares the image twice."""
    masks = boxscore.Masks([np.eye(8), np.eye(9)])
    detections = boxscore.Detections.from_arrays([1, 1], ["a", "a"], None, [0.5, 0.5], masks=masks)
    with pytest.raises(InputError) as refused:
        boxscore.save_as(detections, tmp_path / "dt.parquet")
    assert (
        str(refused.value)
        == "the width of a mask must be its image's. Got 9, where the image's is 8 in row 1."
    )


def test_no_keypoints_of_no_objects(tmp_path: Path) -> None:
    truth = boxscore.GroundTruth.from_arrays([1], ["a"], [[0, 0, 9, 9]], keypoints=[[[1, 2, 2]] * 3])
    boxscore.save_as(truth.take(np.empty(0, dtype=np.intp)), tmp_path / "gt.json")
    assert json.loads((tmp_path / "gt.json").read_text())["annotations"] == []


def test_ids_of_two_kinds_are_named_as_lost() -> None:
    truth = boxscore.GroundTruth.from_arrays([1, 1], ["a", "a"], [[0, 0, 9, 9]] * 2, ids=[1, "x"])
    assert "annotations" in lost(truth, format_named("yolo"))["ids"]


def test_a_part_may_have_gaps_where_the_whole_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    truth = boxscore.GroundTruth.from_arrays(range(1, 9), ["a"] * 8, [[0, 0, 9, 9]] * 8)
    boxscore.save_as(truth, tmp_path / "a.json")
    common = ("--gt", tmp_path / "a.json", "--to", "voc", "--output", tmp_path / "v", "--sample", 3)
    assert run(*common) == 0
    assert len(list((tmp_path / "v" / "Annotations").iterdir())) == 3
    capsys.readouterr()


def test_sizes_of_a_table_where_the_files_have_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Labels are fractions: they need sizes, which COCO files may lack."""
    truth = boxscore.GroundTruth.from_arrays([1, 2], [0, 0], [[0, 0, 8, 8], [5, 5, 25, 15]])
    boxscore.save_as(truth, tmp_path / "a.json")
    common = ("--gt", tmp_path / "a.json", "--to", "yolo", "--output", tmp_path / "labels")
    assert run(*common) == 2
    assert "an image must have a known size" in capsys.readouterr().err
    (tmp_path / "sizes.csv").write_text("image,width,height\n1,16,8\n2,50,20\n")
    assert run(*common, "--image-sizes", tmp_path / "sizes.csv") == 0
    assert (tmp_path / "labels" / "labels" / "2.txt").read_text() == "0 0.3 0.5 0.4 0.5\n"
    capsys.readouterr()
