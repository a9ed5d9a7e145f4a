"""Cache ranges of a file of a store in a folder, for later readers.

Conventions
-----------
- Each range is a file that is written atomically and named by its start and end. Several processes share a
  folder, and any of them may remove the least recently used files.
- A folder caches one version of a file: the caller includes the version in the name of the folder.
- Without the folder, or without space in it, everything is read from the store.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from boxscore._utils.records import NamedTuple
from boxscore.extensions.stores.addresses import RangeFile

MOST = 1 << 31
"""Approximate limit of bytes in all folders with the same parent."""

OPEN_END = ".part"
"""Suffix of files that are being written."""


class _Held(NamedTuple):
    start: int
    stop: int
    path: Path


class HeldRanges(RangeFile):
    """A file whose ranges are read at most once.

    Parameters
    ----------
    file : NativeFile
        Arrow's file in the store; the caller closes it.
    folder : Path
        Folder of this file only; it must exist, and its siblings count toward :data:`MOST`.
    """

    def __init__(self, file: Any, folder: Path) -> None:
        super().__init__(int(file.size()))
        self._file, self._folder = file, folder
        with contextlib.suppress(OSError):
            folder.mkdir(exist_ok=True)

    def content(self, start: int, count: int) -> bytes:
        """Return a range, from the folder if it is cached."""
        return b"".join(self._chunks(start, start + count))

    def _chunks(self, at: int, stop: int) -> Iterator[bytes]:
        """Yield a range in chunks, cached and new ones."""
        held = _listed(self._folder)
        while at < stop:
            around = (one for one in held if one.start <= at < one.stop)
            here = max(around, key=lambda one: one.stop, default=None)
            if here is not None:
                content = _content(here, at, min(stop, here.stop))
                # Another process has removed it meanwhile.
                if content is None:
                    held.remove(here)
                    continue
            else:
                until = min((one.start for one in held if one.start > at), default=stop)
                content = bytes(self._file.read_at(min(stop, until) - at, at))
                if not content:
                    # The file is truncated, which the reader notices.
                    return
                self._store_range(at, content)
            yield content
            at += len(content)

    def _store_range(self, start: int, content: bytes) -> None:
        """Write a range to the cache, and make room for it."""
        path = self._folder / f"{start}-{start + len(content)}"
        unfinished = path.with_name(f"{path.name}-{os.getpid()}{OPEN_END}")
        try:
            _make_room(self._folder.parent, len(content))
            unfinished.write_bytes(content)
            unfinished.replace(path)
        # No space, or no folder.
        except OSError:
            with contextlib.suppress(OSError):
                unfinished.unlink(missing_ok=True)


def held_file(held: Path, file: Path, opened: Any, end: bytes) -> Any:
    """Return a file as Arrow's whose ranges are cached in the folder ``held``.

    The end of the file is always read from the store, and is part of the cache key: the footer of Parquet has
    the positions of all data, so ranges of another version are not used.
    """
    import pyarrow

    name = f"{file}\n{opened.size()}\n".encode("utf-8", "surrogateescape") + end
    folder = held / hashlib.sha256(name).hexdigest()[:32]
    return pyarrow.PythonFile(HeldRanges(opened, folder), mode="r")


def _listed(folder: Path) -> list[_Held]:
    """Return the cached ranges."""
    try:
        paths = [path for path in folder.iterdir() if path.suffix != OPEN_END]
    except OSError:
        return []
    ends = [path.name.split("-") for path in paths]
    return [_Held(int(start), int(stop), path) for (start, stop), path in zip(ends, paths, strict=True)]


def _content(held: _Held, start: int, stop: int) -> bytes | None:
    """Read from a cached range, and mark it as used; None if it was removed."""
    try:
        with held.path.open("rb") as file:
            file.seek(start - held.start)
            content = file.read(stop - start)
        os.utime(held.path)
    except OSError:
        return None
    return content if len(content) == stop - start else None


def _make_room(folder: Path, count: int) -> None:
    """Remove the least recently used ranges, until so many more bytes are within :data:`MOST`."""
    found = []
    for path in folder.glob("*/*"):
        # Removed meanwhile.
        with contextlib.suppress(OSError):
            found.append((path.stat(), path))
    total = sum(state.st_size for state, _ in found) + count
    for state, path in sorted(found, key=lambda one: one[0].st_mtime):
        if total <= MOST:
            return
        with contextlib.suppress(OSError):
            path.unlink()
            total -= state.st_size
