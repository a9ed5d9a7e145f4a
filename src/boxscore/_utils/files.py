"""Write files atomically, and read files.

Conventions
-----------
- Content is written to a hidden temporary file next to the target, which is renamed when complete. Several
  files are only renamed when all are complete; if one cannot be replaced, the others are restored. Temporary
  files are always removed, unless the process is killed.
- As with ``>`` in a shell, folders and files without write permission are not replaced. Files keep their mode
  and, if the system allows it, their owner. Symbolic links are kept, and their targets are written.
- In a ``guarded`` context, input files are not replaced.
- A :class:`Snapshot` checks that a file that is read several times does not change.
- Files that are not regular (``/dev/null``, a named pipe, ``/dev/stdout``) are never replaced; the complete
  content is written to them.
- :func:`end_all` ends unfinished work, such as incomplete files and child processes. The signal handler of
  the command line calls it before it exits. In other processes, the work ends when an exception propagates.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import itertools
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, BinaryIO, cast

from boxscore._utils import checks
from boxscore._utils.given_paths import address_of, is_address
from boxscore.errors import FileFormatError, InputError

End = Callable[[], object]
"""A function that ends some work. It may be called at any time, repeatedly, and must not raise."""

_ends: dict[int, End] = {}


def begin(end: End) -> int:
    """Register a function that ends some work; return the key for :func:`forget`."""
    _ends[id(end)] = end
    return id(end)


def forget(key: int) -> None:
    """Unregister work that has ended."""
    _ends.pop(key, None)


@contextlib.contextmanager
def unfinished(end: End) -> Iterator[None]:
    """Call ``end`` when the context ends, in any way."""
    key = begin(end)
    try:
        yield
    finally:
        end()
        forget(key)


def end_all() -> None:
    """End all unfinished work, the latest first."""
    for end in reversed(list(_ends.values())):
        end()


Content = str | bytes | Iterable[bytes]
"""Content of a file, whole or in chunks. In text, surrogates (from file names) are written as ``\\udc80``."""

Guard = Callable[[Path, os.stat_result], str | None]
"""Return the name of the input that a file belongs to, "" if its path is sufficient, None if not an input."""

PIECE = 1 << 16
"""Number of bytes to read at a time if the size of a file is unknown."""

MOST_LINKS = 40

LARGEST_STREAM = 64_000_000
"""Maximum size of a pipe or device in bytes; the size of regular files is not limited."""

_guards: list[Guard] = []


@contextlib.contextmanager
def guarded(guard: Guard) -> Iterator[None]:
    """In this context, check every file with ``guard`` before it is replaced or extended."""
    _guards.append(guard)
    try:
        yield
    finally:
        _guards.remove(guard)


def refuse_replacing(name: str, path: Path) -> None:
    """Raise if a guard identifies an output as an input; ``name`` is the name of the output in messages."""
    if not _guards:
        return
    try:
        status = path.stat()
    except (OSError, ValueError):  # missing or inaccessible
        return
    for guard in _guards:
        input_name = guard(path, status)
        if input_name is not None:
            got = f"{str(path)!r}, which is {input_name}" if input_name else repr(str(path))
            raise InputError(name, "differ from the input", got=got)


@contextlib.contextmanager
def temporary_folder(parent: Path | None = None) -> Iterator[Path]:
    """Create a temporary folder, in ``parent`` or the system default, and remove it with its content."""
    import shutil
    import tempfile

    try:
        folder = Path(tempfile.mkdtemp(prefix="boxscore-", dir=parent))
    except OSError as error:
        rule, place = "be a folder that can be written to", str(parent or tempfile.gettempdir())
        raise InputError("scratch", rule, got=_reason(error), place=place) from None
    with unfinished(lambda: shutil.rmtree(folder, ignore_errors=True)):
        yield folder


def is_file(path: Path) -> bool:
    """Whether a file exists; False if the name is too long."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def is_there(path: Path) -> bool:
    """Whether a path exists; False if the name is too long."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def bytes_below(path: Path) -> int:
    """Return the size of a file, or of all files in a folder and its subfolders, in bytes."""
    if path.is_file():
        return path.stat().st_size
    return sum(entry.stat().st_size for entry in path.rglob("*") if entry.is_file())


def nearest_file(path: Path) -> str:
    """Suggest the file with the name closest to a missing one, or report the missing folder."""
    folder = path.parent
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in itertools.islice(entries, checks.MOST_COMPARED)]
    except (OSError, ValueError):
        return f"the folder {folder} does not exist"
    import difflib

    near = difflib.get_close_matches(path.name, names, n=1, cutoff=0.75)
    return f"did you mean {str(folder / near[0])!r}?" if near else (f"the file is not in {folder.absolute()}")


def read_at_most(file: IO[bytes], most: int) -> bytes:
    """Read the first ``most`` bytes of a file, without allocating memory for more than the file has."""
    piece = min(most, os.fstat(file.fileno()).st_size + 1)
    pieces = []
    while most > 0 and (content := file.read(min(most, max(piece, PIECE)))):
        pieces.append(content)
        most -= len(content)
        piece = PIECE
    return b"".join(pieces)


def read_bytes(path: Path, largest: int | None = None) -> bytes:
    """Read at most ``largest`` bytes of a file, plus one; read devices in chunks, to allow for signals."""
    with path.open("rb") as file:
        if largest is not None:
            return read_at_most(file, largest + 1)
        if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return file.read()
        content = read_at_most(file, LARGEST_STREAM + 1)
    if len(content) > LARGEST_STREAM:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
    return content


def read_text(path: Path, what: str = "a text file", *, largest: int | None = None) -> str:
    """Read a UTF-8 file, called ``what`` in messages; raise if it has more than ``largest`` bytes."""
    try:
        content = read_bytes(path, largest)
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise FileFormatError(what, "be UTF-8", got="other bytes", place=str(path)) from None
    except (OSError, ValueError) as error:  # ValueError: a NUL byte in the path
        raise FileFormatError(f"{path}: cannot be read: {_reason(error)}.") from None
    if largest is not None and len(content) > largest:
        raise FileFormatError(what, f"have at most {largest:,} bytes", got="more", place=str(path))
    return text


def write_atomically(path: Path, content: Content) -> None:
    """Write a file, given whole or in chunks, to a temporary name, and rename it when complete."""
    writing = _Writing()
    with unfinished(writing.end):
        writing.add(path, content)
        writing.put_in_place()


def write_folder(folder: Path, files: Mapping[str, Content] | Iterable[tuple[str, Content]]) -> None:
    """Write several files into a folder, which is created if missing.

    The files may be generated one by one. All are written to temporary names before the first one is renamed;
    the folder is unchanged after a full disk, an interrupt or an error. Other files in the folder are kept.
    """
    writing = _Writing()
    with unfinished(writing.end):
        writing.make(folder)
        for name, content in files.items() if isinstance(files, Mapping) else files:
            writing.make((folder / name).parent)
            writing.add(folder / name, content)
        writing.put_in_place()


def write_new_folder(folder: Path, files: Mapping[str, str | bytes]) -> None:
    """Write many files into a new folder, which appears when all are written."""
    import shutil

    # Write into a temporary folder next to the target, because renaming within a file system is atomic.
    _refuse_address(folder)
    temporary = _temporary_name(folder)
    # Always remove the temporary folder.
    with unfinished(lambda: shutil.rmtree(temporary, ignore_errors=True)):
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            temporary.mkdir()
            # Create each folder once, then the files.
            for inner in dict.fromkeys((temporary / name).parent for name in files):
                inner.mkdir(parents=True, exist_ok=True)
            for name, content in files.items():
                with (temporary / name).open("wb") as file:
                    file.writelines(_chunks(content))
            # Rename the complete folder.
            temporary.rename(folder)
        except (OSError, ValueError) as error:
            raise InputError(f"{folder}: cannot be written: {_reason(error)}.") from None


@dataclasses.dataclass
class _Part:
    """A file to write."""

    path: Path
    """The path given by the user."""
    target: Path
    """The file after following links."""
    temporary: Path
    backup: Path | None = None
    """A second name of the old content, while several files are renamed."""
    reached: bool = False
    """Whether replacement has started."""


class _Writing:
    """Write several files: first all to temporary names, then rename all."""

    def __init__(self) -> None:
        self._parts: list[_Part] = []
        self._streams: list[tuple[Path, Path, BinaryIO]] = []
        self._made: list[Path] = []
        self._placing = self._placed = self._restoring = False

    def make(self, folder: Path) -> None:
        """Create a folder if it is missing."""
        _refuse_address(folder)
        try:
            missing = [at for at in (folder, *folder.parents) if not at.exists()]
            self._made += reversed(missing)
            folder.mkdir(parents=True, exist_ok=True)
        except (OSError, ValueError) as error:
            raise InputError(f"{folder}: cannot be made: {_reason(error)}.") from None

    def add(self, path: Path, content: Content) -> None:
        """Write the content of a file to a temporary name."""
        # Write a regular file next to its target; write to pipes and devices at the end.
        refuse_replacing("an output", path)
        _refuse_address(path)
        with _naming(path):
            target = _follow_links(path)
            old = _state(target)
            to_stream = _descriptor(target) is not None or (old is not None and not stat.S_ISREG(old.st_mode))
            file = self._spool(path, target) if to_stream else self._open(path, target, old)
        # A full disk raises here, before any old file is replaced.
        with file:
            for piece in _chunks(content):
                with _naming(path):
                    file.write(piece)
            with _naming(path):
                file.flush()
                # Flush to disk before renaming; keep a handle of a stream for later.
                if not to_stream:
                    os.fsync(file.fileno())
                    _keep_owner_and_mode(file.fileno(), old)
                else:
                    self._streams.append(
                        (path, target, cast(BinaryIO, os.fdopen(os.dup(file.fileno()), "rb")))
                    )

    def _spool(self, path: Path, target: Path) -> BinaryIO:
        import tempfile

        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        return cast(BinaryIO, tempfile.TemporaryFile())

    def _open(self, path: Path, target: Path, old: os.stat_result | None) -> BinaryIO:
        """Open the temporary file; register it first, so that a signal does not leave it behind."""
        if old is not None:
            if not old.st_mode & 0o222:  # root could write it, but this is not intended
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            os.close(os.open(target, os.O_WRONLY))
        temporary = _temporary_name(target)
        self._parts.append(_Part(path, target, temporary))
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        return os.fdopen(os.open(temporary, flags, 0o666 if old is None else 0o600), "wb")

    def put_in_place(self) -> None:
        """Rename all files or none; then write to pipes and devices."""
        # With several files, keep each old one until all new ones are in place, to be able to restore them.
        self._placing = True
        try:
            for part in self._parts:
                with _naming(part.path):
                    part.reached = True
                    if len(self._parts) > 1:
                        _back_up(part)
                    part.temporary.replace(part.target)
        # Restore files that were already replaced.
        except BaseException:
            self._restoring, self._placing = True, False
            self._restore()
            raise
        # Write to streams last, because this cannot be undone.
        self._placed, self._placing = True, False
        for path, target, spool in self._streams:
            import shutil

            with _naming(path), _open_special(target) as stream:
                spool.seek(0)
                shutil.copyfileobj(spool, stream, 1 << 20)

    def _restore(self) -> None:
        """Restore the replaced files; a single file never needs this."""
        for part in self._parts if len(self._parts) > 1 else []:
            with contextlib.suppress(OSError):
                if not part.reached:
                    continue
                if part.backup is not None:
                    part.backup.replace(part.target)
                elif not part.temporary.exists():
                    part.target.unlink()
        self._restoring = False

    def end(self) -> None:
        """Remove temporary files; finish renaming first if it has started."""
        # After an interrupt between renames, finish, to get all new files instead of a mix.
        if self._placing:
            for part in self._parts:
                with contextlib.suppress(OSError):
                    part.temporary.replace(part.target)
            self._placed, self._placing = True, False
        if self._restoring:
            self._restore()
        for part in self._parts:
            # Remove temporary files and backups.
            for path in filter(None, (part.temporary, part.backup)):
                with contextlib.suppress(OSError):
                    path.unlink()
        for _, _, spool in self._streams:
            spool.close()
        # Remove folders that were created for files that were not written.
        for folder in reversed(self._made if not self._placed else []):
            with contextlib.suppress(OSError, ValueError):
                folder.rmdir()


def _refuse_address(path: Path) -> None:
    if is_address(str(path)):
        address = address_of(str(path))
        raise InputError(
            f"{address}: cannot be written: boxscore reads from object stores but writes only local files."
        )


def _back_up(part: _Part) -> None:
    """Create a second name for the old content."""
    if not part.target.exists():
        return
    part.backup = _temporary_name(part.target)
    try:
        os.link(part.target, part.backup)
    except OSError:  # the file system does not support hard links; the file is briefly missing
        part.target.rename(part.backup)


@contextlib.contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Convert OS errors to errors that name the file."""
    try:
        yield
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be written: {_reason(error)}.") from None


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _follow_links(path: Path) -> Path:
    """Follow symbolic links, except for those of the system to open files."""
    for _ in range(MOST_LINKS):
        if _descriptor(path) is not None or not path.is_symlink():
            return path
        path = path.parent / path.readlink()
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def _descriptor(path: Path) -> int | None:
    """Return the file descriptor of this process that a path refers to, such as 1 for ``/dev/fd/1``."""
    if not path.name.isdecimal() or os.path.realpath(path.parent) not in (
        "/dev/fd",
        f"/proc/{os.getpid()}/fd",
    ):
        return None
    return int(path.name)


