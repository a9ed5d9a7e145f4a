"""Ties: how much the order of equally scored detections could change a metric.

Goal
----
Rounded scores leave thousands of detections tied. Their order then affects AP, and nothing in the data says
which order is right. The lowest and the highest AP show by how much.

Conventions
-----------
- ``lowest`` and ``highest`` put the true positives of a class last, or first, among its equally scored
  detections: exact bounds over every order between images, matching as it is.
- Inside one image, the order also decides which detection gets an object. ``contested`` counts the detections
  for which it may: equally scored ones of one image and class with a candidate ground truth in common. If it
  is 0 the bounds hold for every order; each contested detection can shift them by one true positive.
- AR and the number of true positives do not depend on the order between images.
- Without scores all detections are tied, and the value is the expectation over all orders.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore.diagnostics._result import ClassResult, Counts, Floats, once_per_evaluation
from boxscore.diagnostics.bootstrap import chosen_rows
from boxscore.errors import InputError
from boxscore.evaluation import Evaluation
from boxscore.matching.greedy import MOST_HELD
from boxscore.protocols.rules.ties import TieOrder
from boxscore.scoring.counts import tie_starts
from boxscore.scoring.summary import summary_total, summary_values


class Bounds(NamedTuple):
    """Bounds of M APs; arrays [..., M]."""

    value: Floats
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
    """

    per_class: Bounds
    total: Bounds
    metrics: list[str]

    def second_axis(self) -> dict[str, list[str]]:
        """Name the metrics."""
        return {"metric": self.metrics}


@once_per_evaluation
def tie_bounds(evaluation: Evaluation, *, metrics: Sequence[str] | None = None) -> TieBounds:
    """Bound every AP over the orders of equally scored detections.

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
    evaluation.require_overlaps("bounds over ties")
    ordered = evaluation.protocol.matching.scores == "given"
    kind = "AP" if ordered else "AP_expected"
    every = [row.key for row in evaluation.protocol.rows]
    rows = [row for row in chosen_rows(evaluation, metrics or every) if row.metric == kind]
    results = [(evaluation, kind), (evaluation, "AP_lowest"), (evaluation, "AP_highest")]
    if ordered:
        results[1:] = [
            (_reordered(evaluation, order), kind) for order in ("true_positives_last", "true_positives_first")
        ]
    M, K = len(rows), len(evaluation.labels)
    per_class, total = np.empty((3, K, M)), np.empty((3, M))
    for r, (result, metric) in enumerate(results):
        for m, row in enumerate(dataclasses.replace(row, metric=metric) for row in rows):
            per_class[r, :, m] = summary_values(row, result.protocol, result.curves_of)
            total[r, m] = summary_total(row, result.protocol, result.curves_of)
    category = evaluation.matched.category
    counts = [
        np.bincount(category[positions], minlength=K)
        for positions in (_tied(evaluation), contested_detections(evaluation))
    ]
    return TieBounds(
        evaluation.labels,
        Bounds(*per_class, *(np.repeat(count[:, None], M, axis=1) for count in counts)),
        Bounds(*total, *(np.repeat(count.sum(), M) for count in counts)),
        [row.key for row in rows],
    )


def decided_by_ties(first: Evaluation, other: Evaluation, metric: str) -> bool:
    """Whether some order of ties in both results changes the sign of their difference in an AP."""
    bounds = [tie_bounds(result, metrics=[metric]).total for result in (first, other)]
    lower, upper = sorted(bounds, key=lambda bound: float(bound.value[0]))
    return bool(upper.lowest[0] <= lower.highest[0])


def _reordered(evaluation: Evaluation, order: TieOrder) -> Evaluation:
    rules = dataclasses.replace(evaluation.protocol.ap, tie_order=order)
    return dataclasses.replace(evaluation, protocol=dataclasses.replace(evaluation.protocol, ap=rules))


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
    starts = tie_starts(matched.category, matched.score)
    tie = np.searchsorted(starts, matched.pair_detection, side="right") - 1
    key = tie * max(len(matched.truth_image), 1) + matched.pair_truth  # a ground truth lies in one image
    _, which, counts = np.unique(key, return_inverse=True, return_counts=True)
    return np.unique(matched.pair_detection[counts[which] > 1])
