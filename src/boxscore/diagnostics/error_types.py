"""Error types after TIDE: what each kind of mistake costs in AP.

Goal
----
Sort every false positive and every missed object into one kind, and say how much AP would rise if that kind
alone were put right.

Conventions
-----------
- A false positive is, by the first rule that holds: ``localisation`` (its best object of its own class
  overlaps it by ``background_iou`` to ``iou``), ``classification`` (an object of another class by ``iou`` or
  more), ``duplicate`` (an object of its class that is already taken, by ``iou`` or more), ``background``
  (nothing by more than ``background_iou``), or ``both`` (wrong class and badly placed). ``missed`` are the
  objects not found that no localisation or classification error could have found.
- Putting right: a localisation or classification error becomes a hit when its object was missed and it is the
  surest such error on it, and is dropped otherwise; duplicates, background and both are dropped; missed
  objects are taken out of the ground truth. ``false_positives``: all of them behind every hit.
  ``false_negatives``: no object is missed. The costs overlap and do not add up to 1 - AP.
- Matching is TIDE's at one IoU threshold: detections by descending score, 100 an image over all classes, each
  to the free object of its class that it overlaps most (of equal overlaps the first). An ignored region
  excuses what it covers by more than ``iou`` of the detection; TIDE still names such a detection's error.
- AP is read at 101 recall points. ``absent_classes="zero"`` takes the mean as ``tidecv`` does: a class that
  is detected and has no object counts as AP 0, and leaves the mean when its detections are put right. The
  default leaves such classes out of every mean, as COCO does.

References
----------
D. Bolya et al., "TIDE: A General Toolbox for Identifying Object Detection Errors", ECCV 2020.
``tidecv`` 1.0.1.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore._utils.ordering import descending_order, stable_order
from boxscore.diagnostics._cross_class import greedy_one_to_one
from boxscore.diagnostics._outcomes import EVERY_CLASS, ignored_truths
from boxscore.errors import InputError
from boxscore.evaluation import Evaluation
from boxscore.matching.matcher import CrossPairs

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ERROR_TYPES", "error_list", "error_types"]

Absent = Literal["skip", "zero"]
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

ERROR_TYPES = ("classification", "localisation", "both", "duplicate", "background", "missed")
SPECIAL = ("false_positives", "false_negatives")
NO_ERROR = -1
RECALL_POINTS = np.arange(101) / 100


class _Errors(NamedTuple):
    """What TIDE decides, by rows of the two tables."""

    rows: NDArray[np.intp]  # detections that the cap lets through, by image (as ids ascend) and score
    true: BoolArray  # [D] by table row
    excused: BoolArray  # [D]
    kind: NDArray[np.int8]  # [D] place in ERROR_TYPES, or NO_ERROR
    object_row: NDArray[np.intp]  # [D] the ground truth a localisation or classification error is about
    fixes: BoolArray  # [D] putting this error right makes it a hit
    positive: BoolArray  # [G] not ignored
    found: BoolArray  # [G]
    missed: BoolArray  # [G]


def error_types(
    evaluation: Evaluation,
    *,
    iou: float = 0.5,
    background_iou: float = 0.1,
    most_per_image: int = 100,
    absent_classes: Absent = "skip",
    per_class: bool = False,
) -> pd.DataFrame:
    """Count each kind of error and say what it costs.

    Parameters
    ----------
    evaluation : Evaluation
        Its protocol says how boxes are measured and what is ignored.
    iou : float, default 0.5
        Overlap of a hit.
    background_iou : float, default 0.1
        Overlap up to which a detection is of nothing.
    most_per_image : int, default 100
        Cap on the detections of an image over all classes.
    absent_classes : {"skip", "zero"}, default "skip"
        See the module's conventions; "zero" gives ``tidecv``'s numbers.
    per_class : bool, default False
        Add one row a class and kind.

    Returns
    -------
    DataFrame
        ``class, error, count, ap, ap_without, cost``: AP as it is, AP with this kind put right, and what the
        kind costs, never below 0 for the six. AP as a fraction; NaN for a class without ground truth.
        ``error`` runs over :data:`ERROR_TYPES`, then ``false_positives`` and ``false_negatives``.

    Raises
    ------
    InputError
        When an option is out of range.
    """
    import pandas as pd

    checks.one_of(absent_classes, get_args(Absent), name="absent_classes")
    errors = _find(evaluation, iou, background_iou, most_per_image)
    K = len(evaluation.ground_truth.categories)
    base, has_data = _average_precision(evaluation, errors, None)
    parts = []
    for name in (*ERROR_TYPES, *SPECIAL):
        fixed, still_has_data = _average_precision(evaluation, errors, name)
        before = _mean(base, has_data, absent_classes)
        after = _mean(fixed, still_has_data, absent_classes)
        ap, without = np.append(base, before), np.append(fixed, after)
        if name in ERROR_TYPES:
            cost = np.maximum(without - ap, 0)
        else:
            cost = without - ap
        parts.append((name, _counts(evaluation, errors, name), ap, without, cost))
    chosen = [*range(K), K] if per_class else [K]
    labels = [*evaluation.ground_truth.categories.labels, EVERY_CLASS]
    return pd.DataFrame(
        {
            "class": [labels[k] for k in chosen for _ in parts],
            "error": [part[0] for _ in chosen for part in parts],
            "count": [part[1][k] for k in chosen for part in parts],
            "ap": [part[2][k] for k in chosen for part in parts],
            "ap_without": [part[3][k] for k in chosen for part in parts],
            "cost": [part[4][k] for k in chosen for part in parts],
        }
    )


def error_list(
    evaluation: Evaluation, *, iou: float = 0.5, background_iou: float = 0.1, most_per_image: int = 100
) -> pd.DataFrame:
    """List every error, one row each.

    Parameters as in :func:`error_types`.

    Returns
    -------
    DataFrame
        ``error, image_id, class, score, x1, y1, x2, y2, annotation_id, true_class``: detections by
        descending score, then missed objects (``score`` NaN). ``annotation_id`` and ``true_class`` name
        the object that a localisation or classification error is about, or that was missed; else None.
    """
    import pandas as pd

    errors = _find(evaluation, iou, background_iou, most_per_image)
    truth, detections = evaluation.ground_truth, evaluation.detections
    labels = np.array(truth.categories.labels, dtype=object)
    wrong = errors.rows[errors.kind[errors.rows] != NO_ERROR]
    wrong = wrong[descending_order(detections.scores[wrong])]
    lost = np.flatnonzero(errors.missed)
    kind = errors.kind[wrong]
    about = (kind == 0) | (kind == 1)
    object_row = errors.object_row[wrong]
    boxes = np.concatenate([detections.boxes[wrong], truth.boxes[lost]])
    return pd.DataFrame(
        {
            "error": [ERROR_TYPES[k] for k in kind.tolist()] + ["missed"] * len(lost),
            "image_id": truth.images.ids[np.concatenate([detections.image[wrong], truth.image[lost]])],
            "class": labels[np.concatenate([detections.category[wrong], truth.category[lost]])],
            "score": np.append(detections.scores[wrong], np.full(len(lost), np.nan)),
            **{name: boxes[:, i] for i, name in enumerate(("x1", "y1", "x2", "y2"))},
            "annotation_id": np.append(_where(about, truth.ids, object_row), truth.ids[lost].astype(object)),
            "true_class": np.append(
                _where(about, labels[truth.category], object_row), labels[truth.category[lost]]
            ),
        }
    )


def _where(condition: BoolArray, values: NDArray[np.object_], rows: NDArray[np.intp]) -> NDArray[np.object_]:
    """``values[rows]`` where the condition holds, else None."""
    chosen = np.full(len(rows), None, dtype=object)
    chosen[condition] = values[rows[condition]]
    return chosen


def _find(evaluation: Evaluation, iou: float, background_iou: float, most_per_image: int) -> _Errors:
    """Match as TIDE does and name every error."""
    checks.number_between(iou, 0, 1, name="iou", open_low=True)
    checks.number_between(background_iou, 0, 1, name="background_iou", open_low=True)
    if background_iou > iou:
        raise InputError("background_iou", f"be <= iou ({iou:g})", got=background_iou)
    checks.whole_number(most_per_image, 1, name="most_per_image")
    truth, detections = evaluation.ground_truth, evaluation.detections
    ignored = ignored_truths(evaluation)
    pairs = evaluation.matcher.across_classes(
        iou_threshold=background_iou, max_detections=most_per_image, by_foreground=ignored
    )
    own = truth.category[pairs.truth] == detections.category[pairs.detection]
    region = ignored[pairs.truth]
    D, G = len(detections), len(truth)

    hit = np.flatnonzero(own & ~region & (pairs.iou >= iou))
    hit = hit[np.lexsort((pairs.truth[hit], -pairs.iou[hit], pairs.position[hit]))]
    hit = hit[greedy_one_to_one(pairs.detection[hit], pairs.truth[hit])]
    true, found, excused = np.zeros(D, dtype=bool), np.zeros(G, dtype=bool), np.zeros(D, dtype=bool)
    true[pairs.detection[hit]] = True
    found[pairs.truth[hit]] = True
    excused[pairs.detection[own & region & (pairs.iou > iou)]] = True
    excused &= ~true

    same, same_row = _best(pairs, own & ~region, D)
    other, other_row = _best(pairs, ~own & ~region, D)
    taken, _ = _best(pairs, own & ~region & found[pairs.truth], D)
    any_overlap, _ = _best(pairs, ~region, D)
    rules = [
        (same >= background_iou) & (same <= iou),
        other >= iou,
        taken >= iou,
        any_overlap <= background_iou,
    ]
    order = [
        ERROR_TYPES.index(name) for name in ("localisation", "classification", "duplicate", "background")
    ]
    kind = np.select(rules, order, ERROR_TYPES.index("both")).astype(np.int8)
    took_part = np.zeros(D, dtype=bool)
    took_part[pairs.rows] = True
    kind[true | ~took_part] = NO_ERROR

    about = np.where(kind == ERROR_TYPES.index("localisation"), same_row, other_row)
    open_object = (kind == 0) | (kind == 1)
    open_object &= ~found[about] if G else False
    fixes, usable = np.zeros(D, dtype=bool), np.zeros(G, dtype=bool)
    candidates = pairs.rows[open_object[pairs.rows]]  # by image and descending score
    first = np.unique(about[candidates], return_index=True)[1]
    fixes[candidates[first]] = True
    usable[about[candidates]] = True
    return _Errors(
        pairs.rows, true, excused, kind, about, fixes, ~ignored, found, ~ignored & ~found & ~usable
    )


def _best(pairs: CrossPairs, allowed: BoolArray, count: int) -> tuple[FloatArray, NDArray[np.intp]]:
    """Largest overlap of each detection, [D], 0 without any, and the first ground truth that has it."""
    chosen = np.flatnonzero(allowed)
    chosen = chosen[np.lexsort((pairs.truth[chosen], -pairs.iou[chosen], pairs.detection[chosen]))]
    detection, first = np.unique(pairs.detection[chosen], return_index=True)
    overlap, row = np.zeros(count), np.zeros(count, dtype=np.intp)
    overlap[detection] = pairs.iou[chosen[first]]
    row[detection] = pairs.truth[chosen[first]]
    return overlap, row


@dataclasses.dataclass
class _Points:
    """Detections that make the curves, in TIDE's order before sorting, and the positives of each class."""

    category: NDArray[np.intp]
    score: FloatArray
    true: BoolArray
    positive: NDArray[np.int64]


