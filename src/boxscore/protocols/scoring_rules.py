"""How matches become numbers: the tables ``ap``, ``froc``, ``miss_rate`` and ``jaccard`` of a protocol."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from boxscore._utils.records import record
from boxscore.protocols import wording
from boxscore.protocols.fields import (
    Check,
    Rules,
    Step,
    Word,
    choice,
    flag,
    grid_of,
    list_of,
    number,
    rule,
    whole,
    with_attributes,
)
from boxscore.protocols.grids import MOST_VALUES, fppi_points

__all__ = [
    "ApRules",
    "FrocInterpolation",
    "FrocRules",
    "JaccardRules",
    "MissRateRules",
    "TieOrder",
]

Interpolation = Literal["points", "area", "trapezoid", "trapezoid_to_one", "every_point"]
ClassMean = Literal["of_defined", "nanmean", "by_images"]
MissReading = Literal["first_at_least", "last_at_most", "last_at_most_or_end"]
RecallOver = Literal["counted", "all"]
Pool = Literal["none", "classes"]
TieOrder = Literal["as_ranked", "true_positives_first", "true_positives_last"]
AbsentClasses = Literal["skip", "zero", "all_zero"]
FrocInterpolation = Literal["linear", "step"]

_FPPI = Check("list: number >= 0", lambda value, name: fppi_points(value, name=name))


@with_attributes
@record(frozen=True)
class ApRules(Rules):
    """How a precision-recall curve becomes one number."""

    PREFIX = "ap."

    interpolation: Interpolation = rule(
        "points",
        check=choice(Interpolation),
        doc="Mean of the interpolated precision at recall points; the area under its envelope; or the area "
        "under straight lines through the envelope, read at the recall points: falling to 0 after the "
        "last recall reached, or along a line from there to (1, 0); or under straight lines between the "
        "points "
        "of all detections, without an envelope and with nothing before the first (CrowdHuman).",
        word=Word(
            "ap",
            text=wording.curve,
            note="`area`; the count of points; `11kit` for the VOC devkit's points; or the points",
        ),
        step=Step("curve", "scoring", wording.interpolation),
    )
    recall_points: tuple[float, ...] = rule(
        tuple(np.linspace(0, 1, 101).tolist()),
        check=grid_of(most=MOST_VALUES),
        doc='For "points", [R]; also where `Evaluation.curves` reads the curve.',
        step="ap.interpolation",
    )
    tie_order: TieOrder = rule(
        "as_ranked",
        check=choice(TieOrder),
        doc="Whether, after matching, the true positives among a class's equally scored detections move.",
        word=Word("equal", silent="as_ranked"),
        step="matching.equal_scores",
    )
    score_steps: int = rule(
        0,
        check=whole(0),
        doc='For "area": the curve has a point only at the score thresholds `1 - i / score_steps`, '
        "i = 1 to `score_steps` (WIDER FACE: 1000); 0 for one at every detection.",
        word=Word("steps", silent=0),
        step="ap.interpolation",
    )
    recall_over: RecallOver = rule(
        "counted",
        check=choice(RecallOver),
        doc="What recall is a share of: the counted ground truths, or the ignored ones too (VisDrone).",
        word=Word("recall", silent="counted"),
        step=Step("objects that recall is a share of", "scoring"),
    )
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
    )
    pool: Pool = rule(
        "none",
        check=choice(Pool),
        doc="A metric: the mean over its classes, or the detections of its classes share one curve.",
        word=Word("pool", silent="none"),
        step=Step("curves", "scoring", {"none": "one per class", "classes": "one for all classes"}),
    )
    precision_epsilon: float = rule(
        0.0,
        check=number(0, 1),
        doc="Added to tp + fp in the denominator of precision (pycocotools: `np.spacing(1)`).",
        word=Word("eps", silent=float(np.spacing(1)), note="left out for COCO's"),
        step="ap.interpolation",
    )
    class_mean: ClassMean = rule(
        "of_defined",
        check=choice(ClassMean),
        doc="The mean over classes: of the values that are defined; `numpy.nanmean` over all classes, whose "
        "last bit depends on where the undefined ones stand; or each class as often as there are images with "
        "an object of it (VisDrone).",
        word=Word("classmean", silent="of_defined"),
        step="ap.absent_classes",
    )
    sequential_mean: bool = rule(
        False,
        check=flag,
        doc="Sum `p / R` point by point, as the VOC devkit does, instead of taking `numpy.mean`.",
        word=Word("mean", text=wording.mean, note="`sequential` where points are summed one by one"),
        step="ap.interpolation",
    )


@with_attributes
@record(frozen=True)
class FrocRules(Rules):
    """Where the free-response ROC is read."""

    PREFIX = "froc."

    false_positives_per_image: tuple[float, ...] = rule(
        (0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0),
        check=_FPPI,
        doc="At which numbers of false positives per image, of the class, the sensitivity is read, "
        "ascending; FROC is their mean.",
        word=Word("froc", text=wording.froc, note="the points, and `step`; left out for LUNA16's"),
    )
    interpolation: FrocInterpolation = rule(
        "linear",
        check=choice(FrocInterpolation),
        doc="Between the points of two confidence thresholds: a straight line (LUNA16), or the last point "
        "within the false positives allowed. They differ only where equal scores are right and wrong.",
    )


@with_attributes
@record(frozen=True)
class MissRateRules(Rules):
    """Where the curve of miss rate against false positives per image is read for MR^-2."""

    PREFIX = "miss_rate."

    false_positives_per_image: tuple[float, ...] = rule(
        tuple((10.0 ** np.linspace(-2, 0, 9)).tolist()),
        check=_FPPI,
        doc="The anchors, ascending: the log-average miss rate is the geometric mean of the miss rates "
        "there.",
        word=Word("mr", text=wording.miss_rate, note="the anchors and the reading; left out for Caltech's"),
    )
    reading: MissReading = rule(
        "last_at_most",
        check=choice(MissReading),
        doc="Which detection an anchor is read at: the last with no more false positives per image, and a "
        "miss "
        "rate of 1 before the first (Caltech); the same, but the last of all before the first "
        "(CityPersons); or "
        "the first with as many, and the last of all where none has (CrowdHuman).",
    )


@with_attributes
@record(frozen=True)
class JaccardRules(Rules):
    """At which confidences the Jaccard index of crowds is tried."""

    PREFIX = "jaccard."

    score_thresholds: tuple[float, ...] = rule(
        tuple(1e-1 * i for i in range(10)),
        check=list_of(number(-math.inf, math.inf), "a list", ordered=True),
        doc="Detections above each are matched; JI is the best of the results.",
        word=Word("ji", text=wording.jaccard, note="the score thresholds; left out for CrowdHuman's"),
    )
