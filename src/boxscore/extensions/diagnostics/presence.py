"""Score whole images: whether a class is in the image, and how many objects of it.

Conventions
-----------
- A class is *present* in an image with a counted object, and *predicted* in an image with a true or false
  positive at or above a score. The position of boxes does not matter: a false positive in an image with an
  object of its class is correct here.
- Counts of objects compare both numbers, so a missed object and a false positive cancel.
- Ignored objects and detections that match them do not count. An image whose only objects of a class are
  ignored says neither yes nor no: its presence is left out.
- In a federated data set, only images that say whether a class is in them are evaluated for it.
- All classes together: whether there is any object, and the number of objects of all classes.
- Images without rows of a class are never listed; they are added as numbers.

References
----------
J. A. Hanley and B. J. McNeil, *The meaning and use of the area under a receiver operating characteristic
(ROC) curve*, Radiology 1982 (the area is the share of pairs in order, where a tie is half a pair).
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import FloatArray
from boxscore._utils.ordering import among, group_starts
from boxscore.evaluation import Evaluation
from boxscore.extensions.diagnostics._reading import area_index, least_score, threshold_index
from boxscore.extensions.diagnostics._result import ClassResult, Counts, Floats, once_per_evaluation
from boxscore.extensions.diagnostics.images import ratio
from boxscore.extensions.large.questions import Place, source_of
from boxscore.matching.outcomes import FALSE_POSITIVE, TRUE_POSITIVE, outcomes_by_row
from boxscore.matching.ranking import ranked_by

if TYPE_CHECKING:
    import pandas as pd


class Presence(NamedTuple):
    """Numbers of images, and rates; one value per class, or one for all classes together."""

    true_positives: Counts
    """Images with the class where it is predicted."""
    false_positives: Counts
    false_negatives: Counts
    true_negatives: Counts
    left_out: Counts
    """Images that do not say whether the class is in them."""
    precision: Floats
    recall: Floats
    specificity: Floats
    f1: Floats
    auc: Floats
    """Area under the ROC curve of the highest score per image, where no detection is below every score."""


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class ImagePresence(ClassResult):
    """Whether each class is predicted in the images that have it.

    Attributes
    ----------
    classes : list of str, [K]
    per_class : Presence, [K]
        Rates are NaN where undefined.
    total : Presence, scalars
        Whether an image has an object of any class.
    scored : bool
        Whether the detections have scores; without them the AUC is undefined and its column missing.
    """

    per_class: Presence
    total: Presence
    scored: bool

    def frame_of(self, classes: Sequence[str], values: Presence) -> pd.DataFrame:
        """Build the table of the values, with short names of counts."""
        names = dict(zip(Presence._fields, ("TP", "FP", "FN", "TN"), strict=False))
        frame = super().frame_of(classes, values).rename(columns={**names, "f1": "F1", "auc": "AUC"})
        return frame if self.scored else frame.drop(columns="AUC")


class CountErrors(NamedTuple):
    """Errors of the number of objects per image; one value per class, or one for all classes together."""

    images: Counts
    """Images that are compared."""
    objects: Counts
    detections: Counts
    exact: Floats
    """Share of the images with the right number."""
    mean_error: Floats
    """Mean of detections minus objects; positive if too many are counted."""
    mae: Floats
    rmse: Floats


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class ImageCounts(ClassResult):
    """Errors of the number of objects in an image.

    Attributes
    ----------
    classes : list of str, [K]
    per_class : CountErrors, [K]
        NaN for a class without an image.
    total : CountErrors, scalars
        Objects of all classes are counted together in each image.
    score_threshold : float
    """

    per_class: CountErrors
    total: CountErrors
    score_threshold: float

    note = "mean_error: detections minus objects; a missed object and a false positive cancel"

    @property
    def title(self) -> str:
        """Title of the table."""
        return f"Number of objects per image, detections with score >= {self.score_threshold:.4g}"

    def frame_of(self, classes: Sequence[str], values: CountErrors) -> pd.DataFrame:
        """Build the table of the values."""
        return super().frame_of(classes, values).rename(columns={"mae": "MAE", "rmse": "RMSE"})


Values = TypeVar("Values", Presence, CountErrors)


@once_per_evaluation
def image_presence(
    evaluation: Evaluation,
    *,
    iou_threshold: float | None = None,
    area: str = "all",
    score_threshold: float = 0.0,
) -> ImagePresence:
    """Score the question whether a class is in an image, per class.

    Parameters
    ----------
    evaluation : Evaluation
    iou_threshold : float, optional
        One of the protocol's IoU thresholds (default: the first). It decides only which detections match
        ignored objects.
    area : str, default "all"
        One of the protocol's area ranges.
    score_threshold : float, default 0
        A class is predicted by a detection with at least this score. The AUC uses all detections.

    Returns
    -------
    ImagePresence

    Raises
    ------
    InputError
        When the protocol does not have the threshold or the range.

    Examples
    --------
    >>> from boxscore import Detections, GroundTruth, evaluate
    >>> truth = GroundTruth.from_arrays([1, 2], ["cat", "cat"], [[0, 0, 9, 9]] * 2, images=[1, 2, 3, 4])
    >>> boxes = [[50, 0, 59, 9], [0, 0, 9, 9]]
    >>> detections = Detections.from_arrays([1, 3], ["cat"] * 2, boxes, [0.9, 0.4])
    >>> cat = image_presence(evaluate(truth, detections)).total
    >>> int(cat.true_positives), int(cat.true_negatives), float(cat.specificity), float(cat.auc)
    (1, 1, 0.5, 0.625)
    """
    pairs = _pairs(evaluation, iou_threshold, area, score_threshold)
    # Drop pairs that say neither yes nor no.
    K = len(pairs.images)
    left_out = np.bincount(pairs.category[pairs.is_open], minlength=K)
    pairs = pairs.take(~pairs.is_open)
    # Count the pairs with a row; all other images are true negatives.
    present, predicted = pairs.objects > 0, pairs.detections > 0
    true, false, missed = (
        np.bincount(pairs.category[rows], minlength=K)
        for rows in (present & predicted, ~present & predicted, present & ~predicted)
    )
    negative = pairs.images - left_out - true - false - missed
    values = Presence(
        true,
        false,
        missed,
        negative,
        left_out,
        ratio(true, true + false),
        ratio(true, true + missed),
        ratio(negative, negative + false),
        ratio(2 * true, 2 * true + false + missed),
        _auc(pairs, present, pairs.images - left_out),
    )
    return ImagePresence(evaluation.labels, *_with_total(values), evaluation.has_scores)


@once_per_evaluation
def count_errors(
    evaluation: Evaluation,
    *,
    iou_threshold: float | None = None,
    area: str = "all",
    score_threshold: float = 0.0,
) -> ImageCounts:
    """Compare the number of detections with the number of objects, per class and image.

    Parameters
    ----------
    evaluation, iou_threshold, area
        As in :func:`image_presence`.
    score_threshold : float, default 0
        Detections below do not count.

    Returns
    -------
    ImageCounts

    Raises
    ------
    InputError
        When the protocol does not have the threshold or the range.

    Examples
    --------
    >>> from boxscore import Detections, GroundTruth, evaluate
    >>> truth = GroundTruth.from_arrays([1, 1], ["cat", "cat"], [[0, 0, 9, 9]] * 2, images=[1, 2])
    >>> detections = Detections.from_arrays([2], ["cat"], [[0, 0, 9, 9]], [0.9])
    >>> errors = count_errors(evaluate(truth, detections)).total
    >>> float(errors.mean_error), float(errors.mae), round(float(errors.rmse), 4)
    (-0.5, 1.5, 1.5811)
    """
    pairs = _pairs(evaluation, iou_threshold, area, score_threshold)
    K = len(pairs.images)
    # Without an exhaustive annotation the number of objects is unknown.
    images = pairs.images - np.bincount(pairs.category[pairs.is_partial], minlength=K)
    pairs = pairs.take(~pairs.is_partial)
    # Add whole numbers, which is exact; images without rows add 0.
    difference = pairs.detections - pairs.objects

    def summed(values: NDArray[np.int64]) -> NDArray[np.int64]:
        total = np.zeros(K, dtype=np.int64)
        np.add.at(total, pairs.category, values)
        return total

    values = CountErrors(
        images,
        summed(pairs.objects),
        summed(pairs.detections),
        ratio(images - np.bincount(pairs.category[difference != 0], minlength=K), images),
        ratio(summed(difference), images),
        ratio(summed(np.abs(difference)), images),
        np.sqrt(ratio(summed(difference * difference), images)),
    )
    return ImageCounts(evaluation.labels, *_with_total(values), float(score_threshold))


def _with_total(values: Values) -> tuple[Values, Values]:
    """Split columns [K + 1] into those of the classes [K] and the numbers of all classes together."""
    each, last = (type(values)(*(column[rows] for column in values)) for rows in (slice(-1), -1))
    return each, last


# ---------------------------------------------------------------- pairs of image and class


class _Pairs(NamedTuple):
    """Pairs of an image and a class with an object or a detection, [P]; class K is all classes together."""

    images: NDArray[np.int64]
    """Number of images that are evaluated for each class, with and without rows, [K + 1]."""
    category: NDArray[np.int64]
    objects: NDArray[np.int64]
    """Number of counted objects."""
    detections: NDArray[np.int64]
    """Number of counted detections at or above the score threshold."""
    best: FloatArray
    """Highest score of the counted detections; minus infinity without one."""
    is_open: NDArray[np.bool_]
    """Whether all objects are ignored."""
    is_partial: NDArray[np.bool_]
    """Whether not every object is annotated."""

    def take(self, rows: NDArray[np.bool_]) -> _Pairs:
        """Return some of the pairs."""
        columns: Any = [column[rows] for column in self[1:]]
        return _Pairs(self.images, *columns)


def _pairs(evaluation: Evaluation, iou_threshold: float | None, area: str, score_threshold: float) -> _Pairs:
    """Collect the pairs of all images."""
    options = {"iou_threshold": iou_threshold, "area": area, "score_threshold": score_threshold}
    answers = source_of(evaluation).answers("presence in images", _pairs_of, options)
    images: NDArray[np.int64] = np.sum([one.images for one in answers], axis=0)
    return _joined(images, answers)


def _pairs_of(
    evaluation: Evaluation, place: Place, *, iou_threshold: float | None, area: str, score_threshold: float
) -> _Pairs:
    """Collect the pairs of some images."""
    t, a = threshold_index(evaluation, iou_threshold), area_index(evaluation, area)
    least = least_score(evaluation, score_threshold)
    truth, table, rules = evaluation.ground_truth, evaluation.detections, evaluation.protocol
    # Get the outcome of each row; ignored detections do not count.
    outcomes = outcomes_by_row(evaluation.matched, len(table), len(truth), threshold=t, area=a)
    rows = np.flatnonzero(np.isin(outcomes.detection, (TRUE_POSITIVE, FALSE_POSITIVE)))
    score = ranked_by(table)[rows].astype(np.float64)
    # Number the pairs (image, class); if classes are pooled, there is one class.
    count, K = len(truth.images), len(evaluation.labels)
    classes = int(rules.matching.per_class)
    objects = truth.image.astype(np.int64) * K + truth.category * classes
    found = table.image[rows].astype(np.int64) * K + table.category[rows] * classes
    # Find the pairs that are evaluated, and those whose objects are not all annotated.
    partial, listed = np.empty(0, dtype=np.int64), None
    labels = truth.image_labels if classes else None
    if labels is not None and rules.labels.not_exhaustive == "ignore":
        some = labels.of("not_exhaustive")
        partial = np.unique(some.image.astype(np.int64) * K + some.category)
    if rules.labels.unlisted.startswith("drop") and classes:
        listed = [objects]
        if rules.labels.unlisted == "drop_beside_others":
            empty = np.setdiff1d(np.arange(count), truth.image)
            listed.append((empty[:, None] * K + np.arange(K)).ravel())
        elif rules.labels.unlisted == "drop" and labels is not None:
            kinds = ("negative",) if rules.labels.listed_by == "negative" else ("negative", "positive")
            some = labels.of(*kinds)
            listed.append(some.image.astype(np.int64) * K + some.category)
    # Count per class, then for all classes together.
    images = np.full(K + 1, count)
    if listed is not None:
        images[:K] = np.bincount(np.unique(np.concatenate(listed)) % K, minlength=K)
    parts = []
    for total in (False, True):
        of_objects, of_found, whole = (keys // K if total else keys for keys in (objects, found, partial))
        keys = np.unique(np.concatenate([of_objects, of_found]))
        at_object, at_found = np.searchsorted(keys, of_objects), np.searchsorted(keys, of_found)
        counted = np.bincount(at_object[outcomes.counted], minlength=len(keys))
        best = np.full(len(keys), -np.inf)
        np.maximum.at(best, at_found, score)
        parts.append(
            _Pairs(
                images,
                np.full(len(keys), K) if total else keys % K,
                counted,
                np.bincount(at_found[score >= least], minlength=len(keys)),
                best,
                (counted == 0) & (np.bincount(at_object, minlength=len(keys)) > 0),
                among(whole, keys, count * K),
            )
        )
    return _joined(images, parts)


def _joined(images: NDArray[np.int64], parts: Sequence[_Pairs]) -> _Pairs:
    """Concatenate pairs."""
    columns: Any = [np.concatenate(column) for column in zip(*(one[1:] for one in parts), strict=True)]
    return _Pairs(images, *columns)


def _auc(pairs: _Pairs, present: NDArray[np.bool_], images: NDArray[np.int64]) -> FloatArray:
    """Return the area under the ROC curve per class, [K + 1]; NaN without both kinds of images."""
    area = np.full(len(images), np.nan)
    # Sort by class and score, so that a class is one slice.
    order = np.lexsort((pairs.best, pairs.category))
    bounds = group_starts(pairs.category[order], len(images))
    for k, (start, end) in enumerate(itertools.pairwise(bounds)):
        rows = order[start:end]
        yes, no = pairs.best[rows[present[rows]]], pairs.best[rows[~present[rows]]]
        negatives = int(images[k]) - len(yes)
        if not len(yes) or not negatives:
            continue
        # Count the images without the class below each image with it, twice; ties count once. Images without
        # rows have no detection: they are below every score, and tie with an image whose objects are missed.
        silent = negatives - len(no)
        twice = np.searchsorted(no, yes, "left") + np.searchsorted(no, yes, "right")
        twice = twice + np.where(np.isneginf(yes), silent, 2 * silent)
        area[k] = int(twice.sum()) / (2 * len(yes) * negatives)
    return area
