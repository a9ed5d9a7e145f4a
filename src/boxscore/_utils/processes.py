"""Run a few tasks in forked processes, for work that holds the interpreter's lock, or in threads.

Conventions
-----------
- The command line forks, because nothing else runs in its process. In Python ``workers="auto"`` does so only
  where it is safe (:func:`may_fork`): threads and devices of a training process do not survive a fork. A
  number of ``workers`` forks without asking.
- Children decode text into arrays and write them to an unnamed file, because a pipe holds only 64 KiB and
  would make both processes take turns. A pipe signals that the file is complete. The exit status would not
  do: a host may ignore SIGCHLD, or have a handler that waits for every child.
- A child that fails, dies or takes too long costs only time: its task is repeated in the parent, as is every
  task where there is no ``fork``, or the system refuses one.
- Every child is waited for, but not for ever: one that neither goes on nor ends is killed, and then left.
- On Linux the system ends the children of a process that is killed, which cannot do so itself.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import BinaryIO, Generic, Literal, TypeVar, cast

from boxscore._utils import checks, files
from boxscore._utils.records import NamedTuple, mapped_pickle, write_pickle
from boxscore.errors import InputError

Item = TypeVar("Item")
Result = TypeVar("Result")

Workers = int | Literal["auto"]
"""A number of processes, or ``"auto"``: one per processor where forking is safe, else this one alone."""

NOT_TO_BE_FORKED = (
    *("torch", "tensorflow", "jax", "paddle", "mindspore", "mxnet", "cupy", "onnxruntime", "numba.cuda"),
    *("mpi4py", "grpc", "ray", "gevent", "eventlet"),
)
"""Modules with threads, devices or an event loop that a fork may break: with any of them ``"auto"`` is 1."""

LEAST_SECONDS = 30.0
PATIENCE = 5.0
"""A child may take this many times as long as the parent took for its part."""

LAST_SECONDS = 5.0
"""How long a child may take to end after its result is there, and again after it was killed."""

DONE = b"1"

SET_PARENT_DEATH_SIGNAL = 1
"""What ``prctl`` of Linux calls it."""


def worker_count(workers: Workers, *, name: str = "workers") -> int:
    """Return a number of processes; what ``"auto"`` is may differ from call to call."""
    if workers == "auto":
        return available_processors() if may_fork() else 1
    given: object = workers
    if isinstance(given, str):
        raise InputError(name, 'be a whole number or "auto"', got=repr(given)[:60])
    return checks.whole_number(workers, 1, name=name, high=checks.MOST_WORKERS)


def available_processors() -> int:
    """Return how many processors this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def may_fork() -> bool:
    """Whether a fork of this process is safe, as far as can be seen.

    It is on Linux, in the main thread of a process that has no other, is no daemon, and has imported nothing
    of :data:`NOT_TO_BE_FORKED`. OpenBLAS ends its threads before a fork; any others are one too many.
    """
    return (
        sys.platform == "linux"
        and threading.current_thread() is threading.main_thread()
        and len(sys._current_frames()) == 1  # unlike threading.enumerate, with threads that C code started
        and not any(name in sys.modules for name in NOT_TO_BE_FORKED)
        and not _is_daemon()
        and _system_threads() <= 1 + _most_blas_threads()
    )


def _is_daemon() -> bool:
    """Whether this is a process that multiprocessing, or Celery's copy of it, forbids to have children."""
    modules = (sys.modules.get(f"{name}.process") for name in ("multiprocessing", "billiard"))
    return any(module is not None and module.current_process().daemon for module in modules)


def _system_threads() -> int:
    try:
        with os.scandir("/proc/self/task") as threads:
            return sum(1 for _ in threads)
    except OSError:  # not mounted
        return 1


def _most_blas_threads() -> int:
    """Return how many threads the OpenBLAS of NumPy, and that of SciPy, may have in addition to this one."""
    libraries = 1 + ("scipy.linalg" in sys.modules)
    return libraries * (available_processors() - 1)


class _Child(NamedTuple):
    """A process, the file for its result, and the pipe that signals its completion."""

    process: int
    file: BinaryIO
    pipe: int


