"""Every example in the documentation runs, and prints what the page says.

Conventions of a page:

- A ``python`` block runs after those above it, in one namespace with them. A ``text`` block right after it is
  what it prints.
- A ``console`` block holds commands after ``$ `` (continued lines after ``> ``) and what they print, stdout
  and stderr as on a terminal. A line ``...`` stands for any lines, ``...`` inside a line for any characters.
- The size that is printed of an ``.npz`` file may be another number: it depends on the version of NumPy.
- A block with ``title="name"`` is written to that file first.
- ``<!-- not run: reason -->`` before a block leaves it out.

Pages run in an empty folder that has the repository's ``datasets`` and ``configs``.

``python tests/docs/test_docs_examples.py PAGE ...`` writes what the examples print into the pages, except
where a ``...`` stands; of output that ends in such a line, as many lines as the page has before it. Read the
difference before you commit it.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(
    r"^(?P<indent> *)```(?P<info>[^\n`]*)\n(?P<code>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL
)
SIZE_OF_ARCHIVE = re.compile(r"(\.npz\\ \\\()\d+(\\ kB)")
"""In an escaped line."""
NOT_RUN = re.compile(r"<!-- not run: .+? -->\s*$")

Block = dict[str, Any]


def blocks_of(text: str) -> list[Block]:
    """Fenced blocks of a page: language, title, code, line, and whether what comes between is blank."""
    blocks = []
    end = 0
    for found in FENCE.finditer(text):
        info = found["info"].strip()
        language = info.split(" ")[0].split("{")[0]
        title = re.search(r'title="([^"]+)"', info)
        indent = len(found["indent"])
        code = "".join(line[indent:] if line.strip() else line for line in found["code"].splitlines(True))
        blocks.append(
            {
                "language": language,
                "title": title[1] if title else None,
                "code": code,
                "line": text.count("\n", 0, found.start()) + 2,
                "follows": not text[end : found.start()].strip(),
                "run": not NOT_RUN.search(text[end : found.start()]),
            }
        )
        end = found.end()
    return blocks


def commands_of(block: Block) -> list[Block]:
    """Commands of a console block, each with what it should print."""
    commands: list[Block] = []
    for number, line in enumerate(block["code"].splitlines()):
        if line.startswith("$ "):
            commands.append(
                {
                    "kind": "console",
                    "code": line[2:],
                    "line": block["line"] + number,
                    "output_line": block["line"] + number + 1,
                    "expected": "",
                }
            )
        elif line.startswith("> ") and commands and not commands[-1]["expected"]:
            commands[-1]["code"] += "\n" + line[2:]
            commands[-1]["output_line"] += 1
        else:
            assert commands, f"line {block['line'] + number}: a console block starts with $"
            commands[-1]["expected"] += line + "\n"
    return commands


def steps_of(text: str) -> tuple[dict[str, str], list[Block]]:
    """Files to write, and steps to run, of a page."""
    files: dict[str, str] = {}
    steps: list[Block] = []
    for block in blocks_of(text):
        if not block["run"]:
            continue
        if block["title"]:
            files[block["title"]] = block["code"]
        elif block["language"] == "python":
            steps.append({"kind": "python", "code": block["code"], "line": block["line"], "expected": None})
        elif block["language"] == "text" and block["follows"] and steps and steps[-1]["kind"] == "python":
            steps[-1] |= {"expected": block["code"], "output_line": block["line"]}
        elif block["language"] == "console":
            steps += commands_of(block)
    return files, steps


def matches(expected: str, printed: str) -> bool:
    """Compare line by line, trailing blanks aside; ``...`` as above."""
    pattern = ""
    for line in expected.strip("\n").split("\n"):
        line = line.rstrip()
        if line == "...":
            pattern += r"(?:[^\n]*\n)*?"
        else:
            line_pattern = ".*?".join(map(re.escape, line.split("...")))
            pattern += SIZE_OF_ARCHIVE.sub(r"\1\\d+\2", line_pattern) + r"\n"
    text = "\n".join(line.rstrip() for line in printed.strip("\n").split("\n")) + "\n"
    return re.fullmatch(pattern, text) is not None


def make_recipe(target: str) -> str:
    """What ``make target`` runs once its environment stands, as a shell script that echoes like make."""
    text = (ROOT / "Makefile").read_text()
    found = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", text, re.MULTILINE)
    assert found, f"the Makefile has a target {target}"
    script = []
    for line in found[1].replace("$(BIN)", ".venv/bin").splitlines():
        command = line[1:]
        if not command.startswith("@"):
            script.append(f"echo '{command}'")
        script.append(command.removeprefix("@"))
    return "\n".join(script)


def prepare(folder: Path) -> dict[str, str]:
    """Links to what examples read, and commands that run this source tree."""
    for name in ("datasets", "configs"):
        (folder / name).symlink_to(ROOT / name)
    programs = folder / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name, command in (
        ("boxscore", f'exec "{sys.executable}" -m boxscore "$@"'),
        ("python", f'exec "{sys.executable}" "$@"'),
        ("make", make_recipe("demo")),
    ):
        program = programs / name
        program.write_text(f"#!/bin/sh\n{command}\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return {**os.environ, **settings(), "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}


def settings() -> dict[str, str]:
    """What Python reads as it starts."""
    return {
        "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])),
        "PYTHONUNBUFFERED": "1",
        "COLUMNS": "80",
        "LC_ALL": "C.UTF-8",
    }


class Runner:
    """A process that runs pages one after the other, each as a copy of itself; see run_page.py."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[str] | None = None

    def answer(self, job: dict[str, Any]) -> Any:
        if self.process is None or self.process.poll() is not None:
            self.process = subprocess.Popen(
                [sys.executable, str(Path(__file__).with_name("run_page.py"))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env={**os.environ, **settings()},
            )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self) -> None:
        if self.process is not None:
            self.process.communicate()


