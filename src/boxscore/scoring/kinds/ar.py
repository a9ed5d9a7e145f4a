"""Average recall: the recall that all detections reach, a total of whole classes."""

from __future__ import annotations

from boxscore.scoring.blocks import HeldValues
from boxscore.scoring.kinds.kind import Kind

KIND = Kind(
    "AR",
    compute=lambda curves, protocol: {},
    values=lambda curves, protocol: HeldValues(curves.recall),
    fold=lambda protocol: {},
    of_numbers=True,
    of_classes_alone=True,
)
