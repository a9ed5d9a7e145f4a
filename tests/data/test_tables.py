"""Ground truth and detections: checked once, frozen, and back and forth to pandas."""

from __future__ import annotations

import dataclasses
import math
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest

from boxscore import Detections, GroundTruth, InputError
from boxscore.data.alignment import stacked
from boxscore.data.vocabulary import Categories, Images

BOXES = [[0, 0, 10, 10], [5, 5, 9, 9]]


def truth(**options: Any) -> GroundTruth:
    return GroundTruth.from_arrays([2, 1], ["cat", "dog"], BOXES, **options)


def detections(**options: Any) -> Detections:
    return Detections.from_arrays([2, 1], ["cat", "dog"], BOXES, [0.5, -1.5], **options)


def test_columns() -> None:
    table = truth(crowd=[1, 0], difficult=[False, True], ids=[11, "x"])
    assert (len(table), table.image.dtype, table.category.dtype) == (2, np.int32, np.int32)
    assert table.images.ids[table.image].tolist() == [2, 1]
    assert table.categories.names[table.category].tolist() == ["cat", "dog"]
    assert table.boxes.tolist() == [[0, 0, 10, 10], [5, 5, 9, 9]]
    assert table.sizes.tolist() == [[10, 10], [4, 4]]
    assert table.area.tolist() == [100, 16]
    assert (table.crowd.tolist(), table.difficult.tolist()) == ([True, False], [False, True])
    assert table.ids.tolist() == [11, "x"]
    assert truth().ids.tolist() == [1, 2]


def test_sizes_that_boxes_give_need_no_memory() -> None:
    """Dropped sizes stay dropped in rows, copies and joined tables, and have the same bits when asked for."""
    table, expected = detections(), detections().sizes
    table.drop_derived_sizes()
    for other in (
        table,
        table[:1],
        table.replaced(source="x"),
        pickle.loads(pickle.dumps(table)),
        stacked([table]),
    ):
        assert "sizes" not in vars(other)
        assert other.sizes.tolist() == expected[: len(other)].tolist()
        assert not other.sizes.flags.writeable
    assert table.replaced(boxes=table.boxes + 1).sizes.tolist() == expected.tolist()


@pytest.mark.parametrize("box", [[0.1, 0, 0.2, 5], [3, 4, -0.0, 5]])
def test_sizes_that_differ_from_the_boxes_are_kept(box: list[float]) -> None:
    """By rounding, or by the sign of zero."""
    table = Detections.from_arrays([1], ["cat"], [box], [0.5], box_format="xywh")
    table.drop_derived_sizes()
    assert vars(table)["sizes"].tobytes() == np.array([box[2:]], dtype=np.float64).tobytes()


def test_given_sizes_are_kept_to_the_last_bit() -> None:
    x, w = 0.3, 0.1
    table = GroundTruth.from_arrays([1], [1], [[x, x, w, w]], box_format="xywh")
    assert x + w - x != w
    assert table.sizes.tolist() == [[w, w]]
    assert table.boxes.tolist() == [[x, x, x + w, x + w]]


def every_array(table: Any) -> dict[str, np.ndarray[Any, Any]]:
    arrays = {
        field.name: getattr(table, field.name)
        for field in dataclasses.fields(table)
        if isinstance(getattr(table, field.name), np.ndarray)
    }
    instances = getattr(table, "instances", None)
    names = () if instances is None else instances.names
    given = {name: instances[name] for name in names if isinstance(instances[name], np.ndarray)}
    return {**arrays, **given, **getattr(table, "columns", {})}


@pytest.mark.parametrize(
    "table", [truth(columns={"camera": ["a", "b"]}), detections()], ids=["truth", "detections"]
)
def test_tables_are_frozen_and_read_only(table: Any) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        table.boxes = np.zeros((2, 4))
    arrays = every_array(table)
    assert {"boxes", "sizes", "image", "category"} < set(arrays)
    for name, array in arrays.items():
        with pytest.raises(ValueError, match="read-only"):
            array[0] = array[1]
        assert not array.flags.writeable, name


def test_tables_do_not_change_with_the_arrays_they_were_made_from() -> None:
    """A training loop fills one buffer again and again."""
    boxes, scores, area = np.array(BOXES, dtype=float), np.array([0.5, 0.25]), np.array([7.0, 8.0])
    images, categories, ids = np.array([2, 1]), np.array([1, 2]), np.array([5, 6])
    flags, camera = np.array([True, False]), np.array([1, 2])
    tables = [
        Detections.from_arrays(images, categories, boxes, scores),
        GroundTruth.from_arrays(
            images, categories, boxes, area=area, crowd=flags, difficult=flags, ignore=flags, ids=ids,
            columns={"camera": camera},
        ),
    ]  # fmt: skip
    before = [{name: array.tolist() for name, array in every_array(table).items()} for table in tables]
    vocabularies = [(table.images.ids.tolist(), table.categories.ids.tolist()) for table in tables]
    for buffer in (boxes, scores, area, images, categories, ids, flags, camera):
        buffer[:] = 0
    assert [{n: a.tolist() for n, a in every_array(table).items()} for table in tables] == before
    assert [(t.images.ids.tolist(), t.categories.ids.tolist()) for t in tables] == vocabularies


