"""Read VoTT's JSON export: one file with all assets.

Conventions
-----------
- The box of a region is its ``boundingBox``, in pixels, or that around its ``points``.
- A region with several tags is one object per tag, as in VoTT's CSV export.

References
----------
https://github.com/microsoft/VoTT
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from boxscore.errors import FileFormatError
from boxscore.extensions.formats._gathered import (
    Gathered,
    Origin,
    Point,
    Size,
    box_around,
    decoded,
    flat_points,
)
from boxscore.formats._format import ReadOptions
from boxscore.formats._rows import RowFormat, Rows
from boxscore.formats._sniffer import Sniffer


class _Box(msgspec.Struct, gc=False):
    left: float
    top: float
    width: float
    height: float


class _Region(msgspec.Struct, gc=False):
    tags: list[str]
    bounding_box: _Box | None = msgspec.field(default=None, name="boundingBox")
    points: list[Point] = []
    type: str = "RECTANGLE"


class _Asset(msgspec.Struct, gc=False):
    name: str
    size: Size = msgspec.field(default_factory=Size)


class _Entry(msgspec.Struct, gc=False):
    asset: _Asset
    regions: list[_Region] = []


class _Tag(msgspec.Struct, gc=False):
    name: str


class _File(msgspec.Struct, gc=False):
    assets: dict[str, _Entry]
    tags: list[_Tag] = []


class VottFormat(RowFormat):
    """VoTT's JSON files."""

    name = "vott"
    boxes = "xywh"

    def detect(self, sniffer: Sniffer) -> str | None:
        """Detect assets with their regions."""
        known = sniffer.has_keys("assets") and (
            sniffer.has_keys("asset", "regions") or sniffer.has_keys("videoSettings")
        )
        return "VoTT's JSON" if known else None

    def rows(self, path: Path, options: ReadOptions, *, of_results: bool) -> Rows:
        """Read every asset."""
        # An asset is an image.
        whole = ("VoTT's JSON", "an object with assets")
        content = decoded(path, _File, record="asset", whole=whole)
        gathered = Gathered(path, options)
        for entry in content.assets.values():
            name, size = entry.asset.name, entry.asset.size
            image = gathered.image(name, size.width, size.height)
            for number, region in enumerate(entry.regions):
                origin = Origin(f"asset {name!r}, region", number, path)
                # Add a region once per tag.
                box = region.bounding_box
                if not region.tags:
                    gathered.leave_out("region", "without a tag")
                    continue
                if box is None and region.type in ("POLYLINE", "POINT"):
                    gathered.leave_out(region.type.lower())
                    continue
                for tag in region.tags:
                    if box is not None:
                        numbers = (box.left, box.top, box.width, box.height)
                        gathered.add_box(image, tag, numbers, "xywh", origin)
                        continue
                    if not region.points:
                        rule = "have a boundingBox or points"
                        raise FileFormatError("a region", rule, got="neither", place=str(origin))
                    around = box_around(flat_points(region.points))
                    gathered.add_box(image, tag, around, "xyxy", origin)
        return gathered.rows(of_results=of_results, classes=[tag.name for tag in content.tags] or None)


FORMAT = VottFormat()
