"""Read LabelMe JSON files, one per image.

Conventions
-----------
- A rectangle is two opposite corners in any order, or all four, as X-AnyLabeling writes it; a polygon its
  points; a circle its center and a point on it; X-AnyLabeling's rotation the four corners of a rotated box.
- The image name is ``imagePath`` without its folder; ``imageData`` is ignored.
- Points and lines are skipped with a warning. A ``mask`` counts as its rectangle.

References
----------
https://github.com/wkentaro/labelme, ``labelme/_label_file.py``
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from boxscore.errors import FileFormatError
from boxscore.extensions.formats._gathered import Gathered, Origin, box_around, decoded
from boxscore.extensions.formats._json_folders import first_json, json_files
from boxscore.formats._format import ReadOptions
from boxscore.formats._rows import RowFormat, Rows
from boxscore.formats._sniffer import Sniffer


class _Shape(msgspec.Struct, gc=False):
    label: str | int
    points: list[tuple[float, float]]
    shape_type: str | None = "polygon"
    score: float | None = None


class _File(msgspec.Struct, gc=False):
    shapes: list[_Shape]
    image_path: str | None = msgspec.field(default=None, name="imagePath")
    image_width: float | None = msgspec.field(default=None, name="imageWidth")
    image_height: float | None = msgspec.field(default=None, name="imageHeight")
    flags: Any = None


class LabelMeFormat(RowFormat):
    """Folders of LabelMe JSON files."""

    name = "labelme"
    folder_endings = (".json",)
    boxes = "xyxy"

    def detect(self, sniffer: Sniffer) -> str | None:
        """Detect a file of one image, or a folder whose first JSON file is one."""
        file = first_json(sniffer)
        if file is None or not file.text.lstrip().startswith("{"):
            return None
        if file.has_keys("imageData") or file.has_keys("shapes", "shape_type"):
            return "a folder of LabelMe's JSON" if sniffer.is_folder else "LabelMe's JSON"
        return (
            "LabelMe's JSON"
            if file.has_keys("shapes", "imagePath") or file.has_keys("shapes", "flags")
            else None
        )

    def rows(self, path: Path, options: ReadOptions, *, of_results: bool) -> Rows:
        """Read every file."""
        gathered = Gathered(path, options)
        for file in json_files(path):
            whole = ("LabelMe's JSON", "an object with shapes")
            content = decoded(file, _File, record="shape", whole=whole)
            name = (content.image_path or "").replace("\\", "/").rpartition("/")[2] or f"{file.stem}.jpg"
            folder = file.parent.relative_to(path).as_posix() if path.is_dir() else "."
            image = gathered.image(
                name if folder == "." else f"{folder}/{name}", content.image_width, content.image_height
            )
            # A raised flag labels the image.
            for flag, is_raised in content.flags.items() if isinstance(content.flags, dict) else ():
                if is_raised is True:
                    gathered.label_image(flag)
            for number, shape in enumerate(content.shapes):
                _add(shape, image, Origin("shape", number, file), gathered)
        return gathered.rows(of_results=of_results)


FORMAT = LabelMeFormat()


def _add(shape: _Shape, image: int, origin: Origin, gathered: Gathered) -> None:
    # X-AnyLabeling writes all four corners of boxes.
    kind, points, score = shape.shape_type or "polygon", shape.points, shape.score
    label = str(shape.label)
    corners = [number for point in points for number in point]
    if kind == "rectangle" and len(points) == 4:
        x1, y1, x2, y2 = box_around(corners)
        if {*points} != {(x1, y1), (x2, y1), (x2, y2), (x1, y2)}:
            rule, cause = "be upright if it has four points", "is it a rotation or a polygon?"
            raise FileFormatError("a rectangle", rule, got=points, place=str(origin), cause=cause)
        gathered.add_box(image, label, (x1, y1, x2, y2), "xyxy", origin, score=score)
    elif kind == "rotation":
        if len(points) != 4:
            raise FileFormatError("a rotation", "have four points", got=len(points), place=str(origin))
        gathered.add_rotated(image, label, np.array(points, dtype=np.float64), origin, score=score)
    # Shapes of two points: opposite corners, or a circle's center and a point on it.
    elif kind in ("rectangle", "mask", "circle"):
        if len(points) != 2:
            rule = "have two points, or four" if kind == "rectangle" else "have two points"
            raise FileFormatError(f"a {kind}", rule, got=len(points), place=str(origin))
        (x1, y1), (x2, y2) = points
        if kind != "circle":
            gathered.add_box(image, label, (x1, y1, x2, y2), "xyxy", origin, score=score)
            return
        # A circle becomes its bounding box, with the area of the circle.
        radius = math.hypot(x2 - x1, y2 - y1)
        x1, y1, x2, y2 = x1 - radius, y1 - radius, x1 + radius, y1 + radius
        area = math.pi * ((x2 - x1) / 2) ** 2
        gathered.add(image, label, (x1, y1, x2, y2), origin, score=score, area=area)
    # Add polygons; count lines and points as skipped.
    elif kind == "polygon":
        gathered.add_polygon(image, label, corners, origin, score=score)
    else:
        gathered.leave_out("point" if kind == "points" else kind[:20])
