"""Mean IoU of the objects, each with what it was matched to: 0 for an object that was missed."""

from __future__ import annotations

import numpy as np

from boxscore.protocols.protocol import Protocol
from boxscore.scoring.blocks import Values
from boxscore.scoring.curves import Curves
from boxscore.scoring.kinds.kind import Kind
from boxscore.scoring.overlap_sums import overlap_sums
from boxscore.scoring.ratios import Ratios


def _values(curves: Curves, protocol: Protocol) -> Values:
    sums = overlap_sums(curves)
    return Ratios(sums, np.broadcast_to(curves.totals.positive, sums.shape))


KIND = Kind("object_iou", lambda curves, protocol: {}, _values, None, of_classes_alone=True)
