"""Read OmniLabel's ground truth and predictions: boxes with matching free-form descriptions.

Conventions
-----------
- A description is a class with its id and text, and the class columns ``type`` (``object_category`` or
  ``object_description``), ``words`` and ``description``: ``short`` up to 3 words, ``medium`` up to 8,
  ``long``, and ``none`` for a plain category and every other type.
- An object with several descriptions has one row per description.
- The images listed for a description have image-level labels for it: positive if an object has it, otherwise
  negative. Nothing is known about other pairs.
- A prediction has a score for each of its descriptions, and one row per description.

References
----------
https://github.com/samschulter/omnilabeltools, ``README.md``
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from boxscore.data.tables import GroundTruth
from boxscore.data.vocabulary import Id, as_ids
from boxscore.errors import FileFormatError
from boxscore.extensions.federated.image_labels import IMAGE_LABEL_KINDS, ImageLabels
from boxscore.extensions.formats._gathered import decoded
from boxscore.formats._format import ReadOptions
from boxscore.formats._rows import RowFormat, Rows, collected, ground_truth_of
from boxscore.formats._sniffer import Sniffer

TYPE, WORDS, LENGTH = "type", "words", "description"
"""Names of the class columns."""

SHORT, MEDIUM = 3, 8
"""Maximum words of short and of medium descriptions."""


class _Image(msgspec.Struct, gc=False):
    identifier: int | str = msgspec.field(name="id")
    file_name: str | None = None
    width: float | None = None
    height: float | None = None


class _Kind(msgspec.Struct, gc=False):
    type: str = ""


class _Description(msgspec.Struct, gc=False):
    identifier: int | str = msgspec.field(name="id")
    text: str
    image_ids: list[int | str] = []
    anno_info: _Kind = msgspec.field(default_factory=_Kind)


class _Annotation(msgspec.Struct, gc=False):
    image_id: int | str
    bbox: list[float]
    description_ids: list[int | str]
    iscrowd: int = 0


class _File(msgspec.Struct, gc=False):
    images: list[_Image]
    descriptions: list[_Description]
    annotations: list[_Annotation] = []


class _Prediction(msgspec.Struct, gc=False):
    image_id: int | str
    bbox: list[float]
    description_ids: list[int | str]
    scores: list[float] | None = None


class OmniLabelFormat(RowFormat):
    """OmniLabel's JSON."""

    name = "omnilabel"
    boxes = "xywh"
    takes = frozenset({"image_sizes"})

    def detect(self, sniffer: Sniffer) -> str | None:
        """Recognize the descriptions of ground truth, or those of a prediction."""
        if sniffer.has_keys("descriptions", "text") or sniffer.has_keys("description_ids", "image_id"):
            return "OmniLabel's JSON"
        return None

    def load_ground_truth(self, path: Path, options: ReadOptions) -> GroundTruth:
        """Read the descriptions with their images, and the objects."""
        content = _read(path)
        table = ground_truth_of(_rows_of_truth(content, path), options)
        known = [each.identifier for each in content.descriptions]
        at = table.categories.rows(as_ids(known, name="description ids"))
        words, types = np.zeros(len(table.categories)), np.full(len(table.categories), "", dtype=object)
        words[at] = [len(each.text.split()) for each in content.descriptions]
        types[at] = [each.anno_info.type for each in content.descriptions]
        lengths = np.array(["short", "medium", "long"], dtype=object)[
            np.searchsorted([SHORT, MEDIUM], words, side="left")
        ]
        lengths[types != "object_description"] = "none"
        columns = {**table.categories.columns, TYPE: types, WORDS: words.astype(np.int64), LENGTH: lengths}
        categories = dataclasses.replace(table.categories, columns=columns)
        return table.replaced(categories=categories, image_labels=_asked(content, table, at, path))

    def rows(self, path: Path, options: ReadOptions, *, of_results: bool) -> Rows:
        """Read the objects, or the predictions."""
        return _rows_of_predictions(path) if of_results else _rows_of_truth(_read(path), path)


FORMAT = OmniLabelFormat()


def _read(path: Path) -> _File:
    whole = ("ground truth", "an object with images, descriptions and annotations")
    return decoded(path, _File, record="annotation", whole=whole)