def run_page(page: Path, folder: Path, runner: Runner) -> list[tuple[Block, dict[str, str]]]:
    """Run a page's examples; each step with its output or error."""
    files, steps = steps_of(page.read_text(encoding="utf-8"))
    if not steps:
        return []
    environment = prepare(folder)
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    job = {"page": page.name, "blocks": steps, "folder": str(folder), "environment": environment}
    return list(zip(steps, runner.answer(job), strict=True))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_examples_run_and_print_what_the_page_says(page: Path, tmp_path: Path, runner: Runner) -> None:
    wrong = []
    for step, result in run_page(page, tmp_path, runner):
        where = f"{page.relative_to(ROOT)}, line {step['line']}"
        if "error" in result:
            wrong.append(f"{where}: the example fails\n{result['error']}")
        elif step["expected"] is not None and not matches(step["expected"], result["output"]):
            difference = difflib.ndiff(step["expected"].splitlines(), result["output"].splitlines())
            wrong.append(
                f"{where}: {step['code'].splitlines()[0]}: - is the page, + what it prints\n"
                + "\n".join(difference)
            )
    if wrong:
        pytest.fail("\n\n".join(wrong), pytrace=False)


def test_ellipsis() -> None:
    assert matches("a\n...\nd", "a\nb\nc\nd\n")
    assert matches("a\n...\nd", "a\nd\n")
    assert matches("took ... s", "took 1.25 s\n")
    assert matches("", "")
    assert not matches("a\n...\nd", "a\nb\n")
    assert not matches("", "a\n")


def write_outputs(page: Path, folder: Path, runner: Runner) -> None:
    """Put what the examples print into the page."""
    lines = page.read_text(encoding="utf-8").split("\n")
    for step, result in reversed(run_page(page, folder, runner)):
        if "error" in result:
            print(f"{page}, line {step['line']}\n{result['error']}")
            continue
        if step["expected"] is None:
            continue
        expected = step["expected"].splitlines()
        cut = expected[-1:] == ["..."]
        if "..." in "".join(expected[:-1] if cut else expected):
            continue
        printed = [line.rstrip() for line in result["output"].rstrip("\n").split("\n") if result["output"]]
        if cut:
            printed = [*printed[: len(expected) - 1], "..."]
        start = step["output_line"] - 1
        lines[start : start + len(expected)] = printed
    page.write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    shared = Runner()
    for name in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as temporary:
            write_outputs(Path(name).resolve(), Path(temporary), shared)
    shared.close()
