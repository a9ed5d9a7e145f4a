"""Letting the process keep the memory of short-lived arrays.

The C library of Linux gives large blocks back to the system as soon as they are freed, and takes them again,
page by page, for the next array: for columns of some 100 KB that costs several times what is computed with
them. It stops doing so once a block larger than its threshold was freed: then it keeps up to twice as much.
Any program that has freed one array of this size is in that state; :func:`keep_freed_memory` gets there
without touching the memory. Elsewhere it does nothing. Only a program may call it: ``boxscore.__main__``.
"""

from __future__ import annotations

import contextlib

import numpy as np

FREED_BYTES = 24 << 20
"""Bytes; the threshold moves for blocks of up to 32 MiB."""


def keep_freed_memory() -> None:
    """Take a large block and give it back at once; where memory is that short, do without."""
    with contextlib.suppress(MemoryError):
        np.empty(FREED_BYTES, dtype=np.uint8)
