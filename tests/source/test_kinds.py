"""The tests say what kind they are, and what was skipped in one line."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.each import each
from support.kinds import KINDS, LEFT_TO_CI, MAKE_TEST, QA, TESTS
from support.skipped import left_to_ci, sentences

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
MARKERS = {
    line.split(":")[0]: line
    for line in tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["pytest"][
        "ini_options"
    ]["markers"]
}


def test_every_kind_is_registered_and_documented() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert {kind for kinds in KINDS.values() for kind in kinds} <= set(MARKERS)
    assert [name for name in MARKERS if f"| `{name}` |" not in text] == []


@each(KINDS)
def test_a_kind_is_of_a_place_that_is_there(place: str) -> None:
    assert (TESTS / place).exists() or (QA / place).exists()


def test_folders_of_tests_are_packages_of_the_source_or_kinds() -> None:
    packages = {path.name.lstrip("_") for path in (ROOT / "src" / "boxscore").iterdir() if path.is_dir()}
    kinds = {place for place in KINDS if "/" not in place}
    shared = {"support", "oracles", "evaluation", "bad_input", "faults", "limits"}
    folders = {path.parent.relative_to(TESTS).parts[0] for path in TESTS.glob("*/**/*.py")} - {"node_modules"}
    assert folders <= packages | kinds | shared, folders - packages - kinds - shared


def test_tests_use_no_program_of_qa() -> None:
    """The source archive has the tests, and not these programs."""
    programs = "|".join(path.name for path in QA.iterdir() if path.is_dir() and path.name != "__pycache__")
    imports = re.compile(rf"^\s*(?:from|import) (?:{programs})\b", re.MULTILINE)
    assert [path for path in TESTS.rglob("*.py") if imports.search(path.read_text(encoding="utf-8"))] == []


def test_this_test_is_of_its_folders_kind(request: pytest.FixtureRequest) -> None:
    assert request.node.get_closest_marker("source")


def test_reasons_are_summed_up_by_remedy() -> None:
    reasons = [
        *["could not import 'torch': No module named 'torch'"] * 3,
        "could not import 'cv2': No module named 'cv2'",
        "tidecv is not installed",
        "pip install mlflow-skinny",
        *["no browser: apt-get install chromium chromium-driver"] * 2,
        "real data is absent: /data/voc (set BOXSCORE_REAL_DATA to the folder that has it)",
        "needs the real data: /data/coco is absent (set BOXSCORE_REAL_DATA)",
        "make is not installed",
    ]
    assert sentences(reasons) == [
        "skipped: 6 tests that need other tools: pip install mlflow-skinny opencv-python-headless tidecv torch; "
        "2 tests that need a browser: apt-get install chromium chromium-driver; "
        "2 tests that need the real data: set BOXSCORE_REAL_DATA to the folder that has it; "
        "1 test: make is not installed"
    ]
    assert sentences([]) == []


# ---------------------------------------------------------------- what is left to CI

EXAMPLES = """
import pytest

@pytest.mark.parametrize("number", range(1_200))
@pytest.mark.long
def test_long(number): ...

@pytest.mark.real
@pytest.mark.slow
def test_of_two_kinds(): ...

@pytest.mark.browser
def test_browser(): ...

@pytest.mark.slow
@pytest.mark.long
def test_slow(): ...

def test_here(): ...
"""
EVERY = "left to CI: 1,203 tests (browser 1, real 1, long 1,200, slow 1)"


def lines_of_run(folder: Path, *options: str) -> list[str]:
    """Run the examples as `make test` runs the tests, in a folder of their own."""
    folder.joinpath("test_examples.py").write_text(EXAMPLES)
    marks = "".join(f"\n    {kind}: as here" for kind in LEFT_TO_CI)
    folder.joinpath("pytest.ini").write_text(f"[pytest]\nmarkers ={marks}\n    property: as here\n")
    command = [sys.executable, "-m", "pytest", "-p", "conftest", "-q", *options]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(TESTS)])}
    environment = {key: value for key, value in environment.items() if not key.startswith("PYTEST_")}
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert "1 passed" in ended.stdout, ended.stdout + ended.stderr
    return [line for line in ended.stdout.splitlines() if "left to CI" in line]


@pytest.mark.long
@pytest.mark.parametrize("processes", [[], ["-n", "2", "--dist", "worksteal"]], ids=["one", "two"])
def test_what_is_left_is_said_once(processes: list[str], tmp_path: Path) -> None:
    pytest.importorskip("xdist")
    assert lines_of_run(tmp_path, *processes, "-m", MAKE_TEST) == [EVERY]


@pytest.mark.long
@pytest.mark.parametrize(
    "options", [["-m", "not slow and not long and not real and not browser"], ["-k", "here", "-m", MAKE_TEST]]
)
def test_nothing_is_said_of_what_somebody_else_left_out(options: list[str], tmp_path: Path) -> None:
    assert lines_of_run(tmp_path, *options) == []


def test_the_makefile_leaves_out_these_kinds() -> None:
    assert f"-m '{MAKE_TEST}'" in (TESTS.parent / "Makefile").read_text()
    assert {f"not {kind}" for kind in LEFT_TO_CI} == set(MAKE_TEST.split(" and "))


def test_one_test_and_none() -> None:
    assert left_to_ci({"browser": 1, "real": 0}) == "left to CI: 1 test (browser 1)"
    assert left_to_ci({"browser": 0}) == left_to_ci({}) == ""
