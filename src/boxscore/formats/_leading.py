"""Folders that lead on to the data in them: ``runs``, ``runs/detect``, ``runs/detect/val``.

Conventions
-----------
- What is looked for are the names that tools write. One of them is what was meant; of several, the newest
  first, the user chooses. Nothing is guessed from any other file.
- ``labels`` in a folder itself are read by YOLO's format: they count beside other sources alone.
- Few folders are looked into, and links to folders are not followed.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import warnings
from collections.abc import Iterator
from pathlib import Path

from boxscore.data.tables import GroundTruth
from boxscore.errors import BoxscoreWarning, FileFormatError
from boxscore.formats._format import Format, Read, ReadOptions
from boxscore.formats._look import Look
from boxscore.formats._unpacking import Unpacked

__all__ = ["LedOn", "led_on"]

DEEPEST, MOST_FOLDERS, MOST_SAID = 3, 200, 5

_FILES = re.compile(r"predictions\.json|data\.yaml|instances.*\.json", re.IGNORECASE)


class LedOn(Unpacked):
    """The format of what a folder leads to, which is said when it is read.

    Parameters
    ----------
    inner : Format
    given : Path
        The folder.
    found : Path
        What is read in its place.
    """

    def __init__(self, inner: Format, given: Path, found: Path) -> None:
        super().__init__(inner, found, found)
        self._given = given

    def load_ground_truth(self, path: Path, options: ReadOptions) -> GroundTruth:
        """Read ground truth from what was found."""
        self._say()
        return super().load_ground_truth(path, options)

    @contextlib.contextmanager
    def reading(self, path: Path, options: ReadOptions, *, beside: float = 0) -> Iterator[Read]:
        """Read detections from what was found."""
        self._say()
        with super().reading(path, options, beside=beside) as finish:
            yield finish

    def _say(self) -> None:
        text = f"{self._given}: reading {self.folder}, the only data in this folder."
        warnings.warn(BoxscoreWarning(text), stacklevel=6)


def led_on(folder: Path, *, has_labels: bool = False) -> Path | None:
    """Return the only likely data below a folder; None where there are none, or its labels are annotations.

    Raises
    ------
    FileFormatError
        Where there are several.
    """
    found = sorted(_sources(folder), key=lambda path: (-path.stat().st_mtime, str(path)))
    if has_labels and not any(path.name == "labels" for path in found):
        return None
    beside = {path.parent for path in found if path.name == "labels"}
    # One run of ultralytics writes both: its labels, which were read before folders led on.
    found = [path for path in found if path.name == "labels" or path.parent not in beside]
    if len(found) > 1:
        more = f" and {len(found) - MOST_SAID} more" if len(found) > MOST_SAID else ""
        raise FileFormatError(
            str(folder),
            "lead to one file or folder of data",
            got=f"several, the newest first: {', '.join(map(str, found[:MOST_SAID]))}{more}",
            cause="give one of them",
        )
    return found[0] if found and found[0] != folder / "labels" else None


def _sources(folder: Path) -> Iterator[Path]:
    """Give what is looked for, in a folder and a few below it."""
    level, left = [folder], MOST_FOLDERS
    for _ in range(DEEPEST + 1):
        level, within = level[:left], []
        left -= len(level)
        for one in level:
            for entry in (one / name for name in Look(one).names):
                if entry.is_dir():
                    if entry.name == "labels" and _have_confidences(entry):
                        yield entry
                    elif not entry.is_symlink():
                        within.append(entry)
                elif _FILES.fullmatch(entry.name) and entry.is_file():
                    yield entry
        level = within


def _have_confidences(folder: Path) -> bool:
    """Whether the first labels of a folder end with a fraction: those of boxes have six numbers."""
    lines = (text.first_line.split() for text in itertools.islice(Look(folder).texts, 3))
    return any(
        len(line) >= 6
        and len(line) % 2 == 0
        and re.fullmatch(r"(?:0?\.\d+|1\.0*|\d(?:\.\d+)?e-\d+)" if len(line) > 6 else r"[\d.e+-]+", line[-1])
        is not None
        for line in lines
    )
