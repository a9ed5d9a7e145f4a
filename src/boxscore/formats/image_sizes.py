"""Image sizes from a table or from the images' headers, for files that hold fractions of them."""

from __future__ import annotations

import csv
import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.files import read_text
from boxscore.data.image_names import SEVERAL, ImageNames
from boxscore.data.vocabulary import Id, Images
from boxscore.errors import FileFormatError, InputError

__all__ = ["header_size", "image_size_table", "known_sizes", "with_known_sizes"]

FloatArray = NDArray[np.float64]
Sizes = Mapping[str, tuple[float, float]]
"""Width and height by the id or file name of an image."""

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
        return table
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
    return table


def with_known_sizes(images: Images, table: Sizes) -> Images:
    """Return images with the sizes of a table where their own are not known."""
    unknown = np.isnan(images.sizes).any(axis=1, keepdims=True)
    found = known_sizes(table, images.ids.tolist(), images.file_names.tolist())
    return dataclasses.replace(images, sizes=np.where(unknown, found, images.sizes))


def known_sizes(
    table: Sizes | None, ids: Sequence[Id], file_names: Sequence[str | None] | None = None
) -> FloatArray:
    """Return the width and height that a table says of images, [I, 2]; NaN where it does not.

    An image is looked for by its id as it is written, then by its file name, or by its id where it has none.
    """
    sizes = np.full((len(ids), 2), np.nan)
    if not table or not ids:
        return sizes
    rows = ImageNames([*table])
    called: list[str] = [
        str(identifier) if name is None else name
        for identifier, name in zip(ids, file_names or [None] * len(ids), strict=True)
    ]
    unique = list(dict.fromkeys(called))
    found = dict(zip(unique, rows.find(unique).rows.tolist(), strict=True))
    values = [*table.values()]
    for image, (identifier, name) in enumerate(zip(ids, called, strict=True)):
        if str(identifier) in table:
            sizes[image] = table[str(identifier)]
        elif found[name] >= 0:
            sizes[image] = values[found[name]]
        elif found[name] == SEVERAL:
            same = {values[row] for row in rows.candidates(name)}
            if len(same) == 1:
                sizes[image] = same.pop()
    return sizes


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


def header_size(path: Path) -> tuple[float, float] | None:
    """Return an image's size from its header; None where it cannot be read."""
    import imagesize

    try:
        width, height = imagesize.get(str(path))
    except Exception:  # a damaged header raises many kinds
        return None
    return (float(width), float(height)) if width > 0 and height > 0 else None
