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
    """Describe the treatment and weight of groups."""
    rules = protocol.group
    return rules.treatment if rules.treatment == "count" else f"{rules.treatment}/{number_text(rules.weight)}"


def _group_step(protocol: Any) -> str:
    """Describe the treatment and weight of groups."""
    rules = protocol.group
    if rules.treatment == "count":
        return "ordinary objects"
    return f"absorb, weight {number_text(rules.weight)}" if rules.weight else "absorb, not counted"


def _merges(protocol: Any) -> bool:
    return bool(protocol.group.treatment == "merge")


def _in_passes(protocol: Any) -> bool:
    """Whether some ground truths (groups, or objects without a mask) are matched after the others."""
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
"""Weight of each ground truth, [G]; 1 if the column is missing."""


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
    """Treatment of a box around a group of objects."""

    PREFIX = "group."

    treatment: GroupTreatment = rule(
        "count",
        check=choice(GroupTreatment),
        doc="Counted like any other object; or, matched last, a region that absorbs the detections inside "
        "it, measured by intersection over the detection. The best of these detections is the true "
        "positive if its score is above 0 (Open Images).",
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
        doc='For "merge": the weight of a group as an object and as a true positive; 0 ignores it.',
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
        """Whether a group counts as a fraction of an object."""
        return self.treatment == "merge" and 0 < self.weight < 1


# ---------------------------------------------------------------- labels of whole images

Annotators = Literal["all", "best"]
InexhaustiveImages = Literal["count", "drop"]
Undetected = Literal["count", "drop"]
ListedBy = Literal["negative", "verified"]
NotExhaustive = Literal["count", "ignore"]
Unlisted = Literal["count", "drop", "drop_without_object", "drop_beside_others", "unmatched_without_object"]


ANNOTATOR, ANNOTATORS, EXHAUSTIVE = "annotator", "annotators", "exhaustive"
"""The column of objects with their annotator; that of images with all their annotators, and whether the
annotation is exhaustive."""


BETWEEN = "/"
"""Separates the names in the column of images."""


_NOT_READ = "the column that says it is not read there: evaluate all images at once"


def _best(protocol: Any) -> bool:
    return bool(protocol.labels.annotators == "best")


def _drops(protocol: Any) -> bool:
    return bool(protocol.labels.inexhaustive_images == "drop")


def _not_evaluated(protocol: Any) -> str:
    """Name the classes that are not evaluated."""
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
    """Rules for image-level labels, where not every class is annotated in every image."""

    PREFIX = "labels."

    # annotators
    annotators: Annotators = rule(
        "all",
        check=choice(Annotators),
        doc="Objects of several annotators, by their column `annotator`: count all; or, in each image, only "
        "those of the annotator with whom the detections agree best: the greatest mean of F1 over the "
        "IoU thresholds, the first in case of ties, or an annotator without objects if the image has no "
        "detections (SAM 3).",
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
        doc="Images whose column `exhaustive` is false: counted, or left out with their objects and "
        "detections (SAM 3). Without the column, all images are exhaustive.",
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
        "sets), where a class is listed if it has an object or as `listed_by` defines; dropped if the "
        "image lacks objects of the class, regardless of image labels (WIDER FACE), or has objects of "
        "other classes only (Rex-Omni on COCO); or counted but never matched if the image lacks objects "
        "of the class, even if classes are pooled (Rex-Omni).",
        word=Word("unlisted", silent="count"),
        step=Step(
            "unlisted classes",
            "tables",
            {
                "count": "counted",
                "drop": "dropped",
                "drop_without_object": "dropped without an object",
                "drop_beside_others": "dropped next to objects of other classes",
                "unmatched_without_object": "unmatched without an object",
            },
        ),
        scope=ranks(_unlisted),
        refuses=(Refusal("unlabeled_images", lambda protocol: protocol.labels.unlisted == "drop"),),
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
        doc="Image labels that list a class: labels that mark it absent (LVIS), or also labels that mark it "
        "present (Open Images).",
        word=Word("listed", silent="negative"),
        step="labels.unlisted",
        scope=ranks(_unlisted),
    )
    not_exhaustive: NotExhaustive = rule(
        "count",
        check=choice(NotExhaustive),
        doc="Unmatched detections of a class that is not annotated exhaustively in their image: false "
        "positives, or ignored.",
        word=Word("notexhaustive", silent="count"),
        step=Step("classes not annotated in full", "tables", {"count": "counted", "ignore": "ignored"}),
        scope=matches(_exhaustive),
        refuses=(Refusal("unlabeled_images", _ignores_unmatched),),
        does=(
            Does("unmatched", "boxscore.extensions.federated.listing:counted_unmatched", _ignores_unmatched),
        ),
    )
    undetected: Undetected = rule(
        "count",
        check=choice(Undetected),
        doc="Objects of a class without detections in their image: counted; or dropped (xView). Only "
        "detections that reach the score threshold count.",
        word=Word("undetected", silent="count"),
        step=Step("objects of undetected classes", "tables", {"count": "counted", "drop": "dropped"}),
        scope=prepares(lambda protocol: Scope.IMAGE if protocol.labels.undetected == "drop" else Scope.ROW),
        refuses=(Refusal("cuts", _drops_undetected), Refusal("plain_tables", _drops_undetected)),
        does=(Does("prepare", "boxscore.extensions.federated.listing:detected", _drops_undetected, 50),),
    )
    not_evaluated: tuple[str, ...] = rule(
        (),
        check=list_of(text, "a list"),
        doc="Names of classes that are not evaluated. Their detections count towards max detections per "
        "image.",
        word=Word("without", silent=(), text=_not_evaluated, note="the classes not evaluated"),
        step=Step("classes not evaluated", "tables", _not_evaluated),
        scope=ranks(Scope.ROW),
    )
