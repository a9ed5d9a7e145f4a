"""Change what decides a score in every small way, and see that a test notices (cosmic-ray).

    python qa/mutation/run.py             an hour or two on one core; again goes on where it was stopped
    python qa/mutation/run.py --report    only what was found so far

Works on a copy, in .mutants. What to change, and the tests that have to notice, stand in cosmic-ray.toml; the
changes that no test can notice, and why, in survivors.toml. Any other that survives is printed and fails.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
COPY = ROOT / ".mutants"
SESSION = COPY / "session.sqlite"
NEEDED = (
    "src",
    "tests",
    "conftest.py",
    "datasets",
    "configs",
    "docs",
    "benchmarks",
    "pyproject.toml",
    "README.md",
)

QUERY = """
select spec.module_path, spec.start_pos_row, spec.definition_name, result.test_outcome, result.diff
from mutation_specs spec join work_results result on result.job_id = spec.job_id
where result.test_outcome is not null order by 1, 2
"""


def start() -> None:
    """Copy the project and list the changes to be made."""
    COPY.mkdir()
    for name in NEEDED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, COPY / name, ignore=shutil.ignore_patterns("__pycache__", "node_modules"))
        else:
            shutil.copy(source, COPY / name)
    config = (HERE / "cosmic-ray.toml").read_text(encoding="utf-8").replace("{python}", sys.executable)
    (COPY / "cosmic-ray.toml").write_text(config, encoding="utf-8")
    tool("cosmic-ray", "init", "cosmic-ray.toml", SESSION.name)
    tool("cr-filter-operators", SESSION.name, "cosmic-ray.toml")


def tool(name: str, *arguments: str) -> None:
    environment = {
        **os.environ,
        "PYTHONPATH": str(COPY / "src"),
        "BOXSCORE_EXAMPLES": "0.1",
        "BOXSCORE_HYPOTHESIS": "mutation",
    }
    program = Path(sys.executable).parent / name
    subprocess.run([str(program), *arguments], cwd=COPY, env=environment, check=True)


def changed_lines(diff: str) -> str:
    """The lines that a change puts in, without the file names."""
    lines = [line[1:].strip() for line in diff.splitlines() if line[:1] == "+" and line[:3] != "+++"]
    return " ".join(lines)


def report(session: Path = SESSION, explained_file: Path = HERE / "survivors.toml") -> int:
    """Print the figures and every survivor without an explanation; return how many those are."""
    explained: dict[tuple[str, str], str] = {
        (entry["module"], " ".join(entry["line"].split())): entry["why"]
        for entry in tomllib.loads(explained_file.read_text(encoding="utf-8"))["survivor"]
    }
    counts: dict[str, Counter[str]] = {}
    open_survivors: list[tuple[Any, ...]] = []
    with sqlite3.connect(session) as connection:
        for module, line, definition, outcome, diff in connection.execute(QUERY):
            name = re.sub(r"^src/(boxscore/)?|\.py$", "", module)
            count = counts.setdefault(name, Counter())
            if outcome != "SURVIVED":
                count["killed"] += 1
            elif (name, " ".join(changed_lines(diff).split())) in explained:
                count["explained"] += 1
            else:
                count["open"] += 1
                open_survivors.append((name, line, definition, changed_lines(diff)))
    for name, count in counts.items():
        total = sum(count.values())
        print(f"{name}: {total} changes, {count['killed']} noticed ({count['killed'] / total:.1%}), "
              f"{count['explained']} that no test can notice, {count['open']} open")  # fmt: skip
    for name, line, definition, text in open_survivors:
        print(f"open: {name}.py, line {line}, {definition}: {text}")
    return len(open_survivors)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--report", action="store_true", help="run nothing")
    parser.add_argument("--session", type=Path, default=SESSION, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not options.report:
        if importlib.util.find_spec("cosmic_ray") is None:
            print("mutation testing needs cosmic-ray: pip install cosmic-ray")
            return 0
        if not SESSION.exists():
            start()
        tool("cosmic-ray", "exec", "cosmic-ray.toml", SESSION.name)
    return int(report(options.session) > 0)


if __name__ == "__main__":
    sys.exit(main())