def test_take() -> None:
    table = truth(columns={"camera": ["a", "b"]}).take(np.array([1]))
    assert len(table) == 1
    assert table.boxes.tolist() == [BOXES[1]]
    assert table.columns["camera"].tolist() == ["b"]
    assert table.images.ids.tolist() == [1, 2]  # the vocabulary stays


@pytest.mark.parametrize("images", [[1, 2, 9], Images.build([9, 2, 1])])
@pytest.mark.parametrize("categories", [["dog", "cat", "cow"], Categories.build(["cat", "cow", "dog"])])
def test_given_vocabularies(images: Any, categories: Any) -> None:
    table = truth(images=images, categories=categories)
    assert table.images.ids.tolist() == [1, 2, 9]
    assert table.categories.ids.tolist() == ["cat", "cow", "dog"]


def test_a_mapping_names_the_classes() -> None:
    table = GroundTruth.from_arrays([1], [7], [BOXES[0]], categories={7: "cat", 3: "dog"})
    assert table.categories.ids.tolist() == [3, 7]
    assert table.categories.names.tolist() == ["dog", "cat"]


def test_empty_tables() -> None:
    for empty in ([], np.empty(0), np.empty((0, 4))):
        assert len(Detections.from_arrays([], [], empty, [])) == 0
        assert len(GroundTruth.from_arrays([], [], empty, images=[1], categories=["cat"])) == 0
    assert list(Detections.from_arrays([], [], [], []).to_pandas().columns)[-1] == "score"


def test_to_pandas() -> None:
    frame = truth(area=[90, 12], crowd=[1, 0], columns={"camera": ["a", "b"]}).to_pandas()
    assert frame.to_dict("list") == {
        "annotation_id": [1, 2],
        "image_id": [2, 1],
        "category_id": ["cat", "dog"],
        "class": ["cat", "dog"],
        "x1": [0, 5],
        "y1": [0, 5],
        "x2": [10, 9],
        "y2": [10, 9],
        "w": [10, 4],
        "h": [10, 4],
        "area": [90, 12],
        "crowd": [True, False],
        "difficult": [False, False],
        "ignore": [False, False],
        "group": [False, False],
        "camera": ["a", "b"],
    }
    assert detections().to_pandas()["score"].tolist() == [0.5, -1.5]


def test_pandas_round_trip() -> None:
    rng = np.random.default_rng(1)
    count = 40
    corner = rng.random((count, 2)) * 100
    boxes = np.hstack([corner, corner + rng.random((count, 2)) * 100])
    flags = {name: rng.random(count) < 0.3 for name in ("crowd", "difficult", "ignore")}
    common: dict[str, Any] = {"categories": {3: "cat", 1: "dog", 2: "cat"}}
    labels = rng.integers(1, 4, count)
    first = GroundTruth.from_arrays(
        rng.integers(1, 9, count),
        labels,
        boxes,
        area=rng.random(count),
        ids=rng.permutation(count),
        **flags,
        **common,
    )
    again = GroundTruth.from_pandas(first.to_pandas(), images=first.images, categories=first.categories)
    pd.testing.assert_frame_equal(first.to_pandas(), again.to_pandas())
    scores = rng.standard_normal(count)
    detections = Detections.from_arrays(rng.integers(1, 9, count), labels, boxes, scores, **common)
    pd.testing.assert_frame_equal(
        detections.to_pandas(), Detections.from_pandas(detections.to_pandas()).to_pandas()
    )


def test_from_pandas_with_class_names_and_sizes() -> None:
    frame = pd.DataFrame(
        {
            "image_id": ["a", "b"],
            "class": ["cat", "dog"],
            "x": [1, 2],
            "y": [3, 4],
            "w": [5, 6],
            "h": [7, 8],
            "score": [0.5, 1],
        }
    )
    table = Detections.from_pandas(frame)
    assert table.categories.names.tolist() == ["cat", "dog"]
    assert table.boxes.tolist() == [[1, 3, 6, 10], [2, 4, 8, 12]]
    assert len(GroundTruth.from_pandas(frame)) == 2


def test_from_pandas_finds_classes_of_a_given_vocabulary_by_name() -> None:
    frame = detections().to_pandas().drop(columns="category_id")
    table = Detections.from_pandas(frame, categories={18: "dog", 17: "cat"})
    assert table.categories.ids[table.category].tolist() == [17, 18]


