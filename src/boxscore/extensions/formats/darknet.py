"""Darknet's predictions: YOLO's text files with the confidence second, ``class confidence cx cy w h``.

Padilla's tools and datasets use the same lines.
"""

from __future__ import annotations

from pathlib import Path

from boxscore.formats._format import ReadOptions
from boxscore.formats._yolo_lines import Lines
from boxscore.formats.yolo import SECOND, YoloFormat


class DarknetFormat(YoloFormat):
    """Folders of YOLO's text files whose predictions have the confidence second."""

    name = "darknet"
    line = SECOND

    def confidence_last(self, lines: Lines, options: ReadOptions, path: Path) -> bool:
        """Whether the confidence is the last number of a line: never."""
        return False

    def written(self, box: list[float], score: float) -> list[float]:
        """Return the numbers of a line of predictions."""
        return [score, *box]


FORMAT = DarknetFormat()
