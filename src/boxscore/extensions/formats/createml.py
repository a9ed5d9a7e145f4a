"""Read CreateML JSON files (also exported by Roboflow): a list of images with ``annotations``.

Conventions
-----------
- ``x`` and ``y`` are the center of the box, in pixels. Image sizes are unknown.
- Annotations with a ``confidence`` are detections.

References
----------
https://developer.apple.com/documentation/createml/building-an-object-detector-data-source
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from boxscore.errors import FileFormatError
from boxscore.extensions.formats._gathered import Gathered, Origin, decoded
from boxscore.formats._format import ReadOptions
from boxscore.formats._rows import RowFormat, Rows
from boxscore.formats._sniffer import Sniffer


class _Box(msgspec.Struct, gc=False):
    x: float
    y: float
    width: float
    height: float


class _Annotation(msgspec.Struct, gc=False):
    label: str
    coordinates: _Box
    confidence: float | None = None


class _Image(msgspec.Struct, gc=False):
    image: str | None = None
    imagefilename: str | None = None
    annotations: list[_Annotation] = []
    annotation: list[_Annotation] = []


class CreateMLFormat(RowFormat):
    """CreateML's JSON files."""

    name = "createml"
    boxes = "xywh"
    takes = frozenset({"image_sizes"})

    def detect(self, sniffer: Sniffer) -> str | None:
        """Detect a list with coordinates."""
        known = sniffer.text.lstrip().startswith("[") and sniffer.has_keys("coordinates", "label")
        return "CreateML's JSON" if known else None

    def rows(self, path: Path, options: ReadOptions, *, of_results: bool) -> Rows:
        """Read every image."""
        # Detections refer to images by name, so every image needs one.
        gathered = Gathered(path, options)
        whole = ("CreateML's JSON", "a list of images")
        for position, content in enumerate(decoded(path, list[_Image], record="image", whole=whole)):
            name = content.image or content.imagefilename
            if not name:
                place = f"image {position} of {path}"
                raise FileFormatError("an image", "have a name", got="none", place=place)
            image = gathered.image(name)
            for number, annotation in enumerate([*content.annotations, *content.annotation]):
                origin = Origin(f"image {name!r}, annotation", number, path)
                # Boxes are center and size in pixels.
                box = annotation.coordinates
                numbers = (box.x, box.y, box.width, box.height)
                gathered.add_box(
                    image, annotation.label, numbers, "cxcywh", origin, score=annotation.confidence
                )
        return gathered.rows(of_results=of_results)


FORMAT = CreateMLFormat()
