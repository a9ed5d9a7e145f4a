"""A protocol is data: every choice that turns matches into a number.

Goal
----
One frozen value says how boxes are measured, matched, ignored, averaged and summarised. There is no
evaluator per benchmark: each choice is dispatched in one function of the stage that it belongs to.

Conventions
-----------
- The protocols that ship are TOML files in ``boxscore/protocols``; a user's file has the same form and
  may say ``extends = "coco"`` and give only what differs. Tables merge key by key, anything else replaces.
- IoU thresholds and recall points are grids, ``{start, stop, count}``, built by ``numpy.linspace``:
  decimal literals differ from pycocotools' values in one threshold and ten recall points.
- Everything about a field is defined at the field (see :mod:`boxscore.protocols.fields`): default, check,
  doc, word in the signature and step of a waterfall, both in the order of the fields.
- :meth:`Protocol.signature` prints the choices in one line. Fields that it omits have COCO's value.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import re
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore._utils.records import record
from boxscore.errors import ProtocolError
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
    read,
    rule,
    table,
    text,
    with_attributes,
)
from boxscore.protocols.grids import MOST_VALUES, fppi_points, grid_text
from boxscore.protocols.signature import signature_of

__all__ = [
    "SUMMARY_KINDS",
    "ApRules",
    "BoxRules",
    "FrocRules",
    "GroupRules",
    "IgnoreRules",
    "KeypointRules",
    "LabelRules",
    "MaskRules",
    "MatchingRules",
    "Protocol",
    "RoundingRules",
    "SimilarityName",
    "SummaryRow",
    "summary_title",
]

AnnotationIdZero = Literal["counted", "unmatched"]
BoxOnlyTruth = Literal["refuse", "absorb"]
Candidate = Literal["best_available", "best_overall"]
EqualIou = Literal["last", "first"]
EqualScores = Literal["image_order", "file_order", "last_first"]
CapScope = Literal["class", "image", "data_set_class"]
CrowdRule = Literal["iof", "ignore", "count", "delete"]
GroupTreatment = Literal["count", "merge"]
IgnoreRule = Literal["ignore", "count", "delete"]
Interpolation = Literal["points", "area", "trapezoid", "trapezoid_to_one"]
ClassMean = Literal["of_defined", "nanmean"]
Pool = Literal["none", "classes"]
TieOrder = Literal["as_ranked", "true_positives_first", "true_positives_last"]
AbsentClasses = Literal["skip", "zero", "all_zero"]
FrocInterpolation = Literal["linear", "step"]
SimilarityName = Literal["box", "rotated", "mask", "boundary", "keypoints"]
Degenerate = Literal["count", "drop", "drop_detections"]
DetectionArea = Literal["box", "mask", "box_or_mask"]
ListedBy = Literal["negative", "verified"]
MaskPrecision = Literal["double", "single"]
NotExhaustive = Literal["count", "ignore"]
Unlisted = Literal["count", "drop"]
UnlabelledRule = Literal["count", "ignore"]

SUMMARY_KINDS = {
    "AP": "Average Precision  (AP)",
    "AR": "Average Recall     (AR)",
    "FROC": "Mean Sensitivity (FROC)",
}
"""Kinds of summary metrics, as pycocotools prints them or would; ``scoring/kinds.py`` computes each."""

MOST_THRESHOLDS = 64
"""IoU thresholds are kept as the bits of one unsigned integer."""


def _decimals(value: Any, name: str) -> int | None:
    return None if value in (None, "none") else checks.whole_number(value, 0, name=name)


def _strings(value: Any, name: str) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise ProtocolError(name, "be a table of name = string", got=repr(value))
    return {key: text(item, f"{name}.{key}") for key, item in value.items()}


def _area_ranges(value: Any, name: str) -> dict[str, tuple[float, float]]:
    if not isinstance(value, Mapping):
        raise ProtocolError(name, "be a table of name = [low, high]", got=repr(value))
    if not value:
        raise ProtocolError(name, "name at least one range", got="none")
    return {text(key, name): _area_range(pair, f"{name}.{key}") for key, pair in value.items()}


def _area_range(pair: Any, name: str) -> tuple[float, float]:
    if not isinstance(pair, (list, tuple)) or len(pair) != 2:
        raise ProtocolError(name, "be [low, high]", got=repr(pair))
    low, high = (checks.number_between(end, 0, np.inf, name=name) for end in pair)
    if low > high:
        raise ProtocolError(name, "have low <= high", got=[low, high])
    return low, high


def _key(value: Any, name: str) -> str:
    if re.search(r"[{}]", text(value, name).replace("{cap}", "")):
        raise ProtocolError(name, "have no braces but in {cap}", got=repr(value))
    return str(value)


def _threshold_or_mean(value: Any, name: str) -> float | None:
    return None if value is None else checks.number_between(value, 0, 1, name=name, open_low=True)


def _selection(value: Any, name: str) -> str:
    column, equals, wanted = text(value, name).partition("=")
    if value and not (column and equals and wanted):
        raise ProtocolError(name, "be column=value", got=repr(value), cause="for example frequency=r")
    return str(value)


def _whole(low: int) -> Check:
    return Check(f"whole number >= {low}", lambda value, name: checks.whole_number(value, low, name=name))


_DECIMALS = Check('whole number, "none"', _decimals)
_ANY_PAIR = Check("[keypoint, keypoint]", lambda value, name: value)


@with_attributes
@record(frozen=True)
class RoundingRules(Rules):
    """What detections lose before anything else, as in tools that write them to text and read them again."""

    PREFIX = "rounding."

    scores: int | None = rule(
        None,
        check=_DECIMALS,
        doc="Decimals that scores are rounded to.",
        word=Word(
            "decimals", text=wording.decimals, note="of scores and boxes; left out where neither is rounded"
        ),
        step=Step("numbers", "tables", wording.rounding),
    )
    boxes: int | None = rule(
        None,
        check=_DECIMALS,
        doc="Decimals that the corners of boxes are rounded to.",
        step="rounding.scores",
    )


@with_attributes
@record(frozen=True)
class BoxRules(Rules):
    """How boxes are measured."""

    PREFIX = "boxes."

    pixel_offset: float = rule(
        0.0,
        check=number(0, 1),
        doc="Added to widths and heights; 1 counts the last pixel as inside (PASCAL VOC).",
        word=Word("offset"),
        step=Step("pixels", "overlaps", {0.0: "exact", 1.0: "+1"}),
    )
    degenerate: Degenerate = rule(
        "count",
        check=choice(Degenerate),
        doc="What has no area: counted as any other; detections and ground truths whose area is not above 0 "
        "taken out (lvis-api); or detections alone, with a side that is not above 0 (Open Images).",
        word=Word("degenerate", silent="count"),
        step=Step(
            "boxes without area",
            "tables",
            {"count": "counted", "drop": "dropped", "drop_detections": "detections dropped"},
        ),
    )


@with_attributes
@record(frozen=True)
class MaskRules(Rules):
    """How masks are measured."""

    PREFIX = "masks."

    boundary_dilation: float = rule(
        0.02,
        check=number(0, 1, open_low=True),
        doc="A boundary's width over the image's diagonal.",
    )
    box_only_truth: BoxOnlyTruth = rule(
        "refuse",
        check=choice(BoxOnlyTruth),
        doc="Ground truths without a mask: refused; or, matched last and by their boxes, ignored, an object "
        "by one detection and a group by any number (Open Images). An empty mask is none.",
        word=Word("boxonly", silent="refuse"),
        step=Step("objects without masks", "matching", {"refuse": "refused", "absorb": "absorb"}),
    )
    precision: MaskPrecision = rule(
        "double",
        check=choice(MaskPrecision),
        doc="What overlaps of masks are divided in: float64; or float32, with at least 1e-7 below the line "
        "(Open Images). It decides which of nearly equal overlaps is the larger.",
        word=Word("precision", silent="double"),
        step=Step("precision of mask overlaps", "overlaps"),
    )


@with_attributes
@record(frozen=True)
class KeypointRules(Rules):
    """How keypoints are measured."""

    PREFIX = "keypoints."

    sigmas: tuple[float, ...] = rule(
        (),
        check=list_of(number(0, 1000, open_low=True), "a list"),
        doc="How far annotators scatter around each keypoint, relative to the object's size, [J].",
    )
    names: tuple[str, ...] = rule(
        (), check=list_of(text, "a list"), doc="Names of the keypoints, [J]; may be left out."
    )
    skeleton: tuple[tuple[int, int], ...] = rule(
        (),
        check=list_of(_ANY_PAIR, "a list"),
        doc="Pairs of keypoints joined by a limb, counted from 1 as in COCO files; for drawing only.",
    )

    def _check_together(self) -> None:
        if self.names:
            checks.same_length(len(self.sigmas), of="keypoints.sigmas", names=self.names)
        known = range(1, len(self.sigmas) + 1)
        for limb in self.skeleton:
            is_pair = isinstance(limb, (list, tuple)) and len(limb) == 2
            if not is_pair or not all(isinstance(end, int) and end in known for end in limb):
                pairs = f"be pairs of keypoints, 1 to {len(self.sigmas)}"
                raise ProtocolError("keypoints.skeleton", pairs, got=repr(limb))
        object.__setattr__(self, "skeleton", tuple(tuple(limb) for limb in self.skeleton))

    @property
    def spread(self) -> NDArray[np.float64]:
        """The sigmas as they are computed with, [J]."""
        return np.array(self.sigmas, dtype=np.float64)


@with_attributes
@record(frozen=True)
class IgnoreRules(Rules):
    """What counts neither for nor against."""

    PREFIX = "ignore."

    crowd: CrowdRule = rule(
        "iof",
        check=choice(CrowdRule),
        doc="Crowd regions: ignored and measured by intersection over the detection (COCO), ignored and "
        "measured by IoU, counted as any object, or taken out of the data before matching. Ignored, "
        "they absorb any number of detections.",
        word=Word("crowd"),
        step=Step("crowd regions", "tables"),
    )
    difficult: IgnoreRule = rule(
        "count",
        check=choice(IgnoreRule),
        doc="Difficult objects: ignored, absorbing any number of detections; counted as any object; or "
        "taken out of the data before matching.",
        word=Word("difficult", silent="count"),
        step=Step("difficult objects", "tables"),
    )
    flagged: IgnoreRule = rule(
        "ignore",
        check=choice(IgnoreRule),
        doc="Ground truths whose `ignore` flag is set: ignored, each taken by at most one detection; "
        "counted as any object; or taken out of the data before matching.",
        word=Word("flagged", silent="ignore"),
        step=Step("objects flagged ignore", "tables"),
    )
    detection_area: DetectionArea = rule(
        "box",
        check=choice(DetectionArea),
        doc="What area ranges measure in a detection: width times height, its mask's pixels, or the former "
        "where the results carry boxes and the latter where they do not (pycocotools).",
        word=Word("dtarea", silent="box"),
    )
    unlabelled: UnlabelledRule = rule(
        "count",
        check=choice(UnlabelledRule),
        doc="Ground truths without a labelled keypoint: counted, or ignored.",
        word=Word("nokpt", silent="count"),
        step=Step("objects without keypoints", "tables"),
    )
    area_ranges: Mapping[str, tuple[float, float]] = rule(
        {"all": (0.0, math.inf)},
        check=Check("name = [low, high]", _area_ranges),
        doc="Square pixels, closed at both ends. Ground truths outside are ignored, and so are detections "
        "outside that match nothing.",
        word=Word("area", text=wording.areas, note="`coco`, `all`, or each range"),
    )

    @property
    def bounds(self) -> list[tuple[float, float]]:
        """Ends of the area ranges, [A]; a lone range from 0 to infinity holds negative areas as well."""
        ranges = list(self.area_ranges.values())
        return [(-math.inf, math.inf)] if ranges == [(0.0, math.inf)] else ranges


@with_attributes
@record(frozen=True)
class GroupRules(Rules):
    """What a box around a group of objects is."""

    PREFIX = "group."

    treatment: GroupTreatment = rule(
        "count",
        check=choice(GroupTreatment),
        doc="One object like any other; or, matched last, a region that absorbs what lies in it, measured by "
        "intersection over the detection, and of whose detections the best stands for it if its score is "
        "above 0 (Open Images).",
        word=Word("group", silent="count", text=wording.group, note="`merge/` and the weight"),
        step=Step("groups", "matching", wording.group_step),
    )
    weight: float = rule(
        1.0,
        check=number(0, 1),
        doc='For "merge": how much a group counts, as an object and as a true positive; 0 ignores it.',
        step="group.treatment",
    )

    @property
    def weighs(self) -> bool:
        """Whether groups count as a part of an object."""
        return self.treatment == "merge" and 0 < self.weight < 1


@with_attributes
@record(frozen=True)
class LabelRules(Rules):
    """What follows from the labels of whole images, where not every class is annotated in every image."""

    PREFIX = "labels."

    unlisted: Unlisted = rule(
        "count",
        check=choice(Unlisted),
        doc="Detections of a class that is not listed in their image: counted, or dropped (federated data "
        "sets). A class is listed where it has an object, or as `listed_by` says.",
        word=Word("unlisted", silent="count"),
        step=Step("unlisted classes", "tables", {"count": "counted", "drop": "dropped"}),
    )
    listed_by: ListedBy = rule(
        "negative",
        check=choice(ListedBy),
        doc="Which labels of an image list a class: those that say it is absent (LVIS), or also those that "
        "say it is there (Open Images).",
        word=Word("listed", silent="negative"),
        step="labels.unlisted",
    )
    not_exhaustive: NotExhaustive = rule(
        "count",
        check=choice(NotExhaustive),
        doc="Detections that match nothing, of a class that is not annotated exhaustively in their image: "
        "false positives, or ignored.",
        word=Word("notexhaustive", silent="count"),
        step=Step("classes not annotated in full", "tables", {"count": "counted", "ignore": "ignored"}),
    )


@with_attributes
@record(frozen=True)
class MatchingRules(Rules):
    """How detections and ground truths are matched."""

    PREFIX = "matching."

    iou_thresholds: tuple[float, ...] = rule(
        (0.5,),
        check=grid_of(most=MOST_THRESHOLDS, open_low=True),
        doc="What an overlap must reach to be a match, ascending, [T].",
        word=Word("iou", text=wording.thresholds, note="one, several, or `first:last/count`"),
        step=Step("IoU thresholds", "thresholds", wording.threshold_range),
    )
    largest_threshold: float = rule(
        1.0,
        check=number(0, 1, open_low=True),
        doc="Higher thresholds are lowered to this (pycocotools: 1 - 1e-10).",
        word=Word("top", text=wording.largest_threshold, note="left out where it makes no difference"),
        step="matching.iou_thresholds",
    )
    candidate: Candidate = rule(
        "best_available",
        check=choice(Candidate),
        doc="Whether a detection whose best ground truth is taken may turn to the next.",
        word=Word("candidate", silent="best_available"),
        step=Step("candidate", "matching"),
    )
    equal_iou: EqualIou = rule(
        "last",
        check=choice(EqualIou),
        doc="Which of equally overlapped ground truths, in file order, is taken.",
        word=Word("ties", silent="last"),
        step=Step("equal overlaps", "matching"),
    )
    annotation_id_zero: AnnotationIdZero = rule(
        "counted",
        check=choice(AnnotationIdZero),
        doc="What a match with a counted ground truth of annotation id 0 is: a match like any other, or none "
        "(pycocotools): the detection is a false positive and the ground truth missed, though no other "
        "detection may have it.",
        word=Word("id0", silent="counted"),
        step=Step("annotation id 0", "matching"),
    )
    equal_scores: EqualScores = rule(
        "image_order",
        check=choice(EqualScores),
        doc="In which order a class's equally scored detections are counted: image by image, then by file; "
        "by file over all images; or matched with the last in the file first, and counted with the last "
        "image first (TensorFlow, where its sort happens to be stable).",
        word=Word("order", silent="image_order"),
        step=Step("equal scores", "matching", wording.equal_scores),
    )
    threshold_closed: bool = rule(
        True,
        check=flag,
        doc="Whether an overlap equal to the threshold matches (`>=`).",
        word=Word(
            "match",
            silent=True,
            text={False: ">", True: ">="},
            note="`>` where an overlap equal to the threshold does not match",
        ),
        step=Step("threshold", "thresholds", {False: ">", True: ">="}),
    )
    cap_scope: CapScope = rule(
        "class",
        check=choice(CapScope),
        doc="Whether the largest cap holds for an image and class, for an image over all its classes, or for "
        "a class over all images.",
        word=Word(
            "cap",
            silent="class",
            text={"image": "per image", "data_set_class": "per class"},
            note="what the cap is counted over, where it is not an image and class",
        ),
        step="matching.max_detections",
    )
    score_threshold: float = rule(
        -math.inf,
        check=number(-math.inf, math.inf),
        doc="Detections below are left out before they are ranked.",
        word=Word("conf", silent=-math.inf, note="left out where every score counts"),
        step=Step("score threshold", "ranking", {-math.inf: "none"}),
    )
    max_detections: tuple[int, ...] = rule(
        (),
        check=list_of(_whole(1), "a list of whole numbers", ordered=True),
        doc="Caps on the detections of an image and class, ascending, [M]; empty for none.",
        word=Word("maxdet", text=wording.caps, note="the caps, or `none`"),
        step=Step("detection cap", "ranking", wording.largest_cap),
    )
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
        step=Step("classes", "ranking", {False: "pooled", True: "apart"}),
    )

    @property
    def effective_thresholds(self) -> NDArray[np.float64]:
        """What an overlap must reach (``>=``) at each IoU threshold, [T]."""
        thresholds = np.minimum(self.iou_thresholds, self.largest_threshold)
        return thresholds if self.threshold_closed else np.nextafter(thresholds, np.inf)


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
        "last recall reached, or along a line from there to (1, 0).",
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
        doc="The mean over classes: of the values that are defined, or `numpy.nanmean` over all classes, "
        "whose last bit depends on where the undefined ones stand.",
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
        check=Check("list: number >= 0", lambda value, name: fppi_points(value, name=name)),
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
class SummaryRow(Rules):
    """One summary metric.

    A row whose threshold, area range or cap the protocol does not have is left out of the summary.
    """

    key: str = rule(
        check=Check("string", _key), doc="Its name in `metrics`; `{cap}` stands for the detection cap."
    )
    metric: str = rule("AP", check=choice(SUMMARY_KINDS), doc="What is computed.")
    iou: float | None = rule(
        None,
        check=Check("number in (0, 1]", _threshold_or_mean),
        doc="One threshold; left out, the mean over all.",
    )
    area: str = rule("all", check=text, doc="The name of an area range.")
    cap: int = rule(-1, check=_whole(-1), doc="Position among the detection caps; -1 is the largest.")
    classes: str = rule(
        "",
        check=Check("column=value", _selection),
        doc="Only classes whose column has a value: `frequency=r` for the rare ones of LVIS. Left out, all.",
    )

    def _label(self, name: str) -> str:
        return f"summary.{name}" if name == "key" else f"summary {self.key}: {name}"


def summary_title(metric: str, iou: str, area: str, cap: int | str) -> str:
    """Spell out what a summary metric is, the way pycocotools prints it."""
    return f"{SUMMARY_KINDS[metric]} @[ IoU={iou:<9} | area={area:>6} | maxDets={cap:>3} ]"


@with_attributes
@record(frozen=True)
class Protocol(Rules):
    """Everything that decides a score. See the module's page for the conventions."""

    name: str = rule(
        check=text, doc="Stands in the signature; not taken over by a protocol that extends this one."
    )
    title: str = rule("", check=text, doc="One line for people; not taken over.")
    aliases: tuple[str, ...] = rule(
        (),
        check=list_of(text, "a list"),
        doc="Other names by which `boxscore explain` knows the tool that scores so; not taken over.",
    )
    of_type: Mapping[str, str] = rule(
        {},
        check=Check("IoU type = protocol", _strings),
        doc="The protocols that take this one's place when `--iou-type` asks for something else; not taken "
        "over.",
    )
    similarity: SimilarityName = rule(
        "box",
        check=choice(SimilarityName),
        doc="What decides how well a detection and a ground truth agree.",
        word=Word(
            "sim",
            text=wording.similarity,
            note="left out for upright boxes; `rotated`, `mask`, `boundary/` and its dilation, `oks/` and "
            "its keypoints",
        ),
    )
    rounding: RoundingRules = rule(RoundingRules(), check=table(RoundingRules), doc="")
    boxes: BoxRules = rule(BoxRules(), check=table(BoxRules), doc="")
    masks: MaskRules = rule(MaskRules(), check=table(MaskRules), doc="")
    keypoints: KeypointRules = rule(KeypointRules(), check=table(KeypointRules), doc="")
    ignore: IgnoreRules = rule(IgnoreRules(), check=table(IgnoreRules), doc="")
    group: GroupRules = rule(GroupRules(), check=table(GroupRules), doc="")
    labels: LabelRules = rule(LabelRules(), check=table(LabelRules), doc="")
    matching: MatchingRules = rule(MatchingRules(), check=table(MatchingRules), doc="")
    ap: ApRules = rule(ApRules(), check=table(ApRules), doc="")
    froc: FrocRules = rule(FrocRules(), check=table(FrocRules), doc="")
    summary: tuple[SummaryRow, ...] = rule(
        (SummaryRow("mAP"),), check=list_of(table(SummaryRow), "a list of tables, [[summary]]"), doc=""
    )

    def _check_together(self) -> None:
        if self.matching.equal_scores == "last_first" and not self.matching.per_class:
            raise ProtocolError("matching.per_class", "be true where equal scores go last_first", got="false")
        if self.similarity == "keypoints" and not self.keypoints.sigmas:
            raise ProtocolError("keypoints.sigmas", "be given", got="none")
        if self.group.weighs and self.ap.interpolation != "area":
            cause = "parts of an object have no place at recall points"
            raise ProtocolError(
                "group.weight",
                'be 0 or 1 unless ap.interpolation is "area"',
                got=self.group.weight,
                cause=cause,
            )

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> Protocol:
        """Build a protocol from the values of a TOML file."""
        return read(cls, {"name": "custom", **values}, name="")

    @property
    def caps(self) -> tuple[int | None, ...]:
        """The detection caps, ascending; ``(None,)`` for no cap. The axis M."""
        return self.matching.max_detections or (None,)

    @property
    def masks_may_lack(self) -> bool:
        """Whether masks are compared, and ground truths without one are matched by their boxes."""
        return self.similarity in ("mask", "boundary") and self.masks.box_only_truth == "absorb"

    @functools.cached_property
    def rows(self) -> tuple[SummaryRow, ...]:
        """The summary rows that apply, their keys filled in, each key once."""
        rows: dict[str, SummaryRow] = {}
        for row in self.summary:
            has_cap = -len(self.caps) <= row.cap < len(self.caps)
            has_iou = row.iou is None or row.iou in self.matching.iou_thresholds
            if has_cap and has_iou and row.area in self.ignore.area_ranges:
                key = row.key.replace("{cap}", str(self.caps[row.cap]))
                rows.setdefault(key, dataclasses.replace(row, key=key))
        return tuple(rows.values())

    @property
    def class_keys(self) -> dict[str, str]:
        """What each summary metric is called in the rows per class, by its key: ``mAP`` is ``AP`` there.

        Metrics of some classes alone have no column there.
        A key keeps its name where it does not start with "m" and a capital letter, and where the shorter name
        is another metric's own.
        """
        keys = [row.key for row in self.rows if not row.classes]
        short = {key: key[1:] if re.match("m[A-Z]", key) else key for key in keys}
        return {key: key if short[key] in keys else short[key] for key in keys}

    def iou_text(self, row: SummaryRow) -> str:
        """Write the threshold, or the range of thresholds, of a summary row."""
        if row.iou is not None:
            return f"{row.iou:.2f}"
        thresholds = self.matching.iou_thresholds
        return grid_text(thresholds) if len(thresholds) <= 2 else f"{thresholds[0]:.2f}:{thresholds[-1]:.2f}"

    def row_title(self, row: SummaryRow) -> str:
        """Spell out what a summary row is, the way pycocotools prints it."""
        return summary_title(row.metric, self.iou_text(row), row.area, self.caps[row.cap] or "all")

    def signature(self) -> str:
        """Return every choice in one line, to print beside every score.

        Examples
        --------
        >>> from boxscore.protocols import load_protocol
        >>> load_protocol("coco").signature()
        'boxscore|coco|iou:0.50:0.95/10|ap:101|maxdet:1,10,100|area:coco|crowd:iof|offset:0|v:0.2.0'
        """
        return signature_of(self)
