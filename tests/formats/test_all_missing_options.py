"""All that is missing for a file is asked for at once, and one class needs no class column."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

import boxscore as bs
from boxscore.cli import main

BOX = [10, 20, 100, 50]


def truth(folder: Path, names: dict[int, str]) -> Path:
    path = folder / "gt.json"
    annotation = {"id": 1, "image_id": 1, "category_id": min(names), "bbox": BOX, "area": 5000, "iscrowd": 0}
    path.write_text(
        json.dumps(
            {
                "images": [{"id": 1, "file_name": "a.jpg"}],
                "categories": [{"id": number, "name": name} for number, name in names.items()],
                "annotations": [annotation],
            }
        )
    )
    return path


def table(folder: Path, kind: str, *, scores: bool) -> Path:
    """Write the box as one column of four numbers, which may be corners or corner and size, without class."""
    frame = pd.DataFrame(
        {"image": ["a.jpg"], "bbox": [BOX], "source": ["x"]} | ({"score": [0.9]} if scores else {})
    )
    path = folder / f"{'dt' if scores else 't'}.{kind}"
    if kind == "csv":
        frame.to_csv(path, index=False)
    elif kind == "jsonl":
        frame.to_json(path, orient="records", lines=True)
    else:
        pytest.importorskip("pyarrow")
        frame.to_parquet(path)
    return path


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("scores", [False, True])
def test_tables_without_form_and_class(tmp_path: Path, kind: str, scores: bool) -> None:
    path = table(tmp_path, kind, scores=scores)
    side = "dt" if scores else "gt"
    message = rf"--{side}-box-format.*must have a column class, label or category_id.*--columns class=NAME"
    objects = bs.load_ground_truth(truth(tmp_path, {1: "cat", 2: "dog"}))
    with pytest.raises(bs.InputError, match=message):
        _ = bs.load_detections(path, objects) if scores else bs.load_ground_truth(path)


@pytest.mark.parametrize("line", ["0 0.9 10 20 110 70", "0 0.3 0.45 0.5 0.5 0.5"])
@pytest.mark.parametrize(("names", "asks"), [({7: "cat", 9: "dog"}, True), ({0: "cat", 1: "dog"}, False)])
def test_folders_of_text_with_numbers_of_classes(
    tmp_path: Path, line: str, names: dict[int, str], asks: bool
) -> None:
    """Pixels may be corners or corner and size; fractions may have the confidence last or second."""
    folder = tmp_path / "dt"
    folder.mkdir()
    (folder / "a.txt").write_text(f"{line}\n")
    objects = bs.load_ground_truth(truth(tmp_path, names))
    with pytest.raises(bs.InputError, match=r"must (have one meaning|be declared as)") as caught:
        bs.load_detections(folder, objects)
    assert ("--dt-classes FILE" in str(caught.value)) == asks
    # With class names, only the form is missing.
    with pytest.raises(bs.InputError, match=r"must (have one meaning|be declared as)") as caught:
        bs.load_detections(folder, objects, classes=["cat", "dog"])
    assert "--dt-classes" not in str(caught.value)


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("limit", [[], ["--memory-limit", "1GB"]])
def test_the_only_class_of_the_ground_truth(
    tmp_path: Path, kind: str, limit: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    if limit and kind != "parquet":
        pytest.skip("only Parquet is read in partitions")
    command = ["evaluate", str(truth(tmp_path, {5: "wheat"})), str(table(tmp_path, kind, scores=True))]
    assert main([*command, "--dt-box-format", "xywh", *limit]) == 0
    shown = capsys.readouterr()
    assert "\nAP      1.0000 " in shown.out
    assert limit or "all boxes are of the only class of the ground truth, 'wheat'" in shown.err


@pytest.mark.parametrize("names", [{5: "wheat"}, {1: "cat", 2: "dog"}])
def test_a_class_list_comes_first(tmp_path: Path, names: dict[int, str]) -> None:
    path = table(tmp_path, "csv", scores=True)
    objects = bs.load_ground_truth(truth(tmp_path, names))
    name = list(names.values())[-1]
    found = bs.load_detections(path, objects, box_format="xywh", classes=[name])
    assert found.categories.names[found.category].tolist() == [name]
