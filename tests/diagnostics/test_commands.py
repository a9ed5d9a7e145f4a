"""The diagnostics on the command line: every form of output, and errors without a traceback."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from boxscore.cli import COMMANDS, main

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
    "confusion": [],
    "confusion --top 5": ["--top", "5"],
    "errors": [],
    "errors --list": ["--list"],
    "bootstrap": ["--resamples", "5"],
    "froc": [],
    "froc --fppi 1 2": ["--fppi", "1", "2"],
    "froc --curve": ["--curve"],
    "images": [],
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


def call(capsys, *arguments):
    status = main(arguments)
    return status, *capsys.readouterr()


@pytest.mark.parametrize("name", CALLS)
def test_every_form(capsys, name):
    arguments = [name.split()[0], *INPUT, *CALLS[name]]
    status, text, _ = call(capsys, *arguments)
    assert status == 0
    assert len(text.splitlines()) > 3
    status, output, _ = call(capsys, *arguments, "--output", "json")
    assert status == 0
    value = json.loads(output)
    rows = value["steps"] if "steps" in value else value["rows"]
    status, output, _ = call(capsys, *arguments, "--output", "csv")
    assert status == 0
    table = list(csv.DictReader(io.StringIO(output)))
    ends = 2 if name == "explain --from tide" else 0  # the tools' own rows
    assert len(table) == len(rows) + ends
    status, output, _ = call(capsys, *arguments, "--output", "markdown")
    assert status == 0
    assert output.startswith("## ")


def test_compare(capsys, tmp_path):
    rows = json.loads(Path(INPUT[3]).read_text())
    worse = tmp_path / "worse.json"
    worse.write_text(json.dumps([{**row, "bbox": [row["bbox"][0] + 9, *row["bbox"][1:]]} for row in rows]))
    arguments = ["compare", *INPUT, str(worse), "--resamples", "40", "--metrics", "AP", "AP50"]
    status, output, error = call(capsys, *arguments, "--output", "json")
    assert (status, error) == (0, "")
    first = json.loads(output)["rows"][0]
    assert (first["first"], first["other"], first["verdict"]) == ("detections", "worse", "worse")
    assert call(capsys, *arguments)[0] == 0


def test_explain_json_is_the_fixed_form(capsys):
    _, output, _ = call(
        capsys, "explain", *INPUT, "--from", "ultralytics-old", "--to", "coco", "--output", "json"
    )
    value = json.loads(output)
    assert set(value) == {"from", "to", "steps"}
    total = sum(step["delta"] for step in value["steps"])
    assert total == value["to"]["value"] - value["from"]["value"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["compare"], "two files or more"),
        (["explain"], "either --from TOOL or --number X"),
        (["explain", "--from", "tyde"], "did you mean 'tide'?"),
        (["explain", "--from", "tide", "--protocol", "voc2012"], "be given --from and --to"),
        (["slices", "--by", "sise"], "did you mean 'size'?"),
        (["operating-points", "--iou-threshold", "0.61"], "threshold of the protocol"),
        (["bootstrap", "--resamples", "0"], "whole number"),
        (["froc", "--fppi", "-1"], "fppi must be a number in [0, 1e+09]. Got -1"),
        (["calibration", "--bins", "0"], "bins must be a whole number"),
        (["confusion", "--iou-threshold", "0"], "--iou-threshold must be a number in (0, 1]. Got 0.0."),
        (["lrp", "--area", "huge"], "area must be one of"),
    ],
)
def test_errors(capsys, arguments, message):
    status, output, error = call(capsys, arguments[0], *INPUT, *arguments[1:])
    assert (status, output) == (2, "")
    assert error.startswith("boxscore: error: ")
    assert message in error
    assert "Traceback" not in error


def test_every_command_has_help(capsys):
    for name in COMMANDS:
        assert main([name, "--help"]) == 0
        assert "usage: boxscore" in capsys.readouterr().out


def of_one_score(folder: Path) -> list[str]:
    """The sample with one score for all, which is an error in the input."""
    path = folder / "detections.json"
    found = json.loads(Path(INPUT[3]).read_text())
    path.write_text(json.dumps([{**record, "score": 0.5} for record in found]))
    return [*INPUT[:3], str(path)]


@pytest.mark.parametrize("name", ["errors", "confusion", "lrp"])
def test_findings_stand_below_the_table(capsys, tmp_path, name):
    given = of_one_score(tmp_path)
    assert main(["evaluate", *given]) == 0
    said = capsys.readouterr().err
    assert "error in the input: all scores are 0.5" in said
    assert main([name, *given]) == 0
    assert capsys.readouterr().err == said
    assert main([name, *given, "--strict"]) == 2
    assert capsys.readouterr().out == ""


def test_the_title_of_errors_says_its_thresholds(capsys):
    assert main(["errors", *INPUT, "--iou-threshold", "0.75", "--background-iou", "0.2"]) == 0
    title, _, *note = capsys.readouterr().out.split("\n\n")[0].splitlines()
    assert title == "Error types (TIDE) at IoU 0.75, background below 0.2, all classes together"
    assert " ".join(note) == (
        "ap is TIDE's: 101 recall points and its own matching; evaluate's, under coco, can differ"
    )


def test_top_confusions_are_between_classes(capsys):
    assert main(["confusion", *INPUT, "--top", "2"]) == 0
    head, table = capsys.readouterr().out.split("\n\n")[:2]
    assert head.splitlines()[-1] == "With the background: 21 objects missed, 14 detections of no object"
    assert [line.split()[:3] for line in table.splitlines()[1:]] == [
        ["hexagon", "circle", "5"],
        ["circle", "square", "3"],
    ]
    assert main(["confusion", *INPUT, "--top", "2", "-o", "csv"]) == 0
    assert [line.split(",")[:2] for line in capsys.readouterr().out.splitlines()[1:]] == [
        ["hexagon", "circle"],
        ["circle", "square"],
        ["circle", "(background)"],
        ["hexagon", "(background)"],
    ]
