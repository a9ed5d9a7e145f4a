"""Ties: how much the order of equally scored detections could change a metric.

Goal
----
Rounded scores leave thousands of detections tied. Their order then affects AP, and nothing in the data says
which order is right. The lowest and the highest AP show by how much, and the expectation over all orders is
what no order decides.

Conventions
-----------
- ``lowest`` and ``highest`` put the true positives of a class last, or first, among its equally scored
  detections: exact bounds over every order between images, matching as it is.
- Inside one image, the order also decides which detection gets an object. ``contested`` counts the detections
  for which it may: equally scored ones of one image and class with a candidate ground truth in common. If it
  is 0 the bounds hold for every order; each contested detection can shift them by one true positive.
- ``expected`` is the mean over every order between images, each as likely (:mod:`boxscore.scoring.tied`):
  exact, or estimated with a standard error in ``note``.
- AR and the number of true positives do not depend on the order between images.
- Without scores all detections are tied, and the value is the expectation over all orders.
- A protocol whose AP is no mean of precision at true detections, or whose ground truths have weights, has
  bounds and no expectation: NaN.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import FloatArray
from boxscore._utils.text import counted
from boxscore.diagnostics._result import ClassResult, Counts, Floats, once_per_evaluation
from boxscore.diagnostics.bootstrap import chosen_rows
from boxscore.errors import InputError
from boxscore.evaluation import Evaluation
from boxscore.matching.greedy import MOST_HELD
from boxscore.protocols.summary import SummaryRow
from boxscore.protocols.tables.ap import TieOrder
from boxscore.scoring.counts import tie_starts
from boxscore.scoring.curves import Curves
from boxscore.scoring.orderless import standard_error_of_mean
from boxscore.scoring.summary import summary_total, summary_values, with_values
from boxscore.scoring.tied import NoExpectationError, TiedExpectation, expected_over_ties


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
    """Detections that share their class's score with another; the same for every AP."""
    contested: Counts
    """Tied detections of one image that have a candidate ground truth in common."""


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class TieBounds(ClassResult):
    """The lowest and the highest AP that an order of equally scored detections can give.

    Attributes
    ----------
    classes : list of str, [K]
    per_class : Bounds, [K, M]
    total : Bounds, [M]
    metrics : list of str, [M]
    note : str
        How far expectations are estimated; empty where they are exact.
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
        Names of summary metrics that are an AP; by default all of them.

    Returns
    -------
    TieBounds

    Raises
    ------
    InputError
        When a metric is unknown.
    """
    if not evaluation.has_partitions:
        evaluation.require_overlaps("bounds over ties")
    # Value, lowest and highest come from curves under other orders of ties: nothing is matched again.
    ends = ends_of_ties(evaluation, metrics)
    rows, K, M = ends.rows, len(evaluation.labels), len(ends.rows)
    per_class, total = np.empty((4, K, M)), np.empty((4, M))
    others = [0, 2, 3]
    per_class[others], total[others] = ends.per_class, ends.total
    errors = [evaluation.expected_error]
    # The expectation takes its own computation, metric by metric; without scores it is the value.
    if _ordered(evaluation):
        expected = [_expected(evaluation, row) for row in rows]
        for m, (of_classes, of_all, error) in enumerate(expected):
            per_class[1, :, m], total[1, m] = of_classes, of_all
            errors.append(error)
    else:
        per_class[1], total[1] = per_class[0], total[0]
    # Count the tied detections, and those whose ties can change a match.
    counts = [_counts_of_tied(evaluation), counts_of_contested(evaluation)]
    return TieBounds(
        evaluation.labels,
        Bounds(*per_class, *(np.repeat(count[:, None], M, axis=1) for count in counts)),
        Bounds(*total, *(np.repeat(count.sum(), M) for count in counts)),
        [row.key for row in rows],
        _note(max(errors), evaluation.once("too large for expectations", lambda: 0)),
    )


class Ends(NamedTuple):
    """The value, the lowest and the highest of some APs."""

    rows: list[SummaryRow]
    per_class: FloatArray
    """[3, K, M]"""
    total: FloatArray
    """[3, M]"""


def _ordered(evaluation: Evaluation) -> bool:
    """Whether detections have an order, by scores."""
    return evaluation.protocol.matching.scores != "none"


def ends_of_ties(evaluation: Evaluation, metrics: Sequence[str] | None = None) -> Ends:
    """Compute what :func:`tie_bounds` has, but the expectation, which takes longer; once."""
    if not evaluation.has_partitions and not evaluation.has_parts:
        evaluation.require_overlaps("bounds over ties")
    key = ("ends of ties", None if metrics is None else tuple(metrics))
    return evaluation.once(key, lambda: _ends(evaluation, metrics))


def _ends(evaluation: Evaluation, metrics: Sequence[str] | None) -> Ends:
    kind = "AP" if _ordered(evaluation) else "AP_expected"
    every = [row.key for row in evaluation.protocol.rows]
    rows = [row for row in chosen_rows(evaluation, metrics or every) if row.metric == kind]
    results = [(evaluation, kind), (evaluation, "AP_lowest"), (evaluation, "AP_highest")]
    if _ordered(evaluation):
        results[1:] = [
            (_reordered(evaluation, order), kind) for order in ("true_positives_last", "true_positives_first")
        ]
    per_class, total = np.empty((3, len(evaluation.labels), len(rows))), np.empty((3, len(rows)))
    for r, (result, metric) in enumerate(results):
        for m, row in enumerate(row.replaced(metric=metric) for row in rows):
            per_class[r, :, m] = summary_values(row, result.protocol, result.curves_of)
            total[r, m] = summary_total(row, result.protocol, result.curves_of)
    return Ends(rows, per_class, total)


