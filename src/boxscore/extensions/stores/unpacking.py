"""Open the contents of compressed files, archives and stores: ``.json.gz``, a data set as ``.zip``, ...

Conventions
-----------
- Unpacked files stay in a temporary folder until the process ends, because tables read masks and keypoints
  lazily. An unchanged archive is unpacked once.
- Names in an archive must be inside the folder. It unpacks to at most ``LARGEST`` bytes, and above ``ALWAYS``
  to at most ``RATIO`` times its size; a member is never longer than the archive declares.
- Only the beginning of images is unpacked, which contains their size; other large files are skipped.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import functools
import itertools
import os
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Any

from boxscore.errors import FileFormatError, InputError
from boxscore.extensions.stores.addresses import Address, without_secrets
from boxscore.formats._format import Opened, Side
from boxscore.formats._sniffer import MOST_NAMES, Sniffer
from boxscore.formats.registry import detected, format_named, open_at, opened_as

if TYPE_CHECKING:
    import zipfile

LARGEST = 8_000_000_000
ALWAYS = 100_000_000
RATIO = 200
MOST_MEMBERS = 1_000_000
IMAGE_BYTES = 1 << 18
"""Bytes of an image to unpack; they contain its size."""

PARQUET = b"PAR1"
"""First bytes of files that are read by range."""

_PIECE = 1 << 20
_WANTS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EMFILE, errno.ENOMEM)
"""Errors of the machine; the archive itself may be intact."""
_IMAGES = frozenset({".jpg", ".jpeg", ".png", ".bmp", ".webp", ".tif", ".tiff", ".gif", ".avif"})
_SKIPPED = frozenset({".mp4", ".avi", ".mov", ".mkv", ".pt", ".pth", ".onnx", ".zip"})
_DATA = (".json", ".jsonl", ".xml", ".csv", ".parquet", ".manifest", ".yaml", ".yml", ".npz")

_known: dict[tuple[str, int, int], Path] = {}


class _FarSniffer(Sniffer):
    """Reads the beginning of a file in a store, or the names in a folder there."""

    path: Address

    @functools.cached_property
    def head(self) -> bytes:
        return self.path.head.removeprefix(b"\xef\xbb\xbf")

    @functools.cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(itertools.islice((entry.name for entry in self.path.iterdir()), MOST_NAMES))


def opened_within(path: Path, name: str, side: Side | None) -> Opened | None:
    """Open the contents of an archive, the copy of a stored file, or stored Parquet; None for other files."""
    inner = unpacked(path)
    if inner != path:
        return _open_inside(path, inner, name, side)
    if not isinstance(path, Address):
        return None
    reason = format_named("parquet").detect(_FarSniffer(path))
    if reason is None:
        cause = "name the files: a pattern such as s3://bucket/run/*.json is several files in one"
        rule = "be a file, or a folder of Parquet files"
        raise FileFormatError(str(path), rule, got="another folder", cause=cause)
    return opened_as(path, name, "parquet", reason)


def _open_inside(path: Path, inner: Path, name: str, side: Side | None) -> Opened:
    """Open the contents of an archive, or a copy."""
    if inner.is_dir() and detected(Sniffer(inner)) is None:
        inner = _only_data(inner) or inner
    try:
        opened = open_at(inner, name, side=side)
    except FileFormatError as error:
        raise FileFormatError(str(error).replace(str(inner), str(path))) from None
    is_said = isinstance(path, Address) or not opened.is_direct
    return opened._replace(
        path=path,
        reason=opened.reason if is_said else f"{opened.reason}, in an archive",
        unpacked=opened.unpacked or inner,
        note=opened.note.replace(str(inner), str(path)),
    )


def _is_packed(sniffer: Sniffer) -> bool:
    """Return whether a path is a compressed file or an archive to unpack."""
    starts = {".gz": b"\x1f\x8b", ".zip": b"PK"}.get(sniffer.suffix)
    tar = sniffer.path.name.lower().endswith(".tar.gz")
    return starts is not None and not tar and not sniffer.is_folder and sniffer.head.startswith(starts)


def unpacked(path: Path) -> Path:
    """Return the unpacked file or folder of an archive; return any other path unchanged.

    A file in a store is copied here first, except for Parquet, which is read by range.
    """
    if isinstance(path, Address):
        is_read_there = not path.is_file() or path.head.startswith(PARQUET)
        return path if is_read_there else unpacked(_make_once(path, _copy_here))
    if not path.exists() or not _is_packed(Sniffer(path)):
        return path
    return _make_once(path, _unpack_gzip if path.suffix.lower() == ".gz" else _unpack_zip)


def _make_once(path: Path, make: Callable[[Path, Path], Path]) -> Path:
    """Make a file or folder from a path in a temporary folder, once per version of the path."""
    import shutil

    status = path.stat()
    key = (str(path.absolute()), status.st_size, status.st_mtime_ns)
    if key not in _known or not _known[key].exists():
        folder = _temporary_folder()
        try:
            _known[key] = make(path, folder)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
    return _known[key]


def _copy_here(address: Path, folder: Path) -> Path:
    """Copy a file from a store."""
    assert isinstance(address, Address)
    copy = folder / (address.name or "file")
    try:
        with copy.open("wb") as file:
            address.copy_to(file)
    except OSError as error:
        text = f"{address}: cannot be copied to {folder.parent}: {error.strerror or error}"
        raise FileFormatError(f"{without_secrets(text)}; choose another folder with TMPDIR.") from None
    return copy


def _temporary_folder() -> Path:
    import shutil
    import tempfile

    folder = Path(tempfile.mkdtemp(prefix="boxscore-"))
    owner = os.getpid()

    def remove() -> None:
        if os.getpid() == owner:
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return folder


class _Budget:
    """The remaining number of bytes to unpack."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.left = self.limit = min(LARGEST, max(ALWAYS, RATIO * path.stat().st_size))

    def spend(self, count: int) -> None:
        self.left -= count
        if self.left < 0:
            rule = f"hold at most {self.limit:,} bytes, unpacked"
            cause = "unpack it yourself if it is not broken"
            raise FileFormatError("an archive", rule, got="more", place=str(self.path), cause=cause)


