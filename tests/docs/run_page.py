"""Run the examples of pages, each from top to bottom in a folder of its own; see test_docs_examples.py.

Reads one job a line as JSON from stdin (``page``, ``blocks``, ``folder``, ``environment``) and answers each with one
line on stdout: the output, or the error, of every command or Python block. Where processes can be forked, a page
is a copy of this one, which has NumPy, pandas and boxscore in memory, and so is ``boxscore ...`` where the shell is
not needed: its own arguments, folder, output and exit status, without the time that importing takes.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import runpy
import shlex
import subprocess
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from boxscore._utils import progress

FORKS = hasattr(os, "fork")
PLAIN = re.compile(r"boxscore (?P<arguments>[^|&;<>()$`*?\[\]~#\n]*?)(?: > (?P<file>[\w./-]+))?\s*")


def forked(work: Callable[[], int]) -> int:
    """Do work in a copy of this process; return its exit status."""
    sys.stdout.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the threads that BLAS keeps do nothing here
        child = os.fork()
    if child == 0:
        status = 70
        try:
            status = work()
        except BaseException:
            traceback.print_exc()
        finally:
            with contextlib.suppress(Exception):
                sys.stdout.flush()
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


# ---------------------------------------------------------------- blocks


def run_python(block: dict[str, Any], page: str, namespace: dict[str, Any]) -> str:
    output = io.StringIO()
    code = "\n" * (block["line"] - 1) + block["code"]  # so that tracebacks name the page's line
    with contextlib.redirect_stdout(output):
        exec(compile(code, page, "exec"), namespace)
    return output.getvalue()


def run_command(command: str, status: int) -> tuple[str, int]:
    plain = PLAIN.fullmatch(command.replace("\\\n", " "))
    if plain and FORKS:
        return run_boxscore(shlex.split(plain["arguments"]), plain["file"])
    script = f"(exit {status})\n{command}"
    done = subprocess.run(
        ["bash", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    return done.stdout, done.returncode


def run_boxscore(arguments: list[str], file: str | None) -> tuple[str, int]:
    """``python -m boxscore`` in a copy of this process; stdout and stderr as on a terminal, in their order."""
    path = Path(".printed")
    with path.open("wb") as printed:

        def program() -> int:
            os.dup2(printed.fileno(), 2)
            os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) if file else printed.fileno(), 1)
            sys.stdout, sys.stderr = (
                io.TextIOWrapper(os.fdopen(number, "wb", 0), encoding="utf-8", write_through=True)
                for number in (1, 2)
            )
            progress.SILENT = 1e6  # a slow machine's stages are on no page
            sys.argv = ["boxscore", *arguments]
            try:
                runpy.run_module("boxscore", run_name="__main__", alter_sys=True)
            except SystemExit as stop:
                return int(stop.code or 0)
            return 0

        os.set_inheritable(printed.fileno(), True)
        status = forked(program)
    output = path.read_text(encoding="utf-8")
    path.unlink()
    return output, status


def run_blocks(job: dict[str, Any]) -> list[dict[str, str]]:
    namespace: dict[str, Any] = {"__name__": "__main__"}
    results, status = [], 0
    for block in job["blocks"]:
        if block["kind"] == "python":
            try:
                results.append({"output": run_python(block, job["page"], namespace)})
            except Exception:
                results.append({"error": traceback.format_exc()})
        else:
            output, status = run_command(block["code"], status)
            results.append({"output": output})
    return results


# ---------------------------------------------------------------- pages


def run_page(job: dict[str, Any]) -> int:
    """Run a page where it says, and answer."""
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a page lets through to the terminal is no answer
    os.environ.clear()
    os.environ.update(job["environment"])
    os.chdir(job["folder"])
    print(json.dumps(run_blocks(job)), file=answer, flush=True)
    return 0


def main() -> None:
    import pandas  # noqa: F401 - in memory before the copies are made

    import boxscore.cli

    for command in boxscore.cli.COMMANDS:
        boxscore.cli.load_command(command)
    for line in sys.stdin:
        job = json.loads(line)
        if FORKS:
            status = forked(lambda job=job: run_page(job))
            if status:
                print(json.dumps([{"error": f"exit status {status}"}] * len(job["blocks"])), flush=True)
        else:
            run_page(job)
            return  # one page, one process


if __name__ == "__main__":
    main()
