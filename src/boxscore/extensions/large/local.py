"""Partitions on one machine: how large they may be, and processes that match and score them.

Conventions
-----------
- A part goes to a file as soon as it is matched, and is read, class by class, where it is scored. So no
  process holds all parts, and no memory grows with the number of detections: only the files do.
- Memory is estimated before anything is matched, from the numbers of boxes and images in the files, and again
  before scores are computed, from what was matched. What does not fit is refused with what to do.
- A process that dies takes its work with it. That is done once more, by new processes; if one dies again, the
  work is named, and there is no score of the rest.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from boxscore._utils.files import bytes_below, unfinished
from boxscore._utils.processes import quiet_children
from boxscore._utils.progress import progress
from boxscore._utils.records import mapped_pickle, write_pickle
from boxscore._utils.text import counted
from boxscore.errors import InputError
from boxscore.extensions.large.engine import Call, Deferred, value_of
from boxscore.extensions.large.headers import PartHeader, added_headers
from boxscore.extensions.large.parquet_groups import ParquetGroups
from boxscore.extensions.large.plan import MATCHED, MOST, SCORED, can_be_split, most_within
from boxscore.extensions.large.scanning import run_task
from boxscore.extensions.large.streaming import PARTITION

BASE = 200_000_000
"""Bytes of a process with NumPy and pyarrow."""

READ = 3
"""Bytes that a row group takes while it is read, as a multiple of those of its columns, not compressed."""

ROW = 64
"""Bytes of each of its rows besides."""

NAMED = 400
"""Bytes that it takes besides where ids of images are strings."""

SHAPED = 40
"""Bytes that a box of a partition takes besides for each number of its keypoints, corners or rotated box."""

MASKED = 15
"""The same for each byte of its row, where rows have masks: run lengths take far more than packed text."""

WRITTEN = 10
"""Bytes that a table takes in memory for each byte of its file, where ground truth is no Parquet."""

LOADED = 3
"""Bytes in memory for each byte of a part that is read from its file and stored."""

LEAST = 1 << 16
"""Boxes of a partition, and detections that are scored together, at least."""

WORTH = 1 << 18
"""Boxes of a partition below which another process does not help."""

TRIES = 2


def bytes_of_text(text: str) -> int:
    """Read a number of bytes: ``500MB``, ``8GB``, ``1.5GiB``."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?\s*", text.lower())
    if match is None or float(match[1]) <= 0:
        raise InputError("--memory-limit", "be a size such as 8GB", got=repr(text))
    base = 1024 if match[3] else 1000
    return int(float(match[1]) * base ** " kmgt".index(match[2] or " "))


class Plan(NamedTuple):
    """How much is done at a time, and what a process may take."""

    partition: int
    """Boxes of a partition, about."""
    most: int
    """Detections that are scored together."""
    room: int | None
    """Bytes for what one process scores; None for no limit."""


