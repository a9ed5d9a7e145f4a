"""Warn about readable folders inside a folder of files, which the format leaves out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from boxscore._utils.text import short_list
from boxscore._utils.user_warnings import warn_user
from boxscore.errors import FileFormatError
from boxscore.formats._sniffer import Sniffer, listed

DEEPEST, MOST_FOLDERS = 4, 200


def warn_of_unread(folder: Path, can_be_read: Callable[[Sniffer], object], *, ending: str = "") -> None:
    """Warn about readable folders in a folder of files; ``ending`` is the extension of files per image."""
    unread = _folders(folder, can_be_read)
    if not unread:
        return
    advice = "pass the folder to read"
    file = next((first for inner in unread if (first := Sniffer(folder / inner).first_with(ending))), None)
    if ending and file is not None:
        name = file.relative_to(folder).with_suffix("").as_posix()
        advice += f", or combine them in one CSV file with images named {name!r}"
    inner = f"{'folder' if len(unread) == 1 else 'folders'} {short_list(unread)}"
    warn_user(f"{folder}: read only the files directly in this folder, not those in its {inner}; {advice}.")


def _folders(folder: Path, can_be_read: Callable[[Sniffer], object]) -> list[str]:
    """Return the outermost folders below a folder that a format can read, as relative paths."""
    names: list[str] = []
    level = [folder]
    for _ in range(DEEPEST):
        inner = [inner_folder for outer in level for inner_folder in _inner(outer)][:MOST_FOLDERS]
        readable = [inner_folder for inner_folder in inner if can_be_read(Sniffer(inner_folder))]
        names += [inner_folder.relative_to(folder).as_posix() for inner_folder in readable]
        level = [inner_folder for inner_folder in inner if inner_folder not in readable]
    return sorted(names)


def _inner(folder: Path) -> list[Path]:
    """Return the folders in a folder, without links; none for one that cannot be listed."""
    try:
        with listed(folder) as entries:
            return sorted(Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False))
    except FileFormatError:
        return []
