"""Tables with column names of the user's own: said once, understood in every kind of table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from boxscore import Detections, GroundTruth, evaluate, load_detections, load_ground_truth
from boxscore.errors import InputError
from boxscore.formats.registry import format_named, format_names
from support.running import Run

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
DETECTIONS = pd.DataFrame(
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
NAMED = [frame.rename(columns=SCORED) for frame in (TRUTH, DETECTIONS)]
NUMBER = evaluate(GroundTruth.from_pandas(TRUTH), Detections.from_pandas(DETECTIONS))["AP"]


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
def test_every_kind_of_table_understands_them(ending: str, tmp_path: Path, run: Run) -> None:
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
        assert json.loads(run("evaluate", gt, dt, "-q", "-o", "json", *words).out)["metrics"]["AP"] == NUMBER


def test_data_frames_are_evaluated() -> None:
    assert evaluate(TRUTH, DETECTIONS)["AP"] == NUMBER
    assert evaluate(*NAMED, columns=SCORED)["AP"] == NUMBER
    assert evaluate(GroundTruth.from_pandas(TRUTH), DETECTIONS)["AP"] == NUMBER
    assert evaluate(TRUTH, Detections.from_pandas(NAMED[1], columns=SCORED))["AP"] == NUMBER
    with pytest.raises(InputError, match="box_format must be given where detections are read"):
        evaluate(TRUTH, Detections.from_pandas(DETECTIONS), box_format="xyxy")


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
            r"columns must name the columns as image, .* Got 'imgae': 'photo'; did you mean 'image'",
        ),
        ({"image": "photo", "img_id": "photo"}, "name each part and each column once"),
        ({}, "columns must say at least one part and its column"),
        (
            {"image": "photo", "class": "kind"},
            r"the columns of a box .*Got only photo, kind, .*; name the columns: --columns x1=NAME y1=NAME x2",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(columns: Any, message: str, tmp_path: Path) -> None:
    gt, _ = written(tmp_path, "csv", NAMED)
    with pytest.raises(InputError, match=message):
        load_ground_truth(gt, columns=columns)


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_a_misspelt_column_is_refused(
    ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    monkeypatch.chdir(tmp_path)
    gt, dt = (path.name for path in written(Path(), ending, NAMED))
    wrong = [f"{part}={name}" for part, name in SCORED.items()]
    there = "photo, kind, links, oben, rechts, unten"

    def error_of(words: list[str], *, truth: str = gt) -> str:
        return (
            run("evaluate", truth, dt, *words, status=2)
            .err.splitlines()[-1]
            .removeprefix("boxscore: error: ")
        )

    message = error_of(["--columns", *wrong, "area=flaeche"])
    assert message.startswith("--columns must name columns that are in one of the tables. Got 'flaeche' in ")
    assert sorted(message.split(" in ")[-1].split(";")[0].split(" and ")) == [dt, gt]
    assert f"; there are {there}, " in message
    columns = ", ".join(map(str, NAMED[1].columns))
    assert error_of(["--gt-columns", *wrong[:-1], "--dt-columns", *wrong[:-1], "score=pp"]) == (
        f"--dt-columns must name columns that are in the table. Got 'pp' in {dt}; did you mean 'p'? "
        f"There are {columns}."
    )
    assert error_of(["--columns", *wrong[:-1], "score=pp"]) == (
        f"detections must have a column score or confidence. Got only {columns} in {dt}; --columns names a "
        "column 'pp' that it does not have; did you mean 'p'?"
    )
    with pytest.raises(InputError, match=r"^columns must name columns that are in one of .* Got 'flaeche'"):
        evaluate(gt, dt, columns={**SCORED, "area": "flaeche"})
    truth = load_ground_truth(gt, columns=USUAL)
    with pytest.raises(InputError, match=r"^columns must name columns that are in the table\. Got 'flaeche'"):
        evaluate(truth, dt, columns={**SCORED, "area": "flaeche"})


def test_a_misspelt_column_of_data_frames_is_refused() -> None:
    with pytest.raises(InputError, match=r"^columns must .* Got 'flaeche' in DataFrame; there are photo"):
        evaluate(*NAMED, columns={**SCORED, "area": "flaeche"})
    with pytest.raises(InputError, match=r"have a column score.*; columns names a column 'pp' that"):
        evaluate(*NAMED, columns={**USUAL, "score": "pp"})
    truth = GroundTruth.from_pandas(NAMED[0], columns=USUAL)
    with pytest.raises(InputError, match=r"in the table\. Got 'pp' in DataFrame; did you mean 'p'"):
        evaluate(truth, NAMED[1], columns={**USUAL, "score": "pp"})


def test_one_of_two_tables_may_lack_a_column(tmp_path: Path, run: Run) -> None:
    gt, dt = written(tmp_path, "csv", [TRUTH, NAMED[1]])
    assert evaluate(gt, dt, columns=SCORED)["AP"] == NUMBER
    pairs = [f"{part}={name}" for part, name in SCORED.items()]
    two = ["compare", str(gt), str(dt), str(dt), "-o", "json", "--resamples", "10", "--columns"]
    run(*two, *pairs)
    assert "Got 'flaeche'" in run.error(*two, *pairs, "area=flaeche")
    # Of the only table every column must be there.
    assert "--columns must name columns that are in the table. Got 'photo'" in run.error(
        "stats", gt, "--columns", "image=photo"
    )


def test_columns_without_a_table_are_refused(tmp_path: Path, run: Run) -> None:
    path = tmp_path / "gt.json"
    path.write_text('{"images": [], "annotations": [], "categories": []}')
    takes = [name for name in format_names(auto=False) if "columns" in format_named(name).takes]
    assert run.error("evaluate", path, path, "--columns", "image=photo").splitlines()[-1] == (
        "boxscore: error: --columns must not be used with the format coco, which lacks columns. Got "
        f"'image=photo'; formats with it: {', '.join(takes)}."
    )
    # Formats of detections are no advice for ground truth.
    (tmp_path / "names.txt").write_text("cat\n")
    advice = run.error("evaluate", path, path, "--gt-classes", tmp_path / "names.txt").partition("it: ")[2]
    assert "text" in advice
    assert "mmdetjson" not in advice
    assert "pickled" not in advice
    with pytest.raises(InputError, match="columns must be given where a table of boxes is read"):
        evaluate(path, path, columns={"image": "photo"})


def test_other_formats_have_no_columns(tmp_path: Path) -> None:
    path = tmp_path / "gt.json"
    path.write_text('{"images": [], "annotations": [], "categories": []}')
    with pytest.raises(InputError, match="columns must not be used with the format coco"):
        load_ground_truth(path, columns={"image": "photo"})


@pytest.mark.parametrize(
    ("head", "message"),
    [
        (
            "photo,kind,l,t,r,b",
            "a table of boxes must have a column of the image (image_id, image, filename) and the columns of a "
            "box (x1,y1,x2,y2, or left,top,width,height, or bbox). Got only photo, kind, l, t, r, b in gt.csv; "
            "name the columns: --columns image=NAME class=NAME x1=NAME y1=NAME x2=NAME y2=NAME, and score=NAME "
            "for detections; --gt-columns and --dt-columns where the two files differ.",
        ),
        (
            "image,kind,x1,y1,x2,y2",
            "a table of boxes must have a column class, label or category_id. Got only image, kind, x1, y1, x2, "
            "y2 in gt.csv; name the column: --columns class=NAME; or, where there is only one class, name it in "
            "a class list (--gt-classes, --dt-classes).",
        ),
    ],
)
def test_all_parts_that_are_missing_are_asked_for_at_once(
    head: str,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    run: Run,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("gt.csv").write_text(f"{head}\na,b,1,2,3,4\n")
    Path("dt.csv").write_text("image,class,score,x1,y1,x2,y2\na,b,.5,1,2,3,4\n")
    assert run.error("evaluate", "gt.csv", "dt.csv") == f"boxscore: error: {message}\n"
    first, kind = head.split(",")[:2]
    columns = [
        f"{part}={name}" for part, name in zip(("x1", "y1", "x2", "y2"), head.split(",")[2:], strict=True)
    ]
    run("evaluate", "gt.csv", "dt.csv", "-q", "--gt-columns", f"image={first}", f"class={kind}", *columns)
