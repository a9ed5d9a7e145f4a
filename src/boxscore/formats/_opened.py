"""Carry a path and its detected format to everything that reads there.

Conventions
-----------
- A path is detected once. :func:`boxscore.formats.registry.open_at` makes an :class:`Opened`.
- ``data`` may be elsewhere than ``path``: the content of an unpacked archive, or data in a folder below.
  Messages and tables name the archive, never the temporary folder.
- Several files of one format are one data set. Each image of the ground truth is in one file; detections of
  an image may be in several, and equal scores then go in the order of the files. Classes are joined by id.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np

from boxscore._utils.records import NamedTuple
from boxscore._utils.user_warnings import warn_user
from boxscore.data.alignment import concatenate
from boxscore.data.tables import BoxTable, Detections, GroundTruth
from boxscore.data.vocabulary import Id
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
            return _joined_ground_truth([file.load_ground_truth(options) for file in self.files], self.path)
        return self.read(lambda data: self.format.load_ground_truth(data, options))

    def load_detections(self, options: ReadOptions, ground_truth: GroundTruth | None) -> Detections:
        """Read detections, aligned to a ground truth or, with None, in their own vocabularies."""
        if self.files:
            tables = [file.load_detections(options, ground_truth) for file in self.files]
            return _joined_detections(tables, self.path)
        return self.read(lambda data: self.format.load_detections(data, options, ground_truth))

    def read(self, load: Callable[[Path], _Table]) -> _Table:
        """Return what ``load`` reads of the data, and tell the user where they are."""
        self.tell()
        return self.loaded(lambda: load(self.data))

    def tell(self) -> None:
        """Tell the user where the data are, if that is elsewhere."""
        if self.note:
            warn_user(BoxscoreWarning(self.note, severity="note"))

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


def _joined_ground_truth(tables: Sequence[GroundTruth], path: Path) -> GroundTruth:
    """Return the images of all files as one table, which is named after the path."""
    known: dict[Id, str] = {}
    for table in tables:
        for image in table.images.ids.tolist():
            if image in known:
                rule, got = "be in one file of the ground truth", f"{image!r} in {known[image]}"
                cause = (
                    "its objects would count twice. Of several annotators: boxscore agreement compares "
                    "them, and a folder of SA-Co's files is read as theirs"
                )
                raise InputError("an image", rule, got=got, place=table.source, cause=cause)
            known[image] = table.source
    whole = concatenate(tables)[0].replaced(source=str(path))
    if len(np.unique(whole.ids)) < len(whole):  # each file counts its annotations from 1
        whole = whole.replaced(ids=np.arange(1, len(whole) + 1))
    return whole


def _joined_detections(tables: Sequence[Detections], path: Path) -> Detections:
    """Return the detections of all files as one table, which is named after the path."""
    left_out = sum((Counter(table.left_out) for table in tables), Counter[str]())
    if len({table.scored for table in tables}) > 1:
        without = next(table.source for table in tables if not table.scored)
        rule = "have scores in every file, or in none"
        raise FileFormatError("detections", rule, got="none", place=without)
    return concatenate(tables)[0].replaced(source=str(path), left_out=dict(left_out))
