"""Detect out-of-memory errors, tune the allocator, and pause the garbage collector."""

from __future__ import annotations

import contextlib
import errno
import gc
from collections.abc import Iterator

OUT_OF_MEMORY = 3
"""Exit status of the command line if memory runs out."""

FREED_BYTES = 24 << 20
"""Size of a block in bytes; the C library adapts its threshold to blocks of up to 32 MiB."""


def require_room(size: int) -> None:
    """Raise if the system cannot provide this many bytes, without touching them.

    This is for libraries that end the process if they cannot allocate memory.
    """
    import mmap

    mmap.mmap(-1, size).close()


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error, or one of its causes, means that memory ran out.

    This includes an ``ImportError`` of a library that could not be loaded for lack of memory.
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
"""Fragments of messages of out-of-memory errors by type: of the loader and of NumPy."""


def keep_freed_memory() -> None:
    """Let the process keep the memory of freed arrays; only call this if the process is ours.

    The C library of Linux returns large blocks to the system when they are freed, and gets them back page by
    page for the next array. For columns of about 100 KB, this takes several times longer than computation.
    After a block above its threshold is freed, the library raises the threshold and keeps up to twice as
    much. This function triggers this without touching the memory. It does nothing on other systems, or if
    there is not enough memory for the block.
    """
    import numpy as np

    with contextlib.suppress(MemoryError):
        np.empty(FREED_BYTES, dtype=np.uint8)


# ---------------------------------------------------------------- the garbage collector


@contextlib.contextmanager
def paused_collector() -> Iterator[None]:
    """Pause the garbage collector, if it is enabled, during a block."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


@contextlib.contextmanager
def lasting_objects() -> Iterator[None]:
    """Pause the garbage collector while long-lived objects are created, then treat all objects as old.

    Otherwise, its next two passes over young objects would visit all of them.
    """
    with paused_collector():
        yield
        if gc.get_freeze_count() == 0:  # do not unfreeze objects frozen by the program or by Python 3.12
            gc.freeze()
            gc.unfreeze()
