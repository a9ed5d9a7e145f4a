"""Read image sizes from a table or from image headers, for formats that store fractions."""

from __future__ import annotations

import csv
import dataclasses
import math
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from boxscore._utils.array_types import FloatArray
from boxscore._utils.files import read_text
from boxscore.data.image_names import SEVERAL, UNKNOWN, ImageNames, stems_of, without_ending
from boxscore.data.lookup import image_rows_by_name
from boxscore.data.tables import GroundTruth
from boxscore.data.unlisted import with_images
from boxscore.data.vocabulary import Id, Images, as_ids
from boxscore.errors import FileFormatError, InputError


class ImageSizes(NamedTuple):
    """Image sizes given by the user.

    Attributes
    ----------
    named : mapping of str to (float, float)
        Width and height by image id or file name; NaN if the size is unknown.
    every : (float, float), or None
        Default width and height for other images.
    source : str
        The file or folder with the names, for messages.
    """

    named: Mapping[str, tuple[float, float]]
    every: tuple[float, float] | None = None
    source: str = "image_sizes"


LARGEST = 1_000_000_000
"""Maximum size of a table of sizes in bytes."""

LONGEST_NUMBER = 19

_IMAGE, _WIDTH, _HEIGHT = (
    ("image", "image_id", "file_name", "filename", "name"),
    ("width", "w", "image_width"),
    ("height", "h", "image_height"),
)


def image_sizes_of(
    source: str | Path | Mapping[Any, Sequence[float]] | None, folder: str | Path | None = None
) -> ImageSizes | None:
    """Read sizes from a table, ``WIDTHxHEIGHT`` or a folder of images; None if none of these is given."""
    if source is None and folder is None:
        return None
    if not isinstance(source, (str, os.PathLike, Mapping, type(None))):
        raise InputError(
            "image_sizes",
            "be a path, 'WIDTHxHEIGHT', or a mapping of images to sizes",
            got=repr(source)[:80],
            cause="'640x480' is the size of every image",
        )
    # Read the sizes of images in a folder from their headers.
    named = {} if folder is None else _sizes_in(Path(folder))
    if source is None:
        return ImageSizes(named, source=str(folder))
    # 640x480 is one size for all images, unless there is a file of that name.
    text = Path(source).name if isinstance(source, (str, Path)) else ""
    both = re.fullmatch(r"(\d{1,10})[xX](\d{1,10})", text, re.ASCII)
    if both and not Path(text).exists():
        return ImageSizes(named, _size(both[1], both[2], "image sizes"), str(folder))
    # The table overrides the image headers.
    table = str(source) if text else "image_sizes"
    both_sources = table if folder is None else f"{table} and {folder}"
    return ImageSizes({**named, **_table(source)}, source=both_sources)


def _sizes_in(folder: Path) -> dict[str, tuple[float, float]]:
    """Return the image files in a folder and its subfolders, with the sizes in their headers."""
    if not folder.is_dir():
        raise InputError("the image folder", "be a folder", got=repr(str(folder)))
    from boxscore.formats._yolo_folders import IMAGE_ENDINGS, files_below

    paths = sorted(path for _, path in files_below(folder, IMAGE_ENDINGS))
    if not paths:
        raise InputError("the image folder", "hold images", got="none", place=repr(str(folder)))
    return {
        Path(path).relative_to(folder).as_posix(): header_size(Path(path)) or (math.nan, math.nan)
        for path in paths
    }


def with_listed_images(ground_truth: GroundTruth, sizes: ImageSizes) -> GroundTruth:
    """Add the named images to a ground truth, without objects."""
    images, names = ground_truth.images, [*sizes.named]
    numbers = _numbers(names) if images.ids.dtype != object and not any(images.file_names.tolist()) else None
    wanted: list[Id] = [*names] if numbers is None else [*numbers]
    new = np.flatnonzero(image_rows_by_name(as_ids(wanted, name="image ids"), images) == UNKNOWN).tolist()
    if not new:
        return ground_truth
    listed = [names[row] for row in new]
    ids = [wanted[row] for row in new]
    if numbers is None and not _have_endings(images):
        shorter: list[Id] = [without_ending(name) for name in listed]
        taken = (images.rows(as_ids(shorter, name="image ids")) >= 0).any() or len(set(shorter)) < len(listed)
        ids = ids if taken else shorter
    extent = np.array([sizes.named[name] for name in listed])
    file_names = listed if numbers is None else None
    return with_images(ground_truth, Images.build(ids, file_names=file_names, sizes=extent))


def _numbers(names: Sequence[str]) -> list[int] | None:
    """Return the stems of names as integers; None unless all stems are distinct integers."""
    stems = stems_of(names)
    if not all(stem.isascii() and stem.isdecimal() and len(stem) < LONGEST_NUMBER for stem in stems):
        return None
    numbers = [int(stem) for stem in stems]
    return numbers if len(set(numbers)) == len(numbers) else None


def _have_endings(images: Images) -> bool:
    """Whether any id is a file name with an extension."""
    return any(
        isinstance(identifier, str) and without_ending(identifier) != identifier
        for identifier in images.ids.tolist()
    )


