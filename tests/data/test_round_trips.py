"""Tables through files of columns, pandas and pickle: every column comes back, or its name is refused."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import boxscore
from boxscore import Detections, GroundTruth, InputError
from boxscore.data.boxes import corners_and_sizes
from boxscore.data.tables import BoxTable
from boxscore.data.vocabulary import Categories, Images
from support.samples import SHAPES

COUNT = 7
RLE = {"size": [30, 40], "counts": [100, 7, 1093]}
POLYGONS = [[2.0, 2.0, 9.5, 2.0, 9.5, 8.0, 2.0, 8.0]]

USER: dict[str, Any] = {
    "camera": np.array(["a", "b", None, "ü", "", "x|y", "a"], dtype=object),
    "mixed": np.array([1, 2.5, "three", None, True, -7, 10**30], dtype=object),
    "exposure": np.linspace(0, 1, COUNT) / 3,
    "day": np.arange(COUNT).astype("datetime64[D]"),
    "text": np.array([f"t{n}" for n in range(COUNT)]),
    "small": np.arange(COUNT, dtype=np.int8),
}


def images(*, columns: bool = True) -> Images:
    return Images.build(
        [9, 2, "left", 5],
        file_names=["9.png", None, "a/left.jpg", "5.png"],
        sizes=[[40, 30], [np.nan, np.nan], [40.5, 30], [40, 30]],
        columns={
            "weather": np.array(["rain", None, "sun", "sun"], dtype=object),
            "altitude": [1.5, np.nan, 3, 4],
            "night": [True, False, True, True],
        }
        if columns
        else None,
    )


def common(rng: np.random.Generator) -> dict[str, Any]:
    corners = rng.random((COUNT, 2)) * 20
    return {
        "image_ids": np.array([9, 9, "left", 5, 5, 9, 5], dtype=object),
        "category_ids": [3, 1, 3, 8, 8, 1, 3],
        "boxes": np.hstack([corners, rng.random((COUNT, 2)) * 9]),
        "box_format": "xywh",
        "images": images(),
        "categories": {3: "cat", 1: "dog", 8: "cat", 4: "no object"},
        "columns": USER,
        "rotated": rng.random((COUNT, 5)) * 6,
        "masks": [RLE, None, POLYGONS, RLE, POLYGONS, None, RLE],
        "keypoints": rng.random((COUNT, 4, 3)) * 30,
    }


def truth() -> GroundTruth:
    rng = np.random.default_rng(4)
    return GroundTruth.from_arrays(
        **common(rng),
        area=rng.random(COUNT) * 50,
        crowd=rng.random(COUNT) < 0.5,
        difficult=rng.random(COUNT) < 0.5,
        ignore=rng.random(COUNT) < 0.5,
        ids=np.array([7, "seven", 1, 2, 3, 4, 5], dtype=object),
        keypoint_count=[4, 0, 1, 2, 3, 4, 9],
    )


def detections() -> Detections:
    rng = np.random.default_rng(5)
    table = Detections.from_arrays(**common(rng), scores=rng.standard_normal(COUNT))
    return table.replaced(boxes_given=False, left_out={"yeti": 3})


def same(first: Any, second: Any) -> bool:
    """Equal to the last bit; NaN is NaN, and 1 is not True."""
    if isinstance(first, np.ndarray) and first.dtype != object and second.dtype != object:
        return first.dtype == second.dtype and first.tobytes() == second.tobytes()
    return repr(np.asarray(first).tolist()) == repr(np.asarray(second).tolist())


def assert_same(first: BoxTable, second: BoxTable) -> None:
    assert type(first) is type(second)
    for column in first.schema.needed:
        assert same(getattr(first, column.name), getattr(second, column.name)), column.name
    for name in first.schema.values:
        assert name == "source" or getattr(first, name) == getattr(second, name), name
    assert list(first.columns) == list(second.columns)
    for name in first.columns:
        assert same(first.columns[name], second.columns[name]), name
    for column in first.schema.instances:
        ours, theirs = first.instances[column.name], second.instances[column.name]
        if column.name == "masks":
            assert ours.missing.tolist() == theirs.missing.tolist()
            there = ~ours.missing
            assert [array.tolist() for array in ours[there].arrays()] == [
                array.tolist() for array in theirs[there].arrays()
            ]
        else:
            assert same(ours, theirs), column.name
    for name in ("ids", "file_names", "sizes"):
        assert same(getattr(first.images, name), getattr(second.images, name)), name
    assert list(first.images.columns) == list(second.images.columns)
    for name in first.images.columns:
        assert same(first.images.columns[name], second.images.columns[name]), name
    for name in ("ids", "names"):
        assert same(getattr(first.categories, name), getattr(second.categories, name)), name


def through_npz(table: Any, folder: Path) -> Any:
    boxscore.save_columns(table, folder / "table.npz")
    if isinstance(table, GroundTruth):
        return boxscore.load_ground_truth(folder / "table.npz")
    return boxscore.load_detections(folder / "table.npz", truth())


def through_pandas(table: Any, folder: Path) -> Any:
    return type(table).from_pandas(
        table.to_pandas(), images=table.images.to_pandas(), categories=table.categories.to_pandas()
    )


def through_pickle(table: Any, folder: Path) -> Any:
    return pickle.loads(pickle.dumps(table))


WAYS = [through_npz, through_pandas, through_pickle]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("table", [truth, detections])
def test_every_column_comes_back(
    table: Callable[[], BoxTable], way: Callable[[Any, Path], Any], tmp_path: Path
) -> None:
    first = table()
    if way is through_pandas:  # pandas has one kind of text and one of dates
        columns = {
            name: column.astype("M8[s]")
            if name == "day"
            else column.astype(object)
            if name == "text"
            else column
            for name, column in first.columns.items()
        }
        first = first.replaced(columns=columns)
    again = way(first, tmp_path)
    assert_same(first, again)
    assert not again.boxes.flags.writeable
    assert not again.keypoints.flags.writeable


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("table", [truth, detections])
def test_rows_that_are_taken_come_back(
    table: Callable[[], BoxTable], way: Callable[[Any, Path], Any], tmp_path: Path
) -> None:
    first = table()[[5, 0, 3]].replaced(columns={})
    assert_same(first, way(first, tmp_path))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("table", [truth, detections])
def test_empty_tables_come_back(
    table: Callable[[], BoxTable], way: Callable[[Any, Path], Any], tmp_path: Path
) -> None:
    again = way(table()[:0].replaced(masks=None, keypoints=None, columns={}), tmp_path)
    assert len(again) == 0
    assert len(again.images) == 4
    assert again.categories.names.tolist() == ["dog", "cat", "no object", "cat"]


@pytest.mark.long
@pytest.mark.parametrize("way", WAYS)
def test_files_come_back_with_what_they_hold(way: Callable[[Any, Path], Any], tmp_path: Path) -> None:
    """Corners of COCO's sizes do not give the sizes back; masks are read on the way."""
    path = SHAPES / "instances.json"
    first = boxscore.load_ground_truth(path)
    assert (first.sizes != corners_and_sizes(first.boxes, "xyxy")[1]).any()
    assert_same(first, way(first, tmp_path))


