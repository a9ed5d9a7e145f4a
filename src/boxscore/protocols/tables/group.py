"""Define ``[group]``: how a box around a group of objects is treated."""

from __future__ import annotations

from typing import Any, Literal

from boxscore.protocols.acting import Does, Refusal, Scope, matches, one_measure, scores
from boxscore.protocols.extra_columns import ExtraColumn
from boxscore.protocols.fields import Rules, Step, Word, choice, number, rule
from boxscore.protocols.grids import number_text

GroupTreatment = Literal["count", "merge"]


def _group(protocol: Any) -> str:
    """Write how groups are treated, and how much one counts."""
    rules = protocol.group
    return rules.treatment if rules.treatment == "count" else f"{rules.treatment}/{number_text(rules.weight)}"


def _group_step(protocol: Any) -> str:
    """Write how groups are treated, and how much one counts."""
    rules = protocol.group
    if rules.treatment == "count":
        return "ordinary objects"
    return f"absorb, weight {number_text(rules.weight)}" if rules.weight else "absorb, not counted"


def _merges(protocol: Any) -> bool:
    return bool(protocol.group.treatment == "merge")


def _in_passes(protocol: Any) -> bool:
    """Whether some ground truths are matched after the others: groups, or objects without a mask."""
    return bool(_merges(protocol) or protocol.masks_may_lack)


ABSORBED_BITS = ExtraColumn(
    "absorbed_bits",
    "pair",
    "bits",
    asked_for=_in_passes,
    shape=lambda protocol: (len(protocol.ignore.area_ranges),),
)
"""Bit ``t``: the pair matches a group whose true positive is another detection, [P, A]."""


TRUTH_WEIGHT = ExtraColumn(
    "truth_weight", "truth", "float", asked_for=lambda protocol: bool(protocol.group.weighs), most=1.0
)
"""How much each ground truth counts, [G]; 1 where it is not there."""


GROUP_TRUE_POSITIVES = ExtraColumn(
    "group_hits",
    "detection",
    "bool",
    asked_for=lambda protocol: (
        _merges(protocol) and protocol.group.weight > 0 and protocol.matching.equal_scores == "last_first"
    ),
)
"""Whether a detection is the true positive of a group, [D]; it comes first among equal scores of an image."""


class GroupRules(Rules):
    """What a box around a group of objects is."""

    PREFIX = "group."

    treatment: GroupTreatment = rule(
        "count",
        check=choice(GroupTreatment),
        doc="One object like any other; or, matched last, a region that absorbs what lies in it, measured "
        "by intersection over the detection, and of whose detections the best stands for it if its score is "
        "above 0 (Open Images).",
        word=Word("group", silent="count", text=_group, note="`merge/` and the weight"),
        step=Step("groups", "matching", _group_step),
        scope=matches(lambda protocol: Scope.IMAGE if _merges(protocol) else Scope.ROW),
        columns=(ABSORBED_BITS, GROUP_TRUE_POSITIVES, TRUTH_WEIGHT),
        refuses=(
            *one_measure(_merges, "groups are merged"),
            Refusal(
                "together",
                lambda protocol: _merges(protocol) and protocol.matching.class_thresholds,
                "be left out where groups are merged",
                field="matching.class_thresholds",
                got="some",
            ),
        ),
        does=(
            Does("ignore", "boxscore.extensions.federated.groups:ignoring_groups", _merges),
            Does("pairs", "boxscore.extensions.federated.groups:in_passes", _in_passes, 20),
            Does("after", "boxscore.extensions.federated.groups:with_group_columns", _in_passes),
        ),
    )
    weight: float = rule(
        1.0,
        check=number(0, 1),
        doc='For "merge": how much a group counts, as an object and as a true positive; 0 ignores it.',
        step="group.treatment",
        scope=scores(Scope.ROW),
        refuses=(
            Refusal(
                "together",
                lambda protocol: protocol.group.weighs and protocol.ap.interpolation != "area",
                'be 0 or 1 unless ap.interpolation is "area"',
                cause="parts of an object have no place at recall points",
            ),
            Refusal(
                "together",
                lambda protocol: (
                    protocol.group.weighs and any(row.metric not in ("AP", "AR") for row in protocol.rows)
                ),
                "be 0 or 1 unless the summary has AP and AR alone",
                cause="other metrics count whole objects",
            ),
        ),
    )

    @property
    def weighs(self) -> bool:
        """Whether groups count as a part of an object, a fraction."""
        return self.treatment == "merge" and 0 < self.weight < 1
