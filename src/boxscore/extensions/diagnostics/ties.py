"""Bound the effect of the order of equally scored detections on AP.

Goal
----
Rounded scores leave thousands of detections tied. AP then depends on their order, and the data do not say
which order is right. The lowest and the highest AP bound the effect, and the expectation over all orders does
not depend on any order.

Conventions
-----------
- ``lowest`` and ``highest`` put the true positives of a class last, or first, among its equally scored
  detections: exact bounds over every order between images, with fixed matches.
- Within one image, the order also decides which detection is matched to an object. ``contested`` counts the
  detections that this may affect: equally scored detections of one image and class that share a candidate
  ground truth. If it is 0, the bounds hold for every order; otherwise each contested detection can shift them
  by one true positive.
- ``expected`` is the mean over all orders between images, which are equally likely
  (:mod:`boxscore.extensions.scoreless.tied`). It is exact, or estimated with a standard error in ``note``.
- AR and the number of true positives do not depend on the order between images.
- Without scores, all detections are tied, and the value is the expectation over all orders.
- A protocol whose AP is not a mean of precision at true positives, or whose ground truths have weights, has
  bounds but no expectation (NaN).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import FloatArray
from boxscore._utils.text import counted
from boxscore.errors import InputError
from boxscore.evaluation import Evaluation
from boxscore.extensions.diagnostics._result import ClassResult, Counts, Floats, once_per_evaluation
from boxscore.extensions.diagnostics.bootstrap import chosen_rows
from boxscore.extensions.large.questions import Place, source_of
from boxscore.extensions.scoreless.orderless import standard_error_of_mean
from boxscore.extensions.scoreless.tied import NoExpectationError, expected_over_ties
from boxscore.matching.greedy import MOST_HELD
from boxscore.matching.matches import Matches
from boxscore.protocols.summary import SummaryRow
from boxscore.protocols.tables.ap import TieOrder
from boxscore.scoring.blocks import HeldValues
from boxscore.scoring.counts import tie_starts
from boxscore.scoring.curves import Curves
from boxscore.scoring.summary import summary_total, summary_values, with_values


class Bounds(NamedTuple):
    """Bounds of M APs; arrays [..., M]."""

    value: Floats
    expected: Floats
    """Mean over all orders between images."""
    lowest: Floats
    """True positives last among equal scores."""
    highest: Floats
    """True positives first."""
    tied: Counts
    """Detections that share their score with another one of their class; the same for every AP."""
    contested: Counts
    """Tied detections of one image that share a candidate ground truth."""


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class TieBounds(ClassResult):
    """The lowest and the highest AP over the orders of equally scored detections.

    Attributes
    ----------
    classes : list of str, [K]
    per_class : Bounds, [K, M]
    total : Bounds, [M]
    metrics : list of str, [M]
    note : str
        Standard error of estimated expectations; empty if they are exact.
    """

    per_class: Bounds
    total: Bounds
    metrics: list[str]
    note: str

    def second_axis(self) -> dict[str, list[str]]:
        """Name the metrics."""
        return {"metric": self.metrics}


@once_per_evaluation
def tie_bounds(evaluation: Evaluation, *, metrics: Sequence[str] | None = None) -> TieBounds:
    """Bound every AP over the orders of equally scored detections, and compute its expectation.

    Parameters
    ----------
    evaluation : Evaluation
    metrics : sequence of str, optional
        Names of AP metrics of the summary; by default all of them.

    Returns
    -------
    TieBounds

    Raises
    ------
    InputError
        When a metric is unknown.
    """
    source_of(evaluation).require("bounds over ties")
    # Compute value, lowest and highest from curves under other orders of ties, with the same matches.
    ends = ends_of_ties(evaluation, metrics)
    rows, K, M = ends.rows, len(evaluation.labels), len(ends.rows)
    per_class, total = np.empty((4, K, M)), np.empty((4, M))
    others = [0, 2, 3]
    per_class[others], total[others] = ends.per_class, ends.total
    errors, too_large = [evaluation._expected_error], 0
    # The expectation is computed separately, metric by metric; without scores it is the value.
    if _ordered(evaluation):
        for m, row in enumerate(rows):
            per_class[1, :, m], total[1, m], error, large = _expected(evaluation, row)
            errors.append(error)
            too_large = too_large or large
    else:
        per_class[1], total[1] = per_class[0], total[0]
    # Count the tied detections, and those whose order can change a match.
    counts = [_counts_of_tied(evaluation), counts_of_contested(evaluation)]
    return TieBounds(
        evaluation.labels,
        Bounds(*per_class, *(np.repeat(count[:, None], M, axis=1) for count in counts)),
        Bounds(*total, *(np.repeat(count.sum(), M) for count in counts)),
        [row.key for row in rows],
        _note(max(errors), too_large),
    )


class Ends(NamedTuple):
    """The value, the lowest and the highest of some APs."""

    rows: list[SummaryRow]
    per_class: FloatArray
    """[3, K, M]"""
    total: FloatArray
    """[3, M]"""


def _ordered(evaluation: Evaluation) -> bool:
    """Return whether detections are ordered by scores."""
    return evaluation.protocol.matching.scores != "none"


def ends_of_ties(evaluation: Evaluation, metrics: Sequence[str] | None = None) -> Ends:
    """Compute the bounds of :func:`tie_bounds` without the slower expectation, once per evaluation."""
    if not knows_ties(evaluation):
        source_of(evaluation).require("bounds over ties")
    key = ("ends of ties", None if metrics is None else tuple(metrics))
    return evaluation._once(key, lambda: _ends(evaluation, metrics))


def _ends(evaluation: Evaluation, metrics: Sequence[str] | None) -> Ends:
    kind = "AP" if _ordered(evaluation) else "AP_expected"
    every = [row.key for row in evaluation.protocol.rows]
    rows = [row for row in chosen_rows(evaluation, metrics or every) if row.metric == kind]
    results = [(evaluation, kind), (evaluation, "AP_lowest"), (evaluation, "AP_highest")]
    if _ordered(evaluation):
        results[1:] = [
            (_reorder(evaluation, order), kind) for order in ("true_positives_last", "true_positives_first")
        ]
    per_class, total = np.empty((3, len(evaluation.labels), len(rows))), np.empty((3, len(rows)))
    for r, (result, metric) in enumerate(results):
        for m, row in enumerate(row.replaced(metric=metric) for row in rows):
            per_class[r, :, m] = summary_values(row, result.protocol, result.curves_of)
            total[r, m] = summary_total(row, result.protocol, result.curves_of)
    return Ends(rows, per_class, total)


def _expected(evaluation: Evaluation, row: SummaryRow) -> tuple[FloatArray, float, float, int]:
    """Return the expectation per class [K] and in total, its standard error, and the number without one."""
    protocol = evaluation.protocol
    known: list[_Expectation] = []
    # Replace the values of each set of curves by their expectation, once per curves, and let the summary
    # average them.

    def curves_of(area: int, cap: int, pooled: str | None = None, /) -> Curves:
        curves = evaluation.curves_of(area, cap, pooled)
        known.append(
            evaluation._once(
                ("expected over ties", area, cap, pooled), lambda: _expectation(evaluation, area, cap, pooled)
            )
        )
        return with_values(curves, protocol, row.metric, known[-1].values)

    # If AP is not a mean of precision, the expectation is undefined.
    try:
        of_classes = summary_values(row, protocol, curves_of)
        total = summary_total(row, protocol, curves_of)
    except NoExpectationError:
        return np.full(len(evaluation.labels), np.nan), float("nan"), 0.0, 0
    error = known[-1].error
    if row.iou is not None:
        error = error[[protocol.matching.iou_thresholds.index(row.iou)]]
    return of_classes, total, standard_error_of_mean(error), known[0].too_large


class _Expectation(NamedTuple):
    """Expectations of the curves of all classes."""

    values: HeldValues
    error: FloatArray
    too_large: int
    """Number of classes that are too large for memory, whose expectation is NaN."""


def _expectation(evaluation: Evaluation, area: int, cap: int, pooled: str | None) -> _Expectation:
    found = source_of(evaluation).over_curves("ties", _expected_of, area, cap, pooled)
    thresholds = len(evaluation.protocol.matching.iou_thresholds)
    shape = next((values.shape[:-1] for values, _ in filter(None, found)), (thresholds,))
    unknown = np.full((*shape, 1), np.nan), np.zeros((thresholds, 1))
    values, errors = (
        np.concatenate(side, axis=-1) for side in zip(*(one or unknown for one in found), strict=True)
    )
    return _Expectation(HeldValues(values), errors, found.count(None))


def _expected_of(curves: Curves, classes: int) -> tuple[FloatArray, FloatArray]:
    """Return the expectations of some classes of ``classes``, and their standard errors."""
    values, error = expected_over_ties(curves, classes)
    return values.values, error


def _note(error: float, too_large: int) -> str:
    """Describe the error of estimated expectations, and count the classes without one."""
    if too_large:
        what = f"{counted(too_large, 'class')} with more detections than fit in one process"
        return f"expected: excludes {what}, also in means over classes"
    if not error > 0:
        return ""
    return f"expected: estimated mean over all orders, with a standard error of at most {error:.1g}"


def knows_ties(evaluation: Evaluation) -> bool:
    """Return whether bounds over ties can be computed: they need matches that can be read class by class."""
    return source_of(evaluation).keeps_matches


def decided_by_ties(first: Evaluation, other: Evaluation, metric: str) -> bool:
    """Return whether some order of ties in both results changes the sign of their difference in AP."""
    ends = [ends_of_ties(result, [metric]).total[:, 0].tolist() for result in (first, other)]
    (_, _, highest), (_, lowest, _) = sorted(ends, key=lambda end: float(end[0]))
    return bool(lowest <= highest)


def _reorder(evaluation: Evaluation, order: TieOrder) -> Evaluation:
    reordered: Evaluation = source_of(evaluation).under(evaluation.protocol.ap.replaced(tie_order=order))
    return reordered


def _counts_of_tied(evaluation: Evaluation) -> NDArray[np.int64]:
    """Count the detections of each class that share their score with another, [K]."""
    counts = np.zeros(len(evaluation.labels), dtype=np.int64)
    for (low, high), some in source_of(evaluation).over_classes("ties", _tied):
        counts[low:high] += some
    return counts


def _tied(matched: Matches) -> NDArray[np.int64]:
    """Count ties in some classes, or in a chunk of scores; a chunk has all detections of a score."""
    starts = tie_starts(matched.category, matched.score)
    sizes = np.diff(np.append(starts, len(matched)))
    tied = np.flatnonzero(np.repeat(sizes, sizes) > 1)
    return np.bincount(matched.category[tied], minlength=len(matched.categories))


def counts_of_contested(evaluation: Evaluation) -> NDArray[np.int64]:
    """Count the contested detections of each class, [K]; each set of them is in one image."""
    counts: NDArray[np.int64] = np.sum(
        source_of(evaluation).answers("contested detections", _contested, {}), axis=0, dtype=np.int64
    )
    return counts


def _contested(evaluation: Evaluation, place: Place) -> NDArray[np.int64]:
    category = evaluation.matched.category
    return np.bincount(category[contested_detections(evaluation)], minlength=len(evaluation.labels))


def contested_detections(evaluation: Evaluation) -> NDArray[np.intp]:
    """Return the class-order positions of tied detections that share an overlapping ground truth.

    Only pairs that the protocol's candidate rule keeps are known: all that reach the lowest threshold, or the
    best one of each detection.
    """
    matched = evaluation.matched
    if not matched.every_pair:
        raise InputError(
            "overlapping pairs",
            f"be at most {MOST_HELD:,} to find which tied scores matter",
            got="more",
            cause="evaluate fewer detections per image: max_detections in the protocol, or suppression",
        )
    # Number the tie of each pair; a key of tie and ground truth that occurs twice is contested. One sort
    # finds them all.
    starts = tie_starts(matched.category, matched.score)
    tie = np.searchsorted(starts, matched.pair_detection, side="right") - 1
    # A ground truth is in one image, so the key identifies the image.
    key = tie * max(len(matched.truth_image), 1) + matched.pair_truth
    _, which, counts = np.unique(key, return_inverse=True, return_counts=True)
    return np.unique(matched.pair_detection[counts[which] > 1])
