"""Confusion across classes: what each object was taken for, with background as a class of its own.

Conventions
-----------
- Rows are the truth, columns the prediction; ``(background)`` stands last in both. An object that nothing
  was assigned to counts in the background's column, a detection without an object in its row.
- Only detections with ``score >= minimum_score`` take part: a matrix belongs to one operating point.
- One detection is assigned to one object of its image, whatever their classes, when they overlap by ``iou``
  or more. ``assign="score"``: the surest detection chooses first, the object it overlaps most.
  ``assign="iou"``: of all pairs the one that overlaps most is taken first. Of equal overlaps the object
  that stands first in the file is taken.
- Ignored ground truths (crowds, difficult objects) are no row. A detection that is assigned to nothing and
  overlaps an ignored ground truth of its own class is left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore.diagnostics._cross_class import greedy_one_to_one
from boxscore.diagnostics._outcomes import ignored_truths
from boxscore.evaluation import Evaluation

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["BACKGROUND", "confusion_matrix", "top_confusions"]

Assign = Literal["score", "iou"]
Normalise = Literal["none", "truth", "predicted", "all"]

BACKGROUND = "(background)"


class _Cells(NamedTuple):
    """One row an assigned pair, a missed object or a detection of nothing, [N]."""

    truth: NDArray[np.intp]  # class row, K for background
    predicted: NDArray[np.intp]
    image: NDArray[np.int32]


def confusion_matrix(
    evaluation: Evaluation,
    *,
    iou: float = 0.5,
    minimum_score: float = 0.25,
    assign: Assign = "score",
    normalise: Normalise = "none",
) -> pd.DataFrame:
    """Count, for each true class, what it was taken for.

    Parameters
    ----------
    evaluation : Evaluation
    iou : float, default 0.5
        Least overlap, in (0, 1].
    minimum_score : float, default 0.25
        Detections below take no part.
    assign : {"score", "iou"}, default "score"
        See the module's conventions.
    normalise : {"none", "truth", "predicted", "all"}, default "none"
        Counts, or shares of each row, of each column, or of everything; 0/0 is NaN.

    Returns
    -------
    DataFrame, [K + 1, K + 1]
        Index ``truth``, columns ``predicted``; int64 counts, or float64 shares.

    Raises
    ------
    InputError
        When an option is out of range.
    """
    import pandas as pd

    checks.one_of(normalise, get_args(Normalise), name="normalise")
    cells = _cells(evaluation, iou, minimum_score, assign)
    names = [*evaluation.ground_truth.categories.labels, BACKGROUND]
    counts = np.zeros((len(names), len(names)), dtype=np.int64)
    np.add.at(counts, (cells.truth, cells.predicted), 1)
    index, columns = pd.Index(names, name="truth"), pd.Index(names, name="predicted")
    if normalise == "none":
        return pd.DataFrame(counts, index=index, columns=columns)
    axis = {"truth": 1, "predicted": 0, "all": None}[normalise]
    total = counts.sum(axis=axis, keepdims=True)
    shares = np.divide(counts, total, out=np.full(counts.shape, np.nan), where=total > 0)
    return pd.DataFrame(shares, index=index, columns=columns)


def top_confusions(
    evaluation: Evaluation,
    *,
    iou: float = 0.5,
    minimum_score: float = 0.25,
    assign: Assign = "score",
    limit: int | None = 20,
    background: bool = True,
) -> pd.DataFrame:
    """List the cells off the diagonal, largest first, with the images behind each.

    Parameters
    ----------
    evaluation, iou, minimum_score, assign
        As in :func:`confusion_matrix`.
    limit : int or None, default 20
        Rows; None for all.
    background : bool, default True
        Whether missed objects and detections of nothing are listed too.

    Returns
    -------
    DataFrame
        ``truth, predicted, count, share_of_truth, image_ids``: the share of the true class's objects
        (for ``(background)``, of the detections of nothing), and a list of the images' ids.
    """
    import pandas as pd

    cells = _cells(evaluation, iou, minimum_score, assign)
    names = [*evaluation.ground_truth.categories.labels, BACKGROUND]
    K = len(names) - 1
    of_truth = np.bincount(cells.truth, minlength=K + 1)
    off = cells.truth != cells.predicted
    if not background:
        off &= (cells.truth < K) & (cells.predicted < K)
    keys, place, counts = np.unique(
        cells.truth[off] * (K + 1) + cells.predicted[off], return_inverse=True, return_counts=True
    )
    order = np.argsort(-counts, kind="stable")[:limit]
    truth, predicted = np.divmod(keys[order], K + 1)
    ids, images = evaluation.ground_truth.images.ids, cells.image[off]
    return pd.DataFrame(
        {
            "truth": [names[k] for k in truth.tolist()],
            "predicted": [names[k] for k in predicted.tolist()],
            "count": counts[order],
            "share_of_truth": counts[order] / of_truth[truth],
            "image_ids": [ids[np.unique(images[place == key])].tolist() for key in order.tolist()],
        }
    )


def _cells(evaluation: Evaluation, iou: float, minimum_score: float, assign: Assign) -> _Cells:
    checks.number_between(iou, 0, 1, name="iou", open_low=True)
    checks.number_between(minimum_score, -np.inf, np.inf, name="minimum_score")
    checks.one_of(assign, get_args(Assign), name="assign")
    truth, detections = evaluation.ground_truth, evaluation.detections
    ignored = ignored_truths(evaluation)
    pairs = evaluation.matcher.across_classes(iou_threshold=iou, score_threshold=minimum_score)

    real = np.flatnonzero(~ignored[pairs.truth])
    by_overlap, by_score = -pairs.iou[real], pairs.position[real]
    first, second = (by_score, by_overlap) if assign == "score" else (by_overlap, by_score)
    real = real[np.lexsort((pairs.truth[real], second, first))]
    taken = real[greedy_one_to_one(pairs.detection[real], pairs.truth[real])]
    object_row, detection_row = pairs.truth[taken], pairs.detection[taken]

    free = np.ones(len(detections), dtype=bool)
    free[detection_row] = False
    excused = ignored[pairs.truth] & (truth.category[pairs.truth] == detections.category[pairs.detection])
    free[pairs.detection[excused]] = False
    lone = pairs.rows[free[pairs.rows]]
    missed = ~ignored
    missed[object_row] = False
    missed_rows = np.flatnonzero(missed)

    K = len(truth.categories)
    return _Cells(
        np.concatenate([truth.category[object_row], np.full(len(lone), K), truth.category[missed_rows]]),
        np.concatenate(
            [detections.category[detection_row], detections.category[lone], np.full(len(missed_rows), K)]
        ),
        np.concatenate([truth.image[object_row], detections.image[lone], truth.image[missed_rows]]),
    )
