"""Detections rounded as a text file would keep them."""

from __future__ import annotations

import dataclasses

import numpy as np

from boxscore.data.tables import Detections

__all__ = ["rounded"]


def rounded(detections: Detections, *, scores: int | None, boxes: int | None) -> Detections:
    """Round scores and box corners to a number of decimals, half to even; None leaves them as they are."""
    if scores is not None:
        detections = detections.replaced(scores=np.round(detections.scores, scores))
    if boxes is not None:
        corners = np.round(detections.boxes, boxes)
        sizes = corners[:, 2:] - corners[:, :2]
        detections = dataclasses.replace(detections, boxes=corners, sizes=sizes)
    return detections
