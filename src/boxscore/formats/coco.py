"""COCO JSON: ground truth (``instances_*.json``) and results files.

Conventions
-----------
- Boxes are ``x, y, width, height``; ``area`` is the annotation's own (of its mask), width times height
  where an annotation has none.
- Images and classes are those of ``images`` and ``categories``, sorted by id, as in pycocotools.
- Of annotations that share one id, pycocotools reads the last in every one's place; so do we, with a warning.
- ``iscrowd`` overwrites ``ignore``, as in pycocotools. ``difficult`` is read where a file has it.
- Results are a list of records, or a COCO object whose annotations carry a ``score``. Extra keys are skipped.

References
----------
https://cocodataset.org/#format-data and #format-results; pycocotools ``coco.py``.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from boxscore.data.tables import Detections, GroundTruth
from boxscore.data.vocabulary import Categories, Id, Images, as_ids
from boxscore.errors import BoxscoreWarning, FileFormatError
from boxscore.formats import _coco_parts, _json
from boxscore.formats._coco_records import (
    DECODING_ERRORS,
    Columns,
    Reading,
    Text,
    annotation_kind,
    result_kind,
    text_in_file,
    text_in_memory,
)
from boxscore.formats._places import OwnVocabulary, resolve_categories, resolve_images
from boxscore.protocols.protocol import Similarity

__all__ = ["ResultsReading", "load_ground_truth", "load_results"]


class _Image(msgspec.Struct, gc=False):
    id: int | str
    file_name: str | None = None
    width: float | None = None
    height: float | None = None


class _Category(msgspec.Struct, gc=False):
    id: int | str
    name: str | None = None


class _File(msgspec.Struct):
    images: list[_Image] | None = None
    categories: list[_Category] | None = None
    annotations: msgspec.Raw = msgspec.Raw(b"")


def load_ground_truth(path: Path, *, similarity: Similarity = "box", workers: int = 1) -> GroundTruth:
    """Read a COCO ground-truth file.

    Parameters
    ----------
    path : Path
    similarity : {"box", "mask", "boundary", "keypoints"}
        What will be compared; masks and keypoints are read only for it.
    workers : int, default 1
        Processes to fork for a large file, where only boxes are read.

    Returns
    -------
    GroundTruth

    Raises
    ------
    FileFormatError
        When the file is not JSON, or not ground truth; names the annotation and the field.
    InputError
        When a box is not finite or has a negative side, or an id is unknown.
    """
    start = _json.first_byte(path)
    if start == b"[":
        raise FileFormatError(
            "ground truth",
            "be an object with images, annotations and categories",
            got="a list",
            place=str(path),
            cause="is this a results file?",
        )
    content = _read_object(path)
    present = {
        "images": content.images is not None,
        "annotations": len(memoryview(content.annotations)) > 0,
        "categories": content.categories is not None,
    }
    for key, is_present in present.items():
        if not is_present:
            raise FileFormatError("ground truth", f"have {key}", got=f"no such key in {path}")
    part = _coco_parts.part_of(similarity)
    text = text_in_memory(content.annotations)
    with Reading(text, path, annotation_kind(part), workers=workers) as reading:
        columns = reading.columns()
    images, categories = _vocabularies(content)

    def place(row: int) -> str:
        return f"annotation {row} (id {columns['id'].tolist()[row]}) of {path}"

    ground_truth = GroundTruth.from_arrays(
        columns["image_id"],
        columns["category_id"],
        columns["bbox"],
        box_format="xywh",
        area=_areas(columns["area"], columns["bbox"], path),
        crowd=columns["iscrowd"],
        difficult=columns["difficult"],
        ids=columns["id"],
        images=images,
        categories=categories,
        source=str(path),
        place=place,
        **_coco_parts.part_columns(columns, part, place=place),
    )
    return _resolve_repeated_ids(ground_truth)


def load_results(path: Path, *, similarity: Similarity = "box", workers: int = 1) -> Detections:
    """Read a COCO results file for its own sake: no ground truth says which ids there are.

    Parameters
    ----------
    path : Path
        A list of records ``image_id, category_id, bbox, score``, or a COCO object whose annotations have a
        ``score``. An empty list is legal.
    similarity : {"box", "mask", "boundary", "keypoints"}
        What will be compared; masks and keypoints are read only for it, and may then stand for boxes.
    workers : int, default 1
        Processes to fork for a large list of results.

    Returns
    -------
    Detections
        In file order, every record a row. Images and classes are those that occur, or those the file itself
        declares.

    Raises
    ------
    FileFormatError
        When the file is not JSON, or not results; names the detection and the field.
    InputError
        When a box or score is not finite, or a side is negative.
    """
    part = _coco_parts.part_of(similarity)
    with ResultsReading(path, similarity=similarity, workers=workers) as reading:
        columns, own = reading.columns()

    def place(row: int) -> str:
        return f"detection {row} of {path}"

    boxes = columns["bbox"]
    return Detections.from_arrays(
        columns["image_id"],
        columns["category_id"],
        boxes if part == "none" else _coco_parts.given_boxes(boxes, place=place),
        columns["score"],
        box_format="xywh",
        images=own.images if own is not None and len(own.images) else None,
        categories=own.categories if own is not None and len(own.categories) else None,
        source=str(path),
        place=place,
        **_coco_parts.part_columns(columns, part, place=place),
    )


class ResultsReading:
    """A results file that is being read, in part by other processes; a context, which leaves none behind.

    Parameters
    ----------
    path : Path
        As for :func:`load_results`.
    similarity, workers
        As for :func:`load_results`.
    beside : float, default 0
        As for :class:`~boxscore.formats._coco_records.Reading`.
    """

    def __init__(
        self, path: Path, *, similarity: Similarity = "box", workers: int = 1, beside: float = 0
    ) -> None:
        self._path = path
        self._part = _coco_parts.part_of(similarity)
        self._own: OwnVocabulary | None = None
        text = self._object() if _json.first_byte(path) == b"{" else text_in_file(path)
        self._reading = Reading(text, path, result_kind(self._part), workers=workers, beside=beside)

    def __enter__(self) -> ResultsReading:
        return self

    def __exit__(self, *_: object) -> None:
        self._reading.close()

    def _object(self) -> Text:
        content = _read_object(self._path)
        if not len(memoryview(content.annotations)):
            raise FileFormatError(
                "detections",
                "be a list of results",
                got="an object without annotations",
                place=str(self._path),
            )
        self._own = OwnVocabulary(*_vocabularies(content))
        return text_in_memory(content.annotations)

    def columns(self) -> tuple[Columns, OwnVocabulary | None]:
        """Return the records as columns, and what the file declares itself."""
        return self._reading.columns(), self._own

    def detections(self, ground_truth: GroundTruth) -> Detections:
        """Return the table.

        Parameters
        ----------
        ground_truth : GroundTruth
            Whose images and classes the results are of, in whatever format it was.

        Returns
        -------
        Detections
            Without those of classes that the ground truth does not have: they are counted in ``left_out``.

        Raises
        ------
        FileFormatError
            When the file is not JSON, or not results; names the detection and the field.
        InputError
            When a box or score is not finite, a side is negative, or an image is unknown.
        """
        columns, own = self.columns()
        path, part = self._path, self._part

        def place(row: int) -> str:
            return f"detection {row} of {path}"

        image = resolve_images(columns["image_id"], ground_truth, own=own, place=place)
        category, left_out = resolve_categories(columns["category_id"], ground_truth, own=own)
        kept = np.flatnonzero(category >= 0) if left_out else slice(None)
        boxes = columns["bbox"]
        given = boxes if part == "none" else _coco_parts.given_boxes(boxes, place=place)
        parts = _coco_parts.part_columns(columns, part, place=place)
        return Detections.from_rows(
            ground_truth,
            image[kept],
            category[kept],
            None if given is None else given[kept],
            columns["score"][kept],
            box_format="xywh",
            **{name: values[kept] for name, values in parts.items()},
            left_out=left_out,
            source=str(path),
            place=lambda row: place(int(np.arange(len(image))[kept][row])),
        )


def _read_object(path: Path) -> _File:
    """Decode the top level of a COCO object; its annotations stay text."""
    with _json.open_binary(path) as file:
        text = file.read().removeprefix(b"\xef\xbb\xbf")
    try:
        with _json.paused_collector():
            return msgspec.json.decode(text, type=_File)
    except DECODING_ERRORS as error:
        raise _explain_object(error, path, text) from None


def _explain_object(error: Exception, path: Path, text: bytes) -> FileFormatError:
    for key, record in (("images", "image"), ("categories", "category")):
        if f"`$.{key}[" in str(error):
            return _json.explain(error, path, record=record, text=text, whole=(key, "a list"))
    whole = ("ground truth", "an object with images, annotations and categories")
    return _json.explain(error, path, record="record", text=text, whole=whole)


def _vocabularies(content: _File) -> tuple[Images, Categories]:
    images, categories = content.images or [], content.categories or []
    sizes = [
        (np.nan if image.width is None else image.width, np.nan if image.height is None else image.height)
        for image in images
    ]
    return (
        Images.build(
            as_ids([image.id for image in images], name="image ids"),
            file_names=[image.file_name for image in images],
            sizes=np.array(sizes, dtype=np.float64).reshape(-1, 2),
        ),
        Categories.build(
            as_ids([category.id for category in categories], name="category ids"),
            names=[str(category.id) if category.name is None else category.name for category in categories],
        ),
    )


def _areas(area: NDArray[np.float64], boxes: NDArray[np.float64], path: Path) -> NDArray[np.float64]:
    missing = np.isnan(area)
    if not missing.any():
        return area
    warnings.warn(
        f"{path}: {int(missing.sum())} annotations have no area; width times height is taken, and decides "
        "whether they are small, medium or large.",
        BoxscoreWarning,
        stacklevel=4,
    )
    return np.where(missing, boxes[:, 2] * boxes[:, 3], area)


def _resolve_repeated_ids(ground_truth: GroundTruth) -> GroundTruth:
    """Put the last annotation of an id in the place of the earlier ones, as pycocotools does."""
    ids = ground_truth.ids
    if ids.dtype != object and (np.diff(np.sort(ids)) > 0).all():
        return ground_truth
    last: dict[Id, int] = {identifier: row for row, identifier in enumerate(ids.tolist())}
    if len(last) == len(ids):
        return ground_truth
    warnings.warn(
        f"{ground_truth.source}: {len(ids) - len(last)} annotation ids occur more than once; as in "
        "pycocotools, the last annotation with an id stands in for all of them.",
        BoxscoreWarning,
        stacklevel=4,
    )
    return ground_truth.take(np.array([last[identifier] for identifier in ids.tolist()]))
