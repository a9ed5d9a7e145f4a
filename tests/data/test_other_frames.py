"""Frames of other libraries: images and classes, lazy frames, missing flags, and masks of two kinds in Parquet."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import boxscore
from boxscore import Detections, GroundTruth, InputError

pa = pytest.importorskip("pyarrow")

TRUTH = {
    "image_id": [1, 2],
    "class": ["a", "b"],
    "x1": [0.0, 0],
    "y1": [0.0, 0],
    "x2": [9.0, 9],
    "y2": [9.0, 9],
}
IMAGES = {"image_id": [1, 2, 3], "file_name": ["1.jpg", "2.jpg", None], "width": [100.0, 90, 80]}
CLASSES = {"category_id": [5, 6, 7], "class": ["b", "a", "c"], "frequency": ["r", "f", "c"]}


def polars(columns: dict[str, Any]) -> Any:
    return pytest.importorskip("polars").DataFrame(columns)


FRAMES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "pandas": pd.DataFrame,
    "arrow": pa.table,
    "polars": polars,
}


@pytest.mark.parametrize("library", FRAMES)
def test_images_and_classes_of_any_library(library: str) -> None:
    made = FRAMES[library]
    table = GroundTruth.from_pandas(made(TRUTH), images=made(IMAGES), categories=made(CLASSES))
    assert table.images.ids.tolist() == [1, 2, 3]
    assert table.images.file_names.tolist() == ["1.jpg", "2.jpg", None]
    np.testing.assert_equal(table.images.sizes[:, 0], [100, 90, 80])
    assert table.categories.names.tolist() == ["b", "a", "c"]
    assert table.categories.columns["frequency"].tolist() == ["r", "f", "c"]
    assert table.categories.ids[table.category].tolist() == [6, 5]
    again = GroundTruth.from_pandas(
        made(TRUTH),
        images=made(table.images.to_pandas()[["image_id", "width"]].to_dict("list")),
        categories=made(table.categories.to_pandas().to_dict("list")),
    )
    assert again.images.ids.tolist() == [1, 2, 3]
    assert again.categories.columns["frequency"].tolist() == ["r", "f", "c"]
    with pytest.raises(InputError, match="a DataFrame of images must have a column image_id"):
        GroundTruth.from_pandas(made(TRUTH), images=made({"id": [1]}))


class LazyFrame:
    """What Polars' class of this name shows without doing its work."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self._frame = frame

    @property
    def columns(self) -> list[str]:
        raise AssertionError("resolving the schema may be expensive")

    def collect(self) -> pd.DataFrame:
        return self._frame


def lazy_of_polars(frame: pd.DataFrame) -> Any:
    return pytest.importorskip("polars").from_pandas(frame).lazy()


@pytest.mark.parametrize("lazy", [LazyFrame, lazy_of_polars])
def test_a_lazy_frame_must_be_collected(lazy: Any) -> None:
    frame = pd.DataFrame(TRUTH)
    scored = frame.assign(score=0.5)
    calls: dict[str, Callable[[], Any]] = {
        "a table of boxes": lambda: GroundTruth.from_pandas(lazy(frame)),
        "images": lambda: GroundTruth.from_pandas(frame, images=lazy(pd.DataFrame(IMAGES))),
        "categories": lambda: Detections.from_pandas(scored, categories=lazy(pd.DataFrame(CLASSES))),
    }
    for name, call in calls.items():
        with pytest.raises(
            InputError, match=f"^{name} must be a DataFrame.*a LazyFrame; pass what its collect.. returns"
        ):
            call()
    for sides in ((lazy(frame), scored), (frame, lazy(scored))):
        with pytest.raises(InputError, match=r"pass what its collect\(\) returns"):
            boxscore.evaluate(*sides)
    assert boxscore.evaluate(LazyFrame(frame).collect(), scored)["AP"] == pytest.approx(1)


@pytest.mark.parametrize(
    "column",
    [
        pd.array([True, pd.NA], dtype="boolean"),
        pd.array([1, pd.NA], dtype="Int64"),
        pd.Series([True, pd.NA], dtype=object),
        pd.Series([True, None], dtype=object),
        [1.0, float("nan")],
    ],
)
@pytest.mark.parametrize("name", ["crowd", "difficult", "ignore"])
def test_a_missing_flag_is_false_as_in_files(column: Any, name: str, tmp_path: Path) -> None:
    frame = pd.DataFrame(TRUTH).assign(**{name: column})
    assert getattr(GroundTruth.from_pandas(frame), name).tolist() == [True, False]
    frame.to_csv(tmp_path / "gt.csv", index=False)
    assert getattr(boxscore.load_ground_truth(tmp_path / "gt.csv"), name).tolist() == [True, False]
    assert frame[name].isna().tolist() == [False, True]


POLYGON = [[0.0, 0.0, 5.1, 0.0, 5.0, 5.0], [7.0, 7.0, 8.0, 7.0, 8.0, 8.5]]
LIST, TEXT = {"size": [9, 9], "counts": [10, 3, 68]}, {"size": [9, 9], "counts": ":3T2"}


@pytest.mark.parametrize("through", ["pandas", "arrow", "polars"])
@pytest.mark.parametrize(
    "masks",
    [[POLYGON] * 3, [LIST] * 3, [TEXT] * 3, [POLYGON, LIST, TEXT], [LIST, TEXT, LIST], [TEXT, POLYGON, None]],
    ids=["polygons", "lists", "texts", "mixed", "two codes", "with none"],
)
def test_masks_of_any_kinds_survive_parquet(masks: Any, through: str, tmp_path: Path) -> None:
    rows = [
        {"id": k, "image_id": 1, "category_id": 1, "bbox": [0, 0, 9, 9], "area": 9, "iscrowd": 0}
        | ({} if mask is None else {"segmentation": mask})
        for k, mask in enumerate(masks, 1)
    ]
    data = {"images": [{"id": 1, "width": 9, "height": 9}], "categories": [{"id": 1, "name": "a"}]}
    (tmp_path / "gt.json").write_text(json.dumps(data | {"annotations": rows}))
    table = boxscore.load_ground_truth(tmp_path / "gt.json")
    frame = table.to_pandas()
    frame.to_parquet(tmp_path / "gt.parquet")
    read: Any = pd.read_parquet(tmp_path / "gt.parquet")
    if through == "arrow":
        read = pa.parquet.read_table(tmp_path / "gt.parquet")
    if through == "polars":
        read = pytest.importorskip("polars").read_parquet(tmp_path / "gt.parquet")
    again = GroundTruth.from_pandas(read, images=table.images, categories=table.categories)
    assert again.masks is not None
    assert table.masks is not None
    assert again.masks.missing.tolist() == [mask is None for mask in masks]
    present = ~again.masks.missing
    assert again[present].masks.codes() == table[present].masks.codes()
    if len({str(type(mask)) for mask in masks}) > 1:
        assert all(isinstance(value, str) for value in frame["segmentation"].dropna())


def test_text_that_is_no_mask_is_refused() -> None:
    frame = pd.DataFrame(TRUTH).assign(segmentation=["[[0, 0, 5, 0, 5, 5]]", "a circle"])
    with pytest.raises(InputError, match=r"a mask must be polygons, an RLE .*Got 'a circle' in row 1"):
        GroundTruth.from_pandas(frame, images=pd.DataFrame(IMAGES).assign(height=90.0))
