"""Read files of Google's Vertex AI and AutoML Vision: imports of data sets, and batch predictions.

Conventions
-----------
- An import is JSON lines with ``imageGcsUri``, or CSV without a header: set, address, label, and eight cells
  for four corners or two opposite ones. Predictions are JSON lines with ``instance`` and ``prediction``.
- Coordinates are fractions of the image size. ``bboxes`` of predictions are ``x1, x2, y1, y2``; zeros may be
  missing in ``boundingBoxAnnotations``.
- The set is ``ml_use`` or the first cell, where ``training`` is ``train``; of several, ``test`` is read.

References
----------
https://cloud.google.com/vertex-ai/docs/image-data/object-detection/prepare-data,
https://cloud.google.com/vision/automl/object-detection/docs/csv-format
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from boxscore._utils.files import read_text
from boxscore.errors import FileFormatError
from boxscore.extensions.formats._gathered import (
    LARGEST,
    Corners,
    Gathered,
    Origin,
    box_around,
    chosen_split,
    in_fractions,
    lines_of,
)
from boxscore.formats._format import ReadOptions
from boxscore.formats._rows import RowFormat, Rows
from boxscore.formats._sniffer import Sniffer

_SETS = ("TRAIN", "TRAINING", "VALIDATION", "TEST", "UNASSIGNED", "UNLABELLED", "")
_SAME_SETS = {"": "unassigned", "training": "train"}
"""Sets that have two names."""
_CELLS = 11
"""Number of cells of a line: set, address, label and four corners."""
_ML_USE = "aiplatform.googleapis.com/ml_use"
_NONE: Corners = (0, 0, 0, 0)


class _Annotation(msgspec.Struct, gc=False):
    display_name: str = msgspec.field(name="displayName")
    x_min: float = msgspec.field(default=0.0, name="xMin")
    y_min: float = msgspec.field(default=0.0, name="yMin")
    x_max: float = msgspec.field(default=0.0, name="xMax")
    y_max: float = msgspec.field(default=0.0, name="yMax")


class _Instance(msgspec.Struct, gc=False):
    content: str


class _Prediction(msgspec.Struct, gc=False):
    names: list[str] = msgspec.field(name="displayNames")
    confidences: list[float]
    bboxes: list[tuple[float, float, float, float]]


class _Line(msgspec.Struct, gc=False):
    address: str | None = msgspec.field(default=None, name="imageGcsUri")
    annotations: list[_Annotation] = msgspec.field(default=[], name="boundingBoxAnnotations")
    image_label: Any = msgspec.field(default=None, name="classificationAnnotation")
    labels: dict[str, str] = msgspec.field(default={}, name="dataItemResourceLabels")
    instance: _Instance | None = None
    prediction: _Prediction | None = None


class _Object(NamedTuple):
    """An object, or with an empty label an image without objects."""

    subset: str
    address: str
    label: str
    box: Corners
    score: float | None
    origin: Origin


class VertexFormat(RowFormat):
    """Files of Vertex AI and AutoML."""

    name = "vertex"
    boxes = "xyxy"
    takes = frozenset({"image_set", "image_sizes"})

    def detect(self, sniffer: Sniffer) -> str | None:
        """Detect the address of an image in the first line."""
        line = sniffer.first_line
        if line.startswith("{"):
            if '"imageGcsUri"' in line:
                return "an import file of Vertex AI"
            known = '"instance"' in line and '"prediction"' in line and '"displayNames"' in line
            return "predictions of Vertex AI" if known else None
        return "an import file of AutoML" if _cells(line) is not None else None

    def rows(self, path: Path, options: ReadOptions, *, of_results: bool) -> Rows:
        """Read every line."""
        objects = list(_of_json(path, options) if Sniffer(path).is_json else _of_csv(path))
        sets = {each.address: each.subset for each in objects}
        moved = next((each for each in objects if sets[each.address] != each.subset), None)
        if moved is not None:
            got = f"{moved.address!r} in {moved.subset} and {sets[moved.address]}"
            raise FileFormatError("an image", "be in one set", got=got, place=str(moved.origin))
        wanted = None if options.image_set is None else _set_of(str(options.image_set))
        chosen = chosen_split(wanted, [*sets.values()], path, usual=("test",))
        gathered = Gathered(path, options)
        # Lines of CSV are objects, so an image may have several.
        for each in objects:
            if chosen not in (None, each.subset):
                continue
            image = gathered.known_image(each.address)
            if each.label:
                gathered.add_box(image, each.label, each.box, "xyxy", each.origin, score=each.score)
        return in_fractions(gathered.rows(of_results=of_results))


FORMAT = VertexFormat()


def _set_of(name: str) -> str:
    """Return the name of a set by which its images are chosen."""
    return _SAME_SETS.get(name.lower(), name.lower())


def _of_json(path: Path, options: ReadOptions) -> Iterator[_Object]:
    is_given = options.box_format is not None
    seen: dict[str, int] = {}
    for number, line in lines_of(path, _Line, "a file of Vertex AI"):
        origin = Origin("line", number, path)
        address = line.address or (line.instance.content if line.instance else "")
        if not address or (line.instance and not line.prediction):
            rule = "have imageGcsUri, or instance and prediction"
            raise FileFormatError("a line", rule, got="others", place=str(origin))
        if seen.setdefault(address, number) != number:
            got = f"{address!r} in line {seen[address]}"
            raise FileFormatError("an image", "be in one line", got=got, place=str(origin))
        subset = _set_of(line.labels.get(_ML_USE, ""))
        yield _Object(subset, address, "", _NONE, None, origin)
        if line.image_label is not None:
            rule, got = "have boundingBoxAnnotations", "the class of a whole image"
            raise FileFormatError("an image", rule, got=got, place=str(origin))
        for item in line.annotations:
            box = item.x_min, item.y_min, item.x_max, item.y_max
            box = box if is_given else _ordered(box, origin)
            yield _Object(subset, address, item.display_name, box, None, origin)
        if line.prediction is None:
            continue
        names, scores, boxes = line.prediction.names, line.prediction.confidences, line.prediction.bboxes
        if not len(names) == len(scores) == len(boxes):
            got = f"{len(names)}, {len(scores)} and {len(boxes)}"
            rule = "have as many displayNames, confidences and bboxes"
            raise FileFormatError("a prediction", rule, got=got, place=str(origin))
        for label, score, box in zip(names, scores, boxes, strict=True):
            x1, x2, y1, y2 = box
            box = box if is_given else _ordered((x1, y1, x2, y2), origin)
            yield _Object(subset, address, label, box, score, origin)


def _ordered(box: Corners, origin: Origin) -> Corners:
    x1, y1, x2, y2 = box
    if x1 > x2 or y1 > y2:
        rule, got = "have xMin <= xMax and yMin <= yMax", f"{x1:g}, {x2:g} and {y1:g}, {y2:g}"
        cause = "the order in bboxes is xMin, xMax, yMin, yMax"
        raise FileFormatError("a box", rule, got=got, place=str(origin), cause=cause)
    return box


def _of_csv(path: Path) -> Iterator[_Object]:
    text = read_text(path, "an import file of AutoML", largest=LARGEST)
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        origin, cells = Origin("line", number, path), _cells(line)
        if cells is None:
            rule = "have a set, an address and a label, and eight cells for corners"
            raise FileFormatError("a line", rule, got=repr(line[:60]), place=str(origin))
        subset, address, label, *numbers = cells
        box = _box(numbers, origin) if label else _NONE
        yield _Object(_set_of(subset), address, label, box, None, origin)


def _cells(line: str) -> list[str] | None:
    """Return the eleven cells of a line; None if this is not a line of AutoML."""
    try:
        cells = [cell.strip() for cell in next(csv.reader([line]), [])]
    except csv.Error:
        return None
    cells = ["", *cells] if cells and "://" in cells[0] else cells
    known = len(cells) == _CELLS and cells[0].upper() in _SETS and (cells[0] or "://" in cells[1])
    return cells if known else None


def _box(cells: list[str], origin: Origin) -> Corners:
    """Return the box of two opposite corners, or of all four."""
    try:
        numbers = [float(cell) for cell in cells if cell]
    except ValueError:
        got = repr(",".join(cells))[:80]
        raise FileFormatError("corners", "be numbers", got=got, place=str(origin)) from None
    is_two = len(numbers) == 4 and cells[0] and cells[1]
    if not is_two and len(numbers) != 8:
        rule = "have two corners or four"
        raise FileFormatError("a box", rule, got=repr(",".join(cells))[:80], place=str(origin))
    x1, y1, x2, y2 = numbers if is_two else box_around(numbers)
    return x1, y1, x2, y2
