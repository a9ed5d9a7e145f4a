"""The Jaccard index of crowds, counted image by image."""

from __future__ import annotations

import functools
import math
from typing import Any

from boxscore._utils.records import record
from boxscore.protocols.acting import Does, Scope, refused_in_parts, scores
from boxscore.protocols.extra_columns import ExtraColumn
from boxscore.protocols.fields import Rules, Word, list_of, number, rule, with_attributes
from boxscore.protocols.grids import number_text
from boxscore.protocols.rules.areas import one_measure


def _jaccard(protocol: Any) -> str:
    """Write the score thresholds; nothing for CrowdHuman's."""
    rules = protocol.jaccard
    return "" if rules == type(rules)() else ",".join(map(number_text, rules.score_thresholds))


def _asks(protocol: Any) -> bool:
    return bool(protocol.asks_for("JI"))


_in_parts = functools.partial(
    refused_in_parts,
    _asks,
    "the summary has JI",
    "a part holds its counts, not the overlaps to count again: evaluate all images at once",
)

_REFUSALS = (
    *one_measure(_asks, "the summary has JI"),
    _in_parts(
        "matching.cap_scope",
        "be 'class' or 'image'",
        lambda protocol: protocol.matching.cap_scope in ("image_each", "data_set_class"),
    ),
    _in_parts("ap.pool", "be 'none'", lambda protocol: protocol.ap.pool == "classes"),
)


def jaccard_areas(protocol: Any) -> list[int]:
    """Positions of the area ranges at which the summary asks for JI, ascending."""
    names = list(protocol.ignore.area_ranges)
    return sorted({names.index(row.area) for row in protocol.rows if row.metric == "JI"})


TRUTH_SHARE = ExtraColumn("truth_share", "truth", "float", asked_for=_asks, in_parts=False, most=1.0)
"""Largest share of each ground truth that lies in one ignored region, [G]."""

CROWDS = ExtraColumn(
    "crowds",
    "class_image",
    "whole",
    asked_for=lambda protocol: bool(jaccard_areas(protocol)),
    shape=lambda protocol: (
        3,
        len(jaccard_areas(protocol)),
        len(protocol.matching.iou_thresholds),
        len(protocol.jaccard.score_thresholds),
    ),
)
"""Partners, objects, detections; at A area ranges, T IoU thresholds, S confidences: [N, 3, A, T, S]. Counted
before parts are cut, since they have no overlaps."""


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
        columns=(TRUTH_SHARE, CROWDS),
        refuses=_REFUSALS,
        does=(Does("after", "boxscore.matching.crowd_shares:with_truth_shares", _asks),),
    )
