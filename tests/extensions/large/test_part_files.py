"""Part files that are unlike each other, empty or strange: partitions read them as one evaluation does."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore.distributed import scan
from support.examples import first_of
from support.parted import bits, whole
from support.running import Run

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

Columns = dict[str, Any]


def columns_of(images: list[Any], *, score: bool, shift: float = 0.0) -> Columns:
    """Two boxes per image."""
    count = 2 * len(images)
    left = np.arange(count) % 5 * 10.0 + shift
    table = {
        "image_id": [image for image in images for _ in range(2)],
        "label": ["cat", "dog"] * len(images),
        "x1": left,
        "y1": left,
        "x2": left + 20,
        "y2": left + 30,
    }
    return table | ({"score": 1.0 - np.arange(count) / count} if score else {})


def both(folder: Path, truth: list[Any], found: list[Any], *, rows: int = 3) -> tuple[Path, Path]:
    """Write part files of tables, each in row groups of some rows."""
    for name, tables in (("truth", truth), ("found", found)):
        (folder / name).mkdir()
        for number, table in enumerate(tables):
            pq.write_table(pa.table(table), folder / name / f"{number}.parquet", row_group_size=rows)
    return folder / "truth", folder / "found"


def same(sides: tuple[Any, Any], protocol: Any = "coco") -> boxscore.Evaluation:
    """Check partitions against all at once, which is returned."""
    expected = whole(sides, protocol)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", boxscore.BoxscoreWarning)
        for partitions in (1, 2, 7):
            assert bits(scan(*sides, protocol=protocol, partitions=partitions)) == bits(expected)
    return expected


def test_nothing_was_detected(tmp_path: Path) -> None:
    none = pa.table(columns_of([1], score=True)).slice(0, 0)
    result = same(both(tmp_path, [columns_of([1, 2, 3], score=False)], [none]))
    assert result["AP"] == 0.0


def test_no_image_at_all(tmp_path: Path) -> None:
    truth, found = (pa.table(columns_of([1], score=score)).slice(0, 0) for score in (False, True))
    sides = both(tmp_path, [truth], [found])
    assert same(sides).counts["images"] == 0
    tables = boxscore.load_ground_truth(sides[0])
    assert same((tables, boxscore.load_detections(sides[1], tables))).counts["images"] == 0


def test_classes_of_the_schema_without_a_row(tmp_path: Path) -> None:
    named = {b"boxscore": b'{"classes": [["cat", "cat"], ["emu", "emu"]]}'}
    truth, found = (pa.table(columns_of([1], score=score)).slice(0, 0) for score in (False, True))
    pq.write_table(truth.replace_schema_metadata(named), tmp_path / "truth.parquet", row_group_size=1)
    with pq.ParquetWriter(tmp_path / "empty.parquet", truth.schema.with_metadata(named)):
        pass  # not even a row group
    pq.write_table(found, tmp_path / "found.parquet")
    for name in ("truth", "empty"):
        result = same((tmp_path / f"{name}.parquet", tmp_path / "found.parquet"))
        assert result.labels == ["cat", "emu"]


def test_ids_that_need_all_64_bits(tmp_path: Path) -> None:
    images = pa.array([2**64 - 1 - number for number in range(6) for _ in range(2)], pa.uint64())
    tables = [
        pa.table(columns_of(list(range(6)), score=score)).set_column(0, "image_id", images)
        for score in (False, True)
    ]
    assert same(both(tmp_path, tables[:1], tables[1:]))["AP"] == 1.0


def test_the_class_of_a_row_without_a_box_is_none(tmp_path: Path) -> None:
    truth = columns_of([1, 2], score=False)
    empty = {name: [None] for name in ("x1", "y1", "x2", "y2")} | {"image_id": [3], "label": ["emu"]}
    numbers = pa.table(empty).cast(pa.table(truth).select(list(empty)).schema)
    result = same(both(tmp_path, [truth, numbers], [columns_of([1, 3], score=True)]))
    assert result.labels == ["cat", "dog"]


def test_a_column_that_a_file_does_not_have(tmp_path: Path) -> None:
    truth = [columns_of(images, score=False) for images in ([1, 2], [3, 4])]
    truth[1]["iscrowd"] = [0, 1, 0, 0]
    found = [columns_of(images, score=True, shift=1.0) for images in ([1, 3], [4, 2])]
    found[0]["own"] = [1.0] * 4
    assert same(both(tmp_path, truth, found)).counts["crowds"] == 1


def test_lists_that_are_empty_in_a_whole_file(tmp_path: Path) -> None:
    """Arrow writes such lists without a type."""
    empty = {"image_id": [7, 8], "xyxy": [[], []], "label": [[], []]}
    some = {
        "image_id": [1, 2],
        "xyxy": [[[0.0, 0.0, 9.0, 9.0]], [[0.0, 0.0, 5.0, 5.0]]],
        "label": [["a"], ["b"]],
    }
    scores = {"score": [[], []]}, {"score": [[0.5], [0.5]]}
    for number, order in enumerate(((0, 1), (1, 0))):
        truth = [(empty, some)[at] for at in order]
        found = [(empty | scores[0], some | scores[1])[at] for at in order]
        (tmp_path / str(number)).mkdir()
        assert same(both(tmp_path / str(number), truth, found), "voc2012")["mAP"] == 1.0


@pytest.mark.long
@pytest.mark.parametrize("scattered", first_of(1, [True, False]))
def test_numbers_of_other_types(tmp_path: Path, scattered: bool) -> None:
    """Whole numbers in the first file, halves in the second."""
    images = list(range(20))
    found = [columns_of(images, score=True), columns_of(images[::-1] if scattered else images, score=True)]
    found[0] |= {name: found[0][name].astype(np.int16) for name in ("x1", "y1", "x2", "y2")}
    found[1] |= {name: found[1][name] + 0.5 for name in ("x1", "y1", "x2", "y2")}
    assert 0 < same(both(tmp_path, [columns_of(images, score=False)], found))["AP"] < 1


@pytest.mark.long
def test_widths_are_those_of_boxes_in_every_partition(tmp_path: Path) -> None:
    """An image whose boxes are of one size would else be as large as they are; or of no size at all."""
    truth, found = (columns_of(list(range(6)), score=score) for score in (False, True))
    for table in (truth, found):
        table["x2"][4:6], table["y2"][4:6] = table["x1"][4:6], table["y1"][4:6]
        table["x2"][0] += 5
        table |= {"width": table["x2"] - table["x1"], "height": table["y2"] - table["y1"]}
    assert same(both(tmp_path, [truth], [found], rows=2), "padilla-coco").counts["ground_truths"] == 12


@pytest.mark.long
def test_fractions_stay_fractions_in_every_partition(tmp_path: Path) -> None:
    """Where one size is unknown no box is in pixels, also where all sizes of a partition are known."""
    truth, found = (columns_of(list(range(6)), score=score) for score in (False, True))
    for table in (truth, found):
        table |= {name: table[name] / 90 for name in ("x1", "y1", "x2", "y2")}
    found["x2"] = found["x2"] * 0.9
    truth |= {"image_width": [None] * 2 + [641] * 10, "image_height": [None] * 2 + [479] * 10}
    assert 0 < same(both(tmp_path, [truth], [found], rows=2))["AP"] < 1


@pytest.mark.long
def test_fractions_of_an_image_without_objects(tmp_path: Path) -> None:
    truth, found = columns_of([1, 2], score=False), columns_of([1, 2, 3], score=True)
    for table in (truth, found):
        table |= {name: table[name] / 90 for name in ("x1", "y1", "x2", "y2")}
    empty = {name: np.array([np.nan]) for name in ("x1", "y1", "x2", "y2")} | {"image_id": [3]}
    found["label"] = [*found["label"][:4], "cat", "cat"]
    assert same(both(tmp_path, [truth, empty], [found], rows=1)).counts["detections"] == 6


@pytest.mark.long
def test_scores_beyond_those_of_32_bits(tmp_path: Path) -> None:
    found = columns_of([1, 2], score=True)
    found["score"] = np.array([1e300, 1e-300, 1e308, 0.5])
    same(both(tmp_path, [columns_of([1, 2], score=False)], [found]))


@pytest.mark.parametrize("kind", ["folder", "link", "pipe"])
def test_what_is_no_file_is_refused(tmp_path: Path, kind: str, run: Run) -> None:
    """Its rows would be missing without a word."""
    sides = both(tmp_path, [columns_of([1], score=False)], [columns_of([1], score=True)])
    other = sides[1] / "1.parquet"
    if kind == "folder":
        other.mkdir()
    elif kind == "link":
        other.symlink_to("nowhere")
    else:
        os.mkfifo(other)
    for more in ([], ["--memory-limit", "2GB"]):
        assert "a part file must be a file" in run.error("evaluate", *sides, *more)
