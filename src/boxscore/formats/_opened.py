"""Carry a path and its detected format to everything that reads there.

Conventions
-----------
- A path is detected once. :func:`boxscore.formats.registry.open_at` makes an :class:`Opened`.
- ``data`` may be elsewhere than ``path``: the content of an unpacked archive, or data in a folder below.
  Messages and tables name the archive, never the temporary folder.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from boxscore._utils.records import NamedTuple
from boxscore._utils.user_warnings import warn_user
from boxscore.data.tables import BoxTable, Detections, GroundTruth
from boxscore.errors import BoxscoreWarning, FileFormatError, InputError
from boxscore.formats._format import Format, ReadOptions

_Table = TypeVar("_Table", bound=BoxTable)


class Opened(NamedTuple):
    """A path, its format, and where its data are."""

    path: Path
    """As it was given."""
    format: Format
    """Of several files, that of each."""
    reason: str
    """How the format was recognized; empty if it was not, and the user names the format."""
    data: Path
    """What the format reads."""
    unpacked: Path | None = None
    """The file or folder that an archive was unpacked to."""
    note: str = ""
    """Tells the user that data in a folder below are read."""
    files: tuple[Opened, ...] = ()
    """Several files that are read one by one."""

    @property
    def is_direct(self) -> bool:
        """Whether the format reads the given path itself, not an archive, data below it or several files."""
        return self.data == self.path and not self.files

    def load_ground_truth(self, options: ReadOptions) -> GroundTruth:
        """Read ground truth."""
        if self.files:
            from boxscore.formats._several import joined_ground_truth

            return joined_ground_truth([file.load_ground_truth(options) for file in self.files], self.path)
        return self.read(lambda data: self.format.load_ground_truth(data, options))

    def load_detections(self, options: ReadOptions, ground_truth: GroundTruth | None) -> Detections:
        """Read detections, aligned to a ground truth or, with None, in their own vocabularies."""
        if self.files:
            from boxscore.formats._several import joined_detections

            tables = [file.load_detections(options, ground_truth) for file in self.files]
            return joined_detections(tables, self.path)
        return self.read(lambda data: self.format.load_detections(data, options, ground_truth))

    def read(self, load: Callable[[Path], _Table]) -> _Table:
        """Return what ``load`` reads of the data, and tell the user where they are."""
        self.tell()
        return self.loaded(lambda: load(self.data))

    def tell(self) -> None:
        """Tell the user where the data are, if that is elsewhere."""
        if self.note:
            warn_user(BoxscoreWarning(self.note, severity="info"))

    def loaded(self, load: Callable[[], _Table]) -> _Table:
        """Return what ``load`` reads; the table and errors name an archive, not its temporary folder."""
        with self.named():
            table = load()
        if self.unpacked is None:
            return table
        return dataclasses.replace(table, source=table.source.replace(str(self.unpacked), str(self.path)))

    @contextlib.contextmanager
    def named(self) -> Iterator[None]:
        """Name the archive in place of its temporary folder in errors."""
        try:
            yield
        except (FileFormatError, InputError) as error:
            if self.unpacked is None or str(self.unpacked) not in str(error):
                raise
            text = str(error).replace(str(self.unpacked), str(self.path))
            raise type(error)(text) from None
