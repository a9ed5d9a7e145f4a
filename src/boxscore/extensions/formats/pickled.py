"""Read pickled detections: MMDetection's ``results.pkl``, and detectron2's ``instances_predictions.pth``.

Conventions
-----------
- Nothing in a file is run: :mod:`~boxscore.extensions.formats._pickle_machine` interprets it.
- MMDetection 2 writes no image names: its images are those of the COCO file of the ground truth, in the order
  of its list. MMDetection 3 writes paths, and detectron2 image ids.
- Classes are numbers: see :mod:`~boxscore.extensions.formats._model_classes`.
- MMDetection's boxes are ``x1, y1, x2, y2``; detectron2's are ``x, y, width, height``.

References
----------
``tools/test.py`` and ``CocoDataset`` of MMDetection 2; ``DumpDetResults`` of MMDetection 3;
``COCOEvaluator`` of detectron2.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import FloatArray, IntArray
from boxscore._utils.files import read_at_most
from boxscore._utils.memory import paused_collector
from boxscore._utils.text import counted, short_list
from boxscore._utils.user_warnings import warn_user
from boxscore.data.boxes import BoxFormat
from boxscore.data.tables import Detections, GroundTruth
from boxscore.data.vocabulary import Id
from boxscore.errors import FileFormatError
from boxscore.extensions.data_tools.converting import unnamed_images
from boxscore.extensions.formats._gathered import short_names
from boxscore.extensions.formats._model_classes import MOST_CLASSES, Listed, classes_of, listed_by
from boxscore.extensions.formats._pickle_machine import (
    Array,
    DamagedError,
    Tensor,
    UnknownNameError,
    UnreadableError,
    is_pickle,
    read_pickle,
)
from boxscore.formats import _json
from boxscore.formats._format import Format, ReadOptions
from boxscore.formats._rows import Rows, detections_of
from boxscore.formats._sniffer import Sniffer

LARGEST = 1 << 30
"""Maximum size in bytes of a pickle that is read into memory."""

_RUN = "to evaluate a model, run it on the images first: boxscore reads the detections that it writes"


class _Found(NamedTuple):
    """The detections of a file, one row each, by image."""

    tool: str
    images: list[Any]
    """Id or path of each image; None for MMDetection 2."""
    image: IntArray
    label: IntArray
    boxes: FloatArray
    box_format: BoxFormat
    scores: FloatArray
    instances: dict[str, Any]
    classes: int | None = None
    """Number of classes, if the file has it."""


class PickledFormat(Format):
    """MMDetection's and detectron2's pickled results."""

    name = "pickled"
    boxes = "xyxy"
    has_ground_truth = False
    takes = frozenset({"classes", "image_sizes"})

    def detect(self, sniffer: Sniffer) -> str | None:
        """Detect a pickle by its first bytes, and a file of torch by its first member."""
        head = sniffer.head
        of_torch = head.startswith(b"PK\x03\x04") and b"/data.pkl" in head[:1024]
        return "a file of torch" if of_torch else "a pickle" if is_pickle(head) else None

    def load_ground_truth(self, path: Path, options: ReadOptions) -> GroundTruth:
        """Refuse: these files hold detections."""
        what, cause = "ground truth", "pass it as the detections, after the ground truth"
        with _named(path), paused_collector():
            tool = _read(path).tool
        raise FileFormatError(
            what, "be annotations", got=f"detections of {tool}", place=str(path), cause=cause
        )

    def load_detections(
        self, path: Path, options: ReadOptions, ground_truth: GroundTruth | None
    ) -> Detections:
        """Read detections."""
        with _named(path), paused_collector():
            found = _read(path)
        first = np.searchsorted(found.image, np.arange(len(found.images)))

        def place(row: int) -> str:
            image = int(found.image[row])
            return f"detection {row - int(first[image])} of image {image} of {path}"

        listed = None if ground_truth is None else listed_by(ground_truth)
        images = _images(found, ground_truth, listed, path)
        names, labels = classes_of(
            found.label, found.tool, options, ground_truth, listed, path, declared=found.classes
        )
        has_paths = found.tool == "MMDetection 3" and any(isinstance(image, str) for image in images)
        rows = Rows(
            source=str(path),
            images=short_names(images) if has_paths else images,
            image=found.image,
            labels=labels,
            label_names=names,
            label=found.label,
            boxes=found.boxes,
            box_format=found.box_format,
            place=place,
            scores=found.scores,
            file_names=images if has_paths else None,
            named_by_id=not has_paths,
            keypoints=found.instances.get("keypoints"),
            given={name: values for name, values in found.instances.items() if name == "masks"},
        )
        return detections_of(rows, options, ground_truth)


# ---------------------------------------------------------------- the file


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Convert errors of the pickle to one that names the file and says what to do."""
    what = "a pickle of results"
    try:
        yield
    except UnknownNameError as error:
        rule = "hold only lists, numbers, names and arrays: nothing else is loaded, because it may run code"
        raise FileFormatError(what, rule, got=f"{error.name[:80]!r}", place=str(path), cause=_RUN) from None
    except UnreadableError as error:
        cause = "is the file complete?" if isinstance(error, DamagedError) else ""
        raise FileFormatError(what, "be readable", got=str(error), place=str(path), cause=cause) from None


