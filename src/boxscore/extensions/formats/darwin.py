"""Read Darwin JSON of V7, versions 1.0 and 2.0: a file per image.

Conventions
-----------
- Boxes are pixels. A polygon has its own points, possibly in several parts; the box that V7 adds is not used.
  A part inside another is a hole, which makes the mask a run-length encoding.
- An image is the ``name`` of the item below its ``path``, a folder of the data set (``filename`` in 1.0).
- Annotations of a model have ``inference.confidence``, their score.
- Tags label whole images. Lines, skeletons, ellipses and masks are left out with a warning. Videos and items
  of several slots are refused: a box would belong to one frame or slot of them.

References
----------
https://docs.v7labs.com/reference/darwin-json, darwin-py 3.x ``darwin/utils/utils.py``
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from boxscore.errors import FileFormatError
from boxscore.extensions.formats._gathered import Gathered, Origin, Point, decoded, flat_points
from boxscore.extensions.formats._json_folders import first_json, json_files
from boxscore.formats._format import ReadOptions
from boxscore.formats._rows import RowFormat, Rows
from boxscore.formats._sniffer import Sniffer


class _Box(msgspec.Struct, gc=False):
    x: float
    y: float
    w: float
    h: float


class _Polygon(msgspec.Struct, gc=False):
    paths: list[list[Point]] | None = None
    path: list[Point] | None = None


class _Inference(msgspec.Struct, gc=False):
    confidence: float | None = None


class _Annotation(msgspec.Struct, gc=False):
    name: str | None = None
    bounding_box: _Box | None = None
    polygon: _Polygon | None = None
    tag: Any = None
    frames: Any = None
    inference: _Inference | None = None


class _Slot(msgspec.Struct, gc=False):
    type: str | None = None
    width: float | None = None
    height: float | None = None
    frame_count: int | None = None


class _Item(msgspec.Struct, gc=False):
    name: str | None = None
    filename: str | None = None
    path: str | None = None
    width: float | None = None
    height: float | None = None
    frame_count: int | None = None
    frame_urls: Any = None
    slots: list[_Slot] | None = None


class _File(msgspec.Struct, gc=False):
    annotations: list[_Annotation]
    item: _Item | None = None
    image: _Item | None = None


class DarwinFormat(RowFormat):
    """Darwin JSON of V7."""

    name = "darwin"
    folder_endings = (".json",)
    boxes = "xywh"

    def detect(self, sniffer: Sniffer) -> str | None:
        """Detect a file of one image, or a folder whose first JSON file is one."""
        file = first_json(sniffer)
        if file is None or not file.text.lstrip().startswith("{") or not file.has_keys("annotations"):
            return None
        if file.has_keys("images", "categories"):  # COCO with further keys
            return None
        second = file.has_keys("item", "slots") or file.has_keys("item", "slot_names")
        first = file.has_keys("image", "filename") and (
            file.has_keys("original_filename") or file.has_keys("workview_url")
        )
        if not (second or first or '"https://darwin-' in file.text[:400]):
            return None
        return "a folder of Darwin JSON" if sniffer.is_folder else "Darwin JSON"

    def rows(self, path: Path, options: ReadOptions, *, of_results: bool) -> Rows:
        """Read every file."""
        gathered = Gathered(path, options)
        for file in json_files(path):
            whole = ("Darwin JSON", "an object with annotations")
            content = decoded(file, _File, record="annotation", whole=whole)
            item = content.item or content.image or _Item()
            # Boxes of videos and of several slots do not belong to one image.
            slots = item.slots or [_Slot(None, item.width, item.height)]
            annotations = content.annotations
            is_video = (
                item.frame_urls is not None
                or any(one.frames is not None for one in annotations)
                or (item.frame_count or 1) > 1
                or any((slot.frame_count or 1) > 1 or slot.type == "video" for slot in slots)
            )
            if is_video or len(slots) > 1:
                got = "a video" if is_video else f"{len(slots)} slots"
                cause = "export its frames as images, for example as COCO JSON there"
                raise FileFormatError("an item", "be a single image", got=got, place=str(file), cause=cause)
            name = item.name or item.filename
            if not name:
                raise FileFormatError("an item", "have a name", got="none", place=str(file))
            folder = (item.path or "").strip("/")
            image = gathered.image(f"{folder}/{name}" if folder else name, slots[0].width, slots[0].height)
            for number, annotation in enumerate(annotations):
                _add(annotation, image, Origin("annotation", number, file), gathered)
        return gathered.rows(of_results=of_results)


FORMAT = DarwinFormat()


def _add(annotation: _Annotation, image: int, origin: Origin, gathered: Gathered) -> None:
    label, box, polygon = annotation.name, annotation.bounding_box, annotation.polygon
    score = None if annotation.inference is None else annotation.inference.confidence
    if annotation.tag is not None:
        gathered.label_image(label or "a tag")
    elif box is None and polygon is None:
        gathered.leave_out("annotation", "without box or polygon")
    elif not label:
        raise FileFormatError("an annotation", "have a name", got="none", place=str(origin))
    elif polygon is not None:
        paths = polygon.paths or ([polygon.path] if polygon.path else [])
        parts = [flat_points(part) for part in paths]
        gathered.add_polygons(image, label, parts, origin, score=score, even_odd=True)
    elif box is not None:
        gathered.add_box(image, label, (box.x, box.y, box.w, box.h), "xywh", origin, score=score)