@contextlib.contextmanager
def quiet_children() -> Iterator[None]:
    """Start processes that print nothing on an interrupt.

    A terminal's Ctrl-C reaches them too: they would print where they were. And they would warn of the
    semaphores that they then remove. An interrupt of this process waits until they have started.
    """
    from multiprocessing import resource_tracker

    # Children inherit this filter of warnings.
    before = os.environ.get("PYTHONWARNINGS")
    os.environ["PYTHONWARNINGS"] = ",".join(filter(None, [before, "ignore:resource_tracker"]))
    # Block the interrupt; it is delivered once they have started.
    masks = hasattr(signal, "pthread_sigmask")
    if masks:
        resource_tracker.ensure_running()  # else it starts later, and lets interrupts through
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
    """Tasks that run in forked processes from now on; the caller must call ``close``.

    Parameters
    ----------
    tasks : sequence of callables
        Their results must pickle.
    least_seconds : float, default 30
        How long :meth:`results` waits at least for a child, as :func:`time_limit` explains.
    """

    def __init__(
        self, tasks: Sequence[Callable[[], Result]], *, least_seconds: float = LEAST_SECONDS
    ) -> None:
        self._tasks = tasks
        self._least, self._started = least_seconds, time.monotonic()
        self._children: dict[int, _Child] = {}
        self._key = files.begin(functools.partial(_kill, self._children))
        for number, task in enumerate(tasks if hasattr(os, "fork") else []):
            # Too many processes or files, or a subinterpreter, is no error; an interrupt loses no child.
            with contextlib.suppress(OSError, RuntimeError), _uninterrupted() as mask:
                self._children[number] = _start(task, mask)

    def __del__(self) -> None:
        """End what an interrupt kept from being closed: before it could be, or halfway."""
        self.close()

    def close(self) -> None:
        """End every process; one that still runs is killed, because its result is no longer needed."""
        for number in list(self._children):
            with _uninterrupted():
                self._end(number, _wait(self._children[number].pipe, 0))
        files.forget(self._key)

    def results(self) -> list[Result]:
        """Wait for the tasks and return their results, in order; a failed task is repeated and may raise."""
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
                pass  # no memory for its pages next to those of others: the task runs when these are gone
            finally:
                with _uninterrupted():
                    self._end(number, signalled)
        return self._tasks[number]()

    def _end(self, number: int, signalled: bytes | None) -> None:
        """Remove a child; one that has not signalled still runs, and is killed first."""
        process, file, pipe = self._children.pop(number)
        file.close()
        os.close(pipe)
        if signalled is None or not _has_ended(process):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
            _has_ended(process)


def _kill(children: Mapping[int, _Child]) -> None:
    """End every process, in a program that ends."""
    for child in list(children.values()):
        with contextlib.suppress(OSError):
            os.kill(child.process, signal.SIGKILL)
            os.waitpid(child.process, 0)


@contextlib.contextmanager
def _uninterrupted() -> Iterator[set[int]]:
    """Let Ctrl-C wait, for moments in which a process would be forgotten; yields what waited before."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield mask
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def time_limit(seconds: float, *, least: float) -> float:
    """Return the seconds to wait for children whose parts are as long as one that took ``own`` seconds."""
    return max(least, PATIENCE * seconds)


def _has_ended(process: int) -> bool:
    """Wait for a child's end, with patience but not for ever."""
    deadline, pause = time.monotonic() + LAST_SECONDS, 0.0001
    while True:
        try:
            if os.waitpid(process, os.WNOHANG)[0]:
                return True
        except ChildProcessError:  # the host, or the system, has waited for it
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
        pause = min(2 * pause, 0.05)


def _wait(pipe: int, seconds: float) -> bytes | None:
    """Wait for a child: ``DONE``, empty if it ended without it, None when time is up."""
    import select

    waiting = select.poll()
    waiting.register(pipe, select.POLLIN | select.POLLHUP)
    return os.read(pipe, 1) if waiting.poll(seconds * 1000) else None


def _start(task: Callable[[], object], mask: set[int]) -> _Child:
    """Fork a child that writes its result to a file, and lets the signals wait that ``mask`` has."""
    file = _unnamed_file()
    try:
        pipe, write_end = os.pipe()
    except OSError:
        file.close()
        raise
    parent = os.getpid()
    try:
        with warnings.catch_warnings():
            # Python warns of forking with threads; NumPy's idle BLAS threads are not used by the child.
            warnings.simplefilter("ignore", DeprecationWarning)
            process = os.fork()
    except (OSError, RuntimeError):
        file.close()
        os.close(pipe)
        os.close(write_end)
        raise
    if process:
        os.close(write_end)  # immediately: the next child must not keep it open
        return _Child(process, file, pipe)
    try:
        _end_with(parent)
        for number in (signal.SIGINT, signal.SIGTERM):
            if callable(signal.getsignal(number)):  # a handler of the parent's is not for its children
                signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        write_pickle(task(), file)
        os.write(write_end, DONE)
    finally:
        os._exit(0)  # the parent repeats the task and meets any error there


def _end_with(parent: int) -> None:
    """Let the system kill this child when its parent ends, also if that is killed."""
    if sys.platform == "linux":
        with contextlib.suppress(ImportError, OSError, AttributeError):
            import ctypes  # NumPy has imported it

            ctypes.CDLL(None).prctl(SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
        if os.getppid() != parent:  # it has ended already
            os._exit(0)


def _unnamed_file() -> BinaryIO:
    """In memory where the system has such files, else a temporary one."""
    if hasattr(os, "memfd_create"):
        with contextlib.suppress(OSError):
            return os.fdopen(os.memfd_create("boxscore"), "w+b")
    import tempfile

    return cast(BinaryIO, tempfile.TemporaryFile())


# ---------------------------------------------------------------- threads


def in_threads(task: Callable[[Item], Result], items: Sequence[Item], *, workers: int) -> Iterator[Result]:
    """Yield the results in order; where the system gives fewer threads, with those, or with none."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(min(workers, max(len(items), 1))) as pool:
        waiting: list[Callable[[], Result]] = []
        for item in items:
            try:
                waiting.append(pool.submit(task, item).result)
            except RuntimeError:  # no thread can be started: reading the result does the work
                waiting.append(functools.partial(task, item))
        for result in waiting:
            yield result()
