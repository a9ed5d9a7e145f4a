"""Ground truth and detections as plain arguments; the demo."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from boxscore.extensions.data_tools.demo_command import SAMPLES
from support.running import Run
from support.samples import DATASETS, DT, GT


def evaluated(run: Run, *arguments: str) -> object:
    return json.loads(run("evaluate", *arguments, "--output", "json").out)["metrics"]


def test_paths_without_options(run: Run) -> None:
    expected = evaluated(run, "--gt", GT, "--dt", DT)
    for arguments in ((GT, DT), ("--gt", GT, DT), ("--dt", DT, GT), (GT, "--protocol", "coco", DT)):
        assert evaluated(run, *arguments) == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([GT], "evaluate needs --detections/--dt."),
        ([], "evaluate needs --ground-truth/--gt and --detections/--dt."),
        ([GT, DT, DT], "evaluate does not take the argument "),
        (["--gt", GT, "--dt", DT, GT], "evaluate does not take the argument "),
    ],
)
def test_too_few_and_too_many(arguments: list[str], message: str, run: Run) -> None:
    assert message in run.error("evaluate", *arguments)


def test_several_detections(run: Run) -> None:
    arguments = ["--resamples", "3", "--output", "json"]
    expected = run("compare", "--gt", GT, "--dt", DT, DT, *arguments).out
    assert run("compare", GT, DT, DT, *arguments).out == expected


def test_demo_into_a_folder_with_an_escape_in_its_name(tmp_path: Path, run: Run) -> None:
    out = run("demo", "--output", tmp_path / "\x1b[31m").out
    assert "\x1b" not in out
    assert "\N{REPLACEMENT CHARACTER}[31m/instances.json" in out


def test_demo(tmp_path: Path, run: Run) -> None:
    shown = run("demo").out
    assert str(SAMPLES / "instances.json") in shown
    assert shown.startswith(
        run("evaluate", SAMPLES / "instances.json", SAMPLES / "detections.json").out.rstrip("\n")
    )
    folder = tmp_path / "a folder"
    assert f"boxscore evaluate '{folder / 'instances.json'}'" in run("demo", "--output", folder).out
    assert (folder / "detections.json").read_bytes() == (SAMPLES / "detections.json").read_bytes()


def test_the_samples_are_small_and_made_by_their_script(tmp_path: Path) -> None:
    script = [sys.executable, "-B", str(DATASETS / "make_demo.py"), "--output", str(tmp_path)]
    subprocess.run(script, check=True, timeout=60)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        path.name: path.read_bytes() for path in SAMPLES.iterdir()
    }
    assert sum(path.stat().st_size for path in SAMPLES.iterdir()) < 20_000
