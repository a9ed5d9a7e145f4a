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
- :meth:`Protocol.signature` prints the choices in one line. What it leaves out has COCO's value.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore.errors import ProtocolError
from boxscore.protocols.grids import grid, grid_text
from boxscore.protocols.similarity_rules import KeypointRules, MaskRules

__all__ = [
    "ApRules",
    "BoxRules",
    "IgnoreRules",
    "KeypointRules",
    "MaskRules",
    "MatchingRules",
    "Protocol",
    "SummaryRow",
]

Candidate = Literal["best_available", "best_overall"]
EqualIou = Literal["last", "first"]
EqualScores = Literal["image_order", "file_order"]
CapScope = Literal["class", "image"]
CrowdRule = Literal["iof", "ignore", "count", "delete"]
DifficultRule = Literal["ignore", "count", "delete"]
Interpolation = Literal["points", "area", "trapezoid", "trapezoid_to_one"]
TieOrder = Literal["as_ranked", "true_positives_first", "true_positives_last"]
AbsentClasses = Literal["skip", "zero", "all_zero"]
Metric = Literal["AP", "AR"]
Similarity = Literal["box", "mask", "boundary", "keypoints"]
DetectionArea = Literal["box", "mask", "box_or_mask"]
UnlabelledRule = Literal["count", "ignore"]

MOST_THRESHOLDS = 64
"""IoU thresholds are kept as the bits of one unsigned integer (see matching.py)."""


@dataclasses.dataclass(frozen=True)
class BoxRules:
    """How boxes are measured: ``pixel_offset`` 1 counts the last pixel as inside (PASCAL VOC)."""

    pixel_offset: float = 0

    def __post_init__(self) -> None:
        checks.number_between(self.pixel_offset, 0, 1, name="boxes.pixel_offset")


@dataclasses.dataclass(frozen=True)
class MatchingRules:
    """How detections and ground truths are matched.

    Attributes
    ----------
    iou_thresholds : tuple of float, [T]
        Ascending, in (0, 1].
    largest_threshold : float
        Higher thresholds are lowered to this (pycocotools: 1 - 1e-10).
    threshold_closed : bool
        Whether an overlap equal to the threshold matches (``>=``).
    candidate : {"best_available", "best_overall"}
        Whether a detection whose best ground truth is taken may turn to the next.
    equal_iou : {"last", "first"}
        Which of equally overlapped ground truths, in file order, is taken.
    equal_scores : {"image_order", "file_order"}
        In which order a class's equally scored detections are counted.
    max_detections : tuple of int, [M]
        Caps on the detections of an image and class, ascending; empty for none.
    cap_scope : {"class", "image"}
        Whether the largest cap holds for an image and class, or for an image over all its classes.
    minimum_score : float
        Detections below are left out before anything else.
    per_class : bool
        False pools all classes into one.
    """

    iou_thresholds: tuple[float, ...] = (0.5,)
    largest_threshold: float = 1.0
    threshold_closed: bool = True
    candidate: Candidate = "best_available"
    equal_iou: EqualIou = "last"
    equal_scores: EqualScores = "image_order"
    max_detections: tuple[int, ...] = ()
    cap_scope: CapScope = "class"
    minimum_score: float = float("-inf")
    per_class: bool = True

    def __post_init__(self) -> None:
        thresholds = grid(self.iou_thresholds, name="matching.iou_thresholds")
        object.__setattr__(self, "iou_thresholds", thresholds)
        for value in thresholds:
            checks.number_between(value, 0, 1, name="matching.iou_thresholds", open_low=True)
        if len(thresholds) > MOST_THRESHOLDS:
            raise ProtocolError(
                "matching.iou_thresholds", f"have at most {MOST_THRESHOLDS} values", got=len(thresholds)
            )
        checks.number_between(self.largest_threshold, 0, 1, name="matching.largest_threshold", open_low=True)
        checks.one_of(self.candidate, get_args(Candidate), name="matching.candidate")
        checks.one_of(self.equal_iou, get_args(EqualIou), name="matching.equal_iou")
        checks.one_of(self.equal_scores, get_args(EqualScores), name="matching.equal_scores")
        checks.one_of(self.cap_scope, get_args(CapScope), name="matching.cap_scope")
        checks.number_between(self.minimum_score, -np.inf, np.inf, name="matching.minimum_score")
        if not isinstance(self.max_detections, (list, tuple)):
            raise ProtocolError(
                "matching.max_detections", "be a list of whole numbers", got=repr(self.max_detections)
            )
        caps = sorted(
            {checks.whole_number(cap, 1, name="matching.max_detections") for cap in self.max_detections}
        )
        object.__setattr__(self, "max_detections", tuple(caps))

    @property
    def bars(self) -> NDArray[np.float64]:
        """What an overlap must reach (``>=``) at each threshold, [T]."""
        bars = np.minimum(self.iou_thresholds, self.largest_threshold)
        return bars if self.threshold_closed else np.nextafter(bars, np.inf)


