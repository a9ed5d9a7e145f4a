"""Read KITTI folders: a text file per image, an object per line.

Conventions
-----------
- Lines are ``type truncated occluded alpha x1 y1 x2 y2 h w l x y z rotation_y``, with a score at the end for
  detections. Corners are pixels from 0; the seven 3D numbers are ignored.
- Objects of type ``DontCare`` are unlabeled regions: they have the ``ignore`` flag.
- If all types are KITTI's, types without objects are classes too, because low detections of any type matter.
- ``alpha`` is a column of both sides, ``truncated`` and ``occluded`` of the ground truth.
- Either all detections have a score or none has; the devkit drops those without a score silently.

References
----------
https://www.cvlibs.net/datasets/kitti/eval_object.php, ``readme.txt`` of its devkit
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from boxscore._utils.memory import paused_collector
from boxscore.data.scores import all_or_none
from boxscore.errors import FileFormatError
from boxscore.formats._format import ReadOptions
from boxscore.formats._label_files import TextLines, numbers_of, text_files
from boxscore.formats._rows import RowFormat, Rows, collected
from boxscore.formats._sniffer import Sniffer

TYPES = ("Car", "Van", "Truck", "Pedestrian", "Person_sitting", "Cyclist", "Tram", "Misc")
REGION = "DontCare"

NUMBERS = 14
"""Number of values after the type of an object; detections have one more."""


class KittiFormat(RowFormat):
    """KITTI folders of labels or results."""

    name = "kitti"
    folder_endings = (".txt",)
    boxes = "xyxy"
    takes = frozenset({"image_sizes"})

    def detect(self, sniffer: Sniffer) -> str | None:
        """Recognize a word and 14 or 15 numbers in the first files."""
        line = next((text.first_line for text in sniffer.texts if text.first_line), "")
        word, *fields = line.split() or [""]
        numbers = numbers_of(fields)
        is_one = not numbers_of([word]) and numbers is not None and len(numbers) in (NUMBERS, NUMBERS + 1)
        return "KITTI's text files" if is_one else None

    @paused_collector()
    def rows(self, path: Path, options: ReadOptions, *, of_results: bool) -> Rows:
        """Read every file."""
        # Read one file per image, line by line.
        names = text_files(path, "KITTI's text files", self.detect)
        types: list[str] = []
        numbers: list[list[float]] = []
        lines = TextLines([path / name for name in names], "a KITTI text file")
        for line in lines:
            fields = line.split()
            types.append(fields[0])
            numbers.append(_checked(fields, lines, of_results=of_results))
        # Convert all numbers to one array, and slice its columns.
        table = np.array(numbers, dtype=np.float64).reshape(-1, NUMBERS + of_results)
        scores = all_or_none(table[:, NUMBERS], lines.place) if of_results else None
        distinct = collected(types)
        labels = list(distinct.values)
        # Flag regions as ignored; keep the benchmark's types as classes even if unused.
        given: dict[str, Any] = {}
        columns = {"alpha": table[:, 2]}
        if not of_results:
            given["ignore"] = np.array([name == REGION for name in types], dtype=bool)
            if {*labels} <= {*TYPES, REGION}:
                labels += [name for name in TYPES if name not in labels]
            columns = {"truncated": table[:, 0], "occluded": table[:, 1], "alpha": table[:, 2]}
        return Rows(
            source=str(path),
            images=[name[: -len(".txt")] for name in names],
            image=lines.image,
            labels=labels,
            label=distinct.positions,
            boxes=table[:, 3:7],
            box_format="xyxy",
            place=lines.place,
            scores=scores,
            given=given,
            columns=columns,
        )


def _checked(fields: list[str], lines: TextLines, *, of_results: bool) -> list[float]:
    """Return the numbers of a line, with the score of a detection."""
    numbers = numbers_of(fields[1:])
    wanted = NUMBERS + of_results
    if numbers is not None and len(numbers) == wanted:
        return numbers
    if numbers is not None and of_results and len(numbers) == NUMBERS:
        return [*numbers, math.nan]
    cause = ""
    if numbers is not None and len(numbers) == NUMBERS + 1:
        cause = "16 values are a detection and its score"
    rule = f"be an object's type and {wanted} numbers{', the score last' * of_results}"
    got = repr(" ".join(fields))[:80]
    raise FileFormatError("a line", rule, got=got, place=lines.place(), cause=cause)


FORMAT = KittiFormat()