def table_of(**options: Any) -> GroundTruth:
    return GroundTruth.from_arrays([1], [1], [[0, 0, 5, 5]], **options)


@pytest.mark.parametrize("value", [(1, 2), {"a": 1}, np.datetime64("2020-01-01"), b"x", object()])
def test_columns_that_a_file_cannot_hold_are_refused_by_name(value: Any, tmp_path: Path) -> None:
    cells = np.empty(1, dtype=object)
    cells[0] = value
    rule = r"^column odd must hold text, numbers, true, false or null to be saved\. Got a "
    with pytest.raises(InputError, match=rule):
        boxscore.save_columns(table_of(columns={"odd": cells}), tmp_path / "gt.npz")
    with pytest.raises(InputError, match=rule):
        boxscore.save_columns(table_of(images=Images.build([1], columns={"odd": cells})), tmp_path / "gt.npz")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["a\0b", "a\nb", "\ud800"])
def test_names_that_an_archive_cannot_hold_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the name of a column must be plain text"):
        boxscore.save_columns(table_of(columns={name: [1]}), tmp_path / "gt.npz")


@pytest.mark.parametrize("name", ["column:x", "header", "image", "boxes", "file", "a/b", "..", "x.npy", " "])
def test_names_that_a_file_uses_itself_may_be_used(name: str, tmp_path: Path) -> None:
    first = table_of(columns={name: [3]}, images=Images.build([1], columns={name: [4]}))
    again = through_npz(first, tmp_path)
    assert {key: column.tolist() for key, column in again.columns.items()} == {name: [3]}
    assert {key: column.tolist() for key, column in again.images.columns.items()} == {name: [4]}


@pytest.mark.parametrize("name", ["x1", "w", "class", "area", "segmentation", "annotation_id"])
def test_names_that_a_data_frame_uses_itself_are_refused(name: str) -> None:
    with pytest.raises(InputError, match=f"a name that a table does not use itself. Got '{name}'"):
        table_of(columns={name: [1]}).to_pandas()


def test_columns_of_several_numbers_go_into_no_data_frame(tmp_path: Path) -> None:
    table = table_of(columns={"color": [[1, 2, 3]]})
    assert through_npz(table, tmp_path).columns["color"].tolist() == [[1, 2, 3]]
    with pytest.raises(InputError, match=r"column color must have one value per row .* Got shape \[1, 3\]"):
        table.to_pandas()
    with pytest.raises(InputError, match="column color must have one value per row"):
        Images.build([1], columns={"color": [[1, 2, 3]]}).to_pandas()
    with pytest.raises(InputError, match=r"a name that images do not use themselves. Got 'width'"):
        Images.build([1], columns={"width": [1]}).to_pandas()


