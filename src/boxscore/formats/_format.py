"""The interface of a file format: how it is detected, read and written.

Conventions
-----------
A format is one file with one :class:`Format` and one line of the registry. What a user may say beside a path
is in :class:`ReadOptions`; a format names those it has a use for in ``takes``, and the others are refused
before it is asked. ``columns`` and ``processes`` are hints that it may ignore.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from boxscore.data.boxes import BoxFormat
from boxscore.data.tables import BoxTable, Detections, GroundTruth
from boxscore.errors import FileFormatError, InputError

if TYPE_CHECKING:
    from boxscore.formats._look import Look
    from boxscore.formats.class_maps import ClassMap
    from boxscore.formats.results import Kept

__all__ = ["PLAIN", "Format", "Read", "ReadOptions", "Snapshot"]

Read = Callable[[GroundTruth | None], Detections]
"""Finishes reading detections, aligned to a ground truth or, with None, on their own."""


@dataclasses.dataclass(frozen=True)
class ReadOptions:
    """What a user says beside a path.

    Attributes
    ----------
    format : str, default "auto"
        The format's name; ``"auto"`` detects it.
    image_set : str or Path, optional
        Which part of a data set.
    classes : tuple of str, optional
        The names behind class numbers that count from 0.
    image_sizes : mapping of str to (float, float), optional
        Width and height of images in pixels, by id or file name.
    box_format : {"xyxy", "xywh", "cxcywh"}, optional
        What the four numbers of a box are, where a file does not say.
    columns : tuple of str
        Instance columns worth reading at once.
    processes : int
        That may read a large file together.
    class_map : str or mapping, optional
        Which class of the ground truth each class of the detections is. Formats do not see it.
    """

    format: str = "auto"
    image_set: str | Path | None = None
    classes: tuple[str, ...] | None = None
    image_sizes: Mapping[str, tuple[float, float]] | None = None
    box_format: BoxFormat | None = None
    columns: tuple[str, ...] = ()
    processes: int = 1
    class_map: ClassMap | None = None


PLAIN = ReadOptions()
"""Nothing said."""


class Format(abc.ABC):
    """One file format.

    Attributes
    ----------
    name : str
        What ``--format`` calls it.
    boxes : {"xywh", "xyxy"} or None
        The box form of its files, for warnings of the box order. None: boxes were checked when written.
    takes : frozenset of str
        Options of a user that it has a use for, of ``image_set``, ``classes``, ``image_sizes`` and
        ``box_format``.
    takes_of_detections : frozenset of str
        Those it has a use for beside detections only.
    """

    name: ClassVar[str]
    boxes: ClassVar[Literal["xywh", "xyxy"] | None] = None
    takes: ClassVar[frozenset[str]] = frozenset()
    takes_of_detections: ClassVar[frozenset[str]] = frozenset()

    @abc.abstractmethod
    def detect(self, look: Look) -> str | None:
        """Say what identifies this format at an existing path; None where it is another."""

    @abc.abstractmethod
    def load_ground_truth(self, path: Path, options: ReadOptions) -> GroundTruth:
        """Read ground truth."""

    @abc.abstractmethod
    def reading(self, path: Path, options: ReadOptions, *, beside: float) -> AbstractContextManager[Read]:
        """Begin to read detections; ``beside`` is the share of all work done here before this is finished."""

    def save(self, table: BoxTable, path: Path, *, like: Path | None = None) -> None:
        """Write a table; ``like`` gives the file names where a format has several files."""
        raise InputError("the format of the output", "be one that can be written", got=repr(self.name))

    def rewrite(self, path: Path, kept: Kept, output: Path) -> None:
        """Write results again with the remaining rows, each as it stood unless it changes."""
        raise InputError(
            "results that are written again",
            "be in a format that can be written",
            got=repr(self.name),
            place=str(path),
            cause="boxscore convert makes COCO results of them",
        )


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
