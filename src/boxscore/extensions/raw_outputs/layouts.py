"""Read boxes, scores and classes from output tensors, by layout.

Conventions
-----------
- A layout names the arrays, the form of their boxes, and how a score is made. Classes count from 0.
- Layouts are recognized by the names, shapes and ranges of arrays: coordinates in pixels of the
  input exceed 1, scores do not, logits are below 0. If two layouts fit, none is chosen.
- Arrays may lack the batch axis.

References
----------
ultralytics 8.4, ``non_max_suppression``; yolov5, ``non_max_suppression``; YOLOX, ``demo_postprocess``;
transformers, ``post_process_object_detection``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import FloatArray, IntArray
from boxscore._utils.records import NamedTuple
from boxscore._utils.text import short_list
from boxscore.errors import InputError

Arrays = Mapping[str, NDArray[Any]]
STRIDES = (8, 16, 32)


class Candidates(NamedTuple):
    """The boxes of one image, with the scores of all classes.

    Attributes
    ----------
    boxes : ndarray, [N, 4]
        Corners, in pixels of the input or as fractions of it.
    scores : ndarray, [N, C]
        Of each class.
    objectness : ndarray, [N], or None
        Tested against the score threshold before the classes.
    """

    boxes: FloatArray
    scores: FloatArray
    objectness: FloatArray | None = None


class Listed(NamedTuple):
    """Detections that an output lists, at most one class per row: boxes [N, 4], scores [N], classes [N]."""

    boxes: FloatArray
    scores: FloatArray
    classes: IntArray


class Given(NamedTuple):
    """Width and height of the input, and the number of images, which are not in the arrays."""

    input_size: tuple[int, int]
    images: int


class Layout(NamedTuple):
    """A layout of output tensors.

    Attributes
    ----------
    name : str
    text : str
        Models that write it.
    read : callable
        ``read(arrays, given)`` returns Candidates or Listed per image.
    fractions : bool
        Whether boxes are fractions of the input, which was stretched.
    """

    name: str
    text: str
    read: Callable[[Arrays, Given], list[Candidates] | list[Listed]]
    fractions: bool = False


def _corners(boxes: FloatArray) -> FloatArray:
    """Centers and sizes to corners."""
    half = boxes[..., 2:4] / 2
    return np.concatenate((boxes[..., :2] - half, boxes[..., :2] + half), axis=-1)


def _one(arrays: Arrays) -> FloatArray:
    """Return the only array, [B, ..., ...], in its own type, in which the tools compute."""
    (array,) = arrays.values()
    return array if array.ndim == 3 else array[None]


def _yolov8(arrays: Arrays, _: Given) -> list[Candidates]:
    rows = np.swapaxes(_one(arrays), 1, 2)
    return [Candidates(_corners(one[:, :4]), one[:, 4:]) for one in rows]


def _yolov5(arrays: Arrays, _: Given) -> list[Candidates]:
    # The product is rounded to the type of the array before it is compared, as in yolov5.
    return [Candidates(_corners(one[:, :4]), one[:, 5:] * one[:, 4:5], one[:, 4]) for one in _one(arrays)]


def _yolox(arrays: Arrays, given: Given) -> list[Candidates]:
    rows = _one(arrays)
    wide, high = given.input_size
    grid = [
        (x, y, stride) for stride in STRIDES for y in range(high // stride) for x in range(wide // stride)
    ]
    if len(grid) != rows.shape[1]:
        raise InputError("--input-size", f"fit the {rows.shape[1]:,} cells of YOLOX", got=f"{wide} x {high}")
    cells = np.array(grid, dtype=rows.dtype)
    center = (rows[..., :2] + cells[:, :2]) * cells[:, 2:]
    sides = np.exp(rows[..., 2:4]) * cells[:, 2:]
    boxes = _corners(np.concatenate((center, sides), axis=-1))
    return [Candidates(box, one[:, 5:] * one[:, 4:5]) for box, one in zip(boxes, rows, strict=True)]


def _end_to_end(arrays: Arrays, _: Given) -> list[Listed]:
    return [Listed(one[:, :4], one[:, 4], one[:, 5].astype(np.int64)) for one in _one(arrays)]


def _rtdetr_of_ultralytics(arrays: Arrays, _: Given) -> list[Listed]:
    return [Listed(_corners(one[:, :4]), one[:, 4], one[:, 5].astype(np.int64)) for one in _one(arrays)]


def _two(arrays: Arrays) -> tuple[FloatArray, FloatArray]:
    """Return boxes [B, Q, 4] and logits [B, Q, C]; boxes by name, or else because they are in [0, 1]."""
    four = [key for key, value in arrays.items() if value.shape[-1] == 4]
    named = [key for key in four if "box" in key.lower() or "dets" in key.lower()]
    chosen = (named or [key for key in four if arrays[key].min(initial=0) >= 0] or four)[0]
    boxes, logits = arrays[chosen], next(value for key, value in arrays.items() if key != chosen)
    return (boxes if boxes.ndim == 3 else boxes[None]), (logits if logits.ndim == 3 else logits[None])


def _sigmoid(values: FloatArray) -> FloatArray:
    result: FloatArray = 1 / (1 + np.exp(-np.maximum(values, -80)))  # no overflow in float32
    return result


def _detr(arrays: Arrays, _: Given) -> list[Listed]:
    boxes, logits = _two(arrays)
    # Softmax over classes and "no object", which is last; the best class of each query.
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    scores = (powers / powers.sum(axis=-1, keepdims=True))[..., :-1]
    return [
        Listed(_corners(box), one.max(axis=-1), one.argmax(axis=-1))
        for box, one in zip(boxes, scores, strict=True)
    ]


def _best_queries(boxes: FloatArray, scores: FloatArray) -> list[Listed]:
    """Return the best Q of all Q * C scores, in descending order; a query may have several classes."""
    queries, classes = scores.shape[1:]
    found = []
    for box, one in zip(_corners(boxes), scores.reshape(len(scores), -1), strict=True):
        best = np.argsort(-one, kind="stable")[:queries]
        found.append(Listed(box[best // classes], one[best], best % classes))
    return found


def _rtdetr(arrays: Arrays, _: Given) -> list[Listed]:
    boxes, logits = _two(arrays)
    return _best_queries(boxes, _sigmoid(logits))


def _rfdetr(arrays: Arrays, _: Given) -> list[Listed]:
    boxes, logits = _two(arrays)
    return _best_queries(boxes, _sigmoid(logits[..., :-1]))


def _four(arrays: Arrays, order: Sequence[int]) -> list[Listed]:
    """Read boxes [B, n, 4] with columns in an order, scores, classes, and the number of rows that count."""

    def named(word: str, axes: int) -> NDArray[Any]:
        value = next(value for key, value in arrays.items() if word in key.lower())
        return value if value.ndim == axes else value[None]

    counts = next(value for key, value in arrays.items() if "num" in key.lower()).reshape(-1)
    boxes, scores, classes = named("box", 3)[..., list(order)], named("score", 2), named("class", 2)
    return [
        Listed(box[: int(n)], score[: int(n)], label[: int(n)].astype(np.int64))
        for box, score, label, n in zip(boxes, scores, classes, counts, strict=True)
    ]


def _tensorflow(arrays: Arrays, _: Given) -> list[Listed]:
    return _four(arrays, (1, 0, 3, 2))  # y1 x1 y2 x2


def _efficient_nms(arrays: Arrays, _: Given) -> list[Listed]:
    return _four(arrays, (0, 1, 2, 3))


def _detection_output(arrays: Arrays, given: Given) -> list[Listed]:
    (array,) = arrays.values()
    rows = array.reshape(-1, 7)
    ends = np.flatnonzero(rows[:, 0] < 0)  # image -1 ends the list
    rows = rows[: ends[0]] if len(ends) else rows
    # Images without detections have no row, so their number is not in the array.
    images = max(given.images, int(rows[:, 0].max(initial=-1)) + 1)
    return [
        Listed(one[:, 3:], one[:, 2], one[:, 1].astype(np.int64) - 1)  # class 0 is the background
        for one in (rows[rows[:, 0] == image] for image in range(images))
    ]


def _mmdet(arrays: Arrays, _: Given) -> list[Listed]:
    rows = next(value for value in arrays.values() if value.shape[-1] == 5)
    labels = next(value for value in arrays.values() if value is not rows)
    rows, labels = (rows, labels) if rows.ndim == 3 else (rows[None], labels[None])
    return [
        Listed(one[:, :4], one[:, 4], label.reshape(-1).astype(np.int64))
        for one, label in zip(rows, labels, strict=True)
    ]


LAYOUTS = {
    layout.name: layout
    for layout in (
        Layout("yolov8", "YOLOv8 to YOLO12, YOLOv5u: [B, 4 + classes, N], cx cy w h", _yolov8),
        Layout("yolov5", "YOLOv5, YOLOv7: [B, N, 5 + classes], with objectness", _yolov5),
        Layout("yolox", "YOLOX as exported, not decoded: [B, N, 5 + classes]", _yolox),
        Layout(
            "end2end",
            "YOLOv10, YOLO26, nms=True: [B, N, 6], x1 y1 x2 y2 score class",
            _end_to_end,
        ),
        Layout(
            "rtdetr-ultralytics",
            "RT-DETR of ultralytics: [B, 300, 6], cx cy w h as fractions, score, class",
            _rtdetr_of_ultralytics,
            fractions=True,
        ),
        Layout("detr", "DETR: logits with no object last, and boxes", _detr, fractions=True),
        Layout(
            "rtdetr",
            "RT-DETR, D-FINE, Deformable DETR: logits and boxes",
            _rtdetr,
            fractions=True,
        ),
        Layout("rfdetr", "RF-DETR: dets and labels, last column unused", _rfdetr, fractions=True),
        Layout(
            "tensorflow",
            "TensorFlow and TFLite: boxes, scores, classes, num",
            _tensorflow,
            fractions=True,
        ),
        Layout(
            "efficient-nms",
            "TensorRT EfficientNMS: num, boxes, scores, classes",
            _efficient_nms,
        ),
        Layout(
            "detection-output",
            "OpenVINO and Caffe SSD: [1, 1, N, 7]",
            _detection_output,
            fractions=True,
        ),
        Layout("mmdet", "MMDeploy: dets [B, N, 5] and labels [B, N]", _mmdet),
    )
}
"""Layouts by name."""


def layout_of(arrays: Arrays, classes: int | None = None) -> Layout:
    """Recognize the layout of arrays; the number of classes tells DETR from RT-DETR.

    Raises
    ------
    InputError
        If none or more than one fits; the message lists them.

    Examples
    --------
    >>> output = np.zeros((1, 84, 8400))
    >>> output[:, :4] = 320
    >>> layout_of({"output0": output}).name
    'yolov8'
    """
    fitting = sorted(set(_fitting(arrays, classes)))
    if len(fitting) == 1:
        return LAYOUTS[fitting[0]]
    shapes = {key: list(value.shape) for key, value in arrays.items()}
    raise InputError(
        "arrays",
        "have a known layout",
        got=f"{shapes}" + (f", which fits {short_list(fitting)}" if fitting else ""),
        cause=f"--layout chooses one of {', '.join(LAYOUTS)}; anchors that are not decoded are not read",
    )


def _fitting(arrays: Arrays, classes: int | None) -> list[str]:
    """Return the names of the layouts that arrays fit."""
    names = " ".join(arrays).lower()
    if len(arrays) == 4 and all(word in names for word in ("box", "score", "class", "num")):
        boxes = next(value for key, value in arrays.items() if "box" in key.lower())
        return ["tensorflow" if boxes.max(initial=0) <= 2 else "efficient-nms"]
    if len(arrays) == 2:
        first, second = arrays.values()
        if any(
            one.shape == two.shape[:-1] and two.shape[-1] == 5
            for one, two in ((first, second), (second, first))
        ):
            return ["mmdet"]
        if first.shape[:-1] != second.shape[:-1] or 4 not in (first.shape[-1], second.shape[-1]):
            return []
        if "dets" in names and "labels" in names:
            return ["rfdetr"]
        # The logits of DETR have a column for no object, those of its successors do not.
        _, logits = _two(arrays)
        by_columns = {None: ["detr", "rtdetr"], logits.shape[-1]: ["rtdetr"], logits.shape[-1] - 1: ["detr"]}
        return by_columns.get(classes, [])
    if len(arrays) != 1:
        return []
    (array,) = arrays.values()
    if array.ndim == 4 and array.shape[-1] == 7:
        return ["detection-output"]
    if array.ndim not in (2, 3):
        return []
    return _fitting_one(array if array.ndim == 3 else array[None], classes)


def _fitting_one(array: FloatArray, classes: int | None) -> list[str]:
    """Return the layouts of one array [B, R, C]: pixels exceed 2, scores are in [0, 1]."""
    if array.dtype.kind not in "fiu" or not array.size:
        return []
    found = []
    rows, columns = array.shape[1:]

    def are_scores(values: FloatArray) -> bool:
        return bool(values.size and values.min() >= 0 and values.max() <= 1)

    if rows >= 5 and rows < columns and are_scores(array[:, 4:]) and array[:, :4].max() > 2:
        found.append("yolov8")
    if columns == 6 and are_scores(array[..., 4]) and (array[..., 5] == np.round(array[..., 5])).all():
        found.append("end2end" if array[..., :4].max(initial=0) > 2 else "rtdetr-ultralytics")
    elif columns >= 6 and columns < rows and classes in (None, columns - 5) and are_scores(array[..., 4:]):
        # Decoded sizes are positive pixels; YOLOX's logarithms are often negative.
        found.append("yolox" if array[..., 2:4].min() < 0 else "yolov5")
    return found
