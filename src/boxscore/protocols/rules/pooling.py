"""Classes that share matches, or a curve."""

from __future__ import annotations

from typing import Literal

from boxscore._utils.records import part
from boxscore.protocols.acting import Refusal, Scope, scores
from boxscore.protocols.fields import Rules, Step, Word, choice, flag, rule

Pool = Literal["none", "classes"]

OF_PHRASES = (
    "cgF1",
    "smoothed_precision",
    "smoothed_recall",
    "smoothed_F1",
    "positive_macro_F1",
    "positive_micro_F1",
    "positive_micro_precision",
    "IL_precision",
    "IL_recall",
    "IL_F1",
    "IL_FPR",
    "IL_MCC",
)
"""Kinds of summary metrics of images that are a picture and a phrase each."""

OF_IMAGES = ("image_precision", "image_recall", "image_F1", *OF_PHRASES)
"""Kinds of summary metrics that count the objects and detections of each image together."""


@part(frozen=True)
class PerClassField(Rules):
    """Whether classes are distinguished at all."""

    per_class: bool = rule(
        True,
        check=flag,
        doc="False pools all classes into one.",
        word=Word(
            "classes",
            silent=True,
            text={False: "pooled"},
            note="`pooled` where classes are not told apart",
        ),
        step=Step("classes", "ranking", {False: "pooled", True: "separate"}),
        scope=scores(lambda protocol: Scope.CLASS if protocol.matching.per_class else Scope.DATA_SET),
        refuses=(
            Refusal(
                "together",
                lambda protocol: protocol.matching.per_class and any(map(protocol.asks_for, OF_IMAGES)),
                "be false where a metric is of whole images, whatever their classes",
                got="true",
            ),
        ),
    )


@part(frozen=True)
class PoolField(Rules):
    """Whether classes that were matched apart share a curve."""

    pool: Pool = rule(
        "none",
        check=choice(Pool),
        doc="A metric: the mean over its classes, or the detections of its classes share one curve.",
        word=Word("pool", silent="none"),
        step=Step("curves", "scoring", {"none": "one per class", "classes": "one for all classes"}),
        scope=scores(lambda protocol: Scope.CLASS if protocol.ap.pool == "none" else Scope.DATA_SET),
    )
