"""Whether detections are ranked by scores, or counted without any."""

from __future__ import annotations

from typing import Any, Literal

from boxscore._utils.records import part
from boxscore.protocols.acting import Does, Refusal, Scope, prepares
from boxscore.protocols.extra_columns import ExtraColumn
from boxscore.protocols.fields import Rules, Step, choice, rule

Scores = Literal["given", "none", "equal"]

NEED_ORDER = ("AP", "FROC", "MR", "JI", "AP_R40", "AP_R11", "AOS_R40", "AOS_R11")
"""Kinds of summary metrics that rank detections."""

ORDERLESS = ("AP_lowest", "AP_expected", "AP_highest")
"""Kinds that are of all orders of the detections."""


PAIR_IOU = ExtraColumn(
    "pair_iou",
    "pair",
    "float",
    asked_for=lambda protocol: any(map(protocol.asks_for, ("mean_iou", "object_iou"))),
    most=1.0,
)
"""Overlap of each pair, [P]: parts have no other."""


def _none(protocol: Any) -> bool:
    return bool(protocol.matching.scores == "none")


def _not_given(protocol: Any) -> bool:
    return bool(protocol.matching.scores != "given")


def _refused(field: str, rule: str, wrong: Any, when: Any = _none) -> Refusal:
    """Refuse a value of another field where detections are not ranked, or not by scores."""
    asked = f"{rule} where detections have no scores"
    return Refusal("together", lambda protocol: when(protocol) and wrong(protocol), asked, field)


@part(frozen=True)
class ScoresField(Rules):
    """Whether scores are read."""

    scores: Scores = rule(
        "given",
        check=choice(Scores),
        doc="Whether detections are ranked by their scores; or no score is read: boxes are counted, and no "
        "order decides anything (what language models write); or no score is read and all are taken for "
        "equal, so that the order of the file decides (tools that write one score for every box).",
        step=Step(
            "scores of detections", "tables", {"given": "as given", "none": "not read", "equal": "all equal"}
        ),
        scope=prepares(Scope.ROW),
        columns=(PAIR_IOU,),
        does=(Does("after", "boxscore.scoring.overlap_sums:with_pair_iou", PAIR_IOU.asked_for),),
        refuses=(
            _refused("matching.max_detections", "be [] (all)", lambda p: p.matching.max_detections),
            *(
                _refused(field, rule, wrong, _not_given)
                for field, rule, wrong in (
                    (
                        "matching.score_threshold",
                        "be -inf",
                        lambda p: p.matching.score_threshold > float("-inf"),
                    ),
                    ("matching.ranked_files", "be false", lambda p: p.matching.ranked_files),
                    ("rounding.scores", "be left out", lambda p: p.rounding.scores is not None),
                    ("rounding.stretch_scores", "be false", lambda p: p.rounding.stretch_scores),
                    ("ap.score_steps", "be 0", lambda p: p.ap.score_steps),
                )
            ),
            Refusal(
                "together",
                lambda protocol: _none(protocol) and any(map(protocol.asks_for, NEED_ORDER)),
                "have no metric that ranks detections (AP, FROC, MR, JI) where they have no scores",
                field="summary",
                got="one",
                cause="AP_lowest, AP_expected and AP_highest are of all orders",
            ),
            Refusal(
                "together",
                lambda protocol: (
                    any(map(protocol.asks_for, ORDERLESS))
                    and protocol.ap.interpolation not in ("points", "area")
                ),
                'be "points" or "area" for AP over all orders',
                field="ap.interpolation",
            ),
            Refusal("ranges", _not_given),
            Refusal("cuts", _not_given),
        ),
    )
