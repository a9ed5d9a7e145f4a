"""Annotation id 0, which is no id in pycocotools."""

from __future__ import annotations

from typing import Literal

from boxscore._utils.records import part
from boxscore.protocols.acting import Scope, matches
from boxscore.protocols.fields import Rules, Step, Word, choice, rule

AnnotationIdZero = Literal["counted", "unmatched"]


@part(frozen=True)
class IdZeroField(Rules):
    """What a match with it is."""

    annotation_id_zero: AnnotationIdZero = rule(
        "counted",
        check=choice(AnnotationIdZero),
        doc="What a match with a counted ground truth of annotation id 0 is: a match like any other, or "
        "none (pycocotools): the detection is a false positive and the ground truth missed, though no other "
        "detection may have it.",
        word=Word("id0", silent="counted"),
        step=Step("annotation id 0", "matching"),
        scope=matches(Scope.ROW),
    )
