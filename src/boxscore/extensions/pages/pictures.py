"""Small copies of images, shown under the boxes in a report.

Conventions
-----------
- Pillow reads and shrinks; it is imported here only. Without an image folder nothing is read.
- File names come from the data and are not trusted: a picture is read only if it lies inside the folder.
- A picture that is missing or cannot be read, also for want of memory, leaves a blank frame.
- A picture is made small while it is read, strip by strip. A small file may hold very many pixels; Pillow
  refuses more than 179 million.
"""

from __future__ import annotations

import base64
import io
import itertools
import os
import warnings
from pathlib import Path
from typing import Any

from boxscore.errors import InputError, MissingDependencyError
from boxscore.evaluation import Evaluation

LONGEST_SIDE = 560
"""Pixels of the longer side of an embedded picture."""

CROPPED_FROM, CROP_SIDE = 4096, 420
"""Pixels of the longer side of a picture of which a part is taken, and of the part."""

PIXELS_AT_ONCE = 1 << 24
"""Pixels that are held as colours, 3 bytes each; a larger picture is made small strip by strip."""

MOST_ENTRIES = 50_000
"""Entries of folders that are searched for images that are elsewhere."""

SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".bmp")


def require_pillow() -> Any:
    """Import Pillow's Image module, or say how to install it."""
    try:
        from PIL import Image
    except ImportError:
        raise MissingDependencyError(
            "Reading images needs Pillow: pip install 'boxscore[plots]', or leave the image folder out."
        ) from None
    return Image


def find_picture(evaluation: Evaluation, row: int, folder: Path) -> Path | None:
    """Path of an image's file inside a folder: by its file name, the last part of it, or its id."""
    # Names in the order of trust: the whole name, its last part, the id, and COCO's twelve digits.
    images = evaluation.ground_truth.images
    name, identifier = images.file_names[row], str(images.ids[row])
    stems = [] if name is None else [str(name), Path(str(name)).name]
    stems += [f"{identifier}{suffix}" for suffix in SUFFIXES]
    if identifier.isascii() and identifier.isdecimal() and len(identifier) <= 12:
        stems += [f"{int(identifier):012d}.jpg"]
    # Links are followed first, so that no name leads out of the folder.
    inside = folder.resolve()
    for stem in stems:
        if "\0" in stem or len(stem) > 1000:
            continue
        try:
            path = (folder / stem).resolve()
            if path.is_relative_to(inside) and path.is_file():
                return path
        except OSError:
            continue
    return None


def read_picture(path: Path, longest: int) -> tuple[Any, tuple[int, int]]:
    """Read a picture, and its width and height in pixels.

    What has very many pixels comes back reduced by a whole number, its longer side ``longest`` or more.

    Raises
    ------
    InputError
        When the file is no picture that Pillow reads, or holds too many pixels.
    """
    image_module = require_pillow()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow's, of what it shows all the same
            with image_module.open(path) as image:
                size = image.size
                image.draft("RGB", (longest, longest))  # JPEG: decoded small
                return _reduced(image, longest), size
    except (OSError, ValueError, SyntaxError, MemoryError, image_module.DecompressionBombError) as error:
        reason = str(error).rstrip(".") or "there is not enough memory"
        raise InputError(f"{path}: cannot be read as an image: {reason}.") from None


def _reduced(image: Any, longest: int) -> Any:
    """Return an open picture in RGB, made small strip by strip if it is large."""
    width, height = image.size
    factor = max(width, height) // longest
    if width * height <= PIXELS_AT_ONCE or factor < 2:
        return image.convert("RGB")
    small = require_pillow().new("RGB", (-(-width // factor), -(-height // factor)))
    rows = factor * max(1, PIXELS_AT_ONCE // (width * factor))
    for top in range(0, height, rows):
        strip = image.crop((0, top, width, min(top + rows, height))).convert("RGB")
        small.paste(strip.reduce(factor), (0, top // factor))
    return small


def embed_pictures(
    evaluation: Evaluation, rows: list[int], records: list[int], folder: Path
) -> dict[str, str]:
    """Shrink the images of some records to ``data:`` addresses, by record number.

    Raises
    ------
    InputError
        When the folder is none, or has none of these images.
    """
    # Without any of the images, the folder is probably the wrong one: that is an error.
    require_pillow()
    if not folder.is_dir():
        raise InputError(f"the image folder must be a folder. Got {str(folder)!r}.")
    paths = {record: find_picture(evaluation, rows[record], folder) for record in dict.fromkeys(records)}
    if paths and not any(paths.values()):
        raise _no_picture(evaluation, [rows[record] for record in paths], folder)
    # A missing or broken picture leaves its record without one.
    pictures = {}
    for record, path in paths.items():
        if path is None:
            continue
        try:
            small, _ = read_picture(path, LONGEST_SIDE)
        except InputError:
            continue
        pictures[str(record)] = _address(small, LONGEST_SIDE)
    return pictures


def embed_crop(
    evaluation: Evaluation,
    row: int,
    part: tuple[float, float, float, float],
    size: tuple[float, float],
    folder: Path,
) -> str | None:
    """Shrink a part of an image, of the stated size, to a ``data:`` address; None where there is no picture.

    The part is left, top, width and height, in pixels of the stated size. A picture that is much smaller may
    have no pixel there.
    """
    path = find_picture(evaluation, row, folder)
    if path is None:
        return None
    try:
        whole, _ = read_picture(path, CROPPED_FROM)
    except InputError:
        return None
    across, down = whole.width / size[0], whole.height / size[1]
    left, top, width, height = part
    corners = (left * across, top * down, (left + width) * across, (top + height) * down)
    chosen = whole.crop(tuple(map(round, corners)))
    return _address(chosen, CROP_SIDE) if chosen.width and chosen.height else None


def _address(picture: Any, longest: int) -> str:
    """Write a picture, made small, as a ``data:`` address."""
    picture.thumbnail((longest, longest))
    data = io.BytesIO()
    picture.save(data, "JPEG", quality=72)
    return "data:image/jpeg;base64," + base64.b64encode(data.getvalue()).decode("ascii")


def _no_picture(evaluation: Evaluation, rows: list[int], folder: Path) -> InputError:
    """Say that a folder has none of the images, and where they are if that is near."""
    # Say the first name that was looked for.
    images = evaluation.ground_truth.images
    name = images.file_names[rows[0]]
    example = f"{images.ids[rows[0]]}.jpg" if name is None else Path(str(name)).name
    names = [Path(str(images.file_names[row])).name for row in rows if images.file_names[row] is not None]
    # Look for the names in folders nearby, then guess from what the folder holds.
    near = _folder_of(set(names) or {example}, folder)
    if near is not None:
        cause = f"they are in {str(near)!r}"
    elif not any(
        path.suffix.lower() in SUFFIXES for path in itertools.islice(folder.iterdir(), MOST_ENTRIES)
    ):
        cause = "there is no image in it"
    else:
        cause = "are these the images of another data set, or have they been renamed?"
    return InputError(
        "the image folder",
        "have the images",
        got=f"none of {len(rows):,}, looking for {example!r}",
        place=repr(str(folder)),
        cause=cause,
    )


def _folder_of(names: set[str], folder: Path) -> Path | None:
    """Find a folder below or beside this one that has a file of these names, among the first entries."""
    left = MOST_ENTRIES
    for start in (folder, folder.resolve().parent):
        for directory, folders, files in os.walk(start):
            folders.sort()
            if not names.isdisjoint(files):
                return Path(directory)
            left -= len(files) + len(folders)
            if left < 0:
                return None
    return None
