"""Define ``[matching]``: how to match detections with ground truths."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from boxscore.errors import ProtocolError
from boxscore.protocols.acting import Does, ExtraColumn, Refusal, Scope, matches, prepares, ranks
from boxscore.protocols.acting import scores as scoring
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
)
from boxscore.protocols.grids import grid_text, number_text
from boxscore.protocols.summary import OF_IMAGES, ORDERLESS, named_kind

Candidate = Literal[
    "best_available",
    "best_overall",
    "most_pairs",
    "objects_choose",
    "best_pair_first",
    "assigned_before_threshold",
]
EqualIou = Literal["last", "first"]
Order = Literal["score", "file"]
AnnotationIdZero = Literal["counted", "unmatched"]
EqualScores = Literal["image_order", "file_order", "last_first", "last_in_file_first"]
CapScope = Literal["class", "image", "image_each", "data_set_class"]
Scores = Literal["given", "none", "equal"]


MOST_THRESHOLDS = 64
"""IoU thresholds are stored as the bits of one unsigned integer."""


COCO_LARGEST_THRESHOLD = 0.9999999999


def _class_thresholds(value: Any, name: str) -> dict[str, tuple[float, ...]]:
    if not isinstance(value, Mapping):
        raise ProtocolError(name, "be a table of class = [threshold, ...]", got=repr(value))
    check = grid_of(most=MOST_THRESHOLDS, open_low=True)
    return {text(key, name): check(grid, f"{name}.{key}") for key, grid in value.items()}


def _thresholds(protocol: Any) -> str:
    """Format the grid of IoU thresholds."""
    return grid_text(protocol.matching.iou_thresholds)


def _largest_threshold(protocol: Any) -> str:
    """Format the bound; empty if it lowers thresholds like COCO's."""
    matching = protocol.matching
    lowered = np.minimum(matching.iou_thresholds, matching.largest_threshold)
    same = (lowered == np.minimum(matching.iou_thresholds, COCO_LARGEST_THRESHOLD)).all()
    return "" if same else number_text(matching.largest_threshold)


def _class_thresholds_text(protocol: Any) -> str:
    """Name the classes with their own thresholds; empty without any."""
    of_class = protocol.matching.class_thresholds
    return ",".join(f"{name}={grid_text(thresholds)}" for name, thresholds in of_class.items())


def _threshold_range(protocol: Any) -> str:
    """Format the rounded IoU thresholds briefly."""
    values = protocol.matching.iou_thresholds
    return grid_text(values) if len(values) < 3 else f"{values[0]:.2f}:{values[-1]:.2f}/{len(values)}"


RANKED = ("best_available", "best_overall")
"""Rules by which detections choose one after the other."""


def _not_ranked(protocol: Any) -> bool:
    return protocol.matching.candidate not in RANKED


_CANDIDATES_REFUSED = (
    Refusal("cuts", _not_ranked),
    Refusal(
        "together",
        lambda protocol: (
            _not_ranked(protocol) and (protocol.group.treatment == "merge" or protocol.masks_may_lack)
        ),
        "be 'best_available' or 'best_overall' where groups are merged, or objects without a mask absorb",
    ),
)


def _by_file(protocol: Any) -> bool:
    return bool(protocol.matching.order == "file")


def _equal_scores(protocol: Any) -> str:
    """Describe the order of ties, or the reordering after matching."""
    moved = protocol.ap.tie_order
    return str(protocol.matching.equal_scores if moved == "as_ranked" else moved).replace("_", " ")


def _ranked(protocol: Any) -> bool:
    return bool(protocol.matching.ranked_files)


def _max_detections(protocol: Any) -> str:
    """Format max detections."""
    return ",".join(map(str, protocol.matching.max_detections)) or "none"


def _largest_max_detections(protocol: Any) -> str:
    """Format the largest of max detections and the scope of the count."""
    most = protocol.caps[-1]
    scopes = {"class": "image and class", "image": "image", "data_set_class": "class of the data set"}
    scope = scopes[protocol.matching.cap_scope.removesuffix("_each")]
    return "none" if most is None else f"{most} per {scope}"


def _over_data_set(protocol: Any) -> bool:
    return bool(protocol.matching.caps_data_set)


def _cap_scope(protocol: Any) -> Scope:
    return Scope.CLASS if _over_data_set(protocol) else Scope.IMAGE


