"""Keeping the memory that is freed, so that the next array need not be faulted in page by page.

Conventions
-----------
glibc takes every block of 128 KiB or more from the system and gives it back when it is freed; each page of
the next one is then faulted in anew, which for columns of a few MB costs more than computing them. Once a
block of up to 32 MiB has been freed, it keeps freed memory of that size to use again (``man mallopt``,
``M_MMAP_THRESHOLD``, dynamic adjustment). Freeing one that was never touched is enough, and costs nothing.
Other allocators do not mind.
"""

from __future__ import annotations

import numpy as np

__all__ = ["keep_freed_memory"]

_LARGEST = (32 << 20) - (8 << 10)
"""Just below the largest block that moves glibc's threshold, its header and page included."""


def keep_freed_memory() -> None:
    """Let the allocator keep freed blocks of up to 32 MiB, as after any program's first such block."""
    np.empty(_LARGEST, dtype=np.uint8)
