"""Name label files, where a format has one file per image."""

from __future__ import annotations

from pathlib import PurePosixPath

from boxscore._utils import checks
from boxscore.data.tables import BoxTable
from boxscore.errors import InputError


def file_stems(table: BoxTable, *, in_lines: bool = False) -> list[str]:
    """Return the name of each image's file, without ending: that of the image file, or else the id.

    Where several images would have files of one name, all are named by their ids, if these are text. Names
    ``in_lines`` of a file lose blanks at their ends when they are read.
    """
    stems, ids = [], table.images.ids.tolist()
    for identifier, file_name in zip(ids, table.images.file_names.tolist(), strict=True):
        name = str(identifier) if file_name is None else PurePosixPath(file_name.replace("\\", "/")).stem
        stems.append(checks.plain_name(name, name="an image's name"))
    if len(set(stems)) < len(stems) and all(isinstance(identifier, str) for identifier in ids):
        stems = [checks.plain_name(identifier, name="an image's name") for identifier in ids]
    if len(set(stems)) < len(stems):
        seen: set[str] = set()
        twice = next(name for name in stems if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise InputError("image names", "differ where labels are a file per image", got=f"{twice!r} twice")
    cut = next((name for name in stems if in_lines and name != name.strip()), None)
    if cut is not None:
        rule = "have no blanks at the ends of its name without ending, where a line of a file has it"
        raise InputError("an image", rule, got=repr(cut), place=table.source)
    return stems


def refuse_shared_names(table: BoxTable) -> None:
    """Refuse classes that share a name and differ only by id."""
    names = table.categories.names.tolist()
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(
            "class names",
            "differ where a format knows classes by name",
            got=f"{twice!r} twice",
            place=table.source,
            cause="unite or rename them with --remap-classes",
        )
