"""``workers="auto"``: this process is forked where that is safe, and only there."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boxscore
from boxscore._utils import processes
from boxscore._utils.processes import NOT_TO_BE_FORKED, worker_count
from boxscore.errors import InputError

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks on Linux only")

ANSWER = "print(processes.may_fork(), flush=True)"


def answer(code: str, *options: str) -> str:
    """Run code in a fresh interpreter, which turns warnings into errors, and return what it prints."""
    start = "import sys, numpy\nfrom boxscore._utils import processes\n"
    done = subprocess.run(
        [sys.executable, "-W", "error", *options, "-c", start + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stderr == ""
    return done.stdout.strip()


def test_a_plain_program_forks() -> None:
    assert answer(ANSWER) == "True"


@pytest.mark.long
@pytest.mark.parametrize("name", NOT_TO_BE_FORKED)
def test_not_beside_a_framework(name: str) -> None:
    assert answer(f"sys.modules[{name!r}] = sys\n{ANSWER}") == "False"


WHERE = {
    "in another thread": f"""
        import threading
        thread = threading.Thread(target=lambda: {ANSWER})
        thread.start(); thread.join()
        """,
    "beside another thread": f"""
        import threading
        end = threading.Event()
        threading.Thread(target=end.wait).start()
        {ANSWER}
        end.set()
        """,
    "beside a thread that the threading module does not know": f"""
        import _thread, time
        started = []
        def sleep():
            started.append(1)
            time.sleep(100)
        _thread.start_new_thread(sleep, ())
        while not started: time.sleep(0.01)
        {ANSWER}
        """,
    "in a daemon": f"""
        import multiprocessing
        def ask(): {ANSWER}
        process = multiprocessing.get_context("fork").Process(target=ask, daemon=True)
        process.start(); process.join()
        """,
}


@pytest.mark.long
@pytest.mark.parametrize("where", WHERE)
def test_not_where_it_is_not_safe(where: str) -> None:
    assert answer(WHERE[where]) == "False"


@pytest.mark.long
def test_a_thread_that_has_ended_is_no_harm() -> None:
    code = f"""
        import glob, threading, time
        tasks = lambda: len(glob.glob("/proc/self/task/*"))
        before, thread = tasks(), threading.Thread(target=int)
        thread.start(); thread.join()
        while tasks() > before: time.sleep(0.01)  # the system may take a moment longer than Python
        {ANSWER}
        """
    assert answer(code) == "True"


def test_a_child_that_is_no_daemon_forks() -> None:
    code = f"""
        import multiprocessing
        def ask(): {ANSWER}
        process = multiprocessing.get_context("fork").Process(target=ask)
        process.start(); process.join()
        """
    assert answer(code) == "True"


def test_a_number_is_taken_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "may_fork", lambda: False)
    assert [worker_count(3), worker_count("auto")] == [3, 1]
    monkeypatch.setattr(processes, "may_fork", lambda: True)
    monkeypatch.setattr(processes, "available_processors", lambda: 7)
    assert [worker_count(3), worker_count("auto")] == [3, 7]


@pytest.mark.parametrize(
    ("load", "cores", "idle"),
    [
        ("0.1 0.1 0.1 1/300 9", 4, 4),  # only this process
        ("9 9 9 0/300 9", 4, 4),  # not counted
        ("0.1 0.1 0.1 3/300 9", 4, 2),
        ("0.1 0.1 0.1 9/300 9", 4, 1),  # at least this one
        ("0.1 0.1 0.1 9/300 9", 16, 2),  # 8 of 16 are taken: 2 of these 4, as far as is known
        ("0 0 0", 4, 4),
        ("", 4, 4),
        (None, 4, 4),  # not Linux
    ],
)
def test_idle_processors(load: str | None, cores: int, idle: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(path: Path, **_: Any) -> str:
        assert str(path) == "/proc/loadavg"
        if load is None:
            raise FileNotFoundError
        return load

    monkeypatch.setattr(processes, "available_processors", lambda: 4)
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    monkeypatch.setattr(Path, "read_text", read)
    assert processes.idle_processors() == idle


@pytest.mark.parametrize(
    ("files", "available"),
    [
        ({}, 8),  # not Linux, or hidden
        ({"cpu.max": "max 100000"}, 8),
        ({"cpu.max": "200000 100000"}, 2),  # docker run --cpus 2
        ({"cpu.max": "150000 100000\n"}, 2),  # a part of another
        ({"cpu.max": "20000 100000"}, 1),
        ({"cpu.max": "9000000 100000"}, 8),  # more than there are
        ({"a/b/cpu.max": "max 100000", "a/cpu.max": "300000 100000"}, 3),  # a group above
        ({"other/cpu.max": "100000 100000"}, 8),
        ({"cpu/cpu.cfs_quota_us": "400000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 4),  # version 1
        ({"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, 8),
        ({"cpu/cpu.cfs_quota_us": "400000"}, 8),
        ({"cpu.max": "nonsense"}, 8),
        ({"cpu.max": "100000 0"}, 8),
    ],
)
def test_a_container_that_may_use_less(
    files: dict[str, str], available: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content, encoding="ascii")
    whole, read = "9:cpu:/\n0::/a/b\n", Path.read_text

    def told(path: Path, **options: Any) -> str:
        return whole if str(path) == "/proc/self/cgroup" else read(path, **options)

    monkeypatch.setattr(Path, "read_text", told)
    monkeypatch.setattr(processes, "CONTROL_GROUPS", tmp_path)
    monkeypatch.setattr(processes, "_cores", lambda: 8)
    monkeypatch.setattr(processes, "_quota", processes._quota.__wrapped__)
    assert processes.available_processors() == available
    assert processes._most_blas_threads() % 7 == 0  # BLAS knows of no limit


@pytest.mark.parametrize("value", ["Auto", "2", "", 0, -1, 1.5, None, True])
def test_anything_else_is_refused(value: Any) -> None:
    with pytest.raises(InputError, match="workers"):
        worker_count(value)
    truth = boxscore.GroundTruth.from_arrays([1], ["a"], [[0, 0, 9, 9]])
    found = boxscore.Detections.from_arrays([1], ["a"], [[0, 0, 9, 9]], [0.5])
    with pytest.raises(InputError, match="workers"):
        boxscore.evaluate(truth, found, workers=value)


def test_a_subinterpreter_that_may_not_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> int:
        raise RuntimeError("fork not supported for isolated subinterpreters")

    monkeypatch.setattr(os, "fork", refuse)
    forked = processes.Forked([lambda: 5])
    assert forked.results() == [5]
    forked.close()


EVALUATION = """
    import boxscore, numpy as np, os
    from boxscore.formats import _json
    from boxscore._utils import processes
    _json.PART_BYTES = 1000
    forks = []
    fork = os.fork
    os.fork = lambda: forks.append(1) or fork()
    processes.available_processors = lambda: 3
    {before}
    result = boxscore.evaluate("truth.json", "found.json")
    print(repr(result["AP"]), len(forks), flush=True)
"""


@pytest.fixture
def files(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A ground truth and results of 2,000 boxes, in the working folder."""
    random = np.random.default_rng(5)
    image, label = random.integers(0, 50, 2000), random.integers(0, 4, 2000)
    boxes = np.column_stack([random.uniform(0, 90, (2000, 2)), random.uniform(5, 40, (2000, 2))])
    truth = boxscore.GroundTruth.from_arrays(
        image, label, boxes, box_format="xywh", images=range(50), categories=range(4)
    )
    found = boxscore.Detections.from_arrays(image, label, boxes + 1, random.random(2000), box_format="xywh")
    monkeypatch.chdir(tmp_path)
    boxscore.save_as(truth, "truth.json")
    boxscore.save_as(found, "found.json")


@pytest.mark.long
@pytest.mark.usefixtures("files")
def test_files_are_read_by_forks_where_it_is_safe() -> None:
    expected = repr(boxscore.evaluate("truth.json", "found.json", workers=1)["AP"])
    value, forks = answer(EVALUATION.format(before="")).split()
    assert value == expected
    assert int(forks) > 0
    for before in ("sys.modules['torch'] = sys", "processes.may_fork = lambda: False"):
        assert answer(EVALUATION.format(before=before)).split() == [expected, "0"]
