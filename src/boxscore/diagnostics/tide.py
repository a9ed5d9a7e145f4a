"""Error types after TIDE: what each kind of mistake costs in AP.

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

References
----------
D. Bolya et al., "TIDE: A General Toolbox for Identifying Object Detection Errors", ECCV 2020.
``tidecv`` 1.0.1.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore._utils.array_types import BoolArray, FloatArray
from boxscore._utils.ordering import descending_order, group_order, run_starts, stable_order
from boxscore.diagnostics._reading import check_overlaps, greedy_one_to_one, warn_of_subsets
from boxscore.diagnostics._result import ClassResult, Counts, DiagnosticResult, Floats, once_per_evaluation
from boxscore.evaluation import Evaluation
from boxscore.protocols.tables import ApRules
from boxscore.scoring.blocks import mean_of_defined, weighted_mean
from boxscore.scoring.counts import Outcomes, TruePositiveCounts
from boxscore.scoring.curves import Curves

if TYPE_CHECKING:
    import pandas as pd

Absent = Literal["skip", "zero"]

ERROR_TYPES = ("classification", "localisation", "both", "duplicate", "background", "missed")
SPECIAL_ERRORS = ("false_positives", "false_negatives")
NO_ERROR = -1
RULES = ApRules(recall_points=tuple((np.arange(101) / 100).tolist()))


class _Errors(NamedTuple):
    """TIDE's decisions, by rows of the two tables."""

    rows: NDArray[np.intp]  # detections within max detections, by image (ids ascending) and score
    true: BoolArray  # [D] by table row
    excused: BoolArray  # [D]
    kind: NDArray[np.int8]  # [D] position in ERROR_TYPES, or NO_ERROR
    object_row: NDArray[np.intp]  # [D] ground truth of a localisation or classification error
    fixes: BoolArray  # [D] fixing this error makes it a true positive
    positive: BoolArray  # [G] not ignored
    matched: BoolArray  # [G]
    missed: BoolArray  # [G]


class ErrorCosts(NamedTuple):
    """What E kinds of error cost; arrays [..., E], AP as a fraction."""

    counts: Counts
    """Detections, or objects for ``missed`` and ``false_negatives``."""
    ap: Floats
    """AP without a fix; the same for every kind."""
    ap_without: Floats
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
        NaN for a class without ground truth.
    total : ErrorCosts, [E]
        All classes: counts added up, AP averaged.
    errors : tuple of str, [E]
        :data:`ERROR_TYPES`, then :data:`SPECIAL_ERRORS`.
    """

    per_class: ErrorCosts
    total: ErrorCosts
    errors: tuple[str, ...]

    def second_axis(self) -> dict[str, tuple[str, ...]]:
        """Name the kinds of error."""
        return {"error": self.errors}

    def frame_of(self, classes: Sequence[str], values: ErrorCosts) -> pd.DataFrame:
        """Lay out values; a tuple has a method ``count``, so the field has another name than its column."""
        return super().frame_of(classes, values).rename(columns={"counts": "count"})


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
        NaN for missed objects.
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
    max_detections: int = 100,
    absent_classes: Absent = "skip",
) -> ErrorTypes:
    """Count each kind of error and compute what it costs in AP.

    Parameters
    ----------
    evaluation : Evaluation
        Its protocol decides how boxes are measured and what is ignored.
    iou_threshold : float, default 0.5
        Minimum IoU of a match.
    background_iou : float, default 0.1
        IoU up to which a detection counts as background.
    max_detections : int, default 100
        Use the N highest-scoring detections per image, over all classes.
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
    checks.one_of(absent_classes, get_args(Absent), name="absent_classes")
    evaluation.require_overlaps("error types")
    errors = _errors(
        evaluation, iou_threshold=iou_threshold, background_iou=background_iou, max_detections=max_detections
    )
    orders = _Orders.of(evaluation, errors)
    ap, has_data = _average_precision(evaluation, errors, orders, None)
    weights = evaluation.class_weights
    ap = np.append(ap, _mean(ap, has_data, absent_classes, weights))
    names = (*ERROR_TYPES, *SPECIAL_ERRORS)
    count = np.stack([_counts(evaluation, errors, name) for name in names], axis=-1)  # [K+1,E]
    without = np.empty(count.shape)
    for e, name in enumerate(names):
        fixed, still_has_data = _average_precision(evaluation, errors, orders, name)
        without[:, e] = np.append(fixed, _mean(fixed, still_has_data, absent_classes, weights))
    cost = without - ap[:, None]
    six = slice(len(ERROR_TYPES))
    cost[:, six] = np.maximum(cost[:, six], 0)
    as_is = np.repeat(ap[:, None], len(names), axis=1)
    columns = (count, as_is, without, cost)
    return ErrorTypes(
        evaluation.ground_truth.categories.labels,
        ErrorCosts(*(values[:-1] for values in columns)),
        ErrorCosts(*(values[-1] for values in columns)),
        names,
    )


