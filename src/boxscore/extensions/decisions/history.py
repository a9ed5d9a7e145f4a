"""Append to and read a history of checks: one JSON object per line, one line per run.

Conventions
-----------
- A line is appended atomically, by one write at the end of the file under a lock. Runs on one machine, or on
  a shared file system with locks, may append concurrently. Existing lines never change.
- Lines that are not records (a merge conflict, a truncated file, a value out of range) are skipped and
  counted.
- A record's ``time`` is UTC, ISO 8601.
"""

from __future__ import annotations

import contextlib
import datetime
import errno
import io
import json
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from boxscore._utils.files import read_bytes, refuse_replacing
from boxscore._utils.text import json_value
from boxscore.errors import FileFormatError, InputError
from boxscore.extensions.decisions.gate import is_value, json_once

SCHEMA_VERSION = 1
"""Version of the record format; keys may be added within a version, but never changed or removed."""

MOST_LOOKS = 1_000_000
"""The largest number of a look: later ones would have a level so low that no drop could be significant."""

TRIES = 100
"""Maximum attempts to reopen a history that another run has removed."""

PICTURES = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp")
"""Extensions that the fingerprint of a folder skips, because images do not affect scores."""


class Record(NamedTuple):
    """One run."""

    time: datetime.datetime
    name: str | None
    metrics: Mapping[str, float | None]
    signature: str
    passed: bool
    whole: Mapping[str, Any]
    """The line as it is in the file."""


class History(NamedTuple):
    """The runs in a file, in order, and the numbers of the lines that are not records."""

    records: list[Record]
    damaged: list[int]


class Look(NamedTuple):
    """A sequential check of a history."""

    number: int
    """Counts from 1; a repeated run has the number of the original."""
    again: bool


def next_look(earlier: History, record: Mapping[str, Any]) -> Look:
    """Count the sequential checks of a history; ``record`` is the next run, without its look.

    An unreadable line may have been a check, so it counts.
    """
    looks = set[int]()
    for run in earlier.records:
        sequential = run.whole.get("sequential")
        if sequential is None:
            continue
        number = int(sequential["look"])
        looks.add(number)
        if _same_run(run.whole, record):
            return Look(number, again=True)
    return Look(max([len(looks) + len(earlier.damaged), *looks]) + 1, again=False)


def _same_run(earlier: Mapping[str, Any], record: Mapping[str, Any]) -> bool:
    """Return whether all inputs, options and results are the same."""
    hashes = _hashes(record)
    return (
        bool(hashes)
        and None not in hashes.values()
        and hashes == _hashes(earlier)
        and record["sequential"].items() <= earlier["sequential"].items()
        and json_value(record["metrics"]) == earlier["metrics"]
        and record["signature"] == earlier["signature"]
    )


def _hashes(record: Mapping[str, Any]) -> dict[str, Any]:
    inputs = record.get("inputs")
    if not isinstance(inputs, dict) or not all(isinstance(value, dict) for value in inputs.values()):
        return {}
    return {name: value.get("sha256") for name, value in inputs.items()}


def now() -> str:
    """Return the time in the format of records."""
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def fingerprint(path: Path) -> str | None:
    """Return the SHA-256 of a file or folder; None for a pipe or device.

    For a folder it is the hash of the lines ``<sha256>  <path>`` that ``sha256sum`` prints for its files
    sorted by path, without images.
    """
    import hashlib

    try:
        if not path.is_dir():
            return _file_hash(path)
        names = sorted(
            inner.relative_to(path).as_posix()
            for inner in path.rglob("*")
            if inner.is_file() and inner.suffix.lower() not in PICTURES
        )
        lines = [f"{_file_hash(path / name)}  {name}\n" for name in names]
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}.") from None
    return hashlib.sha256("".join(lines).encode("utf-8", "surrogateescape")).hexdigest()


def _file_hash(path: Path) -> str | None:
    if not stat.S_ISREG(path.stat().st_mode):
        return None
    import hashlib

    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


def append_record(path: Path, record: Mapping[str, Any]) -> None:
    """Append a record as one line; the file is created if it does not exist."""
    _append(path, lambda _: record)


def append_after(path: Path, make: Callable[[History], Mapping[str, Any]]) -> None:
    """Append the record that ``make`` computes from the runs in the file; no other run appends in between."""
    _append(path, lambda file: make(_earlier(file)))


