"""Compute TIDE's error types: the cost of each kind of error in AP, or in F1 without scores.

Goal
----
Assign one kind of error to every false positive and every missed object, and compute how much AP would rise
if only that kind were fixed.

Conventions
-----------
- A false positive has the first kind that applies: ``localization`` (the best object of its class overlaps it
  by ``background_iou`` to ``iou_threshold``), ``classification`` (an object of another class overlaps it by
  ``iou_threshold`` or more), ``duplicate`` (an already matched object of its class overlaps it by
  ``iou_threshold`` or more), ``background`` (no object overlaps it by more than ``background_iou``), or
  ``both`` (wrong class and poor localization). ``missed`` objects are unmatched and without a localization or
  classification error.
- Fixes: a localization or classification error becomes a true positive if its object is unmatched and it has
  the highest score of such errors on it, and is dropped otherwise. Duplicates, background and both are
  dropped. Missed objects are removed from the ground truth. ``false_positives`` ranks all false positives
  below every true positive. ``false_negatives`` removes all missed objects. The costs overlap and do not add
  up to 1 - AP.
- Matching is TIDE's at one IoU threshold: detections by descending score, 100 per image over all classes,
  each to the free object of its class with the largest overlap (ties: the first). A detection does not count
  if an ignored region covers more than ``iou_threshold`` of it; TIDE still classifies it as an error. ProbIoU
  does not define a covered fraction, so ProbIoU itself is compared with the threshold.
- If a class is not annotated exhaustively and the protocol ignores unmatched detections there, they do not
  count and are not errors here either.
- AP uses 101 recall points. ``absent_classes="zero"`` takes the mean as ``tidecv`` does: a class with
  detections but without objects counts as AP 0, and leaves the mean once its detections are fixed. The
  default leaves such classes out of every mean, as COCO does.
- Without scores, costs are in F1 over all classes together under the protocol's own matching, as in its
  summary at that threshold. The rules are the same, but fixed false positives are removed.

References
----------
D. Bolya et al., "TIDE: A General Toolbox for Identifying Object Detection Errors", ECCV 2020.
``tidecv`` 1.0.1.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore._utils.array_types import BoolArray, FloatArray
from boxscore._utils.ordering import descending_order
from boxscore.errors import InputError
from boxscore.evaluation import Evaluation
from boxscore.extensions.diagnostics._result import (
    ClassResult,
    Counts,
    DiagnosticResult,
    Floats,
    once_per_evaluation,
)
from boxscore.extensions.diagnostics.fixes import Fix, Fixes, curves_of_fixes
from boxscore.extensions.diagnostics.naming_errors import (
    ERROR_TYPES,
    MOST_DETECTIONS,
    NO_ERROR,
    Errors,
    check_options,
    errors_of,
    named_errors,
)
from boxscore.extensions.large.questions import source_of
from boxscore.matching.ranking import listed_scores, ranked_by
from boxscore.protocols.tables.ap import ApRules
from boxscore.scoring.blocks import mean_of_defined, weighted_mean
from boxscore.scoring.curves import Curves
from boxscore.scoring.kinds import kind_of

if TYPE_CHECKING:
    import pandas as pd

Absent = Literal["skip", "zero"]

SPECIAL_ERRORS = ("false_positives", "false_negatives")
NOTHING = "nothing"
"""The fix that changes nothing."""

_NOTE_ON_AP = (
    "ap follows TIDE (101 recall points, its own matching) and can differ from AP of protocol {protocol}"
)
_NOTE_ON_F1 = "f1 counts all boxes together at this IoU, matched as in protocol {protocol}"
RULES = ApRules(recall_points=tuple((np.arange(101) / 100).tolist()))


class ErrorCosts(NamedTuple):
    """The costs of E kinds of error; arrays [..., E], AP or F1 as a fraction."""

    counts: Counts
    """Detections, or objects for ``missed`` and ``false_negatives``."""
    value: Floats
    """AP or F1 without any fix; the same for every kind."""
    value_without: Floats
    """AP or F1 with this kind fixed."""
    cost: Floats
    """Rise of AP or F1; never below 0 for the six of :data:`ERROR_TYPES`."""


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class ErrorTypes(ClassResult):
    """The count and the cost of each kind of error.

    Attributes
    ----------
    classes : list of str, [K]
    per_class : ErrorCosts, [K, E]
        NaN for a class without ground truth; F1 is also NaN for a class without detections.
    total : ErrorCosts, [E]
        All classes: counts are sums, AP is the mean, F1 counts all classes together.
    errors : tuple of str, [E]
        :data:`ERROR_TYPES`, then :data:`SPECIAL_ERRORS`.
    metric : str
        Metric of the costs: ``AP``, or ``F1`` without scores.
    note : str
        The difference from the metric of the summary.
    """

    per_class: ErrorCosts
    total: ErrorCosts
    errors: tuple[str, ...]
    metric: str
    note: str

    def second_axis(self) -> dict[str, tuple[str, ...]]:
        """Return the kinds of error."""
        return {"error": self.errors}

    def frame_of(self, classes: Sequence[str], values: ErrorCosts) -> pd.DataFrame:
        """Build the table of the values; ``counts`` is renamed, because tuples have a method ``count``."""
        name = self.metric.lower()
        names = {"counts": "count", "value": name, "value_without": f"{name}_without"}
        return super().frame_of(classes, values).rename(columns=names)


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class ErrorList(DiagnosticResult):
    """Every error: detections by descending score, then missed objects.

    Attributes
    ----------
    error : ndarray of object, [n]
        One of :data:`ERROR_TYPES`.
    image_id : ndarray, [n]
    category : ndarray of str objects, [n]
        The class of the detection, or of the missed object.
    score : ndarray of float64, [n]
        NaN for missed objects, and for detections without scores.
    boxes : ndarray of float64, [n, 4]
        Corners, in pixels.
    annotation_id, true_class : ndarray of object, [n]
        The object of a localization or classification error, or the missed object; else None.
    """

    error: NDArray[np.object_]
    image_id: NDArray[np.generic]
    category: NDArray[np.object_]
    score: FloatArray
    boxes: FloatArray
    annotation_id: NDArray[np.object_]
    true_class: NDArray[np.object_]

    def to_frame(self) -> pd.DataFrame:
        """Return ``error, image_id, class, score, x1, y1, x2, y2, annotation_id, true_class``."""
        import pandas as pd

        return pd.DataFrame(
            {
                "error": self.error,
                "image_id": self.image_id,
                "class": self.category,
                "score": self.score,
                **{name: self.boxes[:, i] for i, name in enumerate(("x1", "y1", "x2", "y2"))},
                "annotation_id": self.annotation_id,
                "true_class": self.true_class,
            }
        )


@once_per_evaluation
def error_types(
    evaluation: Evaluation,
    *,
    iou_threshold: float = 0.5,
    background_iou: float = 0.1,
    max_detections: int = MOST_DETECTIONS,
    absent_classes: Absent = "skip",
) -> ErrorTypes:
    """Count each kind of error and compute its cost in AP, or in F1 without scores.

    Parameters
    ----------
    evaluation : Evaluation
        Its protocol decides how boxes are measured and which objects are ignored.
    iou_threshold : float, default 0.5
        Minimum IoU of a match; without scores, one of the protocol's thresholds.
    background_iou : float, default 0.1
        Maximum IoU at which a detection counts as background.
    max_detections : int, default 100
        Use the N highest-scoring detections per image, over all classes; all without scores.
    absent_classes : {"skip", "zero"}, default "skip"
        Classes without ground truth: "skip" leaves them out of the mean, "zero" counts AP 0 as ``tidecv``
        does.

    Returns
    -------
    ErrorTypes

    Raises
    ------
    InputError
        When an option is out of range.
    """
    # Reject evaluations that cannot be computed: without scores, or in partitions.
    checks.one_of(absent_classes, get_args(Absent), name="absent_classes")
    names = (*ERROR_TYPES, *SPECIAL_ERRORS)
    source_of(evaluation).require("error types")
    ranked = evaluation.has_scores
    if not ranked and not source_of(evaluation).is_here:
        rule, cause = "have scores when --memory-limit is used", "run without --memory-limit"
        raise InputError("detections", rule, got="none", cause=cause)
    if absent_classes == "zero" and not ranked:
        rule = "be 'skip' if detections lack scores"
        cause = "F1 pools all classes instead of averaging over them"
        raise InputError("absent_classes", rule, got="'zero'", cause=cause)
    # Use the same options in memory and in partitions.
    options: dict[str, Any] = {
        "iou_threshold": iou_threshold,
        "background_iou": background_iou,
        "max_detections": max_detections,
    }
    check_options(evaluation, **options, ranked=ranked)
    curves, count = curves_of_fixes(evaluation, every_fix, options, RULES)

    def values(fixed: str) -> FloatArray:
        """Return the metric of each class and, last, of all, [K + 1]."""
        of_fix = curves[fixed]
        return _ap(evaluation, of_fix, absent_classes) if ranked else _f1(evaluation, of_fix)

    # Compute the metric without a fix and with each fix, [K + 1, E]; the cost is the difference. The six
    # kinds never cost less than 0.
    value = values(NOTHING)
    without = np.stack([values(name) for name in names], axis=-1)
    cost = without - value[:, None]
    six = slice(len(ERROR_TYPES))
    cost[:, six] = np.maximum(cost[:, six], 0)
    # Split off the last row, which is all classes together.
    as_is = np.repeat(value[:, None], len(names), axis=1)
    columns = (count, as_is, without, cost)
    return ErrorTypes(
        evaluation.categories.labels,
        ErrorCosts(*(values[:-1] for values in columns)),
        ErrorCosts(*(values[-1] for values in columns)),
        names,
        "AP" if ranked else "F1",
        (_NOTE_ON_AP if ranked else _NOTE_ON_F1).format(protocol=evaluation.protocol.name),
    )


@once_per_evaluation
def error_list(
    evaluation: Evaluation,
    *,
    iou_threshold: float = 0.5,
    background_iou: float = 0.1,
    max_detections: int = MOST_DETECTIONS,
) -> ErrorList:
    """List every error, one per row.

    Parameters
    ----------
    evaluation, iou_threshold, background_iou, max_detections
        As in :func:`error_types`.

    Returns
    -------
    ErrorList

    Raises
    ------
    InputError
        When an option is out of range.
    """
    evaluation._require_overlaps("a list of errors")
    # List the false positives by descending score, then the missed objects.
    errors = named_errors(
        evaluation, iou_threshold=iou_threshold, background_iou=background_iou, max_detections=max_detections
    )
    truth, detections = evaluation.ground_truth, evaluation.detections
    labels = np.array(truth.categories.labels, dtype=object)
    wrong = errors.rows[errors.kind[errors.rows] != NO_ERROR]
    wrong = wrong[descending_order(ranked_by(detections)[wrong])]
    missed = np.flatnonzero(errors.missed)
    # Only localization and classification errors have an object; the others have None.
    kind = errors.kind[wrong]
    about = (kind == 0) | (kind == 1)
    object_row = errors.object_row[wrong]
    return ErrorList(
        np.array([*(ERROR_TYPES[k] for k in kind.tolist()), *["missed"] * len(missed)], dtype=object),
        truth.images.ids[np.concatenate([detections.image[wrong], truth.image[missed]])],
        labels[np.concatenate([detections.category[wrong], truth.category[missed]])],
        np.append(listed_scores(detections)[wrong], np.full(len(missed), np.nan)),
        np.concatenate([detections.boxes[wrong], truth.boxes[missed]]),
        np.append(_where(about, truth.ids, object_row), truth.ids[missed].astype(object)),
        np.append(_where(about, labels[truth.category], object_row), labels[truth.category[missed]]),
    )


def cost_unit(result: ErrorTypes) -> str:
    """Name the metric of the costs at the default IoU 0.50: ``AP50``, or ``F1`` without scores."""
    return "AP50" if result.metric == "AP" else result.metric


def confusion_cost(
    evaluation: Evaluation,
    true_class: int,
    predicted_class: int,
    *,
    iou_threshold: float = 0.5,
    background_iou: float = 0.1,
    max_detections: int = MOST_DETECTIONS,
) -> float:
    """Return the AP or F1 gained by fixing only the confusions of one true class with one predicted class.

    Classes are rows of the vocabulary; other options are those of :func:`error_types`.
    """
    options: dict[str, Any] = {
        "pair": (true_class, predicted_class),
        "iou_threshold": iou_threshold,
        "background_iou": background_iou,
        "max_detections": max_detections,
    }
    curves, _ = curves_of_fixes(evaluation, _fixes_of_confusion, options, RULES)
    metric = _ap if evaluation.has_scores else _f1
    value, fixed = (float(metric(evaluation, curves[name])[-1]) for name in (NOTHING, "classification"))
    return max(fixed - value, 0.0)


def _only_confusion(evaluation: Evaluation, *, pair: tuple[int, int], **options: Any) -> Errors:
    """Keep only the classification errors between two classes, the true one first."""
    errors, (true_class, predicted_class) = named_errors(evaluation, **options), pair
    wrong = errors.kind == ERROR_TYPES.index("classification")
    wrong &= evaluation.detections.category == predicted_class
    wrong[wrong] = evaluation.ground_truth.category[errors.object_row[wrong]] == true_class
    return errors._replace(kind=np.where(wrong, errors.kind, NO_ERROR).astype(np.int8))


def _fixes_of_confusion(evaluation: Evaluation, **options: Any) -> Fixes:
    """Return the fix of these errors for some images, without counts."""
    errors = _only_confusion(evaluation, **options)
    every = {
        name: functools.partial(_fixed, evaluation, errors, name) for name in (NOTHING, "classification")
    }
    return Fixes(errors.rows, every, np.empty(0, dtype=np.int64))


def missed_objects(
    evaluation: Evaluation,
    *,
    iou_threshold: float = 0.5,
    background_iou: float = 0.1,
    max_detections: int = MOST_DETECTIONS,
) -> NDArray[np.intp]:
    """Return the ascending rows of ``missed`` ground truths in :func:`error_types` with the same options."""
    errors = named_errors(
        evaluation, iou_threshold=iou_threshold, background_iou=background_iou, max_detections=max_detections
    )
    return np.flatnonzero(errors.missed)


def error_kinds(
    evaluation: Evaluation,
    *,
    iou_threshold: float = 0.5,
    background_iou: float = 0.1,
    max_detections: int = MOST_DETECTIONS,
) -> tuple[NDArray[np.int8], NDArray[np.intp]]:
    """Return the error of each detection as in :func:`error_types`, and the object of the error, [D] each.

    Errors are positions in :data:`ERROR_TYPES`, or ``NO_ERROR``. The object is meaningless unless the error
    is one of localization or classification.
    """
    errors = named_errors(
        evaluation, iou_threshold=iou_threshold, background_iou=background_iou, max_detections=max_detections
    )
    return errors.kind, errors.object_row


def _where(condition: BoolArray, values: NDArray[np.object_], rows: NDArray[np.intp]) -> NDArray[np.object_]:
    """Return ``values[rows]`` where the condition holds, else None."""
    chosen = np.full(len(rows), None, dtype=object)
    chosen[condition] = values[rows[condition]]
    return chosen


def _fixed(evaluation: Evaluation, errors: Errors, fixed: str) -> Fix:
    """Fix one kind of error; ``NOTHING`` changes nothing."""
    truth, detections = evaluation.ground_truth, evaluation.detections
    counted, true, category, keep = errors.positive, errors.true, detections.category, ~errors.excused
    # Fixing a kind makes its detections true positives, and removes those without a free object.
    if fixed in ERROR_TYPES:
        wrong = errors.kind == ERROR_TYPES.index(fixed)
        fixed_rows = wrong & errors.fixes
        keep = (keep & ~wrong) | fixed_rows
        true = true | fixed_rows
        # A corrected class moves the detection to the class of its object.
        if fixed == "classification":
            category = category.copy()
            category[fixed_rows] = truth.category[errors.object_row[fixed_rows]]
        if fixed == "missed":
            counted = counted & ~errors.missed
    # TIDE's two totals: no false positives, or no missed objects.
    elif fixed == "false_positives":
        # Without scores, they are removed.
        keep = keep & (errors.true | detections.scored)
    elif fixed == "false_negatives":
        counted = counted & errors.matched
    return Fix(category, true, keep, counted, errors_last=fixed == "false_positives")


def _ap(evaluation: Evaluation, curves: Curves, absent_classes: Absent = "skip") -> FloatArray:
    """Return the AP of each class, NaN without positives, and last their mean, [K + 1]."""
    ap, weights = curves.average_precision[0], evaluation._class_weights
    averaged = ap
    if absent_classes == "zero":
        has_data = curves.totals.has_detections | (curves.positive > 0)
        averaged, weights = np.nan_to_num(ap[has_data]), None if weights is None else weights[has_data]
    mean = mean_of_defined(averaged) if weights is None else weighted_mean(averaged, weights)
    return np.append(ap, mean)


def _f1(evaluation: Evaluation, curves: Curves) -> FloatArray:
    """Return the F1 of each class and, last, of all together, [K + 1]."""
    values, weights = kind_of("micro_F1").values_of(curves, evaluation.protocol), evaluation._class_weights
    total = values.mean_of_defined() if weights is None else values.weighted_mean(weights)
    return np.append(values.mean_per_class(), total)


def every_fix(
    evaluation: Evaluation, *, iou_threshold: float, background_iou: float, max_detections: int
) -> Fixes:
    """Return each fix for some images, and the counts of their errors, [K + 1, E]."""
    errors = errors_of(
        evaluation, iou_threshold=iou_threshold, background_iou=background_iou, max_detections=max_detections
    )
    names = (NOTHING, *ERROR_TYPES, *SPECIAL_ERRORS)
    every = {name: functools.partial(_fixed, evaluation, errors, name) for name in names}
    return Fixes(errors.rows, every, _all_counts(evaluation, errors))


def _all_counts(evaluation: Evaluation, errors: Errors) -> NDArray[np.int64]:
    """Count the errors of each kind in each class and, last, in total; [K + 1, E]."""
    names = (*ERROR_TYPES, *SPECIAL_ERRORS)
    return np.stack([_counts(evaluation, errors, name) for name in names], axis=-1)


def _counts(evaluation: Evaluation, errors: Errors, name: str) -> NDArray[np.int64]:
    """Count the errors of one kind in each class and, last, in total; [K + 1]."""
    truth, detections = evaluation.ground_truth, evaluation.detections
    category = detections.category
    if name == "missed":
        chosen, category = errors.missed, truth.category
    elif name == "false_negatives":
        chosen, category = errors.positive & ~errors.matched, truth.category
    elif name == "false_positives":
        chosen = np.zeros(len(detections), dtype=bool)
        chosen[errors.rows] = True
        chosen &= ~errors.true & ~errors.excused
    else:
        chosen = errors.kind == ERROR_TYPES.index(name)
    counts = np.bincount(category[chosen], minlength=len(truth.categories))
    return np.append(counts, counts.sum())
