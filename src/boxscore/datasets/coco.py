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

import itertools
import operator
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from boxscore import _validate
from boxscore.datasets import _coco_parts, _json
from boxscore.datasets._coco_parts import Part
from boxscore.datasets._places import OwnVocabulary, resolve_categories, resolve_images
from boxscore.errors import BoxscoreWarning, FileFormatError
from boxscore.protocol import Similarity
from boxscore.tables import Detections, GroundTruth
from boxscore.vocabulary import Categories, Id, Images, as_ids

__all__ = ["load_detections", "load_ground_truth"]

Box = tuple[float, float, float, float]


class _Result(msgspec.Struct, gc=False):
    image_id: int | str
    category_id: int | str
    bbox: Box
    score: float


class _Annotation(msgspec.Struct, gc=False):
    image_id: int | str
    category_id: int | str
    bbox: Box
    id: int | str | None = None
    area: float | None = None
    iscrowd: int | bool | None = 0
    difficult: int | bool | None = 0
    truncated: int | bool | None = 0


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


class _Columns(NamedTuple):
    """Records as columns."""

    image_ids: NDArray[Any]
    category_ids: NDArray[Any]
    boxes: NDArray[np.float64]  # [N,4]
    others: dict[str, NDArray[Any]]


def load_ground_truth(path: Path, *, similarity: Similarity = "box") -> GroundTruth:
    """Read a COCO ground-truth file.

    Parameters
    ----------
    path : Path
    similarity : {"box", "mask", "boundary", "keypoints"}
        What will be compared; masks and keypoints are read only for it.

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
            _validate.message(
                "ground truth",
                "be an object with images, annotations and categories",
                got="a list",
                place=str(path),
                cause="is this a results file?",
            )
        )
    content = _read_object(path)
    present = {
        "images": content.images is not None,
        "annotations": len(memoryview(content.annotations)) > 0,
        "categories": content.categories is not None,
    }
    for key, is_present in present.items():
        if not is_present:
            raise FileFormatError(
                _validate.message("ground truth", f"have {key}", got=f"no such key in {path}")
            )
    part = _coco_parts.part_of(similarity)
    columns = _annotation_columns(path, content.annotations, part)
    others = columns.others
    images, categories = _vocabularies(content)

    def place(row: int) -> str:
        return f"annotation {row} (id {others['id'].tolist()[row]}) of {path}"

    ground_truth = GroundTruth.from_arrays(
        columns.image_ids,
        columns.category_ids,
        columns.boxes,
        box_format="xywh",
        area=_areas(others["area"], columns.boxes, path),
        crowd=others["iscrowd"],
        difficult=others["difficult"],
        ids=others["id"],
        images=images,
        categories=categories,
        columns={"truncated": others["truncated"].astype(bool)},
        source=str(path),
        place=place,
        **_coco_parts.part_columns(others, part, place=place),
    )
    return _resolve_repeated_ids(ground_truth)


def load_detections(path: Path, ground_truth: GroundTruth, *, similarity: Similarity = "box") -> Detections:
    """Read a COCO results file.

    Parameters
    ----------
    path : Path
        A list of records ``image_id, category_id, bbox, score``, or a COCO object whose annotations have a
        ``score``. An empty list is legal.
    ground_truth : GroundTruth
        Whose images and classes the results are of, in whatever format it was.
    similarity : {"box", "mask", "boundary", "keypoints"}
        What will be compared; masks and keypoints are read only for it, and may then stand for boxes.

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
    start = _json.first_byte(path)
    own, part = None, _coco_parts.part_of(similarity)
    if start == b"{":
        content = _read_object(path)
        if not len(memoryview(content.annotations)):
            raise FileFormatError(
                _validate.message(
                    "detections", "be a list of results", got="an object without annotations", place=str(path)
                )
            )
        own = OwnVocabulary(*_vocabularies(content))
        annotations = content.annotations
        columns = _result_columns(path, _slices(annotations), lambda: bytes(annotations), part)
    else:
        columns = _result_columns(path, _json.chunks_of(path), path.read_bytes, part)

    def place(row: int) -> str:
        return f"detection {row} of {path}"

    image = resolve_images(columns.image_ids, ground_truth, own=own, place=place)
    category, left_out = resolve_categories(columns.category_ids, ground_truth, own=own)
    kept = np.flatnonzero(category >= 0) if left_out else slice(None)
    boxes = columns.boxes if part == "none" else _coco_parts.given_boxes(columns.boxes, place=place)
    parts = _coco_parts.part_columns(columns.others, part, place=place)
    return Detections.from_rows(
        ground_truth,
        image[kept],
        category[kept],
        None if boxes is None else boxes[kept],
        columns.others["score"][kept],
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
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        place = "image" if "$.images" in str(error) else "category" if "$.categories" in str(error) else "key"
        raise _json.explain(error, path, record=place, text=text) from None


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


def _slices(array: msgspec.Raw) -> Iterator[memoryview]:
    view = memoryview(array)
    return (view[at : at + _json.SLICE_BYTES] for at in range(0, len(view), _json.SLICE_BYTES))


def _result_columns(path: Path, chunks: Any, whole: Callable[[], bytes], part: Part) -> _Columns:
    fields: dict[str, Callable[[list[Any]], Any]] = {"score": lambda records: _numbers(records, "score")}
    return _read_columns(
        path,
        chunks,
        whole,
        _coco_parts.record_type(_Result, part),
        fields | _coco_parts.readers(part, results=True),
        read_boxes=_boxes if part == "none" else _coco_parts.boxes_or_nan,
        record="detection",
        cause="is this a ground-truth file?",
    )


def _annotation_columns(path: Path, annotations: msgspec.Raw, part: Part) -> _Columns:
    fields: dict[str, Callable[[list[Any]], Any]] = {
        "id": lambda records: _ids(records, "id"),
        "area": lambda records: _numbers(records, "area"),
        "iscrowd": lambda records: _flags(records, "iscrowd"),
        "difficult": lambda records: _flags(records, "difficult"),
        "truncated": lambda records: _flags(records, "truncated"),
    }
    return _read_columns(
        path,
        _slices(annotations),
        lambda: bytes(annotations),
        _coco_parts.record_type(_Annotation, part),
        fields | _coco_parts.readers(part, results=False),
        record="annotation",
    )


def _read_columns(
    path: Path,
    chunks: Any,
    whole: Callable[[], bytes],
    kind: type[Any],
    fields: dict[str, Callable[[list[Any]], Any]],
    *,
    read_boxes: Callable[[list[Any]], NDArray[np.float64]] | None = None,
    record: str,
    cause: str = "",
) -> _Columns:
    """Decode records slice by slice, each slice into columns before the next is read."""
    readers = [
        lambda records: _ids(records, "image_id"),
        lambda records: _ids(records, "category_id"),
        read_boxes or _boxes,
        *fields.values(),
    ]
    parts: list[list[NDArray[Any]]] = []
    decode = msgspec.json.Decoder(list[kind]).decode  # type: ignore[valid-type]
    try:
        with _json.paused_collector():
            parts.extend(
                [read(records) for read in readers] for records in _json.decode_records(chunks, decode, whole)
            )
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise _json.explain(error, path, record=record, text=whole(), cause=cause) from None
    columns = [_joined(column) for column in zip(*parts, strict=True)]
    return _Columns(columns[0], columns[1], columns[2], dict(zip(fields, columns[3:], strict=True)))


def _joined(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    if any(part.dtype == object for part in parts) and len(parts) > 1:
        parts = [part.astype(object) for part in parts]
    return np.concatenate(parts)


def _column(records: list[Any], name: str) -> Iterator[Any]:
    return map(operator.attrgetter(name), records)


def _ids(records: list[Any], name: str) -> NDArray[Any]:
    values = list(_column(records, name))
    if name == "id" and None in values:
        values = [value if value is not None else row for row, value in enumerate(values)]
    if set(map(type, values)) <= {int}:
        try:
            return np.array(values, dtype=np.int64)
        except OverflowError:
            pass
    return as_ids(values, name=name)


def _numbers(records: list[Any], name: str) -> NDArray[np.float64]:
    """Read a column of numbers; null is NaN."""
    return np.array(list(_column(records, name)), dtype=np.float64)


def _flags(records: list[Any], name: str) -> NDArray[np.bool_]:
    return np.fromiter(map(bool, _column(records, name)), dtype=bool, count=len(records))


def _boxes(records: list[Any]) -> NDArray[np.float64]:
    flat = itertools.chain.from_iterable(_column(records, "bbox"))
    return np.fromiter(flat, dtype=np.float64, count=4 * len(records)).reshape(-1, 4)


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
    ids: list[Id] = ground_truth.ids.tolist()
    last = {identifier: row for row, identifier in enumerate(ids)}
    if len(last) == len(ids):
        return ground_truth
    warnings.warn(
        f"{ground_truth.source}: {len(ids) - len(last)} annotation ids occur more than once; as in "
        "pycocotools, the last annotation with an id stands in for all of them.",
        BoxscoreWarning,
        stacklevel=4,
    )
    return ground_truth.take(np.array([last[identifier] for identifier in ids]))
