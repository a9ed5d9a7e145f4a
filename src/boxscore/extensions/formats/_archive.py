"""Open ``.npz`` archives, and check names, dtypes and shapes before reading any array.

Goal
----
Check every declaration of an archive against the file, so that reading an untrusted archive never takes more
memory than the file has bytes.

Conventions
-----------
- Members are stored uncompressed, with unique names and disjoint byte ranges.
- A member is a NumPy array in format 1.0, without Python objects or records, and has exactly as many bytes as
  its dtype and shape require.

References
----------
PKWARE's APPNOTE.TXT 6.3.10, 4.3.7 (local file header); numpy.lib.format, "Format Version 1.0".
"""

from __future__ import annotations

import contextlib
import io
import itertools
import math
import warnings
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore.errors import FileFormatError

if TYPE_CHECKING:
    from zipfile import ZipFile, ZipInfo

LOCAL_HEADER = 30
"""Size in bytes of a local header without the name."""
NPY = ".npy"


class Member(NamedTuple):
    """The dtype and shape that a member declares, checked against its bytes."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.dtype} {list(self.shape)}"


class Kind(NamedTuple):
    """The name of a kind of archive in messages, and the command that writes it."""

    what: str = "a file of columns"
    writer: str = "boxscore convert"


class Archive:
    """An open archive that maps array names to members."""

    def __init__(
        self, path: Path, file: ZipFile, kind: Kind, infos: Mapping[str, ZipInfo] | None = None
    ) -> None:
        self._path, self._file, self._kind = path, file, kind
        self._infos = _infos(path, file, kind) if infos is None else infos

    def within(self, start: str) -> Archive:
        """Return the members with this prefix, under their names without it."""
        infos = {
            name.removeprefix(start): info for name, info in self._infos.items() if name.startswith(start)
        }
        return Archive(self._path, self._file, self._kind, infos)

    @property
    def names(self) -> list[str]:
        """All names, in archive order."""
        return list(self._infos)

    def member(self, name: str) -> Member | None:
        """Return the dtype and shape of an array without reading it; None if it is missing."""
        if name not in self._infos:
            return None
        info = self._infos[name]
        with _unified_errors(self._path, self._kind), _npy_warnings(), self._file.open(info) as file:
            if np.lib.format.read_magic(file) != (1, 0):
                raise ValueError("another version of the format")
            try:
                shape, _, dtype = np.lib.format.read_array_header_1_0(file)
            except MemoryError:  # raised by Python's parser for deeply nested text
                raise ValueError("a header that nests too deep") from None
            if dtype.hasobject or dtype.names is not None or dtype.subdtype is not None:
                raise ValueError("an array of objects or of records")
            if any(side < 0 for side in shape) or math.prod(shape) * dtype.itemsize != (
                info.file_size - file.tell()
            ):
                raise ValueError("a shape that is not that of the bytes")
        return Member(dtype, tuple(map(int, shape)))

    def read(self, name: str) -> NDArray[Any]:
        """Read an array after ``member`` checked it."""
        with (
            _unified_errors(self._path, self._kind),
            _npy_warnings(),
            self._file.open(self._infos[name]) as file,
        ):
            array: NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
            return array


def zipped(arrays: Iterable[tuple[str, NDArray[Any]]]) -> Iterator[bytes]:
    """Yield the bytes of an archive of arrays, one array at a time."""
    import zipfile

    stream = _Stream()
    with zipfile.ZipFile(stream, "w", allowZip64=True) as file:
        for name, values in arrays:
            info = zipfile.ZipInfo(name + NPY)  # no timestamp: equal arrays give equal bytes
            with file.open(info, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, values, version=(1, 0), allow_pickle=False)
            yield stream.taken()
    yield stream.taken()


class _Stream(io.RawIOBase):
    """A write-only stream that hands out its bytes in chunks."""

    def __init__(self) -> None:
        self._content = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        self._content += content
        return len(content)

    def taken(self) -> bytes:
        """Return the bytes written since the last call."""
        content, self._content = bytes(self._content), bytearray()
        return content


@contextlib.contextmanager
def open_archive(
    path: Path,
    content: IO[bytes] | None = None,
    *,
    what: str = Kind().what,
    writer: str = Kind().writer,
) -> Iterator[Archive]:
    """Open an archive from a file or from bytes, and check the positions of its members."""
    import zipfile

    with contextlib.ExitStack() as stack:
        kind = Kind(what, writer)
        with _unified_errors(path, kind):
            file = stack.enter_context(zipfile.ZipFile(content or path))
            archive = Archive(path, file, kind)
        yield archive


def _infos(path: Path, file: ZipFile, kind: Kind) -> dict[str, ZipInfo]:
    """Return the directory's entries by name; raise an error for spans that overlap or exceed the file."""
    import zipfile

    # Allow only stored members: each array is then a span of the file that can be mapped or read alone.
    infos = file.infolist()
    if any(info.compress_type != zipfile.ZIP_STORED for info in infos):
        raise FileFormatError(kind.what, "not be compressed", got=str(path))
    if any(info.compress_size != info.file_size or not info.filename.endswith(NPY) for info in infos):
        raise ValueError("a member with inconsistent sizes, or one that is not an array")
    # zipfile would silently use the last of two members with one name.
    named = {info.filename.removesuffix(NPY): info for info in infos}
    if len(named) < len(infos):
        counted = itertools.groupby(sorted(info.filename for info in infos))
        twice = next(name for name, same in counted if len(list(same)) > 1)
        got = f"several members {twice!r}"
        raise FileFormatError(kind.what, "hold each column once", got=got, place=str(path))
    # Sorted spans must not overlap, or they could claim more bytes than the file has.
    spans = sorted((info.header_offset, info.header_offset + LOCAL_HEADER + info.file_size) for info in infos)
    ends = [0, *(end for _, end in spans)]
    starts = [*(start for start, _ in spans), file.start_dir]
    if starts[0]:
        raise ValueError("bytes before the first member, with which NumPy takes it for a pickle")
    if any(start < end for start, end in zip(starts, ends, strict=True)):
        got = "members that share bytes"
        raise FileFormatError(kind.what, "hold each byte once", got=got, place=str(path))
    return named


@contextlib.contextmanager
def _unified_errors(path: Path, kind: Kind) -> Iterator[None]:
    """Convert the many exceptions of zipfile and NumPy to one error."""
    try:
        yield
    except (FileFormatError, MemoryError):
        raise
    except OSError as error:
        raise FileFormatError(f"{path}: cannot be read: {error.strerror or error}.") from None
    except Exception:
        raise FileFormatError(kind.what, f"be written by {kind.writer}", got=str(path)) from None


@contextlib.contextmanager
def _npy_warnings() -> Iterator[None]:
    """Turn NumPy's warnings about unusual headers into errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield
