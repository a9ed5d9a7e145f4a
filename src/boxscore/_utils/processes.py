"""Run tasks in forked processes, for work that holds the GIL, or in threads.

Conventions
-----------
- The command line forks, because it owns its process. In Python, ``workers="auto"`` only forks if this is
  safe (:func:`may_fork`), because threads and devices of a training process do not survive a fork. An
  explicit number of ``workers`` always forks.
- Children write their results to an unnamed file, because a pipe only buffers 64 KiB. A pipe signals that the
  file is complete. The exit status is not reliable: the host may ignore SIGCHLD, or have a handler that waits
  for every child.
- If a child fails, dies or takes too long, or cannot be forked, the parent runs the task.
- The parent waits for every child, but not forever: a child that hangs is killed and, if needed, abandoned.
- On Linux, the system kills the children if the parent is killed.
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, Generic, Literal, TypeVar, cast

from boxscore._utils import checks, files
from boxscore._utils.records import NamedTuple, mapped_pickle, write_pickle
from boxscore.errors import InputError

Item = TypeVar("Item")
Result = TypeVar("Result")

Workers = int | Literal["auto"]
"""Number of processes, or ``"auto"``: one per CPU core if forking is safe, otherwise only this one."""

NOT_TO_BE_FORKED = (
    *("torch", "tensorflow", "jax", "paddle", "mindspore", "mxnet", "cupy", "onnxruntime", "numba.cuda"),
    *("mpi4py", "grpc", "ray", "gevent", "eventlet"),
)
"""Modules with threads, devices or an event loop that may not survive a fork; with them, ``"auto"`` is 1."""

LEAST_SECONDS = 30.0
PATIENCE = 5.0
"""Time limit of a child, as a multiple of the time that the parent took for its own chunk."""

LAST_SECONDS = 5.0
"""Time limit in seconds for a child to exit after its result is complete, and after it is killed."""

DONE = b"1"

CONTROL_GROUPS = Path("/sys/fs/cgroup")

SET_PARENT_DEATH_SIGNAL = 1
"""Value of ``PR_SET_PDEATHSIG`` for ``prctl`` of Linux."""


def worker_count(workers: Workers, *, name: str = "workers") -> int:
    """Return the number of processes; ``"auto"`` may differ between calls."""
    if workers == "auto":
        return available_processors() if may_fork() else 1
    given: object = workers
    if isinstance(given, str):
        raise InputError(name, 'be a whole number or "auto"', got=repr(given)[:60])
    return checks.whole_number(workers, 1, name=name, high=checks.MOST_WORKERS)


def available_processors() -> int:
    """Return the number of CPU cores available to this process, as far as its container may use them."""
    return max(1, math.ceil(min(_cores(), _quota())))


def _cores() -> int:
    """Return the number of CPU cores on which this process may run."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@functools.cache
def _quota() -> float:
    """Return the cores that control groups of Linux allow, as containers limit them, or infinity."""
    try:
        own = Path("/proc/self/cgroup").read_text(encoding="utf-8").rpartition("0::/")[2].strip()
    except (OSError, ValueError):
        return math.inf
    # In version 2, the limits of all groups above apply too. In version 1, a container sees its own group.
    below = [CONTROL_GROUPS / own, *(CONTROL_GROUPS / own).parents]
    files = [(folder / "cpu.max",) for folder in below if folder.is_relative_to(CONTROL_GROUPS)]
    version_1 = CONTROL_GROUPS / "cpu"
    limits = [math.inf]
    for paths in (*files, (version_1 / "cpu.cfs_quota_us", version_1 / "cpu.cfs_period_us")):
        # Not there, or "max", or -1: no limit.
        with contextlib.suppress(OSError, ValueError, ZeroDivisionError):
            time_used, period = map(int, " ".join(path.read_text(encoding="utf-8") for path in paths).split())
            limits += [time_used / period] if time_used > 0 else []
    return min(limits)


def idle_processors() -> int:
    """Return about how many of them have nothing to do, this one's included; at least 1.

    Other programs may run on any of the system's, so their number counts in proportion.
    """
    available = available_processors()
    try:
        words = Path("/proc/loadavg").read_text(encoding="utf-8").split()
        running = int(words[3].partition("/")[0])  # right now, this process included
    except (OSError, ValueError, IndexError):  # not Linux, or hidden
        return available
    others = max(running - 1, 0) * available / max(os.cpu_count() or 1, available)
    return max(1, available - round(others))


