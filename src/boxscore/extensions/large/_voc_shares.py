"""Read one shard of the images of VOC folders.

Conventions
-----------
- All annotation files are read, because class numbers depend on all names; only objects of the shard are
  kept.
- Result files are read in batches of lines; only lines of the shard are kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from boxscore._utils.array_types import IntArray
from boxscore._utils.files import read_text
from boxscore._utils.memory import paused_collector
from boxscore.data.boxes import CORNERS
from boxscore.data.tables import Detections, GroundTruth
from boxscore.data.vocabulary import Images
from boxscore.extensions.large.shares import ROW, ImageShard, refuse_name_of_another
from boxscore.formats._format import ReadOptions
from boxscore.formats._results_by_class import ResultLines, lines_of
from boxscore.formats._voc_xml import annotations_in, joined_annotations
from boxscore.formats.voc import RESULTS_COLUMNS, ResultsReading, annotations_of, refusal_of_line

PIECE = 1 << 22
"""Characters read at a time."""


@paused_collector()
def ground_truth_of_share(path: Path, options: ReadOptions, share: ImageShard) -> GroundTruth:
    """Read the annotations of a shard."""
    folder, names = annotations_of(path, options)
    # Look files up by their names without ending, not by the name inside them.
    images = Images.build(names)
    every, of_shard = {*names}, {*images.ids[share.choose(images)].tolist()}
    known, kept = set[str](), []
    for name, annotation in zip(names, annotations_in(path, folder, names), strict=True):
        known.update(annotation.classes)
        if annotation.file_name is not None:
            refuse_name_of_another(annotation.file_name, name, every)
        if name in of_shard:
            kept.append(annotation)
    names = [name for name in names if name in of_shard]
    return joined_annotations(path, folder, names, kept, known, options.written or CORNERS)


def detections_of_share(
    path: Path, options: ReadOptions, ground_truth: GroundTruth, share: ImageShard
) -> Detections:
    """Read the results of a shard."""
    return _ResultsOfShard(path, options, share).detections(ground_truth)


class _ResultsOfShard(ResultsReading):
    """The result lines of a shard."""

    def __init__(self, path: Path, options: ReadOptions, share: ImageShard) -> None:
        super().__init__(path, options)
        self._share = share
        self._numbers: dict[Path, IntArray] = {}
        self._all_lines: dict[Path, int] = {}

    @paused_collector()
    def lines(self, file: Path) -> ResultLines:
        """Read a file in batches, and keep the lines of the shard."""
        images: list[str] = []
        parts, numbers, count = [np.empty((0, RESULTS_COLUMNS - 1))], [np.empty(0, np.int64)], 0
        for piece in _pieces(read_text(file)):
            lines = lines_of(file, piece, count, RESULTS_COLUMNS, refusal_of_line)
            kept = np.flatnonzero(self._share.keeps(lines.images))
            images += [lines.images[row] for row in kept.tolist()]
            parts.append(lines.numbers[kept])
            numbers.append(kept + count)
            count += len(lines.images)
        self._numbers[file], self._all_lines[file] = np.concatenate(numbers), count
        return ResultLines(images, np.concatenate(parts))

    def number(self, file: int, line: int) -> int:
        """Return the number of a kept line among all lines of file ``file`` of ``files``."""
        return int(self._numbers[self.files[file]][line])

    def detections(self, ground_truth: GroundTruth | None) -> Detections:
        """Return the table with a column that numbers the rows among the lines of all files."""
        table = super().detections(ground_truth)
        rows, before = [np.empty(0, np.int64)], 0
        for file in self.files:
            rows.append(self._numbers[file] + before)
            before += self._all_lines[file]
        return table.replaced(columns={ROW: np.concatenate(rows)})


def _pieces(text: str) -> Iterator[str]:
    """Split a text at line ends."""
    start = 0
    while start < len(text):
        end = text.find("\n", start + PIECE) + 1 or len(text)
        yield text[start:end]
        start = end
