"""Read VisDrone folders: a text file per image, eight numbers per line.

Conventions
-----------
- Lines are ``x, y, w, h, score, class, truncation, occlusion``. In ground truth, a score of 0 sets the
  ``ignore`` flag; truncation and occlusion become columns.
- Class 0 marks regions without annotations, 1 to 10 are the evaluated classes, 11 is others.

References
----------
https://github.com/VisDrone/VisDrone2018-DET-toolkit
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from boxscore._utils.memory import paused_collector
from boxscore.errors import FileFormatError
from boxscore.formats._format import ReadOptions
from boxscore.formats._label_files import TextLines, numbers_of, text_files
from boxscore.formats._rows import RowFormat, Rows
from boxscore.formats._sniffer import Sniffer

CLASSES = (
    "ignored regions",
    "pedestrian",
    "people",
    "bicycle",
    "car",
    "van",
    "truck",
    "tricycle",
    "awning-tricycle",
    "bus",
    "motor",
    "others",
)


class VisDroneFormat(RowFormat):
    """VisDrone folders of annotations or results."""

    name = "visdrone"
    folder_endings = (".txt",)
    boxes = "xywh"
    takes = frozenset({"image_sizes"})

    def detect(self, sniffer: Sniffer) -> str | None:
        """Recognize lines of eight comma-separated numbers in the first files."""
        line = next((text.first_line for text in sniffer.texts if text.first_line), None)
        return None if line is None or len(_numbers(line) or []) != 8 else "VisDrone's text files"

    @paused_collector()
    def rows(self, path: Path, options: ReadOptions, *, of_results: bool) -> Rows:
        """Read every file."""
        # Read one file per image, with eight numbers per line.
        names = text_files(path, "VisDrone's text files", self.detect)
        numbers: list[list[float]] = []
        lines = TextLines([path / name for name in names], "a VisDrone text file")
        for line in lines:
            values = _numbers(line)
            if values is None or len(values) != 8:
                rule = "be x,y,w,h,score,class,truncation,occlusion"
                raise FileFormatError("a line", rule, got=repr(line)[:80], place=lines.place())
            if values[5] not in range(len(CLASSES)):
                rule = f"be a whole number from 0 to {len(CLASSES) - 1}"
                raise FileFormatError("a class", rule, got=f"{values[5]:g}", place=lines.place())
            numbers.append(values)
        # In ground truth, a score of 0 means ignored.
        table = np.array(numbers, dtype=np.float64).reshape(-1, 8)
        given: dict[str, Any] = {} if of_results else {"ignore": table[:, 4] == 0}
        columns = {} if of_results else {"truncation": table[:, 6], "occlusion": table[:, 7]}
        return Rows(
            source=str(path),
            images=[name[: -len(".txt")] for name in names],
            image=lines.image,
            labels=list(range(len(CLASSES))),
            label=table[:, 5].astype(np.int64),
            label_names=CLASSES,
            boxes=table[:, :4],
            box_format="xywh",
            place=lines.place,
            scores=table[:, 4] if of_results else None,
            given=given,
            columns=columns,
        )


def _numbers(line: str) -> list[float] | None:
    return numbers_of(line.strip().rstrip(",").split(","))


FORMAT = VisDroneFormat()
