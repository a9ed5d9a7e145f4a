"""Pausing Python's garbage collector while millions of records are made.

It would walk over the new records again and again, and free nothing: they are all kept.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def no_collection() -> Iterator[None]:
    """Pause the collector; it goes on afterwards if it did before."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()
