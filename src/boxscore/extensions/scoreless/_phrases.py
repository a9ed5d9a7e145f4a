"""Read COCO JSON in which each image is a question: a picture and a phrase, which is a key of the image.

Conventions
-----------
- Each question is a separate image, with its phrase in the image column ``phrase``; a picture with two
  questions occurs twice. Classes are those of the file, usually one. So a vocabulary of 100,000 phrases costs
  a string per question, and nothing per class.
- Everything else is as in COCO. Results are COCO results too, or answers of a language model.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import msgspec
import numpy as np

from boxscore.data.lookup import as_numbers
from boxscore.data.tables import Detections, GroundTruth
from boxscore.data.vocabulary import as_ids
from boxscore.errors import FileFormatError
from boxscore.extensions.formats._gathered import decoded
from boxscore.formats import coco
from boxscore.formats._coco_records import whole
from boxscore.formats._format import Format, ReadOptions
from boxscore.formats._sniffer import Sniffer

PHRASE = "phrase"
"""The image column of phrases."""


class _File(msgspec.Struct):
    images: list[dict[str, Any]] = []


class PhraseFormat(Format):
    """COCO JSON with a phrase in every image.

    Attributes
    ----------
    keys : tuple of str
        Possible keys of the phrase.
    """

    has_class_numbers = True
    boxes: ClassVar[Literal["xywh", "xyxy"] | None] = "xywh"
    keys: ClassVar[tuple[str, ...]]

    def begins(self, sniffer: Sniffer) -> bool:
        """Return whether the first image of a JSON file has one of the keys; False for lists of results."""
        names = "|".join(self.keys)
        first = re.search(r'"images"\s{0,9}:\s{0,9}\[\s{0,99}(\{[^{}]{0,20000}\})', sniffer.text)
        return sniffer.is_json and first is not None and re.search(rf'"(?:{names})"', first[1]) is not None

    def load_ground_truth(self, path: Path, options: ReadOptions) -> GroundTruth:
        """Read the questions and their objects."""
        table = coco.FORMAT.load_ground_truth(path, options)
        records = decoded(path, _File, record="image", whole=("images", "a list")).images
        phrases = [self._phrase(record, path) for record in records]
        return with_image_columns(table, records, {PHRASE: phrases, **self.columns_of(records, path)}, path)

    def columns_of(self, records: Sequence[Mapping[str, Any]], path: Path) -> dict[str, list[Any]]:
        """Return further columns of the images."""
        return {}

    def load_detections(
        self, path: Path, options: ReadOptions, ground_truth: GroundTruth | None
    ) -> Detections:
        """Reject results, which have COCO's format."""
        cause = "results are a list of {image_id, category_id, bbox, score}, or answers of a language model"
        rule = f"not be ground truth in the form of {self.name}"
        raise FileFormatError("detections", rule, got=str(path), cause=cause)

    def _phrase(self, record: Mapping[str, Any], path: Path) -> str:
        phrase = next((record[key] for key in self.keys if record.get(key) is not None), None)
        if isinstance(phrase, str):
            return phrase
        rule, place = f"have a phrase ({' or '.join(self.keys)})", f"image {record.get('id')!r} of {path}"
        raise FileFormatError("an image", rule, got=repr(phrase)[:60], place=place)


def with_image_columns(
    table: GroundTruth, records: Sequence[Mapping[str, Any]], columns: Mapping[str, list[Any]], path: Path
) -> GroundTruth:
    """Return ground truth whose images have more columns, in the order of the file's records."""
    ids = as_ids([whole(record.get("id")) for record in records], name="image ids")
    rows = table.images.rows(as_numbers(ids)[0])
    arrays = {}
    for name, values in columns.items():
        array = np.empty(len(table.images), dtype=bool if {*map(type, values)} == {bool} else object)
        array[rows] = values
        arrays[name] = array
    images = dataclasses.replace(table.images, columns={**table.images.columns, **arrays})
    return table.replaced(images=images, source=str(path))
