"""Read xView's GeoJSON ground truth, and its results with one text file per image.

Conventions
-----------
- The properties of a feature include ``bounds_imcoords`` ("x1,y1,x2,y2" in whole pixels), ``type_id`` and
  ``image_id``, which names the image: ``1.tif``.
- Results are files ``1.tif.txt`` with lines ``x1 y1 x2 y2 class score``.
- Classes are the numbers of ``type_id``; ``--gt-classes`` does not apply.
- A negative width or height is an error here, while xView's scoring code computes with it.

References
----------
https://github.com/DIUx-xView/xView1_baseline, ``scoring/score.py``
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from boxscore._utils.memory import paused_collector
from boxscore.errors import FileFormatError
from boxscore.extensions.formats._gathered import decoded
from boxscore.formats._format import ReadOptions
from boxscore.formats._label_files import TextLines, numbers_of, text_files
from boxscore.formats._rows import RowFormat, Rows, check_sides, collected
from boxscore.formats._sniffer import Sniffer

ENDING = ".tif.txt"


class _Properties(msgspec.Struct, gc=False):
    bounds_imcoords: str
    image_id: str
    type_id: int


class _Feature(msgspec.Struct, gc=False):
    properties: _Properties


class _File(msgspec.Struct, gc=False):
    features: list[_Feature]


class XViewFormat(RowFormat):
    """xView's GeoJSON, or its folder of results."""

    name = "xview"
    folder_endings = (".txt",)
    boxes = "xyxy"
    takes = frozenset({"image_sizes"})

    def detect(self, sniffer: Sniffer) -> str | None:
        """Detect object corners in GeoJSON, or result files by name and first line."""
        if not sniffer.is_folder:
            return "xView's GeoJSON" if sniffer.has_keys("bounds_imcoords") else None
        first = next((text for text in sniffer.texts if text.first_line), None)
        is_one = (
            first is not None
            and first.path.name.lower().endswith(ENDING)
            and len(numbers_of(first.first_line.split()) or ()) == 6
        )
        return "xView's text files" if is_one else None

    @paused_collector()
    def rows(self, path: Path, options: ReadOptions, *, of_results: bool) -> Rows:
        """Read the features, or every text file."""
        return self._results(path) if of_results else _truth(path)

    def _results(self, path: Path) -> Rows:
        names = text_files(path, "xView's text files", self.detect)
        lines = TextLines([path / name for name in names], "a text file of xView")
        numbers: list[list[float]] = []
        for line in lines:
            values = numbers_of(line.split())
            if values is None or len(values) != 6 or values[4] % 1 != 0:
                rule = "be x1 y1 x2 y2, a whole number for the class, and a score"
                raise FileFormatError("a line", rule, got=repr(line)[:80], place=lines.place())
            numbers.append(values)
        table = np.array(numbers, dtype=np.float64).reshape(-1, 6)
        given = _rows(path, table, table[:, 4].astype(np.int64).tolist(), lines.place)
        images = [name[: -len(".txt")] for name in names]
        return Rows(images=images, image=lines.image, scores=table[:, 5], **given)


def _truth(path: Path) -> Rows:
    # Read the box in pixels from the properties, not the geometry in degrees.
    if path.is_dir():
        raise FileFormatError("xView's ground truth", "be one GeoJSON file", got=f"a folder, {path}")
    content = decoded(path, _File, record="feature", whole=("xView's GeoJSON", "an object with features"))
    items = [feature.properties for feature in content.features]

    def place(row: int) -> str:
        return f"feature {row} of {path}"

    # The corners are a text of integers.
    corners = []
    for row, item in enumerate(items):
        values = numbers_of(item.bounds_imcoords.split(","))
        if values is None or len(values) != 4 or any(value % 1 != 0 for value in values):
            rule = "be four whole numbers, x1,y1,x2,y2"
            raise FileFormatError(
                "bounds_imcoords", rule, got=repr(item.bounds_imcoords)[:80], place=place(row)
            )
        corners.append(values)
    # List the images of features, in file order.
    images = collected([item.image_id for item in items])
    table = np.array(corners, dtype=np.float64).reshape(-1, 4)
    given = _rows(path, table, [item.type_id for item in items], place)
    return Rows(images=images.values, image=images.positions, **given)


def _rows(path: Path, table: Any, classes: list[int], place: Any) -> dict[str, Any]:
    """Return the rows; classes are sorted by number, and their numbers are ids."""
    check_sides(table[:, 2:4] - table[:, :2], place)
    distinct, label = np.unique(np.array(classes, dtype=np.int64), return_inverse=True)
    return {
        "source": str(path),
        "labels": distinct.tolist(),
        "label": label,
        "boxes": table[:, :4],
        "box_format": "xyxy",
        "place": place,
    }


FORMAT = XViewFormat()
