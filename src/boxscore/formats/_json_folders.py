"""Folders of JSON files, one per image, and what lies at a path of JSON."""

from __future__ import annotations

from pathlib import Path

from boxscore.formats._look import Look, listed

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
    with listed(path) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                inner.append(Path(entry.path))
            elif entry.name.lower().endswith(".json") and entry.is_file():
                found.append(Path(entry.path))
    if depth:
        for folder in inner:
            found += json_files(folder, depth=depth - 1)
    return sorted(found)
