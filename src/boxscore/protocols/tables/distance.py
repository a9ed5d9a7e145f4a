"""Define ``[distance]``: how far apart two objects may be, where distances decide."""

from __future__ import annotations

from typing import Any, Literal

from boxscore.protocols.acting import Scope, measures
from boxscore.protocols.fields import Reads, Rules, Step, choice, number, rule
from boxscore.protocols.grids import number_text

DistanceAnchor = Literal["centre", "point"]


def _largest(protocol: Any) -> str:
    """Write the scale."""
    return f"similarity 0 at {number_text(protocol.distance.largest)} pixels"


def _points(protocol: Any) -> tuple[str, ...]:
    """Name the column of points, where they are compared."""
    compared = protocol.similarity in ("distance", "point_in_box", "point_in_mask")
    uses_points = compared and protocol.distance.anchor == "point"
    return ("point",) if uses_points else ()


class DistanceRules(Rules):
    """How far apart two objects may be, where distances decide."""

    PREFIX = "distance."

    largest: float = rule(
        100.0,
        check=number(0, 1e9, open_low=True),
        doc="The distance, in the unit of the coordinates, at which the similarity is 0: it is "
        "1 - d / largest, so a threshold of 0.75 is a quarter of this. The distance itself decides "
        "whether it is reached.",
        step=Step("scale of distances", "overlaps", _largest),
        scope=measures(Scope.ROW),
    )
    anchor: DistanceAnchor = rule(
        "centre",
        check=choice(DistanceAnchor),
        doc="What distances are between, and which point of a detection lies in a box or mask: the centre of "
        "its box, or the key or column `point`, x and y.",
        step="distance.largest",
        scope=measures(Scope.ROW),
        reads=Reads("rows", _points),
    )
