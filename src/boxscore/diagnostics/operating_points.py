"""Operating points: what a detector does at a given confidence threshold.

Goal
----
Precision, recall and F-score as functions of the confidence, from counted detections, and the threshold
to choose: the best F-score, or one that keeps a precision or a recall.

Conventions
-----------
- A threshold ``s`` keeps the detections with ``score >= s``. Greedy matching takes detections by descending
  score, so what is kept matches as it did before: nothing is matched again.
- Nothing is interpolated. Ignored detections count neither for nor against.
- ``class`` is ``(all)`` for all classes together (micro average, one threshold for all). False positives of
  classes without ground truth count there, as they would in use.

References
----------
C. J. van Rijsbergen, *Information Retrieval*, 1979 (the F-score).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore._utils.ordering import descending_order
from boxscore.diagnostics._outcomes import EVERY_CLASS, outcomes
from boxscore.errors import InputError
from boxscore.evaluation import Evaluation

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["confidence_curve", "operating_points"]

FloatArray = NDArray[np.float64]
NO_POINT = -1
COUNTS = ("true_positives", "false_positives", "false_negatives")


class _Curve(NamedTuple):
    """Counts at each distinct score of one class, descending, [N]."""

    label: str
    score: FloatArray
    true: NDArray[np.int64]
    false: NDArray[np.int64]
    positive: int


def confidence_curve(
    evaluation: Evaluation, *, iou: float | None = None, area: str = "all", beta: float = 1.0
) -> pd.DataFrame:
    """Count and rate at every confidence that occurs.

    Parameters
    ----------
    evaluation : Evaluation
    iou : float, optional
        A threshold of the protocol; the first when not given.
    area : str, default "all"
        An area range of the protocol.
    beta : float, default 1
        Weight of recall against precision in the F-score.

    Returns
    -------
    DataFrame
        One row a class and distinct score, classes in order, ``(all)`` last, scores descending:
        ``class, score, true_positives, false_positives, false_negatives, precision, recall, f_score``.

    Raises
    ------
    InputError
        When the protocol does not have the threshold or the range, or beta is not positive.
    """
    import pandas as pd

    curves = _curves(evaluation, iou, area)
    tables = [_columns(curve, np.arange(len(curve.score)), beta) for curve in curves]
    return pd.DataFrame({name: np.concatenate([table[name] for table in tables]) for name in tables[0]})


def operating_points(
    evaluation: Evaluation,
    *,
    at_score: float | None = None,
    at_precision: float | None = None,
    at_recall: float | None = None,
    iou: float | None = None,
    area: str = "all",
    beta: float = 1.0,
) -> pd.DataFrame:
    """One threshold a class: the best F-score, or the one asked for.

    Parameters
    ----------
    evaluation : Evaluation
    at_score : float, optional
        Use this threshold for every class.
    at_precision : float, optional
        The lowest threshold that still has this precision, in (0, 1].
    at_recall : float, optional
        The highest threshold that already has this recall, in (0, 1].
    iou, area, beta
        As in :func:`confidence_curve`.

    Returns
    -------
    DataFrame
        One row a class, and ``(all)`` last, with the columns of :func:`confidence_curve`. Where no
        threshold qualifies, ``score`` and the rates are NaN and the counts missing. Of equally good
        F-scores the highest threshold is given.

    Raises
    ------
    InputError
        When more than one of ``at_score``, ``at_precision`` and ``at_recall`` is given, or a value is
        out of range.

    Examples
    --------
    >>> from boxscore import Detections, GroundTruth, evaluate
    >>> truth = GroundTruth.from_arrays([1, 1], ["cat", "cat"], [[0, 0, 9, 9], [20, 20, 29, 29]])
    >>> found = Detections.from_arrays(
    ...     [1, 1], ["cat", "cat"], [[0, 0, 9, 9], [50, 50, 59, 59]], [0.9, 0.4]
    ... )
    >>> best = operating_points(evaluate(truth, found)).iloc[0]
    >>> float(best["score"]), float(best["precision"]), float(best["recall"])
    (0.9, 1.0, 0.5)
    """
    import pandas as pd

    given = {"at_score": at_score, "at_precision": at_precision, "at_recall": at_recall}
    asked = [name for name, value in given.items() if value is not None]
    if len(asked) > 1:
        raise InputError("an operating point", "be asked for in one way", got=" and ".join(asked))
    curves = _curves(evaluation, iou, area)
    rows = []
    for curve in curves:
        place = _place(curve, at_score=at_score, at_precision=at_precision, at_recall=at_recall, beta=beta)
        row = {name: values[0] for name, values in _columns(curve, np.array([place]), beta).items()}
        if at_score is not None:
            row["score"] = float(at_score)
        elif place == NO_POINT:
            row.update(dict.fromkeys(COUNTS), **dict.fromkeys(("precision", "recall", "f_score"), np.nan))
        rows.append(row)
    frame = pd.DataFrame(rows)
    return frame.astype(dict.fromkeys(COUNTS, "Int64"))


def _curves(evaluation: Evaluation, iou: float | None, area: str) -> list[_Curve]:
    found, made = evaluation.matched, outcomes(evaluation, iou=iou, area=area)
    kept = np.flatnonzero(made.counted)
    score, true, category = found.score[kept], made.true[kept], found.category[kept]
    bounds = np.searchsorted(category, np.arange(len(evaluation.labels) + 1)).tolist()
    curves = [
        _curve(label, score[low:high], true[low:high], int(made.positive[k]))
        for k, (label, low, high) in enumerate(zip(evaluation.labels, bounds, bounds[1:], strict=False))
    ]
    order = descending_order(score)
    return [*curves, _curve(EVERY_CLASS, score[order], true[order], int(made.positive.sum()))]


def _curve(label: str, score: FloatArray, true: NDArray[np.bool_], positive: int) -> _Curve:
    """Count up to the last detection of each distinct score; scores descend."""
    last = np.flatnonzero(np.append(score[1:] != score[:-1], True)) if len(score) else np.empty(0, np.intp)
    up_to: NDArray[np.int64] = np.cumsum(true, dtype=np.int64)
    return _Curve(label, score[last], up_to[last], last + 1 - up_to[last], positive)


def _columns(curve: _Curve, places: NDArray[np.intp], beta: float) -> dict[str, Any]:
    """Table columns at these places; NO_POINT keeps no detection."""
    checks.number_between(beta, 0, 1e6, name="beta", open_low=True)
    true, false = (np.append(values, 0)[places] for values in (curve.true, curve.false))
    missed = curve.positive - true
    with np.errstate(invalid="ignore"):
        weight = beta * beta
        return {
            "class": np.full(len(places), curve.label, dtype=object),
            "score": np.append(curve.score, np.nan)[places],
            "true_positives": true,
            "false_positives": false,
            "false_negatives": missed,
            "precision": true / (true + false),
            "recall": true / np.float64(curve.positive),
            "f_score": (1 + weight) * true / ((1 + weight) * true + weight * missed + false),
        }


def _place(
    curve: _Curve,
    *,
    at_score: float | None,
    at_precision: float | None,
    at_recall: float | None,
    beta: float,
) -> int:
    """Place on the curve that is asked for, or NO_POINT."""
    if at_score is not None:
        checks.number_between(at_score, -np.inf, np.inf, name="at_score")
        return int(np.searchsorted(-curve.score, -at_score, side="right")) - 1
    columns = _columns(curve, np.arange(len(curve.score)), beta)
    if at_precision is not None:
        checks.number_between(at_precision, 0, 1, name="at_precision", open_low=True)
        good = np.flatnonzero(columns["precision"] >= at_precision)
        return int(good[-1]) if len(good) else NO_POINT
    if at_recall is not None:
        checks.number_between(at_recall, 0, 1, name="at_recall", open_low=True)
        good = np.flatnonzero(columns["recall"] >= at_recall)
        return int(good[0]) if len(good) else NO_POINT
    f_score = columns["f_score"]
    if not len(f_score) or not curve.positive:
        return NO_POINT
    return int(np.argmax(f_score))
