"""Partitions on one machine: how large they may be, and processes that work on them.

Conventions
-----------
- Memory is estimated before anything is matched, from the numbers of boxes and images in the files, and again
  before scores are computed, from the parts that are there. What does not fit is refused with what to do.
- A process that dies takes its partitions with it. They are done once more, in new processes; if one dies
  again, it is named, and there is no score of the rest.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from boxscore._utils.progress import progress
from boxscore.distributed.merging import BLOCK, MergedParts
from boxscore.distributed.parts import Part
from boxscore.distributed.streaming import PARTITION
from boxscore.errors import InputError

__all__ = ["bytes_of_text", "check_scoring", "partition_within", "process_map"]

BASE = 150_000_000
"""Bytes of a process with NumPy and pyarrow."""

HELD, PER_IMAGE = 20, 30
"""Bytes of a detection in a part, at most but for odd data; and of an image, while partitions are cut."""

MATCHED = 500
"""Bytes of a box of a partition that is read and matched."""

SCORED = 150
"""Bytes of a detection of the classes that are drawn together."""

LEAST_PARTITION = 1 << 16

TRIES = 2


def bytes_of_text(text: str) -> int:
    """Read a number of bytes: ``500MB``, ``8GB``, ``1.5GiB``.

    Parameters
    ----------
    text : str

    Returns
    -------
    int

    Raises
    ------
    InputError
        When it is none.
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?\s*", text.lower())
    if found is None or float(found[1]) <= 0:
        raise InputError("--memory-limit", "be a size such as 8GB", got=repr(text))
    base = 1024 if found[3] else 1000
    return int(float(found[1]) * base ** " kmgt".index(found[2] or " "))


def partition_within(limit: int | None, boxes: int, images: int, workers: int) -> int:
    """Return how many boxes a partition may have so that all processes stay within a limit.

    Parameters
    ----------
    limit : int, optional
        Bytes; None for no limit.
    boxes, images : int
        Of all files; ``images`` may be a guess.
    workers : int
        Processes that match at once, beside the one that collects.

    Returns
    -------
    int

    Raises
    ------
    InputError
        When what is collected alone does not fit.
    """
    if limit is None:
        return PARTITION
    collected = BASE + HELD * boxes + PER_IMAGE * images
    scored = SCORED * min(BLOCK, boxes)
    own = 0 if workers == 1 else BASE
    room = (limit - collected) // workers - own
    if collected + scored > limit or room < MATCHED * LEAST_PARTITION:
        needed = collected + max(scored, workers * (own + MATCHED * LEAST_PARTITION))
        raise InputError(
            "--memory-limit",
            f"be {_size(needed)} or more for {boxes:,} boxes and {workers} worker{'s' * (workers > 1)}",
            got=_size(limit),
            cause="fewer --workers, or several machines: save a part on each and run boxscore merge",
        )
    return int(min(PARTITION, room // MATCHED))


def check_scoring(parts: MergedParts, limit: int | None) -> None:
    """Refuse to draw curves that would not fit.

    Parameters
    ----------
    parts : MergedParts
    limit : int, optional
        Bytes; None for no limit.

    Raises
    ------
    InputError
        When the largest class does not fit beside the parts.
    """
    if limit is None:
        return
    counts = parts.detections_of_class
    largest = int(counts.max(initial=0))
    held = sum(part.nbytes for part in parts.parts) + PER_IMAGE * len(parts.ids)
    needed = BASE + held + SCORED * max(largest, min(BLOCK, int(counts.sum())))
    if needed > limit:
        label = parts.categories.labels[int(counts.argmax())]
        raise InputError(
            "--memory-limit",
            f"be {_size(needed)} or more to order the {largest:,} detections of class {label!r}",
            got=_size(limit),
            cause="a higher score threshold (--score-threshold) or cap (--max-detections) leaves fewer",
        )


def _size(count: int) -> str:
    return f"{count / 1e9:,.1f} GB" if count >= 1e9 else f"{count / 1e6:,.0f} MB"


@contextlib.contextmanager
def process_map(workers: int) -> Iterator[Callable[[Callable[[Any], Part], Iterable[Any]], Iterable[Part]]]:
    """Give a ``map`` over local processes, with progress; over one, it runs here.

    Parameters
    ----------
    workers : int

    Yields
    ------
    callable
        ``map(function, tasks)``; results come in the order of tasks.
    """

    def alone(function: Callable[[Any], Part], tasks: Iterable[Any]) -> Iterable[Part]:
        return [function(task) for task in progress(list(tasks), desc="matching", unit="partition")]

    def together(function: Callable[[Any], Part], tasks: Iterable[Any]) -> Iterable[Part]:
        waiting = dict(enumerate(tasks))
        count, done = len(waiting), dict[int, Part]()
        for _ in range(TRIES):
            _run(function, waiting, done, workers)
            waiting = {number: task for number, task in waiting.items() if number not in done}
            if not waiting:
                return [done[number] for number in range(count)]
        number = min(waiting)
        raise InputError(
            f"partition {number}",
            "be matched by a process that lives to its end",
            got=f"one that was killed {TRIES} times",
            cause=f"{len(waiting)} of {count} partitions are missing; out of memory? use fewer --workers, or "
            "--memory-limit, which makes partitions smaller",
        )

    yield alone if workers == 1 else together


def _run(
    function: Callable[[Any], Part], waiting: dict[int, Any], done: dict[int, Part], workers: int
) -> None:
    """Run tasks in new processes; those of a process that dies are left."""
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from concurrent.futures.process import BrokenProcessPool

    context = multiprocessing.get_context("spawn")  # pyarrow has threads, which do not survive a fork
    pool = ProcessPoolExecutor(min(workers, len(waiting)), mp_context=context)
    try:
        futures = {pool.submit(function, task): number for number, task in waiting.items()}
        finished = progress(as_completed(futures), total=len(futures), desc="matching", unit="partition")
        with contextlib.suppress(BrokenProcessPool):
            for future in finished:
                done[futures[future]] = future.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
