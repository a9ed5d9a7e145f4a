"""Detections as programs that run detectors save them: the same boxes in each, and what is refused."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore.data.vocabulary import Images
from boxscore.errors import BoxscoreWarning, FileFormatError, InputError
from boxscore.formats import detect_format, load_detections, load_ground_truth
from boxscore.formats._format import ReadOptions
from boxscore.formats.registry import open_at
from support.detector_files import (
    FILES,
    FOUND,
    SIZES,
    darknet,
    fractions,
    megadetector,
    microsoft,
    of_roboflow,
    per_image,
    sides,
    supervision,
    write_files,
    xywh,
)
from support.running import Run

TRUTH = boxscore.GroundTruth.from_arrays(
    ["a", "a", "d"],
    ["cat", "dog", "dog"],
    [[10, 20, 110, 70], [30, 40, 50, 60], [8, 8, 40, 24]],
    images=Images.build(["a", "b.c", "d"], file_names=[*SIZES], sizes=[*SIZES.values()]),
)
"""Images are ``a``, ``b.c`` and ``d``, with file names."""


OPTIONS: dict[str, dict[str, Any]] = {
    **{name: {"box_format": "xyxy"} for name in ("records per box", "records per image")},
    "mmdetjson": {"classes": ["cat", "dog"]},
}
"""A list of four numbers may be anything, and numbers of classes have no names."""

NOTED = {"pipeline in order", "ultralytics normalized"}
"""Which say in a note how they are read."""


def dump(folder: Path, content: Any) -> Path:
    return write_files(folder, "x.json", {"x.json": content})


def expected(folder: Path) -> boxscore.Detections:
    """The same detections as COCO results."""
    results = [
        {"image_id": name.rpartition(".")[0], "category_id": label, "bbox": xywh(box), "score": score}
        for name, found in FOUND.items()
        for label, _, score, box in found
    ]
    return load_detections(write_files(folder, "coco.json", {"coco.json": results}), TRUTH)


def objects(table: boxscore.Detections) -> list[tuple[int, int, float, list[float]]]:
    pairs = zip(table.image.tolist(), table.category.tolist(), table.scores.tolist(), strict=True)
    return sorted((*one, box) for one, box in zip(pairs, table.boxes.round(9).tolist(), strict=True))


# ---------------------------------------------------------------- the same in every format


@pytest.mark.parametrize("name", FILES)
def test_every_format_has_the_same_detections(name: str, tmp_path: Path) -> None:
    path = write_files(tmp_path, *FILES[name])
    assert detect_format(path)[0] == name.split()[0]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        table = load_detections(path, TRUTH, **OPTIONS.get(name, {}))
    assert objects(table) == objects(expected(tmp_path / "coco"))
    assert [str(one.message) for one in caught if name not in NOTED] == []


@pytest.mark.parametrize("name", FILES)
def test_every_format_is_told_from_the_others(name: str, tmp_path: Path) -> None:
    path = write_files(tmp_path, *FILES[name])
    other = next(other for other in ("pipeline", "ultralytics", "roboflow") if other != name.split()[0])
    with pytest.raises(FileFormatError, match=f"must be in the {other} format"):
        load_detections(path, TRUTH, format=other)


@pytest.mark.parametrize("name", [name for name in FILES if not name.startswith("records")])
def test_detections_are_not_ground_truth(name: str, tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match="ground truth must not be detections"):
        load_ground_truth(write_files(tmp_path, *FILES[name]))


@pytest.mark.parametrize("name", [name for name in FILES if name != "pipeline in order"])
def test_images_have_their_names_without_ground_truth(name: str, tmp_path: Path) -> None:
    table = open_at(write_files(tmp_path, *FILES[name])).load_detections(
        ReadOptions(**OPTIONS.get(name, {})), None
    )
    stems = {str(image).replace(".jpg", "").replace(".png", "") for image in table.images.ids.tolist()}
    assert stems == (
        {"a", "d"} if name in ("records of supervision", "records per box") else {"a", "b.c", "d"}
    )
    assert len(table) == 3


def test_a_file_of_an_image_alone(tmp_path: Path) -> None:
    write_files(tmp_path, *FILES["ultralytics"])
    assert len(load_detections(tmp_path / "f" / "a.json", TRUTH)) == 2
    empty = load_detections(tmp_path / "f" / "b.c.json", TRUTH)
    assert len(empty) == 0


def test_a_folder_without_detections_needs_the_name_of_its_format(tmp_path: Path) -> None:
    path = write_files(tmp_path, "f", {"f/a.json": [], "f/d.json": []})
    with pytest.raises(FileFormatError, match="a folder with JSON files"):
        load_detections(path, TRUTH)
    assert len(load_detections(path, TRUTH, format="pipeline")) == 0


def test_corners_in_another_order_are_an_error(tmp_path: Path) -> None:
    """Widths read as corners would be other boxes in silence."""
    content = microsoft()
    content[0]["detections"][0]["bbox"] = [100, 20, 50, 40]
    path = dump(tmp_path, content)
    with pytest.raises(
        InputError, match=r"boxes must have width >= 0\. Got width -50\.0 in image 'images/a\.jpg'"
    ):
        load_detections(path, TRUTH)
    read = load_detections(
        dump(tmp_path, [{**content[0], "detections": content[0]["detections"][:1]}]), TRUTH, box_format="xywh"
    )
    assert read.boxes.tolist() == [[100, 20, 150, 60]]


# ---------------------------------------------------------------- darknet


def test_unescaped_backslashes_of_darknet_are_read(tmp_path: Path) -> None:
    good = write_files(tmp_path, *FILES["darknetjson"])
    for folder in ("C:\\AI\\", "C:\\new\\tests\\", "\\\\server\\b\\"):
        text = json.dumps(darknet("FOLDER")).replace("FOLDER", folder)
        path = write_files(tmp_path, "w.json", {"w.json": text})
        with pytest.warns(BoxscoreWarning, match="backslashes in paths are not escaped"):
            table = load_detections(path, TRUTH)
        assert objects(table) == objects(load_detections(good, TRUTH))
    escaped = write_files(tmp_path, "e.json", {"e.json": darknet("C:\\AI\\é\\")})
    assert len(load_detections(escaped, TRUTH)) == 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda text: text.replace("relative_", "absolute_"),
            "an object must have relative_coordinates. Got others in image 'data/img/a.jpg', object 0 of",
        ),
        (lambda text: text[1:-1], "must be a list of images, written by -out result.json. Got a stream"),
        (
            lambda text: text.replace("filename", "other"),
            "an image must have filename. Got none in image 0 of",
        ),
        (lambda text: text[:-9], "JSON"),
        (lambda text: text.replace("0.875", "nan"), "JSON"),
    ],
)
def test_what_is_wrong_with_a_file_of_darknet(
    change: Callable[[str], str], message: str, tmp_path: Path
) -> None:
    path = dump(tmp_path, change(json.dumps(darknet())))
    with pytest.raises(FileFormatError, match=re.escape(message)):
        load_detections(path, TRUTH)


# ---------------------------------------------------------------- Ultralytics


def result(**more: Any) -> list[dict[str, Any]]:
    box = sides("x1 y1 x2 y2", [10, 20, 110, 70])
    return [{"name": "cat", "class": 0, "confidence": 0.5, "box": box, **more}]


def test_oriented_boxes_of_ultralytics(tmp_path: Path) -> None:
    """Sides of 40 and 20, so that neither a quarter turn nor the other direction gives the same corners."""
    corners = [[60, 20], [92, 44], [80, 60], [48, 36]]
    box = sides("x1 y1 x2 y2 x3 y3 x4 y4", [side for corner in corners for side in corner])
    table = load_detections(write_files(tmp_path, "f", {"f/a.json": result(box=box)}), TRUTH)
    assert table.boxes.round(9).tolist() == [[48, 20, 92, 60]]
    assert table.rotated is not None
    x, y, width, height, angle = table.rotated[0].tolist()
    along = width / 2 * np.array([np.cos(angle), np.sin(angle)])
    across = height / 2 * np.array([-np.sin(angle), np.cos(angle)])
    turned = [np.array([x, y]) + a * along + b * across for a in (-1, 1) for b in (-1, 1)]
    assert sorted(np.round(turned, 6).tolist()) == sorted(corners)


def test_masks_and_keypoints_of_ultralytics(tmp_path: Path) -> None:
    corners = {"x": [10, 110, 110, 10], "y": [20, 20, 70, 70]}
    points = {"x": [20, 40], "y": [30, 50], "visible": [0.75, 0.5]}
    pixels = write_files(tmp_path, "p", {"p/a.json": result(segments=corners, keypoints=points)})
    table = load_detections(pixels, TRUTH)
    small = {
        "box": sides("x1 y1 x2 y2", fractions([10, 20, 110, 70], "a.jpg")),
        "segments": {"x": [x / 200 for x in corners["x"]], "y": [y / 100 for y in corners["y"]]},
        "keypoints": {"x": [0.1, 0.2], "y": [0.3, 0.5], "visible": [0.75, 0.5]},
    }
    with pytest.warns(BoxscoreWarning, match="coordinates are read as fractions"):
        scaled = load_detections(write_files(tmp_path, "n", {"n/a.json": result(**small)}), TRUTH)
    for each in (table, scaled):
        assert each.boxes.round(9).tolist() == [[10, 20, 110, 70]]
        assert each.keypoints is not None
        assert each.keypoints.round(9).tolist() == [[[20, 30, 0.75], [40, 50, 0.5]]]
        assert each.masks is not None
        assert each.masks.area.tolist() == [5000]


def test_fractions_are_decided_for_the_whole_folder(tmp_path: Path) -> None:
    """A small box alone would look like fractions."""
    tiny = sides("x1 y1 x2 y2", [0.25, 0.5, 1.0, 1.25])
    path = write_files(tmp_path, "f", {"f/a.json": result(), "f/d.json": result(box=tiny, name="dog")})
    table = load_detections(path, TRUTH)
    assert table.boxes.tolist() == [[10, 20, 110, 70], [0.25, 0.5, 1.0, 1.25]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            [{"name": "cat", "class": 0, "confidence": 0.5}],
            "a detection must have box. Got none in detection 0 of",
        ),
        (result(box={"x1": 1, "y1": 2, "x2": 3}), "must have y2. Got none"),
        (result(box=sides("x1 y1 x2 y2 x3 y3", [1, 2, 3, 4, 5, 6])), "a box must have two or four corners"),
        (
            result(segments={"x": [1, 2, 3], "y": [1, 2]}),
            "segments must have as many x as y. Got 3 x and 2 y",
        ),
        (result(keypoints={"x": [1], "y": []}), "keypoints must have as many x as y. Got 1 x and 0 y"),
        (
            [*result(keypoints={"x": [1], "y": [2]}), *result()],
            "detections must have 1 keypoints each. Got none in detection 1 of",
        ),
        ([result(), *result()], "must be detections, or lists of them. Got both"),
        ([*result(), 3], "must be an object"),
    ],
)
def test_what_is_wrong_with_a_file_of_ultralytics(content: Any, message: str, tmp_path: Path) -> None:
    path = write_files(tmp_path, "a.json", {"a.json": content})
    with pytest.raises(FileFormatError, match=re.escape(message)):
        load_detections(path, TRUTH)


# ---------------------------------------------------------------- lists without names, pipelines


def test_lists_without_names_are_as_many_as_the_images(tmp_path: Path) -> None:
    path = write_files(tmp_path, *FILES["pipeline in order"])
    with pytest.warns(BoxscoreWarning, match=r"3 lists without image names, read in the order of the images"):
        load_detections(path, TRUTH)
    with pytest.raises(FileFormatError, match="lists of detections must name their images"):
        open_at(path).load_detections(ReadOptions(), None)
    fewer = dump(tmp_path, json.loads(path.read_text())[:2])
    with pytest.raises(InputError, match=r"as many as the images of the ground truth \(3\)\. Got 2"):
        load_detections(fewer, TRUTH)
    renamed = boxscore.GroundTruth.from_arrays(
        [1], ["cat"], [[0, 0, 9, 9]], images=Images.build([1, 2, 3], file_names=["b", "a", "c"])
    )
    with pytest.raises(InputError, match=r"whose order by id and by file name is the same\. Got two orders"):
        load_detections(path, renamed)


def test_lists_and_objects_by_name_are_not_mixed_with_files(tmp_path: Path) -> None:
    write_files(tmp_path, *FILES["pipeline"])
    write_files(tmp_path, "", {"f/e.json": FILES["pipeline by name"][1]["p.json"]})
    with pytest.raises(
        FileFormatError, match=r"must be a list of detections in a folder\. Got an object of lists"
    ):
        load_detections(tmp_path / "f", TRUTH)
    write_files(tmp_path, "", {"f/e.json": FILES["pipeline in order"][1]["p.json"]})
    with pytest.raises(FileFormatError, match=r"must be a list of detections\. Got a list of lists"):
        load_detections(tmp_path / "f", TRUTH)


@pytest.mark.parametrize(
    ("score", "words"), [(0.5, "whole pixels and dropped scores below 0.5"), (0.25, "whole pixels, so")]
)
def test_whole_pixels_of_a_pipeline_are_warned_of(score: float, words: str, tmp_path: Path) -> None:
    box = sides("ymin xmax xmin ymax", [20, 110, 10, 70])
    path = write_files(tmp_path, "f", {"f/a.json": [{"score": score, "label": "cat", "box": box}]})
    with pytest.warns(BoxscoreWarning, match=f"the pipeline cut boxes to {words}"):
        table = load_detections(path, TRUTH)
    assert table.boxes.tolist() == [[10, 20, 110, 70]]


# ---------------------------------------------------------------- Roboflow


def test_points_of_roboflow_are_masks_and_paths_are_names(tmp_path: Path) -> None:
    points = [{"x": x, "y": y} for x, y in ((10, 20), (110, 20), (110, 70))]
    prediction = {**of_roboflow("a.jpg", FOUND["a.jpg"][:1])["predictions"][0], "points": points}
    path = dump(tmp_path, {"predictions": [{**prediction, "image_path": "x/a.jpg"}], "image": None})
    table = load_detections(path, TRUTH)
    assert table.masks is not None
    assert table.masks.area.tolist() == [2500]
    assert TRUTH.images.ids[table.image].tolist() == ["a"]
    listed = {"a.jpg": {"predictions": [{**prediction, "image_path": "C:\\x\\a.png"}], "image": None}}
    assert TRUTH.images.ids[load_detections(dump(tmp_path, listed), TRUTH).image].tolist() == ["a"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([[of_roboflow("a.jpg", FOUND["a.jpg"])]], "must be one response, of one image. Got lists in a list"),
        ([of_roboflow(n, FOUND[n]) for n in SIZES], "must be one response, of one image. Got a list of 3"),
        (
            {"one": of_roboflow("a.jpg", FOUND["a.jpg"]), "two": of_roboflow("a.jpg", [])},
            "a workflow must have one output with predictions. Got 'one', 'two'",
        ),
        (
            {"image": {"width": 1, "height": 1}, "predictions": [{"class": "cat", "confidence": 1}]},
            "a prediction must have x, y, width and height. Got others in prediction 0",
        ),
        (
            {"image": {"width": 1, "height": 1}, "predictions": {"cat": {"confidence": 1}}},
            "predictions must be an array",
        ),
        (
            {
                "predictions": [
                    {**one, "image_path": f"{number}.jpg"}
                    for number, one in enumerate(of_roboflow("a.jpg", FOUND["a.jpg"])["predictions"])
                ]
            },
            "predictions must be of one image. Got '0.jpg', '1.jpg'",
        ),
        (
            {
                "a.jpg": {
                    "predictions": [
                        {**of_roboflow("a.jpg", FOUND["a.jpg"])["predictions"][0], "image_path": "x/d.png"}
                    ]
                }
            },
            "a response must be of the image that it is listed under. Got image_path 'x/d.png' in",
        ),
    ],
)
def test_what_is_wrong_with_a_response_of_roboflow(content: Any, message: str, tmp_path: Path) -> None:
    path = write_files(tmp_path, "a.json", {"a.json": content})
    with pytest.raises(FileFormatError, match=re.escape(message)):
        load_detections(path, TRUTH)


@pytest.mark.parametrize(
    ("keys", "got"),
    [(("a.jpg", "a.jpg"), "'a.jpg' and 'a.jpg'"), (("a.jpg", "x/a.jpg"), "'a.jpg' and 'x/a.jpg'")],
)
@pytest.mark.parametrize("of", ["roboflow", "pipeline"])
def test_two_keys_of_one_image(of: str, keys: tuple[str, str], got: str, tmp_path: Path) -> None:
    """Decoding keeps the last of equal keys, and boxes of one image would be added up."""
    one = of_roboflow("a.jpg", FOUND["a.jpg"])
    if of == "pipeline":
        box = sides("xmin ymin xmax ymax", [10, 20, 30, 40.5])
        one = [{"score": 0.5, "label": "cat", "box": box}]
    text = json.dumps({"1": one, "2": one, "d.png": one}).replace('"1"', f'"{keys[0]}"')
    path = write_files(tmp_path, "x.json", {"x.json": text.replace('"2"', f'"{keys[1]}"', 1)})
    with pytest.raises(FileFormatError, match=re.escape(f"an image must have one key. Got {got}")):
        load_detections(path, TRUTH)


def test_one_object_of_responses_of_roboflow_has_places(tmp_path: Path) -> None:
    wrong = {"predictions": [{"class": "cat", "confidence": 1}], "image": {"width": 1, "height": 1}}
    path = dump(tmp_path, {"a.jpg": of_roboflow("a.jpg", FOUND["a.jpg"]), "d.png": wrong})
    with pytest.raises(FileFormatError, match=r"prediction 0 of \S+x\.json, d\.png"):
        load_detections(path, TRUTH)


# ---------------------------------------------------------------- MMDetection


LISTED = {
    "images": [{"id": 1, "file_name": "a.jpg", "width": 200, "height": 100}],
    "categories": [{"id": 7, "name": "dog"}, {"id": 3, "name": "cat"}],
    "annotations": [{"id": 1, "image_id": 1, "category_id": 3, "bbox": [10, 20, 100, 50], "area": 5000}],
}


def inferred(folder: Path, **changes: Any) -> Path:
    content = {"labels": [1], "scores": [0.5], "bboxes": [[10.0, 20.0, 110.0, 70.0]], **changes}
    return write_files(folder, "preds", {"preds/a.json": content})


def test_numbers_of_an_inferencer_are_classes_in_the_order_of_the_file(tmp_path: Path) -> None:
    """MMDetection orders classes like the list of the COCO file, not by id."""
    truth = load_ground_truth(write_files(tmp_path, "gt.json", {"gt.json": LISTED}))
    with pytest.warns(BoxscoreWarning, match=r"classes are those of \S+ in its order: 0 dog, 1 cat"):
        table = load_detections(inferred(tmp_path), truth)
    assert truth.categories.names[table.category].tolist() == ["cat"]
    with pytest.raises(
        FileFormatError, match=r"must be the 2 classes of the ground truth\. Got class number 2"
    ):
        load_detections(inferred(tmp_path, labels=[2]), truth)


def test_numbers_of_an_inferencer_are_not_written_as_ids(tmp_path: Path, run: Run) -> None:
    """They would be taken for the ids of a COCO file."""
    path = inferred(tmp_path)
    nms = ("nms", path, "--output", tmp_path / "kept.json", "--iou-threshold", "0.5")
    assert "classes must have names" in run(*nms, status=2).err
    (tmp_path / "names.txt").write_text("dog\ncat\n")
    run(*nms, "--dt-classes", tmp_path / "names.txt")
    assert [each["category_id"] for each in json.loads((tmp_path / "kept.json").read_text())] == ["cat"]


def test_masks_of_an_inferencer(tmp_path: Path) -> None:
    """Four pixels: 0, 1, 1, 0 in a column of four."""
    rle = {"size": [4, 1], "counts": "121"}
    path = inferred(tmp_path, masks=[rle], bboxes=[[0.0, 1.0, 1.0, 3.0]])
    table = load_detections(path, TRUTH, classes=["dog", "cat"])
    assert table.masks is not None
    assert table.masks.area.tolist() == [2]
    assert TRUTH.categories.names[table.category].tolist() == ["cat"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"labels": [1, 0]}, "must have as many labels as boxes (1). Got 2"),
        ({"scores": []}, "must have as many scores as boxes (1). Got 0"),
        ({"bboxes": [[1, 2, 3, 4, 0.5]]}, "a box must have four numbers x1, y1, x2, y2. Got 5 numbers"),
        ({"labels": [-1]}, "a label must be a number from 0 to 999,999. Got -1 in detection 0"),
        ({"labels": ["cat"]}, "labels[0] must be an integer. Got a string in "),
        ({"bboxes": [[1, 2, 3, "x"]]}, "bboxes[0][3] must be a number. Got a string in "),
        ({"masks": ["x"]}, "a detection must be an object. Got a string in detection 0 of "),
    ],
)
def test_what_is_wrong_with_json_of_an_inferencer(
    changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(FileFormatError, match=re.escape(message)):
        load_detections(inferred(tmp_path, **changes), TRUTH, classes=["cat", "dog"])


@pytest.mark.parametrize(
    "more",
    [
        {"frame_id": 1, "objects": 3, "filename": "a.jpg"},
        {"reference_id": "a.jpg", "geometry": {}},
        {"task_id": 1, "params": {}, "response": {}},
    ],
)
def test_keys_of_other_tools_in_coco_results(more: dict[str, Any], tmp_path: Path) -> None:
    result = {"image_id": "a", "category_id": "cat", "bbox": [10, 20, 100, 50], "score": 0.5}
    path = dump(tmp_path, [{**result, **more}])
    assert detect_format(path)[0] == "coco"
    assert objects(load_detections(path, TRUTH)) == objects(load_detections(dump(tmp_path, [result]), TRUTH))


@pytest.mark.filterwarnings("ignore:.*classes are those of")
@pytest.mark.parametrize(
    ("name", "got"), [("a", "a.json, for 'a.jpg' and 'x/a.png'"), ("2", "2.json, which may be the number of")]
)
def test_files_of_mmdetection_are_named_after_one_image(name: str, got: str, tmp_path: Path) -> None:
    """The inferencer saves no folders and extensions, and numbers arrays, which are not image ids."""
    files = ["a.jpg", "x/a.png", "b.jpg"]
    truth = {
        "images": [{"id": row, "file_name": file, "width": 9, "height": 9} for row, file in enumerate(files)],
        "categories": [{"id": 1, "name": "cat"}],
        "annotations": [],
    }
    (tmp_path / "gt.json").write_text(json.dumps(truth))
    content = {"labels": [0], "scores": [0.5], "bboxes": [[1, 2, 3, 4]]}
    ground_truth = load_ground_truth(tmp_path / "gt.json")
    path = write_files(tmp_path, "f", {f"f/{name}.json": content})
    with pytest.raises(
        FileFormatError, match=re.escape(f"named after one image of the ground truth. Got {got}")
    ):
        load_detections(path, ground_truth)
    path = write_files(tmp_path, "g", {"g/b.json": content, "g/0.json": {key: [] for key in content}})
    assert load_detections(path, ground_truth).image.tolist() == [2]


@pytest.mark.filterwarnings("ignore:.*classes are those of")
@pytest.mark.parametrize("file_name", [{}, {"file_name": "000000000139.jpg"}])
def test_names_of_coco_are_not_numbers_of_arrays(file_name: dict[str, str], tmp_path: Path) -> None:
    """MMDetection writes the numbers of arrays without leading zeros."""
    image = {"id": 139, "width": 9, "height": 9, **file_name}
    truth = {"images": [image], "categories": [{"id": 1, "name": "cat"}], "annotations": []}
    ground_truth = load_ground_truth(write_files(tmp_path, "gt.json", {"gt.json": truth}))
    content = {"labels": [0], "scores": [0.5], "bboxes": [[1, 2, 3, 4]]}
    named = {"f/000000000139.json": content}
    assert load_detections(write_files(tmp_path, "f", named), ground_truth).image.tolist() == [0]
    # Other images are left to the rule for unlisted ones, also one named by a plain number.
    for other in ("000000000285", "0") if file_name else ("000000000285",):
        path = write_files(tmp_path, other, {f"{other}/{other}.json": content})
        write_files(tmp_path, other, {f"{other}/000000000139.json": content})
        with pytest.raises(InputError, match=f"image_id must be in the ground truth. Got '{other}'"):
            load_detections(path, ground_truth)


# ---------------------------------------------------------------- MegaDetector, lists of records


def changed(**of_first_image: Any) -> dict[str, Any]:
    content = megadetector()
    content["images"][0] |= of_first_image
    return content


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            changed(detections=None, failure="Failure image access"),
            "MegaDetector must have read all images. Got 1 failure: x\\a.jpg",
        ),
        (
            changed(frame_rate=30.0, frames_processed=[0, 1]),
            "a file must be an image. Got video 'x\\\\a.jpg'",
        ),
        (
            changed(detections=[{"category": "1", "conf": 0.5, "bbox": [0, 0, 1, 1], "frame_number": 0}]),
            "a file must be an image. Got video",
        ),
        (
            changed(detections=[{"category": "9", "conf": 0.5, "bbox": [0, 0, 1, 1]}]),
            "category must be one of detection_categories. Got '9' in image 'x\\\\a.jpg', detection 0",
        ),
        (changed(detections=[{"category": "1", "conf": 0.5, "bbox": [0, 0, 1]}]), "bbox must have 4 numbers"),
        ({**megadetector(), "detection_categories": None}, "detection_categories must be an object"),
        (megadetector()["images"], "MegaDetector's JSON must have detection_categories. Got a list in"),
        (
            [
                {
                    "file": "a.jpg",
                    "detections": [{"category": "cat", "confidence": 0.5, "bbox": [0.1, 0.1, 0.5, 0.6]}],
                }
            ],
            "boxes must be in pixels in a list. Got fractions in",
        ),
    ],
)
def test_what_is_wrong_with_a_file_of_megadetector(content: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match=re.escape(message)):
        load_detections(dump(tmp_path, content), TRUTH)


def test_records_name_their_images(tmp_path: Path) -> None:
    without = [{key: value for key, value in one.items() if key != "image_name"} for one in supervision()]
    with pytest.raises(
        FileFormatError, match=r"a record must name its image.*image_name.* to append\(\) of the sink"
    ):
        load_detections(dump(tmp_path, without), TRUTH)
    bare = [{key: value for key, value in one.items() if key != "file_name"} for one in per_image()]
    with pytest.raises(
        FileFormatError, match=r"a record must name its image.*add image, file_name or image_id"
    ):
        load_detections(dump(tmp_path, bare), TRUTH)


def test_records_are_read_as_json_lines_are(tmp_path: Path) -> None:
    for records in (supervision(), per_image()):
        lines = "".join(f"{json.dumps(record)}\n" for record in records)
        path = write_files(tmp_path, "r.jsonl", {"r.jsonl": lines})
        of_lines = load_detections(path, TRUTH, box_format="xyxy")
        assert objects(load_detections(dump(tmp_path, records), TRUTH, box_format="xyxy")) == objects(
            of_lines
        )
    truth = [{key: value for key, value in one.items() if key != "scores"} for one in per_image()]
    table = load_ground_truth(dump(tmp_path, truth), box_format="xyxy")
    assert np.array_equal(table.boxes, of_lines.boxes)
    wrong = [*per_image(), {"file_name": "d.png", "boxes": [[1, 2, 3, 4]], "labels": [], "scores": [0.5]}]
    with pytest.raises(
        FileFormatError, match=r"labels must be as long as the boxes \(1\)\. Got 0 in record 3 of"
    ):
        load_detections(dump(tmp_path, wrong), TRUTH)
