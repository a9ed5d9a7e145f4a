"""Pause the garbage collector while many lasting objects are made."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


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
