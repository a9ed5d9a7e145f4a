"""Read SA-Co's ground truth (SAM 3): COCO JSON of pictures and noun phrases, a file per annotator.

Conventions
-----------
- An image has ``text_input``, which becomes the image column ``phrase``, and ``is_instance_exhaustive``,
  which becomes ``exhaustive``. Without the latter, SAM 3's evaluation stops with a KeyError; here the error
  names the image.
- The files in a folder belong to several annotators, sorted by name. All have the same images and phrases.
  Their objects are in one table, with the annotator's file in the column ``annotator``. The image column
  ``annotators`` lists all names, and an image is exhaustive if it is so for all of them.
- Group masks have ``iscrowd``. Results are COCO results.

References
----------
https://github.com/facebookresearch/sam3, ``sam3/eval/cgf1_eval.py``
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from boxscore.data.alignment import concatenate
from boxscore.data.tables import GroundTruth
from boxscore.errors import FileFormatError
from boxscore.extensions.scoreless._phrases import PHRASE, PhraseFormat
from boxscore.formats._format import ReadOptions
from boxscore.formats._sniffer import Sniffer
from boxscore.protocols.tables.labels import ANNOTATOR, ANNOTATORS, BETWEEN, EXHAUSTIVE

_KEY = "is_instance_exhaustive"
MOST_ANNOTATORS = 100


class SacoFormat(PhraseFormat):
    """COCO JSON of SA-Co, from one annotator or, in a folder, from several."""

    name = "saco"
    keys = ("text_input",)
    folder_endings = (".json",)

    def detect(self, sniffer: Sniffer) -> str | None:
        """Recognize the phrase of the first image, in a file or in a file of a folder."""
        if sniffer.is_folder:
            return "a folder of SA-Co's JSON" if self._files(sniffer) else None
        return "SA-Co's JSON" if self.begins(sniffer) else None

    def load_ground_truth(self, path: Path, options: ReadOptions) -> GroundTruth:
        """Read the questions and the objects of every annotator."""
        if not path.is_dir():
            return super().load_ground_truth(path, options)
        files = self._files(Sniffer(path))
        tables = [super(SacoFormat, self).load_ground_truth(file, options) for file in files]
        if len(tables) == 1:
            return tables[0]
        for file, table in zip(files[1:], tables[1:], strict=True):
            _check_same(tables[0], table, file)
        return _join_annotators(tables, [file.stem for file in files], path)

    def columns_of(self, records: Sequence[Mapping[str, Any]], path: Path) -> dict[str, list[Any]]:
        """Return whether each question is annotated exhaustively."""
        for record in records:
            # 0 and 1 equal False and True.
            if record.get(_KEY) not in (True, False):
                place = f"image {record.get('id')!r} of {path}"
                raise FileFormatError(_KEY, "be true or false", got=repr(record.get(_KEY))[:60], place=place)
        return {EXHAUSTIVE: [bool(record[_KEY]) for record in records]}

    def _files(self, sniffer: Sniffer) -> list[Path]:
        """List the files of annotators in a folder."""
        files = [sniffer.path / name for name in sniffer.names if name.lower().endswith(".json")]
        return [file for file in files[:MOST_ANNOTATORS] if file.is_file() and self.begins(Sniffer(file))]


FORMAT = SacoFormat()


def _check_same(first: GroundTruth, other: GroundTruth, path: Path) -> None:
    """Reject an annotator with other questions."""
    ours, theirs = first.images, other.images
    if not ours.same_as(theirs):
        odd = {*ours.ids.tolist()} ^ {*theirs.ids.tolist()}
        got = f"{len(odd):,} images of only one of them, such as {min(odd, key=str)!r}"
    else:
        differ = np.flatnonzero(ours.columns[PHRASE] != theirs.columns[PHRASE])
        if not len(differ):
            return
        row = int(differ[0])
        phrases = " and ".join(repr(images.columns[PHRASE][row]) for images in (theirs, ours))
        got = f"{phrases} in image {ours.ids.tolist()[row]!r}"
    rule = "have the images and phrases of the other annotators"
    raise FileFormatError("an annotator's file", rule, got=got, place=str(path))


def _join_annotators(tables: Sequence[GroundTruth], names: Sequence[str], path: Path) -> GroundTruth:
    """Join the objects of several annotators in one table, with a column of annotators."""
    first = tables[0]
    exhaustive = np.logical_and.reduce([table.images.columns[EXHAUSTIVE] for table in tables])
    every = np.full(len(first.images), BETWEEN.join(names), dtype=object)
    columns = {**first.images.columns, EXHAUSTIVE: exhaustive, ANNOTATORS: every}
    images = dataclasses.replace(first.images, columns=columns)
    marked = []
    for table, name in zip(tables, names, strict=True):
        column = np.full(len(table), name, dtype=object)
        marked.append(table.replaced(images=images, columns={**table.columns, ANNOTATOR: column}))
    whole, _ = concatenate(marked)
    return whole.replaced(ids=np.arange(1, len(whole) + 1), source=str(path))
