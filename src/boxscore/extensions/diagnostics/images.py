"""Compute scores per image: counts, precision, recall, F1 and average precision.

Conventions
-----------
- There is one row per image, in the order of the data set, including images without objects or detections.
- Counts refer to one IoU threshold and area range, and to detections at or above a confidence. Ignored
  objects and detections do not count.
- An image's AP is the mean over the classes that have counted objects in it, each ranked within the image and
  averaged by the protocol's rule. It is meant for sorting images: its mean is not the data set's AP, which
  ranks the detections of all images together.
- Precision is undefined without detections, recall and AP without objects.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import FloatArray
from boxscore.evaluation import Evaluation
from boxscore.extensions.diagnostics._reading import area_index, least_score, threshold_index
from boxscore.extensions.diagnostics._result import DiagnosticResult, once_per_evaluation
from boxscore.extensions.large.questions import Place, source_of
from boxscore.matching.outcomes import FALSE_POSITIVE, MISSED, TRUE_POSITIVE, outcomes_by_row
from boxscore.matching.ranking import ranked_by
from boxscore.scoring.counts import Outcomes, TruePositiveCounts
from boxscore.scoring.curves import Curves

if TYPE_CHECKING:
    import pandas as pd

Counts = NDArray[np.int64]


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class ImageScores(DiagnosticResult):
    """Counts and scores of every image.

    Attributes
    ----------
    image_ids : ndarray, [I]
    file_names : ndarray of object, [I]
    true_positives, false_positives, false_negatives : ndarray of int64, [I]
    precision, recall, f1, average_precision : ndarray of float64, [I]
        NaN where undefined.
    scored : bool
        Whether the detections have scores; without them AP is undefined and its column missing.
    """

    image_ids: NDArray[np.generic]
    file_names: NDArray[np.object_]
    true_positives: Counts
    false_positives: Counts
    false_negatives: Counts
    precision: FloatArray
    recall: FloatArray
    f1: FloatArray
    average_precision: FloatArray
    scored: bool

    def to_frame(self) -> pd.DataFrame:
        """Return one row per image."""
        import pandas as pd

        # Drop columns without values: file names, and AP without scores.
        columns = {
            "image_id": self.image_ids,
            "file_name": self.file_names,
            "objects": self.true_positives + self.false_negatives,
            "detections": self.true_positives + self.false_positives,
            "TP": self.true_positives,
            "FP": self.false_positives,
            "FN": self.false_negatives,
            "precision": self.precision,
            "recall": self.recall,
            "F1": self.f1,
            "AP": self.average_precision,
        }
        if all(name is None for name in self.file_names.tolist()):
            del columns["file_name"]
        if not self.scored:
            del columns["AP"]
        return pd.DataFrame(columns)


def _join(answers: Sequence[ImageScores]) -> ImageScores:
    """Concatenate the rows of disjoint images, in the order of their ids."""
    names = [field.name for field in dataclasses.fields(ImageScores) if field.name != "scored"]
    columns = {name: np.concatenate([getattr(one, name) for one in answers]) for name in names}
    return ImageScores(**columns, scored=all(one.scored for one in answers))


@once_per_evaluation
def image_scores(
    evaluation: Evaluation,
    *,
    iou_threshold: float | None = None,
    area: str = "all",
    score_threshold: float = 0.0,
) -> ImageScores:
    """Score every image.

    Parameters
    ----------
    evaluation : Evaluation
    iou_threshold : float, optional
        One of the protocol's IoU thresholds (default: the first).
    area : str, default "all"
        One of the protocol's area ranges.
    score_threshold : float, default 0
        Leave out detections that score below this. AP uses all detections.

    Returns
    -------
    ImageScores

    Raises
    ------
    InputError
        When the protocol does not have the threshold or the range.

    Examples
    --------
    >>> from boxscore import Detections, GroundTruth, evaluate
    >>> truth = GroundTruth.from_arrays([1, 1, 2], ["cat", "dog", "cat"], [[0, 0, 9, 9]] * 3)
    >>> boxes = [[0, 0, 9, 9], [0, 0, 9, 9], [20, 0, 29, 9]]
    >>> detections = Detections.from_arrays([1, 2, 2], ["cat"] * 3, boxes, [0.9, 0.8, 0.7])
    >>> scores = image_scores(evaluate(truth, detections))
    >>> scores.true_positives.tolist(), scores.false_positives.tolist()
    ([1, 1], [0, 1])
    >>> scores.average_precision.round(6).tolist()
    [0.5, 1.0]
    """
    options = {"iou_threshold": iou_threshold, "area": area, "score_threshold": score_threshold}
    return _join(source_of(evaluation).answers("scores of images", _scores_of, options, rows_of_images=True))


def _scores_of(
    evaluation: Evaluation, place: Place, *, iou_threshold: float | None, area: str, score_threshold: float
) -> ImageScores:
    """Score some images."""
    # Use one threshold and one area range; detections below the score threshold count as absent.
    t, a = threshold_index(evaluation, iou_threshold), area_index(evaluation, area)
    least = least_score(evaluation, score_threshold)
    # Get the outcome of each row, then the three counts of each image.
    images, truth, table = evaluation.ground_truth.images, evaluation.ground_truth, evaluation.detections
    outcomes = outcomes_by_row(evaluation.matched, len(table), len(truth), threshold=t, area=a)
    counts = ranked_by(table) >= least
    true = _count_by_image(table.image[(outcomes.detection == TRUE_POSITIVE) & counts], len(images))
    false = _count_by_image(table.image[(outcomes.detection == FALSE_POSITIVE) & counts], len(images))
    missed = _count_by_image(truth.image[outcomes.truth(least) == MISSED], len(images))
    # Divide counts; a ratio is NaN if its denominator is 0.
    precision, recall = ratio(true, true + false), ratio(true, true + missed)
    return ImageScores(
        images.ids,
        images.file_names,
        true,
        false,
        missed,
        precision,
        recall,
        ratio(2 * true, 2 * true + false + missed),
        _average_precision(evaluation, t, a),
        table.scored,
    )


def _count_by_image(images: NDArray[np.int32], count: int) -> Counts:
    return np.bincount(images, minlength=count).astype(np.int64)


def ratio(part: Counts, whole: Counts) -> FloatArray:
    """Divide counts; NaN if the denominator is 0."""
    divided: FloatArray = np.divide(part, whole, out=np.full(len(whole), np.nan), where=whole > 0)
    return divided


def _average_precision(evaluation: Evaluation, threshold: int, area: int) -> FloatArray:
    """Compute the AP of each image, [I], from curves of its (image, class) pairs; NaN without scores."""
    # Number each (image, class) pair with a counted object; these are the classes of the curves, [groups].
    matched = evaluation.matched
    if not evaluation.has_scores:
        return np.full(len(matched.images), np.nan)
    classes = len(matched.categories)
    truth_group = matched.truth_image.astype(np.int64) * classes + matched.truth_category
    group = matched.image.astype(np.int64) * classes + matched.category
    groups = np.unique(truth_group[matched.counted(area)])
    if not len(groups):
        return np.full(len(matched.images), np.nan)
    # Select the detections of these pairs and sort them by pair; a stable sort keeps descending scores.
    made = matched.detection_outcomes(threshold, area)
    at = np.minimum(np.searchsorted(groups, group), len(groups) - 1)
    rows = np.flatnonzero(groups[at] == group)
    rows = rows[
        np.argsort(at[rows], kind="stable")
        # Scores descend within each group, as they did within each class.
    ]
    # Count the objects of each pair, and score all pairs in one pass over the curves.
    position = np.minimum(np.searchsorted(groups, truth_group), len(groups) - 1)
    counted = matched.counted(area) & (groups[position] == truth_group)
    positive = np.bincount(position[counted], minlength=len(groups)).astype(np.int64)
    rules = evaluation.protocol.ap
    outcomes = Outcomes.all_counted(
        at[rows], matched.score[rows], made.true[rows][None], positive, ignored=~made.counted[rows][None]
    )
    ap = Curves(TruePositiveCounts(outcomes, rules.tie_order), rules).average_precision[0]
    # Average the APs of each image; NaN for an image without objects.
    image = groups // classes
    count = np.bincount(image, minlength=len(matched.images))
    total = np.bincount(image, weights=ap, minlength=len(matched.images))
    mean: FloatArray = np.divide(total, count, out=np.full(len(count), np.nan), where=count > 0)
    return mean
