"""What follows from the labels of whole images, and classes that are not evaluated."""

from __future__ import annotations

from typing import Any, Literal

from boxscore._utils.records import record
from boxscore.protocols.acting import Does, Refusal, Scope, matches, prepares, ranks
from boxscore.protocols.fields import Step, Word, choice, list_of, rule, text, with_attributes
from boxscore.protocols.rules.annotators import AnnotatorFields

Undetected = Literal["count", "drop"]
ListedBy = Literal["negative", "verified"]
NotExhaustive = Literal["count", "ignore"]
Unlisted = Literal["count", "drop", "drop_without_object", "drop_beside_others", "unmatched_without_object"]


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


@with_attributes
@record(frozen=True)
class LabelRules(AnnotatorFields):
    """What follows from the labels of whole images, where not every class is annotated in every image."""

    PREFIX = "labels."

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
            Does("eligible", "boxscore.matching.listing:listed", _drops_unlisted),
            Does("match", "boxscore.matching.listing:matching_listed", _never_matches_unlisted, 20),
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
        does=(Does("unmatched", "boxscore.matching.listing:counted_unmatched", _ignores_unmatched),),
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
        does=(Does("prepare", "boxscore.matching.listing:detected", _drops_undetected, 50),),
    )
    not_evaluated: tuple[str, ...] = rule(
        (),
        check=list_of(text, "a list"),
        doc="Names of classes that are not evaluated. Max detections per image count their detections.",
        word=Word("without", silent=(), text=_not_evaluated, note="the classes not evaluated"),
        step=Step("classes not evaluated", "tables", _not_evaluated),
        scope=ranks(Scope.ROW),
    )
