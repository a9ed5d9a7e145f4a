"""Read maps of segment ids (PNG, with Pillow) and segment tables (JSON, with msgspec).

Conventions
-----------
- A map of segment ids is an 8-bit color image; :mod:`boxscore.extensions.masks._png` reads maps of labels.
- File names in JSON are untrusted: a map is read only from inside its folder.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from boxscore._utils.files import read_bytes
from boxscore._utils.memory import paused_collector
from boxscore.errors import FileFormatError
from boxscore.extensions.label_maps.counting import LabelMap
from boxscore.extensions.label_maps.panoptic import (
    PanopticClasses,
    Segments,
    panoptic_classes,
    segments_of_columns,
)
from boxscore.extensions.masks._png import COLORS, COLORS_ALPHA, decoded_png, png_head
from boxscore.formats._json import check_utf8, explain

# ---------------------------------------------------------------- maps


def read_segment_ids(path: Path) -> LabelMap:
    """Read a map of segment ids, uint32 [H, W]: R + 256 G + 65536 B."""
    head = png_head(path)
    if head.color not in (COLORS, COLORS_ALPHA) or head.depth != 8:
        cause = "Cityscapes' instanceIds? make panoptic files of them" if head.depth == 16 else ""
        rule = "be RGB of 8 bits, ids as R + 256 G + 65536 B"
        raise FileFormatError("a panoptic map", rule, got=str(head), place=str(path), cause=cause)
    image = decoded_png(path)
    if image.mode != "RGB":
        image = image.convert("RGB")
    # Pillow stores four bytes per pixel, so the channels need not be copied.
    four = np.frombuffer(image.tobytes("raw", "RGBX"), dtype="<u4")
    return (four & np.uint32(0xFFFFFF)).reshape(head.height, head.width)


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
    """The map and table of one image."""

    file_name: str
    segments: Segments


class PanopticTruth(NamedTuple):
    """The classes, and the maps and tables by image."""

    classes: PanopticClasses
    images: dict[Id, SegmentTable]


class PanopticImage(NamedTuple):
    """The paths of both maps and both tables of an image."""

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
    # Look classes up once; each image has one annotation.
    rows = {number: row for row, number in enumerate(classes.ids)}
    tables: dict[Id, SegmentTable] = {}
    for annotation in annotations:
        place = f"image {annotation.image_id!r} of {path}"
        if annotation.image_id in tables:
            raise FileFormatError("images", "have one annotation each", got="two", place=place)
        segments = annotation.segments_info
        tables[annotation.image_id] = SegmentTable(
            annotation.file_name,
            # Check ids, classes and areas like tables in memory.
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
