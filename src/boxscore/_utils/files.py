"""Write files atomically: a file name never refers to incomplete content.

Conventions
-----------
- Content goes to a hidden temporary name next to the file, and is renamed when all of it is there. Several
  files are renamed only when all of them are there; should one not be replaceable, the others get their old
  content back. Whatever ends the writing, no temporary file is left; only a kill can leave one.
- What a shell's ``>`` would not write is not replaced: a folder, a file without write permission. A file
  keeps its mode, and its owner where the system allows that. A symbolic link stays: what it leads to is
  written.
- While some work is ``guarded``, files that it reads are not replaced.
- A file that is read several times must stay the same, which a :class:`Snapshot` checks.
- What is no regular file (``/dev/null``, a named pipe, ``/dev/stdout``) is never replaced: it is written to,
  when the content is complete.
- Work that is unfinished, such as half-written files and children, is ended by :func:`end_all`: the command
  line's signal handler calls it and leaves. In any other process nothing ever calls it: there the same work
  ends where an exception passes it.
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
"""Ends some work, at any moment and any number of times; may not raise."""

_ends: dict[int, End] = {}


def begin(end: End) -> int:
    """Record how to end some work; return the key for :func:`forget`."""
    _ends[id(end)] = end
    return id(end)


def forget(key: int) -> None:
    """Remove work that has ended."""
    _ends.pop(key, None)


@contextlib.contextmanager
def unfinished(end: End) -> Iterator[None]:
    """Call ``end`` when the context ends, however that is."""
    key = begin(end)
    try:
        yield
    finally:
        end()
        forget(key)


def end_all() -> None:
    """End everything that is unfinished, the latest first."""
    for end in reversed(list(_ends.values())):
        end()


Content = str | bytes | Iterable[bytes]
"""Of a file: whole or in pieces. In text, surrogates (from file names) are written as ``\\udc80``."""

Guard = Callable[[Path, os.stat_result], str | None]
"""Names the input that a file is, "" where its path is name enough; None for a file that is no input."""

PIECE = 1 << 16
"""Bytes that are read at a time where a file does not say how long it is."""

MOST_LINKS = 40

LARGEST_STREAM = 64_000_000
"""Bytes of a pipe or device, where a file may have any number."""

_guards: list[Guard] = []


@contextlib.contextmanager
def guarded(guard: Guard) -> Iterator[None]:
    """Check every file that would be replaced or extended with ``guard`` in this context."""
    _guards.append(guard)
    try:
        yield
    finally:
        _guards.remove(guard)


def refuse_replacing(name: str, path: Path) -> None:
    """Refuse an output, which messages call ``name``, that a guard says is an input."""
    if not _guards:
        return
    try:
        status = path.stat()
    except (OSError, ValueError):  # nothing is there, or nothing that can be reached
        return
    for guard in _guards:
        input_name = guard(path, status)
        if input_name is not None:
            got = f"{str(path)!r}, which is {input_name}" if input_name else repr(str(path))
            raise InputError(name, "differ from the input", got=got)


@contextlib.contextmanager
def temporary_folder(parent: Path | None = None) -> Iterator[Path]:
    """Make a folder, in ``parent`` or where the system has them, and remove it with all that is in it."""
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
    """Whether a file exists; a name that is too long is not one."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def is_there(path: Path) -> bool:
    """Whether there is anything at a path; a name that is too long is not there."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def bytes_below(path: Path) -> int:
    """Return the bytes of a file, or of all files in a folder and the folders in it."""
    if path.is_file():
        return path.stat().st_size
    return sum(entry.stat().st_size for entry in path.rglob("*") if entry.is_file())


def nearest_file(path: Path) -> str:
    """Suggest the file nearest to one that is not there, or say what is missing."""
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
    """Read the first ``most`` bytes of a file; memory is allocated for the file, not for the limit."""
    piece = min(most, os.fstat(file.fileno()).st_size + 1)
    pieces = []
    while most > 0 and (content := file.read(min(most, max(piece, PIECE)))):
        pieces.append(content)
        most -= len(content)
        piece = PIECE
    return b"".join(pieces)


def read_bytes(path: Path, largest: int | None = None) -> bytes:
    """Read a file up to ``largest`` bytes and one more; devices in pieces, between which signals work."""
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
    """Read a UTF-8 file; messages call it ``what``, and refuse one of more than ``largest`` bytes."""
    try:
        content = read_bytes(path, largest)
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise FileFormatError(what, "be UTF-8", got="other bytes", place=str(path)) from None
    except (OSError, ValueError) as error:  # a NUL byte in the path
        raise FileFormatError(f"{path}: cannot be read: {_reason(error)}.") from None
    if largest is not None and len(content) > largest:
        raise FileFormatError(what, f"have at most {largest:,} bytes", got="more", place=str(path))
    return text


def write_atomically(path: Path, content: Content) -> None:
    """Write a file, given whole or in pieces, under a temporary name and rename it when it is complete."""
    writing = _Writing()
    with unfinished(writing.end):
        writing.add(path, content)
        writing.put_in_place()


def write_folder(folder: Path, files: Mapping[str, Content] | Iterable[tuple[str, Content]]) -> None:
    """Write several files into a folder, which is made where it is missing.

    The files may be made one by one while they are written. All are written under temporary names before the
    first is renamed: a full disk, an interrupt or an error of what makes them leaves the folder's files as
    they were, all of them. Others that lie in the folder are not touched.
    """
    writing = _Writing()
    with unfinished(writing.end):
        writing.make(folder)
        for name, content in files.items() if isinstance(files, Mapping) else files:
            writing.make((folder / name).parent)
            writing.add(folder / name, content)
        writing.put_in_place()


def write_new_folder(folder: Path, files: Mapping[str, str | bytes]) -> None:
    """Write many files into a folder that is not there yet; it appears when all are written."""
    import shutil

    # Write into a temporary folder next to the target: a rename inside a file system is atomic.
    _refuse_address(folder)
    temporary = _beside(folder)
    # Whatever fails, the temporary folder is removed.
    with unfinished(lambda: shutil.rmtree(temporary, ignore_errors=True)):
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            temporary.mkdir()
            # Make each folder once, then the files in it.
            for inner in dict.fromkeys((temporary / name).parent for name in files):
                inner.mkdir(parents=True, exist_ok=True)
            for name, content in files.items():
                with (temporary / name).open("wb") as file:
                    file.writelines(_pieces(content))
            # All are written: the folder appears with everything in it.
            temporary.rename(folder)
        except (OSError, ValueError) as error:
            raise InputError(f"{folder}: cannot be written: {_reason(error)}.") from None


@dataclasses.dataclass
class _Part:
    """A file that is being written."""

    path: Path
    """As the user gave it."""
    target: Path
    """The file itself, behind any links."""
    temporary: Path
    backup: Path | None = None
    """A second name of the old content, while several files are put in place."""
    reached: bool = False
    """Whether replacing has begun."""


class _Writing:
    """Files that are being written: all of them under temporary names, then all in place."""

    def __init__(self) -> None:
        self._parts: list[_Part] = []
        self._streams: list[tuple[Path, Path, BinaryIO]] = []
        self._made: list[Path] = []
        self._placing = self._placed = self._restoring = False

    def make(self, folder: Path) -> None:
        """Make a folder where it is missing."""
        _refuse_address(folder)
        try:
            missing = [at for at in (folder, *folder.parents) if not at.exists()]
            self._made += reversed(missing)
            folder.mkdir(parents=True, exist_ok=True)
        except (OSError, ValueError) as error:
            raise InputError(f"{folder}: cannot be made: {_reason(error)}.") from None

    def add(self, path: Path, content: Content) -> None:
        """Write a file's content under a temporary name."""
        # A regular file is written next to its target; a pipe or device is filled at the end.
        refuse_replacing("an output", path)
        _refuse_address(path)
        with _naming(path):
            target = _followed(path)
            old = _state(target)
            to_stream = _descriptor(target) is not None or (old is not None and not stat.S_ISREG(old.st_mode))
            file = self._spool(path, target) if to_stream else self._open(path, target, old)
        # A full disk is an error here, while the old files are all in place.
        with file:
            for piece in _pieces(content):
                with _naming(path):
                    file.write(piece)
            with _naming(path):
                file.flush()
                # On disk before its rename; a stream keeps a handle of its own for later.
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
        """Open the temporary file; it is recorded before it exists, so that no signal leaves it behind."""
        if old is not None:
            if not old.st_mode & 0o222:  # root may write it all the same, and did not mean to
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            os.close(os.open(target, os.O_WRONLY))
        temporary = _beside(target)
        self._parts.append(_Part(path, target, temporary))
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        return os.fdopen(os.open(temporary, flags, 0o666 if old is None else 0o600), "wb")

    def put_in_place(self) -> None:
        """Rename every file, or none; then fill what is no regular file."""
        # Several files: each old one is kept until all new ones are in place, so that all can go back.
        self._placing = True
        try:
            for part in self._parts:
                with _naming(part.path):
                    part.reached = True
                    if len(self._parts) > 1:
                        _back_up(part)
                    part.temporary.replace(part.target)
        # Put back what was replaced so far.
        except BaseException:
            self._restoring, self._placing = True, False
            self._restore()
            raise
        # Streams are written last, because that cannot be undone.
        self._placed, self._placing = True, False
        for path, target, spool in self._streams:
            import shutil

            with _naming(path), _opened(target) as stream:
                spool.seek(0)
                shutil.copyfileobj(spool, stream, 1 << 20)

    def _restore(self) -> None:
        """Undo what was put in place; renaming a single file needs no undoing."""
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
        """Remove temporary files; if files are being put in place, finish that first."""
        # An interrupt between renames: finishing leaves all new files, never a mix.
        if self._placing:
            for part in self._parts:
                with contextlib.suppress(OSError):
                    part.temporary.replace(part.target)
            self._placed, self._placing = True, False
        if self._restoring:
            self._restore()
        for part in self._parts:
            # Remove what is temporary.
            for path in filter(None, (part.temporary, part.backup)):
                with contextlib.suppress(OSError):
                    path.unlink()
        for _, _, spool in self._streams:
            spool.close()
        # Remove folders that were made for files that did not come.
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
    """Give the old content a second name."""
    if not part.target.exists():
        return
    part.backup = _beside(part.target)
    try:
        os.link(part.target, part.backup)
    except OSError:  # a file system without hard links: for a moment there is no file
        part.target.rename(part.backup)


