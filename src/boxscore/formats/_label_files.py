"""Handle folders of label files, one file per image.

Conventions
-----------
- Predictions may be in subfolders only. They are read as one set if the ground truth has images in folders of
  the same names; image names then include the folder. Subfolders of several runs, such as ``exp1`` and
  ``exp2``, are rejected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath

import numpy as np

from boxscore._utils import checks
from boxscore._utils.array_types import IntArray
from boxscore._utils.files import read_text
from boxscore._utils.text import short_list
from boxscore.data.hints import ask
from boxscore.data.image_names import below_their_root, folders_of
from boxscore.data.tables import BoxTable, GroundTruth
from boxscore.errors import FileFormatError, InputError
from boxscore.formats._sniffer import Sniffer, is_text_file, listed

LARGEST = 16_000_000
"""Maximum size of a file in bytes."""


class TextLines:
    """Iterate over the lines of files that are not blank, and remember the file and line of each row.

    ``head`` checks the lines of a file and returns the index of the first row.
    """

    def __init__(
        self,
        files: Sequence[str | Path],
        what: str,
        *,
        largest: int | None = LARGEST,
        head: Callable[[list[str], str | Path], int] = lambda lines, file: 0,
    ) -> None:
        self._files, self._what, self._largest, self._head = files, what, largest, head
        self._image: list[int] = []
        self._line: list[int] = []

    def __iter__(self) -> Iterator[str]:
        for image, file in enumerate(self._files):
            lines = read_text(Path(file), self._what, largest=self._largest).splitlines()
            first = self._head(lines, file)
            for number, line in enumerate(lines[first:], start=first + 1):
                if line and not line.isspace():
                    self._image.append(image)
                    self._line.append(number)
                    yield line

    def leave_out(self) -> int:
        """Drop the last row, and return its image."""
        self._line.pop()
        return self._image.pop()

    @property
    def image(self) -> IntArray:
        """The image of each row, [N]."""
        return np.array(self._image, dtype=np.int64)

    def place(self, row: int = -1) -> str:
        """Return the file and line of a row, by default the last."""
        return f"{self._files[self._image[row]]}, line {self._line[row]}"


def text_files(folder: Path, what: str, detect: Callable[[Sniffer], str | None]) -> list[str]:
    """Return the names of the text files in a folder, sorted; warn if subfolders are not read."""
    if not folder.is_dir():
        raise FileFormatError(
            what, "be the folder of the .txt files, one per image", got=f"one file, {folder}"
        )
    with listed(folder) as entries:
        names = sorted(entry.name for entry in entries if is_text_file(entry))
    ask("folders in a folder", folder, detect, ending=".txt")
    return names


def check_folders(folder: Path, names: Iterable[str], ground_truth: GroundTruth | None) -> None:
    """Reject label files in subfolders that do not match a folder of ground-truth images."""
    inner = inner_folders(names)
    if not inner or ground_truth is None:
        return
    known = folders_of(ground_truth.images)
    strange = [name for name, path in zip(inner, below_their_root(inner), strict=True) if path not in known]
    if strange:
        which = f"{'one of ' * (len(inner) > 1)}{short_list(folder / name for name in inner)}"
        cause = f"pass {which}; if they are parts of one run, move their files to one folder"
        raise FileFormatError(
            str(folder),
            "be one folder of label files, or contain folders that match images of the ground truth",
            got=f"{short_list(strange)}, which match no image",
            cause=cause,
        )


def inner_folders(names: Iterable[str]) -> list[str]:
    """Return the distinct folders of file names, sorted."""
    return sorted({name.rpartition("/")[0] for name in names if "/" in name})


def numbers_of(fields: Sequence[str]) -> list[float] | None:
    """Convert fields to numbers; None if one is not a number, or has an underscore as in Python."""
    try:
        return None if "_" in "".join(fields) else [float(field) for field in fields]
    except ValueError:
        return None


def file_stems(table: BoxTable, *, in_lines: bool = False) -> list[str]:
    """Return the stem of the label file of each image: that of the image file, or else the id.

    If stems are not unique, the ids of all images are used, provided that they are text. With ``in_lines``,
    the names will be listed in a file, and surrounding spaces are rejected.
    """
    stems, ids = [], table.images.ids.tolist()
    for identifier, file_name in zip(ids, table.images.file_names.tolist(), strict=True):
        name = str(identifier) if file_name is None else PurePosixPath(file_name.replace("\\", "/")).stem
        stems.append(checks.plain_name(name, name="an image's name"))
    if len(set(stems)) < len(stems) and all(isinstance(identifier, str) for identifier in ids):
        stems = [checks.plain_name(identifier, name="an image's name") for identifier in ids]
    if len(set(stems)) < len(stems):
        seen: set[str] = set()
        twice = next(name for name in stems if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise InputError("image names", "differ where labels are a file per image", got=f"{twice!r} twice")
    cut = next((name for name in stems if in_lines and name != name.strip()), None)
    if cut is not None:
        rule = "not start or end with a space (without its extension) if a file lists it"
        raise InputError("an image", rule, got=repr(cut), place=table.source)
    return stems


def refuse_shared_names(table: BoxTable) -> None:
    """Reject classes that share a name and differ only by id."""
    names = table.categories.names.tolist()
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(
            "class names",
            "differ where a format knows classes by name",
            got=f"{twice!r} twice",
            place=table.source,
            cause="merge or rename them with --remap-classes",
        )