@once_per_evaluation
def error_list(
    evaluation: Evaluation,
    *,
    iou_threshold: float = 0.5,
    background_iou: float = 0.1,
    max_detections: int = 100,
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
    errors = _errors(
        evaluation, iou_threshold=iou_threshold, background_iou=background_iou, max_detections=max_detections
    )
    truth, detections = evaluation.ground_truth, evaluation.detections
    labels = np.array(truth.categories.labels, dtype=object)
    wrong = errors.rows[errors.kind[errors.rows] != NO_ERROR]
    wrong = wrong[descending_order(detections.scores[wrong])]
    missed = np.flatnonzero(errors.missed)
    kind = errors.kind[wrong]
    about = (kind == 0) | (kind == 1)
    object_row = errors.object_row[wrong]
    return ErrorList(
        np.array([*(ERROR_TYPES[k] for k in kind.tolist()), *["missed"] * len(missed)], dtype=object),
        truth.images.ids[np.concatenate([detections.image[wrong], truth.image[missed]])],
        labels[np.concatenate([detections.category[wrong], truth.category[missed]])],
        np.append(detections.scores[wrong], np.full(len(missed), np.nan)),
        np.concatenate([detections.boxes[wrong], truth.boxes[missed]]),
        np.append(_where(about, truth.ids, object_row), truth.ids[missed].astype(object)),
        np.append(_where(about, labels[truth.category], object_row), labels[truth.category[missed]]),
    )


def confusion_cost(
    evaluation: Evaluation,
    true_class: int,
    predicted_class: int,
    *,
    iou_threshold: float = 0.5,
    background_iou: float = 0.1,
    max_detections: int = 100,
) -> float:
    """AP gained if only the classification errors of one class on objects of another were fixed.

    The classes are rows of the vocabulary; the rest is as in :func:`error_types`.
    """
    errors = _errors(
        evaluation, iou_threshold=iou_threshold, background_iou=background_iou, max_detections=max_detections
    )
    wrong = errors.kind == ERROR_TYPES.index("classification")
    wrong &= evaluation.detections.category == predicted_class
    wrong[wrong] = evaluation.ground_truth.category[errors.object_row[wrong]] == true_class
    only = errors._replace(kind=np.where(wrong, errors.kind, NO_ERROR).astype(np.int8))
    orders = _Orders.of(evaluation, only)
    ap, fixed = (
        _mean(*_average_precision(evaluation, only, orders, name), "skip", evaluation.class_weights)
        for name in (None, "classification")
    )
    return max(fixed - ap, 0.0)


def missed_objects(
    evaluation: Evaluation,
    *,
    iou_threshold: float = 0.5,
    background_iou: float = 0.1,
    max_detections: int = 100,
) -> NDArray[np.intp]:
    """Rows of the ground truth that are ``missed`` in :func:`error_types` of the same options, ascending."""
    errors = _errors(
        evaluation, iou_threshold=iou_threshold, background_iou=background_iou, max_detections=max_detections
    )
    return np.flatnonzero(errors.missed)


def error_kinds(
    evaluation: Evaluation,
    *,
    iou_threshold: float = 0.5,
    background_iou: float = 0.1,
    max_detections: int = 100,
) -> tuple[NDArray[np.int8], NDArray[np.intp]]:
    """Error of each detection in :func:`error_types` of the same options, and of which object, [D] each.

    An error is a position in :data:`ERROR_TYPES`, or ``NO_ERROR``; the object of one that is neither of class
    nor of place means nothing.
    """
    errors = _errors(
        evaluation, iou_threshold=iou_threshold, background_iou=background_iou, max_detections=max_detections
    )
    return errors.kind, errors.object_row


def _where(condition: BoolArray, values: NDArray[np.object_], rows: NDArray[np.intp]) -> NDArray[np.object_]:
    """``values[rows]`` where the condition holds, else None."""
    chosen = np.full(len(rows), None, dtype=object)
    chosen[condition] = values[rows[condition]]
    return chosen


def _errors(
    evaluation: Evaluation, *, iou_threshold: float, background_iou: float, max_detections: int
) -> _Errors:
    """Match as TIDE does and name every error, once per evaluation and options."""
    check_overlaps(iou_threshold, background_iou)
    checks.whole_number(max_detections, 1, name="max_detections")
    warn_of_subsets(evaluation, "types of errors are")
    return evaluation.once(
        ("errors of TIDE", iou_threshold, background_iou, max_detections),
        lambda: _named_errors(evaluation, iou_threshold, background_iou, max_detections),
    )


def _named_errors(
    evaluation: Evaluation, iou_threshold: float, background_iou: float, max_detections: int
) -> _Errors:
    truth, detections = evaluation.ground_truth, evaluation.detections
    ignored = evaluation.matcher.ignoring.ignored
    pairs = evaluation.matcher.across_classes(
        iou_threshold=background_iou, max_detections=max_detections, by_foreground=ignored
    )
    same_class = truth.category[pairs.truth] == detections.category[pairs.detection]
    region = ignored[pairs.truth]
    D, G = len(detections), len(truth)

    match = np.flatnonzero(same_class & ~region & (pairs.iou >= iou_threshold))
    if len(match):  # by image and descending score already
        match = match[group_order(_runs(pairs.detection[match]), pairs.iou[match])]
    match = match[greedy_one_to_one(pairs.detection[match], pairs.truth[match])]
    true, matched, excused = np.zeros(D, dtype=bool), np.zeros(G, dtype=bool), np.zeros(D, dtype=bool)
    true[pairs.detection[match]] = True
    matched[pairs.truth[match]] = True
    excused[pairs.detection[same_class & region & (pairs.iou > iou_threshold)]] = True
    unjudged = evaluation.matcher.inexhaustive & ~true
    excused = (excused & ~true) | unjudged

    def best(allowed: BoolArray) -> tuple[NDArray[np.intp], FloatArray]:
        return largest_overlaps(pairs.detection, pairs.truth, pairs.iou, allowed, D)

    same_row, same = best(same_class & ~region)
    other_row, other = best(~same_class & ~region)
    _, taken = best(same_class & ~region & matched[pairs.truth])
    _, any_overlap = best(~region)
    rules = [
        (same >= background_iou) & (same <= iou_threshold),
        other >= iou_threshold,
        taken >= iou_threshold,
        any_overlap <= background_iou,
    ]
    order = [
        ERROR_TYPES.index(name) for name in ("localisation", "classification", "duplicate", "background")
    ]
    kind = np.select(rules, order, ERROR_TYPES.index("both")).astype(np.int8)
    took_part = np.zeros(D, dtype=bool)
    took_part[pairs.rows] = True
    kind[true | unjudged | ~took_part] = NO_ERROR

    about = np.where(kind == ERROR_TYPES.index("localisation"), same_row, other_row)
    open_object = (kind == 0) | (kind == 1)
    open_object &= ~matched[about] if G else False
    fixes, usable = np.zeros(D, dtype=bool), np.zeros(G, dtype=bool)
    candidates = pairs.rows[open_object[pairs.rows]]  # by image and descending score
    first = np.unique(about[candidates], return_index=True)[1]
    fixes[candidates[first]] = True
    usable[about[candidates]] = True
    return _Errors(
        pairs.rows, true, excused, kind, about, fixes, ~ignored, matched, ~ignored & ~matched & ~usable
    )


def _runs(values: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the number of the run of equal values that each is in, [N]."""
    return np.append(0, np.cumsum(values[1:] != values[:-1]))


def largest_overlaps(
    rows: NDArray[np.intp], partners: NDArray[np.intp], overlap: FloatArray, allowed: BoolArray, count: int
) -> tuple[NDArray[np.intp], FloatArray]:
    """Return the partner of each row with the largest overlap, of equal ones the first, and that overlap.

    The pairs [P] of a row stand together. Results are [count], -1 and 0 for a row without an allowed pair.
    """
    nearest, largest = np.full(count, -1, dtype=np.intp), np.zeros(count)
    chosen = np.flatnonzero(allowed)
    if not len(chosen):
        return nearest, largest
    row, value = rows.take(chosen), overlap.take(chosen)
    starts = run_starts(row)
    best = np.maximum.reduceat(value, starts)
    equal = np.flatnonzero(value == np.repeat(best, np.diff(starts, append=len(chosen))))
    first = equal[np.searchsorted(equal, starts)]
    of = row[starts]
    nearest[of], largest[of] = partners[chosen[first]], best
    return nearest, largest


class _Orders(NamedTuple):
    """Rows of the detections that took part, in the orders of curves."""

    by_class: NDArray[np.intp]
    """By class and descending score; equal scores by image."""
    errors_first: NDArray[np.intp]
    """By descending score; of equal ones the errors first, as tidecv lists them where something is fixed."""
    errors_first_by_class: NDArray[np.intp]

    @classmethod
    def of(cls, evaluation: Evaluation, errors: _Errors) -> _Orders:
        """Sort once for all that may be fixed."""
        category, score = evaluation.detections.category, evaluation.detections.scores
        size, true = len(evaluation.ground_truth.categories), errors.true[errors.rows]

        def by_class(rows: NDArray[np.intp]) -> NDArray[np.intp]:
            return rows[stable_order(category[rows], size)]

        by_score, errors_first = (
            rows[descending_order(score[rows])]
            for rows in (errors.rows, np.concatenate([errors.rows[~true], errors.rows[true]]))
        )
        return cls(by_class(by_score), errors_first, by_class(errors_first))


def _curves(evaluation: Evaluation, errors: _Errors, orders: _Orders, fixed: str | None) -> Curves:
    """Compute the curves with one kind fixed; None leaves all as they are."""
    truth, detections = evaluation.ground_truth, evaluation.detections
    counted, score, K = errors.positive, detections.scores, len(truth.categories)
    true, category, keep = errors.true, detections.category, ~errors.excused
    rows = orders.by_class if fixed is None else orders.errors_first_by_class
    if fixed in ERROR_TYPES:
        wrong = errors.kind == ERROR_TYPES.index(fixed)
        fixed_rows = wrong & errors.fixes
        keep = (keep & ~wrong) | fixed_rows
        true = true | fixed_rows
        if fixed == "classification":
            category = category.copy()
            category[fixed_rows] = truth.category[errors.object_row[fixed_rows]]
            rows = orders.errors_first[stable_order(category[orders.errors_first], K)]
        if fixed == "missed":
            counted = counted & ~errors.missed
    elif fixed == "false_positives":
        score = errors.true.astype(np.float64)
        first = errors.true[errors.rows]
        rows = np.concatenate([errors.rows[first], errors.rows[~first]])
        rows = rows[stable_order(category[rows], K)]
    elif fixed == "false_negatives":
        counted = counted & errors.matched
    rows = rows[keep[rows]]
    positive = np.bincount(truth.category[counted], minlength=K)
    return Curves(
        TruePositiveCounts(
            Outcomes.all_counted(category[rows].astype(np.intp), score[rows], true[None, rows], positive)
        ),
        RULES,
    )


def _average_precision(
    evaluation: Evaluation, errors: _Errors, orders: _Orders, fixed: str | None
) -> tuple[FloatArray, BoolArray]:
    """AP of each class, [K], NaN without positives; and whether the class has any detection or positive."""
    curves = _curves(evaluation, errors, orders, fixed)
    return curves.average_precision[0], curves.totals.has_detections | (curves.positive > 0)


def _mean(ap: FloatArray, has_data: BoolArray, absent_classes: Absent, weights: FloatArray | None) -> float:
    if absent_classes == "zero":
        ap, weights = np.nan_to_num(ap[has_data]), None if weights is None else weights[has_data]
    return mean_of_defined(ap) if weights is None else weighted_mean(ap, weights)


def _counts(evaluation: Evaluation, errors: _Errors, name: str) -> NDArray[np.int64]:
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
