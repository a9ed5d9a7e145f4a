"""Read BDD100K and Scalabel JSON files: a list of frames with ``labels``.

Conventions
-----------
- ``box2d`` is two corners in pixels. Detections have a ``score``.
- Labels without ``box2d`` (lanes, areas) are skipped with a warning.
- Objects with the attribute ``crowd`` or ``ignored`` are crowds, as in Scalabel's conversion to COCO.

References
----------
https://doc.scalabel.com/format.html
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from boxscore.extensions.formats._gathered import Gathered, Origin, Size, decoded
from boxscore.formats._format import ReadOptions
from boxscore.formats._rows import RowFormat, Rows
from boxscore.formats._sniffer import Sniffer


class _Box(msgspec.Struct, gc=False):
    x1: float
    y1: float
    x2: float
    y2: float


class _Label(msgspec.Struct, gc=False):
    category: str
    box2d: _Box | None = None
    score: float | None = None
    attributes: dict[str, Any] | None = None


class _Frame(msgspec.Struct, gc=False):
    name: str
    labels: list[_Label] | None = None
    size: Size | None = None


class _Frames(msgspec.Struct, gc=False):
    frames: list[_Frame]


class BddFormat(RowFormat):
    """BDD100K's JSON files."""

    name = "bdd"
    boxes = "xyxy"

    def detect(self, sniffer: Sniffer) -> str | None:
        """Detect frames with labels."""
        return "BDD100K's JSON" if sniffer.has_keys("labels", "category", "box2d") else None

    def rows(self, path: Path, options: ReadOptions, *, of_results: bool) -> Rows:
        """Read every frame."""
        # The file is a list of frames, or an object with such a list.
        whole = ("BDD100K's JSON", "a list of frames")
        if Sniffer(path).text.lstrip().startswith("{"):
            frames = decoded(path, _Frames, record="frame", whole=whole).frames
        else:
            frames = decoded(path, list[_Frame], record="frame", whole=whole)
        # A frame is an image; each label with a box is an object.
        gathered = Gathered(path, options)
        for frame in frames:
            size = frame.size or Size()
            image = gathered.image(frame.name, size.width, size.height)
            for number, label in enumerate(frame.labels or []):
                if label.box2d is None:
                    gathered.leave_out("label", "without box2d")
                    continue
                # The box is two corners.
                box = (label.box2d.x1, label.box2d.y1, label.box2d.x2, label.box2d.y2)
                origin = Origin(f"frame {frame.name!r}, label", number, path)
                # Crowds and ignored regions absorb detections.
                attributes = label.attributes or {}
                crowd = attributes.get("crowd") is True or attributes.get("ignored") is True
                gathered.add_box(image, label.category, box, "xyxy", origin, score=label.score, crowd=crowd)
        return gathered.rows(of_results=of_results)


FORMAT = BddFormat()
