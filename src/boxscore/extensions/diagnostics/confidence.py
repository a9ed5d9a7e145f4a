"""Compute precision, recall and F-score by confidence, and choose a confidence threshold.

Goal
----
The threshold to choose is the one with the best F-score, or one that reaches a given precision or recall.

Conventions
-----------
- A threshold ``s`` keeps the detections with ``score >= s``. Greedy matching takes detections by descending
  score, so dropping low scores does not change the other matches, and the matches are reused.
- Curves are not interpolated. Ignored detections do not count.
- All classes together are a micro average, with one threshold for all. It includes false positives of classes
  without ground truth, as they would occur in use.

References
----------
C. J. van Rijsbergen, *Information Retrieval*, 1979 (the F-score).
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore.errors import InputError
from boxscore.evaluation import Evaluation
from boxscore.extensions.diagnostics._reading import area_index, threshold_index
from boxscore.extensions.diagnostics._result import ClassResult, CurvesByClass, Floats, once_per_evaluation
from boxscore.scoring.score_counts import ScoreCounts

if TYPE_CHECKING:
    import pandas as pd

NO_POINT = -1
COUNTS = ("true_positives", "false_positives", "false_negatives")


class Rates(NamedTuple):
    """Counts and rates at confidence thresholds; arrays of one shape, float64.

    Counts are whole numbers, unless groups have fractional weights.
    """

    score: Floats
    """The threshold."""
    true_positives: Floats
    false_positives: Floats
    false_negatives: Floats
    precision: Floats
    recall: Floats
    f_score: Floats

    def take(self, positions: Any) -> Rates:
        """Return the values at the given positions."""
        return Rates(*(column[positions] for column in self))


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class ConfidenceCurves(CurvesByClass):
    """Counts and rates at every distinct score, per class and over all classes.

    Attributes
    ----------
    classes : list of str, [K]
    rates : Rates, [N]
        Class by class, then all classes together; scores descend within each.
    bounds : ndarray of intp, [K + 2]
        Where each class starts in ``rates``, where all classes together start, and the end.
    """

    classes: list[str]
    rates: Rates
    bounds: NDArray[np.intp]

    def of_class(self, k: int) -> Rates:
        """Return the curve of class ``k``."""
        return self.rates.take(slice(self.bounds[k], self.bounds[k + 1]))

    @property
    def total(self) -> Rates:
        """Return the curve of all classes together."""
        return self.of_class(len(self.classes))

    def frame_of(self, classes: NDArray[np.object_], rows: slice) -> pd.DataFrame:
        """Build the table of some rows of the rates, with the class of each; whole counts are integers."""
        import pandas as pd

        rates = self.rates.take(rows)
        frame = pd.DataFrame({"class": classes, **rates._asdict()})
        return frame.astype(dict.fromkeys(_whole(rates), "int64"))


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class OperatingPoints(ClassResult):
    """One confidence threshold per class, and one for all classes together.

    Attributes
    ----------
    classes : list of str, [K]
    per_class : Rates, [K]
        NaN where no threshold qualifies.
    total : Rates, scalars
    """

    per_class: Rates
    total: Rates

    def frame_of(self, classes: Sequence[str], values: Rates) -> pd.DataFrame:
        """Build the table of the values; undefined counts are missing."""
        return super().frame_of(classes, values).astype(dict.fromkeys(_whole(values), "Int64"))


@once_per_evaluation
def confidence_curve(
    evaluation: Evaluation, *, iou_threshold: float | None = None, area: str = "all", beta: float = 1.0
) -> ConfidenceCurves:
    """Compute counts and rates at every distinct score.

    Parameters
    ----------
    evaluation, iou_threshold, area, beta
        As in :func:`operating_points`.

    Returns
    -------
    ConfidenceCurves

    Raises
    ------
    InputError
        When the protocol does not have the threshold or the range, or beta is not positive.
    """
    counts = evaluation._score_counts(
        threshold_index(evaluation, iou_threshold), area_index(evaluation, area)
    )
    return ConfidenceCurves(evaluation.labels, _rates(counts, beta), counts.bounds)


STEPS = 64
"""Maximum number of points of an outlined curve per doubling of its counts."""


@once_per_evaluation
def outlined_curves(evaluation: Evaluation) -> ConfidenceCurves:
    """Return curves with fewer points, for plots, at the protocol's first threshold and area range.

    Between neighboring points the number of detections grows by at most 1/64. The best F-score and both ends
    are kept.
    """
    counts = evaluation._score_counts(keep=_outline)
    kept = [np.array(_outline(counts.curve(k)), dtype=np.intp) for k in range(len(counts.positive))]
    at = np.concatenate([start + of_class for start, of_class in zip(counts.bounds, kept, strict=False)])
    bounds, rates = np.cumsum([0, *map(len, kept)]).astype(np.intp), _rates(counts, 1.0).take(at)
    return ConfidenceCurves(evaluation.labels, rates, bounds)


def _outline(counts: ScoreCounts) -> list[int]:
    """Keep the points of a curve, or of a chunk of it, at which the counts reach the next step."""
    fraction, exponent = np.frexp(counts.true + counts.false)
    step = STEPS * exponent + np.floor(2 * STEPS * fraction)
    keep = np.diff(step, prepend=np.nan) != 0
    if len(keep):
        keep[-1] = keep[np.argmax(np.nan_to_num(counts.f_score()))] = True
    kept: list[int] = np.flatnonzero(keep).tolist()
    return kept


@once_per_evaluation
def operating_points(
    evaluation: Evaluation,
    *,
    iou_threshold: float | None = None,
    area: str = "all",
    at_score: float | None = None,
    at_precision: float | None = None,
    at_recall: float | None = None,
    beta: float = 1.0,
) -> OperatingPoints:
    """Choose a confidence threshold per class: the best F-score, or a given score, precision or recall.

    Parameters
    ----------
    evaluation : Evaluation
    iou_threshold : float, optional
        One of the protocol's IoU thresholds (default: the first).
    area : str, default "all"
        One of the protocol's area ranges.
    at_score : float, optional
        Use this threshold for every class.
    at_precision : float, optional
        The lowest threshold that has at least this precision, in (0, 1].
    at_recall : float, optional
        The highest threshold that has at least this recall, in (0, 1].
    beta : float, default 1
        Weight of recall against precision in the F-score.

    Returns
    -------
    OperatingPoints
        NaN where no threshold qualifies. If F-scores are equal, the highest threshold wins.

    Raises
    ------
    InputError
        When more than one of ``at_score``, ``at_precision`` and ``at_recall`` is given, or a value is
        out of range.

    Examples
    --------
    >>> from boxscore import Detections, GroundTruth, evaluate
    >>> truth = GroundTruth.from_arrays([1, 1], ["cat", "cat"], [[0, 0, 9, 9], [20, 20, 29, 29]])
    >>> detections = Detections.from_arrays(
    ...     [1, 1], ["cat", "cat"], [[0, 0, 9, 9], [50, 50, 59, 59]], [0.9, 0.4]
    ... )
    >>> best = operating_points(evaluate(truth, detections)).total
    >>> float(best.score), float(best.precision), float(best.recall)
    (0.9, 1.0, 0.5)
    """
    # Accept one way to choose the point, and check its range.
    given = {"at_score": at_score, "at_precision": at_precision, "at_recall": at_recall}
    asked = {name: value for name, value in given.items() if value is not None}
    if len(asked) > 1:
        raise InputError("an operating point", "be chosen in one way", got=" and ".join(asked))
    for name, value in asked.items():
        if name == "at_score":
            checks.number_between(value, -np.inf, np.inf, name=name)
        else:
            checks.number_between(value, 0, 1, name=name, open_low=True)
    # Count at every distinct score. With partitions, only the candidate points are returned.
    keep = functools.partial(
        _keep_point, beta=beta, at_score=at_score, at_precision=at_precision, at_recall=at_recall
    )
    counts = evaluation._score_counts(
        threshold_index(evaluation, iou_threshold), area_index(evaluation, area), keep
    )
    rates = _rates(counts, beta)
    # Choose the point of each class and, last, of all classes together. Without a point, rates are NaN, or 0
    # if no detection reaches the score.
    points = []
    for k, count in enumerate(counts.positive.tolist()):
        curve = rates.take(counts.part(k))
        position = _position(curve, count, at_score=at_score, at_precision=at_precision, at_recall=at_recall)
        if position != NO_POINT:
            point = curve.take(position)
        # No detection reaches the score.
        elif at_score is not None:
            rate = 0.0 if count else np.nan
            point = Rates(*map(np.float64, (np.nan, 0, 0, count, np.nan, rate, rate)))
        else:
            point = Rates(*[np.float64(np.nan)] * len(Rates._fields))
        points.append(point if at_score is None else point._replace(score=np.float64(at_score)))
    found = Rates(*(np.array(column) for column in zip(*points, strict=True)))
    return OperatingPoints(evaluation.labels, found.take(slice(-1)), found.take(-1))


def _keep_point(counts: ScoreCounts, *, beta: float, **asked: float | None) -> list[int]:
    """Keep the requested point of a curve, or of a chunk of it."""
    position = _position(_rates(counts, beta), int(counts.positive[0]), **asked)
    return [] if position == NO_POINT else [position]


def _rates(counts: ScoreCounts, beta: float) -> Rates:
    checks.number_between(beta, 0, 1e6, name="beta", open_low=True)
    positive = np.repeat(counts.positive, np.diff(counts.bounds))
    true, false, missed = counts.true, counts.false, positive - counts.true
    with np.errstate(invalid="ignore"):
        return Rates(
            counts.score,
            true.astype(np.float64),
            false.astype(np.float64),
            missed.astype(np.float64),
            counts.precision,
            true / positive,
            counts.f_score(beta),
        )


def _position(
    curve: Rates,
    positive: int,
    *,
    at_score: float | None,
    at_precision: float | None,
    at_recall: float | None,
) -> int:
    """Return the position of the requested point on the curve, or NO_POINT."""
    if at_score is not None:
        return int(np.searchsorted(-curve.score, -at_score, side="right")) - 1
    if at_precision is not None:
        good = np.flatnonzero(curve.precision >= at_precision)
        return int(good[-1]) if len(good) else NO_POINT
    if at_recall is not None:
        good = np.flatnonzero(curve.recall >= at_recall)
        return int(good[0]) if len(good) else NO_POINT
    if not len(curve.f_score) or not positive:
        return NO_POINT
    return int(np.argmax(curve.f_score))


def _whole(rates: Rates) -> list[str]:
    """Name the counts that are whole numbers or missing: all, unless groups have fractional weights."""
    return [name for name in COUNTS if not np.any(np.modf(getattr(rates, name))[0] > 0)]
