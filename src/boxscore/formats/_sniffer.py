"""Sniff a path: read the data that formats need for detection, once for all formats."""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import re
from collections.abc import Iterator
from pathlib import Path

from boxscore._utils.memory import is_out_of_memory
from boxscore.data.boxes import OTHER_FORMS
from boxscore.errors import FileFormatError, InputError

HEAD = 1 << 16
"""Maximum number of bytes to read from a file."""

MOST_NAMES = 2_000
"""Maximum number of folder entries to list."""

MOST_TEXTS = 20
"""Maximum number of text files in a folder to open."""


class Sniffer:
    """Read the beginning of an existing file or folder; every property is computed lazily.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.is_folder = path.is_dir()
        self.suffix = path.suffix.lower()

    @functools.cached_property
    def head(self) -> bytes:
        """The first bytes of a file, without a byte order mark; empty for a folder."""
        if self.is_folder:
            return b""
        try:
            with self.path.open("rb") as file:
                return file.read(HEAD).removeprefix(b"\xef\xbb\xbf")
        except OSError as error:
            raise FileFormatError(f"{self.path}: cannot be read: {error.strerror}.") from None

    @functools.cached_property
    def text(self) -> str:
        """The head as text; bytes that are not UTF-8 are replaced."""
        return self.head.decode("utf-8", errors="replace")

    @functools.cached_property
    def first_line(self) -> str:
        """The first non-blank line of a file, stripped."""
        return next((line.strip() for line in self.text.splitlines() if line.strip()), "")

    @functools.cached_property
    def is_json(self) -> bool:
        """Whether a file starts like a JSON object or list."""
        return self.text.lstrip()[:1] in ("{", "[")

    @functools.cached_property
    def quoted(self) -> frozenset[str]:
        """All texts between two quotation marks near the beginning of a file."""
        return frozenset(self.text.split('"')[1:-1])

    def has_keys(self, *names: str) -> bool:
        """Whether a JSON file has all these keys near its beginning, at any depth."""
        return self.is_json and all(re.search(rf'"{name}"\s*:', self.text) for name in names)

    @functools.cached_property
    def is_xml(self) -> bool:
        """Whether a file starts like XML."""
        return self.text.lstrip().startswith("<")

    @functools.cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the first entries of a folder that are not hidden, sorted."""
        if not self.is_folder:
            return ()
        with listed(self.path) as entries:
            return tuple(sorted(entry.name for entry in itertools.islice(entries, MOST_NAMES)))

    @functools.cached_property
    def texts(self) -> tuple[Sniffer, ...]:
        """The first non-empty text files of a folder; files of images without objects are empty."""
        files = (self.path / name for name in self.names if name.lower().endswith(".txt"))
        filled = (file for file in files if file.is_file() and file.stat().st_size)
        return tuple(Sniffer(file) for file in itertools.islice(filled, MOST_TEXTS))

    def first_with(self, *endings: str) -> Path | None:
        """Return the first folder entry whose lowercase name has one of these endings."""
        name = next((name for name in self.names if name.lower().endswith(endings)), None)
        return None if name is None else self.path / name

    def inside(self, name: str) -> Sniffer | None:
        """Sniff an entry of a folder; None if it does not exist."""
        return Sniffer(self.path / name) if name in self.names else None


@contextlib.contextmanager
def errors_named(path: Path, *, side: str = "") -> Iterator[None]:
    """Convert OS errors, such as loops of links, to errors that name the file.

    If boxes are clearly in another form, the error suggests the option for the ``side``, ``gt`` or ``dt``.
    """
    try:
        yield
    except InputError as error:
        form = OTHER_FORMS.get(str(error.cause))
        if form is None or not side:
            raise
        cause = f"{error.cause} Use --{side}-box-format {form} (in Python box_format=)"
        raise type(error)(error.name, error.rule, got=error.got, place=error.place, cause=cause) from None
    except OSError as error:
        if is_out_of_memory(error):
            raise
        raise FileFormatError(
            f"{error.filename or path}: cannot be read: {error.strerror or error}."
        ) from None


@contextlib.contextmanager
def listed(folder: Path) -> Iterator[Iterator[os.DirEntry[str]]]:
    """Yield the entries of a folder that are not hidden; raise if it cannot be listed."""
    try:
        with os.scandir(folder) as entries:
            yield (entry for entry in entries if not entry.name.startswith("."))
    except OSError as error:
        raise FileFormatError(f"{folder}: cannot be read: {error.strerror}.") from None


def is_text_file(entry: os.DirEntry[str]) -> bool:
    """Whether an entry of a folder is a text file."""
    return entry.name.lower().endswith(".txt") and entry.is_file()
