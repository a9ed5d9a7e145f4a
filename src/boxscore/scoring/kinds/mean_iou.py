"""Mean IoU of the matches: how well the boxes fit that were found.

Objects that nothing matched do not enter; without a true positive it is undefined.
"""

from __future__ import annotations

from boxscore.protocols.protocol import Protocol
from boxscore.scoring.blocks import Values
from boxscore.scoring.curves import Curves
from boxscore.scoring.kinds.kind import Kind
from boxscore.scoring.overlap_sums import overlap_sums
from boxscore.scoring.ratios import Ratios


def _values(curves: Curves, protocol: Protocol) -> Values:
    return Ratios(overlap_sums(curves), curves.totals.recalled)


KIND = Kind("mean_iou", lambda curves, protocol: {}, _values, None, of_classes_alone=True)
