"""The tests say what kind they are, and what was skipped in one line."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from support.kinds import KINDS, TESTS
from support.skipped import sentences

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


@pytest.mark.parametrize("place", KINDS)
def test_a_kind_is_of_a_place_that_is_there(place: str) -> None:
    assert (TESTS / place).exists()


def test_folders_of_tests_are_packages_of_the_source_or_kinds() -> None:
    packages = {path.name.lstrip("_") for path in (ROOT / "src" / "boxscore").iterdir() if path.is_dir()}
    kinds = {place for place in KINDS if "/" not in place}
    shared = {
        "support",
        "oracles",
        "evaluation",
        "bad_input",
        "faults",
        "limits",
        "mutation",
        "tools",
        "attack",
    }
    folders = {path.parent.relative_to(TESTS).parts[0] for path in TESTS.glob("*/**/*.py")} - {"node_modules"}
    assert folders <= packages | kinds | shared, folders - packages - kinds - shared


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