def _append(path: Path, make: Callable[[int], Mapping[str, Any]]) -> None:
    refuse_replacing("a history", path)
    try:
        # Hold a lock, so that two runs cannot mix their lines.
        made = None if path.exists() else Path(os.path.realpath(path))
        with _locked(path) as file:
            size = os.lseek(file, 0, os.SEEK_END)
            with _undo_on_error(file, size, made):
                # Compute the record under the lock too, because it may depend on the lines before.
                record = {"schema": SCHEMA_VERSION, **make(file)}
                line = json.dumps(json_value(record), allow_nan=False).encode() + b"\n"
                if size:
                    os.lseek(file, size - 1, os.SEEK_SET)
                    # After a truncated line, start a new one.
                    if os.read(file, 1) != b"\n":
                        line = b"\n" + line
                if os.write(file, line) < len(line):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise InputError(f"{path}: cannot be written: {reason}.") from None


def _earlier(file: int) -> History:
    with open(file, "rb", closefd=False) as whole:
        whole.seek(0)
        return _runs(whole)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[int]:
    """Open the file and wait for its lock; retry if another run removed the file that it had created."""
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
    # Some file systems report that the open file is unnamed.
    for left in reversed(range(TRIES)):
        file = os.open(path, flags, 0o666)
        try:
            _lock(file)
            if os.fstat(file).st_nlink or not left:
                yield file
                return
        finally:
            # This releases the lock.
            os.close(file)


@contextlib.contextmanager
def _undo_on_error(file: int, size: int, made: Path | None) -> Iterator[None]:
    """After an error, remove the partial line, and the file if it was created here."""
    try:
        yield
    except BaseException:
        with contextlib.suppress(OSError):
            os.ftruncate(file, size)
        if made is not None and not size:
            with contextlib.suppress(OSError):
                made.unlink()
        raise


def _lock(file: int) -> None:
    """Wait for the lock; without support for locks, rely on the single write."""
    try:
        import fcntl
    except ImportError:  # Windows
        return
    with contextlib.suppress(OSError):
        fcntl.flock(file, fcntl.LOCK_EX)


def read_history(path: Path) -> History:
    """Read the runs in a file.

    Raises
    ------
    FileFormatError
        When no line is a record.
    InputError
        When the file cannot be read.
    """
    try:
        with path.open("rb") if path.is_file() else io.BytesIO(read_bytes(path)) as file:
            records, damaged = _runs(file)
    # A NUL byte in the path.
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise InputError(f"{path}: cannot be read: {reason}.") from None
    if not records:
        got = f"{len(damaged)} other lines" if damaged else "an empty file"
        cause = "boxscore check --history FILE adds a line to it"
        raise FileFormatError("a history", "have a record", got=got, place=str(path), cause=cause)
    return History(records, damaged)


def _runs(file: Any) -> History:
    records, damaged = list[Record](), list[int]()
    for number, line in _lines(file):
        record = _record(line)
        if record is None:
            damaged.append(number)
        else:
            records.append(record)
    return History(records, damaged)


def _lines(file: Any) -> Iterator[tuple[int, bytes]]:
    for number, line in enumerate(file, start=1):
        if line.strip():
            yield number, line


def _record(line: bytes) -> Record | None:
    """Parse one line; None if it is not a record."""
    # Another run wrote the line, perhaps incompletely, so validate everything that is used.
    try:
        whole = json_once(line)
        if not isinstance(whole, dict) or whole.get("schema") != SCHEMA_VERSION:
            return None
        time = datetime.datetime.strptime(whole["time"], "%Y-%m-%dT%H:%M:%SZ")
        name, metrics = whole["name"], whole["metrics"]
        valid = (
            (name is None or isinstance(name, str))
            and isinstance(metrics, dict)
            and all(is_value(value) for value in metrics.values())
            and isinstance(whole["signature"], str)
            and type(whole["passed"]) is bool
            and _has_valid_look(whole.get("sequential"))
        )
    except (KeyError, RecursionError, TypeError, ValueError):
        return None
    time = time.replace(tzinfo=datetime.timezone.utc)
    return Record(time, name, metrics, whole["signature"], whole["passed"], whole) if valid else None


def _has_valid_look(sequential: Any) -> bool:
    """Whether a record is not of a sequential check, or numbers its look; tools may write 3 as 3.0."""
    if sequential is None:
        return True
    number: Any = sequential.get("look") if isinstance(sequential, dict) else None
    return type(number) in (int, float) and 1 <= number <= MOST_LOOKS and number == int(number)
