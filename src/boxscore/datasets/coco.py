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

import functools
import itertools
import operator
import struct
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from boxscore import _validate
from boxscore._forks import run_forked
from boxscore.datasets import _coco_parts, _json
from boxscore.datasets._places import OwnVocabulary, resolve_categories, resolve_images
from boxscore.errors import BoxscoreWarning, FileFormatError
from boxscore.protocol import Similarity
from boxscore.tables import Detections, GroundTruth
from boxscore.vocabulary import Categories, Id, Images, as_ids

__all__ = ["load_detections", "load_ground_truth", "load_results"]

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


_DECODING_ERRORS = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)


class _Columns(NamedTuple):
    """Records as columns."""

    image_ids: NDArray[Any]
    category_ids: NDArray[Any]
    boxes: NDArray[np.float64]  # [N,4]
    others: dict[str, NDArray[Any]]


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
    columns = _read_records(
        _text_in_memory(content.annotations),
        path,
        _coco_parts.record_type(_Annotation, part),
        {**_ANNOTATION_FIELDS, **_coco_parts.readers(part, results=False)},
        record="annotation",
        whole="a list",
        workers=workers if part == "none" else 1,
    )
    others = columns.others
    if None in others["id"]:
        others["id"] = np.arange(1, len(others["id"]) + 1)
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
        source=str(path),
        place=place,
        **_coco_parts.part_columns(others, part, place=place),
    )
    return _resolve_repeated_ids(ground_truth)


def load_detections(
    path: Path, ground_truth: GroundTruth, *, similarity: Similarity = "box", workers: int = 1
) -> Detections:
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
    workers : int, default 1
        Processes to fork for a large list of results.

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
    part = _coco_parts.part_of(similarity)
    columns, own = _read_results(path, part, workers)

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


def load_results(path: Path, *, similarity: Similarity = "box", workers: int = 1) -> Detections:
    """Read a COCO results file for its own sake: no ground truth says which ids there are.

    Parameters
    ----------
    path, similarity, workers
        As for :func:`load_detections`.

    Returns
    -------
    Detections
        In file order, every record a row. Images and classes are those that occur, or those the file itself
        declares.

    Raises
    ------
    FileFormatError, InputError
        As from :func:`load_detections`.
    """
    part = _coco_parts.part_of(similarity)
    columns, own = _read_results(path, part, workers)

    def place(row: int) -> str:
        return f"detection {row} of {path}"

    return Detections.from_arrays(
        columns.image_ids,
        columns.category_ids,
        columns.boxes if part == "none" else _coco_parts.given_boxes(columns.boxes, place=place),
        columns.others["score"],
        box_format="xywh",
        images=own.images if own is not None and len(own.images) else None,
        categories=own.categories if own is not None and len(own.categories) else None,
        source=str(path),
        place=place,
        **_coco_parts.part_columns(columns.others, part, place=place),
    )


def _read_results(path: Path, part: _coco_parts.Part, workers: int) -> tuple[_Columns, OwnVocabulary | None]:
    """Read the records of results as columns, and what the file declares itself."""
    start = _json.first_byte(path)
    own = None
    if start == b"{":
        content = _read_object(path)
        if not len(memoryview(content.annotations)):
            raise FileFormatError(
                _validate.message(
                    "detections", "be a list of results", got="an object without annotations", place=str(path)
                )
            )
        own = OwnVocabulary(*_vocabularies(content))
        text = _text_in_memory(content.annotations)
    else:
        text = _text_in_file(path)
    columns = _read_records(
        text,
        path,
        _coco_parts.record_type(_Result, part),
        {**_RESULT_FIELDS, **_coco_parts.readers(part, results=True)},
        record="detection",
        whole="a list of results",
        workers=workers if part == "none" else 1,
    )
    return columns, own


def _read_object(path: Path) -> _File:
    """Decode the top level of a COCO object; its annotations stay text."""
    with _json.open_binary(path) as file:
        text = file.read().removeprefix(b"\xef\xbb\xbf")
    try:
        with _json.paused_collector():
            return msgspec.json.decode(text, type=_File)
    except _DECODING_ERRORS as error:
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


class _Text(NamedTuple):
    """The text of a JSON array of records, in a file or in memory, and how to read some of it."""

    size: int
    chunks: Callable[[int, int], Iterable[bytes | memoryview]]
    whole: Callable[[], bytes]


def _text_in_file(path: Path) -> _Text:
    return _Text(path.stat().st_size, functools.partial(_json.chunks_of, path), path.read_bytes)


