"""Match and score partitions in processes of this machine, within a memory limit.

Conventions
-----------
- A part is written to a file as soon as it is matched, and read back class by class for scoring. So no
  process holds all parts, and only the files grow with the number of detections.
- Memory is estimated before matching, from the number of boxes and images in the files, and again before
  scoring, from the matches. If the estimate exceeds the limit, an error says what to do.
- The work of a process that dies is retried once in new processes. If one dies again, the error names the
  work and nothing is scored.
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
"""Memory of a process with NumPy and pyarrow loaded, in bytes."""

READ = 3
"""Peak memory of reading a row group, as a multiple of its uncompressed columns."""

ROW = 64
"""Additional bytes per row of a row group."""

NAMED = 400
"""Additional bytes per row if image ids are strings."""

SHAPED = 40
"""Additional bytes per box of a partition for each number of its keypoints, corners or rotated box."""

MASKED = 15
"""The same per byte of a row with masks: run lengths take far more memory than packed text."""

WRITTEN = 10
"""Bytes in memory per byte of a ground-truth file that is not Parquet."""

LOADED = 3
"""Bytes in memory per byte of a part file that is loaded and stored."""

LEAST = 1 << 16
"""Minimum number of boxes per partition, and of detections scored together."""

WORTH = 1 << 18
"""Boxes per partition below which another process does not pay off."""

TRIES = 2


def bytes_of_text(text: str) -> int:
    """Parse a number of bytes: ``500MB``, ``8GB``, ``1.5GiB``."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?\s*", text.lower())
    if match is None or float(match[1]) <= 0:
        raise InputError("--memory-limit", "be a size such as 8GB", got=repr(text))
    base = 1024 if match[3] else 1000
    return int(float(match[1]) * base ** " kmgt".index(match[2] or " "))


class Plan(NamedTuple):
    """Sizes of partitions and of scoring steps, and the memory of a process."""

    partition: int
    """Approximate number of boxes per partition."""
    most: int
    """Number of detections scored together."""
    room: int | None
    """Bytes for scoring in one process; None for no limit."""


