"""Average precision at 40 recalls, objects choosing anew at each (KITTI, from October 2019)."""

from __future__ import annotations

from boxscore.scoring.kinds.kind import Kind
from boxscore.scoring.score_levels import level_values

KIND = Kind(
    "AP_R40",
    lambda curves, protocol: {},
    lambda curves, protocol: level_values(curves, points=40, orientation=False),
    None,
)
