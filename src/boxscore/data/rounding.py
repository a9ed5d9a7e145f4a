"""Round detections as a text file does."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from boxscore.data.tables import Detections


def rounded(detections: Detections, *, scores: int | None, boxes: int | None) -> Detections:
    """Round scores and box corners to a number of decimals, half to even; None leaves them as they are."""
    if scores is not None:
        detections = detections.replaced(scores=rounded_values(detections.scores, scores))
    if boxes is not None:
        corners = rounded_values(detections.boxes, boxes)
        sizes = corners[:, 2:] - corners[:, :2]
        detections = dataclasses.replace(detections, boxes=corners, sizes=sizes)
    return detections


def rounded_values(values: NDArray[np.float64], decimals: int) -> NDArray[np.float64]:
    """Round; what is so large that NumPy's product overflows has no decimals."""
    with np.errstate(over="ignore", invalid="ignore"):
        near = np.round(values, decimals)
    return np.where(np.isfinite(near), near, values)
