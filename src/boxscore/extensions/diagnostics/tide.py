"""Error types after TIDE: what each kind of mistake costs in AP, or in F1 where there are no scores.

Goal
----
Assign every false positive and every missed object one kind of error, and compute how much AP would rise if
only that kind were fixed.

Conventions
-----------
- A false positive is, by the first rule that holds: ``localisation`` (its best object of its class
  overlaps it by ``background_iou`` to ``iou_threshold``), ``classification`` (an object of another class by
  ``iou_threshold`` or more), ``duplicate`` (an object of its class that is already taken, by
  ``iou_threshold`` or more), ``background`` (nothing by more than ``background_iou``), or ``both`` (wrong
  class and poor localisation). ``missed`` are the unmatched objects without a localisation or classification
  error.
- Fixing: a localisation or classification error becomes a true positive if its object is unmatched and it has
  the highest score of such errors on it, and is dropped otherwise; duplicates, background and both are
  dropped; missed objects are taken out of the ground truth. ``false_positives``: all of them ranked below
  every true positive. ``false_negatives``: no object is missed. The costs overlap and do not add up to 1 -
  AP.
- Matching is TIDE's at one IoU threshold: detections by descending score, 100 per image over all classes,
  each to the free object of its class that it overlaps most (of equal overlaps the first). A detection of
  which an ignored region covers more than ``iou_threshold`` is not counted; TIDE still names its error. Where
  ProbIoU is compared, which knows no share that is covered, it is ProbIoU itself that exceeds the threshold.
- Where a class is not annotated exhaustively and the protocol ignores what matches nothing, so does this:
  such a detection is not counted and is no error.
- AP is read at 101 recall points. ``absent_classes="zero"`` takes the mean as ``tidecv`` does: a class that
  is detected and has no object counts as AP 0, and leaves the mean when its detections are fixed. The
  default leaves such classes out of every mean, as COCO does.
- Without scores it is F1 that rises, of all classes together, under the protocol's own matching: the F1 of
  its summary at that threshold. The rules are the same; false positives that are fixed are gone.

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
"""The fix of no error."""

_NOTE_ON_AP = "ap is TIDE's: 101 recall points and its own matching; evaluate's, under {protocol}, can differ"
_NOTE_ON_F1 = "f1 is of all boxes together at this IoU, with the matching of the protocol {protocol}"
RULES = ApRules(recall_points=tuple((np.arange(101) / 100).tolist()))


class ErrorCosts(NamedTuple):
    """What E kinds of error cost; arrays [..., E], AP or F1 as a fraction."""

    counts: Counts
    """Detections, or objects for ``missed`` and ``false_negatives``."""
    value: Floats
    """AP or F1 without a fix; the same for every kind."""
    value_without: Floats
    """With this kind fixed."""
    cost: Floats
    """Never below 0 for the six of :data:`ERROR_TYPES`."""


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class ErrorTypes(ClassResult):
    """The count and the cost of each kind of error.

    Attributes
    ----------
    classes : list of str, [K]
    per_class : ErrorCosts, [K, E]
        NaN for a class without ground truth; F1 is NaN for one without detections, too.
    total : ErrorCosts, [E]
        All classes: counts added up, AP averaged; F1 of all together.
    errors : tuple of str, [E]
        :data:`ERROR_TYPES`, then :data:`SPECIAL_ERRORS`.
    metric : str
        What the costs are of: ``AP``, or ``F1`` where the detections have no scores.
    note : str
        How it differs from the metric of the summary.
    """

    per_class: ErrorCosts
    total: ErrorCosts
    errors: tuple[str, ...]
    metric: str
    note: str

    def second_axis(self) -> dict[str, tuple[str, ...]]:
        """Name the kinds of error."""
        return {"error": self.errors}

    def frame_of(self, classes: Sequence[str], values: ErrorCosts) -> pd.DataFrame:
        """Lay out values; a tuple has a method ``count``, so the field has another name than its column."""
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
        The class of the detection, or of the object missed.
    score : ndarray of float64, [n]
        NaN for missed objects, and where detections have no scores.
    boxes : ndarray of float64, [n, 4]
        Corners, in pixels.
    annotation_id, true_class : ndarray of object, [n]
        The object of a localisation or classification error, or that was missed; else None.
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
    """Count each kind of error and compute what it costs in AP, or in F1 where there are no scores.

    Parameters
    ----------
    evaluation : Evaluation
        Its protocol decides how boxes are measured and what is ignored.
    iou_threshold : float, default 0.5
        Minimum IoU of a match; a threshold of the protocol where detections have no scores.
    background_iou : float, default 0.1
        IoU up to which a detection counts as background.
    max_detections : int, default 100
        Use the N highest-scoring detections per image, over all classes; all where they have no scores.
    absent_classes : {"skip", "zero"}, default "skip"
        Classes without ground truth: left out of the mean, or AP 0 as in ``tidecv``.

    Returns
    -------
    ErrorTypes

    Raises
    ------
    InputError
        When an option is out of range.
    """
    # Refuse what cannot be computed: without scores, or in partitions.
    checks.one_of(absent_classes, get_args(Absent), name="absent_classes")
    names = (*ERROR_TYPES, *SPECIAL_ERRORS)
    source_of(evaluation).require("error types")
    ranked = evaluation.has_scores
    if not ranked and not source_of(evaluation).is_here:
        rule, cause = "have scores with --memory-limit", "leave the limit out"
        raise InputError("detections", rule, got="none", cause=cause)
    if absent_classes == "zero" and not ranked:
        rule = "be 'skip' where detections have no scores"
        cause = "F1 is of all classes together, and no mean over classes"
        raise InputError("absent_classes", rule, got="'zero'", cause=cause)
    # The same options name the errors here and in partitions.
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

    # Compute the metric without a fix and with each fix, [K + 1, E]; a cost is the difference. The six kinds
    # never cost less than 0.
    value = values(NOTHING)
    without = np.stack([values(name) for name in names], axis=-1)
    cost = without - value[:, None]
    six = slice(len(ERROR_TYPES))
    cost[:, six] = np.maximum(cost[:, six], 0)
    # Split off the last row, all classes together.
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
    evaluation.require_overlaps("a list of errors")
    # List the false positives by descending score, then the missed objects.
    errors = named_errors(
        evaluation, iou_threshold=iou_threshold, background_iou=background_iou, max_detections=max_detections
    )
    truth, detections = evaluation.ground_truth, evaluation.detections
    labels = np.array(truth.categories.labels, dtype=object)
    wrong = errors.rows[errors.kind[errors.rows] != NO_ERROR]
    wrong = wrong[descending_order(ranked_by(detections)[wrong])]
    missed = np.flatnonzero(errors.missed)
    # Only errors of place and class are about an object; the others have None there.
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
    """Name what the costs are of at IoU 0.50, the default: ``AP50``, or ``F1`` where there are no scores."""
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
    """AP or F1 gained if only the classification errors of one class on objects of another were fixed.

    The classes are rows of the vocabulary; the rest is as in :func:`error_types`.
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
    """Name no other errors than the classification errors between two classes, the true one first."""
    errors, (true_class, predicted_class) = named_errors(evaluation, **options), pair
    wrong = errors.kind == ERROR_TYPES.index("classification")
    wrong &= evaluation.detections.category == predicted_class
    wrong[wrong] = evaluation.ground_truth.category[errors.object_row[wrong]] == true_class
    return errors._replace(kind=np.where(wrong, errors.kind, NO_ERROR).astype(np.int8))