def _state(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except FileNotFoundError:
        return None


def _open_special(path: Path) -> BinaryIO:
    """Open a pipe or device, or an open file of this process at its current position."""
    descriptor = _descriptor(path)
    number = os.open(path, os.O_WRONLY) if descriptor is None else os.dup(descriptor)
    return os.fdopen(number, "wb")


def _temporary_name(path: Path) -> Path:
    """Return a hidden name in the same folder, with the start of the name, because lengths are limited."""
    return path.with_name(f".{path.name[:40]}.{os.urandom(8).hex()}.part")


def _keep_owner_and_mode(file: int, old: os.stat_result | None) -> None:
    if old is None or not hasattr(os, "fchmod"):
        return
    new = os.fstat(file)
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
        with contextlib.suppress(OSError):
            os.fchown(file, old.st_uid, old.st_gid)
    os.fchmod(file, stat.S_IMODE(old.st_mode) & 0o777)


def _chunks(content: Content) -> Iterable[bytes]:
    if isinstance(content, str):
        content = content.encode("utf-8", errors="backslashreplace")
    return [content] if isinstance(content, bytes) else content


# ---------------------------------------------------------------- files that are read several times


TICK = 2_000_000_000
"""The coarsest resolution of timestamps in common file systems (FAT), in nanoseconds."""


class Snapshot:
    """The state of a file when reading started, to check that it does not change.

    Attributes
    ----------
    path : Path
    is_old : bool
        Whether the last change is so old that any later change has a different timestamp, given the coarse
        resolution of file systems.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        status = self._status()
        self._state = status
        self.is_old = time.time_ns() - max(status.st_mtime_ns, status.st_ctime_ns) > TICK

    def _status(self) -> os.stat_result:
        try:
            return self.path.stat()
        except OSError as error:
            raise FileFormatError(f"{self.path}: cannot be read: {error.strerror}.") from None

    def check(self) -> None:
        """Raise if the file is missing or has changed, before reading it again."""
        if _version_of(self._status()) != _version_of(self._state):
            raise FileFormatError(
                str(self.path),
                "not change while its tables are in use",
                got="another size or time of change",
                cause="masks and keypoints are read when they are first needed: load the file again",
            )

    def check_reading(self) -> None:
        """Raise if the file has changed while it was read."""
        now = self._status()
        if (*_version_of(now), now.st_ctime_ns) != (*_version_of(self._state), self._state.st_ctime_ns):
            raise changed_while_read(self.path, got="another size, time of change or file of this name")


def _version_of(status: os.stat_result) -> tuple[int, ...]:
    """Return the attributes that identify a version of a file."""
    return status.st_size, status.st_mtime_ns, status.st_dev, status.st_ino


def changed_while_read(path: Path, *, got: str) -> FileFormatError:
    """Return the error for a file that changes while it is read."""
    cause = "does another program write it? It should write to a temporary name and rename the file"
    return FileFormatError(str(path), "not change while it is read", got=got, cause=cause)
