"""Tables with column names of the user's own: said once, understood in every kind of table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from boxscore import Detections, GroundTruth, evaluate, load_detections, load_ground_truth
from boxscore.cli import main
from boxscore.errors import InputError

USUAL = {"image": "photo", "class": "kind", "x1": "links", "y1": "oben", "x2": "rechts", "y2": "unten"}
SCORED = {**USUAL, "score": "p"}
TRUTH = pd.DataFrame(
    {
        "image": ["a.jpg", "a.jpg", "b.jpg"],
        "class": ["cat", "dog", "cat"],
        "x1": [10.0, 30.5, 1.0],
        "y1": [20.0, 40.0, 2.0],
        "x2": [110.0, 50.5, 30.0],
        "y2": [70.0, 60.0, 40.0],
        "night": [0, 1, 0],
    }
)
FOUND = pd.DataFrame(
    {
        "image": ["a.jpg", "b.jpg", "a.jpg"],
        "class": ["cat", "cat", "dog"],
        "x1": [14.0, 1.0, 34.0],
        "y1": [20.0, 4.0, 40.0],
        "x2": [110.0, 30.0, 50.0],
        "y2": [70.0, 40.0, 61.0],
        "score": [0.9, 0.8, 0.7],
    }
)
NAMED = [frame.rename(columns=SCORED) for frame in (TRUTH, FOUND)]
NUMBER = evaluate(GroundTruth.from_pandas(TRUTH), Detections.from_pandas(FOUND))["AP"]


def written(folder: Path, ending: str, frames: list[pd.DataFrame]) -> list[Path]:
    paths = [folder / f"{name}.{ending}" for name in ("gt", "dt")]
    for frame, path in zip(frames, paths, strict=True):
        if ending == "csv":
            frame.to_csv(path, index=False)
        elif ending == "parquet":
            frame.to_parquet(path)
        else:
            frame.to_json(path, orient="records", lines=True)
    return paths


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_every_kind_of_table_understands_them(
    ending: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert 0.3 < NUMBER < 0.9
    gt, dt = written(tmp_path, ending, NAMED)
    truth = load_ground_truth(gt, columns=USUAL)
    assert list(truth.columns) == ["night"]
    assert evaluate(truth, load_detections(dt, truth, columns=SCORED))["AP"] == NUMBER
    assert evaluate(gt, dt, columns=SCORED)["AP"] == NUMBER
    pairs = [f"{part}={name}" for part, name in SCORED.items()]
    for words in (
        ["--columns", *pairs],
        ["--columns", ",".join(pairs)],
        ["--gt-columns", *pairs[:-1], "--dt-columns", *pairs],
    ):
        assert main(["evaluate", str(gt), str(dt), "-q", "-o", "json", *words]) == 0
        assert json.loads(capsys.readouterr().out)["metrics"]["AP"] == NUMBER


def test_data_frames_are_evaluated() -> None:
    assert evaluate(TRUTH, FOUND)["AP"] == NUMBER
    assert evaluate(*NAMED, columns=SCORED)["AP"] == NUMBER
    assert evaluate(GroundTruth.from_pandas(TRUTH), FOUND)["AP"] == NUMBER
    assert evaluate(TRUTH, Detections.from_pandas(NAMED[1], columns=SCORED))["AP"] == NUMBER
    with pytest.raises(InputError, match="box_format must be said where detections are read"):
        evaluate(TRUTH, Detections.from_pandas(FOUND), box_format="xyxy")


def test_a_column_that_is_said_wins_over_one_that_is_called_so(tmp_path: Path) -> None:
    frames = [frame.assign(image=["z.jpg"] * 3, x1=[0.0] * 3, label=["eel"] * 3) for frame in NAMED]
    gt, dt = written(tmp_path, "csv", frames)
    assert evaluate(gt, dt, columns=SCORED)["AP"] == NUMBER
    assert evaluate(*frames, columns=SCORED)["AP"] == NUMBER


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_lists_of_boxes_per_image(ending: str, tmp_path: Path) -> None:
    def listed(frame: pd.DataFrame) -> pd.DataFrame:
        rows: list[dict[str, Any]] = []
        for image, part in frame.groupby("photo"):
            row: dict[str, Any] = {"photo": image, "kinds": part["kind"].tolist()}
            row["coords"] = part[["links", "oben", "rechts", "unten"]].to_numpy().tolist()
            rows.append(row | ({"ps": part["p"].tolist()} if "p" in part else {}))
        return pd.DataFrame(rows)

    gt, dt = written(tmp_path, ending, [listed(frame) for frame in NAMED])
    said = {"image": "photo", "class": "kinds", "xyxy": "coords", "score": "ps"}
    assert evaluate(gt, dt, columns=said)["AP"] == NUMBER


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            {"image": "foto"},
            r"columns must name columns that are in the table\. Got 'foto' in .*; did you mean 'photo'",
        ),
        (
            {"imgae": "photo"},
            r"columns must say which column is image, .* Got 'imgae': 'photo'; did you mean 'image'",
        ),
        ({"image": "photo", "img_id": "photo"}, "say each part and each column once"),
        ({}, "columns must say at least one part and its column"),
        (
            {"image": "photo", "class": "kind"},
            r"the columns of a box .*Got only photo, kind, .*; say which it is: --columns x1",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(columns: Any, message: str, tmp_path: Path) -> None:
    gt, _ = written(tmp_path, "csv", NAMED)
    with pytest.raises(InputError, match=message):
        load_ground_truth(gt, columns=columns)


def test_other_formats_have_no_columns(tmp_path: Path) -> None:
    path = tmp_path / "gt.json"
    path.write_text('{"images": [], "annotations": [], "categories": []}')
    with pytest.raises(InputError, match="columns must be left out where the format is coco"):
        load_ground_truth(path, columns={"image": "photo"})