def test_names_of_columns_are_strings() -> None:
    with pytest.raises(InputError, match=r"a name in columns must be a string. Got 1"):
        table_of(columns={1: [1]})
    with pytest.raises(InputError, match=r"a name in columns must be a string. Got 1"):
        Images.build([1], columns={1: [1]})  # type: ignore[dict-item]


def test_changed_corners_beside_old_sizes_are_refused() -> None:
    frame = table_of().to_pandas().assign(x2=9.0)
    with pytest.raises(InputError) as caught:
        GroundTruth.from_pandas(frame)
    assert str(caught.value) == (
        "w must be x2 - x1, which is 9.0. Got 5.0 in row 0 of DataFrame; "
        "were the corners changed? then drop the columns w and h."
    )
    assert GroundTruth.from_pandas(frame.drop(columns=["w", "h"])).sizes.tolist() == [[9, 5]]


def test_some_columns_of_a_data_frame() -> None:
    assert list(detections().to_pandas(["score", "camera", "image_id"])) == ["score", "camera", "image_id"]
    assert list(table_of().to_pandas(["keypoints", "area"])) == ["area"]
    with pytest.raises(InputError, match=r"a column must be in the table. Got 'scor'"):
        detections().to_pandas(["scor"])


def test_data_frames_of_images_and_classes() -> None:
    few = Images.build([3, 1])
    assert few.to_pandas().to_dict("list")["image_id"] == [1, 3]
    with pytest.raises(InputError, match="a DataFrame of images must have a column image_id"):
        GroundTruth.from_pandas(table_of().to_pandas(), images=pd.DataFrame({"id": [1]}))
    with pytest.raises(InputError, match="a DataFrame of categories must have a column category_id"):
        GroundTruth.from_pandas(table_of().to_pandas(), categories=pd.DataFrame({"id": [1]}))
    table = GroundTruth.from_pandas(table_of().to_pandas(), images=pd.DataFrame({"image_id": [1, 5]}))
    assert table.images.ids.tolist() == [1, 5]
    assert np.isnan(table.images.sizes).all()


# ---------------------------------------------------------------- rows of a table


@pytest.mark.parametrize("table", [truth, detections])
def test_rows_by_mask_slice_and_number(table: Callable[[], BoxTable]) -> None:
    whole = table()
    mask = np.arange(COUNT) % 2 == 1
    for rows in (slice(1, None, 2), mask, mask.tolist(), [1, 3, 5], np.array([1, 3, 5], dtype=np.uint8)):
        part = whole[rows]
        assert type(part) is type(whole)
        assert part.boxes.tolist() == whole.boxes[1::2].tolist()
        assert part.columns["camera"].tolist() == USER["camera"][1::2].tolist()
        assert part.keypoints.tolist() == whole.keypoints[1::2].tolist()
        assert part.masks.missing.tolist() == whole.masks.missing[1::2].tolist()
    assert len(whole[[]]) == 0
    assert whole[-1:].boxes.tolist() == whole[[-1]].boxes.tolist()


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ([True], r"a mask of rows must be as long as the table \(7\)\. Got length 1"),
        (3, "rows must be a slice, a mask"),
        ([0.5], "rows must be a slice, a mask"),
        (["a"], "rows must be a slice, a mask"),
        ([[1]], "rows must be a slice, a mask"),
    ],
)
def test_rows_that_are_none(rows: Any, text: str) -> None:
    with pytest.raises(InputError, match=text):
        truth()[rows]


# ---------------------------------------------------------------- a first look


def test_short_reprs() -> None:
    table = truth()
    assert repr(table) == (
        "GroundTruth: 7 objects, 4 images, 4 classes\n  classes: dog, cat, no object, cat\n"
        f"  flags: {table.crowd.sum()} crowd, {table.difficult.sum()} difficult, {table.ignore.sum()} ignore\n"
        "  columns: rotated, masks, keypoints, camera, mixed, exposure, day, text, ...\n  source: arrays"
    )
    assert "left out: 3" in repr(detections())
    assert repr(table.masks) == "Masks: 7\n  stored as: 3 RLE, 2 missing, 2 polygons"
    assert repr(table.images).splitlines()[0] == "Images: 4"
    assert repr(table.categories).splitlines()[-1] == "  names: dog, cat, no object, cat"
    parts = (table.masks, table.images, table.categories, table[:0], table.masks[:0])
    for value in (table, detections(), *parts):
        assert len(repr(value).splitlines()) <= 6
        assert value._repr_html_().startswith("<div><b>")


def test_reprs_are_safe_to_show() -> None:
    table = table_of(categories={1: "<b>\x1b[31m"}, source="\n")
    assert "<b>\N{REPLACEMENT CHARACTER}" in repr(table)
    assert "\x1b" not in table._repr_html_()
    assert "&lt;b&gt;" in table._repr_html_()


def test_names_of_classes_stay_few() -> None:
    many = Categories.build(range(1000))
    assert len(repr(many)) < 200
