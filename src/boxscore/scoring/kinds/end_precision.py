"""Precision at the ends of curves, of classes where it is above 0 (Rex-Omni on COCO)."""

from __future__ import annotations

from boxscore.scoring.curve_ends import end_values
from boxscore.scoring.kinds.kind import Kind

KIND = Kind("end_precision", lambda curves, protocol: {}, end_values("precision"), None)
