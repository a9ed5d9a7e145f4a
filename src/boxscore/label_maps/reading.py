"""Label maps and segment tables from files: PNG by Pillow, JSON by msgspec.

Conventions
-----------
- The head of a PNG says what it holds before anything is decoded: a map of segment ids has colours of 8 bits,
  a map of labels is gray of 8 or 16 bits, or has a palette, whose numbers are the labels. What Pillow would
  convert into other numbers without a warning (colours of 16 bits, gray of 1 to 4) is refused.
- Pillow is imported here only, when the first map is read.
- File names in JSON are not trusted: a map is read only from inside its folder.
"""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from boxscore._utils.collector import paused_collector
from boxscore._utils.files import read_bytes
from boxscore.errors import FileFormatError, MissingDependencyError
from boxscore.formats._json import check_utf8, explain
from boxscore.label_maps.counting import LabelMap
from boxscore.label_maps.panoptic import (
    PanopticClasses,
    Segments,
    panoptic_classes,
    segments_of_columns,
)

MOST_PIXELS = 1 << 26
"""Of a map: 8192 x 8192. A small file may claim any size."""

GRAY, COLOURS, PALETTE, GRAY_ALPHA, COLOURS_ALPHA = 0, 2, 3, 4, 6
_KINDS = {
    GRAY: "gray",
    COLOURS: "RGB",
    PALETTE: "palette",
    GRAY_ALPHA: "gray with alpha",
    COLOURS_ALPHA: "RGBA",
}
_BROKEN = (OSError, SyntaxError, ValueError, EOFError, IndexError, struct.error, zlib.error)
"""What Pillow raises for damaged files."""

# ---------------------------------------------------------------- maps


class _Head(NamedTuple):
    """What the head of a PNG says."""

    width: int
    height: int
    depth: int
    colour: int

    def __str__(self) -> str:
        return f"{_KINDS.get(self.colour, 'an unknown kind')}, {self.depth} bits"


def require_pillow() -> Any:
    """Import Pillow's Image module, or say how to install it."""
    try:
        from PIL import Image
    except ImportError:
        raise MissingDependencyError(
            "Reading label maps needs Pillow: pip install 'boxscore[label-maps]'."
        ) from None
    return Image


def read_labels(path: Path) -> LabelMap:
    """Read a map of labels, [H, W] of uint8 or wider."""
    head = _head(path)
    if not (head.colour == PALETTE or (head.colour == GRAY and head.depth >= 8)):
        cause = "a picture coloured for people? the labels themselves are needed"
        rule = "be gray (8 or 16 bits) or have a palette"
        cause = cause if head.colour != GRAY else "save the labels with 8 bits"
        raise FileFormatError("a label map", rule, got=str(head), place=str(path), cause=cause)
    return np.asarray(_decoded(path))


def read_segment_ids(path: Path) -> LabelMap:
    """Read a map of segment ids, uint32 [H, W]: R + 256 G + 65536 B."""
    head = _head(path)
    if head.colour not in (COLOURS, COLOURS_ALPHA) or head.depth != 8:
        cause = "Cityscapes' instanceIds? make panoptic files of them" if head.depth == 16 else ""
        rule = "be RGB of 8 bits, ids as R + 256 G + 65536 B"
        raise FileFormatError("a panoptic map", rule, got=str(head), place=str(path), cause=cause)
    image = _decoded(path)
    if image.mode != "RGB":
        image = image.convert("RGB")
    # Four bytes a pixel, as Pillow stores it: no copy by channels.
    four = np.frombuffer(image.tobytes("raw", "RGBX"), dtype="<u4")
    return (four & np.uint32(0xFFFFFF)).reshape(head.height, head.width)


