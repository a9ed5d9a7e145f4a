"""What is too small to be there: boxes without area, and with short sides."""

from __future__ import annotations

import math
from typing import Any, Literal

from boxscore._utils.records import part
from boxscore.protocols.acting import Does, Scope, ranks
from boxscore.protocols.fields import Rules, Step, Word, choice, number, rule
from boxscore.protocols.grids import number_text

Degenerate = Literal["count", "drop", "drop_detections"]


def _least_side(protocol: Any) -> str:
    """Write how short a side may be."""
    least = protocol.boxes.least_side
    return f"sides from {number_text(least)} pixels" if least else "counted"


@part(frozen=True)
class SmallnessFields(Rules):
    """Which boxes are taken out for their size."""

    degenerate: Degenerate = rule(
        "count",
        check=choice(Degenerate),
        doc="What has no area: counted as any other; detections and ground truths whose area is not above 0 "
        "taken out (lvis-api); or detections alone, with a side that is not above 0 (Open Images).",
        word=Word("degenerate", silent="count"),
        step=Step(
            "boxes without area",
            "tables",
            {"count": "counted", "drop": "dropped", "drop_detections": "detections dropped"},
        ),
        scope=ranks(Scope.ROW),
    )
    least_side: float = rule(
        0.0,
        check=number(0, math.inf),
        doc="Ground truths with a side below this many pixels are taken out of the data; of rotated boxes "
        "and corners, a side of the rotated rectangle (mmrotate: 2).",
        word=Word("leastside", silent=0.0),
        step=Step("small objects", "tables", _least_side),
        scope=ranks(Scope.ROW),
        does=(
            Does(
                "ignore",
                "boxscore.matching.small_sides:without_small_sides",
                lambda protocol: protocol.boxes.least_side > 0,
            ),
        ),
    )