def _points(evaluation: Evaluation, errors: _Errors, put_right: str | None) -> _Points:
    """Curves' ground with one kind put right; None leaves all as they are."""
    truth, detections = evaluation.ground_truth, evaluation.detections
    K = len(truth.categories)
    counted = errors.positive.copy()
    rows = errors.rows
    true, category, keep = errors.true.copy(), detections.category.astype(np.intp), ~errors.excused
    score = detections.scores
    if put_right in ERROR_TYPES:
        wrong = errors.kind == ERROR_TYPES.index(put_right)
        keep &= ~wrong
        fixed = wrong & errors.fixes
        keep |= fixed
        true |= fixed
        if put_right == "classification":
            category[fixed] = truth.category[errors.object_row[fixed]]
        if put_right == "missed":
            counted &= ~errors.missed
    elif put_right == "false_positives":
        score = errors.true.astype(np.float64)
    elif put_right == "false_negatives":
        counted &= errors.found
    rows = rows[keep[rows]]
    if put_right is not None:  # tidecv files the errors before the hits, which decides equal scores
        rows = np.concatenate([rows[~errors.true[rows]], rows[errors.true[rows]]])
    return _Points(category[rows], score[rows], true[rows], np.bincount(truth.category[counted], minlength=K))


def _average_precision(
    evaluation: Evaluation, errors: _Errors, put_right: str | None
) -> tuple[FloatArray, BoolArray]:
    """AP of each class, [K], NaN without positives; and whether the class has any point or positive."""
    points = _points(evaluation, errors, put_right)
    K = len(points.positive)
    order = descending_order(points.score)
    order = order[stable_order(points.category[order], K)]
    category, true = points.category[order], points.true[order]
    bounds = np.searchsorted(category, np.arange(K + 1))
    ap = np.full(K, np.nan)
    for k in np.flatnonzero(points.positive).tolist():
        hits = np.flatnonzero(true[bounds[k] : bounds[k + 1]])
        precision = np.arange(1, len(hits) + 1) / (hits + 1)
        envelope = np.maximum.accumulate(precision[::-1])[::-1]
        recall = np.arange(1, len(hits) + 1) / points.positive[k]
        at = np.searchsorted(recall, RECALL_POINTS)
        ap[k] = np.append(envelope, 0.0)[at].mean()
    return ap, (np.diff(bounds) > 0) | (points.positive > 0)


def _mean(ap: FloatArray, has_data: BoolArray, absent_classes: Absent) -> float:
    if absent_classes == "zero":
        ap = np.nan_to_num(ap[has_data])
    defined = ap[~np.isnan(ap)]
    return float(defined.mean()) if len(defined) else float("nan")


def _counts(evaluation: Evaluation, errors: _Errors, name: str) -> NDArray[np.int64]:
    """Count the errors of one kind in each class and, last, in all; [K + 1]."""
    truth, detections = evaluation.ground_truth, evaluation.detections
    category = detections.category
    if name == "missed":
        chosen, category = errors.missed, truth.category
    elif name == "false_negatives":
        chosen, category = errors.positive & ~errors.found, truth.category
    elif name == "false_positives":
        chosen = np.zeros(len(detections), dtype=bool)
        chosen[errors.rows] = True
        chosen &= ~errors.true & ~errors.excused
    else:
        chosen = errors.kind == ERROR_TYPES.index(name)
    counts = np.bincount(category[chosen], minlength=len(truth.categories))
    return np.append(counts, counts.sum())
