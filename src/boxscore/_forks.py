"""Doing a few things at once in forked processes, for work that holds the interpreter's lock.

Conventions
-----------
Only for a process that owns itself (the command line) or a caller who asked for ``workers``: a training
process has threads and devices that do not survive a fork. The children only decode text into arrays and
write them to a pipe. Where there is no ``fork``, or a child fails, its task is simply done here.
"""

from __future__ import annotations

import os
import pickle
import warnings
from collections.abc import Callable, Sequence
from typing import TypeVar

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
    results = []
    try:
        results.append(tasks[0]())
    finally:
        collected = [_collect(process, reader) for process, reader in children]
    for task, (succeeded, result) in zip(tasks[1:], collected, strict=True):
        results.append(result if succeeded else task())  # type: ignore[arg-type]
    return results


def _start(task: Callable[[], object]) -> tuple[int, int]:
    """Fork a child that writes its pickled result to a pipe; return its process id and the pipe's end."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        # Python warns of forking beside threads; NumPy's idle BLAS threads are not used by the child.
        warnings.simplefilter("ignore", DeprecationWarning)
        process = os.fork()
    if process:
        os.close(writer)
        return process, reader
    status = 1
    try:
        os.close(reader)
        with os.fdopen(writer, "wb") as pipe:
            pickle.dump(task(), pipe, protocol=5)
        status = 0
    except BaseException:
        status = 1  # whatever it was, the parent repeats the task and meets it there
    finally:
        os._exit(status)


def _collect(process: int, reader: int) -> tuple[bool, object]:
    """Read a child's result; the flag says whether it succeeded."""
    with os.fdopen(reader, "rb") as pipe:
        content = pipe.read()
    _, status = os.waitpid(process, 0)
    if status != 0:
        return False, None
    return True, pickle.loads(content)  # written by our own child a moment ago
