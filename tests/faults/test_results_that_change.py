"""Results that another program writes while they are read: an error, never rows of two files."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from boxscore import FileFormatError, load_ground_truth
from boxscore._utils.files import Snapshot
from boxscore.formats._format import ReadOptions
from boxscore.formats.coco import begin
from boxscore.formats.results import load_results, save_results
from support.running import Run
from support.samples import SHAPES

STAY = re.escape("must not change while it is read. Got ")


def records(change: float = 0.0, **more: Any) -> list[dict[str, Any]]:
    return [
        {"image_id": i % 3, "category_id": 1, "bbox": [9.5, i, 8, 7], "score": 0.9 - i / 100 + change, **more}
        for i in range(6)
    ]


RLE = {"size": [4, 4], "counts": [2, 4, 10]}
FORMS: dict[str, Callable[[list[dict[str, Any]]], Any]] = {
    "numbers": lambda rows: rows,
    "ids that are text": lambda rows: [{**row, "image_id": f"a{row['image_id']}"} for row in rows],
    "ids with a point": lambda rows: [{**row, "image_id": float(row["image_id"])} for row in rows],
    "an object": lambda rows: {"annotations": rows},
    "rotated": lambda rows: [{**row, "bbox": [*row["bbox"], 30]} for row in rows],
    "masks": lambda rows: [
        {**{k: v for k, v in row.items() if k != "bbox"}, "segmentation": RLE} for row in rows
    ],
}


def write(path: Path, rows: list[dict[str, Any]], form: str) -> None:
    path.write_text(json.dumps(FORMS[form](rows)))


def save(results: Any, tmp_path: Path) -> None:
    save_results(results, np.arange(1, 5), tmp_path / "out.json")


@pytest.mark.filterwarnings("ignore:.*rotated boxes")
@pytest.mark.parametrize("form", FORMS)
def test_a_file_replaced_between_two_readings(form: str, tmp_path: Path) -> None:
    path = tmp_path / "dt.json"
    write(path, records(), form)
    results = load_results(path)
    assert [snapshot.is_old for snapshot in results.snapshots] == [False]
    save(results, tmp_path)  # just written, and the same: every row is compared
    kept = json.loads((tmp_path / "out.json").read_text())
    assert len(kept if isinstance(kept, list) else kept["annotations"]) == 4
    (tmp_path / "out.json").unlink()
    write(tmp_path / "new", records(0.01), form)
    (tmp_path / "new").replace(path)
    with pytest.raises(FileFormatError, match=STAY):
        save(results, tmp_path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["dt.json"]


CHANGES: dict[str, Callable[[list[dict[str, Any]]], list[dict[str, Any]]]] = {
    "score": lambda rows: [*rows[:3], {**rows[3], "score": 0.12}, *rows[4:]],
    "image": lambda rows: [*rows[:3], {**rows[3], "image_id": 2}, *rows[4:]],
    "class": lambda rows: [*rows[:3], {**rows[3], "category_id": 3}, *rows[4:]],
    "box": lambda rows: [*rows[:3], {**rows[3], "bbox": [9.5, 3, 8, 8]}, *rows[4:]],
    "text for a number": lambda rows: [*rows[:3], {**rows[3], "image_id": "zebra"}, *rows[4:]],
    "no box": lambda rows: [*rows[:3], {**rows[3], "bbox": None}, *rows[4:]],
    "no score": lambda rows: [*rows[:3], {"image_id": 0}, *rows[4:]],
    "order": lambda rows: rows[::-1],
    "fewer": lambda rows: rows[:5],
    "more": lambda rows: [*rows, rows[0]],
}


@pytest.mark.parametrize("form", ["numbers", "ids that are text", "an object"])
@pytest.mark.parametrize("change", CHANGES)
def test_a_file_overwritten_within_one_tick_of_the_clock(
    change: str, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file looks the same; its rows do not."""
    path = tmp_path / "dt.json"
    write(path, records(), form)
    results = load_results(path)
    write(path, CHANGES[change](records()), form)
    monkeypatch.setattr(Snapshot, "check_reading", lambda self: None)
    with pytest.raises(FileFormatError, match=STAY):
        save(results, tmp_path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["dt.json"]


def test_an_old_file_is_known_by_its_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "dt.json"
    write(path, records(), "numbers")
    monkeypatch.setattr("boxscore._utils.files.TICK", -(10**18))  # as if it were old
    results = load_results(path)
    assert [snapshot.is_old for snapshot in results.snapshots] == [True]
    save(results, tmp_path)
    before = path.stat()
    write(path, records(0.01), "numbers")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))  # as `rsync --times --inplace` may leave it
    with pytest.raises(FileFormatError, match=STAY):
        save(results, tmp_path)


@pytest.mark.parametrize("looks_the_same", [False, True])
@pytest.mark.parametrize("change", ["score", "image", "fewer", "other words", "a new file"])
def test_voc_results(
    change: str, looks_the_same: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "dt"
    folder.mkdir()
    for label in ("cat", "dog"):
        (folder / f"comp4_det_test_{label}.txt").write_text("1 0.9 1 2 3 4\n2 0.8 5 6 7 8\n")
    results = load_results(folder)
    save_results(results, np.arange(4), tmp_path / "same")
    assert (tmp_path / "same" / "comp4_det_test_dog.txt").read_text() == "1 0.9 1 2 3 4\n2 0.8 5 6 7 8\n"
    if change == "a new file":
        (folder / "comp4_det_test_elk.txt").write_text("1 0.9 1 2 3 4\n")
    else:
        text = {
            "score": "1 0.9 1 2 3 4\n2 0.7 5 6 7 8\n",
            "image": "1 0.9 1 2 3 4\n3 0.8 5 6 7 8\n",
            "fewer": "1 0.9 1 2 3 4\n",
            "other words": "1 0.9 1 2 3 4\n2 0.8 5 6 7\n",
        }[change]
        (folder / "comp4_det_test_dog.txt").write_text(text)
    if looks_the_same:
        monkeypatch.setattr(Snapshot, "check_reading", lambda self: None)
    with pytest.raises(FileFormatError, match=STAY):
        save_results(results, np.arange(4), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_nms_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    from boxscore.cli import nms

    path, suppress = tmp_path / "dt.json", nms.suppress
    write(path, records(), "numbers")

    def late(*arguments: Any, **options: Any) -> Any:
        write(path, records(-0.5), "numbers")
        return suppress(*arguments, **options)

    monkeypatch.setattr(nms, "suppress", late)
    call = ["nms", "--dt", str(path), "--output", str(tmp_path / "out.json"), "--iou-threshold", "0.5"]
    output, errors = run(*call, status=2)
    assert output == ""
    assert errors.startswith(f"boxscore: error: {path} must not change while it is read. Got another ")
    assert errors.endswith(
        "; does another program write it? It should write to a temporary name and rename the file.\n"
    ) or ("rename" in errors)
    assert [entry.name for entry in tmp_path.iterdir()] == ["dt.json"]


def test_a_file_replaced_while_it_is_read(tmp_path: Path) -> None:
    """Parts of it may be of two files: also an evaluation is refused."""
    truth = load_ground_truth(SHAPES / "instances.json")
    path = tmp_path / "dt.json"
    path.write_bytes((SHAPES / "detections.json").read_bytes())
    with begin(path, ReadOptions(), 0) as begun:
        (tmp_path / "new").write_bytes(path.read_bytes())
        (tmp_path / "new").replace(path)
        with pytest.raises(FileFormatError, match=STAY):
            begun.detections(truth)
