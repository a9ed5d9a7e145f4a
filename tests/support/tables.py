"""Tables made of tables."""

from __future__ import annotations

from typing import Any

import boxscore
from boxscore.suppression.detections import nms_detections


def suppressed(detections: boxscore.Detections, **options: Any) -> boxscore.Detections:
    """Return the table that non-maximum suppression leaves."""
    return nms_detections(detections, **options).apply(detections)
