"""The interface of a file format: how it is detected, read and written.

Conventions
-----------
A format is one file with one :class:`Format` and one line of the registry. It ignores arguments that it has
no use for (image sets, processes, columns to read at once).
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from boxscore.data.tables import BoxTable, Detections, GroundTruth
from boxscore.errors import FileFormatError

if TYPE_CHECKING:
    from boxscore.formats.results import Kept

__all__ = ["Format", "Read", "Snapshot"]

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

    @abc.abstractmethod
    def rewrite(self, path: Path, kept: Kept, output: Path) -> None:
        """Write results again with the remaining rows, each as it stood unless it changes."""


class Snapshot:
    """The state of a file when a table was read; columns that are read later must find it unchanged."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._state = self._look()

    def _look(self) -> tuple[int, int]:
        try:
            status = self.path.stat()
        except OSError as error:
            raise FileFormatError(f"{self.path}: cannot be read: {error.strerror}.") from None
        return status.st_size, status.st_mtime_ns

    def check(self) -> None:
        """Refuse a file that has vanished or changed since it was read."""
        if self._look() != self._state:
            raise FileFormatError(
                str(self.path),
                "stay as it is while tables of it are used",
                got="another size or time of change",
                cause="masks and keypoints are read when they are first asked for: load the file again",
            )
