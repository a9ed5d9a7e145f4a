"""A class column of whole numbers next to a text column ``name``, as YOLOv5 writes, is number and name."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pandas as pd
import pytest

import boxscore as bs
from boxscore.cli import main

TRUTH = [("a.jpg", 1, [10, 20, 100, 50]), ("a.jpg", 2, [30, 40, 20, 20]), ("b.jpg", 1, [10, 20, 100, 50])]
NAMES = {1: "cat", 2: "dog"}
HEAD = ["image", "xmin", "ymin", "xmax", "ymax", "confidence", "class", "name"]
ROWS = [
    ["a.jpg", 10, 20, 110, 70, 0.9, 0, "cat"],
    ["a.jpg", 30, 40, 50, 60, 0.8, 1, "dog"],
    ["b.jpg", 10, 20, 110, 70, 0.7, 0, "cat"],
]
"""Each equals an object; the numbers count from 0, those of the ground truth from 1."""


@pytest.fixture
def truth(tmp_path: Path) -> Path:
    images = {"a.jpg": 1, "b.jpg": 2}
    path = tmp_path / "gt.json"
    path.write_text(
        json.dumps(
            {
                "images": [
                    {"id": number, "file_name": name, "width": 200, "height": 100}
                    for name, number in images.items()
                ],
                "categories": [{"id": number, "name": name} for number, name in NAMES.items()],
                "annotations": [
                    {"id": row + 1, "image_id": images[image], "category_id": number, "bbox": box}
                    | {"area": box[2] * box[3], "iscrowd": 0}
                    for row, (image, number, box) in enumerate(TRUTH)
                ],
            }
        )
    )
    return path


def written(folder: Path, kind: str, frame: pd.DataFrame) -> Path:
    path = folder / f"dt.{kind}"
    if kind == "csv":
        frame.to_csv(path, index=False)
    elif kind == "jsonl":
        frame.to_json(path, orient="records", lines=True)
    else:
        pytest.importorskip("pyarrow")
        frame.to_parquet(path, row_group_size=2)
    return path


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize(("rows", "ap"), [([0, 1, 2], 1.0), ([1], 0.5), ([0, 2], 0.5)])
def test_files(tmp_path: Path, truth: Path, kind: str, rows: list[int], ap: float) -> None:
    frame = pd.DataFrame([ROWS[row] for row in rows], columns=HEAD)
    assert bs.evaluate(truth, written(tmp_path, kind, frame))["AP"] == pytest.approx(ap)


@pytest.mark.parametrize("image", ["image", "image_id"])
@pytest.mark.parametrize("given", [False, True])
def test_frames(truth: Path, image: str, given: bool) -> None:
    frame = pd.DataFrame(ROWS, columns=[image, *HEAD[1:]])
    if image == "image_id":  # standard names, which are used as they are
        frame = frame.rename(
            columns={"xmin": "x1", "ymin": "y1", "xmax": "x2", "ymax": "y2", "confidence": "score"}
        )
    objects = bs.load_ground_truth(truth)
    detections = bs.Detections.from_pandas(frame, categories=objects.categories if given else None)
    classes = detections.categories.names[detections.category].tolist()
    assert classes == ["cat", "dog", "cat"]


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_ground_truth(tmp_path: Path, kind: str) -> None:
    frame = pd.DataFrame(ROWS, columns=HEAD).drop(columns="confidence")
    table = bs.load_ground_truth(written(tmp_path, kind, frame))
    assert dict(zip(table.categories.ids, table.categories.names, strict=True)) == {0: "cat", 1: "dog"}


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_one_odd_row_of_many_is_refused(tmp_path: Path, truth: Path, kind: str) -> None:
    frame = pd.DataFrame([*ROWS * 10, [*ROWS[0][:-1], "dog"]], columns=HEAD)
    with pytest.raises(bs.InputError, match=r"one name in the columns class and name.*'cat' and 'dog'"):
        bs.evaluate(truth, written(tmp_path, kind, frame))
    with pytest.raises(bs.InputError, match=r"one name in the columns class and name.*'cat' and 'dog'"):
        bs.Detections.from_pandas(frame)


@pytest.mark.parametrize("names", [["x1", "x2", "x3"], [7, 8, 7], ["night"] * 3])
def test_a_column_name_with_something_else_stays_a_column(tmp_path: Path, names: list[object]) -> None:
    """Names of objects, numbers, or the same text for every class are no class names."""
    numbers = [0, 1, 0] if names != ["x1", "x2", "x3"] else [0, 0, 0]
    frame = pd.DataFrame(ROWS, columns=HEAD).assign(name=names).drop(columns="confidence")
    frame["class"] = numbers
    table = bs.load_ground_truth(written(tmp_path, "csv", frame))
    assert table.categories.names.tolist() == [str(number) for number in sorted({*numbers})]
    assert table.columns["name"].tolist() == names


@pytest.mark.parametrize(("rows", "ap"), [([0, 1, 2], 1.0), ([1], 0.5)])
@pytest.mark.parametrize("limit", [[], ["--memory-limit", "1GB"]])
def test_partitions_of_parquet(
    tmp_path: Path, rows: list[int], ap: float, limit: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Other numbers with the same names on both sides, a row group per row."""
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame(ROWS, columns=HEAD)
    frame.iloc[rows].to_parquet(tmp_path / "dt.parquet", row_group_size=1)
    objects = frame.drop(columns="confidence").assign(**{"class": frame["class"] + 1})
    objects.to_parquet(tmp_path / "gt.parquet", row_group_size=1)
    paths = [str(tmp_path / "gt.parquet"), str(tmp_path / "dt.parquet")]
    assert main(["evaluate", *paths, *limit]) == 0
    assert f"\nAP      {ap:.4f} " in capsys.readouterr().out