class Load(NamedTuple):
    """What partitions of a data set ask of memory."""

    boxes: int
    """Of all files."""
    box: int = MATCHED
    """Bytes of a box of a partition, in the process that matches it."""
    read: int = 0
    """Bytes of the largest row group, in every process."""
    first: int = 0
    """Bytes that the first process holds besides."""

    @classmethod
    def of(cls, sides: Sequence[ParquetGroups], beside: Path | None) -> Load:
        """Read the footers of what is in Parquet; ``beside`` it may be a file of ground truth that is not."""
        groups = [group for side in sides for group in side.groups]
        named = any(isinstance(group.largest, str) for group in groups)
        read = max((READ * group.nbytes + ROW * group.boxes for group in groups), default=0)
        first = 0 if beside is None else WRITTEN * bytes_below(beside)
        box = MATCHED + NAMED * named + max(map(_further, sides))
        return cls(sum(group.boxes for group in groups), box, read, first)

    def of_share(self, shares: int) -> Load:
        """Return what one of so many shares asks."""
        return self._replace(boxes=-(-self.boxes // shares))


def _further(side: ParquetGroups) -> int:
    """Return what a box takes of which there is more than corners."""
    numbers = sum(map(len, side.parts.shapes.values()))
    nbytes = sum(group.nbytes for group in side.groups) if side.parts.mask is not None else 0
    return SHAPED * numbers + MASKED * nbytes // max(side.boxes, 1)


def plan_within(limit: int | None, load: Load, workers: int) -> Plan:
    """Choose partitions so that all processes stay within a limit."""
    share = max(-(-load.boxes // workers), WORTH)
    if limit is None:
        return Plan(min(PARTITION, share), MOST, None)
    first = BASE + load.first + (0 if workers == 1 else load.read)
    each = load.read + (0 if workers == 1 else BASE)
    room = (limit - first) // workers - each
    if room < load.box * LEAST:
        needed = first + workers * (each + load.box * LEAST)
        raise InputError(
            "--memory-limit",
            f"be {_size(needed)} or more for {counted(load.boxes, 'box')} and {counted(workers, 'worker')}",
            got=_size(limit),
            cause=_advice(load, workers),
        )
    return Plan(min(PARTITION, share, room // load.box), most_within(room), room)


def merging_within(limit: int, workers: int) -> Plan:
    """Choose how many detections of saved parts are scored together within a limit."""
    base = BASE * (1 if workers == 1 else workers + 1)
    room = (limit - base) // workers
    if room < SCORED * LEAST:
        rule = f"be {_size(base + workers * SCORED * LEAST)} or more for {counted(workers, 'worker')}"
        raise InputError("--memory-limit", rule, got=_size(limit))
    return Plan(0, most_within(room), room)


def check_part_files(parts_in_files: Mapping[Path, int], plan: Plan) -> None:
    """Refuse a file of one part that would not fit; a file of several was made to a limit."""
    for path, count in parts_in_files.items():
        size = LOADED * path.stat().st_size // count
        if plan.room is not None and size > plan.room:
            raise InputError(
                "--memory-limit",
                f"leave each process {_size(size)} or more to read a part",
                got=_size(plan.room),
                place=str(path),
                cause="save it with --memory-limit, which writes several smaller parts to one file",
            )


def _advice(load: Load, workers: int) -> str:
    if load.first > BASE:
        return "write the ground truth as Parquet: boxscore convert --gt GT --to parquet --output FILE"
    if load.read > load.box * LEAST:
        return f"use smaller row groups: reading the largest takes {_size(load.read)}"
    fewer = "use fewer --workers, or " if workers > 1 else ""
    return f"{fewer}several machines: run evaluate --shard 1/8 --save-part on each, then boxscore merge"


def check_scoring(headers: Sequence[PartHeader], plan: Plan) -> None:
    """Refuse a class that would not fit, and that the protocol does not let be scored in ranges.

    Parameters
    ----------
    headers : sequence of PartHeader
    plan : Plan

    Raises
    ------
    InputError
        When the largest class does not fit.
    """
    # Without a limit everything fits; a class that can be cut by score always does.
    if plan.room is None:
        return
    whole = added_headers(headers)
    protocol, counts = whole.protocol, whole.detections
    if can_be_split(protocol, weighted=whole.weighted):
        return
    # Else the largest class must fit as a whole, and the message says what would help.
    largest = int(counts.max(initial=0))
    if SCORED * largest > plan.room:
        per_class = protocol.matching.per_class
        of = f" of class {whole.categories.labels[int(counts.argmax())]!r}" if per_class else ""
        raise InputError(
            "--memory-limit",
            f"leave each process {_size(SCORED * largest)} or more to order the "
            f"{counted(largest, 'detection')}{of}",
            got=_size(plan.room),
            cause=f"the protocol {protocol.name} sorts each class as a whole; raise the score threshold "
            "(--score-threshold) or lower the max detections (--max-detections)",
        )


def _size(count: int) -> str:
    return f"{count / 1e9:,.1f} GB" if count >= 1e9 else f"{count / 1e6:,.0f} MB"


# ---------------------------------------------------------------- processes


@dataclasses.dataclass(frozen=True)
class Stored(Deferred):
    """A part, or counts, in a file."""

    path: Path

    def value(self) -> Any:
        """Return it, its arrays in the file's pages."""
        with self.path.open("rb") as file:
            return mapped_pickle(file)


class LocalEngine:
    """Runs calls in processes of this machine, which live as long as a ``with`` block; parts go to files.

    Parameters
    ----------
    folder : Path
        Where parts are stored; whoever made it removes it.
    workers : int
        Processes; 1 runs everything in this one.
    sparing : bool, default False
        Memory that a call has freed is given back to the system: there is a limit.
    """

    def __init__(self, folder: Path, workers: int, *, sparing: bool = False) -> None:
        self._folder, self._workers, self._number = folder, workers, itertools.count()
        self._value = _value_sparing if sparing else value_of
        self._pool: Any = None

    def __enter__(self) -> LocalEngine:
        self._stack = contextlib.ExitStack()
        self._stack.enter_context(unfinished(self._kill))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def submit(self, name: str, function: Any, *arguments: Any) -> Call:
        """Note a call; :meth:`results` runs it."""
        return Call(name, function, arguments)

    def match(self, tasks: Sequence[Any]) -> list[Stored]:
        """Match partitions, with progress; parts go to files."""
        calls = [Call(f"partition {number}", run_task, (task,)) for number, task in enumerate(tasks)]
        return self.held(calls, shown="matching")

    def held(self, tasks: Sequence[Any], *, shown: str = "scoring") -> list[Stored]:
        """Run calls, with progress; results go to files."""
        stored = [Stored(self._folder / f"{next(self._number)}.stored") for _ in tasks]
        calls = [Call(task.name, _store, (task, one.path)) for task, one in zip(tasks, stored, strict=True)]
        self._run(calls, shown=shown)
        return stored

    def results(self, tasks: Sequence[Any], *, shown: str = "scoring") -> list[Any]:
        """Run calls, with progress."""
        return self._run(tasks, shown=shown)

    def gather(self, parts: Sequence[Any]) -> list[Any]:
        """Read parts; their columns stay in the pages of their files."""
        return [part.value() for part in parts]

    def asked_again(self) -> contextlib.AbstractContextManager[None]:
        """Nothing but the parts is held."""
        return contextlib.nullcontext()

    def _run(self, calls: Sequence[Any], *, shown: str) -> list[Any]:
        if self._workers == 1 or (len(calls) == 1 and self._pool is None):
            return [self._value(call) for call in progress(calls, desc=shown, unit="task")]
        waiting, done = dict(enumerate(calls)), dict[int, Any]()
        for _ in range(TRIES):
            self._round(waiting, done, shown)
            waiting = {number: call for number, call in waiting.items() if number not in done}
            if not waiting:
                return [done[number] for number in range(len(calls))]
        raise InputError(
            waiting[min(waiting)].name,
            "be finished by a process",
            got=f"a process that was killed {TRIES} times",
            cause=f"{len(waiting)} of {len(calls)} are missing; out of memory? Use fewer --workers, or "
            "--memory-limit for smaller partitions",
        )

    def _round(self, waiting: dict[int, Call], done: dict[int, Any], shown: str) -> None:
        """Run calls in the pool; those of a process that dies, and of the others then, are left."""
        from concurrent.futures import as_completed
        from concurrent.futures.process import BrokenProcessPool

        if self._pool is None:
            self._pool = _pool(self._workers)
        futures: dict[Any, int] = {}
        try:
            for number, call in waiting.items():
                futures[self._pool.submit(self._value, call)] = number
            for future in progress(as_completed(futures), total=len(futures), desc=shown, unit="task"):
                done[futures[future]] = future.result()
        except BrokenProcessPool:
            self._kill()

    def _kill(self) -> None:
        """End all processes at once: what they would still do is not wanted."""
        if self._pool is None:
            return
        pool, self._pool = self._pool, None
        for process in list((getattr(pool, "_processes", None) or {}).values()):
            process.kill()
        pool.shutdown(wait=False, cancel_futures=True)


def _pool(workers: int) -> Any:
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    context = multiprocessing.get_context("spawn")  # pyarrow has threads, which do not survive a fork
    with quiet_children():
        pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_begin)
        for _ in range(workers):  # each starts a process
            pool.submit(int)
    return pool


def _begin() -> None:
    """Prepare a process of the pool: it ends when its parent does, and leaves Ctrl-C to that."""
    import multiprocessing
    import os
    import signal
    import threading
    from multiprocessing.connection import wait

    from boxscore._utils.memory import keep_freed_memory

    # The parent handles Ctrl-C, and ends its processes in order.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    keep_freed_memory()
    # A parent that is killed cannot do so: a thread waits for its end, then ends this process.
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _value_sparing(call: Any) -> Any:
    value = value_of(call)
    _give_back_freed_memory()
    return value


def _give_back_freed_memory() -> None:
    """Return what was freed to the system, by the C library of Linux and by Arrow where it is loaded.

    What is kept lies in pieces: after ten questions about partitions it is half as much again as the largest
    of them needs.
    """
    arrow = sys.modules.get("pyarrow")
    if arrow is not None:
        arrow.default_memory_pool().release_unused()
    if (trim := _trim()) is not None:
        trim(0)


@functools.cache
def _trim() -> Any:
    import ctypes

    try:
        return getattr(ctypes.CDLL(None), "malloc_trim", None)
    except (OSError, TypeError):  # on Windows
        return None


def _store(result: Any, path: Path) -> None:
    """Write a result to a file."""
    try:
        with path.open("wb") as file:
            write_pickle(result, file)
    except OSError as error:
        raise InputError(
            f"{path.parent}: cannot be written: {error.strerror or error}; parts need 20 bytes per "
            "detection there: choose another folder with --scratch."
        ) from None
