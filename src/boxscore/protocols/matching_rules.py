"""What is matched, and how: the tables ``ignore``, ``group``, ``labels`` and ``matching`` of a protocol."""

from __future__ import annotations

import math
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
    rule,
    text,
    whole,
    with_attributes,
)

__all__ = [
    "AnnotationIdZero",
    "DetectionArea",
    "EqualScores",
    "GroupRules",
    "IgnoreRules",
    "LabelRules",
    "MatchingRules",
]

AnnotationIdZero = Literal["counted", "unmatched"]
Candidate = Literal["best_available", "best_overall"]
EqualIou = Literal["last", "first"]
EqualScores = Literal["image_order", "file_order", "last_first"]
CapScope = Literal["class", "image", "image_each", "data_set_class"]
CrowdRule = Literal["iof", "ignore", "count", "delete"]
GroupTreatment = Literal["count", "merge"]
FlaggedRule = Literal["ignore", "iof", "count", "delete"]
IgnoreRule = Literal["ignore", "count", "delete"]
Outside = Literal["ignore", "absorb", "iof"]
DetectionArea = Literal["box", "mask", "box_or_mask"]
ListedBy = Literal["negative", "verified"]
NotExhaustive = Literal["count", "ignore"]
Unlisted = Literal["count", "drop", "drop_without_object"]
UnlabelledRule = Literal["count", "ignore"]

MOST_THRESHOLDS = 64
"""IoU thresholds are kept as the bits of one unsigned integer."""


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
        check=list_of(whole(1), "a list of whole numbers", ordered=True),
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