class Load(NamedTuple):
    """Memory that the partitions of a data set need."""

    boxes: int
    """Number of boxes in all files."""
    box: int = MATCHED
    """Bytes per box of a partition, in the process that matches it."""
    read: int = 0
    """Bytes for the largest row group, in every process."""
    first: int = 0
    """Additional bytes in the first process."""

    @classmethod
    def of(cls, sides: Sequence[ParquetGroups], beside: Path | None) -> Load:
        """Read the Parquet footers; ``beside`` is a ground-truth file in another format."""
        groups = [group for side in sides for group in side.groups]
        named = any(isinstance(group.largest, str) for group in groups)
        read = max((READ * group.nbytes + ROW * group.boxes for group in groups), default=0)
        first = 0 if beside is None else WRITTEN * bytes_below(beside)
        box = MATCHED + NAMED * named + max(map(_further, sides))
        return cls(sum(group.boxes for group in groups), box, read, first)

    def of_shard(self, shares: int) -> Load:
        """Return the load of one of ``shares`` shards."""
        return self._replace(boxes=-(-self.boxes // shares))


def _further(side: ParquetGroups) -> int:
    """Return the additional bytes per box for masks, keypoints, corners and rotated boxes."""
    numbers = sum(map(len, side.parts.shapes.values()))
    nbytes = sum(group.nbytes for group in side.groups) if side.parts.mask is not None else 0
    return SHAPED * numbers + MASKED * nbytes // max(side.boxes, 1)


def plan_within(limit: int | None, load: Load, workers: int) -> Plan:
    """Choose the size of partitions so that all processes together stay within a limit."""
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
    """Choose how many detections of saved parts to score together within a limit."""
    base = BASE * (1 if workers == 1 else workers + 1)
    room = (limit - base) // workers
    if room < SCORED * LEAST:
        rule = f"be {_size(base + workers * SCORED * LEAST)} or more for {counted(workers, 'worker')}"
        raise InputError("--memory-limit", rule, got=_size(limit))
    return Plan(0, most_within(room), room)


def check_part_files(parts_in_files: Mapping[Path, int], plan: Plan) -> None:
    """Reject a file whose parts do not fit; ``parts_in_files`` maps each file to its number of parts."""
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
    """Raise if a class does not fit in memory and the protocol does not allow scoring it in chunks.

    Parameters
    ----------
    headers : sequence of PartHeader
    plan : Plan

    Raises
    ------
    InputError
        If the largest class does not fit.
    """
    # Everything fits without a limit, and a class that can be split by score always fits.
    if plan.room is None:
        return
    whole = added_headers(headers)
    protocol, counts = whole.protocol, whole.detections
    if can_be_split(protocol, weighted=whole.weighted):
        return
    # Otherwise the largest class must fit as a whole.
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
    """A part, or counts, stored in a file."""

    path: Path

    def value(self) -> Any:
        """Load the value; its arrays are memory-mapped."""
        with self.path.open("rb") as file:
            return mapped_pickle(file)


class LocalEngine:
    """Run calls in processes of this machine, which end with the ``with`` block; parts go to files.

    Parameters
    ----------
    folder : Path
        Folder for parts; the caller removes it.
    workers : int
        Number of processes; 1 runs everything in this process.
    sparing : bool, default False
        Return freed memory to the system after each call.
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
        """Record a call; :meth:`results` runs it."""
        return Call(name, function, arguments)

    def match(self, tasks: Sequence[Any]) -> list[Stored]:
        """Match partitions, with progress, and write the parts to files."""
        calls = [Call(f"partition {number}", run_task, (task,)) for number, task in enumerate(tasks)]
        return self.held(calls, shown="matching")

    def held(self, tasks: Sequence[Any], *, shown: str = "scoring") -> list[Stored]:
        """Run calls, with progress, and write the results to files."""
        stored = [Stored(self._folder / f"{next(self._number)}.stored") for _ in tasks]
        calls = [Call(task.name, _store, (task, one.path)) for task, one in zip(tasks, stored, strict=True)]
        self._run(calls, shown=shown)
        return stored

    def results(self, tasks: Sequence[Any], *, shown: str = "scoring") -> list[Any]:
        """Run calls, with progress, and return their results."""
        return self._run(tasks, shown=shown)

    def gather(self, parts: Sequence[Any]) -> list[Any]:
        """Load parts; their columns are memory-mapped."""
        return [part.value() for part in parts]

    def asked_again(self) -> contextlib.AbstractContextManager[None]:
        """Do nothing: only parts are kept."""
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
        """Run calls in the pool; if a process dies, unfinished calls stay in ``waiting``."""
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
        """Kill all processes immediately."""
        if self._pool is None:
            return
        pool, self._pool = self._pool, None
        for process in list((getattr(pool, "_processes", None) or {}).values()):
            process.kill()
        pool.shutdown(wait=False, cancel_futures=True)


def _pool(workers: int) -> Any:
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    context = multiprocessing.get_context("spawn")  # the threads of pyarrow do not survive a fork
    with quiet_children():
        pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_begin)
        for _ in range(workers):  # start every process
            pool.submit(int)
    return pool


def _begin() -> None:
    """Initialize a process of the pool: it ignores Ctrl-C and ends when its parent ends."""
    import multiprocessing
    import os
    import signal
    import threading
    from multiprocessing.connection import wait

    from boxscore._utils.memory import keep_freed_memory

    # The parent handles Ctrl-C and stops its processes in order.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    keep_freed_memory()
    # A killed parent cannot stop them, so a thread waits for its end and exits.
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _value_sparing(call: Any) -> Any:
    value = value_of(call)
    _return_freed_memory()
    return value


def _return_freed_memory() -> None:
    """Return freed memory to the system: that of glibc, and of Arrow if it is loaded.

    Otherwise fragmentation grows: after ten questions about partitions, memory would be 1.5 times the peak of
    the largest one.
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
