"""Localisation-recall-precision (LRP): one error that counts how boxes lie as well as which are found.

Conventions
-----------
- At a confidence threshold, ``LRP = (sum over hits of (1 - IoU) / (1 - t) + FP + FN) / (TP + FP + FN)`` with
  ``t`` the IoU threshold: 0 is perfect, 1 the worst. The optimal LRP is its least value over all thresholds,
  which also names the threshold to use.
- Its parts at that threshold: ``localisation`` is the mean ``1 - IoU`` of the hits, ``false_positive`` is
  1 - precision, ``false_negative`` is 1 - recall.
- The mean over classes leaves out classes without ground truth, and a part where it is undefined.
- A class with ground truth and no detection has LRP 1. LRP is not a loss to compare across IoU thresholds.

References
----------
K. Oksuz et al., "Localization Recall Precision (LRP): A New Performance Metric for Object Detection", ECCV
2018.
K. Oksuz et al., "One Metric to Measure Them All: Localisation Recall Precision (LRP)", TPAMI 2021.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from boxscore.diagnostics._outcomes import EVERY_CLASS, outcomes
from boxscore.errors import InputError
from boxscore.evaluation import Evaluation

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["localisation_recall_precision"]


def localisation_recall_precision(
    evaluation: Evaluation, *, iou: float | None = None, area: str = "all", at_score: float | None = None
) -> pd.DataFrame:
    """Optimal LRP of each class, or LRP at a given confidence.

    Parameters
    ----------
    evaluation : Evaluation
    iou : float, optional
        A threshold of the protocol below 1; the first when not given.
    area : str, default "all"
        An area range of the protocol.
    at_score : float, optional
        Use this confidence threshold for every class instead of each one's best.

    Returns
    -------
    DataFrame
        One row a class, and the mean over classes last (``(all)``): ``class, score, lrp, localisation,
        false_positive, false_negative, true_positives, false_positives, false_negatives``. The mean's
        ``score`` is NaN and its counts are totals.

    Raises
    ------
    InputError
        When the protocol does not have the threshold or the range.

    Examples
    --------
    >>> from boxscore import Detections, GroundTruth, evaluate
    >>> truth = GroundTruth.from_arrays([1, 1], ["cat", "cat"], [[0, 0, 10, 10], [50, 50, 60, 60]])
    >>> found = Detections.from_arrays([1], ["cat"], [[0, 0, 10, 8]], [0.9])  # IoU .8
    >>> table = localisation_recall_precision(evaluate(truth, found))
    >>> round(float(table["lrp"].iloc[0]), 6)  # (.2 / .5 + 0 + 1) / 2
    0.7
    """
    import pandas as pd

    made = outcomes(evaluation, iou=iou, area=area)
    if made.threshold >= 1:
        raise InputError("iou", "be below 1 for LRP", got=f"{made.threshold:g}")
    kept = np.flatnonzero(made.counted)
    found = evaluation.matched
    score, true, overlap = found.score[kept], made.true[kept], made.iou[kept]
    bounds = np.searchsorted(found.category[kept], np.arange(len(evaluation.labels) + 1)).tolist()
    rows = []
    for k, label in enumerate(evaluation.labels):
        part, positive = slice(bounds[k], bounds[k + 1]), int(made.positive[k])
        # Entry n of each column: the n highest scores kept. A threshold keeps all of one score or none.
        last = np.append(True, np.append(score[part][1:] != score[part][:-1], True))[: len(true[part]) + 1]
        counts = np.flatnonzero(last)
        hits = np.append(0, np.cumsum(true[part]))[counts]
        distance = np.append(0.0, np.cumsum(np.where(true[part], 1 - overlap[part], 0.0)))[counts]
        false, missed = counts - hits, positive - hits
        with np.errstate(invalid="ignore"):
            lrp = (distance / (1 - made.threshold) + false + missed) / (hits + false + missed)
        if at_score is not None:
            best = int(np.searchsorted(-score[part][counts[1:] - 1], -at_score, side="right"))
            threshold = float(at_score)
        else:
            best = int(np.argmin(lrp)) if positive else 0
            threshold = float(score[part][counts[best] - 1]) if counts[best] else np.nan
        defined = positive > 0
        rows.append(
            {
                "class": label,
                "score": threshold if defined else np.nan,
                "lrp": float(lrp[best]) if defined else np.nan,
                "localisation": distance[best] / hits[best] if hits[best] else np.nan,
                "false_positive": false[best] / counts[best] if counts[best] and defined else np.nan,
                "false_negative": missed[best] / positive if defined else np.nan,
                "true_positives": int(hits[best]),
                "false_positives": int(false[best]),
                "false_negatives": int(missed[best]),
            }
        )
    frame = pd.DataFrame(rows)
    mean = frame[["lrp", "localisation", "false_positive", "false_negative"]].mean()
    total = frame[["true_positives", "false_positives", "false_negatives"]].sum()
    return pd.concat(
        [frame, pd.DataFrame([{"class": EVERY_CLASS, "score": np.nan, **mean, **total}])], ignore_index=True
    )
