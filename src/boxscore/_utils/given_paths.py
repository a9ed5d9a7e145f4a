"""Convert user input to a path: a local path, several files, or the URL of an object store.

Readers treat all three as paths. This module only recognizes URLs, ``scheme://place``; an extension opens
them and hides their secrets.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeGuard

from boxscore._utils.lazy import loaded

if TYPE_CHECKING:
    _Base = Path
else:
    _Base = type(Path())


STORES = "boxscore.extensions.stores.addresses"
"""The module that opens URLs; it is imported lazily."""

SECRETS = ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AZURE_STORAGE_KEY", "AZURE_STORAGE_SAS_TOKEN")
"""Environment variables whose values never appear in messages."""


class VirtualPath(_Base):
    """A path that is not on the local file system, and lists and opens its files itself."""

    is_far: ClassVar[bool] = False
    """Whether the path is remote; ``by_range`` then opens a file for Arrow."""
    why_nothing: str
    """The message if the path does not exist."""

    def with_segments(self, *segments: Any) -> Path:
        """Return a local path."""
        return Path(*segments)

    def is_symlink(self) -> bool:
        """Return False."""
        return False

    def by_range(self) -> Any:
        """Open a file for Arrow, with reads of byte ranges."""
        raise NotImplementedError


class Several(VirtualPath):
    """Several files in order, treated as a folder of these files.

    Parameters
    ----------
    text : str
        The name in messages.
    files : sequence of Path
    """

    text: str
    files: tuple[Path, ...]
    why_nothing = "No file has such a name"

    def __new__(cls, text: str, files: Sequence[Path]) -> Several:
        """Create the path from its name."""
        return super().__new__(cls, text)

    def __init__(self, text: str, files: Sequence[Path]) -> None:
        if sys.version_info >= (3, 12):
            super().__init__(text)
        self.text, self.files = text, tuple(files)

    def __str__(self) -> str:
        return self.text  # a path would merge the two slashes of a URL

    def __reduce__(self) -> tuple[Any, ...]:
        return Several, (str(self), self.files)

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        """Return the status of a folder with the total size of the files."""
        if not self.files:
            raise FileNotFoundError(2, os.strerror(2), str(self))
        states = [file.stat() for file in self.files]
        changed = max(state.st_mtime for state in states)
        size = sum(state.st_size for state in states)
        return os.stat_result(
            (stat.S_IFDIR | 0o555, hash(self.files), -1, 1, 0, 0, size, changed, changed, changed)
        )

    def exists(self, *, follow_symlinks: bool = True) -> bool:
        """Whether there are any files."""
        return bool(self.files)

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        """Return False."""
        return False

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        """Whether there are any files, which are treated as a folder."""
        return bool(self.files)

    def iterdir(self) -> Iterator[Path]:  # type: ignore[override]
        """Yield the files."""
        yield from self.files

    def rglob(self, pattern: str, **_: Any) -> Iterator[Path]:  # type: ignore[override]
        """Yield the files, and matches in folders among them."""
        for file in self.files:
            yield file
            if file.is_dir():
                yield from file.rglob(pattern)


def is_address(text: str) -> bool:
    """Whether a text is a URL, possibly with slashes merged by ``Path``; existing files take precedence."""
    return re.match("[A-Za-z][A-Za-z0-9+.-]+:/", text) is not None and not os.path.lexists(text)


def address_of(text: str) -> Path:
    """Convert a URL to a path."""
    address: Path = loaded(f"{STORES}:address_of")(text)
    return address


def path_of(given: str | os.PathLike[str]) -> Path:
    """Convert user input to a local path, a URL, or all files that match a pattern."""
    if isinstance(given, VirtualPath):
        return given
    text = os.fspath(given)
    if "\0" in text:  # opening the path raises an error
        return Path(given)
    if is_address(text):
        of_store: Path = loaded(f"{STORES}:all_at")(text)
        return of_store
    if any(sign in text for sign in "*?[") and not os.path.lexists(text):
        import glob

        return Several(text, [Path(name) for name in sorted(glob.glob(text, recursive=True))])  # noqa: PTH207
    return Path(given)


def together(first: Path, second: Path) -> Several:
    """Combine two inputs; the first one may already be several files."""
    files = [*(first.files if isinstance(first, Several) else [first]), second]
    return Several(f"{files[0]} and {len(files) - 1} more", files)


def files_of(path: Path) -> Sequence[Path]:
    """Return the files of a path, or the path itself."""
    return path.files if isinstance(path, Several) else [path]


def is_far(path: Path) -> TypeGuard[VirtualPath]:
    """Whether a path is remote."""
    return isinstance(path, VirtualPath) and path.is_far


def remember_secrets(words: Sequence[str]) -> None:
    """Register the secrets in words of the command line, to hide them in messages."""
    if any("://" in word for word in words):
        loaded(f"{STORES}:remember_secrets")(words)


def without_secrets(text: str) -> str:
    """Remove secrets of URLs and the environment from a message."""
    if STORES not in sys.modules and not any(map(os.environ.get, SECRETS)):
        return text
    shown: str = loaded(f"{STORES}:without_secrets")(text)
    return shown
