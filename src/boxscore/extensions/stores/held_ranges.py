"""Cache ranges of a file of a store in a folder, for later readers.

Conventions
-----------
- Each range is a file, named by where it starts and ends, that is there whole or not at all: several
  processes use one folder, and any of them may remove what was not used for longest.
- A folder caches one content: the caller names the folder of a file by what tells contents apart.
- Without the folder, or without room in it, everything is read from the store.
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
"""Bytes that all folders with the same parent may hold, about."""

OPEN_END = ".part"
"""How the names of files end that are being written."""


class _Held(NamedTuple):
    start: int
    stop: int
    path: Path


class HeldRanges(RangeFile):
    """A file that is read at most once, range by range.

    Parameters
    ----------
    file : NativeFile
        Arrow's, of the store; the caller closes it.
    folder : Path
        Of this file alone; what is beside it counts for :data:`MOST`, and is there.
    """

    def __init__(self, file: Any, folder: Path) -> None:
        super().__init__(int(file.size()))
        self._file, self._folder = file, folder
        with contextlib.suppress(OSError):
            folder.mkdir(exist_ok=True)

    def content(self, start: int, count: int) -> bytes:
        """Return a range, from the folder where it is held."""
        return b"".join(self._pieces(start, start + count))

    def _pieces(self, at: int, stop: int) -> Iterator[bytes]:
        """Yield a range in pieces, held ones and new ones."""
        held = _listed(self._folder)
        while at < stop:
            around = (one for one in held if one.start <= at < one.stop)
            here = max(around, key=lambda one: one.stop, default=None)
            if here is not None:
                content = _content(here, at, min(stop, here.stop))
                if content is None:  # another process removed it meanwhile
                    held.remove(here)
                    continue
            else:
                until = min((one.start for one in held if one.start > at), default=stop)
                content = bytes(self._file.read_at(min(stop, until) - at, at))
                if not content:
                    return  # cut short: the reader notices that
                self._hold(at, content)
            yield content
            at += len(content)

    def _hold(self, start: int, content: bytes) -> None:
        """Write a range, and make room for it."""
        path = self._folder / f"{start}-{start + len(content)}"
        unfinished = path.with_name(f"{path.name}-{os.getpid()}{OPEN_END}")
        try:
            _make_room(self._folder.parent, len(content))
            unfinished.write_bytes(content)
            unfinished.replace(path)
        except OSError:  # no room, or no folder
            with contextlib.suppress(OSError):
                unfinished.unlink(missing_ok=True)


def held_file(held: Path, file: Path, opened: Any, end: bytes) -> Any:
    """Return a file as Arrow's, of which what is read stays in the folder ``held``.

    The end of the file is always read from the store, and names what is held: the footer of Parquet has the
    positions of all data, so that those of another file are not taken.
    """
    import pyarrow

    name = f"{file}\n{opened.size()}\n".encode("utf-8", "surrogateescape") + end
    folder = held / hashlib.sha256(name).hexdigest()[:32]
    return pyarrow.PythonFile(HeldRanges(opened, folder), mode="r")


def _listed(folder: Path) -> list[_Held]:
    """Return the ranges that are held."""
    try:
        paths = [path for path in folder.iterdir() if path.suffix != OPEN_END]
    except OSError:
        return []
    ends = [path.name.split("-") for path in paths]
    return [_Held(int(start), int(stop), path) for (start, stop), path in zip(ends, paths, strict=True)]


def _content(held: _Held, start: int, stop: int) -> bytes | None:
    """Read from a range that is held, which counts as used; None where it is gone."""
    try:
        with held.path.open("rb") as file:
            file.seek(start - held.start)
            content = file.read(stop - start)
        os.utime(held.path)
    except OSError:
        return None
    return content if len(content) == stop - start else None


def _make_room(folder: Path, count: int) -> None:
    """Remove what was not used for longest, until so many bytes more are within :data:`MOST`."""
    found = []
    for path in folder.glob("*/*"):
        with contextlib.suppress(OSError):  # removed meanwhile
            found.append((path.stat(), path))
    total = sum(state.st_size for state, _ in found) + count
    for state, path in sorted(found, key=lambda one: one[0].st_mtime):
        if total <= MOST:
            return
        with contextlib.suppress(OSError):
            path.unlink()
            total -= state.st_size
