"""Read PNG files whose pixels are labels, and resolve file names inside files.

Conventions
-----------
- The header is checked before decoding: a label map is gray with 8 or 16 bits, or has a palette, whose
  indices are the labels. Images that Pillow would silently convert to other numbers (16-bit color, gray with
  1 to 4 bits) are rejected.
- Pillow is imported lazily, on the first map.
"""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore.errors import FileFormatError, MissingDependencyError

LabelMap = NDArray[np.integer[Any]]

MOST_PIXELS = 1 << 26
"""Maximum size of a map, 8192 x 8192; a small file may claim any size."""

GRAY, COLORS, PALETTE, GRAY_ALPHA, COLORS_ALPHA = 0, 2, 3, 4, 6
_KINDS = {
    GRAY: "gray",
    COLORS: "RGB",
    PALETTE: "palette",
    GRAY_ALPHA: "gray with alpha",
    COLORS_ALPHA: "RGBA",
}
_BROKEN = (OSError, SyntaxError, ValueError, EOFError, IndexError, struct.error, zlib.error)
"""Exceptions that Pillow raises for damaged files."""


class Head(NamedTuple):
    """Header of a PNG."""

    width: int
    height: int
    depth: int
    color: int

    def __str__(self) -> str:
        return f"{_KINDS.get(self.color, 'an unknown kind')}, {self.depth} bits"


def require_pillow() -> Any:
    """Import Pillow's Image module, or raise with the command that installs it."""
    try:
        from PIL import Image
    except ImportError:
        raise MissingDependencyError(
            "Reading label maps needs Pillow: pip install 'boxscore[label-maps]'."
        ) from None
    return Image


def read_labels(path: Path) -> LabelMap:
    """Read a label map, [H, W] of uint8 or wider."""
    head = png_head(path)
    if not (head.color == PALETTE or (head.color == GRAY and head.depth >= 8)):
        cause = "is it a color visualization? boxscore needs the label values"
        rule = "be gray (8 or 16 bits) or have a palette"
        cause = cause if head.color != GRAY else "save the labels with 8 bits"
        raise FileFormatError("a label map", rule, got=str(head), place=str(path), cause=cause)
    return np.asarray(decoded_png(path))


def png_head(path: Path) -> Head:
    """Read the header of a PNG; raise if the file is not a PNG, or claims too many pixels."""
    try:
        with path.open("rb") as file:
            start = file.read(26)
    except OSError as error:
        raise FileFormatError(f"{path}: cannot be read: {error.strerror}.") from None
    if len(start) < 26 or start[:8] != b"\x89PNG\r\n\x1a\n" or start[12:16] != b"IHDR":
        got = "JPEG, which changes labels" if start[:2] == b"\xff\xd8" else "something else"
        got = "an empty file" if not start else got
        raise FileFormatError("a label map", "be a PNG file", got=got, place=str(path))
    head = Head(*struct.unpack(">IIBB", start[16:26]))
    if not 0 < head.width * head.height <= MOST_PIXELS:
        got = f"{head.width} x {head.height}"
        raise FileFormatError("a label map", f"have at most {MOST_PIXELS:,} pixels", got=got, place=str(path))
    return head


def decoded_png(path: Path) -> Any:
    """Decode a PNG to a Pillow image."""
    pillow = require_pillow()
    try:
        with path.open("rb") as file:
            image = pillow.open(file, formats=("PNG",))
            image.load()
    except _BROKEN as error:
        reason = str(error).split("\n", 1)[0].rstrip(".")
        cause = "was the download or the write cut short?"
        raise FileFormatError("a PNG file", "be whole", got=reason, place=str(path), cause=cause) from None
    return image


def inside(folder: Path, name: str, *, place: str) -> Path:
    """Return the path of a file, which must be inside a folder."""
    path = folder / name
    if not name or "\0" in name or not path.resolve().is_relative_to(folder.resolve()):
        raise FileFormatError("file_name", "be inside its folder", got=repr(name), place=place)
    return path
