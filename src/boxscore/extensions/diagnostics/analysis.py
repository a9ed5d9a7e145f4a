"""Compute COCO's error analysis: precision-recall curves in steps, each forgiving one more kind of error.

Goal
----
These are the numbers behind the stacked plots of the COCO site, mmdetection's ``coco_error_analysis.py`` and
sahi.

Conventions
-----------
- The steps: ``C75`` and ``C50`` are the curves at IoU .75 and .50. ``Loc`` is the curve at .10, which
  forgives poor localization. The later steps keep this threshold and do not count an unmatched detection that
  overlaps an object of another class: in ``Sim`` a class of the same supercategory, in ``Oth`` any class.
  ``BG`` is 1 wherever ``Oth`` is above 0, as if all false positives were gone; ``FN`` is 1.
- A detection overlaps an object of another class if at least .10 of its area is inside it. As for crowds, one
  object can forgive any number of detections.
- Similarities without such a ratio (keypoints, ProbIoU) use the similarity itself.
- Without supercategories ``Sim`` equals ``Loc``. A class without a supercategory is not similar to any other.
- The curves use 101 recall points, COCO's precision, objects of every area, and max detections per image and
  class. The protocol decides how pairs are measured and which objects are ignored.

References
----------
D. Hoiem et al., "Diagnosing Error in Object Detectors", ECCV 2012.
https://cocodataset.org/#detection-eval, section 4; ``CocoEval.m`` (``analyze``); mmdetection 3
``tools/analysis_tools/coco_error_analysis.py``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, cast, get_args

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore._utils.array_types import BoolArray, FloatArray
from boxscore.data.class_names import MEAN
from boxscore.data.vocabulary import SUPERCATEGORY, Categories
from boxscore.evaluation import Evaluation
from boxscore.extensions.diagnostics._reading import warn_of_subsets
from boxscore.extensions.diagnostics._result import ClassResult, DiagnosticResult, Floats, once_per_evaluation
from boxscore.extensions.diagnostics.tide import Absent
from boxscore.extensions.large.questions import source_of
from boxscore.matching.ignoring import EVERY_AREA
from boxscore.matching.matcher import Matcher
from boxscore.matching.matches import Matches
from boxscore.protocols.protocol import Protocol
from boxscore.protocols.tables.ap import ApRules
from boxscore.scoring.blocks import mean_of_defined, mean_of_lines, weighted_mean
from boxscore.scoring.curves import Curves

if TYPE_CHECKING:
    import pandas as pd

STEPS = ("C75", "C50", "Loc", "Sim", "Oth", "BG", "FN")
THRESHOLDS = (0.1, 0.5, 0.75)
FORGIVEN = ("nothing", "similar", "other")
"""Objects that forgive an unmatched detection; the matches have one area range for each."""

RULES = ApRules(precision_epsilon=float(np.spacing(1)))


class Areas(NamedTuple):
    """Areas under the curves of the steps (the mean over the recall points); float64 arrays of one shape."""

    C75: Floats
    """AP at IoU .75."""
    C50: Floats
    """AP at IoU .50."""
    Loc: Floats
    """AP at IoU .10."""
    Sim: Floats
    """AP with confusions between similar classes forgiven too."""
    Oth: Floats
    """AP with confusions between any classes forgiven too."""
    BG: Floats
    """AP without false positives: the recall at IoU .10."""
    FN: Floats
    """Always 1."""


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class ErrorAreas(ClassResult):
    """The area under the curve of each step.

    Attributes
    ----------
    classes : list of str, [K]
    per_class : Areas, [K]
        NaN for a class without ground truth.
    total : Areas, scalars
        Means over classes.
    """

    per_class: Areas
    total: Areas

    def total_frame(self) -> pd.DataFrame:
        """Return the means over classes."""
        return self.frame_of([MEAN], self.total)


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class ErrorCurves(DiagnosticResult):
    """The precision-recall curve of each step.

    Attributes
    ----------
    classes : list of str, [K]
    steps : tuple of str, [7]
        ``C75``, ``C50``, ``Loc``, ``Sim``, ``Oth``, ``BG`` and ``FN``.
    recall : ndarray of float64, [101]
    precision : ndarray of float64, [K, 7, 101]
        Interpolated; NaN for a class without ground truth.
    mean : ndarray of float64, [7, 101]
        Mean over classes.
    """

    classes: list[str]
    steps: tuple[str, ...]
    recall: FloatArray
    precision: FloatArray
    mean: FloatArray

    def to_frame(self) -> pd.DataFrame:
        """Return ``class, step, recall, precision``; classes without ground truth are left out."""
        defined = np.flatnonzero(~np.isnan(self.precision[:, 0, 0]))
        return self._frame(np.array(self.classes, dtype=object)[defined], self.precision[defined])

    def total_frame(self) -> pd.DataFrame:
        """Return the same columns of the mean over classes."""
        return self._frame(np.array([MEAN], dtype=object), self.mean[None])

    def _frame(self, classes: NDArray[np.object_], precision: FloatArray) -> pd.DataFrame:
        import pandas as pd

        K, steps, points = precision.shape
        return pd.DataFrame(
            {
                "class": np.repeat(classes, steps * points),
                "step": np.tile(np.repeat(np.array(self.steps, dtype=object), points), K),
                "recall": np.tile(self.recall, K * steps),
                "precision": precision.ravel(),
            }
        )


@once_per_evaluation
def error_areas(
    evaluation: Evaluation, *, max_detections: int = 100, absent_classes: Absent = "skip"
) -> ErrorAreas:
    """Compute the area under the precision-recall curve of each step of COCO's analysis.

    Parameters
    ----------
    evaluation : Evaluation
        Its protocol decides how pairs are measured and which are ignored.
    max_detections : int, default 100
        Use the N highest-scoring detections per image and class.
    absent_classes : {"skip", "zero"}, default "skip"
        Classes without ground truth: "skip" leaves them out of the mean, "zero" counts them as 0 in every
        step but FN, as mmdetection does.

    Returns
    -------
    ErrorAreas

    Raises
    ------
    InputError
        When an option is out of range, or the detections lack scores.

    Examples
    --------
    >>> from boxscore import Detections, GroundTruth, evaluate
    >>> truth = GroundTruth.from_arrays([1, 1], ["cat", "dog"], [[0, 0, 10, 10], [50, 0, 60, 10]])
    >>> boxes = [[50, 0, 60, 10], [0, 0, 10, 6]]  # a dog taken for a cat; a cat, IoU .6
    >>> detections = Detections.from_arrays([1, 1], ["cat", "cat"], boxes, [0.9, 0.8])
    >>> areas = error_areas(evaluate(truth, detections)).per_class
    >>> [round(float(area[0]), 3) for area in areas]
    [0.0, 0.5, 0.5, 0.5, 1.0, 1.0, 1.0]
    """
    curves = error_curves(evaluation, max_detections=max_detections, absent_classes=absent_classes)
    counted, weights = _in_means(curves.precision, absent_classes, evaluation._class_weights)
    values = np.ascontiguousarray(counted.transpose(1, 2, 0))  # [7,R,K], the order of pycocotools' mean
    if weights is None:
        total = [mean_of_defined(of_step) for of_step in values]
    else:
        total = [weighted_mean(of_step.mean(axis=0), weights) for of_step in values]
    areas = curves.precision.mean(axis=2)
    return ErrorAreas(curves.classes, Areas(*areas.T), Areas(*map(np.float64, total)))


@once_per_evaluation
def error_curves(
    evaluation: Evaluation, *, max_detections: int = 100, absent_classes: Absent = "skip"
) -> ErrorCurves:
    """Compute the precision-recall curve of each step of COCO's analysis.

    Parameters
    ----------
    evaluation, max_detections, absent_classes
        As in :func:`error_areas`.

    Returns
    -------
    ErrorCurves

    Raises
    ------
    InputError
        When an option is out of range, or the detections lack scores.
    """
    checks.whole_number(max_detections, 1, name="max_detections")
    checks.one_of(absent_classes, get_args(Absent), name="absent_classes")
    evaluation._require_scores()
    warn_of_subsets(evaluation, "error curves are")
    protocol = _protocol_of_steps(evaluation.protocol, max_detections)
    curves = source_of(evaluation).matched_anew("error curves", _matches_of_steps, protocol)
    precision = np.stack(_steps(curves), axis=1)  # [K,7,R]
    counted, weights = _in_means(precision, absent_classes, evaluation._class_weights)
    mean = np.full(precision.shape[1:], np.nan)
    if len(counted):
        mean = mean_of_lines(np.ascontiguousarray(np.moveaxis(counted, 0, -1)), weights)
    labels = cast(Categories, curves[0].categories).labels
    return ErrorCurves(labels, STEPS, np.array(RULES.recall_points), precision, mean)


def _steps(curves: Sequence[Curves]) -> list[FloatArray]:
    """Return the precision of each step at the recall points, [K, R]; NaN without ground truth.

    ``curves`` has one entry for each of :data:`FORGIVEN`.
    """
    loc, c50, c75 = curves[0].interpolated.transpose(0, 2, 1)
    similar, other = (one.at(0)[0].T for one in curves[1:])
    background = np.where(np.isnan(other), np.nan, other > 0)
    return [c75, c50, loc, similar, other, background, np.where(np.isnan(other), np.nan, 1.0)]


def _protocol_of_steps(protocol: Protocol, max_detections: int) -> Protocol:
    """Return the protocol with the thresholds of the steps, over objects of every area, class by class."""
    matching = protocol.matching.replaced(
        iou_thresholds=THRESHOLDS,
        class_thresholds={},
        max_detections=(max_detections,),
        cap_scope="class",
        per_class=True,
    )
    return _over(protocol, FORGIVEN).replaced(matching=matching, ap=RULES, summary=())


def _over(protocol: Protocol, names: Sequence[str]) -> Protocol:
    """Return the protocol with area ranges of these names that include every area."""
    ranges = dict.fromkeys(names, (0.0, EVERY_AREA))
    ignore = protocol.ignore.replaced(area_ranges=ranges, column_ranges={}, height_slack=0.0)
    return protocol.replaced(ignore=ignore)


def _matches_of_steps(evaluation: Evaluation, protocol: Protocol) -> Matches:
    """Match once, and mark for each of :data:`FORGIVEN` the unmatched detections that do not count."""
    matcher = evaluation._matcher.under(_over(protocol, ["all"]))
    matches = matcher.match()
    forgiven = (one[matches.row] for one in _forgiven(evaluation, matcher, protocol))
    return matches.leaving_out([np.zeros(len(matches), dtype=bool), *forgiven])


def _forgiven(evaluation: Evaluation, matcher: Matcher, protocol: Protocol) -> tuple[BoolArray, BoolArray]:
    """Return whether each detection overlaps an object of a similar or of any other class; [D] each."""
    truth, detections = evaluation.ground_truth, evaluation.detections
    pairs = matcher.across_classes(
        iou_threshold=protocol.matching.lowest_threshold, by_foreground=np.ones(len(truth), dtype=bool)
    )
    true_class, named = truth.category[pairs.truth], detections.category[pairs.detection]
    group = _supercategories(truth.categories)
    other = true_class != named
    similar, any_other = (np.zeros(len(detections), dtype=bool) for _ in range(2))
    any_other[pairs.detection[other]] = True
    similar[pairs.detection[other & (group[true_class] == group[named])]] = True
    return similar, any_other


def _supercategories(categories: Categories) -> NDArray[np.intp]:
    """Return a number for the supercategory of each class, [K]; a class without one gets its own number."""
    names = categories.columns.get(SUPERCATEGORY, np.full(len(categories), None, dtype=object)).tolist()
    first: dict[object, int] = {}
    return np.array(
        [row if name is None else first.setdefault(name, row) for row, name in enumerate(names)],
        dtype=np.intp,
    )


def _in_means(
    precision: FloatArray, absent: Absent, weights: FloatArray | None
) -> tuple[FloatArray, FloatArray | None]:
    """Return the curves [k, 7, R] that enter means over classes, and the weight of each class, [k]."""
    if absent == "zero":
        precision = np.nan_to_num(precision)
        precision[:, -1] = 1.0
        return precision, weights
    defined = ~np.isnan(precision[:, 0, 0])
    return precision[defined], None if weights is None else weights[defined]