def _head(path: Path) -> _Head:
    try:
        with path.open("rb") as file:
            start = file.read(26)
    except OSError as error:
        raise FileFormatError(f"{path}: cannot be read: {error.strerror}.") from None
    if len(start) < 26 or start[:8] != b"\x89PNG\r\n\x1a\n" or start[12:16] != b"IHDR":
        got = "JPEG, which changes labels" if start[:2] == b"\xff\xd8" else "something else"
        got = "an empty file" if not start else got
        raise FileFormatError("a label map", "be a PNG file", got=got, place=str(path))
    head = _Head(*struct.unpack(">IIBB", start[16:26]))
    if not 0 < head.width * head.height <= MOST_PIXELS:
        got = f"{head.width} x {head.height}"
        raise FileFormatError("a label map", f"have at most {MOST_PIXELS:,} pixels", got=got, place=str(path))
    return head


def _decoded(path: Path) -> Any:
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
    """Return the path of a file that must lie inside a folder."""
    path = folder / name
    if not name or "\0" in name or not path.resolve().is_relative_to(folder.resolve()):
        raise FileFormatError("file_name", "lie inside its folder", got=repr(name), place=place)
    return path


# ---------------------------------------------------------------- tables

Id = int | str


class _Segment(msgspec.Struct):
    id: int
    category_id: int
    area: int | float | None = None
    iscrowd: int = 0


class _Annotation(msgspec.Struct):
    image_id: Id
    file_name: str
    segments_info: list[_Segment]


class _Category(msgspec.Struct):
    id: int
    isthing: int
    name: str = ""


class _Truth(msgspec.Struct):
    annotations: list[_Annotation]
    categories: list[_Category]


class _Prediction(msgspec.Struct):
    annotations: list[_Annotation]


class SegmentTable(NamedTuple):
    """One image's map and table."""

    file_name: str
    segments: Segments


class PanopticTruth(NamedTuple):
    """The classes, and maps and tables by image."""

    classes: PanopticClasses
    images: dict[Id, SegmentTable]


class PanopticImage(NamedTuple):
    """What is compared of an image: paths of both maps, and both tables."""

    image: Id
    paths: tuple[Path, Path]
    tables: tuple[Segments, Segments]


def read_panoptic_truth(path: Path) -> PanopticTruth:
    """Read a panoptic file of COCO or Cityscapes."""
    file = _read_json(path, _Truth, "an object with annotations and categories")
    names = {category.id: category.name or str(category.id) for category in file.categories}
    records = [{"id": each.id, "isthing": each.isthing, "name": names[each.id]} for each in file.categories]
    classes = panoptic_classes(records, place=str(path))
    return PanopticTruth(classes, _tables(file.annotations, classes, path))


def read_panoptic_prediction(path: Path, classes: PanopticClasses) -> dict[Id, SegmentTable]:
    """Read panoptic results: ``annotations`` as in the truth, without areas."""
    file = _read_json(path, _Prediction, "an object with annotations")
    return _tables(file.annotations, classes, path)


def _tables(annotations: list[_Annotation], classes: PanopticClasses, path: Path) -> dict[Id, SegmentTable]:
    rows = {number: row for row, number in enumerate(classes.ids)}
    tables: dict[Id, SegmentTable] = {}
    for annotation in annotations:
        place = f"image {annotation.image_id!r} of {path}"
        if annotation.image_id in tables:
            raise FileFormatError("images", "have one annotation each", got="two", place=place)
        segments = annotation.segments_info
        tables[annotation.image_id] = SegmentTable(
            annotation.file_name,
            segments_of_columns(
                [each.id for each in segments],
                [each.category_id for each in segments],
                [each.area for each in segments],
                [each.iscrowd for each in segments],
                rows,
                place=place,
            ),
        )
    if not tables:
        raise FileFormatError("annotations", "hold at least one image", got="none", place=str(path))
    return tables


def _read_json(path: Path, kind: Any, what: str) -> Any:
    try:
        text = read_bytes(path)
    except OSError as error:
        raise FileFormatError(f"{path}: cannot be read: {error.strerror}.") from None
    text = text.removeprefix(b"\xef\xbb\xbf")
    try:
        with paused_collector():
            value = msgspec.json.decode(text, type=kind)
        check_utf8(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        whole = ("a panoptic file", what)
        raise explain(error, path, record="annotation", text=text, whole=whole) from None
    return value
