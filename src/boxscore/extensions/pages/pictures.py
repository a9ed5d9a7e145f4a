"""Make small copies of images, which reports show under the boxes.

Conventions
-----------
- Pillow reads and shrinks images; it is imported only here. Without an image folder nothing is read.
- File names come from the data and are not trusted: a picture is read only if it is inside the folder.
- A picture that is missing or cannot be read, for example because of memory, leaves a blank frame.
- A picture is shrunk while it is read, strip by strip, because a small file may hold very many pixels. Pillow
  rejects more than 179 million.
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
"""Longer side of a picture above which it is cropped, and the longer side of the crop, in pixels."""

PIXELS_AT_ONCE = 1 << 24
"""Maximum pixels held in color, 3 bytes each; a larger picture is shrunk strip by strip."""

MOST_ENTRIES = 50_000
"""Maximum folder entries to search for images that are elsewhere."""

SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".bmp")


def require_pillow() -> Any:
    """Import Pillow's Image module, or raise an error that says how to install it."""
    try:
        from PIL import Image
    except ImportError:
        raise MissingDependencyError(
            "Reading images needs Pillow: pip install 'boxscore[plots]', or run without an image folder."
        ) from None
    return Image


def find_picture(evaluation: Evaluation, row: int, folder: Path) -> Path | None:
    """Find an image's file inside a folder: by its file name, the last part of it, or its id."""
    # Try names in the order of trust: the whole name, its last part, the id, and COCO's twelve digits.
    images = evaluation.ground_truth.images
    name, identifier = images.file_names[row], str(images.ids[row])
    stems = [] if name is None else [str(name), Path(str(name)).name]
    stems += [f"{identifier}{suffix}" for suffix in SUFFIXES]
    if identifier.isascii() and identifier.isdecimal() and len(identifier) <= 12:
        stems += [f"{int(identifier):012d}.jpg"]
    # Resolve links first, so that no name leads out of the folder.
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

    A very large picture is reduced by a whole factor, with a longer side of at least ``longest``.

    Raises
    ------
    InputError
        When Pillow cannot read the file, or it holds too many pixels.
    """
    image_module = require_pillow()
    try:
        with warnings.catch_warnings():
            # Pillow's warnings about pictures that it can read.
            warnings.simplefilter("ignore")
            with image_module.open(path) as image:
                size = image.size
                # JPEG: decode at a reduced size.
                image.draft("RGB", (longest, longest))
                return _shrink(image, longest), size
    except (OSError, ValueError, SyntaxError, MemoryError, image_module.DecompressionBombError) as error:
        reason = str(error).rstrip(".") or "not enough memory"
        raise InputError(f"{path}: cannot be read as an image: {reason}.") from None


def _shrink(image: Any, longest: int) -> Any:
    """Return an open picture in RGB, shrunk strip by strip if it is large."""
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
    """Shrink the images of some records to ``data:`` URLs, by record number.

    Raises
    ------
    InputError
        When the folder does not exist, or lacks all of these images.
    """
    # If none of the images is there, the folder is probably wrong, which is an error.
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
    """Shrink a region of an image, of the stated size, to a ``data:`` URL; None without a picture.

    The region is left, top, width and height, in pixels of the stated size. It may contain no pixel of a
    picture that is much smaller.
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
    """Write a shrunken picture as a ``data:`` URL."""
    picture.thumbnail((longest, longest))
    data = io.BytesIO()
    picture.save(data, "JPEG", quality=72)
    return "data:image/jpeg;base64," + base64.b64encode(data.getvalue()).decode("ascii")


def _no_picture(evaluation: Evaluation, rows: list[int], folder: Path) -> InputError:
    """Report that a folder lacks all of the images, and name a nearby folder that has them."""
    # Name the first file that was not found.
    images = evaluation.ground_truth.images
    name = images.file_names[rows[0]]
    example = f"{images.ids[rows[0]]}.jpg" if name is None else Path(str(name)).name
    names = [Path(str(images.file_names[row])).name for row in rows if images.file_names[row] is not None]
    # Look for the names in nearby folders, then guess from the contents of the folder.
    near = _folder_of(set(names) or {example}, folder)
    if near is not None:
        cause = f"the images are in {str(near)!r}"
    elif not any(
        path.suffix.lower() in SUFFIXES for path in itertools.islice(folder.iterdir(), MOST_ENTRIES)
    ):
        cause = "the folder contains no images"
    else:
        cause = "do these images belong to another data set, or were they renamed?"
    return InputError(
        "the image folder",
        "contain the images",
        got=f"none of {len(rows):,} (for example {example!r})",
        place=repr(str(folder)),
        cause=cause,
    )


def _folder_of(names: set[str], folder: Path) -> Path | None:
    """Find a nearby folder that has a file of these names, among the first entries."""
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
