"""Doing a few things at once in forked processes, for work that holds the interpreter's lock.

Conventions
-----------
Only for a process that owns itself (the command line) or a caller who asked for ``workers``: a training
process has threads and devices that do not survive a fork. The children only decode text into arrays and
write them to an unnamed file: a pipe would hold 64 KiB and make the two take turns. Where there is no
``fork``, or a child fails, its task is simply done here.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from typing import IO, TypeVar

__all__ = ["run_forked"]

Result = TypeVar("Result")


def run_forked(tasks: Sequence[Callable[[], Result]]) -> list[Result]:
    """Run the first task here and each other one in a process of its own.

    Parameters
    ----------
    tasks : sequence of callables
        Their results must pickle. What a task raises here is raised; one that fails in a child is run
        again here, so that the caller sees the same exception.

    Returns
    -------
    list
        The results, in order.
    """
    if not hasattr(os, "fork"):
        return [task() for task in tasks]
    children = [_start(task) for task in tasks[1:]]
    try:
        results = [tasks[0]()]
    finally:
        collected = [_collect(process, file) for process, file in children]
    for task, (succeeded, result) in zip(tasks[1:], collected, strict=True):
        results.append(result if succeeded else task())  # type: ignore[arg-type]
    return results


def _start(task: Callable[[], object]) -> tuple[int, IO[bytes]]:
    """Fork a child that writes its pickled result to a file; return its process id and the file."""
    import pickle
    import tempfile

    file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by _collect
    with warnings.catch_warnings():
        # Python warns of forking beside threads; NumPy's idle BLAS threads are not used by the child.
        warnings.simplefilter("ignore", DeprecationWarning)
        process = os.fork()
    if process:
        return process, file
    status = 1
    try:
        pickle.dump(task(), file, protocol=5)
        file.flush()
        status = 0
    except BaseException:
        status = 1  # whatever it was, the parent repeats the task and meets it there
    finally:
        os._exit(status)


def _collect(process: int, file: IO[bytes]) -> tuple[bool, object]:
    """Wait for a child and read its result; the flag says whether it succeeded."""
    import pickle

    with file:
        _, status = os.waitpid(process, 0)
        if status != 0:
            return False, None
        file.seek(0)
        return True, pickle.load(file)  # written by our own child a moment ago
