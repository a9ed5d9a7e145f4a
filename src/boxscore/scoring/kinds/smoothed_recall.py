"""Recall of all objects, as SAM 3 divides."""

from __future__ import annotations

from boxscore.scoring.kinds.kind import Kind
from boxscore.scoring.phrase_counts import phrase_values

KIND = Kind(
    "smoothed_recall", lambda curves, protocol: {}, phrase_values(lambda rates: rates.all_boxes.recall), None
)
