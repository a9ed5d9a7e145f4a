"""VOC's folders and files: telling them apart, and reading their text."""

from __future__ import annotations

import re
from pathlib import Path

from boxscore.errors import FileFormatError

__all__ = ["is_ground_truth", "is_results", "is_results_file", "read_text"]


def is_ground_truth(folder: Path) -> bool:
    """Whether a folder holds VOC annotations."""
    return (folder / "Annotations").is_dir() or any(folder.glob("*.xml"))


def is_results(folder: Path) -> bool:
    """Whether a folder holds the kit's results files."""
    return any(folder.glob("comp[0-9]_det_*.txt"))


def is_results_file(path: Path) -> bool:
    """Whether a file's name is that of one of the kit's results files."""
    return path.suffix == ".txt" and re.match(r"comp\d_det_", path.name) is not None


def read_text(path: Path) -> str:
    """Read a text file.

    Raises
    ------
    FileFormatError
        When it cannot be read or is not UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise FileFormatError(f"{path}: cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise FileFormatError("a text file", "be UTF-8", got="other bytes", place=str(path)) from None
