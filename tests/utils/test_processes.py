"""Tasks in processes of their own: whatever becomes of a child, its result is had and nothing is left behind."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from boxscore._utils import processes
from boxscore._utils.files import end_all
from boxscore._utils.processes import Forked

PARENT = os.getpid()


def in_child(act: Callable[[], object]) -> Callable[[], str]:
    """Make a task that acts in a child, and gives where it was done."""

    def task() -> str:
        if os.getpid() == PARENT:
            return "here"
        act()
        return "child"

    return task


def nothing() -> None:
    """Do nothing."""


def fail() -> None:
    raise ValueError("only in the child")


def die() -> None:
    """End as the kernel's out-of-memory killer ends a process."""
    os.kill(os.getpid(), signal.SIGKILL)


def hang() -> None:
    time.sleep(1000)


def stop() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


@pytest.fixture(autouse=True)
def no_process_is_left(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fail when a child is left, running or as a zombie, or an open file."""
    before = _open_files(), _children()
    yield
    monkeypatch.undo()
    if not before[1]:
        with pytest.raises(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)
    assert (_open_files(), _children()) == before


def _children() -> set[str]:
    """Children that other tests may have left, such as Python's tracker of shared memory."""
    lists = Path("/proc/self/task").glob("*/children")
    return {child for one in lists for child in one.read_text(encoding="ascii").split()}


def _open_files() -> int:
    folder = Path("/proc/self/fd")
    return len(list(folder.iterdir())) if folder.is_dir() else 0


@pytest.fixture
def ignored_children() -> Iterator[None]:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGCHLD, before)


def run(*tasks: Callable[[], Any], seconds: float = 20.0) -> list[Any]:
    """Return the results; the time limit is ``seconds``."""
    forked = Forked(tasks, least_seconds=seconds)
    try:
        return forked.results()
    finally:
        forked.close()


@pytest.mark.long
@pytest.mark.parametrize(
    ("act", "where"), [(nothing, "child"), (fail, "here"), (die, "here"), (hang, "here"), (stop, "here")]
)
def test_what_becomes_of_a_child(act: Callable[[], object], where: str) -> None:
    seconds = 3.0 if act in (hang, stop) else 20.0
    started = time.perf_counter()
    assert run(in_child(act), in_child(nothing), seconds=seconds) == [where, "child"]
    assert time.perf_counter() - started < 60


@pytest.mark.long
@pytest.mark.usefixtures("ignored_children")
@pytest.mark.parametrize("act", [nothing, fail, die, hang])
def test_children_that_nobody_waits_for(act: Callable[[], object]) -> None:
    """A host that ignores SIGCHLD has its children taken away by the system."""
    where = "child" if act is nothing else "here"
    seconds = 3.0 if act is hang else 20.0
    assert run(in_child(act), in_child(nothing), seconds=seconds) == [where, "child"]
    forked = Forked([in_child(act)])
    forked.close()


@pytest.mark.long
def test_a_host_that_waits_for_every_child() -> None:
    """Its handler takes our children's ends before we ask for them."""

    def take_all(*_: object) -> None:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            pass

    before = signal.signal(signal.SIGCHLD, take_all)
    try:
        assert run(in_child(nothing), in_child(fail), in_child(die)) == ["child", "here", "here"]
    finally:
        signal.signal(signal.SIGCHLD, before)


@pytest.mark.long
def test_interrupted_waits() -> None:
    """A signal that is handled while we wait changes nothing."""
    rings: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda *_: rings.append(1))
    signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
    try:
        assert run(in_child(lambda: time.sleep(0.3))) == ["child"]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert rings


@pytest.mark.long
def test_ctrl_c_while_waiting_leaves_nothing() -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    forked = Forked([in_child(hang), in_child(hang)])
    before = signal.signal(signal.SIGALRM, interrupt)
    started = time.perf_counter()
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(KeyboardInterrupt):
            forked.results()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        forked.close()
    assert time.perf_counter() - started < 60


@pytest.mark.long
def test_close_does_not_wait_for_what_nobody_wants() -> None:
    started = time.perf_counter()
    Forked([in_child(hang), in_child(nothing)]).close()
    assert time.perf_counter() - started < 60


