"""Run a task for several items in threads, for work in which NumPy releases the interpreter's lock."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


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
