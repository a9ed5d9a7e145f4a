"""Define ``[group]`` and ``[labels]``: groups of objects, and labels of whole images."""

from __future__ import annotations

from typing import Any, Literal

from boxscore.protocols.acting import (
    Does,
    ExtraColumn,
    Refusal,
    Scope,
    matches,
    one_measure,
    prepares,
    ranks,
    scores,
)
from boxscore.protocols.fields import Reads, Rules, Step, Word, choice, list_of, number, rule, text
from boxscore.protocols.grids import number_text

# ---------------------------------------------------------------- groups of objects

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


# ---------------------------------------------------------------- labels of whole images

Annotators = Literal["all", "best"]
InexhaustiveImages = Literal["count", "drop"]
Undetected = Literal["count", "drop"]
ListedBy = Literal["negative", "verified"]
NotExhaustive = Literal["count", "ignore"]
Unlisted = Literal["count", "drop", "drop_without_object", "drop_beside_others", "unmatched_without_object"]


ANNOTATOR, ANNOTATORS, EXHAUSTIVE = "annotator", "annotators", "exhaustive"
"""The column of objects with their annotator; those of images with all of theirs, and whether that is all."""


BETWEEN = "/"
"""Between the names in the column of images."""


_NOT_READ = "the column that says it is not read there: evaluate all images at once"


def _best(protocol: Any) -> bool:
    return bool(protocol.labels.annotators == "best")


def _drops(protocol: Any) -> bool:
    return bool(protocol.labels.inexhaustive_images == "drop")


def _not_evaluated(protocol: Any) -> str:
    """Write the classes that are not evaluated."""
    return ",".join(protocol.labels.not_evaluated)


def _unlisted(protocol: Any) -> Scope:
    return Scope.ROW if protocol.labels.unlisted == "count" else Scope.IMAGE


def _drops_undetected(protocol: Any) -> bool:
    return bool(protocol.labels.undetected == "drop")


def _drops_unlisted(protocol: Any) -> bool:
    return bool(protocol.labels.unlisted.startswith("drop"))


def _never_matches_unlisted(protocol: Any) -> bool:
    return bool(protocol.labels.unlisted == "unmatched_without_object")


def _ignores_unmatched(protocol: Any) -> bool:
    return bool(protocol.labels.not_exhaustive == "ignore")


def _exhaustive(protocol: Any) -> Scope:
    return Scope.ROW if protocol.labels.not_exhaustive == "count" else Scope.IMAGE


