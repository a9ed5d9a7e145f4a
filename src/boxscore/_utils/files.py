"""Atomic writing: a file name never refers to incomplete content."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from boxscore.errors import FileFormatError, InputError

__all__ = ["is_file", "read_text", "write_atomically", "write_folder", "write_new_folder"]


def is_file(path: Path) -> bool:
    """Whether a file exists; a name that is too long is not one."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def read_text(path: Path, what: str = "a text file", *, largest: int | None = None) -> str:
    """Read a UTF-8 file; messages call it ``what``, and refuse one of more than ``largest`` bytes."""
    try:
        with path.open("rb") as file:
            content = file.read() if largest is None else file.read(largest + 1)
        text = content.decode("utf-8-sig")
    except OSError as error:
        raise FileFormatError(f"{path}: cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise FileFormatError(what, "be UTF-8", got="other bytes", place=str(path)) from None
    if largest is not None and len(content) > largest:
        raise FileFormatError(what, f"have at most {largest:,} bytes", got="more", place=str(path))
    return text


def write_atomically(path: Path, content: str | bytes | Iterable[bytes]) -> None:
    """Write a file, given whole or in pieces, under a temporary name and rename it when it is complete."""
    _write_all({path: content})


def write_folder(folder: Path, files: Mapping[str, str | bytes]) -> None:
    """Write several files into a folder, which is made where it is missing.

    All are written under temporary names before the first is renamed: a full disk or an interrupt leaves the
    folder's files as they were, all of them. Others that lie in the folder are not touched.
    """
    paths = {folder / name: content for name, content in files.items()}
    for inner in dict.fromkeys([folder, *(path.parent for path in paths)]):
        try:
            inner.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{inner}: cannot be made: {error.strerror}.") from None
    _write_all(paths)


def write_new_folder(folder: Path, files: Mapping[str, str | bytes]) -> None:
    """Write many files into a folder that is not there yet; it appears when all are written."""
    import shutil
    import tempfile

    temporary: Path | None = None
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}.", suffix=".part"))
        for inner in dict.fromkeys((temporary / name).parent for name in files):
            inner.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            with (temporary / name).open("wb") as file:
                file.writelines(_pieces(content))
        temporary.chmod(0o777 & ~_umask())
        temporary.rename(folder)
    except OSError as error:
        raise InputError(f"{folder}: cannot be written: {error.strerror}.") from None
    finally:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)


Content = str | bytes | Iterable[bytes]


def _write_all(files: Mapping[Path, Content]) -> None:
    """Write every file under a temporary name beside its own, then rename them all."""
    import tempfile

    written: dict[Path, Path] = {}
    path = Path()
    try:
        for path, content in files.items():
            handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
            written[path] = Path(name)
            with os.fdopen(handle, "wb") as file:
                file.writelines(_pieces(content))
                file.flush()
                os.fsync(file.fileno())
            written[path].chmod(0o666 & ~_umask())
        for path, temporary in written.items():
            temporary.replace(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}.") from None
    finally:
        for temporary in written.values():
            with contextlib.suppress(OSError):
                temporary.unlink()


def _pieces(content: Content) -> Iterable[bytes]:
    if isinstance(content, str):
        content = content.encode("utf-8")
    return [content] if isinstance(content, bytes) else content


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
