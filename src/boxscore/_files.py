"""Writing files so that a name never stands for something half-written."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from boxscore.errors import InputError

__all__ = ["is_file", "write_atomically", "write_folder"]


def is_file(path: Path) -> bool:
    """Whether a file is there; none is under a name that is too long to be one."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def write_atomically(path: Path, content: str | bytes | Iterable[bytes]) -> None:
    """Write a file under a temporary name beside its own and rename it when it is whole.

    Parameters
    ----------
    path : Path
    content : str, bytes, or iterable of bytes
        Pieces are written as they come, so that the whole never stands in memory.

    Raises
    ------
    InputError
        When it cannot be written. What stood under the name before stays.
    """
    data = content.encode("utf-8") if isinstance(content, str) else content
    pieces = [data] if isinstance(data, bytes) else data
    temporary = None
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
        with os.fdopen(handle, "wb") as file:
            file.writelines(pieces)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o666 & ~_umask())
        Path(temporary).replace(path)
        temporary = None
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}.") from None
    finally:
        if temporary is not None:
            with contextlib.suppress(OSError):
                Path(temporary).unlink()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def write_folder(folder: Path, files: Mapping[str, str | bytes]) -> None:
    """Write several files into a folder, which is made where it is missing.

    Raises
    ------
    InputError
        When the folder or a file cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot be made: {error.strerror}.") from None
    for name, content in files.items():
        write_atomically(folder / name, content)
