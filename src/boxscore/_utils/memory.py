"""Recognize that memory has run out, keep what was freed, and pause the garbage collector."""

from __future__ import annotations

import contextlib
import errno
import gc
from collections.abc import Iterator

OUT_OF_MEMORY = 3
"""The exit status of the command line: the input may be good, and no check has failed."""

FREED_BYTES = 24 << 20
"""Bytes; the threshold of the C library moves for blocks of up to 32 MiB."""


def require_room(size: int) -> None:
    """Raise an error where the system would not give this many bytes; none are touched.

    For libraries that end the process, each with a status of its own choice, where they get too little.
    """
    import mmap

    mmap.mmap(-1, size).close()


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory was missing; a library that could not be loaded for want of it is an ImportError.

    An error raised from such an error counts too: then no package is missing, and no file is bad.
    """
    if error.__context__ is not None and is_out_of_memory(error.__context__):
        return True
    if isinstance(error, MemoryError):
        return True
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    text = str(error).lower()
    fragments = _FRAGMENTS.get(next((kind for kind in _FRAGMENTS if isinstance(error, kind)), Exception), ())
    return any(fragment in text for fragment in fragments)


_FRAGMENTS: dict[type[Exception], tuple[str, ...]] = {
    ImportError: ("cannot allocate memory", "failed to map segment"),
    ValueError: ("array is too big", "maximum allowed dimension exceeded"),
}
"""Text of other errors, by type: those of the loader and of NumPy."""


def keep_freed_memory() -> None:
    """Let the process keep the memory of short-lived arrays; only a program may call it.

    The C library of Linux gives large blocks back to the system as soon as they are freed, and takes them
    again, page by page, for the next array: for columns of some 100 KB that costs several times what is
    computed with them. It stops doing so once a block larger than its threshold was freed: then it keeps up
    to twice as much. Any program that has freed one array of this size is in that state; this gets there
    without touching the memory. Elsewhere, and if memory is too short for such a block, it does nothing.
    """
    import numpy as np

    with contextlib.suppress(MemoryError):
        np.empty(FREED_BYTES, dtype=np.uint8)


# ---------------------------------------------------------------- the garbage collector


@contextlib.contextmanager
def paused_collector() -> Iterator[None]:
    """Pause the garbage collector, if it runs, for the length of a block."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


@contextlib.contextmanager
def lasting_objects() -> Iterator[None]:
    """Pause the collector while objects are made that last; it takes what is there then for old.

    Else its next two passes, which look at what is young, would visit all of them.
    """
    with paused_collector():
        yield
        if gc.get_freeze_count() == 0:  # what the program, or Python 3.12, has frozen stays so
            gc.freeze()
            gc.unfreeze()
