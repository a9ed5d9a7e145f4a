"""Which scores are too low to count."""

from __future__ import annotations

import math
from typing import Any

from boxscore._utils.records import part
from boxscore.protocols.acting import Scope, ranks
from boxscore.protocols.fields import Rules, Step, Word, flag, number, rule
from boxscore.protocols.grids import number_text


def _lowest(protocol: Any) -> str:
    """Write the threshold, and whether a score equal to it counts."""
    rules = protocol.matching
    if rules.score_threshold == -math.inf:
        return "none"
    return f"{'' if rules.score_closed else 'above '}{number_text(rules.score_threshold)}"


@part(frozen=True)
class ScoreThresholdField(Rules):
    """Below which score a detection is left out."""

    score_threshold: float = rule(
        -math.inf,
        check=number(-math.inf, math.inf),
        doc="Detections below are left out before they are ranked.",
        word=Word("conf", silent=-math.inf, note="left out where every score counts"),
        step=Step("score threshold", "ranking", _lowest),
        scope=ranks(Scope.ROW),
    )
    score_closed: bool = rule(
        True,
        check=flag,
        doc="Whether a score equal to the threshold is kept (`>=`), or only one above it (`>`), as in tools "
        "that write `conf > threshold` (Ultralytics, torchvision).",
        word=Word(
            "keep", silent=True, text={False: ">"}, note="`>` where a score equal to `conf` is left out"
        ),
        step="matching.score_threshold",
        scope=ranks(Scope.ROW),
    )
