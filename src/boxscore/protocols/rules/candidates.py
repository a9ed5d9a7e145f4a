"""Which ground truth a detection takes."""

from __future__ import annotations

from typing import Literal

from boxscore._utils.records import part
from boxscore.protocols.acting import Scope, matches
from boxscore.protocols.fields import Rules, Step, Word, choice, rule

Candidate = Literal["best_available", "best_overall"]
EqualIou = Literal["last", "first"]


@part(frozen=True)
class CandidateFields(Rules):
    """Whether it turns to the next, and which of equal ones it takes."""

    candidate: Candidate = rule(
        "best_available",
        check=choice(Candidate),
        doc="Whether a detection whose best ground truth is taken may turn to the next.",
        word=Word("candidate", silent="best_available"),
        step=Step("candidate", "matching"),
        scope=matches(Scope.IMAGE),
    )
    equal_iou: EqualIou = rule(
        "last",
        check=choice(EqualIou),
        doc="Which of equally overlapped ground truths, in file order, is taken.",
        word=Word("ties", silent="last"),
        step=Step("equal overlaps", "matching"),
        scope=matches(Scope.IMAGE),
    )
