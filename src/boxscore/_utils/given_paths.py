"""Turn what a user gives as input into a path: a path, several files, or the address of a store.

This is the one place that decides which it is; what reads files treats all three as paths. Only that a text
is an address, ``scheme://place``, is known here: an extension opens it, and knows what in it is secret.
"""

from __future__ import annotations

import glob
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
"""The module that opens addresses; it is imported when one is given."""

SECRETS = ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AZURE_STORAGE_KEY", "AZURE_STORAGE_SAS_TOKEN")
"""Variables of the environment that messages never repeat."""


class VirtualPath(_Base):
    """A path that is no file or folder of this machine, and finds and opens its files itself."""

    is_far: ClassVar[bool] = False
    """Whether each read takes its way to another machine; ``by_range`` then opens a file as Arrow's."""
    why_nothing: str
    """What is said where nothing is there."""

    def with_segments(self, *segments: Any) -> Path:
        """Return a path of this machine."""
        return Path(*segments)

    def is_symlink(self) -> bool:
        """Return False: it is no link."""
        return False

    def by_range(self) -> Any:
        """Open a file as Arrow's; only what is asked for is read."""
        raise NotImplementedError


class Several(VirtualPath):
    """Several files, in their order, as a folder that holds nothing else.

    Parameters
    ----------
    text : str
        What messages call them.
    files : sequence of Path
    """

    text: str
    files: tuple[Path, ...]
    why_nothing = "No file has such a name"

    def __new__(cls, text: str, files: Sequence[Path]) -> Several:
        """Make the path of what they are called."""
        return super().__new__(cls, text)

    def __init__(self, text: str, files: Sequence[Path]) -> None:
        if sys.version_info >= (3, 12):
            super().__init__(text)
        self.text, self.files = text, tuple(files)

    def __str__(self) -> str:
        return self.text  # a path has no two slashes in a row, a pattern of addresses has

    def __reduce__(self) -> tuple[Any, ...]:
        return Several, (str(self), self.files)

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        """Return the state of a folder, as large as its files."""
        if not self.files:
            raise FileNotFoundError(2, os.strerror(2), str(self))
        states = [file.stat() for file in self.files]
        changed = max(state.st_mtime for state in states)
        size = sum(state.st_size for state in states)
        return os.stat_result(
            (stat.S_IFDIR | 0o555, hash(self.files), -1, 1, 0, 0, size, changed, changed, changed)
        )

    def exists(self, *, follow_symlinks: bool = True) -> bool:
        """Whether there are any."""
        return bool(self.files)

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        """Several files are no file."""
        return False

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        """Several files are as a folder."""
        return bool(self.files)

    def iterdir(self) -> Iterator[Path]:  # type: ignore[override]
        """Yield the files."""
        yield from self.files

    def rglob(self, pattern: str, **_: Any) -> Iterator[Path]:  # type: ignore[override]
        """Yield the files, and what is in the folders among them."""
        for file in self.files:
            yield file
            if file.is_dir():
                yield from file.rglob(pattern)


def is_address(text: str) -> bool:
    """Whether text is an address, or was one before it was taken for a path; a file called so is none."""
    return re.match("[A-Za-z][A-Za-z0-9+.-]+:/", text) is not None and not os.path.lexists(text)


def address_of(text: str) -> Path:
    """Return an address as a path."""
    address: Path = loaded(f"{STORES}:address_of")(text)
    return address


def path_of(given: str | os.PathLike[str]) -> Path:
    """Return what is given as a path: of this machine, of a store, or of all files that a pattern matches."""
    if isinstance(given, VirtualPath):
        return given
    text = os.fspath(given)
    if "\0" in text:  # opening it raises the error
        return Path(given)
    if is_address(text):
        of_store: Path = loaded(f"{STORES}:all_at")(text)
        return of_store
    if any(sign in text for sign in "*?[") and not os.path.lexists(text):
        return Several(text, [Path(name) for name in sorted(glob.glob(text, recursive=True))])  # noqa: PTH207
    return Path(given)


def together(first: Path, second: Path) -> Several:
    """Return two inputs, of which the first may be several files already, as one."""
    files = [*(first.files if isinstance(first, Several) else [first]), second]
    return Several(f"{files[0]} and {len(files) - 1} more", files)


def files_of(path: Path) -> Sequence[Path]:
    """Return the files that a path refers to, or the path."""
    return path.files if isinstance(path, Several) else [path]


def is_far(path: Path) -> TypeGuard[VirtualPath]:
    """Whether each read takes its way to another machine."""
    return isinstance(path, VirtualPath) and path.is_far


def remember_secrets(words: Sequence[str]) -> None:
    """Let messages repeat none of the secrets in some words, addresses or not."""
    if any("://" in word for word in words):
        loaded(f"{STORES}:remember_secrets")(words)


def without_secrets(text: str) -> str:
    """Return a message without what addresses and the environment keep secret."""
    if STORES not in sys.modules and not any(map(os.environ.get, SECRETS)):
        return text
    shown: str = loaded(f"{STORES}:without_secrets")(text)
    return shown
