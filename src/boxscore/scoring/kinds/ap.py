"""Average precision: the mean of the interpolated precision at recall points, or the area under the curve."""

from __future__ import annotations

from boxscore.protocols.protocol import Protocol
from boxscore.scoring.blocks import HeldValues, Values
from boxscore.scoring.curves import Curves, folds_of_ap
from boxscore.scoring.folding import State
from boxscore.scoring.kinds.kind import Folds, Kind


def _fold(protocol: Protocol) -> Folds:
    return folds_of_ap(protocol.ap)


def _fields(curves: Curves, protocol: Protocol) -> State:
    return curves.computed(_fold(protocol))


def _values(curves: Curves, protocol: Protocol) -> Values:
    """Precision at the recall points where AP is its plain mean, else AP."""
    rules = curves.rules
    pointwise = rules.interpolation == "points" and not rules.sequential_mean
    return curves.interpolated_values if pointwise else HeldValues(curves.average_precision)


KIND = Kind("AP", _fields, _values, _fold, of_numbers=True, of_classes_alone=True)