_CAPS_REFUSED = (
    Refusal("ranges", _over_data_set),
    Refusal("classes", lambda protocol: protocol.matching.caps_image),
    Refusal(
        "batches",
        _over_data_set,
        "be 'class' or 'image' for an Evaluator",
        cause="max detections over all images cannot be applied batch by batch: evaluate a results file",
    ),
    Refusal(
        "parts",
        lambda protocol: (
            _over_data_set(protocol)
            and (not protocol.matching.per_class or protocol.matching.equal_scores == "last_first")
        ),
        "be 'class' or 'image' in parts, where classes are pooled or equal scores go last_first",
        cause="evaluate all images at once",
    ),
)


def _lowest(protocol: Any) -> str:
    """Format the threshold, and whether a score equal to it is kept."""
    rules = protocol.matching
    if rules.score_threshold == -math.inf:
        return "none"
    return f"{'' if rules.score_closed else 'above '}{number_text(rules.score_threshold)}"


PAIR_IOU = ExtraColumn(
    "pair_iou",
    "pair",
    "float",
    asked_for=lambda protocol: any(map(protocol.asks_for, ("mean_iou", "object_iou"))),
    most=1.0,
)
"""Overlap of each pair, [P]: parts do not store any other."""


def _ranks(protocol: Any) -> bool:
    """Whether a summary metric ranks detections."""
    return any(named_kind(row.metric).needs_order for row in protocol.summary)


def _unranked(protocol: Any) -> bool:
    return bool(protocol.matching.scores == "none")


def _not_given(protocol: Any) -> bool:
    return bool(protocol.matching.scores != "given")


def _refused_without_scores(field: str, rule: str, wrong: Any, when: Any = _unranked) -> Refusal:
    """Reject a value of another field if detections are not ranked, or not by scores."""
    asked = f"{rule} where detections have no scores"
    return Refusal("together", lambda protocol: when(protocol) and wrong(protocol), asked, field)


