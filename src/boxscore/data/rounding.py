"""Detections as a file of text would keep them."""

from __future__ import annotations

import dataclasses

import numpy as np

from boxscore.data.tables import Detections

__all__ = ["rounded"]


def rounded(detections: Detections, *, scores: int | None, boxes: int | None) -> Detections:
    """Round scores and the corners of boxes to so many decimals, half to even; None leaves them as they are.

    Parameters
    ----------
    detections : Detections
    scores, boxes : int or None
        Decimals.

    Returns
    -------
    Detections
        With sizes from the rounded corners; the given table when nothing is rounded.
    """
    if scores is not None:
        detections = dataclasses.replace(detections, scores=np.round(detections.scores, scores))
    if boxes is not None:
        corners = np.round(detections.boxes, boxes)
        sizes = corners[:, 2:] - corners[:, :2]
        detections = dataclasses.replace(detections, boxes=corners, sizes=sizes)
    return detections
