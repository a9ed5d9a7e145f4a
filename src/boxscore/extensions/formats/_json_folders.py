"""Read folders of JSON files, one per image."""

from __future__ import annotations

from pathlib import Path

from boxscore.formats._sniffer import Sniffer, listed

DEEPEST = 4


def first_json(sniffer: Sniffer) -> Sniffer | None:
    """Sniff the file, or the first JSON file directly inside the folder; None without any."""
    if not sniffer.is_folder:
        return sniffer if sniffer.is_json else None
    first = sniffer.first_with(".json")
    return None if first is None or not first.is_file() else Sniffer(first)


def json_files(path: Path, *, depth: int = DEEPEST) -> list[Path]:
    """Return the file, or all JSON files below the folder, sorted."""
    if not path.is_dir():
        return [path]
    files: list[Path] = []
    inner: list[Path] = []
    with listed(path) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                inner.append(Path(entry.path))
            elif entry.name.lower().endswith(".json") and entry.is_file():
                files.append(Path(entry.path))
    if depth:
        for folder in inner:
            files += json_files(folder, depth=depth - 1)
    return sorted(files)
