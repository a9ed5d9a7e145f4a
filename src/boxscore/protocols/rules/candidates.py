"""Which ground truth a detection takes."""

from __future__ import annotations

from typing import Any, Literal

from boxscore._utils.records import part
from boxscore.protocols.acting import Does, Refusal, Scope, matches
from boxscore.protocols.fields import Rules, Step, Word, choice, rule

Candidate = Literal[
    "best_available",
    "best_overall",
    "most_pairs",
    "objects_choose",
    "best_pair_first",
    "assigned_before_threshold",
]
EqualIou = Literal["last", "first"]


RANKED = ("best_available", "best_overall")
"""Rules by which detections choose, one after the other."""


def _whole(protocol: Any) -> bool:
    return protocol.matching.candidate not in RANKED


_REFUSALS = (
    Refusal("cuts", _whole),
    Refusal(
        "together",
        lambda protocol: (
            _whole(protocol) and (protocol.group.treatment == "merge" or protocol.masks_may_lack)
        ),
        "be 'best_available' or 'best_overall' where groups are merged, or objects without a mask absorb",
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
        "greatest sum of IoU; or whether the objects choose, in file order, each the free detection that it "
        "overlaps most (Rex-Omni); or whether, whatever the scores, the best pair of all comes first, then "
        "the best of what is left (MillionTrees); or whether all are assigned for the greatest sum, whatever "
        "the threshold, which then takes pairs away (DeepForest).",
        word=Word("candidate", silent="best_available"),
        step=Step("candidate", "matching"),
        scope=matches(Scope.IMAGE),
        refuses=_REFUSALS,
        does=(Does("match", "boxscore.matching.whole_groups:matching_whole_groups", _whole, 10),),
    )
    equal_iou: EqualIou = rule(
        "last",
        check=choice(EqualIou),
        doc="Which of equally overlapped ground truths, in file order, is taken; or of detections, where "
        "objects choose.",
        word=Word("ties", silent="last"),
        step=Step("equal overlaps", "matching"),
        scope=matches(Scope.IMAGE),
    )
