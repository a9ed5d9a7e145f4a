"""Average orientation similarity at 11 recalls (KITTI)."""

from __future__ import annotations

from boxscore.scoring.kinds.kind import Kind
from boxscore.scoring.score_levels import level_values

KIND = Kind(
    "AOS_R11",
    lambda curves, protocol: {},
    lambda curves, protocol: level_values(curves, points=11, orientation=True),
    None,
)