@pytest.mark.parametrize("what", ["fork", "memfd_create", "pipe"])
def test_systems_that_refuse(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise OSError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(os, what, refuse, raising=False)
    assert run(in_child(nothing)) == ["child" if what == "memfd_create" else "here"]


@pytest.mark.long
@pytest.mark.parametrize("what", ["fork", "pipe"])
def test_systems_that_refuse_some(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit of processes or of open files is reached on the way; those that run are waited for."""
    function, calls = getattr(os, what), [0]

    def refuse() -> Any:
        calls[0] += 1
        if calls[0] > 2:
            raise OSError(11, "Resource temporarily unavailable")
        return function()

    monkeypatch.setattr(os, what, refuse)
    assert run(*[in_child(nothing)] * 4) == ["child", "child", "here", "here"]


@pytest.mark.long
def test_a_child_that_does_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has given its result and hangs on the way out: it is killed, and waited for."""
    leave = os._exit

    def hang_first(status: int) -> None:
        time.sleep(1000)
        leave(status)

    monkeypatch.setattr(os, "_exit", hang_first)
    monkeypatch.setattr(processes, "LAST_SECONDS", 0.2)
    started = time.perf_counter()
    assert run(in_child(nothing)) == ["child"]
    assert time.perf_counter() - started < 60


@pytest.mark.long
def test_a_result_that_cannot_be_mapped(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(processes, "mapped_pickle", fail)
    assert run(in_child(nothing), in_child(nothing)) == ["here", "here"]


def test_a_program_that_leaves_kills_its_children() -> None:
    forked = Forked([in_child(hang), in_child(hang)])
    pids = [child.process for child in forked._children.values()]
    end_all()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    forked.close()


@pytest.mark.skipif(sys.platform != "linux", reason="a service of Linux")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_program_that_is_killed_leaves_no_child(number: int) -> None:
    code = """
import time
from boxscore._utils.processes import Forked
forked = Forked([lambda: time.sleep(1000), lambda: time.sleep(1000)])
print(*(child.process for child in forked._children.values()), flush=True)
forked.results()
"""
    program = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert program.stdout is not None
    pids = [int(pid) for pid in program.stdout.readline().split()]
    assert len(pids) == 2
    program.send_signal(number)
    program.communicate()
    deadline = time.monotonic() + 120
    while any(map(_runs, pids)) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not any(map(_runs, pids))


def _runs(pid: int) -> bool:
    """Whether a process is there and no zombie, whose end its new parent has not asked for."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(") ")[2][0]
    except OSError:
        return False
    return state != "Z"


@pytest.mark.parametrize("what", ["fork", "memfd_create"])
def test_systems_that_do_not_have_it(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, what, raising=False)
    assert run(in_child(nothing)) == ["here" if what == "fork" else "child"]


def test_a_result_that_does_not_pickle() -> None:
    assert run(lambda: lambda: 3)[0]() == 3


def test_an_error_of_a_task_is_raised_here() -> None:
    def task() -> None:
        raise ValueError(f"in {os.getpid()}")

    with pytest.raises(ValueError, match=f"in {PARENT}"):
        run(task)


def test_arrays_come_back_as_they_were() -> None:
    values = {"float": np.arange(9.0).reshape(3, 3), "none": np.empty(0), "text": np.array(["a", None])}
    (result,) = run(lambda: values)
    for name, array in values.items():
        assert result[name].dtype == array.dtype
        assert result[name].tolist() == array.tolist()


def test_the_time_limit_grows_with_the_work() -> None:
    """A reader that took a minute for its own part has patience for the others."""
    assert processes.time_limit(0.0, least=20.0) == 20.0
    assert processes.time_limit(60.0, least=20.0) > 60.0


def test_a_property_that_another_thread_computes() -> None:
    """Before Python 3.12 a property has one lock for all objects, which the child would find taken."""
    begun, end = threading.Event(), threading.Event()

    class Slow:
        @functools.cached_property
        def value(self) -> str:
            begun.set()
            end.wait()
            return "value"

    thread = threading.Thread(target=lambda: Slow().value)
    thread.start()
    begun.wait()
    end_of_child = in_child(lambda: end.set() or Slow().value)
    forked = Forked([end_of_child], least_seconds=20.0)
    end.set()
    thread.join()
    assert forked.results() == ["child"]
    forked.close()
