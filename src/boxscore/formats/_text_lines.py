"""The lines of text files, one file per image: read in one way, and named in one way in messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from boxscore._utils.array_types import IntArray
from boxscore._utils.files import read_text

LARGEST = 16_000_000
"""Bytes of a file."""


class TextLines:
    """The lines that are not blank, each a row; ``head`` checks a file and says where its rows begin."""

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
        """Make the last line no row, and return its image."""
        self._line.pop()
        return self._image.pop()

    @property
    def image(self) -> IntArray:
        """The image of each row, [N]."""
        return np.array(self._image, dtype=np.int64)

    def place(self, row: int = -1) -> str:
        """Name the file and line of a row, by default of the last."""
        return f"{self._files[self._image[row]]}, line {self._line[row]}"
