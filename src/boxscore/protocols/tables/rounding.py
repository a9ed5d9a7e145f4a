"""Define ``[rounding]``: how numbers of detections change before anything else."""

from __future__ import annotations

import functools
import math
from typing import Any

from boxscore._utils import checks
from boxscore._utils.text import counted
from boxscore.protocols.acting import Does, Refusal, Scope, prepares, refused_in_parts
from boxscore.protocols.fields import Check, Rules, Step, Word, flag, rule


def _decimals(value: Any, name: str) -> int | None:
    return None if value in (None, "none") else checks.whole_number(value, 0, name=name)


_DECIMALS = Check('whole number, "none"', _decimals)


def _decimals_text(protocol: Any) -> str:
    """Write the decimals of scores and boxes, ``all`` for what is not rounded; nothing where neither is."""
    decimals = (protocol.rounding.scores, protocol.rounding.boxes)
    return (
        "" if decimals == (None, None) else ",".join("all" if one is None else str(one) for one in decimals)
    )


def _rounding(protocol: Any) -> str:
    """Write which numbers are rounded, and to how many decimals."""
    decimals = {"scores": protocol.rounding.scores, "boxes": protocol.rounding.boxes}
    rounded = [
        f"{counted(count, 'decimal')} of {name}" for name, count in decimals.items() if count is not None
    ]
    return ", ".join(rounded) or "as given"


def _scales(protocol: Any) -> bool:
    return bool(protocol.rounding.stretch_scores)


_refused_in_parts = functools.partial(
    refused_in_parts,
    _scales,
    "scores are stretched",
    "the least and the largest score are known when parts are merged: evaluate all at once",
)


_STRETCHING_REFUSED = (
    Refusal("ranges", _scales),
    Refusal(
        "batches",
        _scales,
        "be false for an Evaluator",
        got="true",
        cause="the least and the largest score are known at the end: evaluate a results file",
    ),
    _refused_in_parts(
        "matching.ranked_files", "be true", lambda protocol: not protocol.matching.ranked_files
    ),
    _refused_in_parts("matching.per_class", "be true", lambda protocol: not protocol.matching.per_class),
    _refused_in_parts(
        "matching.equal_scores",
        "be 'image_order' or 'file_order'",
        lambda protocol: protocol.matching.equal_scores == "last_first",
    ),
    _refused_in_parts(
        "matching.cap_scope",
        "be 'class' or of an image",
        lambda protocol: protocol.matching.caps_data_set,
    ),
    _refused_in_parts(
        "matching.score_threshold",
        "be left out",
        lambda protocol: protocol.matching.score_threshold > -math.inf,
    ),
    _refused_in_parts("group.treatment", "be 'count'", lambda protocol: protocol.group.treatment != "count"),
    _refused_in_parts("ignore.regions", "be left out", lambda protocol: protocol.ignore.regions != ""),
    _refused_in_parts("summary", "have no JI", lambda protocol: protocol.asks_for("JI"), got="'JI'"),
)


def _scores_text(protocol: Any) -> str:
    """Say that scores are not read, or are scaled; nothing where they are as given."""
    if protocol.matching.scores != "given":
        return str(protocol.matching.scores)
    return "stretched" if protocol.rounding.stretch_scores else ""


class RoundingRules(Rules):
    """What detections lose before anything else, as in tools that write them to text and read them again."""

    PREFIX = "rounding."

    # decimals
    scores: int | None = rule(
        None,
        check=_DECIMALS,
        doc="Decimals that scores are rounded to.",
        word=Word(
            "decimals", text=_decimals_text, note="of scores and boxes; left out where neither is rounded"
        ),
        step=Step("rounding", "tables", _rounding),
        scope=prepares(Scope.ROW),
        refuses=(Refusal("cuts", lambda protocol: protocol.rounding.scores is not None),),
    )
    boxes: int | None = rule(
        None,
        check=_DECIMALS,
        doc="Decimals that the corners of boxes are rounded to.",
        step="rounding.scores",
        scope=prepares(Scope.ROW),
    )
    # stretched scores
    stretch_scores: bool = rule(
        False,
        check=flag,
        doc="Whether scores are stretched over [0, 1]: `(s - low) / (high - low)`, where `low` is the least "
        "score of all detections and at most 1, `high` the largest and at least 0 (WIDER FACE).",
        word=Word(
            "scores",
            text=_scores_text,
            note="`stretched` over [0, 1]; `none` where no score is read, `equal` where all count as equal",
        ),
        step=Step("scores", "tables", {False: "as given", True: "stretched over [0, 1]"}),
        scope=prepares(lambda protocol: Scope.DATA_SET if _scales(protocol) else Scope.ROW),
        refuses=_STRETCHING_REFUSED,
        does=(Does("prepare", "boxscore.extensions.crowds.stretching:stretched", _scales, 10),),
    )
