"""Read ``_annotations.json`` of IBM Cloud Annotations.

Conventions
-----------
- Corners ``x, y, x2, y2`` are fractions of the image size, which is unknown.
- Images without a label are not in the file.

References
----------
https://github.com/cloud-annotations/cloud-annotations
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from boxscore.data.tables import GroundTruth
from boxscore.errors import FileFormatError
from boxscore.extensions.formats._gathered import Gathered, Origin, decoded, in_fractions
from boxscore.formats._format import ReadOptions
from boxscore.formats._rows import RowFormat, Rows
from boxscore.formats._sniffer import Sniffer


class _Box(msgspec.Struct, gc=False):
    label: str
    x: float | None = None
    y: float | None = None
    x2: float | None = None
    y2: float | None = None


class _File(msgspec.Struct, gc=False):
    annotations: dict[str, list[_Box]]
    labels: list[str] = []
    type: Any = None


class IbmFormat(RowFormat):
    """Files of IBM Cloud Annotations."""

    name = "ibm"
    boxes = "xyxy"
    takes = frozenset({"image_sizes"})

    def detect(self, sniffer: Sniffer) -> str | None:
        """Detect the type of the annotations, or second corners, under file names."""
        if not sniffer.text.lstrip().startswith("{") or not sniffer.has_keys("annotations", "labels"):
            return None
        known = sniffer.has_keys("type", "x2", "label") or '"localization"' in sniffer.text
        return "IBM Cloud Annotations' JSON" if known and not sniffer.has_keys("categories") else None

    def lists_images(self, ground_truth: GroundTruth) -> bool:
        """Return False: images without a box may be missing."""
        return False

    def rows(self, path: Path, options: ReadOptions, *, of_results: bool) -> Rows:
        """Read the boxes of every image."""
        gathered = Gathered(path, options)
        content = decoded(path, _File, record="image", whole=("IBM's JSON", "an object with annotations"))
        for name, boxes in content.annotations.items():
            image = gathered.image(name)
            for number, box in enumerate(boxes):
                origin = Origin(f"image {name!r}, annotation", number, path)
                if box.x is None and box.x2 is None:
                    gathered.label_image(box.label)
                elif box.x is None or box.y is None or box.x2 is None or box.y2 is None:
                    raise FileFormatError("a box", "have x, y, x2 and y2", got="not all", place=str(origin))
                else:
                    gathered.add_box(image, box.label, (box.x, box.y, box.x2, box.y2), "xyxy", origin)
        return in_fractions(gathered.rows(of_results=of_results, classes=content.labels or None))


FORMAT = IbmFormat()
