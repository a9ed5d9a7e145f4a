"""Read Labelbox: exports as NDJSON or as a JSON list, exports of version 1, and uploads of predictions.

Conventions
-----------
- A class is the ``name`` of an object (``title`` in version 1), not its ``value``, which is in lower case.
- An image has its ``external_id``, else the last part of its address, else its global key. Its global key and
  data row stay as image columns; an extension finds images by them.
- If an image has several labels, the first counts, with a warning. Images without a label, and skipped ones,
  are left out with a warning: they may have objects.
- Masks, points and lines are left out with a warning.

References
----------
https://docs.labelbox.com/reference/export-image-annotations,
https://docs.labelbox.com/reference/import-image-annotations
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from boxscore._utils.text import counted, verb
from boxscore._utils.user_warnings import warn_user
from boxscore.errors import FileFormatError
from boxscore.extensions.formats._gathered import (
    Gathered,
    Origin,
    Point,
    Size,
    decoded_text,
    flat_points,
    last_part,
    named,
    records_of,
)
from boxscore.formats._format import ReadOptions
from boxscore.formats._rows import RowFormat, Rows
from boxscore.formats._sniffer import Sniffer


class _Box(msgspec.Struct, gc=False):
    left: float
    top: float
    width: float
    height: float


class _Object(msgspec.Struct, gc=False):
    name: str | None = None
    title: str | None = None
    annotation_kind: str | None = None
    bounding_box: _Box | None = None
    bbox: _Box | None = None
    polygon: list[Point] | None = None
    page: int | None = None
    page_number: int | None = None


class _DataRow(msgspec.Struct, gc=False):
    id: str | None = None
    external_id: str | None = None
    global_key: str | None = None
    row_data: str | None = None


class _Annotations(msgspec.Struct, gc=False):
    objects: list[_Object] = []
    frames: Any = None
    classifications: Any = None


class _Details(msgspec.Struct, gc=False):
    skipped: bool | None = False


class _Label(msgspec.Struct, gc=False):
    annotations: _Annotations = msgspec.field(default_factory=_Annotations)
    performance_details: _Details | None = None


class _Project(msgspec.Struct, gc=False):
    labels: list[_Label] = []


class _Exported(msgspec.Struct, gc=False):
    data_row: _DataRow
    media_attributes: Size | None = None
    projects: dict[str, _Project] = {}


class _First(msgspec.Struct, gc=False):
    label: msgspec.Raw = msgspec.field(name="Label", default_factory=lambda: msgspec.Raw(b"{}"))
    external_id: str | None = msgspec.field(default=None, name="External ID")
    address: str | None = msgspec.field(default=None, name="Labeled Data")
    skipped: bool | None = msgspec.field(default=False, name="Skipped")


class _Key(msgspec.Struct, gc=False):
    global_key: str | None = msgspec.field(default=None, name="globalKey")
    id: str | None = None


class _Upload(_Object, gc=False):
    data_row: _Key = msgspec.field(default_factory=_Key, name="dataRow")
    confidence: float | None = None


class LabelboxFormat(RowFormat):
    """Labelbox's exports and uploads."""

    name = "labelbox"
    boxes = "xywh"
    takes = frozenset({"image_sizes"})

    def detect(self, sniffer: Sniffer) -> str | None:
        """Detect an export or an upload by the keys of its records."""
        if sniffer.has_keys("images", "annotations", "categories"):
            return None
        if sniffer.has_keys("data_row") and any(
            sniffer.has_keys(key) for key in ("projects", "media_attributes", "external_id", "row_data")
        ):
            return "an export of Labelbox"
        if sniffer.has_keys("Labeled Data", "Label"):
            return "an export of Labelbox, version 1"
        return (
            "an upload of Labelbox"
            if sniffer.has_keys("dataRow", "uuid") or sniffer.has_keys("dataRow", "bbox")
            else None
        )

    def rows(self, path: Path, options: ReadOptions, *, of_results: bool) -> Rows:
        """Read every record."""
        gathered = Gathered(path, options)
        sniffer = Sniffer(path)
        if sniffer.has_keys("Labeled Data"):
            _add_first(path, gathered)
        elif not sniffer.has_keys("data_row"):
            _add_uploads(path, gathered)
        else:
            columns = _add_exported(path, gathered)
            rows = gathered.rows(of_results=of_results)
            return rows if of_results else dataclasses.replace(rows, image_columns=columns)
        return gathered.rows(of_results=of_results)


FORMAT = LabelboxFormat()


