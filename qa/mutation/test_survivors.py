"""The list of survivors stands for lines that are there."""

from __future__ import annotations

import re
import sqlite3
import sys
from pathlib import Path

import pytest

import boxscore
from mutation.run import changed_lines, report
from support.each import each

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = Path(__file__).parent
SURVIVORS = tomllib.loads((HERE / "survivors.toml").read_text(encoding="utf-8"))["survivor"]


def skeleton(line: str) -> set[str]:
    """Names in a line: a change of an operator, a number or a flag leaves them."""
    return set(re.findall(r"[A-Za-z_]{3,}", line)) - {"and", "not", "True", "False"}


@each(SURVIVORS)
def test_the_line_that_was_changed_is_still_there(entry: dict[str, str]) -> None:
    source = Path(boxscore.__file__).parent / f"{entry['module']}.py"
    lines = source.read_text(encoding="utf-8").splitlines()
    assert any(skeleton(entry["line"]) == skeleton(line) for line in lines), "explain the survivors again"
    assert entry["why"].endswith(".")


def test_what_is_changed_and_what_has_to_notice_it_is_there() -> None:
    config = tomllib.loads((HERE / "cosmic-ray.toml").read_text(encoding="utf-8"))["cosmic-ray"]
    changed = config["module-path"]
    tests = [word for word in config["test-command"].split() if word.startswith("tests/")]
    assert [path for path in [*changed, *tests] if not (HERE.parents[1] / path).exists()] == []
    assert {f"src/boxscore/{entry['module']}.py" for entry in SURVIVORS} <= set(changed)


def test_a_change_that_is_not_explained_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "session.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute(
            "create table mutation_specs (module_path, start_pos_row, definition_name, job_id)"
        )
        connection.execute("create table work_results (test_outcome, diff, job_id)")
        known = SURVIVORS[0]
        for number, (module, outcome, line) in enumerate(
            [
                (known["module"], "SURVIVED", known["line"]),
                ("matching", "SURVIVED", "x = 2"),
                ("matching", "KILLED", "x = 3"),
                ("matching", None, ""),
            ]
        ):
            connection.execute(
                "insert into mutation_specs values (?, 7, 'f', ?)", (f"src/{module}.py", number)
            )
            diff = f"--- a\n+++ b\n-x = 1\n+{line}"
            connection.execute("insert into work_results values (?, ?, ?)", (outcome, diff, number))
    connection.close()
    assert changed_lines("--- a\n+++ b\n-x = 1\n+    x = 2") == "x = 2"
    assert report(path) == 1
    output = capsys.readouterr().out
    assert "matching: 2 changes, 1 noticed (50.0%), 0 that no test can notice, 1 open" in output
    assert "open: matching.py, line 7, f: x = 2" in output