@contextlib.contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Convert errors of the system to one that names the file."""
    try:
        yield
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be written: {_reason(error)}.") from None


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _followed(path: Path) -> Path:
    """Follow symbolic links, but not the system's to files that are open."""
    for _ in range(MOST_LINKS):
        if _descriptor(path) is not None or not path.is_symlink():
            return path
        path = path.parent / path.readlink()
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def _descriptor(path: Path) -> int | None:
    """Return which open file of this process a path refers to, such as 1 for ``/dev/fd/1``."""
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


def _opened(path: Path) -> BinaryIO:
    """Open what is no regular file; an open file of this process at its current position."""
    descriptor = _descriptor(path)
    number = os.open(path, os.O_WRONLY) if descriptor is None else os.dup(descriptor)
    return os.fdopen(number, "wb")


def _beside(path: Path) -> Path:
    """Return a hidden name in the same folder, with the start of the name: lengths are limited."""
    return path.with_name(f".{path.name[:40]}.{os.urandom(8).hex()}.part")


def _keep_owner_and_mode(file: int, old: os.stat_result | None) -> None:
    if old is None or not hasattr(os, "fchmod"):
        return
    new = os.fstat(file)
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
        with contextlib.suppress(OSError):
            os.fchown(file, old.st_uid, old.st_gid)
    os.fchmod(file, stat.S_IMODE(old.st_mode) & 0o777)


