"""Parse the lines of YOLO text files: many small files of numbers, parsed together.

Conventions
-----------
A line is a class and numbers, separated by spaces. The class is a number, or a name that may contain spaces.
Numbers are ASCII decimals; other texts that Python accepts (``3_7``, ``nan``, other digits) are rejected.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from boxscore._utils.array_types import FloatArray, IntArray
from boxscore._utils.files import read_at_most
from boxscore.errors import FileFormatError

LARGEST = 16_000_000
"""Maximum size of a label file in bytes."""

_PIECE = 1 << 23
"""Maximum size of the text that is parsed in one call, to bound the number of Python objects."""

_NUMBER = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_OF_NUMBERS = b"0123456789+-.eE \n"
_TO_JSON = bytes.maketrans(b" \n", b",,")
_decode = msgspec.json.Decoder(list[float]).decode


class Lines(NamedTuple):
    """The non-blank lines of all files, in order.

    Attributes
    ----------
    files : sequence of str
    ends : ndarray of int, [F]
        The end row of each file, exclusive.
    values : ndarray of float64, [V]
        The numbers of all lines, concatenated; a class name is replaced by 0.
    counts : ndarray of int, [N]
        Count of numbers in each line.
    words : list of str, or None
        The class name of each line, if classes are names.
    """

    files: Sequence[str]
    ends: IntArray
    values: FloatArray
    counts: IntArray
    words: list[str] | None

    @property
    def starts(self) -> IntArray:
        """Index in ``values`` of the first number of each line, [N]."""
        return np.cumsum(self.counts) - self.counts

    def columns(self, rows: IntArray) -> FloatArray:
        """Return the numbers of lines with the same count of numbers, [len(rows), count]."""
        count = int(self.counts[rows[0]])
        if len(rows) == len(self.counts):
            return self.values.reshape(-1, count)
        taken: FloatArray = self.values[self.starts[rows][:, None] + np.arange(count)]
        return taken

    def place(self, row: int) -> str:
        """Return the file and line of a row."""
        return _place(self.files, self.ends, row)

    def text(self, row: int) -> str:
        """Return the beginning of the text of a row."""
        return _line(self.files, self.ends, row)[1]


def is_number(text: str) -> bool:
    """Whether a text is a decimal number."""
    return _NUMBER.fullmatch(text) is not None


def read_lines(files: Sequence[str]) -> Lines:
    """Read and parse all lines of label files."""
    reading = _Reading(files)
    for number, file in enumerate(files):
        reading.take(number, _read(file))
    reading.parse()
    return reading.lines()


class _Reading:
    """Accumulate the text of files, and parse it in chunks."""

    def __init__(self, files: Sequence[str]) -> None:
        self.files = files
        self.rows = np.zeros(len(files), np.int64)  # lines of each file
        self.piece: dict[int, bytes] = {}
        self.size = 0
        self.values: list[FloatArray] = []
        self.counts: list[IntArray] = []
        self.words: list[str] = []

    def take(self, number: int, text: bytes) -> None:
        """Add the text of a file."""
        if text:
            self.rows[number] = text.count(b"\n") + 1
            self.piece[number] = text
            self.size += len(text)
        if self.size > _PIECE:
            self.parse()

    def parse(self) -> None:
        """Parse the accumulated text."""
        if not self.piece:
            return
        parsed = _numbers(b"\n".join(self.piece.values()))
        if parsed is None:
            tidy = {number: _normalize(text) for number, text in self.piece.items()}
            self.rows[list(tidy)] = [text.count(b"\n") + 1 for text in tidy.values()]
            text = b"\n".join(tidy.values())
            parsed = _numbers(text) or self._with_words(text)
        self.values.append(parsed[0])
        self.counts.append(parsed[1])
        self.piece, self.size = {}, 0

    def lines(self) -> Lines:
        """Return all parsed lines."""
        ends = np.cumsum(self.rows)
        counts = np.concatenate([np.empty(0, np.int64), *self.counts])
        values = np.concatenate([np.empty(0), *self.values])
        if any(self.words):
            self.words += [""] * (len(counts) - len(self.words))
            _refuse_mixed(self.words, self.files, ends)
        return Lines(self.files, ends, values, counts, self.words if any(self.words) else None)

    def _with_words(self, text: bytes) -> tuple[FloatArray, IntArray]:
        """Parse lines with class names."""
        # Files with class names are rare, so a Python loop is fast enough.
        values: list[float] = []
        counts: list[int] = []
        self.words += [""] * (sum(map(len, self.counts)) - len(self.words))
        for line in text.split(b"\n"):
            try:
                fields = [field.decode("utf-8") for field in line.split()]
            except UnicodeDecodeError:
                raise FileFormatError(
                    "a label file", "be UTF-8", got="other bytes", place=self._place_of_next()
                ) from None
            # The class is everything up to the last non-number: names may contain spaces and numbers.
            last = next((i for i in range(len(fields) - 1, -1, -1) if not is_number(fields[i])), -1)
            if last > 0 and is_number(fields[0]):
                got = repr(fields[last][:60])
                raise FileFormatError(
                    "the numbers of a label", "be numbers", got=got, place=self._place_of_next()
                )
            # Replace a class name by the number 0, to keep the positions of the columns.
            numbers = fields[last + 1 :]
            self.words.append(" ".join(fields[: last + 1]))
            values += [0.0] * (last >= 0)
            values += map(float, numbers)
            counts.append(len(numbers) + (last >= 0))
        return np.array(values, dtype=np.float64), np.array(counts, dtype=np.int64)

    def _place_of_next(self) -> str:
        return _place(self.files, np.cumsum(self.rows), len(self.words))


def _read(file: str) -> bytes:
    """Read a file, and strip whitespace at its ends."""
    try:
        handle = os.open(file, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        try:
            text = os.read(handle, 1 << 16)
            if len(text) == 1 << 16:
                with os.fdopen(os.dup(handle), "rb") as rest:
                    text += read_at_most(rest, LARGEST)
        finally:
            os.close(handle)
    except OSError as error:
        raise FileFormatError(f"{file}: cannot be read: {error.strerror}.") from None
    if len(text) > LARGEST:
        raise FileFormatError("a label file", f"have at most {LARGEST:,} bytes", got="more", place=file)
    return text.removeprefix(b"\xef\xbb\xbf").strip()


def _normalize(text: bytes) -> bytes:
    """Drop blank lines, and normalize whitespace to single spaces."""
    return b"\n".join(b" ".join(line.split()) for line in text.splitlines() if line.strip())


def _numbers(text: bytes) -> tuple[FloatArray, IntArray] | None:
    """Parse lines of numbers separated by single spaces; None if there is anything else."""
    if text.translate(None, _OF_NUMBERS):
        return None
    # Each space or line break ends a number, so their count is the count of numbers.
    letters = np.frombuffer(text, np.uint8)
    blanks = np.flatnonzero(letters <= 32)
    if len(blanks) > 1 and np.diff(blanks).min() == 1:
        return None
    breaks = np.flatnonzero(letters[blanks] == 10)
    counts = np.diff(np.concatenate([[-1], breaks, [len(blanks)]]))
    try:
        values = _decode(b"[" + text.translate(_TO_JSON) + b"]")
    except msgspec.MsgspecError:  # 007, +1, .5 and 1. are valid here, but not in JSON
        try:
            values = list(map(float, text.split()))
        except ValueError:
            return None
    return np.array(values, dtype=np.float64), counts


def _refuse_mixed(words: Sequence[str], files: Sequence[str], ends: IntArray) -> None:
    """Reject a mix of class numbers and class names."""
    numbered = [row for row, word in enumerate(words) if not word]
    if not numbered:
        return
    named = next(row for row, word in enumerate(words) if word)
    row, like = (named, numbered[0]) if 2 * len(numbered) > len(words) else (numbered[0], named)
    raise FileFormatError(
        "the class of a label",
        "be a number in all lines, or a name in all",
        got=repr(_line(files, ends, row)[1]),
        place=_place(files, ends, row),
        cause=f"other lines are like {_line(files, ends, like)[1]!r}",
    )


def _line(files: Sequence[str], ends: IntArray, row: int) -> tuple[int, str]:
    """Return the line number of a row in its file, and the beginning of its text."""
    file = int(np.searchsorted(ends, row, side="right"))
    before = row - (int(ends[file - 1]) if file else 0)
    for number, line in enumerate(_raw_lines(files[file]), start=1):
        if line.strip():
            if before == 0:
                return number, line.decode("utf-8", errors="replace").strip()[:60]
            before -= 1
    return 0, ""


def _raw_lines(file: str) -> list[bytes]:
    try:
        with Path(file).open("rb") as opened:
            return read_at_most(opened, LARGEST).splitlines()
    except OSError:
        return []


def _place(files: Sequence[str], ends: IntArray, row: int) -> str:
    file = files[int(np.searchsorted(ends, row, side="right"))]
    return f"{file}, line {_line(files, ends, row)[0]}"
