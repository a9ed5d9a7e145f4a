"""Average recall: the recall that all detections reach, a total of whole classes."""

from __future__ import annotations

from boxscore.scoring.blocks import HeldCells
from boxscore.scoring.kinds.kind import Kind

KIND = Kind(
    "AR",
    draw=lambda curves, protocol: {},
    values=lambda curves, protocol: HeldCells(curves.recall),
    fold=lambda protocol: {},
    bounded=True,
    of_numbers=True,
)