def _fixes_of_confusion(evaluation: Evaluation, **options: Any) -> Fixes:
    """Return what the fix of these errors makes of some images; nothing is counted."""
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
    """Rows of the ground truth that are ``missed`` in :func:`error_types` of the same options, ascending."""
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
    """Error of each detection in :func:`error_types` of the same options, and of which object, [D] each.

    An error is a position in :data:`ERROR_TYPES`, or ``NO_ERROR``; the object of one that is neither of class
    nor of place means nothing.
    """
    errors = named_errors(
        evaluation, iou_threshold=iou_threshold, background_iou=background_iou, max_detections=max_detections
    )
    return errors.kind, errors.object_row


def _where(condition: BoolArray, values: NDArray[np.object_], rows: NDArray[np.intp]) -> NDArray[np.object_]:
    """``values[rows]`` where the condition holds, else None."""
    chosen = np.full(len(rows), None, dtype=object)
    chosen[condition] = values[rows[condition]]
    return chosen


def _fixed(evaluation: Evaluation, errors: Errors, fixed: str) -> Fix:
    """Fix one kind of error; ``NOTHING`` leaves all as they are."""
    truth, detections = evaluation.ground_truth, evaluation.detections
    counted, true, category, keep = errors.positive, errors.true, detections.category, ~errors.excused
    # Fixing a kind makes its detections true, and removes those that no object is left for.
    if fixed in ERROR_TYPES:
        wrong = errors.kind == ERROR_TYPES.index(fixed)
        fixed_rows = wrong & errors.fixes
        keep = (keep & ~wrong) | fixed_rows
        true = true | fixed_rows
        # A corrected class moves the detection to its object's class.
        if fixed == "classification":
            category = category.copy()
            category[fixed_rows] = truth.category[errors.object_row[fixed_rows]]
        if fixed == "missed":
            counted = counted & ~errors.missed
    # TIDE's two totals: without any false positive, or without any missed object.
    elif fixed == "false_positives":
        keep = keep & (errors.true | detections.scored)  # without an order they are gone
    elif fixed == "false_negatives":
        counted = counted & errors.matched
    return Fix(category, true, keep, counted, errors_last=fixed == "false_positives")


