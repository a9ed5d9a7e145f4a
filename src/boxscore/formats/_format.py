"""The interface of a file format: how it is detected, read and written.

Conventions
-----------
A format is one file with one :class:`Format` and one line of the registry. It ignores arguments that it has
no use for (image sets, processes, columns to read at once).
"""

from __future__ import annotations

import abc
import os
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from boxscore.data.tables import BoxTable, Detections, GroundTruth
from boxscore.errors import FileFormatError

if TYPE_CHECKING:
    from boxscore.formats.results import Kept

__all__ = ["Format", "Read", "Snapshot", "changed_while_read"]

TICK = 2_000_000_000
"""Nanoseconds; the coarsest clock of a file system that is in use (FAT)."""

Read = Callable[[GroundTruth | None], Detections]
"""Finishes reading detections, aligned to a ground truth or, with None, on their own."""


class Format(abc.ABC):
    """One file format.

    Attributes
    ----------
    name : str
        What ``--format`` calls it.
    boxes : {"xywh", "xyxy"} or None
        The box form of its files, for warnings of the box order. None: boxes were checked when written.
    folder : str
        What a folder of this format holds, for messages; empty for a format of single files.
    takes_image_set : bool
        Whether its ground truth has image sets to choose from.
    """

    name: ClassVar[str]
    boxes: ClassVar[Literal["xywh", "xyxy"] | None] = None
    folder: ClassVar[str] = ""
    takes_image_set: ClassVar[bool] = False

    @abc.abstractmethod
    def detect(self, path: Path) -> str | None:
        """Say what identifies this format at an existing path; None where it is another."""

    @abc.abstractmethod
    def load_ground_truth(
        self, path: Path, *, image_set: str | Path | None, columns: Sequence[str], processes: int
    ) -> GroundTruth:
        """Read ground truth; ``columns`` names instance columns worth reading at once."""

    @abc.abstractmethod
    def reading(
        self, path: Path, *, columns: Sequence[str], processes: int, beside: float
    ) -> AbstractContextManager[Read]:
        """Begin to read detections; ``beside`` is the share of all work done here before this is finished."""

    @abc.abstractmethod
    def save(self, table: BoxTable, path: Path, *, like: Path | None = None) -> None:
        """Write a table; ``like`` gives the file names where a format has several files."""

    def results_files(self, path: Path) -> list[Path]:
        """List the files of the results at a path, in the order in which they are read."""
        return [path]

    @abc.abstractmethod
    def rewrite(self, path: Path, kept: Kept, output: Path) -> None:
        """Write results again with the remaining rows, each as it stood unless it changes."""


class Snapshot:
    """The state of a file when its reading began; what is read later must find it unchanged.

    Attributes
    ----------
    path : Path
    settled : bool
        Whether the last change is long enough ago that another one has another time: clocks of file systems
        tick coarsely. Until then a file that looks the same may have been written once more.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        status = self._status()
        self._state = status
        self.settled = time.time_ns() - max(status.st_mtime_ns, status.st_ctime_ns) > TICK

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
                cause="masks and keypoints are read when they are first asked for: load the file again",
            )

    def check_reading(self) -> None:
        """Refuse a file that has changed while it was read: the parts would not belong together."""
        now = self._status()
        if (*_written(now), now.st_ctime_ns) != (*_written(self._state), self._state.st_ctime_ns):
            raise changed_while_read(self.path, got="another size, time of change or file of this name")


def _written(status: os.stat_result) -> tuple[int, ...]:
    """Return what tells one writing of a file from another."""
    return status.st_size, status.st_mtime_ns, status.st_dev, status.st_ino


def changed_while_read(path: Path, *, got: str) -> FileFormatError:
    """Return the error for a file that another program writes."""
    cause = "does another program write it? let it write to another name, and rename"
    return FileFormatError(str(path), "stay as it is while it is read", got=got, cause=cause)
