"""Compute average precision and average recall.

- AP is the mean of the interpolated precision at recall points, or the area under the curve.
- AR is the recall of all detections, computed from class totals.
"""

from __future__ import annotations

from boxscore.protocols.protocol import Protocol
from boxscore.scoring.blocks import HeldValues, Values
from boxscore.scoring.curves import Curves, State, folds_of_ap
from boxscore.scoring.kinds import Folds, Kind, no_fields


def _fold(protocol: Protocol) -> Folds:
    return folds_of_ap(protocol.ap)


def _fields(curves: Curves, protocol: Protocol) -> State:
    return curves.computed(_fold(protocol))


def _precision(curves: Curves, protocol: Protocol) -> Values:
    """Precision at the recall points if AP is its plain mean, else AP."""
    rules = curves.rules
    pointwise = rules.interpolation == "points" and not rules.sequential_mean
    return curves.interpolated_values if pointwise else HeldValues(curves.average_precision)


def _recall(curves: Curves, protocol: Protocol) -> Values:
    return HeldValues(curves.recall)


KINDS = (
    Kind(
        "AP",
        "Average Precision  (AP)",
        _precision,
        _fold,
        _fields,
        needs_order=True,
        of_numbers=True,
        of_classes_alone=True,
    ),
    Kind(
        "AR",
        "Average Recall     (AR)",
        _recall,
        no_fields,
        of_numbers=True,
        of_classes_alone=True,
    ),
)