def _pieces(content: Content) -> Iterable[bytes]:
    if isinstance(content, str):
        content = content.encode("utf-8", errors="backslashreplace")
    return [content] if isinstance(content, bytes) else content


# ---------------------------------------------------------------- a file that is read several times


TICK = 2_000_000_000
"""Nanoseconds; the coarsest clock of a file system that is in use (FAT)."""


class Snapshot:
    """The state of a file when its reading began; what is read later must find it unchanged.

    Attributes
    ----------
    path : Path
    is_old : bool
        Whether the last change is so long ago that a later one must have another time: clocks of file systems
        tick coarsely. Until then a file with the same times may have been written again.
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
        """Refuse a file that has vanished or changed before something else was read of it."""
        if _written(self._status()) != _written(self._state):
            raise FileFormatError(
                str(self.path),
                "not change while its tables are in use",
                got="another size or time of change",
                cause="masks and keypoints are read when they are first needed: load the file again",
            )

    def check_reading(self) -> None:
        """Refuse a file that has changed while it was read: the parts would not belong together."""
        now = self._status()
        if (*_written(now), now.st_ctime_ns) != (*_written(self._state), self._state.st_ctime_ns):
            raise changed_while_read(self.path, got="another size, time of change or file of this name")


def _written(status: os.stat_result) -> tuple[int, ...]:
    """Return what distinguishes one writing of a file from another."""
    return status.st_size, status.st_mtime_ns, status.st_dev, status.st_ino


def changed_while_read(path: Path, *, got: str) -> FileFormatError:
    """Return the error for a file that another program writes."""
    cause = "does another program write it? It should write to a temporary name and rename the file"
    return FileFormatError(str(path), "not change while it is read", got=got, cause=cause)
