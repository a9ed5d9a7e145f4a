"""Read Datumaro JSON files, one per subset.

Conventions
-----------
- ``label_id`` counts from 0 in ``categories.label.labels``. ``bbox`` is ``x, y, width, height`` in pixels.
- Detections have their score in ``attributes.score``. Polygons and RLE masks are objects too.

References
----------
https://github.com/openvinotoolkit/datumaro
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from boxscore.errors import FileFormatError
from boxscore.extensions.formats._gathered import Gathered, Origin, decoded
from boxscore.formats._format import ReadOptions
from boxscore.formats._rows import RowFormat, Rows
from boxscore.formats._sniffer import Sniffer


class _Label(msgspec.Struct, gc=False):
    name: str


class _Labels(msgspec.Struct, gc=False):
    labels: list[_Label] = []


class _Categories(msgspec.Struct, gc=False):
    label: _Labels = msgspec.field(default_factory=_Labels)


class _Media(msgspec.Struct, gc=False):
    path: str | None = None
    size: list[float] | None = None


class _Annotation(msgspec.Struct, gc=False):
    type: str
    label_id: int | None = None
    bbox: tuple[float, float, float, float] | None = None
    points: list[float] | None = None
    attributes: dict[str, Any] = {}


class _Item(msgspec.Struct, gc=False):
    id: str
    annotations: list[_Annotation] = []
    image: _Media | None = None
    media: _Media | None = None


class _File(msgspec.Struct, gc=False):
    categories: _Categories
    items: list[_Item]


class DatumaroFormat(RowFormat):
    """Datumaro's JSON files."""

    name = "datumaro"
    boxes = "xywh"

    def detect(self, sniffer: Sniffer) -> str | None:
        """Detect ``categories`` that are an object."""
        if not sniffer.has_keys("categories") or not sniffer.text.lstrip().startswith("{"):
            return None
        compact = "".join(sniffer.text.split())
        known = '"categories":{' in compact and (
            '"label":{' in compact or '"items":[' in compact or '"dm_format_version"' in compact
        )
        return "Datumaro's JSON" if known else None

    def rows(self, path: Path, options: ReadOptions, *, of_results: bool) -> Rows:
        """Read every item."""
        whole = ("Datumaro's JSON", "an object with categories and items")
        content = decoded(path, _File, record="item", whole=whole)
        names = [label.name for label in content.categories.label.labels]
        gathered = Gathered(path, options, endings=False)
        for item in content.items:
            media = item.image or item.media or _Media()
            height, width = (*(media.size or ()), None, None)[:2]
            image = gathered.image(item.id, width, height, file_name=media.path or item.id)
            for number, annotation in enumerate(item.annotations):
                origin = Origin(f"item {item.id!r}, annotation", number, path)
                _add(annotation, names, image, origin, gathered)
        return gathered.rows(of_results=of_results, classes=names or None)


FORMAT = DatumaroFormat()


def _add(annotation: _Annotation, names: list[str], image: int, origin: Origin, gathered: Gathered) -> None:
    # Add boxes and polygons; count other kinds as skipped. A label is of the whole image.
    if annotation.type == "label":
        number = annotation.label_id
        gathered.label_image(
            names[number] if number is not None and 0 <= number < len(names) else str(number)
        )
        gathered.leave_out("label")
        return
    if annotation.type not in ("bbox", "polygon"):
        gathered.leave_out("", f"of type {annotation.type[:20]}")
        return
    # A label is a position in the file's list.
    number = annotation.label_id
    if not names:
        rule = "have the names of classes in categories.label.labels"
        raise FileFormatError("Datumaro's JSON", rule, got="none", place=str(gathered.source))
    if number is None or not 0 <= number < len(names):
        rule = f"be from 0 to {len(names) - 1}, for the labels of the file"
        raise FileFormatError("label_id", rule, got="none" if number is None else number, place=str(origin))
    # bool is a subclass of int, but true is not a score.
    score = annotation.attributes.get("score")
    score = float(score) if isinstance(score, (int, float)) and not isinstance(score, bool) else None
    crowd = annotation.attributes.get("is_crowd") is True
    # A polygon has points, a box four numbers.
    if annotation.type == "polygon":
        points = annotation.points or []
        gathered.add_polygon(image, names[number], points, origin, score=score, crowd=crowd)
        return
    if annotation.bbox is None:
        raise FileFormatError("a bbox", "have its four numbers", got="none", place=str(origin))
    x, y, width, height = annotation.bbox
    numbers = (x, y, width, height)
    gathered.add_box(image, names[number], numbers, "xywh", origin, score=score, crowd=crowd)