def _unpack_gzip(path: Path, folder: Path) -> Path:
    import gzip
    import zlib

    target = folder / (path.name[: -len(".gz")] or "file")
    budget = _Budget(path)
    try:
        with gzip.GzipFile(path) as source, target.open("wb") as file:
            _copy(source, file, budget)
    except (OSError, EOFError, zlib.error) as error:
        raise _damaged(path, error) from None
    return target


def _unpack_zip(path: Path, folder: Path) -> Path:
    import struct
    import zipfile
    import zlib

    budget = _Budget(path)
    errors: tuple[type[Exception], ...]
    errors = (OSError, EOFError, zlib.error, zipfile.BadZipFile, struct.error, NotImplementedError)
    # Python can be built without this module.
    with contextlib.suppress(ImportError):
        import lzma

        errors += (lzma.LZMAError,)
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            if len(members) > MOST_MEMBERS:
                rule = f"have at most {MOST_MEMBERS:,} members"
                raise FileFormatError("an archive", rule, got=len(members), place=str(path))
            for member in members:
                _unpack_member(archive, member, path, folder, budget)
    except (*errors, RuntimeError, ValueError, OverflowError, MemoryError, IndexError) as error:
        if isinstance(error, (FileFormatError, InputError)):
            raise
        raise _damaged(path, error) from None
    return _root(folder)


def _unpack_member(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, path: Path, folder: Path, budget: _Budget
) -> None:
    # Skip folders and hidden files.
    name = member.filename.replace("\\", "/")
    parts = PurePosixPath(name).parts
    if member.is_dir() or not parts or parts[0] == "__MACOSX" or parts[-1].startswith("."):
        return
    # Reject members that would be written outside of the folder.
    outside = name.startswith("/") or ".." in parts or ":" in parts[0] or any("\0" in part for part in parts)
    if outside or len(name) > 1000:
        cause = "was it made to write elsewhere?"
        rule = "have names below its own folder"
        raise FileFormatError("an archive", rule, got=repr(name[:60]), place=str(path), cause=cause)
    # Skip files that no reader needs.
    ending = PurePosixPath(name).suffix.lower()
    if ending in _SKIPPED:
        return
    if member.flag_bits & 1:
        rule = "be without a password"
        raise FileFormatError("an archive", rule, got=f"{name!r} with one", place=str(path))
    # A second member with the same name would replace the first.
    target = folder.joinpath(*parts)
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists():
        rule = "name each file once"
        raise FileFormatError("an archive", rule, got=f"{name!r} twice", place=str(path))
    # Unpack only the beginning of an image, for its size; the budget covers all members together.
    most = IMAGE_BYTES if ending in _IMAGES else member.file_size
    with archive.open(member) as source, target.open("wb") as file:
        _copy(source, file, budget, most=most)


def _copy(source: Any, file: IO[bytes], budget: _Budget, *, most: int = LARGEST) -> None:
    while most > 0 and (piece := source.read(min(_PIECE, most))):
        budget.spend(len(piece))
        most -= len(piece)
        file.write(piece)


def _damaged(path: Path, error: Exception) -> FileFormatError:
    reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
    if isinstance(error, OSError) and error.errno in _WANTS:
        return FileFormatError(f"{path}: cannot be unpacked: {reason}.")
    if isinstance(error, OSError) and error.filename is not None:
        rule = "have names that can coexist in one folder"
        return FileFormatError("an archive", rule, got=reason, place=str(path), cause="unpack it yourself")
    got = reason.split("\n", 1)[0][:100].rstrip(".") or "an end in the middle"
    cause = "was the download or the write cut short?"
    return FileFormatError("an archive", "be whole", got=got, place=str(path), cause=cause)


def _root(folder: Path) -> Path:
    """Return the folder, or follow single children down."""
    entries = sorted(folder.iterdir())
    while len(entries) == 1:
        folder = entries[0]
        if not folder.is_dir() or folder.name in ("Annotations", "labels", "ann", "annotations"):
            break
        entries = sorted(folder.iterdir())
    return folder


def _only_data(folder: Path) -> Path | None:
    """Return the only data file below a folder; None if it is not the only one."""
    files = (Path(inner, name) for inner, _, names in os.walk(folder) for name in names)
    data = [file for file in files if file.name.lower().endswith(_DATA)]
    return data[0] if len(data) == 1 else None
