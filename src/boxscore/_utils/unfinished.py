"""End unfinished work when the process is asked to end: half-written files, children.

The command line's signal handler calls :func:`end_all` and leaves. In any other process nothing is ever
called from here: there the same work ends where an exception passes it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

End = Callable[[], object]
"""Ends some work, at any moment and any number of times; may not raise."""

_ends: dict[int, End] = {}


def begin(end: End) -> int:
    """Record how to end some work; return the key for :func:`forget`."""
    _ends[id(end)] = end
    return id(end)


def forget(key: int) -> None:
    """Remove work that has ended."""
    _ends.pop(key, None)


@contextlib.contextmanager
def unfinished(end: End) -> Iterator[None]:
    """Call ``end`` when the context ends, however that is."""
    key = begin(end)
    try:
        yield
    finally:
        end()
        forget(key)


def end_all() -> None:
    """End everything that is unfinished, the latest first."""
    for end in reversed(list(_ends.values())):
        end()
