"""The map of the house names every module, and nothing that is not there."""

from __future__ import annotations

import re
from pathlib import Path

import boxscore
from boxscore.cli import COMMANDS
from boxscore.formats.registry import format_named, format_names
from support.each import each

ROOT = Path(boxscore.__file__).parent
PAGE = (ROOT.parents[1] / "docs" / "explanation" / "architecture.md").read_text(encoding="utf-8")
PACKAGES = sorted(path.parent.name for path in ROOT.glob("*/__init__.py"))
FORMATS = {format_named(name).__class__.__module__.rpartition(".")[2] for name in format_names(auto=False)}
ONE_FILE_EACH = {"formats": FORMATS, "cli": {name.replace("-", "_") for name in COMMANDS}}


def named(package: str) -> set[str]:
    """Return what the row of a package names, the texts in backticks of its last column."""
    (row,) = re.findall(rf"^\| `{package}` \|.*\|(.*)\|$", PAGE, flags=re.MULTILINE)
    return set(re.findall(r"`([^`]+)`", row))


@each(PACKAGES)
def test_every_module_is_on_the_map(package: str) -> None:
    modules = {path.stem for path in (ROOT / package).glob("*.py")} - {"__init__"}
    modules |= {path.parent.name for path in (ROOT / package).glob("*/__init__.py")}
    assert modules - ONE_FILE_EACH.get(package, set()) <= named(package)
    assert named(package) <= modules


def test_files_that_say_where_a_rule_is_are_there() -> None:
    paths = set(re.findall(r"`([a-z_/]+\.py)`", PAGE.split("## Where is the rule")[1]))
    assert len(paths) > 50
    assert {path for path in paths if not list(ROOT.glob(path)) + list(ROOT.glob(f"**/{path}"))} == set()