def _ap(evaluation: Evaluation, curves: Curves, absent_classes: Absent = "skip") -> FloatArray:
    """AP of each class, NaN without positives, and last their mean, [K + 1]."""
    ap, weights = curves.average_precision[0], evaluation.class_weights
    averaged = ap
    if absent_classes == "zero":
        has_data = curves.totals.has_detections | (curves.positive > 0)
        averaged, weights = np.nan_to_num(ap[has_data]), None if weights is None else weights[has_data]
    mean = mean_of_defined(averaged) if weights is None else weighted_mean(averaged, weights)
    return np.append(ap, mean)


def _f1(evaluation: Evaluation, curves: Curves) -> FloatArray:
    """F1 of each class and, last, of all together, [K + 1]."""
    values, weights = kind_of("micro_F1").values_of(curves, evaluation.protocol), evaluation.class_weights
    total = values.mean_of_defined() if weights is None else values.weighted_mean(weights)
    return np.append(values.mean_per_class(), total)


def every_fix(
    evaluation: Evaluation, *, iou_threshold: float, background_iou: float, max_detections: int
) -> Fixes:
    """Return what each fix makes of some images, and their counts of errors, [K + 1, E]."""
    errors = errors_of(
        evaluation, iou_threshold=iou_threshold, background_iou=background_iou, max_detections=max_detections
    )
    names = (NOTHING, *ERROR_TYPES, *SPECIAL_ERRORS)
    every = {name: functools.partial(_fixed, evaluation, errors, name) for name in names}
    return Fixes(errors.rows, every, _all_counts(evaluation, errors))


def _all_counts(evaluation: Evaluation, errors: Errors) -> NDArray[np.int64]:
    """Count the errors of each kind in each class and, last, in all; [K + 1, E]."""
    names = (*ERROR_TYPES, *SPECIAL_ERRORS)
    return np.stack([_counts(evaluation, errors, name) for name in names], axis=-1)


def _counts(evaluation: Evaluation, errors: Errors, name: str) -> NDArray[np.int64]:
    """Count the errors of one kind in each class and, last, in all; [K + 1]."""
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
