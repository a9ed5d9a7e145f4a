"""Recall of all objects together: true positives of all classes and images over the objects."""

from __future__ import annotations

import numpy as np

from boxscore.protocols.protocol import Protocol
from boxscore.scoring.blocks import Values
from boxscore.scoring.curves import Curves
from boxscore.scoring.kinds.kind import Kind
from boxscore.scoring.ratios import Ratios


def _values(curves: Curves, protocol: Protocol) -> Values:
    totals = curves.totals
    objects = np.broadcast_to(totals.positive, totals.recalled.shape)
    return Ratios(totals.recalled, objects)


KIND = Kind("recall", lambda curves, protocol: {}, _values, lambda protocol: {}, of_classes_alone=True)