class MatchingRules(Rules):
    """How to match detections with ground truths."""

    PREFIX = "matching."

    # thresholds
    iou_thresholds: tuple[float, ...] = rule(
        (0.5,),
        check=grid_of(most=MOST_THRESHOLDS, open_low=True),
        doc="The least overlap for a match, ascending, [T].",
        word=Word("iou", text=_thresholds, note="one, several, or `first:last/count`"),
        step=Step("IoU thresholds", "thresholds", _threshold_range),
        scope=matches(Scope.ROW),
        replaces=True,
    )
    largest_threshold: float = rule(
        1.0,
        check=number(0, 1, open_low=True),
        doc="Higher thresholds are lowered to this (pycocotools: 1 - 1e-10).",
        word=Word("top", text=_largest_threshold, note="left out where it makes no difference"),
        step="matching.iou_thresholds",
        scope=matches(Scope.ROW),
    )
    class_thresholds: Mapping[str, tuple[float, ...]] = rule(
        {},
        check=Check("class = grid in (0, 1]", _class_thresholds),
        doc="Classes with their own IoU thresholds, by name: as many as `iou_thresholds`, which they "
        "replace (KITTI: `Car = [0.7]`, others 0.5).",
        word=Word("classiou", text=_class_thresholds_text, note="the classes with thresholds of their own"),
        step="matching.iou_thresholds",  # both have the same length
        scope=matches(Scope.ROW),
    )
    # candidates
    candidate: Candidate = rule(
        "best_available",
        check=choice(Candidate),
        doc="How a detection finds its ground truth. It may take the next best if its best is taken, or "
        "not. Alternatives: match as many pairs as possible, then with the greatest total IoU, "
        "regardless of score and order; let each object, in file order, choose the free detection that "
        "it overlaps most (Rex-Omni); take the best pair of all first, then the best remaining pair, "
        "regardless of score (MillionTrees); or assign all for the greatest total regardless of the "
        "threshold, which then removes pairs (DeepForest).",
        word=Word("candidate", silent="best_available"),
        step=Step("candidate", "matching"),
        scope=matches(Scope.IMAGE),
        refuses=_CANDIDATES_REFUSED,
        does=(
            Does(
                "match", "boxscore.extensions.scoreless.whole_groups:matching_whole_groups", _not_ranked, 10
            ),
        ),
    )
    equal_iou: EqualIou = rule(
        "last",
        check=choice(EqualIou),
        doc="Which of equally overlapped ground truths is taken, in file order; or which detection, if "
        "objects choose.",
        word=Word("ties", silent="last"),
        step=Step("equal overlaps", "matching"),
        scope=matches(Scope.IMAGE),
    )
    # order
    order: Order = rule(
        "score",
        check=choice(Order),
        doc="The order in which the detections of an image and class choose their ground truths: by "
        "descending score, or in file order regardless of score (xView). Curves use descending scores "
        "in either case, and max detections keep the highest ones.",
        word=Word("by", silent="score"),
        step=Step("order of matching", "matching", {"score": "by score", "file": "as in the file"}),
        scope=matches(Scope.IMAGE),
        refuses=(
            Refusal("cuts", _by_file),
            Refusal("plain_tables", _by_file),
            Refusal(
                "together",
                lambda protocol: _by_file(protocol) and len(protocol.matching.max_detections) > 1,
                "be one number at most where detections are matched in file order",
                field="matching.max_detections",
            ),
        ),
    )
    # annotation id 0
    annotation_id_zero: AnnotationIdZero = rule(
        "counted",
        check=choice(AnnotationIdZero),
        doc="A match with a counted ground truth of annotation id 0: a match like any other; or not a match "
        "(pycocotools), in which case the detection is a false positive and the ground truth is missed, "
        "but stays unavailable to other detections.",
        word=Word("id0", silent="counted"),
        step=Step("annotation id 0", "matching"),
        scope=matches(Scope.ROW),
    )
    # equal scores
    equal_scores: EqualScores = rule(
        "image_order",
        check=choice(EqualScores),
        doc="The order in which a class's equally scored detections are counted: image by image, then by "
        "file; by file over all images; matched with the last in the file first and counted with the "
        "last image first, where the true positive of a group comes first in its image (TensorFlow, "
        "where its sort happens to be stable); or by file over all images, the last first (nuScenes).",
        word=Word("order", silent="image_order"),
        step=Step("equal scores", "matching", _equal_scores),
        scope=scoring(Scope.CLASS),
        refuses=(
            Refusal(
                "together",
                lambda protocol: (
                    protocol.matching.equal_scores == "last_first" and not protocol.matching.per_class
                ),
                "be true where equal scores go last_first",
                field="matching.per_class",
                got="false",
            ),
        ),
    )
    # thresholds
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
        scope=matches(Scope.ROW),
    )
    # max detections
    cap_scope: CapScope = rule(
        "class",
        check=choice(CapScope),
        doc="The scope of max detections: the largest limit counts per image and class, per image over all "
        "its classes, or per class over all images; or every limit counts per image over all its classes.",
        word=Word(
            "cap",
            silent="class",
            text={"image": "per image", "image_each": "per image, each", "data_set_class": "per class"},
            note="what max detections are counted over, where that is not an image and class",
        ),
        step="matching.max_detections",
        scope=ranks(_cap_scope),
        refuses=_CAPS_REFUSED,
    )
    # equal scores
    ranked_files: bool = rule(
        False,
        check=flag,
        doc="Whether the detections of an image must be in descending order of score, as for tools that "
        "read them in file order; otherwise they are an error.",
        word=Word("files", silent=False, text={True: "ranked"}, note="`ranked` where the order is checked"),
        step="matching.equal_scores",
        scope=prepares(lambda protocol: Scope.IMAGE if protocol.matching.ranked_files else Scope.ROW),
        refuses=(Refusal("plain_tables", _ranked),),
        does=(Does("prepare", "boxscore.extensions.crowds.stretching:check_ranked", _ranked, -10),),
    )
    # score threshold
    score_threshold: float = rule(
        -math.inf,
        check=number(-math.inf, math.inf),
        doc="Detections with lower scores are dropped before ranking.",
        word=Word("conf", silent=-math.inf, note="left out where every score counts"),
        step=Step("score threshold", "ranking", _lowest),
        scope=ranks(Scope.ROW),
    )
    score_closed: bool = rule(
        True,
        check=flag,
        doc="Whether a score equal to the threshold is kept (`>=`) or dropped (`>`), as in tools that write "
        "`conf > threshold` (Ultralytics, torchvision).",
        word=Word(
            "keep", silent=True, text={False: ">"}, note="`>` where a score equal to `conf` is left out"
        ),
        step="matching.score_threshold",
        scope=ranks(Scope.ROW),
    )
    # max detections
    max_detections: tuple[int, ...] = rule(
        (),
        check=list_of(whole(1), "a list of whole numbers", ordered=True),
        doc="Number of detections per image and class to evaluate, highest scores first; ascending, [M]. "
        "Empty: all.",
        word=Word("maxdet", text=_max_detections, note="max detections, or `none`"),
        step=Step("max detections", "ranking", _largest_max_detections),
        scope=ranks(_cap_scope),
    )
    # scores
    scores: Scores = rule(
        "given",
        check=choice(Scores),
        doc="Whether detections are ranked by score. Alternatives: scores are not read and boxes are "
        "counted in no order (for language models); or scores are not read and all are equal, so that "
        "file order decides (for tools that write the same score for every box).",
        step=Step(
            "scores of detections", "tables", {"given": "as given", "none": "not read", "equal": "all equal"}
        ),
        scope=prepares(Scope.ROW),
        columns=(PAIR_IOU,),
        does=(Does("after", "boxscore.extensions.scoreless.overlap_sums:with_pair_iou", PAIR_IOU.asked_for),),
        refuses=(
            _refused_without_scores(
                "matching.max_detections", "be [] (all)", lambda p: p.matching.max_detections
            ),
            *(
                _refused_without_scores(field, rule, wrong, _not_given)
                for field, rule, wrong in (
                    (
                        "matching.score_threshold",
                        "be -inf",
                        lambda p: p.matching.score_threshold > float("-inf"),
                    ),
                    ("matching.ranked_files", "be false", lambda p: p.matching.ranked_files),
                    ("rounding.scores", "be left out", lambda p: p.rounding.scores is not None),
                    ("rounding.stretch_scores", "be false", lambda p: p.rounding.stretch_scores),
                    ("ap.score_steps", "be 0", lambda p: p.ap.score_steps),
                )
            ),
            Refusal(
                "together",
                lambda protocol: _unranked(protocol) and _ranks(protocol),
                "have no metric that ranks detections (AP, FROC, MR, JI) where they have no scores",
                field="summary",
                got="one",
                cause="AP_lowest, AP_expected and AP_highest cover all orders",
            ),
            Refusal(
                "together",
                lambda protocol: (
                    any(map(protocol.asks_for, ORDERLESS))
                    and protocol.ap.interpolation not in ("points", "area")
                ),
                'be "points" or "area" for AP over all orders',
                field="ap.interpolation",
            ),
            Refusal("ranges", _not_given),
            Refusal("cuts", _not_given),
        ),
    )
    # classes
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
        scope=scoring(lambda protocol: Scope.CLASS if protocol.matching.per_class else Scope.DATA_SET),
        refuses=(
            Refusal(
                "together",
                lambda protocol: protocol.matching.per_class and any(map(protocol.asks_for, OF_IMAGES)),
                "be false where a metric is of whole images, not of classes",
                got="true",
            ),
            Refusal("classes", lambda protocol: not protocol.matching.per_class),
        ),
    )

    # thresholds

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
        """The least overlap (``>=``) for a match at each IoU threshold, [T]."""
        return self._effective(self.iou_thresholds)

    def effective_thresholds_of(self, name: str) -> NDArray[np.float64]:
        """Return the least overlap for a match of a class at each threshold, [T]."""
        return self._effective(self.class_thresholds.get(name, self.iou_thresholds))

    @property
    def least_threshold(self) -> float:
        """The least overlap for a match at any threshold, in any class."""
        lowest = (self.iou_thresholds[0], *(grid[0] for grid in self.class_thresholds.values()))
        return float(self._effective((min(lowest),))[0])

    def _effective(self, thresholds: tuple[float, ...]) -> NDArray[np.float64]:
        lowered: NDArray[np.float64] = np.minimum(thresholds, self.largest_threshold)
        return lowered if self.threshold_closed else np.nextafter(lowered, np.inf)

    @property
    def lowest_threshold(self) -> float:
        """The least overlap for a candidate, in any class."""
        return 0.0 if self.candidate == "assigned_before_threshold" else self.least_threshold

    # order

    @property
    def pools_class_by_class(self) -> bool:
        """Whether rows of pooled classes are taken class by class, as by pycocotools, or in file order."""
        reads_file = self.scores == "equal" or self.order == "file" or self.candidate == "objects_choose"
        return not self.per_class and self.equal_scores == "image_order" and not reads_file

    # max detections

    @property
    def caps_image(self) -> bool:
        """Whether the largest of max detections counts all classes of an image."""
        return self.cap_scope in ("image", "image_each")

    @property
    def caps_data_set(self) -> bool:
        """Whether the largest of max detections counts a class over all images."""
        return self.cap_scope == "data_set_class"
