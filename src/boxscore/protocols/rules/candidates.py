"""Which ground truth a detection takes."""

from __future__ import annotations

from typing import Any, Literal

from boxscore._utils.records import part
from boxscore.protocols.acting import Refusal, Scope, matches
from boxscore.protocols.fields import Rules, Step, Word, choice, rule

Candidate = Literal["best_available", "best_overall", "most_pairs"]
EqualIou = Literal["last", "first"]


def _most_pairs(protocol: Any) -> bool:
    return bool(protocol.matching.candidate == "most_pairs")


_REFUSALS = (
    Refusal("cuts", _most_pairs),
    Refusal(
        "together",
        lambda protocol: (
            _most_pairs(protocol) and (protocol.group.treatment == "merge" or protocol.masks_may_lack)
        ),
        "not be 'most_pairs' where groups are merged, or objects without a mask absorb",
    ),
)


@part(frozen=True)
class CandidateFields(Rules):
    """Whether it turns to the next, and which of equal ones it takes."""

    candidate: Candidate = rule(
        "best_available",
        check=choice(Candidate),
        doc="Whether a detection whose best ground truth is taken may turn to the next; or whether, whatever "
        "the scores and the order, as many pairs as possible are made, and of these the pairs with the "
        "greatest sum of IoU.",
        word=Word("candidate", silent="best_available"),
        step=Step("candidate", "matching"),
        scope=matches(Scope.IMAGE),
        refuses=_REFUSALS,
    )
    equal_iou: EqualIou = rule(
        "last",
        check=choice(EqualIou),
        doc="Which of equally overlapped ground truths, in file order, is taken.",
        word=Word("ties", silent="last"),
        step=Step("equal overlaps", "matching"),
        scope=matches(Scope.IMAGE),
    )