def _table(source: str | Path | Mapping[Any, Sequence[float]]) -> dict[str, tuple[float, float]]:
    """Return width and height by image, from a mapping or a CSV file ``image, width, height``."""
    # Read a mapping.
    table: dict[str, tuple[float, float]] = {}
    if isinstance(source, Mapping):
        for image, size in source.items():
            values = tuple(np.ravel(np.asarray(size, dtype=object)))
            if len(values) != 2:
                raise InputError(
                    "an image size", "be width and height", got=repr(size), place=f"image {image!r}"
                )
            table[str(image)] = _size(values[0], values[1], f"image {image!r}")
        return table
    # Read a CSV file, with or without a header.
    path = Path(source)
    rows = csv.reader(read_text(path, "a table of image sizes", largest=LARGEST).splitlines())
    columns: tuple[int, int, int] | None = None
    for number, row in enumerate(rows, start=1):
        if not any(cell.strip() for cell in row):
            continue
        place = f"{path}, line {number}"
        # The first non-blank line is the header, or data.
        if columns is None:
            columns = _columns(row, place)
            if columns is not None:
                continue
            columns = (0, 1, 2)
        if len(row) <= max(columns):
            raise FileFormatError(
                "a line of image sizes", "be image, width, height", got=repr(",".join(row))[:60], place=place
            )
        image, width, height = (row[column].strip() for column in columns)
        table[image] = _size(width, height, place)
    if not table:
        raise FileFormatError("a table of image sizes", "have a line per image", got="none", place=str(path))
    return table


def with_known_sizes(images: Images, table: ImageSizes | None) -> Images:
    """Replace unknown image sizes by those given by the user."""
    unknown = np.isnan(images.sizes).any(axis=1, keepdims=True)
    sizes = known_sizes(table, images.ids.tolist(), images.file_names.tolist())
    return dataclasses.replace(images, sizes=np.where(unknown, sizes, images.sizes))


def known_sizes(
    given: ImageSizes | None, ids: Sequence[Id], file_names: Sequence[str | None] | None = None
) -> FloatArray:
    """Return the width and height that the user gives for each image, [I, 2]; NaN if not given.

    Images are looked up by exact id, then by file name, or by id if the file name is unknown.
    """
    # Start from the default size, which the table overrides.
    sizes = np.full((len(ids), 2), np.nan)
    if given is None or not len(ids):
        return sizes
    if given.every is not None:
        sizes[:] = given.every
    table = given.named
    if not table:
        return sizes
    # Look up all names together, because the table may be large.
    rows = ImageNames([*table])
    names: list[str] = [
        str(identifier) if name is None else name
        for identifier, name in zip(ids, file_names or [None] * len(ids), strict=True)
    ]
    unique = list(dict.fromkeys(names))
    table_rows = dict(zip(unique, rows.find(unique).rows.tolist(), strict=True))
    values = [*table.values()]
    # An exact id wins; a name that matches several entries counts if these agree.
    for image, (identifier, name) in enumerate(zip(ids, names, strict=True)):
        if str(identifier) in table:
            sizes_given = {table[str(identifier)]}
        elif table_rows[name] == SEVERAL:
            sizes_given = {values[row] for row in rows.candidates(name)}
        else:
            sizes_given = {values[table_rows[name]]} if table_rows[name] >= 0 else set()
        if len(sizes_given) == 1 and not math.isnan(next(iter(sizes_given))[0]):
            sizes[image] = sizes_given.pop()
    return sizes


def _columns(row: Sequence[str], place: str) -> tuple[int, int, int] | None:
    """Return the indices of image, width and height in a header; None if the line is data."""
    # A header has a known name for each of the three.
    names = [cell.strip().lower() for cell in row]
    positions = [
        next((names.index(name) for name in known if name in names), None)
        for known in (_IMAGE, _WIDTH, _HEIGHT)
    ]
    if None not in positions:
        image, width, height = positions
        return (image, width, height)  # type: ignore[return-value]
    # A line with two numbers is data; anything else is an error.
    if len(row) >= 3 and _number(row[1]) is not None and _number(row[2]) is not None:
        return None
    raise FileFormatError(
        "the header of a table of image sizes",
        "be image,width,height",
        got=repr(",".join(row))[:60],
        place=place,
    )


def _number(text: Any) -> float | None:
    try:
        return float(text)
    except (TypeError, ValueError):
        return None


def _size(width: Any, height: Any, place: str) -> tuple[float, float]:
    sides = (_number(width), _number(height))
    for name, side, given in zip(("width", "height"), sides, (width, height), strict=True):
        if side is None or not 1 <= side <= 1e9:
            raise InputError(name, "be a number of pixels, 1 or more", got=repr(given), place=place)
    return sides  # type: ignore[return-value]


def header_size(path: Path) -> tuple[float, float] | None:
    """Read the size of an image from its header; None if that fails."""
    import imagesize

    try:
        width, height = imagesize.get(str(path))
    except Exception:  # damaged headers raise exceptions of many types
        return None
    return (float(width), float(height)) if 0 < width <= 1e9 and 0 < height <= 1e9 else None
