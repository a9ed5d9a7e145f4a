"""Read ODVG files of Grounding DINO: JSON lines with ``detection.instances``.

Conventions
-----------
- ``bbox`` is two corners in pixels, the upper left one first; the reverse is an error, because the numbers
  may be a corner and a size.
- The class is ``category``, or the name of the number ``label`` in the class list of the user or in
  ``label_map.json`` next to the file.
- Lines with ``grounding`` (phrases of a caption) are refused, because phrases are not classes.

References
----------
https://github.com/longzw1997/Open-GroundingDino, ``data_format.md``
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from boxscore.errors import FileFormatError
from boxscore.extensions.formats._gathered import Gathered, Origin, decoded, lines_of
from boxscore.formats._format import ReadOptions
from boxscore.formats._rows import RowFormat, Rows
from boxscore.formats._sniffer import Sniffer

LABEL_MAP = "label_map.json"


class _Instance(msgspec.Struct, gc=False):
    bbox: tuple[float, float, float, float]
    label: int | None = None
    category: str | None = None


class _Detection(msgspec.Struct, gc=False):
    instances: list[_Instance]


class _Line(msgspec.Struct, gc=False):
    filename: str
    width: float | None = None
    height: float | None = None
    detection: _Detection | None = None
    grounding: Any = None


class OdvgFormat(RowFormat):
    """ODVG files of detection."""

    name = "odvg"
    boxes = "xyxy"
    takes = frozenset({"classes"})

    def detect(self, sniffer: Sniffer) -> str | None:
        """Detect the keys of the first line."""
        line = sniffer.first_line
        of_image = line.startswith("{") and '"filename"' in line
        known = of_image and (
            ('"detection"' in line and '"instances"' in line)
            or ('"grounding"' in line and '"regions"' in line)
        )
        return "an ODVG file" if known else None

    def rows(self, path: Path, options: ReadOptions, *, of_results: bool) -> Rows:
        """Read every line."""
        names = None if options.classes is None else dict(enumerate(options.classes))
        label_map = path.parent / LABEL_MAP
        if names is None and label_map.is_file():
            whole = (LABEL_MAP, "an object of names by number")
            names = decoded(label_map, dict[int, str], record="class", whole=whole)
        gathered = Gathered(path, options, any_corners=False)
        known: dict[int, str] = {}
        for number, line in lines_of(path, _Line, "an ODVG file"):
            if line.detection is None:
                got = "no detection" if line.grounding is None else "grounding"
                cause = "" if line.grounding is None else "phrases of a caption are not classes"
                place = str(Origin("line", number, path))
                raise FileFormatError("an image", "have detection", got=got, place=place, cause=cause)
            image = gathered.image(line.filename, line.width, line.height)
            for index, instance in enumerate(line.detection.instances):
                origin = Origin(f"line {number}, instance", index, path)
                label = _class(instance, names, known, origin)
                gathered.add_box(image, label, instance.bbox, "xyxy", origin)
        classes = [*(names or {}).values()] if names else [known[number] for number in sorted(known)]
        return gathered.rows(of_results=of_results, classes=list(dict.fromkeys(classes)) or None)


FORMAT = OdvgFormat()


def _class(instance: _Instance, names: dict[int, str] | None, known: dict[int, str], origin: Origin) -> str:
    """Return the class of an instance; its number and its name must go together in the whole file."""
    number, name = instance.label, instance.category
    if number is None or (name is None and names is None):
        if name is None:
            cause = f"give the class list: --gt-classes FILE, or put {LABEL_MAP} next to the file"
            raise FileFormatError(
                "an instance", "have a category", got="none", place=str(origin), cause=cause
            )
        return name
    name = (names or {}).get(number) if name is None else name
    if name is None:
        rule = "be in the class list"
        raise FileFormatError("a label", rule, got=number, place=str(origin))
    if known.setdefault(number, name) != name:
        got = f"{number}: {name!r}, and {known[number]!r} before"
        raise FileFormatError("a label", "have one category in the whole file", got=got, place=str(origin))
    return name
