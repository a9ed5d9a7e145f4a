"""The diagnostics on the command line: every form of output, and errors without a traceback."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from boxscore.cli import COMMANDS

INPUT = [
    "--gt",
    "datasets/shapes_coco/instances.json",
    "--dt",
    "datasets/shapes_coco/detections.json",
]
CALLS = {
    "operating-points": [],
    "operating-points --curve": ["--curve"],
    "operating-points --at-score .5": ["--at-score", "0.5"],
    "operating-points --guarantee recall=.6": ["--guarantee", "recall=.6"],
    "operating-points --guarantee fppi=1": ["--guarantee", "fppi=1", "--at-most", "20"],
    "operating-points --guarantee precision=.5": ["--guarantee", "precision=.5", "--confidence", ".5"],
    "confusion": [],
    "confusion --top 5": ["--top", "5"],
    "errors": [],
    "errors --list": ["--list"],
    "error-curves": [],
    "error-curves --curve": ["--curve"],
    "bootstrap": [],
    "froc": [],
    "froc --fppi 1 2": ["--fppi", "1", "2"],
    "froc --curve": ["--curve"],
    "images": [],
    "presence": [],
    "presence --counts": ["--counts"],
    "calibration": [],
    "calibration --reliability": ["--reliability"],
    "lrp": [],
    "slices --by size": ["--by", "size"],
    "slices --by crowdedness": ["--by", "crowdedness", "--bins", "2"],
    "ties": [],
    "suspects": [],
    "explain --from tide": ["--from", "tide"],
    "explain --number": ["--number", "0.3399"],
    "explain --ablation": ["--from", "coco", "--ablation"],
}


@pytest.fixture(autouse=True)
def in_the_project(monkeypatch, request):
    monkeypatch.chdir(request.config.rootpath)


@pytest.mark.long
@pytest.mark.parametrize("name", CALLS)
def test_every_form(run, name):
    arguments = [name.split()[0], *INPUT, *CALLS[name]]
    assert len(run(*arguments).out.splitlines()) > 3
    value = json.loads(run(*arguments, "--output", "json").out)
    rows = value["steps"] if "steps" in value else value["rows"]
    table = list(csv.DictReader(io.StringIO(run(*arguments, "--output", "csv").out)))
    ends = 2 if name == "explain --from tide" else 0  # the tools' own rows
    assert len(table) == len(rows) + ends
    assert run(*arguments, "--output", "markdown").out.startswith("## ")


@pytest.mark.long
def test_compare(run, tmp_path):
    rows = json.loads(Path(INPUT[3]).read_text())
    worse = tmp_path / "worse.json"
    worse.write_text(json.dumps([{**row, "bbox": [row["bbox"][0] + 9, *row["bbox"][1:]]} for row in rows]))
    arguments = ["compare", *INPUT, str(worse), "--resamples", "40", "--metrics", "AP", "AP50"]
    first = run.json(*arguments)["rows"][0]
    assert (first["first"], first["other"], first["verdict"]) == ("detections", "worse", "worse")
    run(*arguments)


def test_explain_json_is_the_fixed_form(run):
    call = ["explain", *INPUT, "--from", "ultralytics-old", "--to", "coco"]
    value = json.loads(run(*call, "--output", "json").out)
    assert set(value) == {"from", "to", "steps"}
    total = sum(step["delta"] for step in value["steps"])
    assert total == value["to"]["value"] - value["from"]["value"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["compare"], "--detections must have two or more files. Got 1."),
        (["explain", "--from", "tide", "--number", "0.3"], "either --from TOOL or --number X"),
        (["explain", "--ablation"], "--ablation must be given with --from TOOL"),
        (["explain", "--from", "tyde"], "did you mean 'tide'?"),
        (
            ["explain", "--from", "tide", "--protocol", "voc2012"],
            "explain does not take --protocol. Name two tools or protocols: --from A --to B.",
        ),
        (["slices", "--by", "sise"], "did you mean 'size'?"),
        (["operating-points", "--iou-threshold", "0.61"], "threshold of the protocol"),
        (["operating-points", "--guarantee", "recall=1"], "recall must be below 1. Got 1"),
        (["operating-points", "--guarantee", "recall=.96"], "images with objects must be at least 24 to "),
        (
            ["operating-points", "--guarantee", "fppi=1"],
            "or count fewer false positives per image: --at-most.",
        ),
        (
            ["operating-points", "--guarantee", "recall=.5", "--beta", "2"],
            "--beta must not be combined with --",
        ),
        (["operating-points", "--at-most", "5"], "--at-most must be used together with --guarantee. Got 5"),
        (["operating-points", "--guarantee", "fppi=1", "--at-most", "0"], "--at-most must be a whole number"),
        (
            ["operating-points", "--guarantee", "fppi=1", "--confidence", ".9"],
            "--confidence must not be set for a guarantee of fppi. Got 0.9.",
        ),
        (["bootstrap", "--seed", "-1"], "whole number"),
        (["froc", "--fppi", "-1"], "fppi must be a number in [0, 1e+09]. Got -1"),
        (["calibration", "--bins", "0"], "bins must be a whole number"),
        (["confusion", "--iou-threshold", "0"], "--iou-threshold must be a number in (0, 1]. Got 0.0."),
        (["lrp", "--area", "huge"], "area must be one of"),
    ],
)
def test_errors(run, arguments, message):
    output, error = run(arguments[0], *INPUT, *arguments[1:], status=2)
    assert output == ""
    assert error.startswith("boxscore: error: ")
    assert message in error
    assert "Traceback" not in error


def test_every_command_has_help(run):
    for name in COMMANDS:
        assert "usage: boxscore" in run(name, "--help").out


def of_one_score(folder: Path) -> list[str]:
    """The sample with one score for all, which is an error in the input."""
    path = folder / "detections.json"
    found = json.loads(Path(INPUT[3]).read_text())
    path.write_text(json.dumps([{**record, "score": 0.5} for record in found]))
    return [*INPUT[:3], str(path)]


@pytest.mark.parametrize("name", ["errors", "confusion", "lrp"])
def test_findings_stand_below_the_table(run, tmp_path, name):
    given = of_one_score(tmp_path)
    said = run("evaluate", *given).err
    assert "error in the input: all scores are 0.5" in said
    assert run(name, *given).err == said
    assert run(name, *given, "--strict", status=2).out == ""


def test_the_title_of_errors_says_its_thresholds(run):
    text = run("errors", *INPUT, "--iou-threshold", "0.75", "--background-iou", "0.2").out
    title, _, *note = text.split("\n\n")[0].splitlines()
    assert title == "Error types (TIDE) at IoU 0.75, background below 0.2, all classes together"
    assert " ".join(note) == (
        "ap follows TIDE (101 recall points, its own matching) and can differ from AP of protocol coco"
    )


def test_top_confusions_are_between_classes(run):
    head, table = run("confusion", *INPUT, "--top", "2").out.split("\n\n")[:2]
    assert head.splitlines()[-1] == "Not listed: 21 objects missed, 14 detections on background"
    assert [line.split()[:3] for line in table.splitlines()[1:]] == [
        ["hexagon", "circle", "5"],
        ["circle", "square", "3"],
    ]
    lines = run("confusion", *INPUT, "--top", "2", "-o", "csv").out.splitlines()
    assert [line.split(",")[:2] for line in lines[1:]] == [
        ["hexagon", "circle"],
        ["circle", "square"],
        ["circle", "(background)"],
        ["hexagon", "(background)"],
    ]
