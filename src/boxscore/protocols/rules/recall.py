"""What recall is a share of."""

from __future__ import annotations

from typing import Literal

from boxscore._utils.records import part
from boxscore.protocols.acting import Does, Refusal, Scope, scores
from boxscore.protocols.extra_columns import ExtraColumn
from boxscore.protocols.fields import Rules, Step, Word, choice, rule

RecallOver = Literal["counted", "all"]


TAKES_PART = ExtraColumn(
    "takes_part", "truth", "bool", asked_for=lambda protocol: protocol.ap.recall_over == "all"
)
"""Whether each ground truth, counted or ignored, takes part in matching, [G]."""


@part(frozen=True)
class RecallOverField(Rules):
    """Which ground truths recall counts."""

    recall_over: RecallOver = rule(
        "counted",
        check=choice(RecallOver),
        doc="What recall is a share of: the counted ground truths, or the ignored ones too (VisDrone).",
        word=Word("recall", silent="counted"),
        step=Step("objects in recall's denominator", "scoring"),
        scope=scores(Scope.CLASS),
        columns=(TAKES_PART,),
        does=(Does("after", "boxscore.matching.regions:with_taking_part", TAKES_PART.asked_for),),
        refuses=(
            Refusal(
                "together",
                lambda protocol: protocol.ap.recall_over == "all" and protocol.group.weighs,
                'be "counted" where groups have weights',
                got='"all"',
            ),
        ),
    )
