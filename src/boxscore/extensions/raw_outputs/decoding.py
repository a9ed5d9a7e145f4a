"""Decode output tensors: read the layout, apply thresholds and NMS, and map boxes back to the images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from boxscore._utils import checks
from boxscore._utils.array_types import FloatArray
from boxscore.errors import InputError
from boxscore.extensions.raw_outputs.layouts import (
    LAYOUTS,
    Arrays,
    Candidates,
    Given,
    Layout,
    Listed,
    layout_of,
)
from boxscore.extensions.raw_outputs.resizing import Kind, letterbox
from boxscore.suppression.hard import batched_nms

MOST_CANDIDATES = 30_000
"""Number of candidates per image that enter NMS, as in ultralytics and yolov5."""


def decode_outputs(
    arrays: Any,
    sizes: Sequence[tuple[float, float]],
    input_size: tuple[int, int],
    *,
    layout: str = "auto",
    classes: int | None = None,
    resizing: Kind | None = None,
    score_threshold: float = 0.001,
    iou_threshold: float = 0.7,
    multi_label: bool = True,
    max_detections: int | None = 300,
    clip: bool = True,
) -> list[Listed]:
    """Decode the output of a network into detections in pixels of the original images.

    The defaults are those of validation in ultralytics.

    Parameters
    ----------
    arrays : ndarray, or mapping of str to ndarray
        The outputs, with a batch axis; without one for a single image.
    sizes : sequence of (float, float), [B]
        Width and height of each original image.
    input_size : (int, int)
        Width and height of the input of the network.
    layout : str, default "auto"
        One of the names in ``LAYOUTS``; ``"auto"`` recognizes it.
    classes : int, optional
        Number of classes, which tells DETR from RT-DETR.
    resizing : {"ultralytics", "yolov5", "corner", "stretch"}, optional
        How images became the input. Default: ``yolov5`` for that layout, ``corner`` for ``yolox``,
        ``stretch`` for layouts with fractions, else ``ultralytics``.
    score_threshold : float, default 0.001
        Scores must exceed it.
    iou_threshold : float, default 0.7
        Of NMS, where the layout needs it.
    multi_label : bool, default True
        Whether a candidate is a detection of each class above the threshold, or of its best class only.
    max_detections : int, optional, default 300
        Number of detections per image to keep: those with the highest scores.
    clip : bool, default True
        Clip boxes in pixels to the image; fractions are not clipped.

    Returns
    -------
    list of Listed, [B]
        ``boxes, scores, classes`` of each image, in descending order of scores; DETR in order of queries.

    Raises
    ------
    InputError
        If the layout is unknown or ambiguous, a number is not finite, or the number of sizes differs.

    Examples
    --------
    >>> output = np.array([[[10.0, 20, 30, 40, 0.9, 2]]])
    >>> decode_outputs(output, [(200, 100)], (100, 100), layout="end2end")[0].boxes.tolist()
    [[20.0, 0.0, 60.0, 30.0]]
    """
    named: Arrays = arrays if hasattr(arrays, "items") else {"output": arrays}
    named = {key: checks.any_array(value, name=key) for key, value in named.items()}
    for key, value in named.items():
        if value.dtype.kind not in "fiu" or value.ndim == 0:
            raise InputError(key, "be an array of numbers", got=f"{value.dtype}, shape {list(value.shape)}")
        if not np.isfinite(value).all():
            place = np.argwhere(~np.isfinite(value))[0].tolist()
            raise InputError(key, "have finite numbers", got=str(value[tuple(place)]), place=f"index {place}")
    chosen = (
        layout_of(named, classes)
        if layout == "auto"
        else LAYOUTS[checks.one_of(layout, list(LAYOUTS), name="layout")]
    )
    threshold = checks.number_between(score_threshold, 0, 1, name="score_threshold")
    limit = checks.number_between(iou_threshold, 0, 1, name="iou_threshold")
    if max_detections is not None:
        checks.whole_number(max_detections, 1, name="max_detections")
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            outputs: Sequence[Candidates | Listed] = chosen.read(named, Given(input_size, len(sizes)))
    except InputError:
        raise
    except (ValueError, IndexError, StopIteration) as error:
        shapes = {key: list(value.shape) for key, value in named.items()}
        raise InputError(f"arrays of {chosen.name}", f"be {chosen.text}", got=str(shapes)) from error
    if len(outputs) != len(sizes):
        raise InputError(
            "image sizes (one per id)", f"be {len(outputs)}, as the images in the arrays", got=len(sizes)
        )
    found = []
    for one, size in zip(outputs, sizes, strict=True):
        if isinstance(one, Candidates):
            listed = _suppressed(one, chosen, threshold, limit, multi_label=multi_label)
        else:
            above = one.scores > threshold
            listed = Listed(one.boxes[above], one.scores[above], one.classes[above])
        # The highest scores, in the order of the output.
        top = np.sort(np.argsort(-listed.scores, kind="stable")[:max_detections])
        corners, scores = (column[top].astype(np.float64) for column in (listed.boxes, listed.scores))
        boxes = _in_image(corners, chosen, size, input_size, resizing, clip=clip)
        found.append(Listed(boxes, scores, listed.classes[top]))
    return found


def _suppressed(
    one: Candidates, layout: Layout, threshold: float, limit: float, *, multi_label: bool
) -> Listed:
    """Apply the threshold and NMS within classes."""
    boxes, scores = one.boxes, one.scores
    if one.objectness is not None:  # tested first, alone
        present = one.objectness > threshold
        boxes, scores = boxes[present], scores[present]
    if multi_label:
        rows, classes = np.nonzero(scores > threshold)
    else:
        classes = scores.argmax(axis=1)
        best = scores[np.arange(len(scores)), classes]
        rows = np.flatnonzero(best >= threshold if layout.name == "yolox" else best > threshold)
        classes = classes[rows]
    values = scores[rows, classes]
    order = np.argsort(-values, kind="stable")[:MOST_CANDIDATES]
    rows, classes, values = rows[order], classes[order], values[order]
    kept = batched_nms(boxes[rows].astype(np.float64), values.astype(np.float64), classes, limit)
    return Listed(boxes[rows][kept], values[kept], classes[kept])


def _in_image(
    boxes: FloatArray,
    layout: Layout,
    size: tuple[float, float],
    input_size: tuple[int, int],
    resizing: Kind | None,
    *,
    clip: bool,
) -> FloatArray:
    """Map corners back to the original image."""
    if layout.fractions and resizing in (None, "stretch"):
        return np.asarray(boxes * np.tile(size, 2))
    if layout.fractions:
        boxes = boxes * np.tile(input_size, 2)
    usual: dict[str, Kind] = {"yolov5": "yolov5", "yolox": "corner"}
    kind = resizing or usual.get(layout.name, "ultralytics")
    boxes = letterbox(size, input_size, kind).back(boxes)
    return np.clip(boxes, 0, np.tile(size, 2)) if clip and kind != "corner" else boxes
