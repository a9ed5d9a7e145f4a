"""Ground truth and detections as plain arguments; the demo."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from boxscore.cli import main
from boxscore.cli.demo import SAMPLES

DATASETS = Path(__file__).parents[2] / "datasets"
GT, DT = (str(DATASETS / "shapes_coco" / f"{name}.json") for name in ("instances", "detections"))


def evaluated(capsys: pytest.CaptureFixture[str], *arguments: str) -> object:
    assert main(["evaluate", *arguments, "--output", "json"]) == 0
    return json.loads(capsys.readouterr().out)["metrics"]


def test_paths_without_options(capsys: pytest.CaptureFixture[str]) -> None:
    expected = evaluated(capsys, "--gt", GT, "--dt", DT)
    for arguments in ((GT, DT), ("--gt", GT, DT), ("--dt", DT, GT), (GT, "--protocol", "coco", DT)):
        assert evaluated(capsys, *arguments) == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([GT], "evaluate must be given --detections/--dt."),
        ([], "evaluate must be given --ground-truth/--gt and --detections/--dt."),
        ([GT, DT, DT], "evaluate has no use for "),
        (["--gt", GT, "--dt", DT, GT], "evaluate has no use for "),
    ],
)
def test_too_few_and_too_many(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_several_detections(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--resamples", "3", "--output", "json"]
    assert main(["compare", "--gt", GT, "--dt", DT, DT, *arguments]) == 0
    expected = capsys.readouterr().out
    assert main(["compare", GT, DT, DT, *arguments]) == 0
    assert capsys.readouterr().out == expected


def test_demo_into_a_folder_with_an_escape_in_its_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["demo", "--output", str(tmp_path / "\x1b[31m")]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\N{REPLACEMENT CHARACTER}[31m/instances.json" in out


def test_demo(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo"]) == 0
    shown = capsys.readouterr().out
    assert str(SAMPLES / "instances.json") in shown
    assert main(["evaluate", str(SAMPLES / "instances.json"), str(SAMPLES / "detections.json")]) == 0
    assert shown.startswith(capsys.readouterr().out.rstrip("\n"))
    folder = tmp_path / "a folder"
    assert main(["demo", "--output", str(folder)]) == 0
    assert f"boxscore evaluate '{folder / 'instances.json'}'" in capsys.readouterr().out
    assert (folder / "detections.json").read_bytes() == (SAMPLES / "detections.json").read_bytes()


def test_the_samples_are_small_and_made_by_their_script(tmp_path: Path) -> None:
    script = [sys.executable, "-B", str(DATASETS / "make_demo.py"), "--output", str(tmp_path)]
    subprocess.run(script, check=True, timeout=60)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        path.name: path.read_bytes() for path in SAMPLES.iterdir()
    }
    assert sum(path.stat().st_size for path in SAMPLES.iterdir()) < 20_000
