"""Progress bars."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

__all__ = ["progress", "progress_is_shown", "without_progress"]

Item = TypeVar("Item")

_unwanted = 0
"""How many callers want none."""


def progress_is_shown() -> bool:
    """Whether stderr is a terminal, and nobody asked for silence."""
    return not _unwanted and sys.stderr is not None and sys.stderr.isatty()


@contextlib.contextmanager
def without_progress() -> Iterator[None]:
    """Show no progress for a while."""
    global _unwanted
    _unwanted += 1
    try:
        yield
    finally:
        _unwanted -= 1


def progress(items: Iterable[Item], **options: Any) -> Iterable[Item]:
    """Iterate with a bar on stderr if it is shown; else make none, for tqdm's leave a thread."""
    if not progress_is_shown():
        return items
    from tqdm import tqdm

    return tqdm(items, file=sys.stderr, **options)
