"""Precision of all detections together: true positives of all classes and images over what is counted."""

from __future__ import annotations

from boxscore.protocols.protocol import Protocol
from boxscore.scoring.blocks import Values
from boxscore.scoring.curves import Curves
from boxscore.scoring.kinds.kind import Kind
from boxscore.scoring.ratios import Ratios


def _values(curves: Curves, protocol: Protocol) -> Values:
    return Ratios(curves.totals.recalled, curves.totals.counted)


KIND = Kind("precision", lambda curves, protocol: {}, _values, lambda protocol: {}, of_classes_alone=True)
