"""Clip boxes to their images.

References
----------
CrowdDet, ``APMRToolkits/image.py``.
"""

from __future__ import annotations

import dataclasses
from typing import TypeVar

import numpy as np

from boxscore._utils import checks
from boxscore._utils.array_types import FloatArray
from boxscore.data.tables import BoxTable, Detections, GroundTruth
from boxscore.errors import InputError
from boxscore.protocols.protocol import Protocol

Table = TypeVar("Table", bound=BoxTable)


def clipped(
    ground_truth: GroundTruth, detections: Detections, protocol: Protocol, share: bool
) -> tuple[GroundTruth, Detections]:
    """Clip the boxes of both tables to their images, and recompute areas of ground truths."""
    sizes = _sizes(ground_truth, detections)
    return _clipped(ground_truth, sizes), _clipped(detections, sizes)


def _sizes(ground_truth: GroundTruth, detections: Detections) -> FloatArray:
    """Return width and height of every image [I, 2]; raise if they are unknown for one with detections."""
    sizes = np.array(ground_truth.images.sizes, dtype=np.float64)
    # Fill missing sizes from columns of the detections, [D, 2].
    if {"image_width", "image_height"} <= set(detections.columns):
        given = np.stack(
            [
                np.asarray(detections.columns[name], dtype=np.float64)
                for name in ("image_width", "image_height")
            ],
            axis=1,
        )
        missing = np.isnan(sizes[detections.image]).any(axis=1)
        sizes[detections.image[missing]] = given[missing]
    # Raise if the size of an image with detections is still unknown.
    unknown = np.asarray(np.isnan(sizes).any(axis=1))
    if len(detections) and unknown[detections.image].any():
        image = int(detections.image[np.argmax(unknown[detections.image])])
        raise InputError(
            "an image",
            "have a known size where the protocol clips boxes to it",
            got=repr(ground_truth.images.ids.tolist()[image]),
            place=detections.source,
            cause=f"add width and height to each ID, or {checks.GIVE_SIZES}",
        )
    return sizes


def _clipped(table: Table, sizes: FloatArray) -> Table:
    limit = np.where(np.isnan(sizes), np.inf, sizes)[table.image]
    corners = table.boxes.copy()
    corners[:, :2] = np.minimum(np.maximum(corners[:, :2], 0), limit - 1)
    corners[:, 2:] = np.maximum(np.minimum(corners[:, 2:], limit), 0)
    sides = corners[:, 2:] - corners[:, :2]
    changes = {"area": sides.prod(axis=1)} if isinstance(table, GroundTruth) else {}
    return dataclasses.replace(table, boxes=corners, sizes=sides, **changes)
