"""Read lists of images with boxes: of keras-yolo3, yolov4-pytorch, and Roboflow's YOLO Keras TXT.

Conventions
-----------
- A line is an image: ``path x1,y1,x2,y2,class ...``; a path alone is an image without objects.
- Corners are pixels, classes numbers from 0 into a class list: that of the user, or the only one next to the
  file (``classes.txt``, ``_classes.txt``, ``voc_classes.txt``).

References
----------
https://github.com/qqwweee/keras-yolo3
"""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

from boxscore._utils.files import read_text
from boxscore.errors import FileFormatError
from boxscore.extensions.formats._gathered import LARGEST, Gathered, Origin
from boxscore.formats._format import ReadOptions
from boxscore.formats._rows import RowFormat, Rows
from boxscore.formats._sniffer import HEAD, Sniffer, listed
from boxscore.formats.class_lists import ClassList, class_list

_NUMBER = r"[-+]?[0-9]+\.?[0-9]*(?:[eE][-+]?[0-9]+)?"
_BOX = re.compile(rf"{_NUMBER}(?:,{_NUMBER}){{3}},[0-9]{{1,9}}")
_IMAGE = re.compile(r".+\.(?:jpe?g|png|bmp|webp|tiff?)", re.IGNORECASE)
_LIST = re.compile(r".*class(?:es|_names|_list)?\.(?:txt|names)", re.IGNORECASE)
_OPENED = 100
"""Number of lines that must look like images."""


class KerasFormat(RowFormat):
    """keras-yolo3's lists of images with boxes."""

    name = "keras"
    boxes = "xyxy"
    takes = frozenset({"classes", "image_sizes"})

    def detect(self, sniffer: Sniffer) -> str | None:
        """Detect lines of an image and its boxes; the first images may have none."""
        if sniffer.is_folder or sniffer.suffix not in (".txt", ""):
            return None
        lines = sniffer.text.splitlines()
        lines = lines[:-1] if len(sniffer.head) >= HEAD - 3 else lines  # the last may be cut
        parts = [_parts(line) for line in lines[:_OPENED] if line.strip()]
        known = any(boxes for _, boxes in parts) and all(_IMAGE.fullmatch(path) for path, _ in parts)
        return "a list of images with boxes (YOLO Keras)" if known else None

    def rows(self, path: Path, options: ReadOptions, *, of_results: bool) -> Rows:
        """Read every line."""
        gathered = Gathered(path, options)
        for number, line in enumerate(read_text(path, largest=LARGEST).splitlines(), start=1):
            if not line.strip():
                continue
            origin = Origin("line", number, path)
            name, boxes = _parts(line)
            if not _IMAGE.fullmatch(name):
                rule = "be the path of an image, and boxes x1,y1,x2,y2,class"
                raise FileFormatError("a line", rule, got=repr(line[:60]), place=str(origin))
            image = gathered.image(name)
            for box in boxes:
                *corners, label = box.split(",")
                x1, y1, x2, y2 = map(float, corners)
                gathered.add_box(image, int(label), (x1, y1, x2, y2), "xyxy", origin)
        rows = gathered.rows(of_results=of_results)
        return dataclasses.replace(rows, classes=_classes_next_to(path), numbers="positions")


FORMAT = KerasFormat()


def _parts(line: str) -> tuple[str, list[str]]:
    """Return the path, which may contain spaces, and the boxes of a line."""
    words = line.split()
    count = 0
    while count < len(words) - 1 and _BOX.fullmatch(words[-1 - count]):
        count += 1
    path = line.rsplit(maxsplit=count)[0] if words else ""
    return path.strip(), words[len(words) - count :]


def _classes_next_to(path: Path) -> ClassList | None:
    """Return the only class list next to a file; None without one, or with several."""
    with listed(path.parent) as entries:
        found = sorted(entry.name for entry in entries if _LIST.fullmatch(entry.name) and entry.is_file())
    return class_list(path.parent / found[0]) if len(found) == 1 else None