NUMBERS = [1, 2, 1]
"""The ids of the classes of the rows in the ground truth."""


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize(
    ("names", "says"),
    [
        (["night"] * 3, False),
        (["a.jpg", "c.jpg", "a.jpg"], False),  # a file per class
        (["left", "right", "left"], True),  # a camera per class
        (["Katze", "Hund", "Katze"], True),  # or the classes in another language
        (["left", "right", "rear"], False),
    ],
)
@pytest.mark.parametrize("limit", [[], ["--memory-limit", "1GB"]])
def test_a_column_name_without_classes_moves_no_number(
    tmp_path: Path,
    truth: Path,
    kind: str,
    names: list[str],
    says: bool,
    limit: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    if limit and kind != "parquet":
        pytest.skip("only Parquet is read in partitions")
    frame = pd.DataFrame(ROWS, columns=HEAD).assign(name=names, **{"class": NUMBERS})
    path = written(tmp_path, kind, frame)
    assert main(["evaluate", str(truth), str(path), *limit]) == 0
    shown = capsys.readouterr()
    assert "\nAP      1.0000 " in shown.out
    assert ("no name of a known class" in shown.err) == says
    # What is advised gives the other reading.
    if says:
        assert "--dt-columns class=name" in shown.err
        assert main(["evaluate", str(truth), str(path), *limit, "--dt-columns", "class=name"]) == 0
        assert "\nAP      0.0000 " in capsys.readouterr().out
    given = bs.load_ground_truth(truth).categories
    with pytest.warns(bs.BoxscoreWarning) if says else contextlib.nullcontext():
        table = bs.Detections.from_pandas(frame, categories=given)
    assert given.ids[table.category].tolist() == NUMBERS


@pytest.mark.parametrize("numbers", [[0, 0, 0], [1, 1, 1]])
def test_one_value_in_a_column_name_of_ground_truth_is_said(tmp_path: Path, numbers: list[int]) -> None:
    frame = pd.DataFrame(ROWS, columns=HEAD).drop(columns="confidence")
    frame = frame.assign(name="night", **{"class": numbers})
    path = written(tmp_path, "csv", frame)
    message = rf"one value, 'night', read as the name of class {numbers[0]}.*--gt-columns class=class"
    with pytest.warns(bs.BoxscoreWarning, match=message):
        assert bs.load_ground_truth(path).categories.names.tolist() == ["night"]
    with pytest.warns(bs.BoxscoreWarning, match=message):
        bs.GroundTruth.from_pandas(frame)
    table = bs.load_ground_truth(path, columns={"class": "class"})
    assert table.categories.names.tolist() == [str(numbers[0])]
    assert table.columns["name"].tolist() == ["night"] * 3


def test_ids_without_names_take_any_name(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    """Ground truth that has only numbers holds no name to compare."""
    frame = pd.DataFrame(ROWS, columns=HEAD)
    objects = frame.drop(columns=["confidence", "name"])
    objects.to_csv(tmp_path / "gt.csv", index=False)
    assert bs.evaluate(tmp_path / "gt.csv", written(tmp_path, "csv", frame))["AP"] == pytest.approx(1.0)
    assert not recwarn.list


@pytest.mark.parametrize("limit", [[], ["--memory-limit", "1GB"]])
def test_a_partition_with_an_unknown_class_alone(
    tmp_path: Path, truth: Path, limit: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """The image b.jpg has a horse with the number of a class of the ground truth."""
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame(ROWS, columns=HEAD)
    frame.loc[2, ["class", "name"]] = [2, "horse"]
    frame.to_parquet(tmp_path / "dt.parquet", row_group_size=1)
    command = ["evaluate", str(truth), str(tmp_path / "dt.parquet"), *limit]
    assert main(command) == 0
    # Of the two cats one is found, of the dogs all: (51/101 + 1) / 2.
    assert f"\nAP      {(51 / 101 + 1) / 2:.4f} " in capsys.readouterr().out