def _expected(evaluation: Evaluation, row: SummaryRow) -> tuple[FloatArray, float, float]:
    """Return the expectation of each class, [K], and of all, and the standard error of that."""
    protocol = evaluation.protocol
    # Replace the values of each set of curves by their expectation, once per curves, and let the summary take
    # its usual mean.
    errors: list[FloatArray] = []

    def curves_of(area: int, cap: int, pooled: str | None = None, /) -> Curves:
        curves = evaluation.curves_of(area, cap, pooled)
        values, error = evaluation.once(
            ("expected over ties", area, cap, pooled),
            lambda: _expectation(evaluation, curves, area, cap, pooled),
        )
        errors.append(error)
        return with_values(curves, protocol, row.metric, values)

    # If AP is not a mean of precision, there is no expectation.
    try:
        of_classes = summary_values(row, protocol, curves_of)
        total = summary_total(row, protocol, curves_of)
    except NoExpectationError:
        return np.full(len(evaluation.labels), np.nan), float("nan"), 0.0
    error = errors[-1]
    if row.iou is not None:
        error = error[[protocol.matching.iou_thresholds.index(row.iou)]]
    return of_classes, total, standard_error_of_mean(error)


def _expectation(
    evaluation: Evaluation, curves: Curves, area: int, cap: int, pooled: str | None
) -> TiedExpectation:
    if not evaluation.has_partitions:
        return expected_over_ties(curves)
    from boxscore.diagnostics.ties_in_parts import expected_in_parts

    expected, too_large = expected_in_parts(evaluation, (area, cap), pooled)
    evaluation.once("too large for expectations", lambda: too_large)
    return expected


def _note(error: float, too_large: int) -> str:
    """Say how far expectations are estimated, and of how many classes there are none."""
    if too_large:
        what = f"{counted(too_large, 'class')} with more detections than one process takes"
        return f"expected: left out of {what}, and of means over classes"
    if not error > 0:
        return ""
    return f"expected: the mean over all orders, estimated, with a standard error of at most {error:.1g}"


def knows_ties(evaluation: Evaluation) -> bool:
    """Whether bounds over ties can be computed: from overlaps, or from parts that are still there."""
    return evaluation.has_parts or evaluation.holds_overlaps


def decided_by_ties(first: Evaluation, other: Evaluation, metric: str) -> bool:
    """Whether some order of ties in both results changes the sign of their difference in an AP."""
    ends = [ends_of_ties(result, [metric]).total[:, 0].tolist() for result in (first, other)]
    (_, _, highest), (_, lowest, _) = sorted(ends, key=lambda end: float(end[0]))
    return bool(lowest <= highest)


def _reordered(evaluation: Evaluation, order: TieOrder) -> Evaluation:
    if evaluation.has_partitions or evaluation.has_parts:
        from boxscore.diagnostics.ties_in_parts import with_tie_order

        return evaluation.once(("tie order", order), lambda: with_tie_order(evaluation, order))
    rules = evaluation.protocol.ap.replaced(tie_order=order)
    return dataclasses.replace(evaluation, protocol=evaluation.protocol.replaced(ap=rules))


def _counts_of_tied(evaluation: Evaluation) -> NDArray[np.int64]:
    """Count the detections of each class that share their score with another, [K]."""
    if evaluation.has_partitions:
        from boxscore.diagnostics.ties_in_parts import tied_in_parts

        return tied_in_parts(evaluation)
    category = evaluation.matched.category
    return np.bincount(category[_tied(evaluation)], minlength=len(evaluation.labels))


def counts_of_contested(evaluation: Evaluation) -> NDArray[np.int64]:
    """Count the contested detections of each class, [K]: each is of one image."""
    parts = evaluation.of_each_partition(counts_of_contested, {})
    if parts is not None:
        counts: NDArray[np.int64] = np.sum(parts, axis=0, dtype=np.int64)
        return counts
    category = evaluation.matched.category
    return np.bincount(category[contested_detections(evaluation)], minlength=len(evaluation.labels))


def _tied(evaluation: Evaluation) -> NDArray[np.intp]:
    """Positions, in class order, of the detections that share their class and score with another."""
    matched = evaluation.matched
    starts = tie_starts(matched.category, matched.score)
    sizes = np.diff(np.append(starts, len(matched)))
    return np.flatnonzero(np.repeat(sizes, sizes) > 1)


def contested_detections(evaluation: Evaluation) -> NDArray[np.intp]:
    """Positions, in class order, of tied detections that have an overlapping ground truth in common.

    Only pairs that the protocol's candidate rule leaves are known: all that reach the lowest threshold, or
    the best of each detection.
    """
    matched = evaluation.matched
    if not matched.every_pair:
        raise InputError(
            "overlapping pairs",
            f"be at most {MOST_HELD:,} to tell which equal scores matter",
            got="more",
            cause="evaluate fewer detections per image: max_detections in the protocol, or suppression",
        )
    # Number the tie of each pair; a key of tie and ground truth that occurs twice is contested. One sort
    # finds them all.
    starts = tie_starts(matched.category, matched.score)
    tie = np.searchsorted(starts, matched.pair_detection, side="right") - 1
    key = tie * max(len(matched.truth_image), 1) + matched.pair_truth  # a ground truth lies in one image
    _, which, counts = np.unique(key, return_inverse=True, return_counts=True)
    return np.unique(matched.pair_detection[counts[which] > 1])
