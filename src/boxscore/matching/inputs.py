"""Whether two tables have what a protocol compares, and what stands in where it may.

Conventions
-----------
- Ground truth must have what is compared. A detection without a mask is taken for its box, as in
  pycocotools, with a warning.
- pycocotools measures mask results that carry boxes by width times height: see
  :func:`warn_of_stand_ins`.
"""

from __future__ import annotations

import dataclasses
import warnings

import numpy as np

from boxscore.data.masks import Masks
from boxscore.data.tables import BoxTable, Detections, GroundTruth
from boxscore.errors import BoxscoreWarning, InputError
from boxscore.protocols.protocol import Protocol

__all__ = [
    "needed_columns",
    "needs_keypoints",
    "needs_masks",
    "warn_of_stand_ins",
    "with_needed_columns",
]


def needs_masks(protocol: Protocol) -> bool:
    """Whether a protocol reads masks."""
    return protocol.similarity in ("mask", "boundary") or protocol.ignore.detection_area == "mask"


def needs_keypoints(protocol: Protocol) -> bool:
    """Whether a protocol reads keypoints."""
    return protocol.similarity == "keypoints"


def needed_columns(protocol: Protocol) -> list[str]:
    """Name the instance columns that a protocol reads."""
    needed = {"masks": needs_masks(protocol), "keypoints": needs_keypoints(protocol)}
    return [name for name, is_needed in needed.items() if is_needed]


def with_needed_columns(ground_truth: GroundTruth, detections: Detections, protocol: Protocol) -> Detections:
    """Return the detections with every column that the protocol reads.

    Parameters
    ----------
    ground_truth, detections : GroundTruth, Detections
        With the same vocabularies.
    protocol : Protocol
        Reads ``similarity``, ``keypoints`` and ``ignore.detection_area``.

    Returns
    -------
    Detections
        With masks made of boxes where a protocol of masks finds none.

    Raises
    ------
    InputError
        When the ground truth lacks masks or keypoints, or the detections lack keypoints.
    """
    if needs_keypoints(protocol):
        for table in (ground_truth, detections):
            _check_keypoints(table, len(protocol.keypoints.sigmas))
    if not needs_masks(protocol):
        return detections
    if protocol.similarity != "box":
        _check_masks(ground_truth)
    return _with_masks(detections)


def warn_of_stand_ins(detections: Detections, protocol: Protocol) -> None:
    """Warn where boxes are used although masks are compared.

    That is where a detection has no mask, and where area ranges measure boxes although there are masks: then
    small, medium and large differ from what detectron2 and others report, who drop the boxes first.
    """
    if protocol.similarity not in ("mask", "boundary"):
        return
    missing = len(detections) if detections.masks is None else int(detections.masks.missing.sum())
    by_boxes = protocol.ignore.detection_area == "box_or_mask" and detections.boxes_given
    if missing:
        warnings.warn(
            f"{detections.source}: {missing} detection{'s' * (missing > 1)} without a mask; boxes are taken "
            "for masks, as in pycocotools.",
            BoxscoreWarning,
            stacklevel=3,
        )
    elif by_boxes and len(detections) and len(protocol.ignore.area_ranges) > 1:
        warnings.warn(
            f"{detections.source}: the results carry boxes as well as masks, so small, medium and large are "
            "told by width times height, as in pycocotools. For the masks' own areas say "
            'ignore.detection_area = "mask" (--detection-area mask), or drop the boxes from the results.',
            BoxscoreWarning,
            stacklevel=3,
        )


def _check_masks(ground_truth: GroundTruth) -> None:
    masks = ground_truth.masks
    if len(ground_truth) and (masks is None or masks.missing.any()):
        row = 0 if masks is None else int(np.argmax(masks.missing))
        raise InputError(
            "ground truth",
            "have a mask in every row",
            got="none",
            place=f"row {row} of {ground_truth.source}" if masks is None else masks.place(row),
            cause="is it annotated with masks?",
        )


def _with_masks(detections: Detections) -> Detections:
    masks = detections.masks
    if masks is not None and not masks.missing.any():
        return detections
    rectangles = Masks.from_boxes(
        detections.boxes,
        detections.images.sizes[detections.image],
        place=lambda row: f"row {row} of {detections.source}",
    )
    return dataclasses.replace(detections, masks=rectangles if masks is None else masks.filled(rectangles))


def _check_keypoints(table: BoxTable, count: int) -> None:
    keypoints = table.keypoints
    if not len(table) or (keypoints is not None and keypoints.shape[1] == count):
        return
    what = "ground truth" if isinstance(table, GroundTruth) else "detections"
    got = "none" if keypoints is None else f"{keypoints.shape[1]}"
    cause = "" if keypoints is None else "other sigmas?"
    rule = f"have {count} keypoints in every row, one for each sigma"
    raise InputError(what, rule, got=got, place=table.source, cause=cause)