def may_fork() -> bool:
    """Whether a fork of this process seems safe.

    This requires Linux and a process with a single thread that is not a daemon and did not import any of
    :data:`NOT_TO_BE_FORKED`. Threads of OpenBLAS are allowed, because it ends them before a fork.
    """
    return (
        sys.platform == "linux"
        and threading.current_thread() is threading.main_thread()
        and len(sys._current_frames()) == 1  # includes threads started by C code, unlike threading.enumerate
        and not any(name in sys.modules for name in NOT_TO_BE_FORKED)
        and not _is_daemon()
        and _system_threads() <= 1 + _most_blas_threads()
    )


def _is_daemon() -> bool:
    """Whether this is a daemon of multiprocessing or billiard (Celery), which must not have children."""
    modules = (sys.modules.get(f"{name}.process") for name in ("multiprocessing", "billiard"))
    return any(module is not None and module.current_process().daemon for module in modules)


def _system_threads() -> int:
    try:
        with os.scandir("/proc/self/task") as threads:
            return sum(1 for _ in threads)
    except OSError:  # not mounted
        return 1


def _most_blas_threads() -> int:
    """Return the maximum number of additional threads of the OpenBLAS copies in NumPy and SciPy."""
    libraries = 1 + ("scipy.linalg" in sys.modules)
    return libraries * (_cores() - 1)


class _Child(NamedTuple):
    """A child process, the file for its result, and the pipe that signals completion."""

    process: int
    file: BinaryIO
    pipe: int


@contextlib.contextmanager
def quiet_children() -> Iterator[None]:
    """Start processes in this context that do not print anything on an interrupt.

    Ctrl-C in a terminal reaches the children too; they would print tracebacks, and warnings about semaphores.
    An interrupt of this process is delayed until they have started.
    """
    from multiprocessing import resource_tracker

    # Children inherit this warning filter.
    before = os.environ.get("PYTHONWARNINGS")
    os.environ["PYTHONWARNINGS"] = ",".join(filter(None, [before, "ignore:resource_tracker"]))
    # Block the interrupt until the children have started.
    masks = hasattr(signal, "pthread_sigmask")
    if masks:
        resource_tracker.ensure_running()  # start it now; starting it later would unblock interrupts
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT]) if masks else set()
    try:
        yield
    finally:
        if masks:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if before is None:
            del os.environ["PYTHONWARNINGS"]
        else:
            os.environ["PYTHONWARNINGS"] = before


class Forked(Generic[Result]):
    """Run tasks in forked processes, starting immediately; the caller must call ``close``.

    Parameters
    ----------
    tasks : sequence of callables
        Their results must be picklable.
    least_seconds : float, default 30
        Minimum time limit of a child, see :func:`time_limit`.
    """

    def __init__(
        self, tasks: Sequence[Callable[[], Result]], *, least_seconds: float = LEAST_SECONDS
    ) -> None:
        self._tasks = tasks
        self._least, self._started = least_seconds, time.monotonic()
        self._children: dict[int, _Child] = {}
        self._key = files.begin(functools.partial(_kill, self._children))
        for number, task in enumerate(tasks if hasattr(os, "fork") else []):
            # Ignore too many processes or files, or a subinterpreter; an interrupt must not lose a child.
            with contextlib.suppress(OSError, RuntimeError), _without_interrupts() as mask:
                self._children[number] = _start(task, mask)

    def __del__(self) -> None:
        """Close the object if an interrupt prevented this."""
        if "_key" in vars(self):  # nothing is forked before
            self.close()

    def close(self) -> None:
        """End all processes; kill those still running, because their results are no longer needed."""
        for number in list(self._children):
            with _without_interrupts():
                self._end(number, _wait(self._children[number].pipe, 0))
        files.forget(self._key)

    def results(self) -> list[Result]:
        """Wait for the tasks and return their results in order; run failed tasks again, which may raise."""
        now = time.monotonic()
        deadline = now + time_limit(now - self._started, least=self._least)
        return [self._result(number, deadline) for number in range(len(self._tasks))]

    def _result(self, number: int, deadline: float) -> Result:
        if number in self._children:
            child = self._children[number]
            signalled = _wait(child.pipe, max(deadline - time.monotonic(), 0))
            try:
                if signalled == DONE:
                    return cast(Result, mapped_pickle(child.file))
            except (OSError, MemoryError):
                pass  # not enough memory for all results; run the task after the children are gone
            finally:
                with _without_interrupts():
                    self._end(number, signalled)
        return self._tasks[number]()

    def _end(self, number: int, signalled: bytes | None) -> None:
        """Remove a child; kill it first if it has not signaled completion."""
        process, file, pipe = self._children.pop(number)
        file.close()
        os.close(pipe)
        if signalled is None or not _has_ended(process):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
            _has_ended(process)


