"""YOLO's text files: where they lie, what their lines say, and what is refused."""

from __future__ import annotations

import json
import struct
import warnings
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore.errors import BoxscoreWarning, FileFormatError, InputError
from boxscore.formats import detect_format, load_detections, load_ground_truth
from boxscore.formats._yolo_lines import read_lines
from boxscore.formats.registry import format_named
from support.real_data import real
from support.samples import SHAPES

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*(image sizes are|size of .* images? is) unknown, so boxes stay:boxscore.errors.BoxscoreWarning"
)

SIZES = {"a": (200, 100), "b.c": (400, 300), "d": (50, 60)}
YAML = "path: ../somewhere\ntrain: images/train\nval: images/val\nnames:\n  0: cat\n  1: dog\n"


def write(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content, encoding="utf-8")
    return folder


def png(width: int, height: int) -> bytes:
    """Return a black image."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    rows = zlib.compress(b"".join(b"\0" * (width + 1) for _ in range(height)))
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def summary(path: Path, **options: Any) -> dict[str, list[Any]]:
    """Return the boxes of each image as class name and corners."""
    table = load_ground_truth(path, **options)
    by_image: dict[str, list[Any]] = {str(identifier): [] for identifier in table.images.ids.tolist()}
    for row in range(len(table)):
        image = str(table.images.ids[table.image[row]])
        by_image[image].append(
            (table.categories.names[table.category[row]], table.boxes[row].round(9).tolist())
        )
    return by_image


# ---------------------------------------------------------------- where files lie

LABELS = {"a.txt": "1 0.5 0.5 0.5 0.5\n", "b.c.txt": ""}
EXPECTED = {"a": [("dog", [50.0, 25.0, 150.0, 75.0])], "b.c": []}

LAYOUTS: dict[str, tuple[dict[str, str], str]] = {
    "images/val beside labels/val": (
        {"data.yaml": YAML, "labels/val/": "", "labels/train/": ""},
        "data.yaml",
    ),
    "its folder": ({"data.yaml": YAML, "labels/val/": "", "labels/train/": ""}, "."),
    "val/labels": (
        {"data.yaml": "train: ../train/images\nval: ../valid/images\nnames: [cat, dog]\n", "val/labels/": ""},
        "data.yaml",
    ),
    "a foreign machine's folder": (
        {
            "data.yaml": "path: D:\\Garment fault detection\\set\ntrain: D:\\x\\train\\images\n"
            "val: D:\\x y\\valid\\images\nnames: ['cat', 'dog']\n",
            "valid/labels/": "",
        },
        "data.yaml",
    ),
    "no data.yaml": ({"classes.txt": "cat\ndog\n", "labels/val/": "", "labels/train/": ""}, "."),
    "labels alone": ({"classes.txt": "cat\ndog\n", "labels/": ""}, "labels"),
    "labels/val": ({"data.yaml": YAML, "labels/val/": "", "labels/train/": ""}, "labels/val"),
    "a folder of .txt": ({"obj.names": "cat\ndog\n", "": ""}, "."),
    "darknet": (
        {
            "obj.data": "classes = 2\ntrain = data/train.txt\nnames = data/obj.names\nbackup = backup/\n",
            "obj.names": "cat\ndog\n",
            "train.txt": "data/obj_train_data/a.jpg\ndata/obj_train_data/b.c.jpg\n",
            "obj_train_data/": "",
        },
        ".",
    ),
    "a list of images": (
        {"obj.names": "cat\ndog\n", "l.txt": "/x/images/a.jpg\n./images/b.c.png\n", "labels/": ""},
        "l.txt",
    ),
}


@pytest.mark.filterwarnings("ignore:.* listed only in .* and count:boxscore.BoxscoreWarning")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_give_the_same_ground_truth(layout: str, tmp_path: Path) -> None:
    files, place = LAYOUTS[layout]
    for name, content in files.items():
        if name.endswith("/") or not name:
            train = {"only_of_train.txt": "0 0.5 0.5 0.1 0.1\n"}
            write(tmp_path / name, train if name[-6:] == "train/" else LABELS)
        else:
            write(tmp_path, {name: content})
    path = tmp_path / place
    assert detect_format(path)[0] == "yolo"
    listed = {} if layout in ("darknet", "a list of images") else {"d": []}  # named by the sizes alone
    assert summary(path, image_sizes=SIZES) == {**EXPECTED, **listed}


def test_images_of_the_folder_count_and_give_their_sizes(tmp_path: Path) -> None:
    images = {f"images/val/{name}.png": png(*size) for name, size in SIZES.items()}
    write(tmp_path, {"data.yaml": YAML, **images, "labels/val/a.txt": "1 0.5 0.5 0.5 0.5\n"})
    table = load_ground_truth(tmp_path)
    assert table.units == "pixels"
    assert dict(zip(table.images.ids.tolist(), table.images.sizes.tolist(), strict=True)) == {
        name: list(map(float, size)) for name, size in SIZES.items()
    }
    assert table.images.file_names.tolist() == ["a.png", "b.c.png", "d.png"]
    assert summary(tmp_path) == {"a": EXPECTED["a"], "b.c": [], "d": []}


def test_sizes_by_file_name_are_found_by_the_name_without_ending(tmp_path: Path) -> None:
    sizes = {"x/a.jpg": (8, 4), "b.c.png": (2, 3), "d.jpg": (5, 5), "d.png": (6, 6)}
    write(tmp_path, {f"labels/{name}.txt": "0 .5 .5 .5 .5" for name in SIZES})
    sizes_read = load_ground_truth(tmp_path / "labels", image_sizes=sizes).images.sizes
    np.testing.assert_equal(sizes_read, [[8, 4], [2, 3], [np.nan, np.nan]])  # d is two images


def test_labels_without_image_are_left_out_with_a_warning(tmp_path: Path) -> None:
    write(tmp_path, {"images/a.png": png(4, 4), "labels/a.txt": "0 .5 .5 .5 .5", "labels/x.txt": "0 1 1 0 0"})
    with pytest.warns(BoxscoreWarning, match=r"ignoring 1 label file without an image in .*: x\."):
        assert load_ground_truth(tmp_path).images.ids.tolist() == ["a"]


def test_image_set_chooses_a_split_and_val_is_the_default(tmp_path: Path) -> None:
    for split in ("train", "valid", "test"):
        write(tmp_path, {f"{split}/labels/{split}.txt": "0 .5 .5 .5 .5"})
    assert load_ground_truth(tmp_path).images.ids.tolist() == ["valid"]
    assert load_ground_truth(tmp_path, image_set="val").images.ids.tolist() == ["valid"]
    assert load_ground_truth(tmp_path, image_set="test").images.ids.tolist() == ["test"]
    with pytest.raises(InputError, match="image_set must be a split of the data set"):
        load_ground_truth(tmp_path, image_set="tset")


def test_a_relative_path_finds_its_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"images/val/a.png": png(8, 4), "labels/val/a.txt": "0 .5 .5 .5 .5"})
    for folder, path in (("labels/val", "."), ("labels", "val"), (".", "labels/val"), (".", ".")):
        monkeypatch.chdir(tmp_path / folder)
        assert load_ground_truth(path).images.sizes.tolist() == [[8, 4]]


def test_labels_beside_images_of_a_folder_called_images(tmp_path: Path) -> None:
    files = {"images/val/a.png": png(8, 4), "images/val/a.txt": "0 .5 .5 .5 .5", "data.yaml": YAML}
    assert len(load_ground_truth(write(tmp_path, files))) == 1


def test_names_that_occur_in_two_folders_keep_the_folder(tmp_path: Path) -> None:
    write(tmp_path, {"labels/x/a.txt": "0 .5 .5 .5 .5", "labels/y/a.txt": "", "labels/b.txt": ""})
    assert load_ground_truth(tmp_path).images.ids.tolist() == ["b", "x/a", "y/a"]


# ---------------------------------------------------------------- what lines say


def labels(tmp_path: Path, text: str, **options: Any) -> boxscore.GroundTruth:
    return load_ground_truth(write(tmp_path, {"labels/a.txt": text}) / "labels", **options)


@pytest.mark.parametrize(
    "text",
    [
        "0 0.25 0.5 0.5 0.25\n1 0.5 0.5 0.5 0.5",
        "\n0 0.25 0.5 0.5 0.25\n\n1 0.5 0.5 0.5 0.5\n\n",
        "0 0.25 0.5 0.5 0.25\r\n1 0.5 0.5 0.5 0.5\r\n",
        "\ufeff0\t0.25  0.5 0.5 0.25 \n 1 0.5 0.5 0.5 0.5",
        "0 .25 +0.5 5e-1 0.25\n1.0 0.5 0.50 00.5 0.5\n",
    ],
)
def test_spellings_of_the_same_lines(text: str, tmp_path: Path) -> None:
    table = labels(tmp_path, text, image_sizes={"a": (200, 100)})
    assert table.boxes.tolist() == [[0, 37.5, 100, 62.5], [50, 25, 150, 75]]
    assert table.category.tolist() == [0, 1]


def test_pixels_are_the_product_in_float64(tmp_path: Path) -> None:
    generator = np.random.default_rng(7)
    rows = generator.uniform(0.1, 0.4, (50, 4))
    text = "".join(f"0 {' '.join(map(repr, row))}\n" for row in rows.tolist())
    table = labels(tmp_path, text, image_sizes={"a": (641, 479)})
    for (cx, cy, w, h), box in zip(rows.tolist(), table.boxes.tolist(), strict=True):
        x1, y1 = cx * 641 - w * 641 / 2, cy * 479 - h * 479 / 2
        assert box == [x1, y1, x1 + w * 641, y1 + h * 479]


def test_polygons_boxes_and_masks(tmp_path: Path) -> None:
    table = labels(tmp_path, "0 0.1 0.2 0.5 0.2 0.3 0.8\n", image_sizes={"a": (200, 100)})
    assert table.boxes.round(9).tolist() == [[20, 20, 100, 80]]
    assert table.masks is not None
    assert table.rotated is None
    assert table.masks.boxes.tolist() == [[20, 20, 100, 79]]  # of its pixels
    table = labels(tmp_path, "0 0.1 0.2 0.5 0.2 0.3 0.8\n1 0.5 0.5 0.5 0.5\n", image_sizes={"a": (200, 100)})
    assert table.boxes.round(9).tolist() == [[20, 20, 100, 80], [50, 25, 150, 75]]
    assert table.area.round(9).tolist() == [80 * 60 / 2, 100 * 50]


def test_four_corners_are_a_polygon_and_a_rotated_box(tmp_path: Path) -> None:
    table = labels(tmp_path, "0 0.2 0.4 0.4 0.2 0.6 0.4 0.4 0.6\n", image_sizes={"a": (100, 100)})
    assert table.rotated is not None
    assert table.masks is not None
    np.testing.assert_allclose(table.rotated[0, :4], [40, 40, 200**0.5 * 2, 200**0.5 * 2])
    assert table.boxes.round(9).tolist() == [[20, 20, 60, 60]]


@pytest.mark.parametrize(("side", "last"), [(2, [1.0, 1.0]), (3, [2.0, 0.0])])
def test_keypoints_by_kpt_shape(side: int, last: list[float], tmp_path: Path) -> None:
    points = "0.25 0.5 0.75 0.5" if side == 2 else "0.25 0.5 2 0.75 0.5 0"
    yaml = f"val: images\nnames: [person]\nkpt_shape: [2, {side}]\n"
    write(tmp_path, {"data.yaml": yaml, "labels/a.txt": f"0 0.5 0.5 0.5 0.5 {points}\n"})
    table = load_ground_truth(tmp_path, image_sizes={"a": (200, 100)})
    assert table.keypoints is not None
    assert table.keypoints.tolist() == [[[50, 50, last[0]], [150, 50, last[1]]]]
    assert table.boxes.tolist() == [[50, 25, 150, 75]]


def test_keypoints_of_predictions_are_told_by_the_ground_truth(tmp_path: Path) -> None:
    yaml = "val: images\nnames: [person]\nkpt_shape: [2, 3]\n"
    write(tmp_path, {"data.yaml": yaml, "labels/a.txt": "0 0.5 0.5 0.5 0.5 0.25 0.5 2 0.75 0.5 2\n"})
    write(tmp_path / "dt", {"a.txt": "0 0.5 0.5 0.5 0.5 0.25 0.5 0.9 0.75 0.5 0.8 0.7\n"})
    truth = load_ground_truth(tmp_path, image_sizes={"a": (200, 100)})
    detections = load_detections(tmp_path / "dt", truth)
    assert detections.keypoints is not None
    assert detections.scores.tolist() == [0.7]
    assert detections.keypoints.tolist() == [[[50, 50, 0.9], [150, 50, 0.8]]]


# ---------------------------------------------------------------- predictions


def truth(tmp_path: Path) -> boxscore.GroundTruth:
    write(tmp_path / "gt", {"labels/a.txt": "1 0.5 0.5 0.5 0.5\n0 .2 .2 .1 .1", "classes.txt": "cat\ndog\n"})
    return load_ground_truth(tmp_path / "gt", image_sizes={"a": (200, 100)})


def predicted(tmp_path: Path, text: str, **options: Any) -> boxscore.Detections:
    return load_detections(write(tmp_path / "dt", {"labels/a.txt": text}), truth(tmp_path), **options)


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("1 0.5 0.5 0.5 0.5 0.75\n", {"format": "yolo"}),
        ("1 0.5 0.5 0.5 0.5 0.75 12\n", {}),
        ("1 0.75 0.5 0.5 0.5 0.5\n", {"format": "darknet"}),
        ("dog 0.75 0.5 0.5 0.5 0.5\n", {"format": "darknet"}),
        ("0 0.75 0.5 0.5 0.5 0.5\n", {"format": "darknet", "classes": ["dog", "cat"]}),
    ],
)
def test_forms_of_predictions(text: str, options: dict[str, Any], tmp_path: Path) -> None:
    detections = predicted(tmp_path, text, **options)
    assert detections.boxes.tolist() == [[50, 25, 150, 75]]
    assert (detections.scores.tolist(), detections.category.tolist()) == ([0.75], [1])


def test_predictions_beside_coco_ground_truth_take_its_sizes_and_names(tmp_path: Path) -> None:
    content = {
        "images": [{"id": 7, "file_name": "x/a.jpg", "width": 200, "height": 100}],
        "categories": [{"id": 3, "name": "dog"}, {"id": 1, "name": "cat"}],
        "annotations": [
            {"id": 1, "image_id": 7, "category_id": 3, "bbox": [50, 25, 100, 50], "area": 5000, "iscrowd": 0}
        ],
    }
    write(tmp_path, {"gt.json": json.dumps(content), "dt/a.txt": "1 0.5 0.5 0.5 0.5 0.75\n"})
    gt = load_ground_truth(tmp_path / "gt.json")
    detections = load_detections(tmp_path / "dt", gt, format="yolo", classes=["cat", "dog"])
    assert detections.boxes.tolist() == gt.boxes.tolist() == [[50, 25, 150, 75]]
    assert detections.category.tolist() == gt.category.tolist()
    with pytest.raises(InputError, match="uses class numbers that count from 0"):
        load_detections(tmp_path / "dt", gt, format="yolo")


def test_the_place_of_the_confidence_is_told_where_one_reading_leaves_the_image(tmp_path: Path) -> None:
    assert predicted(tmp_path, "1 0.1 0.8 0.2 0.3 0.9\n").scores.tolist() == [0.9]
    assert predicted(tmp_path, "1 0.9 0.1 0.8 0.2 0.3\n").scores.tolist() == [0.9]
    assert predicted(tmp_path, "1 0.9 0.5 0.5 0.5 1.02\n").scores.tolist() == [0.9]
    with pytest.raises(
        InputError, match=r"boxes inside their image read as.*use --dt-format yolo .* or --dt-format darknet"
    ):
        predicted(tmp_path, "1 0.5 0.5 0.5 0.5 0.5\n")


def test_the_place_of_the_confidence_is_that_of_most_lines(tmp_path: Path) -> None:
    """Detectors write boxes that reach out of the image: 60 of 10,919 ended in a refusal."""
    inside, outside = "1 0.1 0.8 0.2 0.3 0.9\n", "1 0.95 0.8 0.4 0.3 0.9\n"
    assert predicted(tmp_path, inside * 12 + outside).scores.tolist() == [0.9] * 13
    second = "1 0.9 0.1 0.8 0.2 0.3\n"
    assert predicted(tmp_path, second * 12 + "1 0.9 0.95 0.8 0.4 0.3\n").scores.tolist() == [0.9] * 13
    with pytest.raises(InputError, match=r"9 of 10 boxes inside .* confidence, and 0 as class confidence"):
        predicted(tmp_path, inside * 9 + outside)


def test_polygon_predictions(tmp_path: Path) -> None:
    detections = predicted(tmp_path, "1 0.1 0.2 0.5 0.2 0.3 0.8 0.6\n1 0.1 0.2 0.5 0.2 0.3 0.8 0.3 0.9 0.5\n")
    assert detections.scores.tolist() == [0.6, 0.5]
    assert detections.masks is not None
    assert len(detections.masks) == 2


# ---------------------------------------------------------------- what is refused

GOOD = "0 .5 .5 .4 .4\n1 .5 .5 .5 .5\n0 .5 .5 .2 .2\n"

REFUSED_LABELS = {
    "3_7 0.5 0.5 0.5 0.5": r"be a number in all lines, or a name in all.*3_7",
    "0 0.5 0.5 1_0 0.5": "numbers of a label must be numbers. Got '1_0'",
    "0 0.5 0.5 \u0660.5 0.5": "must be numbers",
    "0 0.5 0.5 nan 0.5": "must be numbers",
    "0 0.5 0.5 1e999 0.5": "must be fractions of the image size. Got inf",
    "0 162 96 189 245": "must be fractions.*162.*line 4; 1 of 4 lines is so; correct or remove it",
    "0 0.5 0.5 0.5": r"must be class cx cy w h.*'0 0.5 0.5 0.5', 4 numbers",
    "0 0.5 0.5 0.5 0.5 0.9": "are these predictions with their confidence",
    "0.5 0.5 0.5 0.5 0.5": "a class number must be a whole number",
    "-1 0.5 0.5 0.5 0.5": "a class number must be a whole number",
    "0 0.5 0.5 -0.5 0.5": "must have width >= 0",
    "2 0.5 0.5 0.5 0.5": r"from 0 to 1, for the 2 names.*Got 2 in .*a\.txt, line 4",
}


@pytest.mark.parametrize("text", REFUSED_LABELS)
def test_refused_labels(text: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=REFUSED_LABELS[text]):
        labels(tmp_path, GOOD + text, classes=["cat", "dog"], image_sizes={"a": (9, 9)})


@pytest.mark.parametrize("text", REFUSED_LABELS)
def test_a_format_that_is_named_says_what_is_wrong_where_nothing_is_recognized(
    text: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=r"must (be|have)"):
        labels(tmp_path, text, format="yolo", classes=["cat", "dog"], image_sizes={"a": (9, 9)})


REFUSED_PREDICTIONS = {
    "1 0.5 0.5 0.5 0.5\n1 0.5 0.5 0.5 0.5 0.5": "have a confidence where another has one.*save_conf=True",
    "1 0.5 0.5 0.5 0.5 1\n1 0.5 0.5 0.5 0.5 2\n": "are these numbers of tracks.*save_conf=True",
    "1 0.1 0.2 0.5 0.2 0.3 0.8": "save_conf=True",
    "1 0.5 0.5 0.5 0.5 -0.5": "a confidence must be a number from 0 to 1",
}


@pytest.mark.parametrize("text", REFUSED_PREDICTIONS)
def test_refused_predictions(text: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=REFUSED_PREDICTIONS[text]):
        predicted(tmp_path, text, format="yolo")


def test_a_split_without_any_label_is_refused(tmp_path: Path) -> None:
    write(tmp_path, {"images/val/a.png": png(4, 4), "labels/train/a.txt": "", "data.yaml": YAML})
    with pytest.raises(FileFormatError, match=r"a split must have label files\. Got 1 image without any"):
        load_ground_truth(tmp_path)


def test_repeated_labels_count_with_a_warning(tmp_path: Path) -> None:
    with pytest.warns(BoxscoreWarning, match=r"1 label repeats another of the same image \(.*line 3\)"):
        assert len(labels(tmp_path, "0 .5 .5 .5 .5\n0 .5 .5 .5 .4\n0 .5 .5 .5 .5\n")) == 3


def test_labels_that_reach_out_are_kept_with_a_warning(tmp_path: Path) -> None:
    with pytest.warns(BoxscoreWarning, match=r"1 label extends outside the image \(.*line 2\)"):
        assert len(labels(tmp_path, "0 .5 .5 .5 1\n0 .5 .5 .5 1.02\n")) == 2


def test_large_files_are_parsed_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("boxscore.formats._yolo_lines._PIECE", 40)
    files = [
        str(write(tmp_path, {f"{i}.txt": "\n".join([f"{i} .5 .5 {i}.5 1"] * (i % 3))}) / f"{i}.txt")
        for i in range(20)
    ]
    lines = read_lines(files)
    expected = [i for i in range(20) for _ in range(i % 3)]
    assert lines.values.reshape(-1, 5)[:, 0].tolist() == expected
    assert lines.ends.tolist() == np.cumsum([i % 3 for i in range(20)]).tolist()
    assert lines.place(len(expected) - 1) == f"{tmp_path / '19.txt'}, line 1"


@pytest.mark.parametrize(
    "content",
    [
        "val: [1, 2]\nnames: [a]\n",
        "val: {a: b}\nnames: [a]\n",
        "val: images\nnames: 7\n",
        "val: images\nnames: {1: a}\n",
        "val: images\nnames: [a]\nkpt_shape: [0, 3]\n",
        "val: images\nnames: [a]\nkpt_shape: [17]\n",
        "val: nowhere/images\nnames: [a]\n",
        "val: 'a\\0b'\nnames: [a]\n",
        f"val: {'x' * 5000}\nnames: [a]\n",
        "val: ../../../../etc\nnames: [a]\n",
        "val: images\na0: &a0 [x]\n"  # a value of billions, each of which would be printed
        + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 11))
        + "names: *a10\n",
        "val: images\nnames: &a [*a]\n",
    ],
)
def test_strange_data_yaml(content: str, tmp_path: Path) -> None:
    write(tmp_path, {"data.yaml": content, "x.txt": "0 .5 .5 .5 .5"})
    with pytest.raises(InputError):
        load_ground_truth(tmp_path / "data.yaml")


def test_a_data_yaml_sends_nobody_through_other_folders(tmp_path: Path) -> None:
    write(tmp_path / "other", {"a.txt": "0 .5 .5 .5 .5"})
    content = f"path: {tmp_path}\nval: [other]\nnames: [a]\n"
    write(tmp_path / "set", {"data.yaml": content, "x.txt": "0 .5 .5 .5 .5"})
    with pytest.raises(FileFormatError, match=r"Got 'other', which is not there"):
        load_ground_truth(tmp_path / "set")
    write(tmp_path / "other" / "labels", {"b.txt": "0 .5 .5 .5 .5"})
    write(tmp_path / "set", {"data.yaml": content.replace("other", "other/images")})
    assert load_ground_truth(tmp_path / "set").images.ids.tolist() == ["b"]


@pytest.mark.parametrize(
    "files",
    [
        {"a.txt": "cat 0.9 10 20 30 40\n"},
        {"a.txt": "10 20 30 40 0.9 1\n"},
        {"readme.txt": "YOLO labels, see data.yaml"},
        {"a.txt": "hello\n"},
        {"a.json": "[]"},
        {"data.yaml": "task: detect\nmode: train\nval: true\n"},
        {"labels/a.xml": "<annotation/>"},
    ],
)
def test_what_is_not_taken_for_yolo(files: dict[str, str], tmp_path: Path) -> None:
    from boxscore.formats._sniffer import Sniffer

    write(tmp_path, files)
    assert format_named("yolo").detect(Sniffer(tmp_path)) is None
    assert all(format_named("yolo").detect(Sniffer(path)) is None for path in tmp_path.rglob("*.*"))


# ---------------------------------------------------------------- writing


def test_what_is_written_reads_back(tmp_path: Path) -> None:
    gt = truth(tmp_path)
    found = predicted(tmp_path, "1 0.1 0.8 0.2 0.3 0.9\n0 0.3 0.3 0.25 0.125 0.4\n")
    format_named("yolo").save(gt, tmp_path / "out_gt")
    format_named("yolo").save(found, tmp_path / "out_dt")
    again = load_ground_truth(tmp_path / "out_gt", image_sizes={"a": (200, 100)})
    np.testing.assert_allclose(again.boxes, gt.boxes, rtol=1e-12)
    assert again.categories.names.tolist() == gt.categories.names.tolist()
    detections = load_detections(tmp_path / "out_dt", again)
    np.testing.assert_allclose(detections.boxes, found.boxes, rtol=1e-12)
    assert detections.scores.tolist() == found.scores.tolist()
    assert detections.category.tolist() == found.category.tolist()


def test_writing_again_replaces_and_other_labels_are_refused(tmp_path: Path) -> None:
    gt = truth(tmp_path)
    for _ in range(2):
        format_named("yolo").save(gt, tmp_path / "out")
    write(tmp_path, {"out/labels/other.txt": ""})
    with pytest.raises(InputError, match=r"must hold no other labels.*labels/other\.txt"):
        format_named("yolo").save(gt, tmp_path / "out")
    write(tmp_path, {"file": ""})
    with pytest.raises(InputError, match="must be a folder"):
        format_named("yolo").save(gt, tmp_path / "file")
    with pytest.raises(InputError, match="cannot be written"):
        format_named("yolo").save(gt, tmp_path / "file" / "inside")
    assert not list(tmp_path.glob(".*"))


def test_writing_needs_sizes(tmp_path: Path) -> None:
    table = boxscore.GroundTruth.from_arrays(boxes=[[0, 0, 1, 1]], image_ids=["a"], category_ids=[0])
    with pytest.raises(InputError, match="must have a known size where boxes are written as fractions"):
        format_named("yolo").save(table, tmp_path / "out")


# ---------------------------------------------------------------- real data


@pytest.mark.filterwarnings("ignore:.* listed only in .* and count:boxscore.BoxscoreWarning")
def test_a_real_run_of_ultralytics(tmp_path: Path) -> None:
    run = real("formats", "ultralytics_real")
    gt = load_ground_truth(run / "data.yaml", image_set="test", image_sizes=run / "image_sizes.csv")
    records = json.loads((run / "runs/detect/val/predictions.json").read_text())
    path = tmp_path / "predictions.json"
    path.write_text(json.dumps([{**record, "category_id": record["category_id"] - 1} for record in records]))
    result = boxscore.evaluate(gt, load_detections(path, gt))
    assert result.metrics["AP"] == pytest.approx(0.6348354875849376, rel=2e-16, abs=0)  # NumPy before 2.0
    assert round(result.metrics["AP50"], 4) == 0.9449


def test_boxes_are_those_of_globox(tmp_path: Path) -> None:
    globox = pytest.importorskip("globox")
    generator = np.random.default_rng(3)
    rows = generator.uniform(0.2, 0.4, (20, 4)).tolist()
    text = "".join(f"{number % 3} {' '.join(map(repr, row))}\n" for number, row in enumerate(rows))
    table = labels(tmp_path, text, image_sizes={"a": (641, 479)})
    theirs = globox.Annotation.from_yolo_v5(
        tmp_path / "labels" / "a.txt", image_id="a", image_size=(641, 479)
    ).boxes
    np.testing.assert_allclose(
        table.boxes, [[box.xmin, box.ymin, box.xmax, box.ymax] for box in theirs], rtol=1e-13
    )
    assert [table.categories.names[row] for row in table.category] == [box.label for box in theirs]


def test_padilla_without_pixels() -> None:
    data = real("formats")
    gt = load_ground_truth(data / "padilla100_gt_yolo_format/data/database/gts/yolo_format")
    names = sorted(gt.categories.names.tolist())
    dt = data / "padilla100_dt_rel_xywh/data/database/dets/rel_xywh"
    metrics = boxscore.evaluate(gt, load_detections(dt, gt, classes=names)).metrics
    assert (round(metrics["AP"], 4), round(metrics["AP50"], 4)) == (0.3470, 0.6100)
    assert all(np.isnan(metrics[name]) for name in ("APs", "APm", "APl"))


def test_no_other_sample_is_taken_for_yolo() -> None:
    from boxscore.formats._sniffer import Sniffer

    ours = {
        "ultralytics_real",
        "datumaro_yolo_dataset",
        "padilla100_gt_yolo_format",
        "padilla100_dt_rel_xywh",
    }
    folders = [
        path
        for sample in real("formats").iterdir()
        if sample.name not in ours
        for path in (sample, *sample.rglob("*"))
        if path.is_dir() or path.suffix in (".yaml", ".txt", ".csv", ".json")
    ]
    recognized = {
        str(path.relative_to(real("formats")))
        for path in folders
        if path.name != "ORIGIN.txt" and format_named("yolo").detect(Sniffer(path)) is not None
    }
    roboflow = "datumaro_roboflow_dataset/tests/assets/roboflow_dataset"
    assert recognized == {
        "datumaro_kaggle_dataset/tests/assets/kaggle_dataset/relaxed_yolo",
        *(f"{roboflow}/yolo{name}" for name in ("", "/data.yaml", "/train", "/train/labels", "/val")),
        *(f"{roboflow}/{name}" for name in ("yolo/val/labels", "yolo_obb", "yolo_obb/data.yaml")),
        *(
            f"padilla_toy_dets_class{name}_rel_xcycwh/toyexample/dets_class{name}_rel_xcycwh"
            for name in ("id", "name")
        ),
    }


@pytest.mark.parametrize("name", ["train", "readme", "val", "notes", "origin", "license"])
def test_an_image_without_objects_named_like_a_list(name: str, tmp_path: Path) -> None:
    """Its empty label file was taken for a list of images or a notice, and the image was lost."""
    (tmp_path / "labels").mkdir()
    (tmp_path / "labels" / "a.txt").write_text("0 0.5 0.5 0.2 0.2\n")
    (tmp_path / "labels" / f"{name}.txt").write_text("")
    (tmp_path / "labels" / "classes.txt").write_text("")
    truth = boxscore.load_ground_truth(tmp_path)
    assert sorted(truth.images.ids.tolist()) == sorted(["a", name])
    (tmp_path / "labels" / f"{name}.txt").write_text("images/a.jpg\n")
    assert boxscore.load_ground_truth(tmp_path).images.ids.tolist() == ["a"]


def test_an_image_called_classes_without_objects(tmp_path: Path) -> None:
    labels, images = tmp_path / "labels", tmp_path / "images"
    labels.mkdir()
    images.mkdir()
    (labels / "a.txt").write_text("0 .5 .5 .2 .2\n")
    (labels / "classes.txt").write_text("")
    samples = SHAPES / "images"
    content = next(path for path in sorted(samples.iterdir())).read_bytes()
    for name in ("a.png", "classes.png"):
        (images / name).write_bytes(content)
    truth = boxscore.load_ground_truth(tmp_path, classes=["cat"])
    assert truth.images.ids.tolist() == ["a", "classes"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        truth = boxscore.load_ground_truth(labels, classes=["cat"], image_folder=images)
    assert truth.images.ids.tolist() == ["a", "classes"]
    assert truth.images.ids[truth.image].tolist() == ["a"]


def test_a_stale_path_is_found_by_its_last_components(tmp_path: Path) -> None:
    label = {"sets/birds/labels/val/a.txt": "0 0.5 0.5 0.5 0.5\n", "sets/birds/images/val/a.jpg": ""}
    stale = "path: {}\nval: images/val\nnames: [cat]\n"
    for path in ("/home/me/data/sets/birds", "../sets/birds", "C:\\data\\sets\\birds"):
        write(tmp_path, {**label, "birds.yaml": stale.format(path)})
        table = load_ground_truth(tmp_path / "birds.yaml", image_sizes="10x10")
        assert table.images.ids.tolist() == ["a"], path
    write(tmp_path, {"birds.yaml": stale.format("/home/me/fish")})
    with pytest.raises(FileFormatError, match=r"not there \(tried .*/images/val\)"):
        load_ground_truth(tmp_path / "birds.yaml", image_sizes="10x10")
