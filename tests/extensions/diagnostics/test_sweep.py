"""``sweep``: every row is what suppression and evaluation give one after the other."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import boxscore
from boxscore.cli import main
from boxscore.diagnostics import best_settings, sweep
from boxscore.extensions.diagnostics.sweep_command import grid
from boxscore.protocols import load_protocol
from boxscore.suppression.methods import METHODS
from support.examples import first_of
from support.matches import assert_same_matches, match_tables
from support.real_data import real
from support.running import Run
from support.samples import DATASETS

pytestmark = pytest.mark.usefixtures("no_findings")

COCO = [
    "--gt",
    str(DATASETS / "shapes_coco/instances.json"),
    "--dt",
    str(DATASETS / "shapes_coco/detections.json"),
]
VOC = ["--gt", str(DATASETS / "shapes_voc/VOC2007"), "--image-set", "test", "--protocol", "voc2007"]
VOC += ["--dt", str(DATASETS / "shapes_voc/results")]


@pytest.fixture(scope="module")
def tables() -> tuple[boxscore.GroundTruth, boxscore.Detections]:
    truth = boxscore.load_ground_truth(COCO[1])
    return truth, boxscore.load_detections(COCO[3], truth)


def call(run: Run, *arguments: str) -> Any:
    return json.loads(run(*arguments, "--output", "json").out)


def in_the_shell(
    run: Run, given: list[str], output: Path, row: dict[str, Any], *more: str
) -> dict[str, float]:
    """Metrics of ``boxscore nms`` and then ``boxscore evaluate`` with the setting of a row."""
    options = ["--method", row["method"]]
    for name in ("iou_threshold", "sigma", "score_threshold"):
        if row.get(name) is not None:
            options += [f"--{name.replace('_', '-')}", repr(row[name])]
    place = given.index("--dt") + 1
    run("nms", "--dt", given[place], "--output", output, *options, *more)
    metrics: dict[str, float] = call(
        run, "evaluate", *given[: place - 1], *given[place + 1 :], "--dt", str(output)
    )["metrics"]
    return metrics


@pytest.mark.parametrize("given", [COCO, VOC], ids=["coco", "voc"])
@pytest.mark.parametrize("method", first_of(3, METHODS))
def test_rows_are_what_the_shell_gives(given: list[str], method: str, run: Run, tmp_path: Path) -> None:
    grids = ["--method", method, "--iou-threshold", ".2:.5:.15", "--score-threshold", "0,.3"]
    more = ["--pixel-offset", "1", "--max-per-image", "9"]
    rows = call(run, "sweep", *given, *grids, *more)["rows"]
    assert len(rows) == (6 if "iou_threshold" in METHODS[method].reads else 2)
    ending = Path(given[-1]).suffix
    for number, row in enumerate(rows):
        metrics = in_the_shell(run, given, tmp_path / f"{number}{ending}", row, *more)
        assert {name: row[name] for name in metrics} == metrics


def test_the_bundled_samples_depend_on_the_setting(
    tables: tuple[boxscore.GroundTruth, boxscore.Detections],
) -> None:
    whole = sweep(*tables, methods=["hard", "soft-gaussian"], iou_thresholds=[0.3, 0.5, 0.9]).total_frame()
    assert whole["AP"].nunique() == 4
    assert whole["iou_threshold"].isna().tolist() == [False, False, False, True]


@pytest.mark.long
def test_score_thresholds_are_cut_from_one_result(
    tables: tuple[boxscore.GroundTruth, boxscore.Detections],
) -> None:
    floors = [0.0, 0.2, 0.4, 0.6, 1.5]
    for method in METHODS:
        together = sweep(*tables, methods=[method], iou_thresholds=[0.4], score_thresholds=floors)
        apart = [
            sweep(*tables, methods=[method], iou_thresholds=[0.4], score_thresholds=[floor])
            for floor in floors
        ]
        for frame in ("to_frame", "total_frame"):
            expected = pd.concat([getattr(one, frame)() for one in apart], ignore_index=True)
            pd.testing.assert_frame_equal(getattr(together, frame)(), expected)


@pytest.mark.parametrize("method", ["hard", "nmm"])
@pytest.mark.parametrize("protocol", ["coco", "voc2007", "voc2012", "tide", "fiftyone", "detectron2-voc2012"])
def test_protocols_and_selections(
    protocol: str, method: str, tables: tuple[boxscore.GroundTruth, boxscore.Detections]
) -> None:
    truth, found = tables
    images, classes = truth.images.ids.tolist()[::2], ["square", "circle"]
    table = sweep(
        truth,
        found,
        methods=[method],
        iou_thresholds=[0.4],
        score_thresholds=[0, 0.5004],
        protocol=protocol,
        images=images,
        classes=classes,
    ).printed_frame()
    for floor, rows in table.groupby("score_threshold"):
        options = {"method": method, "iou_threshold": 0.4, "score_threshold": floor}
        left = boxscore.suppress(found, **options).apply(found)
        alone = boxscore.evaluate(truth, left, protocol=protocol, images=images, classes=classes)
        assert rows["class"].tolist() == ["circle", "square", "(all)"]
        for _, row in rows.iterrows():
            values = {key.removeprefix("m"): value for key, value in alone.metrics.items()}
            if row["class"] != "(all)":
                values = alone.per_class.set_index("class").loc[row["class"]].to_dict()
                assert row["detections"] == values["detections"]
            else:
                assert row["detections"] == len(alone.detections)
            names = [name for name in rows.columns if name in values and name != "detections"]
            np.testing.assert_array_equal([row[name] for name in names], [values[name] for name in names])


def test_classes_pooled(tables: tuple[boxscore.GroundTruth, boxscore.Detections]) -> None:
    protocol = {"extends": "coco", "matching": {"per_class": False}}
    table = sweep(*tables, iou_thresholds=[0.4], score_thresholds=[0, 0.5], protocol=protocol)
    table = table.printed_frame()
    assert table["class"].tolist() == ["all", "all", "(all)", "(all)"]
    left = boxscore.suppress(tables[1], iou_threshold=0.4, score_threshold=0.5).apply(tables[1])
    assert table["AP"].iloc[3] == boxscore.evaluate(tables[0], left, protocol=protocol).metrics["AP"]


@pytest.mark.filterwarnings("ignore:.*using the boxes as masks")
@pytest.mark.parametrize(
    "protocol",
    ["coco", "voc2007", "coco-segm", {"extends": "coco", "matching": {"per_class": False}}],
    ids=["coco", "voc", "masks", "pooled"],
)
def test_matched_again_is_matched(
    protocol: Any, tables: tuple[boxscore.GroundTruth, boxscore.Detections]
) -> None:
    chosen = load_protocol(protocol)
    truth = boxscore.load_ground_truth(COCO[1])
    found = boxscore.load_detections(COCO[3], truth)
    matcher = boxscore.evaluate(truth, found, protocol=chosen)._matcher
    random = np.random.default_rng(0)
    for share in (0.0, 0.2, 0.7, 1.0):
        rows = np.flatnonzero(random.random(len(found)) < share)
        scores = found.scores[rows] * random.choice([0.5, 0.9, 1.0], len(rows))
        shuffle = random.permutation(len(rows))
        again = matcher.match_some(rows[shuffle], scores[shuffle])
        kept = dataclasses.replace(found.take(rows), scores=scores)
        expected = match_tables(truth, kept, chosen)
        expected = dataclasses.replace(expected, row=rows[expected.row])
        assert_same_matches(again, expected)
    assert len(expected.pairs_matched(0, 0))


def test_workers_give_the_same(tables: tuple[boxscore.GroundTruth, boxscore.Detections]) -> None:
    options: dict[str, Any] = {
        "methods": ["hard", "nmm"],
        "iou_thresholds": [0.3, 0.6],
        "class_agnostic": True,
    }
    one, three = sweep(*tables, **options), sweep(*tables, **options, workers=3)
    pd.testing.assert_frame_equal(one.printed_frame(), three.printed_frame())


def test_sigmas(tables: tuple[boxscore.GroundTruth, boxscore.Detections]) -> None:
    result = sweep(*tables, methods=["hard", "soft-gaussian"], iou_thresholds=[0.5], sigmas=[0.1, 0.5])
    whole = result.total_frame()
    assert whole["sigma"].fillna(-1).tolist() == [-1, 0.1, 0.5]


def test_best_settings(tables: tuple[boxscore.GroundTruth, boxscore.Detections]) -> None:
    result = sweep(*tables, methods=["hard", "soft-gaussian"], iou_thresholds=[0.3, 0.5, 0.9])
    table = result.printed_frame()
    best = best_settings(result).printed_frame().set_index(["class", "metric"])
    for (label, metric), row in best.iterrows():
        part = table[table["class"] == label]
        assert row["value"] == part[metric].max()
        first = part[part[metric] == row["value"]].iloc[0]
        assert first["method"] == row["method"]
        np.testing.assert_array_equal(first["iou_threshold"], row["iou_threshold"])
    assert ("(all)", "AP50") in best.index
    undefined = table.groupby("class")["AP"].apply(lambda values: values.isna().all())
    assert undefined.any()
    assert not any((label, "AP") in best.index for label in undefined.index[undefined])


# ---------------------------------------------------------------- command line


def test_many_classes_are_shown_when_asked_for(monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    monkeypatch.setattr("boxscore.extensions.diagnostics.sweep_command.FEW_CLASSES", 4)
    command = ["sweep", *COCO, "--iou-threshold", ".5"]
    shown = run(*command).out
    assert "use --best to also show the best setting of each class" in shown
    assert "hexagon" not in shown
    assert "hexagon" in run(*command, "--best").out


@pytest.mark.long
def test_a_threshold_of_1_is_without_nms(run: Run) -> None:
    """The row of 1 says so, and keeps every detection."""
    said = run("sweep", *COCO, "--iou-threshold", ".5", "1").out
    assert "hard with iou_threshold 1 suppresses nothing" in said
    assert "suppresses nothing" not in run("sweep", *COCO, "--iou-threshold", ".5", ".9").out
    rows = json.loads(run("sweep", *COCO, "--iou-threshold", "1", "--output", "json").out)["rows"]
    alone = json.loads(run("evaluate", *COCO, "--output", "json").out)
    assert rows[0]["AP"] == alone["metrics"]["AP"]


def test_forms(run: Run) -> None:
    given = ["sweep", *COCO, "--method", "hard,diou", "--iou-threshold", ".3,.5"]
    value = call(run, *given)
    assert [row["method"] for row in value["rows"]] == ["hard", "hard", "diou", "diou"]
    assert value["signature"].startswith("boxscore|coco|")
    assert {row["class"] for row in value["best"]} > {"(all)", "square"}
    rows = list(csv.DictReader(io.StringIO(run(*given, "--output", "csv").out)))
    assert [float(row["AP"]) for row in rows] == [row["AP"] for row in value["rows"]]
    rows = list(
        csv.DictReader(io.StringIO(run(*given, "--output", "csv", "--best", "--metrics", "AP50").out))
    )
    assert {row["metric"] for row in rows} == {"AP50"}
    text = run(*given, "--per-class").out
    assert text.startswith("NMS sweep\n")
    assert "Best setting of each metric" in text
    assert run(*given, "--output", "markdown").out.startswith("## NMS sweep\n\n| method |")


@pytest.mark.parametrize(
    ("text", "values"),
    [
        (".3:.9:.05", [0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9]),
        ("0,.05,.1", [0.0, 0.05, 0.1]),
        ("0:1:.4, 1", [0.0, 0.4, 0.8, 1.0]),
        ("0.5:0.5:1", [0.5]),
    ],
)
def test_grid(text: str, values: list[float]) -> None:
    assert grid(text.replace(" ", "").split(","), name="--iou-threshold") == values


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--method", "hard,soft-gausian"], "Got 'soft-gausian'; did you mean 'soft-gaussian'?"),
        (["--iou-threshold", ".3:.9"], "--iou-threshold must be numbers or start:stop:step. Got '.3:.9'."),
        (
            ["--iou-threshold", ".9:.3:.1"],
            "--iou-threshold must increase from start to stop with a step above 0.",
        ),
        (["--iou-threshold", ".3,half"], "--iou-threshold must be numbers or start:stop:step. Got 'half'."),
        (["--iou-threshold", ".3,nan"], "--iou-threshold must be numbers or start:stop:step. Got 'nan'."),
        (["--iou-threshold", ".3,.3:.5:.1"], "--iou-threshold must not repeat a number."),
        (["--iou-threshold", "30:90:5"], "--iou-threshold must be a number in [0, 1]. Got 30.0."),
        (
            ["--score-threshold", "0:1:0"],
            "--score-threshold must increase from start to stop with a step above 0.",
        ),
        (["--metrics", "AP5"], "Got 'AP5'; did you mean 'AP75'?"),
    ],
)
def test_bad_input(options: list[str], message: str, run: Run) -> None:
    output, errors = run("sweep", *COCO, *options, status=2)
    assert output == ""
    assert len(errors.splitlines()) == 1
    assert message in errors


def test_bad_options(tables: tuple[boxscore.GroundTruth, boxscore.Detections]) -> None:
    for options, message in (
        ({"methods": []}, "methods must be a list of at least one. Got [].",),
        ({"methods": "hard"}, "methods must be a list of at least one. Got 'hard'."),
        ({"methods": ["hard", "hard"]}, "methods must not repeat. Got ['hard', 'hard']."),
        ({"iou_threshold": 0.5}, "iou_threshold must not be set on the settings, because the grid varies it. Got it; pass iou_thresholds."),
    ):  # fmt: skip
        with pytest.raises(boxscore.InputError) as error:
            sweep(*tables, **options)
        assert str(error.value) == message
    with pytest.raises(boxscore.InputError, match="detections must be a Detections table"):
        sweep(tables[0], "detections.json")  # type: ignore[arg-type]


# ---------------------------------------------------------------- plot


@pytest.mark.long
@pytest.mark.parametrize("form", ["png", "svg", "pdf"])
def test_a_plot_is_written(form: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / f"sweep.{form}"
    given = [
        "sweep",
        *COCO,
        "--method",
        "hard,soft-gaussian",
        "--score-threshold",
        "0,.3",
        "--plot",
        str(path),
    ]
    assert main([*given, "--best"]) == 0
    assert path.stat().st_size > 1000
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    assert capsys.readouterr().out.startswith("Best setting of each metric")


def test_a_plot_that_cannot_be_is_refused_before_the_work(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = ["sweep", "--gt", "missing.json", "--dt", "missing.json", "--plot"]
    for path, message in (
        (
            "sweep.pgn",
            "the ending of --plot must be one of 'png', 'svg', 'pdf'. Got 'pgn'; did you mean 'png'?",
        ),
        ("no/sweep.png", "--plot must be in a folder that exists. Got 'no/sweep.png'."),
    ):
        assert run.error(*missing, path) == f"boxscore: error: {message}\n"
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert "Plots need matplotlib: pip install 'boxscore[plots]'" in run.error(
        *missing, tmp_path / "sweep.png"
    )


# ---------------------------------------------------------------- real


@pytest.mark.real
def test_the_real_run_in_the_shell(run: Run, tmp_path: Path) -> None:
    given = ["--gt", str(real("voc2007/VOC2007")), "--image-set", "test", "--protocol", "voc2007"]
    given += ["--dt", str(real("voc2007/results/yolov2"))]
    grids = ["--method", "hard,soft-gaussian", "--iou-threshold", ".3,.4", "--score-threshold", "0.005,0.1"]
    rows = call(run, "sweep", *given, *grids, "--pixel-offset", "1")["rows"]
    assert len(rows) == 6
    assert len({row["mAP"] for row in rows}) == 6
    for row in (rows[1], rows[-2]):  # reading the annotations again and again is what takes long
        metrics = in_the_shell(run, given, tmp_path / row["method"], row, "--pixel-offset", "1")
        assert row["mAP"] == metrics["mAP"]


@pytest.mark.parametrize("method", ["hard", "soft-linear", "nmm"])
def test_a_protocol_that_rounds_does_so_after_suppression_and_score_threshold(method: str) -> None:
    random = np.random.default_rng(7)
    boxes = random.uniform(0, 100, (60, 2)).repeat(2, axis=1)[:, [0, 2, 1, 3]]
    boxes[:, 2:] = boxes[:, :2] + 40
    truth = boxscore.GroundTruth.from_arrays(range(60), ["a"] * 60, boxes)
    shifted = boxes[:, None] + random.normal(0, 6, (60, 3, 1)) * [1, 0, 1, 0]
    scores = random.uniform(0.5, 0.504, 180)
    found = boxscore.Detections.from_arrays(
        np.repeat(np.arange(60), 3), ["a"] * 180, shifted.reshape(-1, 4), scores
    )
    floors = [0.0, 0.50151, 0.5024]
    plain, rounds = "py-faster-rcnn-voc2012", "detectron2-voc2012"
    options: dict[str, Any] = {"methods": [method], "iou_thresholds": [0.7], "score_thresholds": floors}
    result = sweep(truth, found, protocol=rounds, **options)
    for floor, value in zip(floors, result.total["AP"], strict=True):
        left = boxscore.suppress(found, method=method, iou_threshold=0.7, score_threshold=floor).apply(found)
        assert boxscore.evaluate(truth, left, protocol=rounds).metrics["mAP"] == value
        assert boxscore.evaluate(truth, left, protocol=plain).metrics["mAP"] != value
