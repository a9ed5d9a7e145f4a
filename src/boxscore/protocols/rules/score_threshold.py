"""Which scores are too low to count."""

from __future__ import annotations

import math

from boxscore._utils.records import part
from boxscore.protocols.acting import Scope, ranks
from boxscore.protocols.fields import Rules, Step, Word, number, rule

__all__ = ["ScoreThresholdField"]


@part(frozen=True)
class ScoreThresholdField(Rules):
    """Below which score a detection is left out."""

    score_threshold: float = rule(
        -math.inf,
        check=number(-math.inf, math.inf),
        doc="Detections below are left out before they are ranked.",
        word=Word("conf", silent=-math.inf, note="left out where every score counts"),
        step=Step("score threshold", "ranking", {-math.inf: "none"}),
        scope=ranks(Scope.ROW),
    )
