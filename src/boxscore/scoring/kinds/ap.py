"""Average precision: the mean of the interpolated precision at recall points, or the area under the curve."""

from __future__ import annotations

from boxscore.protocols.protocol import Protocol
from boxscore.scoring.blocks import Cells, HeldCells
from boxscore.scoring.curves import Curves
from boxscore.scoring.folding import JOINED, LARGEST, State
from boxscore.scoring.kinds.kind import Folds, Kind

__all__ = ["KIND"]


def _fold(protocol: Protocol) -> Folds:
    if protocol.ap.interpolation == "points":
        return {"best": LARGEST}
    return {} if protocol.ap.score_steps else {"counted": JOINED}


def _draw(curves: Curves, protocol: Protocol) -> State:
    if protocol.ap.interpolation == "points":
        return {"best": curves.best}
    return {} if protocol.ap.score_steps else {"counted": curves.counted_lines}


def _values(curves: Curves, protocol: Protocol) -> Cells:
    """Precision at the recall points where AP is its plain mean, else AP."""
    rules = curves.rules
    pointwise = rules.interpolation == "points" and not rules.sequential_mean
    return curves.cells if pointwise else HeldCells(curves.average_precision)


KIND = Kind("AP", _draw, _values, _fold, bounded=True, of_numbers=True)