@dataclasses.dataclass(frozen=True)
class IgnoreRules:
    """What counts neither for nor against.

    Attributes
    ----------
    crowd : {"iof", "ignore", "count", "delete"}
        Crowd regions: ignored and measured by intersection over the detection (COCO), ignored and
        measured by IoU, counted like any object, or taken out of the data before matching. Ignored,
        they absorb any number of detections.
    difficult : {"count", "ignore", "delete"}
        Difficult objects: counted like any object, ignored, absorbing any number of detections, or taken
        out of the data before matching.
    area_ranges : mapping of str to (float, float), [A]
        Square pixels, closed at both ends. Ground truths outside are ignored, and so are detections
        outside that match nothing.
    detection_area : {"box", "mask", "box_or_mask"}
        What area ranges measure in a detection: width times height, its mask's pixels, or the former
        where the results carry boxes and the latter where they do not (pycocotools).
    unlabelled : {"count", "ignore"}
        Ground truths without a labelled keypoint: counted, or ignored.
    """

    crowd: CrowdRule = "iof"
    difficult: DifficultRule = "count"
    detection_area: DetectionArea = "box"
    unlabelled: UnlabelledRule = "count"
    area_ranges: Mapping[str, tuple[float, float]] = dataclasses.field(
        default_factory=lambda: {"all": (0.0, float("inf"))}
    )

    def __post_init__(self) -> None:
        checks.one_of(self.crowd, get_args(CrowdRule), name="ignore.crowd")
        checks.one_of(self.difficult, get_args(DifficultRule), name="ignore.difficult")
        checks.one_of(self.detection_area, get_args(DetectionArea), name="ignore.detection_area")
        checks.one_of(self.unlabelled, get_args(UnlabelledRule), name="ignore.unlabelled")
        if not isinstance(self.area_ranges, Mapping):
            raise ProtocolError(
                "ignore.area_ranges", "be a table of name = [low, high]", got=repr(self.area_ranges)
            )
        if not self.area_ranges:
            raise ProtocolError("ignore.area_ranges", "name at least one range", got="none")
        ranges = {}
        for name, pair in self.area_ranges.items():
            label = f"ignore.area_ranges.{name}"
            if not isinstance(pair, (list, tuple)) or len(pair) != 2:
                raise ProtocolError(label, "be [low, high]", got=repr(pair))
            low, high = (checks.number_between(end, 0, np.inf, name=label) for end in pair)
            if low > high:
                raise ProtocolError(label, "have low <= high", got=[low, high])
            ranges[name] = (low, high)
        object.__setattr__(self, "area_ranges", ranges)


@dataclasses.dataclass(frozen=True)
class ApRules:
    """How a precision-recall curve becomes one number.

    Attributes
    ----------
    interpolation : {"points", "area", "trapezoid", "trapezoid_to_one"}
        Mean of the interpolated precision at recall points; the area under its envelope; or the area
        under straight lines through the envelope, read at the recall points: falling to 0 after the
        last recall reached, or along a line from there to (1, 0).
    recall_points : tuple of float, [R]
        For "points"; also where :meth:`Evaluation.curves` reads the curve.
    precision_epsilon : float
        Added to tp + fp in the denominator of precision (pycocotools: ``np.spacing(1)``).
    sequential_mean : bool
        Sum ``p / R`` point by point, as the VOC kit does, instead of taking ``numpy.mean``.
    tie_order : {"as_ranked", "true_positives_first", "true_positives_last"}
        Whether, after matching, the true positives among a class's equally scored detections move.
    absent_classes : {"skip", "zero", "all_zero"}
        A class without counted ground truth: undefined; AP 0 in the mean when it has detections; or AP 0
        in any case.
    """

    interpolation: Interpolation = "points"
    recall_points: tuple[float, ...] = tuple(np.linspace(0, 1, 101).tolist())
    precision_epsilon: float = 0.0
    sequential_mean: bool = False
    tie_order: TieOrder = "as_ranked"
    absent_classes: AbsentClasses = "skip"

    def __post_init__(self) -> None:
        checks.one_of(self.interpolation, get_args(Interpolation), name="ap.interpolation")
        object.__setattr__(self, "recall_points", grid(self.recall_points, name="ap.recall_points"))
        checks.number_between(self.precision_epsilon, 0, 1, name="ap.precision_epsilon")
        checks.one_of(self.tie_order, get_args(TieOrder), name="ap.tie_order")
        checks.one_of(self.absent_classes, get_args(AbsentClasses), name="ap.absent_classes")


