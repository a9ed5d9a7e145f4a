"""The Jaccard index of crowds, counted image by image."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from boxscore._utils.records import record
from boxscore.protocols.acting import Refusal, Scope, scores
from boxscore.protocols.fields import Rules, Word, list_of, number, rule, with_attributes
from boxscore.protocols.grids import number_text

__all__ = ["JaccardRules"]


def _jaccard(protocol: Any) -> str:
    """Write the score thresholds; nothing for CrowdHuman's."""
    rules = protocol.jaccard
    return "" if rules == type(rules)() else ",".join(map(number_text, rules.score_thresholds))


def _in_parts(field: str, rule: str, wrong: Callable[[Any], bool]) -> Refusal:
    return Refusal(
        "parts",
        lambda protocol: protocol.asks_for("JI") and wrong(protocol),
        f"{rule} in parts where the summary has JI",
        field=field,
        cause="a part holds its counts, not the overlaps to count again: evaluate all images at once",
    )


_REFUSALS = (
    Refusal(
        "together",
        lambda protocol: protocol.asks_for("JI") and protocol.ignore.range_by_range,
        'be "ignore", and ignore.height_slack 0, where the summary has JI',
        field="ignore.outside",
    ),
    _in_parts(
        "matching.cap_scope",
        "be 'class' or 'image'",
        lambda protocol: protocol.matching.cap_scope in ("image_each", "data_set_class"),
    ),
    _in_parts("ap.pool", "be 'none'", lambda protocol: protocol.ap.pool == "classes"),
)


@with_attributes
@record(frozen=True)
class JaccardRules(Rules):
    """At which confidences the Jaccard index of crowds is tried."""

    PREFIX = "jaccard."

    score_thresholds: tuple[float, ...] = rule(
        tuple(1e-1 * i for i in range(10)),
        check=list_of(number(-math.inf, math.inf), "a list", ordered=True),
        doc="Detections above each are matched; JI is the best of the results.",
        word=Word("ji", text=_jaccard, note="the score thresholds; left out for CrowdHuman's"),
        scope=scores(Scope.CLASS),
        refuses=_REFUSALS,
    )
