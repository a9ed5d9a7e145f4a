"""Scores that are min-max scaled over all files: the one rule that needs every row before any other.

Conventions
-----------
- Parts of the data have their scores as given and are scaled when they are merged. So in parts nothing
  may decide a match by what scores are after it.
"""

from __future__ import annotations

import functools
import math
from typing import Any

from boxscore._utils.records import part
from boxscore.protocols.acting import Does, Refusal, Scope, prepares, refused_in_parts
from boxscore.protocols.fields import Rules, Step, Word, flag, rule


def _scales(protocol: Any) -> bool:
    return bool(protocol.rounding.stretch_scores)


_in_parts = functools.partial(
    refused_in_parts,
    _scales,
    "scores are stretched",
    "the least and the largest score are known when parts are merged: evaluate all at once",
)

_REFUSALS = (
    Refusal("ranges", _scales),
    Refusal(
        "batches",
        _scales,
        "be false for an Evaluator",
        got="true",
        cause="the least and the largest score are known at the end: evaluate a results file",
    ),
    _in_parts("matching.ranked_files", "be true", lambda protocol: not protocol.matching.ranked_files),
    _in_parts("matching.per_class", "be true", lambda protocol: not protocol.matching.per_class),
    _in_parts(
        "matching.equal_scores",
        "be 'image_order' or 'file_order'",
        lambda protocol: protocol.matching.equal_scores == "last_first",
    ),
    _in_parts(
        "matching.cap_scope",
        "be 'class' or of an image",
        lambda protocol: protocol.matching.caps_data_set,
    ),
    _in_parts(
        "matching.score_threshold",
        "be left out",
        lambda protocol: protocol.matching.score_threshold > -math.inf,
    ),
    _in_parts("group.treatment", "be 'count'", lambda protocol: protocol.group.treatment != "count"),
    _in_parts("ignore.regions", "be left out", lambda protocol: protocol.ignore.regions != ""),
    _in_parts("summary", "have no JI", lambda protocol: protocol.asks_for("JI"), got="'JI'"),
)


def _word(protocol: Any) -> str:
    """Say that scores are not read, or are scaled; nothing where they are as given."""
    if protocol.matching.scores != "given":
        return str(protocol.matching.scores)
    return "stretched" if protocol.rounding.stretch_scores else ""


@part(frozen=True)
class StretchingField(Rules):
    """Whether scores are min-max scaled."""

    stretch_scores: bool = rule(
        False,
        check=flag,
        doc="Whether scores are stretched over [0, 1]: `(s - low) / (high - low)`, where `low` is the least "
        "score of all detections and at most 1, `high` the largest and at least 0 (WIDER FACE).",
        word=Word(
            "scores",
            text=_word,
            note="`stretched` over [0, 1]; `none` where no score is read, `equal` where all count as equal",
        ),
        step=Step("scores", "tables", {False: "as given", True: "stretched over [0, 1]"}),
        scope=prepares(lambda protocol: Scope.DATA_SET if _scales(protocol) else Scope.ROW),
        refuses=_REFUSALS,
        does=(Does("prepare", "boxscore.matching.stretching:stretched", _scales, 10),),
    )