def _read(path: Path) -> _Found:
    """Read a file, and find its detections."""
    with _json.open_binary(path) as file:
        if file.read(2) == b"PK":
            value, size = _in_zip(path), path.stat().st_size
        else:
            file.seek(0)
            content = read_at_most(file, LARGEST + 1)
            if len(content) > LARGEST:
                raise UnreadableError(f"more than {LARGEST:,} bytes")
            value, size = read_pickle(content), len(content)
    return _detections_in(value, size, path)


def _in_zip(path: Path) -> Any:
    """Return the value in a file that torch wrote since version 1.6: a zip of a pickle and storages."""
    try:
        with zipfile.ZipFile(path) as file:
            infos = {info.filename: info for info in file.infolist()}
            # Stored members that share no bytes are at most as large as the file.
            total = sum(info.file_size for info in infos.values())
            stored = all(info.compress_type == zipfile.ZIP_STORED for info in infos.values())
            if len(infos) < len(file.infolist()) or not stored or total > path.stat().st_size:
                raise UnreadableError("a zip that torch.save does not write")
            folder = next(name for name in infos if name.endswith("/data.pkl")).removesuffix("data.pkl")
            order = f"{folder}byteorder"
            if infos[f"{folder}data.pkl"].file_size > LARGEST:
                raise UnreadableError(f"more than {LARGEST:,} bytes")
            if order in infos and file.read(order)[:7] != b"little":
                raise UnreadableError("numbers in another byte order")
            return read_pickle(file.read(f"{folder}data.pkl"), lambda key: file.read(f"{folder}data/{key}"))
    except (UnreadableError, OSError):
        raise
    except Exception:  # zipfile raises many
        raise DamagedError("a damaged zip of torch.save") from None


def _detections_in(value: object, size: int, path: Path) -> _Found:
    """Return the detections in a value, or say what it is."""
    if isinstance(value, dict):
        keys = [key for key in value if isinstance(key, str)]
        weights = {"state_dict", "model", "optimizer", "model_state_dict"} & {*keys}
        if weights or any(isinstance(one, Tensor) for one in value.values()):
            raise FileFormatError(
                str(path), "hold detections", got="a checkpoint, the weights of a model", cause=_RUN
            )
        raise _other(f"a dictionary with {short_list(map(repr, keys)) or 'nothing'}", path)
    if not isinstance(value, list) or not value:
        raise _other("an empty list" if value == [] else "a single value", path)
    found = next((read for test, read in _KINDS if all(map(test, value))), None)
    if found is None:
        raise _other(_described(value[0]), path)
    return found(value, _Limit(size, path))


def _described(first: object) -> str:
    if isinstance(first, dict):
        keys = {*first}
        if "proposals" in keys:
            return "proposals, which have no classes"
        return f"a list of dictionaries with {short_list(map(repr, first)) or 'nothing'}"
    return "a list of arrays, without classes" if isinstance(first, Array) else "a list of other values"


def _other(got: str, path: Path) -> FileFormatError:
    rule = "be results of MMDetection's tools/test.py or instances_predictions.pth of detectron2"
    return FileFormatError(str(path), rule, got=got, cause="save others as COCO JSON")


