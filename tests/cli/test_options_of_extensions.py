"""An extension adds options to commands of the core, which does not import it before one is typed."""

from __future__ import annotations

import subprocess
import sys

import pytest

from boxscore._utils.lazy import loaded
from boxscore.cli import load_command
from boxscore.cli.sockets import OPTIONS
from support.samples import DT, GT

MODULES = sorted({table.partition(":")[0] for tables in OPTIONS.values() for table in tables})


@pytest.mark.parametrize("place", OPTIONS)
def test_the_names_in_the_table_are_declared(place: str) -> None:
    for table, names in OPTIONS[place].items():
        by_name = {option.name: option for option in loaded(table)}
        assert set(names) <= set(by_name), table
        # The table says the name alone: no other flag, and no other name of the value.
        assert [by_name[name].flags for name in names] == [(f"--{name}",) for name in names]
        assert not any(by_name[name].variable or by_name[name].required for name in names)


def imported(*words: str) -> list[str]:
    """Which modules that declare options a call imports."""
    code = f"import sys; from boxscore.cli import main; main({list(words)!r}); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    return [module for module in MODULES if module in done.stderr.split()]


@pytest.mark.parametrize(
    ("words", "extensions"),
    [
        ([], []),
        (["--per-class", "--no-digest"], []),
        (["--loose"], ["scoreless"]),
        (["--save-part=part.npz", "--loos"], ["large"]),
    ],
)
def test_an_extension_is_imported_for_its_own_options(words: list[str], extensions: list[str]) -> None:
    assert imported("evaluate", GT, DT, *words) == [
        f"boxscore.extensions.{name}.options" for name in extensions
    ]


def test_options_have_no_value_before_they_are_declared() -> None:
    options = {option.name: option for option in load_command("evaluate", ["--gallery", "3"]).options}
    assert options["memory-limit"].help == ""
    assert (options["gallery"].default, options["title"].default) == (48, "")
