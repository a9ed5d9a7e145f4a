"""Image sizes from a table or from the images' headers, for files that hold fractions of them."""

from __future__ import annotations

import csv
import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from boxscore._utils.files import read_text
from boxscore.data.vocabulary import Images
from boxscore.errors import FileFormatError, InputError

__all__ = ["header_size", "image_size_table", "size_in", "with_known_sizes"]

Sizes = Mapping[str, tuple[float, float]]

LARGEST = 1_000_000_000
"""Bytes of a table of sizes."""

_IMAGE, _WIDTH, _HEIGHT = (
    ("image", "image_id", "file_name", "filename", "name"),
    ("width", "w", "image_width"),
    ("height", "h", "image_height"),
)


def image_size_table(source: str | Path | Mapping[Any, Sequence[float]]) -> dict[str, tuple[float, float]]:
    """Return width and height by image, from a mapping or a CSV file ``image, width, height``."""
    table: dict[str, tuple[float, float]] = {}
    if isinstance(source, Mapping):
        for image, size in source.items():
            values = tuple(np.ravel(np.asarray(size, dtype=object)))
            if len(values) != 2:
                raise InputError(
                    "an image size", "be width and height", got=repr(size), place=f"image {image!r}"
                )
            table[str(image)] = _size(values[0], values[1], f"image {image!r}")
        return _with_stems(table)
    path = Path(source)
    rows = csv.reader(read_text(path, "a table of image sizes", largest=LARGEST).splitlines())
    columns: tuple[int, int, int] | None = None
    for number, row in enumerate(rows, start=1):
        if not any(cell.strip() for cell in row):
            continue
        place = f"{path}, line {number}"
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
    return _with_stems(table)


def with_known_sizes(images: Images, table: Sizes) -> Images:
    """Return images with the sizes of a table where their own are not known."""
    sizes, ids = images.sizes.copy(), images.ids.tolist()
    for row in np.flatnonzero(np.isnan(sizes).any(axis=1)).tolist():
        size = size_in(table, ids[row], images.file_names[row])
        if size is not None:
            sizes[row] = size
    return dataclasses.replace(images, sizes=sizes)


def _with_stems(table: dict[str, tuple[float, float]]) -> dict[str, tuple[float, float]]:
    """Add file names without folder, and without ending, where they mean one image's size."""
    short: dict[str, tuple[float, float] | None] = {}
    for name, size in table.items():
        last = name.replace("\\", "/").rpartition("/")[2]
        for key in {last, last.rpartition(".")[0] or last}:
            if key != name:
                short[key] = size if short.get(key, size) == size else None
    return {**{key: size for key, size in short.items() if size is not None}, **table}


def _columns(row: Sequence[str], place: str) -> tuple[int, int, int] | None:
    """Positions of image, width and height in a head line; None where the line is no head."""
    names = [cell.strip().lower() for cell in row]
    found = [
        next((names.index(name) for name in known if name in names), None)
        for known in (_IMAGE, _WIDTH, _HEIGHT)
    ]
    if None not in found:
        image, width, height = found
        return (image, width, height)  # type: ignore[return-value]
    if len(row) >= 3 and _number(row[1]) is not None and _number(row[2]) is not None:
        return None
    raise FileFormatError(
        "the head of a table of image sizes",
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


def size_in(table: Sizes | None, *names: object) -> tuple[float, float] | None:
    """Return the size of the image with one of these ids or file names, with or without ending."""
    if table is None:
        return None
    for name in names:
        if name is None:
            continue
        text = str(name)
        if text in table:
            return table[text]
        path = PurePosixPath(text.replace("\\", "/"))
        for key in (path.name, path.stem):
            if key in table:
                return table[key]
    return None


def header_size(path: Path) -> tuple[float, float] | None:
    """Return an image's size from its header; None where it cannot be read."""
    import imagesize

    try:
        width, height = imagesize.get(str(path))
    except Exception:  # a damaged header raises many kinds
        return None
    return (float(width), float(height)) if width > 0 and height > 0 else None
