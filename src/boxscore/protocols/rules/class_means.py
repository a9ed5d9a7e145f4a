"""The mean over classes, and classes that are not there."""

from __future__ import annotations

from typing import Literal

from boxscore._utils.records import part
from boxscore.protocols.acting import Scope, scores
from boxscore.protocols.fields import Rules, Step, Word, choice, rule

AbsentClasses = Literal["skip", "zero", "all_zero"]
ClassMean = Literal["of_defined", "nanmean", "by_images"]


@part(frozen=True)
class AbsentClassesField(Rules):
    """What a class without counted ground truth scores."""

    absent_classes: AbsentClasses = rule(
        "skip",
        check=choice(AbsentClasses),
        doc="A class without counted ground truth: undefined; AP 0 in the mean when it has detections; or "
        "AP 0 in any case.",
        word=Word("absent", silent="skip"),
        step=Step(
            "classes without ground truth",
            "scoring",
            {"skip": "skipped", "zero": "AP 0 if detected", "all_zero": "AP 0"},
        ),
        scope=scores(Scope.CLASS),
    )


@part(frozen=True)
class ClassMeanField(Rules):
    """How classes are averaged."""

    class_mean: ClassMean = rule(
        "of_defined",
        check=choice(ClassMean),
        doc="The mean over classes: of the values that are defined; `numpy.nanmean` over all classes, whose "
        "last bit depends on where the undefined ones stand; or each class as often as there are images "
        "with an object of it (VisDrone).",
        word=Word("classmean", silent="of_defined"),
        step="ap.absent_classes",
        scope=scores(Scope.DATA_SET),
    )