def _text_in_memory(array: msgspec.Raw) -> _Text:
    view = memoryview(array)

    def chunks(start: int, end: int) -> Iterator[memoryview]:
        return (view[at : min(at + _json.SLICE_BYTES, end)] for at in range(start, end, _json.SLICE_BYTES))

    return _Text(len(view), chunks, lambda: bytes(view))


def _read_records(
    text: _Text, path: Path, kind: type[Any], fields: Fields, *, record: str, whole: str, workers: int
) -> _Columns:
    """Read records into columns; the parts of a large text in processes of their own, where asked for.

    Raises
    ------
    FileFormatError
        Naming the record and the field.
    """
    if workers > 1:
        parts = _json.parts_of(text.size, lambda start, end: b"".join(text.chunks(start, end)), workers)
        try:
            tasks = [functools.partial(_read_part, text, part, kind, fields) for part in parts]
            return _concatenated(run_forked(tasks))
        except _DECODING_ERRORS:
            pass  # a cut fell inside a record, or the file breaks a rule: read it whole, and name the place
    try:
        return _columns_of(text.chunks(0, text.size), text.whole, kind, fields)
    except _DECODING_ERRORS as error:
        raise _json.explain(
            error, path, record=record, text=text.whole(), whole=(f"{record}s", whole)
        ) from None


def _read_part(text: _Text, part: tuple[int, int], kind: type[Any], fields: Fields) -> _Columns:
    chunks = text.chunks(*part)
    if part[1] < text.size:
        chunks = itertools.chain(chunks, [b"]"])
    return _columns_of(chunks, _refuse, kind, fields)


def _refuse() -> bytes:
    raise msgspec.DecodeError("a part of a text does not decode on its own")


def _columns_of(
    chunks: Iterable[bytes | memoryview], whole: Callable[[], bytes], kind: type[Any], fields: Fields
) -> _Columns:
    """Decode records slice by slice, each slice into columns before the next is read."""
    readers = {"image_id": _ids, "category_id": _ids, "bbox": _boxes, **fields}
    decode = msgspec.json.Decoder(list[kind]).decode  # type: ignore[valid-type]
    with _json.paused_collector():
        parts: list[list[NDArray[Any]]] = [[] for _ in readers]
        for records in _json.decode_records(chunks, decode, whole):
            for part, (name, read) in zip(parts, readers.items(), strict=True):
                part.append(read(records, name))
    columns = [_joined(parts.pop(0)) for _ in readers]  # one at a time, so that two copies of one alone exist
    others = dict(zip(list(readers)[3:], columns[3:], strict=True))
    return _Columns(columns[0], columns[1], columns[2], others)


def _concatenated(parts: Sequence[_Columns]) -> _Columns:
    return _Columns(
        _joined([part.image_ids for part in parts]),
        _joined([part.category_ids for part in parts]),
        _joined([part.boxes for part in parts]),
        {name: _joined([part.others[name] for part in parts]) for name in parts[0].others},
    )


def _joined(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    if any(part.dtype == object for part in parts) and len(parts) > 1:
        parts = [part.astype(object) for part in parts]
    return np.concatenate(parts)


def _packed(values: list[Any], code: str) -> NDArray[Any]:
    """Turn Python numbers into an array; struct reads them several times faster than NumPy.

    Raises
    ------
    struct.error
        When a value is of another kind or out of range.
    """
    return np.frombuffer(struct.pack(f"{len(values)}{code}", *values), dtype=code)


def _ids(records: list[Any], name: str) -> NDArray[Any]:
    values = list(map(operator.attrgetter(name), records))
    try:
        return _packed(values, "q")
    except struct.error:
        if name == "id" and None in values:  # numbered when all are read
            return np.array([None] * len(values), dtype=object)
        return as_ids(values, name=name)


def _numbers(records: list[Any], name: str) -> NDArray[np.float64]:
    """Read a column of numbers; null is NaN."""
    values = list(map(operator.attrgetter(name), records))
    try:
        return _packed(values, "d")
    except struct.error:
        return np.array(values, dtype=np.float64)


def _flags(records: list[Any], name: str) -> NDArray[np.bool_]:
    return np.fromiter(map(operator.attrgetter(name), records), dtype=bool, count=len(records))


def _boxes(records: list[Any], name: str) -> NDArray[np.float64]:
    flat: list[float] = []
    for record in records:
        flat += record.bbox
    return _packed(flat, "d").reshape(-1, 4)


Fields = Mapping[str, Callable[[list[Any], str], NDArray[Any]]]
_RESULT_FIELDS: Fields = {"score": _numbers}
_ANNOTATION_FIELDS: Fields = {
    "id": _ids,
    "area": _numbers,
    "iscrowd": _flags,
    "difficult": _flags,
}


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
