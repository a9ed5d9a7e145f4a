"""Progress bars."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any, TypeVar

__all__ = ["progress"]

Item = TypeVar("Item")


def progress(items: Iterable[Item], **options: Any) -> Iterable[Item]:
    """Iterate with a bar on stderr if that is a terminal; else make none, for tqdm's leave a thread."""
    if sys.stderr is None or not sys.stderr.isatty():
        return items
    from tqdm import tqdm

    return tqdm(items, file=sys.stderr, **options)
