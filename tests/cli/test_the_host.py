"""What the library and the command line leave of the process they run in: all of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.program import SOURCES, run_boxscore, run_python
from support.samples import DT, GT

pytestmark = pytest.mark.long


STATE = """
import gc, io, json, locale, os, signal, sys, tempfile, threading, warnings
import numpy, pandas, msgspec, matplotlib, pycocotools.mask

def no_fork(*_):
    raise AssertionError("forked")

os.fork = no_fork

def state():
    return {
        "collector": [gc.isenabled(), gc.get_threshold(), gc.get_freeze_count(), list(map(str, gc.callbacks))],
        "filters": list(map(str, warnings.filters)),
        "showwarning": str(warnings.showwarning),
        "signals": {str(s): str(signal.getsignal(s)) for s in signal.valid_signals()},
        "environment": dict(os.environ),
        "threads": [thread.name for thread in threading.enumerate()],
        "folder": os.getcwd(),
        "stdout": [sys.stdout.errors, sys.stdout.encoding, os.fstat(1).st_ino],
        "hooks": [str(sys.excepthook), str(sys.unraisablehook), str(sys.displayhook)],
        "errors": numpy.geterr(),
        "random": numpy.random.get_state()[1].tolist(),
        "limit": sys.getrecursionlimit(),
        "locale": locale.setlocale(locale.LC_ALL),
        "pandas": pandas.get_option("display.max_rows"),
        "files": sorted(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else [],
    }

before = state()

import boxscore._utils.memory

kept = []
boxscore._utils.memory.keep_freed_memory = lambda: kept.append(1)
"""
COMPARE = """
after = state()
changed = {name: (before[name], after[name]) for name in before if before[name] != after[name]}
print(json.dumps(changed), file=sys.stderr)
print(len(kept), file=sys.stderr)
"""

USES = {
    "import": "import boxscore",
    "evaluate": f"""
import boxscore
truth = boxscore.load_ground_truth({GT!r})
detections = boxscore.load_detections({DT!r}, truth)
evaluation = boxscore.evaluate(truth, detections, workers=2)
evaluation.per_class, evaluation.metrics, evaluation.curves()
boxscore.diagnostics.confusion_matrix(evaluation)
""",
    "command line": f"""
from boxscore.cli import main
assert main(["evaluate", "--gt", {GT!r}, "--dt", {DT!r}, "--strict"]) == 0
assert main(["validate", "--gt", {GT!r}, "--dt", {DT!r}]) in (0, 1)
assert main(["evaluate", "--gt", "no.json", "--dt", {DT!r}]) == 2
assert main(["nothing"]) == 2
""",
    "report": f"""
from boxscore.cli import main
with tempfile.TemporaryDirectory() as folder:
    assert main(["report", "--gt", {GT!r}, "--dt", {DT!r}, "--report", folder + "/out", "--resamples", "0"]) == 0
""",
}


@pytest.mark.parametrize("use", USES)
def test_the_process_is_as_it_was(use: str) -> None:
    status, _, errors = run_python(["-c", STATE + USES[use] + COMPARE], PYTHONIOENCODING="utf-8")
    assert status == 0, errors
    changed, kept = errors.splitlines()[-2:]
    assert json.loads(changed) == {}
    assert kept == "0"  # freed memory: only a program may keep it


def test_the_program_keeps_the_memory_of_arrays() -> None:
    code = (
        "import sys, boxscore.__main__ as program\n"
        "calls = []\n"
        "program.keep_freed_memory = lambda: calls.append(1)\n"
        "sys.argv = ['boxscore', '--version']\n"
        "status = program.program()\n"
        "print(status, calls)"
    )
    assert run_python(["-c", code])[1].splitlines()[-1] == "0 [1]"


# ---------------------------------------------------------------- children


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a results file that is large enough for two readers."""
    rows = json.loads(Path(DT).read_text())
    path = tmp_path_factory.mktemp("large") / "dt.json"
    path.write_text(json.dumps(rows * 400))
    assert path.stat().st_size > 2 * 4 * 2**20
    return str(path)


SPIED = """
import os, sys
import boxscore.__main__ as program
fork, forks = os.fork, []
os.fork = lambda: forks.append(1) or fork()
status = program.program()
print("forks", len(forks), file=sys.stderr)
try:
    os.waitpid(-1, os.WNOHANG)
    print("a child is left", file=sys.stderr)
except ChildProcessError:
    pass
sys.exit(status)
"""


@pytest.mark.parametrize("ignored", [False, True])
def test_a_shell_that_ignores_the_ends_of_children(ignored: bool, large: str) -> None:
    """SIGCHLD ignored is inherited: waiting for a child then is an error of the system."""
    call = ["evaluate", "--gt", GT, "--dt", large, "--quiet", "--protocol", "voc2012", "--workers"]
    trap = "trap '' CHLD; " if ignored else ""
    done = subprocess.run(
        ["sh", "-c", f'{trap}exec "$0" "$@"', sys.executable, "-c", SPIED, *call, "2"],
        env={**os.environ, "PYTHONPATH": SOURCES},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert (done.returncode, done.stderr) == (0, "forks 1\n")
    assert done.stdout == run_boxscore([*call, "1"])[1]


# ---------------------------------------------------------------- the end


ENDS = "import atexit, sys; atexit.register(print, 'the end'); sys.argv = ['boxscore', '--version']; "


def test_the_program_ends_with_its_last_line() -> None:
    code = ENDS + "from boxscore.__main__ import main_program; main_program(); print('later')"
    status, output, _ = run_python(["-c", code])
    assert (status, output.splitlines()[1:]) == (0, ["the end"])


def test_a_host_goes_on_after_the_program() -> None:
    code = (
        ENDS
        + "from boxscore.__main__ import main_program\ndef host(): main_program()\nhost(); print('later')"
    )
    status, output, _ = run_python(["-c", code])
    assert (status, output.splitlines()[1:]) == (0, ["later", "the end"])