def _add_exported(path: Path, gathered: Gathered) -> Mapping[str, Any]:
    """Add the images of an export; return their global keys and data rows, if each image has one."""
    keys: list[str | None] = []
    data_rows: list[str | None] = []
    several = without = 0
    for origin, content in records_of(path, _Exported, "an export of Labelbox"):
        # Labels of several projects may be of different tasks.
        labeled = {name: project.labels for name, project in content.projects.items() if project.labels}
        if len(labeled) > 1:
            cause = "export one project at a time"
            got = ", ".join(map(repr, list(labeled)[:5]))
            raise FileFormatError(
                "an image", "be labeled in one project", got=got, place=str(origin), cause=cause
            )
        labels = [
            label
            for label in next(iter(labeled.values()), [])
            if label.performance_details is None or not label.performance_details.skipped
        ]
        if not labels:
            without += 1
            continue
        several += len(labels) > 1
        if labels[0].annotations.frames is not None:
            cause = "export its frames as images"
            raise FileFormatError(
                "an image", "be a single image", got="a video", place=str(origin), cause=cause
            )
        # The same image has up to three names.
        row, size = content.data_row, content.media_attributes or Size()
        name = row.external_id or last_part(row.row_data or "") or row.global_key
        image = gathered.image(named(name, origin), size.width, size.height)
        keys.append(row.global_key)
        data_rows.append(row.id)
        if labels[0].annotations.classifications:
            gathered.label_image("a classification")
        for number, item in enumerate(labels[0].annotations.objects):
            _add(
                item,
                item.name,
                image,
                Origin(f"object {number}, {origin.kind}", origin.number, path),
                gathered,
            )
    if several:
        text = f"{counted(several, 'image')} {verb(several, 'have')} several labels; the first of each counts"
        warn_user(f"{path}: {text}.")
    gathered.leave_out_images(without, "without a label")
    columns = {"global_key": keys, "data_row_id": data_rows}
    return {
        name: np.array(values, dtype=object) for name, values in columns.items() if values and all(values)
    }


def _add_first(path: Path, gathered: Gathered) -> None:
    """Add the images of an export of version 1."""
    without = 0
    for origin, content in records_of(path, _First, "an export of Labelbox"):
        # A skipped image has no label, or a word instead.
        text = bytes(content.label)
        if text[:1] == b"[":
            cause = "export its frames as images"
            raise FileFormatError(
                "Label", "be that of an image", got="a list", place=str(origin), cause=cause
            )
        if content.skipped or text[:1] != b"{":
            without += 1
            continue
        image = gathered.image(named(content.external_id or last_part(content.address or ""), origin))
        whole = ("Label", "an object")
        label = decoded_text(text, Path(str(origin)), dict[str, msgspec.Raw], record="label", whole=whole)
        raw = label.get("objects")
        if raw is None and label.keys() - {"classifications"}:
            got = ", ".join(map(repr, list(label)[:5]))
            raise FileFormatError("Label", "have objects", got=got, place=str(origin))
        given = bytes(raw) if raw is not None else b"[]"
        objects = decoded_text(given, Path(str(origin)), list[_Object], record="object", whole=whole)
        for number, item in enumerate(objects):
            _add(
                item,
                item.title,
                image,
                Origin(f"object {number}, {origin.kind}", origin.number, path),
                gathered,
            )
    gathered.leave_out_images(without, "without a label")


def _add_uploads(path: Path, gathered: Gathered) -> None:
    """Add predictions as they are uploaded, a record for each."""
    for origin, content in records_of(path, _Upload, "an upload of Labelbox"):
        name = named(content.data_row.global_key or content.data_row.id, origin)
        _add(content, content.name, gathered.known_image(name), origin, gathered, content.confidence)


def _add(
    item: _Object,
    label: str | None,
    image: int,
    origin: Origin,
    gathered: Gathered,
    score: float | None = None,
) -> None:
    """Add a box or a polygon; count what is neither."""
    box = item.bounding_box or item.bbox
    if box is None and item.polygon is None:
        kind = (item.annotation_kind or "").removeprefix("Image")[:30]
        gathered.leave_out(*((kind,) if kind else ("annotation", "of another kind")))
        return
    if item.page is not None or item.page_number is not None:
        cause = "boxscore evaluates images, not pages of documents"
        raise FileFormatError("an object", "be on an image", got="a page", place=str(origin), cause=cause)
    if not label:
        cause = "a schemaId alone does not name a class: upload with name"
        raise FileFormatError("an object", "have a name", got="none", place=str(origin), cause=cause)
    if box is not None:
        numbers = (box.left, box.top, box.width, box.height)
        gathered.add_box(image, label, numbers, "xywh", origin, score=score)
    else:
        gathered.add_polygon(image, label, flat_points(item.polygon or ()), origin, score=score)
