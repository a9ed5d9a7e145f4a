"""Read the JSON of Ultralytics' results (``to_json``), and of YOLOv5's tables, one list per image.

Conventions
-----------
- Boxes are corners in pixels or, with ``normalize=True``, fractions under the same keys: all files of a
  folder decide together.
- Oriented boxes have four corners, ``x1`` to ``y4``. Segments are the outline of a mask.
- Classes are found by name.

References
----------
https://github.com/ultralytics/ultralytics, ``engine/results.py``
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import msgspec
import numpy as np

from boxscore._utils.array_types import FloatArray
from boxscore.data.box_reading import are_fractions
from boxscore.data.tables import GroundTruth
from boxscore.errors import FileFormatError
from boxscore.extensions.formats._gathered import Gathered, Origin
from boxscore.extensions.formats._json_folders import first_json, first_object
from boxscore.extensions.formats._responses import DetectionsFormat, responses
from boxscore.formats._format import ReadOptions
from boxscore.formats._rows import Rows
from boxscore.formats._sniffer import Sniffer
from boxscore.formats._tables import report_fractions

_FLAT = {"xmin", "ymin", "xmax", "ymax", "confidence", "class", "name"}
"""Keys of YOLOv5's tables."""


class _Box(msgspec.Struct, gc=False):
    x1: float
    y1: float
    x2: float
    y2: float
    x3: float | None = None
    y3: float | None = None
    x4: float | None = None
    y4: float | None = None


class _Points(msgspec.Struct, gc=False):
    x: list[float]
    y: list[float]
    visible: list[float] | None = None


class _Detection(msgspec.Struct, gc=False):
    name: str
    confidence: float
    box: _Box | None = None
    segments: _Points | None = None
    keypoints: _Points | None = None
    xmin: float | None = None
    ymin: float | None = None
    xmax: float | None = None
    ymax: float | None = None


class UltralyticsFormat(DetectionsFormat):
    """JSON of Ultralytics' results."""

    name = "ultralytics"
    folder_endings = (".json",)

    def detect(self, sniffer: Sniffer) -> str | None:
        """Detect a list whose first object has a class, its name and a confidence, and no image."""
        file = first_json(sniffer)
        first = {} if file is None else first_object(file, by_name=True)
        if not {"name", "class", "confidence"} <= first.keys():
            return None
        if first.keys() != _FLAT and not first.keys() <= {*_Detection.__struct_fields__, "class", "track_id"}:
            return None
        return f"{'a folder of ' * sniffer.is_folder}JSON of Ultralytics' results"

    def rows_of(self, path: Path, options: ReadOptions, ground_truth: GroundTruth | None) -> Rows:
        """Read every list."""
        gathered = Gathered(path, options, endings=False, any_corners=False)
        ordered, points = False, []
        for response in responses(path, _Detection, ground_truth, tool="JSON of Ultralytics' results"):
            ordered = response.is_ordered
            image = gathered.image(response.image)
            for number, detection in enumerate(response.detections):
                origin = Origin(response.place, number, response.file)
                _add(detection, image, origin, gathered)
                points.append(_keypoints(detection, origin))
        rows = dataclasses.replace(gathered.rows(of_results=True), named_by_id=ordered)
        rows = dataclasses.replace(rows, keypoints=_joined(points, rows))
        # Pixels or fractions: one answer for all files.
        if rows.form_applied or rows.boxes is None or not are_fractions(rows.boxes, rows.place):
            return rows
        report_fractions(str(path))
        given = {key: value for key, value in rows.given.items() if key != "masks"}
        outlines = [
            mask and [np.array(part) for part in mask]
            for mask in rows.given.get("masks", [None] * len(rows.image))
        ]
        return dataclasses.replace(
            rows, fractions=True, given=given, outlines=outlines if any(outlines) else None
        )


FORMAT = UltralyticsFormat()


def _add(detection: _Detection, image: int, origin: Origin, gathered: Gathered) -> None:
    label, score, box = detection.name, detection.confidence, detection.box
    flat = (detection.xmin, detection.ymin, detection.xmax, detection.ymax)
    if box is not None:
        flat = (box.x1, box.y1, box.x2, box.y2)
    x1, y1, x2, y2 = flat
    if x1 is None or y1 is None or x2 is None or y2 is None:
        cause = "results of classification have no boxes"
        raise FileFormatError("a detection", "have box", got="none", place=str(origin), cause=cause)
    # An oriented box has four corners; an outline is a mask.
    others = () if box is None else (box.x3, box.y3, box.x4, box.y4)
    corners = [x1, y1, x2, y2, *(number for number in others if number is not None)]
    if len(corners) == 8:
        gathered.add_rotated(image, label, np.array(corners).reshape(4, 2), origin, score=score)
        return
    if len(corners) != 4:
        raise FileFormatError("a box", "have two or four corners", got="others", place=str(origin))
    outline = detection.segments
    if outline is None or len(outline.x) < 3:
        gathered.add_box(image, label, (x1, y1, x2, y2), "xyxy", origin, score=score)
        return
    if len(outline.x) != len(outline.y):
        got = f"{len(outline.x)} x and {len(outline.y)} y"
        raise FileFormatError("segments", "have as many x as y", got=got, place=str(origin))
    mask = [float(number) for point in zip(outline.x, outline.y, strict=True) for number in point]
    gathered.add(image, label, (x1, y1, x2, y2), origin, score=score, mask=[mask])


def _keypoints(detection: _Detection, origin: Origin) -> FloatArray | None:
    """Return the keypoints of a detection, [J, 3]; all are visible unless the file says how much."""
    points = detection.keypoints
    if points is None:
        return None
    visible = [1.0] * len(points.x) if points.visible is None else points.visible
    if not len(points.x) == len(points.y) == len(visible):
        rule, got = "have as many x as y", f"{len(points.x)} x and {len(points.y)} y"
        raise FileFormatError("keypoints", rule, got=got, place=str(origin))
    return np.array([points.x, points.y, visible], dtype=np.float64).T


def _joined(points: list[FloatArray | None], rows: Rows) -> FloatArray | None:
    """Return the keypoints of all detections, [N, J, 3]; None if they have none."""
    present = [each for each in points if each is not None]
    if not present:
        return None
    count = len(present[0])
    for row, each in enumerate(points):
        if each is None or len(each) != count:
            got = "none" if each is None else f"{len(each)}"
            raise FileFormatError(
                "detections", f"have {count} keypoints each", got=got, place=rows.place(row)
            )
    return np.array(present)
