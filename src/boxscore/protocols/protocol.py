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
    "JaccardRules",
    "KeypointRules",
    "LabelRules",
    "MaskRules",
    "MatchingRules",
    "MissRateRules",
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
CapScope = Literal["class", "image", "image_each", "data_set_class"]
Clip = Literal["none", "image"]
CrowdRule = Literal["iof", "ignore", "count", "delete"]
GroupTreatment = Literal["count", "merge"]
Edges = Literal["sides", "corners"]
FlaggedRule = Literal["ignore", "iof", "count", "delete"]
IgnoreRule = Literal["ignore", "count", "delete"]
Interpolation = Literal["points", "area", "trapezoid", "trapezoid_to_one", "every_point"]
ClassMean = Literal["of_defined", "nanmean", "by_images"]
MissReading = Literal["first_at_least", "last_at_most", "last_at_most_or_end"]
Outside = Literal["ignore", "absorb", "iof"]
RecallOver = Literal["counted", "all"]
Pool = Literal["none", "classes"]
TieOrder = Literal["as_ranked", "true_positives_first", "true_positives_last"]
AbsentClasses = Literal["skip", "zero", "all_zero"]
FrocInterpolation = Literal["linear", "step"]
SimilarityName = Literal["box", "rotated", "quadrilateral", "probiou", "mask", "boundary", "keypoints"]
Degenerate = Literal["count", "drop", "drop_detections"]
DetectionArea = Literal["box", "mask", "box_or_mask"]
ListedBy = Literal["negative", "verified"]
MaskPrecision = Literal["double", "single"]
NotExhaustive = Literal["count", "ignore"]
Unlisted = Literal["count", "drop", "drop_without_object"]
UnlabelledRule = Literal["count", "ignore"]

