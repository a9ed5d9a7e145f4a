"""Let the process keep the memory of short-lived arrays, or give it back where memory is scarce.

The C library of Linux gives large blocks back to the system as soon as they are freed, and takes them again,
page by page, for the next array: for columns of some 100 KB that costs several times what is computed with
them. It stops doing so once a block larger than its threshold was freed: then it keeps up to twice as much.
Any program that has freed one array of this size is in that state; :func:`keep_freed_memory` gets there
without touching the memory. Elsewhere it does nothing. Only a program may call it: ``boxscore.__main__``.

What is kept lies in pieces: after ten questions about partitions it is half as much again as the largest of
them needs. :func:`give_back_freed_memory` returns it to the system.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import sys
from typing import Any

import numpy as np

FREED_BYTES = 24 << 20
"""Bytes; the threshold moves for blocks of up to 32 MiB."""


def keep_freed_memory() -> None:
    """Take a large block and give it back immediately; do nothing if memory is too short for it."""
    with contextlib.suppress(MemoryError):
        np.empty(FREED_BYTES, dtype=np.uint8)


def give_back_freed_memory() -> None:
    """Return what was freed to the system, by the C library of Linux and by Arrow where it is loaded."""
    arrow = sys.modules.get("pyarrow")
    if arrow is not None:
        arrow.default_memory_pool().release_unused()
    if (trim := _trim()) is not None:
        trim(0)


@functools.cache
def _trim() -> Any:
    try:
        return getattr(ctypes.CDLL(None), "malloc_trim", None)
    except (OSError, TypeError):  # on Windows
        return None
