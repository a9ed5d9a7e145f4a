"""Read and write Darknet predictions: YOLO text files of lines ``class confidence cx cy w h``.

Padilla's tools and data sets use the same lines.
"""

from __future__ import annotations

from pathlib import Path

from boxscore.formats._format import ReadOptions
from boxscore.formats._yolo_lines import Lines
from boxscore.formats.yolo import SECOND, YoloFormat


class DarknetFormat(YoloFormat):
    """Folders of YOLO text files with the confidence as the second number."""

    name = "darknet"
    line = SECOND

    def confidence_last(self, lines: Lines, options: ReadOptions, path: Path) -> bool:
        """Return False: the confidence is never the last number."""
        return False

    def written(self, box: list[float], score: float) -> list[float]:
        """Return the numbers of a line of predictions."""
        return [score, *box]


FORMAT = DarknetFormat()
