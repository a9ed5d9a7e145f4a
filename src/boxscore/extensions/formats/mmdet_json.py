"""Read the JSON of MMDetection's ``DetInferencer``, a file per image in ``preds``.

Conventions
-----------
- Boxes are corners in pixels, and masks COCO's RLE. An image is the one that the file is named after,
  without folder and extension. Two of one name are an error, and so are the numbers of arrays, ``0``, ``1``
  and so on, which are not image ids.
- Classes are numbers: see :mod:`~boxscore.extensions.formats._model_classes`.

References
----------
``DetInferencer.pred2dict`` of MMDetection 3
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np

from boxscore._utils.text import counted
from boxscore.data.image_names import stems_of
from boxscore.data.tables import Detections, GroundTruth
from boxscore.errors import FileFormatError
from boxscore.extensions.formats._gathered import Gathered, Origin, decoded
from boxscore.extensions.formats._json_folders import files_of_images, first_json
from boxscore.extensions.formats._model_classes import MOST_CLASSES, classes_of, listed_by
from boxscore.extensions.formats._responses import DetectionsFormat
from boxscore.formats._format import ReadOptions
from boxscore.formats._rows import Rows, detections_of
from boxscore.formats._sniffer import Sniffer

_TOOL = "MMDetection"


class _Mask(msgspec.Struct, gc=False):
    size: tuple[int, int]
    counts: str


class _Image(msgspec.Struct, gc=False):
    labels: list[int]
    scores: list[float]
    bboxes: list[list[float]]
    masks: list[_Mask] | None = None


class InferencerFormat(DetectionsFormat):
    """JSON of MMDetection's DetInferencer."""

    name = "mmdetjson"
    folder_endings = (".json",)
    takes = frozenset({"classes", "image_sizes"})

    def detect(self, sniffer: Sniffer) -> str | None:
        """Detect an object with the three lists."""
        file = first_json(sniffer)
        if file is None or not file.text.lstrip().startswith("{"):
            return None
        is_known = file.has_keys("labels", "scores", "bboxes")
        return (
            f"{'a folder of ' * sniffer.is_folder}JSON of MMDetection's DetInferencer" if is_known else None
        )

    def rows_of(self, path: Path, options: ReadOptions, ground_truth: GroundTruth | None) -> Rows:
        """Read every file."""
        gathered = Gathered(path, options, endings=False, any_corners=False)
        for file, name in files_of_images(path):
            image = gathered.image(name)
            content = decoded(file, _Image, record="detection", whole=(f"JSON of {_TOOL}", "an object"))
            _check_lengths(content, file)
            masks: Sequence[_Mask | None] = content.masks or [None] * len(content.bboxes)
            detections = zip(content.labels, content.scores, content.bboxes, masks, strict=True)
            for number, (label, score, box, mask) in enumerate(detections):
                origin = Origin("detection", number, file)
                if not 0 <= label < MOST_CLASSES:
                    rule = f"be a number from 0 to {MOST_CLASSES - 1:,}"
                    raise FileFormatError("a label", rule, got=f"{label}", place=str(origin))
                if len(box) != 4:
                    rule, got = "have four numbers x1, y1, x2, y2", counted(len(box), "number")
                    raise FileFormatError("a box", rule, got=got, place=str(origin))
                x1, y1, x2, y2 = box
                if mask is None:
                    gathered.add_box(image, label, (x1, y1, x2, y2), "xyxy", origin, score=score)
                    continue
                rle = {"size": [*mask.size], "counts": mask.counts}
                gathered.add(image, label, (x1, y1, x2, y2), origin, score=score, mask=rle)
        return gathered.rows(of_results=True)

    def load_detections(
        self, path: Path, options: ReadOptions, ground_truth: GroundTruth | None
    ) -> Detections:
        """Read detections; the ground truth names the classes."""
        rows = self.rows_of(path, options, ground_truth)
        if ground_truth is not None:
            _check_names(rows, ground_truth, path)
        listed = None if ground_truth is None else listed_by(ground_truth)
        numbers = np.array(rows.labels, dtype=np.int64)[rows.label]
        names, ids = classes_of(numbers, _TOOL, options, ground_truth, listed, path)
        rows = dataclasses.replace(rows, labels=ids, label_names=names, label=numbers)
        return detections_of(rows, options, ground_truth)


FORMAT = InferencerFormat()


def _check_lengths(content: _Image, file: Path) -> None:
    """Raise unless an image has as many labels, scores and masks as boxes."""
    wanted = len(content.bboxes)
    for key in ("labels", "scores", "masks"):
        values = getattr(content, key)
        if values is not None and len(values) != wanted:
            rule = f"have as many {key} as boxes ({wanted:,})"
            raise FileFormatError("an image", rule, got=f"{len(values):,}", place=str(file))


def _check_names(rows: Rows, ground_truth: GroundTruth, path: Path) -> None:
    """Raise unless a file is named after one image: folders and extensions are not saved."""
    images = [str(name) for name in ground_truth.images.names]
    stems = stems_of(images)
    count = Counter(stems)
    are_numbers = not any(count[str(name)] for name in rows.images)
    for name in (str(rows.images[image]) for image in np.unique(rows.image)):
        # Numbers of arrays would be taken for image ids, which may count from another number.
        if are_numbers and name.isdigit() and (name == "0" or not name.startswith("0")):
            got = f"{name}.json, which may be the number of an array"
            cause = "pass the paths of images to DetInferencer, not arrays"
        elif count[name] > 1:
            same = [image for image, stem in zip(images, stems, strict=True) if stem == name]
            got = f"{name}.json, for {same[0]!r} and {same[1]!r}"
            cause = "folders and extensions are not saved: give images different names, and run it again"
        else:
            continue
        rule = "be named after one image of the ground truth"
        raise FileFormatError("results of DetInferencer", rule, got=got, place=str(path), cause=cause)