def _kill(children: Mapping[int, _Child]) -> None:
    """Kill all children when the program ends."""
    for child in list(children.values()):
        with contextlib.suppress(OSError):
            os.kill(child.process, signal.SIGKILL)
            os.waitpid(child.process, 0)


@contextlib.contextmanager
def _without_interrupts() -> Iterator[set[int]]:
    """Block Ctrl-C while an interrupt could lose track of a child; yield the previous signal mask."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield mask
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def time_limit(seconds: float, *, least: float) -> float:
    """Return the time limit for children, given the time for a chunk of the same size."""
    return max(least, PATIENCE * seconds)


def _has_ended(process: int) -> bool:
    """Wait for a child to exit, with a time limit."""
    deadline, pause = time.monotonic() + LAST_SECONDS, 0.0001
    while True:
        try:
            if os.waitpid(process, os.WNOHANG)[0]:
                return True
        except ChildProcessError:  # the host or the system has already waited for it
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
        pause = min(2 * pause, 0.05)


def _wait(pipe: int, seconds: float) -> bytes | None:
    """Wait for a child: return ``DONE``, empty if it ended without it, or None on timeout."""
    import select

    waiting = select.poll()
    waiting.register(pipe, select.POLLIN | select.POLLHUP)
    return os.read(pipe, 1) if waiting.poll(seconds * 1000) else None


def _start(task: Callable[[], object], mask: set[int]) -> _Child:
    """Fork a child that writes its result to a file, with the signal mask ``mask``."""
    file = _unnamed_file()
    try:
        pipe, write_end = os.pipe()
    except OSError:
        file.close()
        raise
    parent, threads = os.getpid(), len(sys._current_frames())
    try:
        with warnings.catch_warnings():
            # Python warns of forks with threads, but the child does not use the idle BLAS threads of NumPy.
            warnings.simplefilter("ignore", DeprecationWarning)
            process = os.fork()
    except (OSError, RuntimeError):
        file.close()
        os.close(pipe)
        os.close(write_end)
        raise
    if process:
        os.close(write_end)  # now, so that the next child does not inherit it
        return _Child(process, file, pipe)
    try:
        _end_with(parent)
        for number in (signal.SIGINT, signal.SIGTERM):
            if callable(signal.getsignal(number)):  # children must not run handlers of the parent
                signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if threads > 1 and sys.version_info < (3, 12):
            _renew_locks()
        write_pickle(task(), file)
        os.write(write_end, DONE)
    finally:
        os._exit(0)  # the parent repeats the task, and raises its error


def _end_with(parent: int) -> None:
    """Let the system kill this child when its parent ends or is killed."""
    if sys.platform == "linux":
        with contextlib.suppress(ImportError, OSError, AttributeError):
            import ctypes  # already imported by NumPy

            ctypes.CDLL(None).prctl(SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
        if os.getppid() != parent:  # the parent has already ended
            os._exit(0)


def _renew_locks() -> None:
    """Renew the locks of cached properties: this child would wait forever for a thread of its parent.

    Before Python 3.12, each property has a lock, held while the value of any object is computed.
    """
    import gc

    gc.unfreeze()  # frozen objects are not listed; this process has its own lists
    for each in gc.get_objects():
        if type(each) is functools.cached_property:
            vars(each)["lock"] = threading.RLock()


def _unnamed_file() -> BinaryIO:
    """Return an in-memory file if the system supports it, else a temporary file."""
    if hasattr(os, "memfd_create"):
        with contextlib.suppress(OSError):
            return os.fdopen(os.memfd_create("boxscore"), "w+b")
    import tempfile

    return cast(BinaryIO, tempfile.TemporaryFile())


# ---------------------------------------------------------------- threads


def in_threads(task: Callable[[Item], Result], items: Sequence[Item], *, workers: int) -> Iterator[Result]:
    """Yield the results of a task in order; if the system limits threads, use fewer or none."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(min(workers, max(len(items), 1))) as pool:
        waiting: list[Callable[[], Result]] = []
        for item in items:
            try:
                waiting.append(pool.submit(task, item).result)
            except RuntimeError:  # cannot start a thread; run the task when its result is needed
                waiting.append(functools.partial(task, item))
        for result in waiting:
            yield result()
