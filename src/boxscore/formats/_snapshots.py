"""Check that a file which is read several times stays the same."""

from __future__ import annotations

import os
import time
from pathlib import Path

from boxscore.errors import FileFormatError

TICK = 2_000_000_000
"""Nanoseconds; the coarsest clock of a file system that is in use (FAT)."""


class Snapshot:
    """The state of a file when its reading began; what is read later must find it unchanged.

    Attributes
    ----------
    path : Path
    is_old : bool
        Whether the last change is so long ago that a later one must have another time: clocks of file systems
        tick coarsely. Until then a file with the same times may have been written again.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        status = self._status()
        self._state = status
        self.is_old = time.time_ns() - max(status.st_mtime_ns, status.st_ctime_ns) > TICK

    def _status(self) -> os.stat_result:
        try:
            return self.path.stat()
        except OSError as error:
            raise FileFormatError(f"{self.path}: cannot be read: {error.strerror}.") from None

    def check(self) -> None:
        """Refuse a file that has vanished or changed before something else was read of it."""
        if _written(self._status()) != _written(self._state):
            raise FileFormatError(
                str(self.path),
                "stay as it is while tables of it are used",
                got="another size or time of change",
                cause="masks and keypoints are read when they are first needed: load the file again",
            )

    def check_reading(self) -> None:
        """Refuse a file that has changed while it was read: the parts would not belong together."""
        now = self._status()
        if (*_written(now), now.st_ctime_ns) != (*_written(self._state), self._state.st_ctime_ns):
            raise changed_while_read(self.path, got="another size, time of change or file of this name")


def _written(status: os.stat_result) -> tuple[int, ...]:
    """Return what distinguishes one writing of a file from another."""
    return status.st_size, status.st_mtime_ns, status.st_dev, status.st_ino


def changed_while_read(path: Path, *, got: str) -> FileFormatError:
    """Return the error for a file that another program writes."""
    cause = "does another program write it? let it write to another name, and rename"
    return FileFormatError(str(path), "stay as it is while it is read", got=got, cause=cause)