FRAME = pd.DataFrame({"image_id": [1], "class": ["cat"], "x1": [0], "y1": [0], "x2": [1]})


@pytest.mark.parametrize(
    ("table", "frame", "text"),
    [
        (
            GroundTruth,
            FRAME,
            "a table of boxes must have the columns of a box (x1,y1,x2,y2, or left,top,width,height, or bbox). "
            "Got only image_id, class, x1, y1, x2 in DataFrame; name the columns: --columns x1=NAME y1=NAME "
            "x2=NAME y2=NAME (in Python columns=), and score=NAME for detections; --gt-columns and --dt-columns "
            "where the two files differ.",
        ),
        (
            GroundTruth,
            FRAME.assign(y2=1).drop(columns=["class", "image_id"]),
            "a table of boxes must have a column of the image (image_id, image, filename). "
            "Got only x1, y1, x2, y2 in DataFrame; name the columns: --columns image=NAME class=NAME (in Python "
            "columns=), and score=NAME for detections; --gt-columns and --dt-columns where the two files differ.",
        ),
        (
            GroundTruth,
            FRAME.assign(y2=1).drop(columns=["class"]),
            "a table of boxes must have a column class, label or category_id. Got only image_id, x1, y1, x2, y2 "
            "in DataFrame; name the column: --columns class=NAME (in Python columns=).",
        ),
    ],
)
def test_data_frames_without_a_column(table: Any, frame: pd.DataFrame, text: str) -> None:
    with pytest.raises(InputError) as caught:
        table.from_pandas(frame)
    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"area": [1]}, "area must be as long as ground truth boxes (2). Got length 1."),
        ({"crowd": [True]}, "crowd must be as long as ground truth boxes (2). Got length 1."),
        ({"ids": [1, 2, 3]}, "ids must be as long as ground truth boxes (2). Got length 3."),
        ({"columns": {"camera": []}}, "camera must be as long as ground truth boxes (2). Got length 0."),
        ({"area": [1, math.nan]}, "area must be finite. Got nan in row 1 of arrays."),
        ({"area": [math.inf, 1]}, "area must be finite. Got inf in row 0 of arrays."),
        ({"images": [1]}, "image id must be known. Got 2 in row 0 of arrays."),
        ({"categories": ["cat"]}, "category id must be known. Got 'dog' in row 1 of arrays."),
        ({"source": "mine", "images": [1]}, "image id must be known. Got 2 in row 0 of mine."),
        ({"place": lambda row: f"line {row + 1}", "images": [1]}, "image id must be known. Got 2 in line 1."),
        (
            {"box_format": "yxyx"},
            "box_format must be one of 'xyxy', 'xywh', 'cxcywh'. Got 'yxyx'; did you mean 'xyxy'?",
        ),
    ],
)
def test_bad_columns(options: Any, text: str) -> None:
    with pytest.raises(InputError) as caught:
        truth(**options)
    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("image_ids", "boxes", "scores", "text"),
    [
        ([1], BOXES, [0, 0], "image_ids must be as long as detection boxes (2). Got length 1."),
        ([1, 2], BOXES, [0], "scores must be as long as detection boxes (2). Got length 1."),
        ([1, 2], BOXES, [0, math.inf], "score must be finite. Got inf in row 1 of arrays; a diverged model?"),
        ([1, 2], BOXES, [math.nan, 0], "score must be finite. Got nan in row 0 of arrays; a diverged model?"),
        ([1, 2], BOXES, [[0, 0]], "scores must have shape [N]. Got shape [1, 2]."),
        (
            [1, 2],
            BOXES,
            ["high", 0],
            "scores must be numbers and have shape [N]. Got could not convert string to float: 'high'.",
        ),
        (
            [1, 2],
            [[0, 0, 1, 1], [2, 2, 1, 3]],
            [0, 0],
            "boxes must have width >= 0. Got width -1.0 in row 1 of arrays; are these x,y,w,h?",
        ),
        ([1, 2.5], BOXES, [0, 0], "image_ids must be integers or strings. Got 2.5 in row 1."),
        (
            [1, 2],
            [[0, 0, 1, 1]] * 3,
            [0, 0],
            "image_ids must be as long as detection boxes (3). Got length 2.",
        ),
    ],
)
def test_bad_detections(image_ids: Any, boxes: Any, scores: Any, text: str) -> None:
    with pytest.raises(InputError) as caught:
        Detections.from_arrays(image_ids, [1, 1], boxes, scores)
    assert str(caught.value) == text


def test_one_of_each_is_said_in_the_singular() -> None:
    assert repr(GroundTruth.from_arrays([1], ["cat"], BOXES[:1])).startswith(
        "GroundTruth: 1 object, 1 image, 1 class\n"
    )
    assert repr(Detections.from_arrays([1], ["cat"], BOXES[:1], [0.5])).startswith(
        "Detections: 1 detection, 1 image, 1 class\n"
    )