class _Limit:
    """Raises when detections take more bytes than the file has: values that are referenced many times."""

    def __init__(self, size: int, path: Path) -> None:
        self._left, self.path = size, path

    def take(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise UnreadableError("more detections than the file has room for")


def _numbers(value: object, columns: int | None, what: str) -> NDArray[Any]:
    """Return an array of ``columns`` columns, or of one dimension for None."""
    if not isinstance(value, (Array, Tensor)) or value.values is None:
        raise UnreadableError(f"{what} that are not an array")
    values = value.values
    if columns is None and values.ndim == 1:
        return values
    if columns is not None and (not values.size or (values.ndim == 2 and values.shape[1] == columns)):
        return values.reshape(-1, columns)
    shape = " x ".join(map(str, values.shape))
    wanted = "one per box" if columns is None else f"{columns} numbers each"
    raise UnreadableError(f"{what} of shape {shape}, not {wanted}")


def _masks(value: object, count: int, limit: _Limit) -> list[Any]:
    """Check encoded masks: a list of COCO's RLE."""
    if not isinstance(value, list) or len(value) != count:
        raise UnreadableError("masks that are not one RLE per box")
    for mask in value:
        counts = mask.get("counts") if isinstance(mask, dict) else None
        if not isinstance(counts, (bytes, str)) or not isinstance(mask.get("size"), (list, tuple)):
            raise UnreadableError("masks that are not one RLE per box")
        limit.take(len(counts))
    return value


def _joined(parts: Sequence[NDArray[Any]], *shape: int) -> NDArray[Any]:
    with np.errstate(invalid="ignore"):  # a signaling NaN; the table refuses it
        return np.concatenate([np.empty((0, *shape)), *parts])


def _rows_of(counts: Sequence[int]) -> IntArray:
    return np.repeat(np.arange(len(counts)), counts)


# ---------------------------------------------------------------- MMDetection 2


def _is_mmdet2(value: object) -> bool:
    boxes = value[0] if isinstance(value, tuple) and len(value) == 2 else value
    return isinstance(boxes, list) and all(isinstance(one, Array) for one in boxes)


def _read_mmdet2(images: list[Any], limit: _Limit) -> _Found:
    """Read a list of images, each a list of arrays x1, y1, x2, y2, score by class, perhaps with masks."""
    parts: list[NDArray[Any]] = []
    counts: list[list[int]] = []
    masks: list[Any] = []
    for image in images:
        boxes, encoded = image if isinstance(image, tuple) else (image, None)
        arrays = [_numbers(array, 5, "boxes") for array in boxes]
        counts.append([len(array) for array in arrays])
        limit.take(sum(counts[-1]))
        parts += arrays
        # Masks are a list by class of RLE by box.
        if encoded is not None:
            if not isinstance(encoded, list) or len(encoded) != len(arrays):
                raise UnreadableError("masks that are not one RLE per box")
            for rles, array in zip(encoded, arrays, strict=True):
                masks += _masks(rles, len(array), limit)
    classes = {len(of_image) for of_image in counts}
    if len(classes) > 1:
        raise UnreadableError(f"images of {min(classes)} and of {max(classes)} classes")
    if masks and not all(isinstance(image, tuple) for image in images):
        raise UnreadableError("masks of some images only")
    table = _joined(parts, 5).astype(np.float64)
    (count,) = classes
    return _Found(
        "MMDetection 2",
        [None] * len(images),
        _rows_of([sum(of_image) for of_image in counts]),
        _rows_of([number for of_image in counts for number in of_image]) % max(count, 1),
        table[:, :4],
        "xyxy",
        table[:, 4],
        {"masks": masks} if masks else {},
        count,
    )


# ---------------------------------------------------------------- MMDetection 3


def _is_mmdet3(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("pred_instances"), dict)


def _read_mmdet3(images: list[Any], limit: _Limit) -> _Found:
    """Read a list of dictionaries with ``pred_instances`` of tensors."""
    boxes: list[NDArray[Any]] = []
    scores: list[NDArray[Any]] = []
    labels: list[NDArray[Any]] = []
    masks: list[Any] = []
    for image in images:
        found = image["pred_instances"]
        boxes.append(_numbers(found.get("bboxes"), 4, "boxes"))
        scores.append(_numbers(found.get("scores"), None, "scores"))
        labels.append(_numbers(found.get("labels"), None, "labels"))
        count = len(boxes[-1])
        limit.take(count)
        if labels[-1].min(initial=0) < 0 or labels[-1].max(initial=0) >= MOST_CLASSES:
            raise UnreadableError(f"a label that is not from 0 to {MOST_CLASSES - 1:,}")
        if {len(scores[-1]), len(labels[-1])} != {count} or labels[-1].dtype.kind not in "iu":
            raise UnreadableError("scores or labels that are not one number per box")
        masks += _masks(found["masks"], count, limit) if "masks" in found else [None] * count
    # Prefer paths: ids of images depend on the annotation file of the run.
    key = "img_path" if all(isinstance(image.get("img_path"), str) for image in images) else "img_id"
    return _Found(
        "MMDetection 3",
        _ids(images, key),
        _rows_of([len(array) for array in boxes]),
        _joined(labels).astype(np.int64),
        _joined(boxes, 4).astype(np.float64),
        "xyxy",
        _joined(scores).astype(np.float64),
        {"masks": masks} if any(mask is not None for mask in masks) else {},
    )


def _ids(images: list[Any], key: str) -> list[Id]:
    """Return the id of each image; raise if it is missing, or occurs twice."""
    ids = [image.get(key) for image in images]
    for one in ids:
        if isinstance(one, bool) or not isinstance(one, (int, str)) or one == "" or not _fits(one):
            raise UnreadableError(f"an image without {key}")
    if len(set(ids)) < len(ids):
        raise UnreadableError(f"two images of one {key}")
    return ids


def _fits(value: Id) -> bool:
    return isinstance(value, str) or abs(value) < 1 << 63


# ---------------------------------------------------------------- detectron2


def _is_detectron2(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("instances"), list) and "image_id" in value


def _read_detectron2(images: list[Any], limit: _Limit) -> _Found:
    """Read a list of dictionaries with ``instances``, records as in COCO results."""
    for image in images:
        limit.take(len(image["instances"]))
    records = [record for image in images for record in image["instances"]]
    boxes, scores, labels = [], [], []
    for record in records:
        box = record.get("bbox") if isinstance(record, dict) else None
        if not isinstance(box, list) or len(box) != 4:
            got = f"a box of {len(box)} numbers" if isinstance(box, list) else "a detection without a bbox"
            raise UnreadableError(got)
        numbers = (*box, record.get("score"))
        label = record.get("category_id")
        if not all(type(number) in (int, float) for number in numbers):
            raise UnreadableError("a box or score that is not a number")
        if type(label) is not int or not 0 <= label < MOST_CLASSES:
            raise UnreadableError("a category_id that is not a number from 0")
        boxes.append(box)
        scores.append(numbers[4])
        labels.append(label)
    instances: dict[str, Any] = {}
    if records and all("segmentation" in record for record in records):
        instances["masks"] = _masks([record["segmentation"] for record in records], len(records), limit)
    if records and all("keypoints" in record for record in records):
        instances["keypoints"] = _keypoints([record["keypoints"] for record in records], limit)
    return _Found(
        "detectron2",
        _ids(images, "image_id"),
        _rows_of([len(image["instances"]) for image in images]),
        np.array(labels, dtype=np.int64),
        np.array(boxes, dtype=np.float64).reshape(-1, 4),
        "xywh",
        np.array(scores, dtype=np.float64),
        instances,
    )


def _keypoints(values: list[Any], limit: _Limit) -> FloatArray:
    """Return keypoints x, y, visibility, [N, J, 3]."""
    for value in values:
        if not isinstance(value, list) or len(value) % 3 or len(value) != len(values[0]):
            raise UnreadableError("keypoints that are not three numbers each")
        if not all(type(number) in (int, float) for number in value):
            raise UnreadableError("keypoints that are not numbers")
        limit.take(len(value))
    return np.array(values, dtype=np.float64).reshape(len(values), -1, 3)


_KINDS = ((_is_mmdet2, _read_mmdet2), (_is_mmdet3, _read_mmdet3), (_is_detectron2, _read_detectron2))


# ---------------------------------------------------------------- order of images and classes


def _images(found: _Found, truth: GroundTruth | None, listed: Listed | None, path: Path) -> list[Any]:
    """Return the id or path of each image."""
    if found.tool != "MMDetection 2":
        return found.images
    count = counted(len(found.images), "image")
    if truth is None:
        text = f"{path.name} has no image names: its images are called 'image 0', 'image 1' and so on."
        warn_user(text)
        return unnamed_images(len(found.images))
    if listed is None:
        raise FileFormatError(
            "results of MMDetection 2",
            "come with the COCO file of the ground truth, because they name no images",
            got=count,
            place=str(path),
            cause="or write COCO JSON instead, with format-only of MMDetection's tools/test.py",
        )
    ids = list(dict.fromkeys(image.id for image in listed.images))
    if len(ids) != len(found.images):
        raise FileFormatError(
            "results of MMDetection 2",
            f"have the {counted(len(ids), 'image')} of the ground truth, because they name no images",
            got=count,
            place=str(path),
            cause="pass the annotation file that the run used",
        )
    return ids


FORMAT = PickledFormat()
