"""Average precision at 11 recalls, objects choosing anew at each (KITTI, up to October 2019)."""

from __future__ import annotations

from boxscore.scoring.kinds.kind import Kind
from boxscore.scoring.score_levels import level_values

KIND = Kind(
    "AP_R11",
    lambda curves, protocol: {},
    lambda curves, protocol: level_values(curves, points=11, orientation=False),
    None,
)