@dataclasses.dataclass(frozen=True)
class SummaryRow:
    """One headline number.

    Attributes
    ----------
    key : str
        Its name in ``metrics``; ``{cap}`` stands for the detection cap.
    metric : {"AP", "AR"}
    iou : float or None
        One threshold, or None for the mean over all.
    area : str
        The name of an area range.
    cap : int
        Position among the detection caps; -1 is the largest.

    Notes
    -----
    A row whose threshold, area range or cap the protocol does not have is left out of the summary.
    """

    key: str
    metric: Metric = "AP"
    iou: float | None = None
    area: str = "all"
    cap: int = -1

    def __post_init__(self) -> None:
        name = f"summary {self.key}"
        checks.one_of(self.metric, get_args(Metric), name=f"{name}: metric")
        if re.search(r"[{}]", self.key.replace("{cap}", "")):
            raise ProtocolError("summary.key", "have no braces but in {cap}", got=repr(self.key))
        if self.iou is not None:
            checks.number_between(self.iou, 0, 1, name=f"{name}: iou", open_low=True)
        checks.whole_number(self.cap, -1, name=f"{name}: cap")


@dataclasses.dataclass(frozen=True)
class Protocol:
    """Everything that decides a score. See the module's page for the conventions.

    Attributes
    ----------
    name, title : str
    similarity : {"box", "mask", "boundary", "keypoints"}
        What decides how well a detection and a ground truth agree.
    boxes : BoxRules
    masks : MaskRules
    keypoints : KeypointRules
    matching : MatchingRules
    ignore : IgnoreRules
    ap : ApRules
    summary : tuple of SummaryRow
    """

    name: str
    title: str = ""
    similarity: Similarity = "box"
    boxes: BoxRules = BoxRules()
    masks: MaskRules = MaskRules()  # noqa: RUF009 - frozen
    keypoints: KeypointRules = KeypointRules()  # noqa: RUF009 - frozen
    matching: MatchingRules = MatchingRules()
    ignore: IgnoreRules = IgnoreRules()
    ap: ApRules = ApRules()
    summary: tuple[SummaryRow, ...] = (SummaryRow("mAP"),)

    def __post_init__(self) -> None:
        for key in ("name", "title"):
            if not isinstance(getattr(self, key), str):
                raise ProtocolError(key, "be a string", got=repr(getattr(self, key)))
        checks.one_of(self.similarity, get_args(Similarity), name="similarity")
        if self.similarity == "keypoints" and not self.keypoints.sigmas:
            raise ProtocolError("keypoints.sigmas", "be given", got="none")

    @property
    def caps(self) -> tuple[int | None, ...]:
        """The detection caps, ascending; ``(None,)`` for no cap. The axis M."""
        return self.matching.max_detections or (None,)

    @property
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

    def iou_text(self, row: SummaryRow) -> str:
        """Write the threshold, or the range of thresholds, of a summary row."""
        if row.iou is not None:
            return f"{row.iou:.2f}"
        thresholds = self.matching.iou_thresholds
        return grid_text(thresholds) if len(thresholds) <= 2 else f"{thresholds[0]:.2f}:{thresholds[-1]:.2f}"

    def signature(self) -> str:
        """Every choice in one line, to stand beside every score.

        Examples
        --------
        >>> from boxscore.protocols import load_protocol
        >>> load_protocol("coco").signature()
        'boxscore|coco|iou:0.50:0.95/10|ap:101|maxdet:1,10,100|area:coco|crowd:iof|offset:0|v:0.1.0'
        """
        from boxscore.protocols.signature import signature_of

        return signature_of(self)
