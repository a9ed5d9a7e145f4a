"""Prepare both tables before anything is ranked or compared: round, lengthen, and what rules do beyond that.

Conventions
-----------
- Everything here follows from a table alone and the protocol; what depends on pairs is decided in matching.
- Rows keep their order.
"""

from __future__ import annotations

import dataclasses
from typing import TypeVar

import numpy as np

from boxscore._utils.array_types import FloatArray
from boxscore.data.scores import COUNTED
from boxscore.data.tables import BoxTable, Detections, GroundTruth
from boxscore.errors import InputError
from boxscore.matching.points import prepared_at
from boxscore.protocols.protocol import Protocol

Table = TypeVar("Table", bound=BoxTable)


def prepared(
    ground_truth: GroundTruth, detections: Detections, protocol: Protocol, *, share: bool = False
) -> tuple[GroundTruth, Detections]:
    """Return both tables, aligned, as the protocol evaluates them.

    With ``share`` the tables hold only some of the images, and scores are not scaled yet.
    """
    # Rules that must see the numbers as given come first.
    for prepare in prepared_at(protocol, early=True):
        ground_truth, detections = prepare(ground_truth, detections, protocol, share)
    # Drop the scores if the protocol does not read them; else they must be there.
    if protocol.matching.scores != "given":
        detections = detections.without_scores()
    elif not detections.scored:
        raise InputError(
            "the detections",
            f"have scores for the protocol {protocol.name}",
            got="none",
            place=detections.source,
            cause=COUNTED,
        )
    # Round the detections as a text file would, then lengthen the boxes of both sides.
    rounding = protocol.rounding
    if rounding.scores is not None or rounding.boxes is not None:
        detections = rounded(detections, scores=rounding.scores, boxes=rounding.boxes)
    if protocol.boxes.longer_sides:
        longer = protocol.boxes.longer_sides
        ground_truth, detections = _longer(ground_truth, longer), _longer(detections, longer)
    # All other rules see tables with their final numbers.
    for prepare in prepared_at(protocol, early=False):
        ground_truth, detections = prepare(ground_truth, detections, protocol, share)
    return ground_truth, detections


def _longer(table: Table, pixels: float) -> Table:
    """Add pixels to the width and height of boxes."""
    corners, sides = table.boxes.copy(), table.sizes + pixels
    corners[:, 2:] += pixels
    changes = {"area": sides.prod(axis=1)} if isinstance(table, GroundTruth) else {}
    return dataclasses.replace(table, boxes=corners, sizes=sides, **changes)


def rounded(detections: Detections, *, scores: int | None, boxes: int | None) -> Detections:
    """Round scores and box corners to a number of decimals, half to even; None leaves them as they are."""
    if scores is not None:
        detections = detections.replaced(scores=rounded_values(detections.scores, scores))
    if boxes is not None:
        corners = rounded_values(detections.boxes, boxes)
        sizes = corners[:, 2:] - corners[:, :2]
        detections = dataclasses.replace(detections, boxes=corners, sizes=sizes)
    return detections


def rounded_values(values: FloatArray, decimals: int) -> FloatArray:
    """Round; what is so large that NumPy's product overflows has no decimals."""
    with np.errstate(over="ignore", invalid="ignore"):
        near = np.round(values, decimals)
    return np.where(np.isfinite(near), near, values)
