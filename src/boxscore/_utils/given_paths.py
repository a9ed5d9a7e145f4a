"""Turn what a user gives as input into a path: a path, an address in a store, or several files.

This is the one place that decides which it is; what reads files treats all three as paths.
"""

from __future__ import annotations

import contextlib
import fnmatch
import glob
import os
import stat
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boxscore._utils.addresses import Address, address_of, is_address

if TYPE_CHECKING:
    _Base = Path
else:
    _Base = type(Path())


class Several(_Base):
    """Several files, in their order, as a folder that holds nothing else.

    Parameters
    ----------
    text : str
        What messages call them.
    files : sequence of Path
    """

    text: str
    files: tuple[Path, ...]

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

    def with_segments(self, *segments: Any) -> Path:
        """Return a path that refers to one file."""
        return Path(*segments)

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

    def is_symlink(self) -> bool:
        """Several files are no link."""
        return False

    def iterdir(self) -> Iterator[Path]:  # type: ignore[override]
        """Yield the files."""
        yield from self.files

    def rglob(self, pattern: str, **_: Any) -> Iterator[Path]:  # type: ignore[override]
        """Yield the files, and what is in the folders among them."""
        for file in self.files:
            yield file
            if file.is_dir():
                yield from file.rglob(pattern)


def path_of(given: str | os.PathLike[str]) -> Path:
    """Return what is given as a path: of this machine, of a store, or of all files that a pattern matches."""
    if isinstance(given, (Address, Several)):
        return given
    text = os.fspath(given)
    address = is_address(text)
    if "\0" in text:  # opening it raises the error
        return Path(given)
    named = text.partition("?")[0].partition("://")[2].partition("/")[2] if address else text
    if any(sign in named for sign in ("*[" if address else "*?[")):
        if address:
            return Several(str(address_of(text)), _matching(address_of(text)))
        if not os.path.lexists(text):
            return Several(text, [Path(name) for name in sorted(glob.glob(text, recursive=True))])  # noqa: PTH207
    return address_of(text) if address else Path(given)


def together(first: Path, second: Path) -> Several:
    """Return two inputs, of which the first may be several files already, as one."""
    files = [*(first.files if isinstance(first, Several) else [first]), second]
    return Several(f"{files[0]} and {len(files) - 1} more", files)


def files_of(path: Path) -> Sequence[Path]:
    """Return the files that a path refers to, or the path."""
    return path.files if isinstance(path, Several) else [path]


def _matching(address: Address) -> list[Address]:
    """Return the files of a store that a pattern matches, sorted; ``*`` is of one folder's names."""
    # Options of an address are not a part of the pattern.
    place, mark, options = address.given.partition("?")
    scheme, _, rest = place.partition("://")
    root, *patterns = rest.split("/")
    found = [Address(f"{scheme}://{root}{mark}{options}")]
    # Go down folder by folder: a store has no glob, and only folders that match are listed.
    for number, pattern in enumerate(patterns):
        if not any(sign in pattern for sign in "*["):
            found = [above / pattern for above in found]
            continue
        last = number == len(patterns) - 1
        found = [
            inner
            for above in found
            for inner in above.iterdir()
            if fnmatch.fnmatchcase(inner.name, pattern) and (last or inner.is_dir())
        ]
    return [one for one in found if one.exists()]


def why_nothing(path: Path) -> str:
    """Say why there is nothing of a path that does not exist."""
    if isinstance(path, Several):
        return "No file has such a name"
    return path.why_nothing if isinstance(path, Address) else "No such file or directory"


def is_far(path: Path) -> bool:
    """Whether each read takes its way to another machine."""
    return isinstance(path, Address)


@contextlib.contextmanager
def opened_by_range(path: Path) -> Iterator[Any]:
    """Open a file of this machine or of a store as Arrow's, of which ranges are read."""
    import pyarrow

    with path.by_range() if isinstance(path, Address) else pyarrow.OSFile(str(path)) as file:
        yield file
