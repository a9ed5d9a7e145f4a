"""The tests say what kind they are, and what was skipped in one line."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from fnmatch import fnmatch
from pathlib import Path

import pytest

from support.each import each
from support.kinds import KINDS, LEFT_TO_CI, MAKE_TEST, QA, TESTS
from support.selection import EXTENSIONS, Selection, patterns_of, select
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


def test_no_two_files_have_one_name() -> None:
    """Folders without ``__init__.py`` are no packages: pytest refuses the second file of a name."""
    paths = [
        path for root in (TESTS, QA) for path in root.rglob("test_*.py") if "node_modules" not in path.parts
    ]
    counts = Counter(path.name for path in paths if not (path.parent / "__init__.py").exists())
    assert [name for name, count in counts.items() if count > 1] == []


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


# ---------------------------------------------------------------- which files run


@pytest.mark.parametrize("name", EXTENSIONS)
def test_every_pattern_of_an_extension_is_of_a_file(name: str) -> None:
    places = [
        path.relative_to(root).with_suffix("").as_posix()
        for root in (TESTS, QA)
        for path in root.rglob("test_*.py")
    ]
    assert [p for p in patterns_of(EXTENSIONS[name]) if not any(fnmatch(place, p) for place in places)] == []
    assert [p for p in EXTENSIONS[name].sources.split() if not (ROOT / p).exists()] == []


def test_the_folders_of_tests_of_extensions_are_those_of_their_sources() -> None:
    """A change below a folder of src/boxscore/extensions selects the tests in the folder of its name."""
    folders = {path.parent.name for path in (TESTS / "extensions").rglob("test_*.py")}
    sources = {path.name for path in (ROOT / "src" / "boxscore" / "extensions").iterdir() if path.is_dir()}
    assert {"crowds", "federated", "labels", "scoreless"} <= folders <= sources


def repository(folder: Path, **changes: str) -> Selection:
    """Commit 60 files of the core and four of extensions, change some, and choose."""
    core = {f"tests/rules/test_{number}.py": "" for number in range(60)}
    files = {
        **core,
        "tests/extensions/pages/test_page.py": "from boxscore.extensions.diagnostics import errors",
        "tests/extensions/diagnostics/test_errors.py": "",
        "tests/extensions/suite/test_suite.py": "from support import suites",
        "qa/fuzz/test_fuzz.py": "",
        "src/boxscore/extensions/diagnostics/errors.py": "",
        "tests/support/suites.py": "",
    }
    git = ["git", "-c", "user.name=a", "-c", "user.email=b", "-c", "init.defaultBranch=main"]
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "all"]):
        subprocess.run([*git, *command], cwd=folder, check=True)
    for name, text in changes.items():
        (folder / name.replace("__", "/")).with_suffix(".py").write_text(text)
    selection = select(folder)
    assert selection is not None
    assert len(selection.selected) == 60 + sum(selection.changed.values())
    return selection


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@pytest.mark.parametrize(
    ("change", "runs"),
    [
        ("src__boxscore__extensions__diagnostics__errors", {"diagnostics": 1, "pages": 1}),
        ("src__boxscore__extensions__diagnostics__new", {"diagnostics": 1}),
        ("tests__extensions__suite__test_suite", {"suite": 1}),
        ("tests__support__suites", {"suite": 1}),
        ("tests__extensions__conftest", {"diagnostics": 1, "pages": 1, "suite": 1}),
        ("qa__fuzz__differential", {"qa": 1}),
        ("tests__rules__test_3", {}),
    ],
)
def test_what_changed_runs(change: str, runs: dict[str, int], tmp_path: Path) -> None:
    selection = repository(tmp_path, **{change: "x = 1"})
    assert (selection.base, selection.changed) == ("main", runs)
    every = {"pages": 1, "diagnostics": 1, "suite": 1, "qa": 1}
    assert selection.left == {name: count for name, count in every.items() if name not in runs}
    assert "left to CI: " in selection.summary()


def test_everything_runs_where_there_is_no_main(tmp_path: Path) -> None:
    assert select(tmp_path) is None


def test_no_test_of_the_core_is_no_selection(tmp_path: Path) -> None:
    repository(tmp_path)
    for path in (tmp_path / "tests" / "rules").iterdir():
        path.unlink()
    with pytest.raises(AssertionError, match="hardly a test of the core"):
        select(tmp_path)


def test_one_test_and_none() -> None:
    assert left_to_ci({"browser": 1, "real": 0}) == "left to CI: 1 test (browser 1)"
    assert left_to_ci({"browser": 0}) == left_to_ci({}) == ""
