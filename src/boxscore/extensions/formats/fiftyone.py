"""Read the JSON of FiftyOne's exports ``FiftyOneImageDetectionDataset`` and ``FiftyOneDataset``.

Conventions
-----------
- ``bounding_box`` is left, top, width and height as fractions of the image.
- ``labels.json`` names images without extensions and without sizes. ``samples.json`` has paths, and sizes if
  metadata were computed.
- If ``samples.json`` has several fields of detections, the ground truth is ``ground_truth`` and the
  detections are ``predictions``, FiftyOne's default names.
- Labels with a ``confidence`` are detections.

References
----------
https://docs.voxel51.com/user_guide/export_datasets.html, fiftyone 1.x ``utils/data/exporters.py``
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from boxscore.errors import FileFormatError
from boxscore.extensions.formats._gathered import Gathered, Origin, Size, decoded, decoded_text, in_fractions
from boxscore.formats._format import ReadOptions
from boxscore.formats._rows import RowFormat, Rows
from boxscore.formats._sniffer import Sniffer

FIELDS = {False: "ground_truth", True: "predictions"}
"""The field to read if samples have several; the key is whether to read detections."""


class _Detection(msgspec.Struct, gc=False):
    label: str | None
    bounding_box: tuple[float, float, float, float]
    confidence: float | None = None


class _Labels(msgspec.Struct, gc=False):
    labels: dict[str, msgspec.Raw]
    classes: list[str] | None = None


class _Samples(msgspec.Struct, gc=False):
    samples: list[dict[str, msgspec.Raw]]


class _Field(msgspec.Struct, gc=False):
    detections: list[_Detection] = []


class FiftyOneFormat(RowFormat):
    """FiftyOne's JSON files."""

    name = "fiftyone"
    boxes = "xywh"
    takes = frozenset({"image_sizes"})

    def detect(self, sniffer: Sniffer) -> str | None:
        """Detect boxes under FiftyOne's keys, or samples with a path."""
        if not sniffer.text.lstrip().startswith("{"):
            return None
        if sniffer.has_keys("samples", "filepath"):
            return "FiftyOne's samples"
        boxes = sniffer.has_keys("labels", "bounding_box") and not sniffer.has_keys("annotations")
        return "FiftyOne's labels" if boxes else None

    def rows(self, path: Path, options: ReadOptions, *, of_results: bool) -> Rows:
        """Read the labels, or the samples."""
        if Sniffer(path).has_keys("samples", "filepath"):
            rows = _of_samples(path, options, of_results)
        else:
            rows = _of_labels(path, options, of_results)
        return in_fractions(rows)


FORMAT = FiftyOneFormat()


def _of_labels(path: Path, options: ReadOptions, of_results: bool) -> Rows:
    gathered = Gathered(path, options, endings=False)
    whole = ("FiftyOne's labels", "an object with labels")
    content = decoded(path, _Labels, record="detection", whole=whole)
    for name in content.labels:
        detections = _value(content.labels, name, list[_Detection], f"image {name!r} of {path}")
        _add(gathered, gathered.image(name), detections or [], f"image {name!r}, detection", path)
    return gathered.rows(of_results=of_results, classes=content.classes or None)


def _of_samples(path: Path, options: ReadOptions, of_results: bool) -> Rows:
    gathered = Gathered(path, options)
    whole = ("FiftyOne's samples", "an object with samples")
    samples = decoded(path, _Samples, record="sample", whole=whole).samples
    field = _field_of(samples, path, of_results)
    for number, sample in enumerate(samples):
        origin = str(Origin("sample", number, path))
        name = _value(sample, "filepath", str, origin)
        if not name:
            raise FileFormatError("a sample", "have a filepath", got="none", place=origin)
        size = _value(sample, "metadata", Size, origin) or Size()
        image = gathered.image(name, size.width, size.height)
        content = _value(sample, field, _Field, origin) if field is not None else None
        detections = [] if content is None else content.detections
        for key, raw in sample.items() if field is None else ():
            if bytes(raw)[:1] == b"{" and b'"Classification' in bytes(raw):
                gathered.label_image(key)
        _add(gathered, image, detections, f"sample {number}, detection", path)
    return gathered.rows(of_results=of_results)


def _value(values: dict[str, msgspec.Raw], key: str, kind: Any, place: str) -> Any:
    """Return the value of a key; None if it is missing."""
    text, whole = bytes(values.get(key, msgspec.Raw(b"null"))), (key, "")
    return decoded_text(text, Path(place), kind | None, record="detection", whole=whole)


def _field_of(samples: list[dict[str, msgspec.Raw]], path: Path, of_results: bool) -> str | None:
    """Return the field of the detections: the only one or the default one; None without any."""
    # Look at the raw text of each field; the detections are decoded later.
    fields = sorted(
        {
            key
            for sample in samples
            for key, raw in sample.items()
            if bytes(raw)[:1] == b"{" and b'"detections"' in bytes(raw)
        }
    )
    # If there are several, use the default name.
    if len(fields) < 2 or FIELDS[of_results] in fields:
        return FIELDS[of_results] if FIELDS[of_results] in fields else next(iter(fields), None)
    raise FileFormatError(
        "samples",
        f"have one field of detections, or {FIELDS[of_results]}",
        got=", ".join(map(repr, fields[:5])),
        place=str(path),
        cause="export with label_field=, or rename the field",
    )


def _add(gathered: Gathered, image: int, detections: list[_Detection], kind: str, path: Path) -> None:
    for number, detection in enumerate(detections):
        origin = Origin(kind, number, path)
        if not detection.label:
            gathered.leave_out("detection", "without label")
            continue
        gathered.add_box(
            image, detection.label, detection.bounding_box, "xywh", origin, score=detection.confidence
        )
