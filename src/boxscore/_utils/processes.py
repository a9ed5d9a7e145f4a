"""Doing a few things at once in forked processes, for work that holds the interpreter's lock.

Conventions
-----------
Only for a process that owns itself (the command line) or a caller who asked for ``workers``: a training
process has threads and devices that do not survive a fork. The children only decode text into arrays and
write them to a file without a name: a pipe would hold 64 KiB and make the two take turns. Where there is no
``fork``, or a child fails, its task is simply done here.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from typing import BinaryIO, Generic, TypeVar, cast

__all__ = ["Forked"]

Result = TypeVar("Result")


class Forked(Generic[Result]):
    """Tasks that run in processes of their own from now on; whoever starts them calls ``close``.

    Parameters
    ----------
    tasks : sequence of callables
        Their results must pickle.
    """

    def __init__(self, tasks: Sequence[Callable[[], Result]]) -> None:
        self._tasks = tasks
        self._children = [_start(task) for task in tasks] if hasattr(os, "fork") else []

    def close(self) -> None:
        """Leave no process behind."""
        while self._children:
            process, file = self._children.pop()
            with file:
                os.waitpid(process, 0)

    def results(self) -> list[Result]:
        """Wait for the tasks and return their results, in order.

        A task that fails in its process is done again here, so that its exception is raised here.
        """
        found: list[tuple[bool, object]] = [(False, None)] * len(self._tasks)
        for number in range(len(self._children)):
            process, file = self._children.pop(0)
            found[number] = _collect(process, file)
        return [
            cast(Result, result) if succeeded else task()
            for task, (succeeded, result) in zip(self._tasks, found, strict=True)
        ]


def _start(task: Callable[[], object]) -> tuple[int, BinaryIO]:
    """Fork a child that writes its result to a file; return its process id and the file."""
    file = _unnamed_file()
    with warnings.catch_warnings():
        # Python warns of forking beside threads; NumPy's idle BLAS threads are not used by the child.
        warnings.simplefilter("ignore", DeprecationWarning)
        process = os.fork()
    if process:
        return process, file
    status = 1
    try:
        _write(task(), file)
        status = 0
    except BaseException:
        status = 1  # whatever it was, the parent repeats the task and meets it there
    finally:
        os._exit(status)


def _unnamed_file() -> BinaryIO:
    """In memory where the system has such files, else a temporary one."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("boxscore"), "w+b")
    import tempfile

    return cast(BinaryIO, tempfile.TemporaryFile())


def _write(result: object, file: BinaryIO) -> None:
    """Write a pickle, its arrays behind it as they are in memory."""
    import pickle

    arrays: list[pickle.PickleBuffer] = []
    pickled = pickle.dumps(result, protocol=5, buffer_callback=arrays.append)
    views = [array.raw() for array in arrays]
    pickle.dump([len(pickled), *(view.nbytes for view in views)], file)
    file.write(pickled)
    for view in views:
        file.write(view)
    file.flush()


def _collect(process: int, file: BinaryIO) -> tuple[bool, object]:
    """Wait for a child and return its result, arrays in the file's pages; the flag says if it succeeded."""
    import mmap
    import pickle

    with file:
        _, status = os.waitpid(process, 0)
        if status != 0:
            return False, None
        file.seek(0)
        sizes: list[int] = pickle.load(file)  # written by our own child a moment ago
        content = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        start, parts = file.tell(), []
        for size in sizes:
            parts.append(content[start : start + size])
            start += size
        return True, pickle.loads(parts[0], buffers=parts[1:])
