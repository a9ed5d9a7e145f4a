"""Folders of JSON files, one per image, and what lies at a path of JSON."""

from __future__ import annotations

import os
from pathlib import Path

from boxscore.errors import FileFormatError
from boxscore.formats._look import Look

__all__ = ["first_json", "json_files"]

DEEPEST = 4


def first_json(look: Look) -> Look | None:
    """Look at the file itself, or at the first JSON file right in a folder; None where there is none."""
    if not look.is_folder:
        return look if look.is_json else None
    first = look.first_with(".json")
    return None if first is None or not first.is_file() else Look(first)


def json_files(path: Path, *, depth: int = DEEPEST) -> list[Path]:
    """Return the file itself, or the JSON files in a folder and the folders in it, sorted."""
    if not path.is_dir():
        return [path]
    found: list[Path] = []
    inner: list[Path] = []
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                if entry.name.startswith("."):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    inner.append(Path(entry.path))
                elif entry.name.lower().endswith(".json") and entry.is_file():
                    found.append(Path(entry.path))
    except OSError as error:
        raise FileFormatError(f"{path}: cannot be read: {error.strerror}.") from None
    if depth:
        for folder in inner:
            found += json_files(folder, depth=depth - 1)
    return sorted(found)
