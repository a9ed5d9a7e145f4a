"""Calibration: whether a confidence of .8 means that four in five are right.

Conventions
-----------
- Counted detections are put into bins of confidence. A bin's ``confidence`` is the mean score in it, its
  ``accuracy`` the share of true positives (precision), its ``gap`` accuracy minus confidence: negative is
  overconfident.
- The expected calibration error (ECE) is the mean size of the gap over detections; the maximum one (MCE) is
  the largest gap of a bin. Empty bins count for nothing.
- The localisation-aware error (LaECE) holds a detection to more: its confidence should equal precision times
  the mean IoU of the hits.
- Missed objects do not enter: calibration says nothing about recall. Detections of a class without ground
  truth are wrong ones. Bins are ``(low, high]``; the first takes 0 as well.

References
----------
M. P. Naeini, G. Cooper and M. Hauskrecht, "Obtaining Well Calibrated Probabilities Using Bayesian Binning",
AAAI 2015. K. Oksuz, T. Joy and P. Dokania, "Towards Building Self-Aware Object Detectors via Reliable
Uncertainty Quantification and Calibration", CVPR 2023 (LaECE, whose mean is over classes).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore.diagnostics._outcomes import EVERY_CLASS, outcomes
from boxscore.errors import InputError
from boxscore.evaluation import Evaluation

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["calibration", "reliability"]

Binning = Literal["width", "count"]
FloatArray = NDArray[np.float64]


def reliability(
    evaluation: Evaluation,
    *,
    bins: int = 10,
    binning: Binning = "width",
    minimum_score: float = 0.0,
    iou: float | None = None,
    area: str = "all",
) -> pd.DataFrame:
    """Confidence against accuracy, bin by bin.

    Parameters
    ----------
    evaluation : Evaluation
    bins : int, default 10
    binning : {"width", "count"}, default "width"
        Bins of equal width over [0, 1], or of equally many detections of all classes.
    minimum_score : float, default 0
        Detections below take no part.
    iou : float, optional
        A threshold of the protocol; the first when not given.
    area : str, default "all"
        An area range of the protocol.

    Returns
    -------
    DataFrame
        One row a class and bin, ``(all)`` last: ``class, bin, low, high, detections, confidence, accuracy,
        mean_iou, gap, localisation_gap``; NaN in empty bins.

    Raises
    ------
    InputError
        When a score is not in [0, 1], or an option is out of range.
    """
    import pandas as pd

    checks.whole_number(bins, 1, name="bins")
    checks.one_of(binning, get_args(Binning), name="binning")
    checks.number_between(minimum_score, 0, 1, name="minimum_score")
    made, found = outcomes(evaluation, iou=iou, area=area), evaluation.matched
    kept = np.flatnonzero(made.counted & (found.score >= minimum_score))
    score = found.score[kept]
    outside = np.flatnonzero((score < 0) | (score > 1))
    if len(outside):
        raise InputError(
            "scores",
            "lie in [0, 1] for calibration",
            got=float(score[outside[0]]),
            cause="logits, or percentages?",
        )
    edges = np.linspace(0, 1, bins + 1)
    if binning == "count" and len(score):
        edges = np.quantile(score, edges)
    inner = np.searchsorted(edges[1:-1], score, side="left")
    K = len(evaluation.labels)
    cell = found.category[kept].astype(np.int64) * bins + inner

    def total(values: FloatArray) -> FloatArray:
        by_class = np.bincount(cell, weights=values, minlength=K * bins).reshape(K, bins)
        return np.concatenate([by_class, by_class.sum(axis=0, keepdims=True)])  # [K+1,bins]

    count, true = total(np.ones(len(kept))), total(made.true[kept].astype(np.float64))
    with np.errstate(invalid="ignore"):
        confidence, accuracy = total(score) / count, true / count
        overlap = total(np.nan_to_num(made.iou[kept])) / true
        expected = np.where(true > 0, accuracy * overlap, accuracy)
    return pd.DataFrame(
        {
            "class": np.repeat(np.array([*evaluation.labels, EVERY_CLASS], dtype=object), bins),
            "bin": np.tile(np.arange(bins), K + 1),
            "low": np.tile(edges[:-1], K + 1),
            "high": np.tile(edges[1:], K + 1),
            "detections": count.astype(np.int64).ravel(),
            "confidence": confidence.ravel(),
            "accuracy": accuracy.ravel(),
            "mean_iou": overlap.ravel(),
            "gap": (accuracy - confidence).ravel(),
            "localisation_gap": (expected - confidence).ravel(),
        }
    )


def calibration(
    evaluation: Evaluation,
    *,
    bins: int = 10,
    binning: Binning = "width",
    minimum_score: float = 0.0,
    iou: float | None = None,
    area: str = "all",
) -> pd.DataFrame:
    """Calibration errors of each class and of all detections together.

    Parameters
    ----------
    evaluation, bins, binning, minimum_score, iou, area
        As in :func:`reliability`.

    Returns
    -------
    DataFrame
        One row a class, then ``(all)`` (all detections in one table) and ``(mean)`` (mean over classes, as
        LaECE's authors report it): ``class, detections, expected_error, maximum_error,
        localisation_expected_error, confidence, accuracy``. NaN for a class without detections.

    Raises
    ------
    InputError
        As in :func:`reliability`.
    """
    import pandas as pd

    table = reliability(
        evaluation, bins=bins, binning=binning, minimum_score=minimum_score, iou=iou, area=area
    )
    shape = (-1, bins)
    count = table["detections"].to_numpy(dtype=np.float64).reshape(shape)
    columns = {
        name: np.nan_to_num(table[name].to_numpy(dtype=np.float64)).reshape(shape)
        for name in ("gap", "localisation_gap", "confidence", "accuracy")
    }
    total = count.sum(axis=1)
    empty = total == 0

    def weighted(values: FloatArray) -> FloatArray:
        mean: FloatArray = np.where(empty, np.nan, (count * values).sum(axis=1) / np.maximum(total, 1))
        return mean

    frame = pd.DataFrame(
        {
            "class": [*evaluation.labels, EVERY_CLASS],
            "detections": total.astype(np.int64),
            "expected_error": weighted(np.abs(columns["gap"])),
            "maximum_error": np.where(empty, np.nan, np.abs(columns["gap"]).max(axis=1)),
            "localisation_expected_error": weighted(np.abs(columns["localisation_gap"])),
            "confidence": weighted(columns["confidence"]),
            "accuracy": weighted(columns["accuracy"]),
        }
    )
    numbers = frame.columns[2:]
    mean = {"class": MEAN, "detections": frame["detections"].iloc[-1], **frame[numbers].iloc[:-1].mean()}
    return pd.concat([frame, pd.DataFrame([mean])], ignore_index=True)


MEAN = "(mean)"
"""Stands in a ``class`` column for the mean over classes."""