SUMMARY_KINDS = {
    "AP": "Average Precision  (AP)",
    "AR": "Average Recall     (AR)",
    "FROC": "Mean Sensitivity (FROC)",
    "MR": "Log-Average Miss Rate (MR)",
    "JI": "Jaccard Index      (JI)",
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


def _column_ranges(value: Any, name: str) -> dict[str, dict[str, tuple[float, float]]]:
    if not isinstance(value, Mapping):
        raise ProtocolError(name, "be a table of area range = {column = [low, high]}", got=repr(value))
    return {text(key, name): _area_ranges(columns, f"{name}.{key}") for key, columns in value.items()}


def _class_thresholds(value: Any, name: str) -> dict[str, tuple[float, ...]]:
    if not isinstance(value, Mapping):
        raise ProtocolError(name, "be a table of class = [threshold, ...]", got=repr(value))
    check = grid_of(most=MOST_THRESHOLDS, open_low=True)
    return {text(key, name): check(grid, f"{name}.{key}") for key, grid in value.items()}


def _ratio(value: Any, name: str) -> float | None:
    return None if value in (None, "none") else checks.number_between(value, 0, 1e6, name=name, open_low=True)


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
_FPPI = Check("list: number >= 0", lambda value, name: fppi_points(value, name=name))
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
    stretch_scores: bool = rule(
        False,
        check=flag,
        doc="Whether scores are stretched over [0, 1]: `(s - low) / (high - low)`, where `low` is the least "
        "score of all detections and at most 1, `high` the largest and at least 0 (WIDER FACE).",
        word=Word("scores", silent=False, text={True: "stretched"}, note="`stretched` over [0, 1]"),
        step=Step("scores", "tables", {False: "as given", True: "stretched over [0, 1]"}),
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
    least_side: float = rule(
        0.0,
        check=number(0, math.inf),
        doc="Ground truths with a side below this many pixels are taken out of the data; of rotated boxes "
        "and corners, a side of the rotated rectangle (mmrotate: 2).",
        word=Word("leastside", silent=0.0),
        step=Step("small objects", "tables", wording.least_side),
    )
    clip: Clip = rule(
        "none",
        check=choice(Clip),
        doc="Whether the boxes of both sides are clipped to their image: the first corner to "
        "[0, width - 1] and [0, height - 1], the second to [0, width] and [0, height] (CrowdHuman).",
        word=Word("clip", silent="none"),
        step=Step("boxes beyond the image", "tables", {"none": "as given", "image": "clipped"}),
    )
    aspect_ratio: float | None = rule(
        None,
        check=Check('number > 0, "none"', _ratio),
        doc="The ratio of width to height that boxes are compared with: height and centre stay. Regions "
        "that are "
        "measured by intersection over the detection keep theirs (Caltech: 0.41).",
        word=Word("aspect", silent=None, note="left out where boxes are compared as they are"),
        step=Step("aspect ratio", "overlaps", {None: "as given"}),
    )
    edges: Edges = rule(
        "sides",
        check=choice(Edges),
        doc="Where `pixel_offset` is 0, what the far edges of a box are: the near ones plus its sides, as in "
        "pycocotools, or the corners as they are, which its sides are then made of. They differ in the last "
        "bit.",
        word=Word("edges", silent="sides"),
        step="boxes.pixel_offset",
    )
    overlap_epsilon: float = rule(
        0.0,
        check=number(0, 1),
        doc="Added to the area that the shared one is divided by (CrowdHuman: 1e-6).",
        word=Word("overlapeps", silent=0.0),
        step="boxes.pixel_offset",
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
    flagged: FlaggedRule = rule(
        "ignore",
        check=choice(FlaggedRule),
        doc="Ground truths whose `ignore` flag is set: ignored, each taken by at most one detection; "
        "ignored, "
        "absorbing any number and measured by intersection over the detection; counted as any object; or "
        "taken out of the data before matching.",
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
    column_ranges: Mapping[str, Mapping[str, tuple[float, float]]] = rule(
        {},
        check=Check("area range = {column = [low, high]}", _column_ranges),
        doc="Further bounds of an area range on the ground truth, closed at both ends: by the range's name, "
        "`width`, `height`, `x1`, `y1`, `x2`, `y2` of the box in pixels, or a column of the ground truth. "
        "What "
        "lies outside any of them lies outside the range.",
        word=Word("ranges", text=wording.column_ranges, note="the columns that bound each range"),
        step=Step("subsets", "tables", wording.column_ranges),
    )
    outside: Outside = rule(
        "ignore",
        check=choice(Outside),
        doc="Ground truths outside a range: ignored, each taken by at most one detection (COCO); ignored, "
        "absorbing any number of detections; or the same, measured by intersection over the detection.",
        word=Word("outside", silent="ignore"),
        step=Step("objects outside a range", "matching"),
    )
    height_slack: float = rule(
        0.0,
        check=number(0, 1e6),
        doc="Detections are dropped from a range with bounds on `height` where theirs is below the lower "
        "bound "
        "over this factor, or not below the upper bound times it (Caltech: 1.25); 0 keeps all.",
        word=Word("dtheight", silent=0.0),
        step=Step("heights of detections", "ranking", {0.0: "any"}),
    )
    regions: str = rule(
        "",
        check=text,
        doc="The class whose objects are regions of their image that are not annotated: objects and "
        "detections "
        "of every class that lie in them by half or more are dropped before anything else (VisDrone).",
        word=Word("regions", silent=""),
        step=Step("regions that are not annotated", "tables", {"": "none"}),
    )

    @property
    def range_by_range(self) -> bool:
        """Whether how a pair is measured, or which detections take part, depends on the range."""
        return self.outside != "ignore" or self.height_slack > 0

    @property
    def bounds(self) -> list[tuple[float, float]]:
        """Ends of the area ranges, [A].

        A range from 0 to infinity that is alone, or bounded by other columns, holds negative areas as well.
        """
        return [
            (-math.inf, math.inf)
            if ends == (0.0, math.inf) and (len(self.area_ranges) == 1 or name in self.column_ranges)
            else ends
            for name, ends in self.area_ranges.items()
        ]


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
        doc="Detections of a class that is not listed in their image: counted; dropped (federated data "
        "sets), where a class is listed if it has an object or as `listed_by` says; or dropped where the "
        "image "
        "has no object of it, whatever labels of images say (WIDER FACE).",
        word=Word("unlisted", silent="count"),
        step=Step(
            "unlisted classes",
            "tables",
            {"count": "counted", "drop": "dropped", "drop_without_object": "dropped without an object"},
        ),
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
    not_evaluated: tuple[str, ...] = rule(
        (),
        check=list_of(text, "a list"),
        doc="Names of classes that are not evaluated. A cap over an image counts their detections.",
        word=Word("without", silent=(), text=wording.not_evaluated, note="the classes not evaluated"),
        step=Step("classes not evaluated", "tables", wording.not_evaluated),
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
    class_thresholds: Mapping[str, tuple[float, ...]] = rule(
        {},
        check=Check("class = grid in (0, 1]", _class_thresholds),
        doc="Classes with IoU thresholds of their own, by name: as many as `iou_thresholds`, in whose place "
        "they stand (KITTI: `Car = [0.7]` beside 0.5).",
        word=Word("classiou", text=wording.class_thresholds, note="the classes with thresholds of their own"),
        step=Step("IoU thresholds of classes", "thresholds", wording.class_thresholds),
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
        "a class over all images; or whether every cap holds for an image over all its classes.",
        word=Word(
            "cap",
            silent="class",
            text={"image": "per image", "image_each": "per image, each", "data_set_class": "per class"},
            note="what the cap is counted over, where it is not an image and class",
        ),
        step="matching.max_detections",
    )
    ranked_files: bool = rule(
        False,
        check=flag,
        doc="Whether the detections of an image must come by descending score, as tools want them that read "
        "them in file order; others are an error then.",
        word=Word("files", silent=False, text={True: "ranked"}, note="`ranked` where the order is checked"),
        step="matching.equal_scores",
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

    def _check_together(self) -> None:
        count = len(self.iou_thresholds)
        for name, thresholds in self.class_thresholds.items():
            if len(thresholds) != count:
                rule = f"have {count} values, one for each of matching.iou_thresholds"
                raise ProtocolError(f"matching.class_thresholds.{name}", rule, got=len(thresholds))
        if self.class_thresholds and not self.per_class:
            raise ProtocolError(
                "matching.class_thresholds", "be left out where classes are pooled", got="some"
            )

    @property
    def effective_thresholds(self) -> NDArray[np.float64]:
        """What an overlap must reach (``>=``) at each IoU threshold, [T]."""
        return self._effective(self.iou_thresholds)

    def effective_thresholds_of(self, name: str) -> NDArray[np.float64]:
        """Return what an overlap must reach for a class, [T]."""
        return self._effective(self.class_thresholds.get(name, self.iou_thresholds))

    @property
    def lowest_threshold(self) -> float:
        """What an overlap must reach to match at all, in any class."""
        lowest = (self.iou_thresholds[0], *(own[0] for own in self.class_thresholds.values()))
        return float(self._effective((min(lowest),))[0])

    def levels(
        self, overlaps: NDArray[np.float64], classes: NDArray[np.integer[Any]], names: NDArray[Any]
    ) -> NDArray[np.intp]:
        """How many thresholds of its class each overlap reaches, [P]; ``names`` are of the classes [K]."""
        level = np.searchsorted(self.effective_thresholds, overlaps, side="right")
        for name in self.class_thresholds:
            own = np.isin(classes, np.flatnonzero(names == name))
            thresholds = self.effective_thresholds_of(name)
            level[own] = np.searchsorted(thresholds, overlaps[own], side="right")
        return level

    def _effective(self, thresholds: tuple[float, ...]) -> NDArray[np.float64]:
        lowered = np.minimum(thresholds, self.largest_threshold)
        return lowered if self.threshold_closed else np.nextafter(lowered, np.inf)


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
        check=_whole(0),
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
            note="left out for upright boxes; `rotated`, `quadrilateral`, `probiou`, `mask`, `boundary/` and "
            "its dilation, `oks/` and its keypoints",
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
    miss_rate: MissRateRules = rule(MissRateRules(), check=table(MissRateRules), doc="")
    jaccard: JaccardRules = rule(JaccardRules(), check=table(JaccardRules), doc="")
    summary: tuple[SummaryRow, ...] = rule(
        (SummaryRow("mAP"),), check=list_of(table(SummaryRow), "a list of tables, [[summary]]"), doc=""
    )

    def _check_together(self) -> None:
        if self.matching.equal_scores == "last_first" and not self.matching.per_class:
            raise ProtocolError("matching.per_class", "be true where equal scores go last_first", got="false")
        if self.masks_may_lack and self.ignore.range_by_range:
            rule = 'be "ignore", and ignore.height_slack 0, where ground truths may lack their masks'
            raise ProtocolError("ignore.outside", rule, got=repr(self.ignore.outside))
        if self.group.treatment == "merge" and self.ignore.range_by_range:
            rule = 'be "ignore" where groups are merged'
            raise ProtocolError("ignore.outside", rule, got=repr(self.ignore.outside))
        if self.group.treatment == "merge" and self.matching.class_thresholds:
            raise ProtocolError(
                "matching.class_thresholds", "be left out where groups are merged", got="some"
            )
        if self.ap.score_steps and self.ap.interpolation != "area":
            rule = 'be 0 unless ap.interpolation is "area"'
            raise ProtocolError("ap.score_steps", rule, got=self.ap.score_steps)
        if self.asks_for("JI") and self.ignore.range_by_range:
            rule = 'be "ignore", and ignore.height_slack 0, where the summary has JI'
            raise ProtocolError("ignore.outside", rule, got=repr(self.ignore.outside))
        if self.ap.recall_over == "all" and self.group.weighs:
            raise ProtocolError("ap.recall_over", 'be "counted" where groups have weights', got='"all"')
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

    def asks_for(self, metric: str) -> bool:
        """Whether the summary has a metric of a kind."""
        return any(row.metric == metric for row in self.summary)

    @property
    def lower_is_better(self) -> tuple[str, ...]:
        """Keys of the summary metrics that fall when a detector gets better: miss rates."""
        return tuple(row.key for row in self.rows if row.metric == "MR")

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