class LabelRules(Rules):
    """What follows from the labels of whole images, where not every class is annotated in every image."""

    PREFIX = "labels."

    # annotators
    annotators: Annotators = rule(
        "all",
        check=choice(Annotators),
        doc="Objects of several annotators, by their column `annotator`: all counted; or in each image "
        "those of one annotator, by whom the detections do best: the greatest mean of F1 over the IoU "
        "thresholds, the first of equals, or one without objects where there are no detections (SAM 3).",
        word=Word("annotators", silent="all"),
        step=Step("annotators", "tables", {"all": "all", "best": "the best of each image"}),
        scope=matches(lambda protocol: Scope.IMAGE if _best(protocol) else Scope.ROW),
        refuses=(
            Refusal("cuts", _best),
            Refusal("streams", _best, "be 'all' where Parquet is read in partitions", cause=_NOT_READ),
        ),
        reads=Reads("rows", lambda protocol: (ANNOTATOR,) if _best(protocol) else ()),
        does=(Does("ignore", "boxscore.extensions.scoreless.annotators:ignoring_other_annotators", _best),),
    )
    inexhaustive_images: InexhaustiveImages = rule(
        "count",
        check=choice(InexhaustiveImages),
        doc="Images whose column `exhaustive` is false: counted, or left out with all that is in them "
        "(SAM 3). Without the column all are exhaustive.",
        word=Word("inexhaustive", silent="count"),
        step=Step("images not annotated in full", "tables", {"count": "counted", "drop": "left out"}),
        scope=prepares(lambda protocol: Scope.IMAGE if _drops(protocol) else Scope.ROW),
        refuses=(
            Refusal("streams", _drops, "be 'count' where Parquet is read in partitions", cause=_NOT_READ),
        ),
        reads=Reads("images", lambda protocol: (EXHAUSTIVE, ANNOTATORS) if _drops(protocol) else ()),
        does=(Does("prepare", "boxscore.extensions.scoreless.annotators:exhaustive_images", _drops, -30),),
    )
    # labels
    unlisted: Unlisted = rule(
        "count",
        check=choice(Unlisted),
        doc="Detections of a class that is not listed in their image: counted; dropped (federated data "
        "sets), where a class is listed if it has an object or as `listed_by` says; dropped where the "
        "image has no object of it, whatever labels of images say (WIDER FACE), or has objects of other "
        "classes alone (Rex-Omni on COCO); or counted where it has no object of it, and never matched, "
        "though classes are pooled (Rex-Omni).",
        word=Word("unlisted", silent="count"),
        step=Step(
            "unlisted classes",
            "tables",
            {
                "count": "counted",
                "drop": "dropped",
                "drop_without_object": "dropped without an object",
                "drop_beside_others": "dropped beside objects of other classes",
                "unmatched_without_object": "unmatched without an object",
            },
        ),
        scope=ranks(_unlisted),
        refuses=(Refusal("unlabelled_images", lambda protocol: protocol.labels.unlisted == "drop"),),
        does=(
            Does("eligible", "boxscore.extensions.federated.listing:listed", _drops_unlisted),
            Does(
                "match", "boxscore.extensions.federated.listing:matching_listed", _never_matches_unlisted, 20
            ),
        ),
    )
    listed_by: ListedBy = rule(
        "negative",
        check=choice(ListedBy),
        doc="Which labels of an image list a class: those that say it is absent (LVIS), or also those that "
        "say it is there (Open Images).",
        word=Word("listed", silent="negative"),
        step="labels.unlisted",
        scope=ranks(_unlisted),
    )
    not_exhaustive: NotExhaustive = rule(
        "count",
        check=choice(NotExhaustive),
        doc="Detections that match nothing, of a class that is not annotated exhaustively in their image: "
        "false positives, or ignored.",
        word=Word("notexhaustive", silent="count"),
        step=Step("classes not annotated in full", "tables", {"count": "counted", "ignore": "ignored"}),
        scope=matches(_exhaustive),
        refuses=(Refusal("unlabelled_images", _ignores_unmatched),),
        does=(
            Does("unmatched", "boxscore.extensions.federated.listing:counted_unmatched", _ignores_unmatched),
        ),
    )
    undetected: Undetected = rule(
        "count",
        check=choice(Undetected),
        doc="Objects of a class of which their image has no detection: counted; or dropped, as if they were "
        "not there (xView). Only detections that reach the score threshold are some.",
        word=Word("undetected", silent="count"),
        step=Step("objects of undetected classes", "tables", {"count": "counted", "drop": "dropped"}),
        scope=prepares(lambda protocol: Scope.IMAGE if protocol.labels.undetected == "drop" else Scope.ROW),
        refuses=(Refusal("cuts", _drops_undetected), Refusal("plain_tables", _drops_undetected)),
        does=(Does("prepare", "boxscore.extensions.federated.listing:detected", _drops_undetected, 50),),
    )
    not_evaluated: tuple[str, ...] = rule(
        (),
        check=list_of(text, "a list"),
        doc="Names of classes that are not evaluated. Max detections per image count their detections.",
        word=Word("without", silent=(), text=_not_evaluated, note="the classes not evaluated"),
        step=Step("classes not evaluated", "tables", _not_evaluated),
        scope=ranks(Scope.ROW),
    )
