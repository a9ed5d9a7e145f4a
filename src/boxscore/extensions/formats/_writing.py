"""Return the rows, names and sizes of images, for writers of files of annotation tools."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from boxscore._utils import checks
from boxscore._utils.user_warnings import warn_user
from boxscore.data.tables import BoxTable, Detections
from boxscore.errors import InputError
from boxscore.formats._format import Format


def rows_of_images(table: BoxTable) -> list[list[int]]:
    """Return the rows of each image, in their order."""
    rows: list[list[int]] = [[] for _ in range(len(table.images))]
    for row, image in enumerate(table.image.tolist()):
        rows[image].append(row)
    return rows


def scores_of(table: BoxTable) -> list[float] | None:
    """Return the scores of detections; None for ground truth, and for detections without scores."""
    return table.scores.tolist() if isinstance(table, Detections) and table.scored else None


def warn_of_lost(table: BoxTable, form: Format, path: Path) -> None:
    """Warn of shapes of detections that a format cannot store, as it is not chosen by ``--to``."""
    from boxscore.extensions.data_tools.converting import lost

    what = ", ".join(lost(table, form).values()) if isinstance(table, Detections) else ""
    if what:
        warn_user(f"{path}: leaves out {what}, which {form.name} files cannot store.")


def names_of_images(table: BoxTable, form: str, *, by_last_part: bool = False) -> list[str]:
    """Return the file name of each image, or its id if that is text; reject images without, or with the same.

    With ``by_last_part``, images in several folders must differ by the last part of their names.
    """
    names = []
    for identifier, name in zip(table.images.ids.tolist(), table.images.file_names.tolist(), strict=True):
        if name is None and not isinstance(identifier, str):
            cause = "give the ground truth, or the images, with their names: --gt or --image-folder"
            rule, got = f"have a file name in {form}", f"none for {identifier!r}"
            raise InputError("an image", rule, got=got, place=table.source, cause=cause)
        names.append(str(identifier if name is None else name).replace("\\", "/"))
    seen: set[str] = set()
    for name in names:
        key = name.rpartition("/")[2] if by_last_part else name
        if key in seen:
            rule = f"differ in {form}" + (", without their folders" if by_last_part else "")
            raise InputError("image names", rule, got=f"{key!r} twice", place=table.source)
        seen.add(key)
    return names


def sizes_of_images(table: BoxTable, form: str, needed: Sequence[object]) -> list[tuple[float, float]]:
    """Return width and height of each image; reject unknown ones where ``needed`` is true."""
    sizes = []
    for name, size, is_needed in zip(
        table.images.ids.tolist(), table.images.sizes.tolist(), needed, strict=True
    ):
        if size[0] != size[0] and is_needed:
            rule, cause = f"have a known size in {form}", checks.GIVE_SIZES
            raise InputError("an image", rule, got=f"none for {name!r}", place=table.source, cause=cause)
        sizes.append((plain_side(size[0]), plain_side(size[1])))
    return sizes


def plain_side(side: float) -> float:
    """Return a side as a whole number where it is one, which JSON and XML then show without a point."""
    return int(side) if side.is_integer() else side
