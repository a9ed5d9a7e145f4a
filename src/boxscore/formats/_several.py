"""Several files of one format, read as one data set.

Conventions
-----------
- Each image of the ground truth is in one file; detections of an image may be in several, and equal scores
  then go in the order of the files.
- Classes are joined by id.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from boxscore.data.alignment import concatenate
from boxscore.data.tables import Detections, GroundTruth
from boxscore.data.vocabulary import Id
from boxscore.errors import FileFormatError, InputError
from boxscore.formats._format import Format, ReadOptions
from boxscore.formats._sniffer import Sniffer


class SeveralFiles(Format):
    """The format of several files; all have the same.

    Parameters
    ----------
    inner : Format
        Of each file.
    files : sequence of Path
    """

    name = "several"

    def __init__(self, inner: Sequence[Format], files: Sequence[Path]) -> None:
        self._inner, self._files = inner, files
        first = inner[0]
        self.name = first.name  # type: ignore[misc]
        self.boxes = first.boxes  # type: ignore[misc]
        self.has_class_numbers = first.has_class_numbers  # type: ignore[misc]
        self.has_boxes = first.has_boxes  # type: ignore[misc]
        self.takes = first.takes  # type: ignore[misc]
        self.takes_of_detections = first.takes_of_detections  # type: ignore[misc]

    def detect(self, sniffer: Sniffer) -> str | None:
        """Recognise nothing: each file was recognised."""
        return None

    def load_ground_truth(self, path: Path, options: ReadOptions) -> GroundTruth:
        """Read every file, and put their images together."""
        tables = [
            inner.load_ground_truth(file, options)
            for inner, file in zip(self._inner, self._files, strict=True)
        ]
        known: dict[Id, str] = {}
        for table in tables:
            for image in table.images.ids.tolist():
                if image in known:
                    rule, got = "be in one file of the ground truth", f"{image!r} in {known[image]}"
                    cause = (
                        "its objects would count twice. Of several annotators: boxscore agreement compares "
                        "them, and a folder of SA-Co's files is read as theirs"
                    )
                    raise InputError("an image", rule, got=got, place=table.source, cause=cause)
                known[image] = table.source
        whole = concatenate(tables)[0].replaced(source=str(path))
        if len(np.unique(whole.ids)) < len(whole):  # each file counts its annotations from 1
            whole = whole.replaced(ids=np.arange(1, len(whole) + 1))
        return whole

    def load_detections(
        self, path: Path, options: ReadOptions, ground_truth: GroundTruth | None
    ) -> Detections:
        """Read every file."""
        tables = [
            inner.load_detections(file, options, ground_truth)
            for inner, file in zip(self._inner, self._files, strict=True)
        ]
        left_out = sum((Counter(table.left_out) for table in tables), Counter[str]())
        if len({table.scored for table in tables}) > 1:
            without = next(table.source for table in tables if not table.scored)
            rule = "have scores in every file, or in none"
            raise FileFormatError("detections", rule, got="none", place=without)
        return concatenate(tables)[0].replaced(source=str(path), left_out=dict(left_out))

    def lists_images(self, ground_truth: GroundTruth) -> bool:
        """Whether the format of each file does."""
        return self._inner[0].lists_images(ground_truth)

    def results_files(self, path: Path) -> list[Path]:
        """Return the files."""
        return list(self._files)

    def read_elsewhere(self, path: Path) -> list[Path]:
        """Return the files, and what they name."""
        named = [inner.read_elsewhere(file) for inner, file in zip(self._inner, self._files, strict=True)]
        return [*self._files, *(path for paths in named for path in paths)]