def _rows_of_truth(content: _File, path: Path) -> Rows:
    # Map ids of images and descriptions; a repeated id would hide one.
    position = {each.identifier: row for row, each in enumerate(content.images)}
    described = {each.identifier: row for row, each in enumerate(content.descriptions)}
    for name, rows, records in (
        ("images", position, content.images),
        ("descriptions", described, content.descriptions),
    ):
        if len(rows) < len(records):
            raise FileFormatError(name, "have an id of their own each", got="one twice", place=str(path))
    # An annotation is an object for each of its descriptions.
    found: list[tuple[int, int, int]] = []
    for row, annotation in enumerate(content.annotations):
        place = f"annotation {row} of {path}"
        _check_box(annotation.bbox, place)
        image = _known(annotation.image_id, position, "image_id", "images", place)
        for identifier in annotation.description_ids:
            at = _known(identifier, described, "description_ids", "descriptions", place)
            found.append((image, at, row))
    # Repeat its box for each of them.
    image_of, label, annotation_of = np.array(found, dtype=np.int64).reshape(-1, 3).T
    boxes = np.array([each.bbox for each in content.annotations], dtype=np.float64).reshape(-1, 4)
    crowd = np.array([each.iscrowd != 0 for each in content.annotations], dtype=bool)
    sizes = np.array([[each.width, each.height] for each in content.images], dtype=np.float64).reshape(-1, 2)
    return Rows(
        source=str(path),
        images=list(position),
        image=image_of,
        labels=list(described),
        label=label,
        label_names=[each.text for each in content.descriptions],
        boxes=boxes[annotation_of],
        box_format="xywh",
        place=lambda row: f"annotation {int(annotation_of[row])} of {path}",
        file_names=[each.file_name for each in content.images],
        sizes=sizes,
        given={"crowd": crowd[annotation_of]},
    )


def _rows_of_predictions(path: Path) -> Rows:
    # A prediction has a score for each of its descriptions, or none.
    whole = ("detections", "a list of predictions with description_ids")
    predictions = decoded(path, list[_Prediction], record="prediction", whole=whole)
    pairs: list[tuple[int, Id]] = []
    scores: list[float] = []
    scored = any(each.scores is not None for each in predictions)
    for row, each in enumerate(predictions):
        place = f"prediction {row} of {path}"
        _check_box(each.bbox, place)
        if scored and len(each.scores or ()) != len(each.description_ids):
            rule = f"be as many as description_ids ({len(each.description_ids)})"
            got = "none" if each.scores is None else len(each.scores)
            raise FileFormatError("scores", rule, got=got, place=place)
        pairs += [(row, identifier) for identifier in each.description_ids]
        scores += each.scores or ()
    # Repeat its box for each of them.
    row_of = np.array([row for row, _ in pairs], dtype=np.int64)
    images = collected([each.image_id for each in predictions])
    labels = collected([identifier for _, identifier in pairs])
    boxes = np.array([each.bbox for each in predictions], dtype=np.float64).reshape(-1, 4)
    return Rows(
        source=str(path),
        images=images.values,
        image=images.positions[row_of],
        labels=labels.values,
        label=labels.positions,
        boxes=boxes[row_of],
        box_format="xywh",
        scores=np.array(scores, dtype=np.float64) if scored else None,
        place=lambda row: f"prediction {int(row_of[row])} of {path}",
    )


def _check_box(box: list[float], place: str) -> None:
    if len(box) != 4:
        raise FileFormatError("bbox", "be four numbers", got=f"{len(box)}", place=place)


def _known(identifier: Id, rows: dict[Any, int], name: str, where: str, place: str) -> int:
    """Return the row of an id; raise an error if it is unknown."""
    if identifier not in rows:
        raise FileFormatError(name, f"be listed in {where}", got=repr(identifier)[:60], place=place)
    return rows[identifier]


def _asked(content: _File, table: GroundTruth, at: np.ndarray[Any, Any], path: Path) -> ImageLabels:
    """Return the image-level labels of each description: positive if an object has it, else negative."""
    asked = [identifier for each in content.descriptions for identifier in each.image_ids]
    image = table.images.rows(as_ids(asked, name="image_ids"))
    category = np.repeat(at, [len(each.image_ids) for each in content.descriptions])
    if (image < 0).any():
        got = repr(asked[int(np.argmin(image))])[:60]
        raise FileFormatError("image_ids of a description", "be listed in images", got=got, place=str(path))
    width = len(table.categories)
    there = np.unique(table.image.astype(np.int64) * width + table.category)
    has = np.isin(image.astype(np.int64) * width + category, there)
    kinds = np.where(has, IMAGE_LABEL_KINDS.index("positive"), IMAGE_LABEL_KINDS.index("negative"))
    return ImageLabels(image, category.astype(np.int32), kinds.astype(np.int8))
