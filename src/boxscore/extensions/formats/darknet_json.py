r"""Read ``result.json`` of ``darknet detector test -out``.

Conventions
-----------
- Boxes are center and size in fractions of the image size, with six digits.
- Darknet does not escape text: the backslashes of Windows paths are doubled before the file is decoded.

References
----------
https://github.com/AlexeyAB/darknet, ``src/network.c``, ``detection_to_json``
"""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from boxscore._utils.user_warnings import warn_user
from boxscore.data.tables import GroundTruth
from boxscore.errors import BoxscoreWarning, FileFormatError
from boxscore.extensions.formats._gathered import Gathered, Origin, decoded_text, in_fractions, json_text
from boxscore.extensions.formats._json_folders import is_coco_results
from boxscore.extensions.formats._responses import DetectionsFormat
from boxscore.formats._format import ReadOptions
from boxscore.formats._rows import Rows
from boxscore.formats._sniffer import Sniffer

_CONTROL = re.compile(r"[\x00-\x1f]")


class _Box(msgspec.Struct, gc=False):
    center_x: float
    center_y: float
    width: float
    height: float


class _Object(msgspec.Struct, gc=False):
    name: str
    confidence: float
    relative_coordinates: _Box | None = None


class _Frame(msgspec.Struct, gc=False):
    objects: list[_Object]
    filename: str | None = None


class DarknetJsonFormat(DetectionsFormat):
    """Darknet's JSON."""

    name = "darknetjson"

    def detect(self, sniffer: Sniffer) -> str | None:
        """Detect frames with objects."""
        coordinates = any(sniffer.has_keys(key) for key in ("relative_coordinates", "absolute_coordinates"))
        known = sniffer.has_keys("frame_id", "objects") and (coordinates or sniffer.has_keys("filename"))
        return "darknet's result.json" if known and not is_coco_results(sniffer) else None

    def rows_of(self, path: Path, options: ReadOptions, ground_truth: GroundTruth | None) -> Rows:
        """Read every frame."""
        text = json_text(path)
        if not text.lstrip().startswith(b"["):
            rule, got = "be a list of images, written by -out result.json", "a stream, without image names"
            raise FileFormatError(f"{path}", rule, got=got)
        gathered = Gathered(path, options, any_corners=False)
        for number, frame in enumerate(_frames(text, path)):
            if not frame.filename:
                raise FileFormatError(
                    "an image", "have filename", got="none", place=f"image {number} of {path}"
                )
            image = gathered.image(frame.filename)
            for position, found in enumerate(frame.objects):
                origin = Origin(f"image {frame.filename!r}, object", position, path)
                box = found.relative_coordinates
                if box is None:
                    rule, got = "have relative_coordinates", "others"
                    cause = "in absolute_coordinates of darknet's C++ interface, center_x is the left edge"
                    raise FileFormatError("an object", rule, got=got, place=str(origin), cause=cause)
                numbers = (box.center_x, box.center_y, box.width, box.height)
                gathered.add_box(image, found.name, numbers, "cxcywh", origin, score=found.confidence)
        return in_fractions(gathered.rows(of_results=True))


FORMAT = DarknetJsonFormat()


def _frames(text: bytes, path: Path) -> list[_Frame]:
    """Decode the frames; double the backslashes if they do not escape anything."""
    whole = ("darknet's result.json", "a list of images")
    try:
        frames = decoded_text(text, path, list[_Frame], record="image", whole=whole)
        if not any(_CONTROL.search(frame.filename or "") for frame in frames):
            return frames
    except FileFormatError:
        if b"\\" not in text:
            raise
    doubled = text.replace(b"\\", b"\\\\")
    frames = decoded_text(doubled, path, list[_Frame], record="image", whole=whole)
    note = f"{path}: backslashes in paths are not escaped, and are read as they are."
    warn_user(BoxscoreWarning(note, severity="note"))
    return frames
