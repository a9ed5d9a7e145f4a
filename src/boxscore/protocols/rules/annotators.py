"""Images that several people annotated, and images that were not annotated in full."""

from __future__ import annotations

from typing import Any, Literal

from boxscore._utils.records import part
from boxscore.protocols.acting import Does, Refusal, Scope, matches, prepares
from boxscore.protocols.fields import Reads, Rules, Step, Word, choice, rule

Annotators = Literal["all", "best"]
InexhaustiveImages = Literal["count", "drop"]

ANNOTATOR, ANNOTATORS, EXHAUSTIVE = "annotator", "annotators", "exhaustive"
"""The column of objects with their annotator; those of images with all of theirs, and whether that is all."""

BETWEEN = "/"
"""Between the names in the column of images."""

_NOT_READ = "the column that says it is not read there: evaluate all images at once"


def _best(protocol: Any) -> bool:
    return bool(protocol.labels.annotators == "best")


def _drops(protocol: Any) -> bool:
    return bool(protocol.labels.inexhaustive_images == "drop")


@part(frozen=True)
class AnnotatorFields(Rules):
    """Whose objects count, and in which images."""

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
        does=(Does("ignore", "boxscore.matching.annotators:ignoring_other_annotators", _best),),
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
        does=(Does("prepare", "boxscore.matching.annotators:exhaustive_images", _drops, -30),),
    )
