"""Ties: how far the order of equally scored detections could move a score.

Goal
----
Detectors round their scores, and thousands of detections end up equal. Their order then decides AP, and
nothing in the data says which order is right. The lowest and the highest AP tell how much.

Conventions
-----------
- ``lowest`` and ``highest`` let the true positives of a class stand last, or first, among its equally scored
  detections: exact bounds over every order between images, matching as it is.
- Inside one image, order also decides who gets a contested object. ``contested`` counts the detections for
  which that may be so: equally scored ones of one image and class that have a ground truth in common. Where
  it is 0 the bounds hold for every order whatever; each contested detection can move them by its own hit.
- The whole-number quantities (AR, the number of hits) do not depend on the order between images.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from boxscore.diagnostics._outcomes import EVERY_CLASS
from boxscore.evaluation import Evaluation
from boxscore.protocols.protocol import TieOrder
from boxscore.scoring.curves import tie_starts

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["contested_detections", "decided_by_ties", "tie_bounds"]


def tie_bounds(
    evaluation: Evaluation, *, metrics: Sequence[str] | None = None, per_class: bool = False
) -> pd.DataFrame:
    """Bound every AP over the orders of equally scored detections.

    Parameters
    ----------
    evaluation : Evaluation
    metrics : sequence of str, optional
        Names of headline numbers that are an AP; all of them when not given.
    per_class : bool, default False
        Add one row a class and metric.

    Returns
    -------
    DataFrame
        ``class, metric, value, lowest, highest, tied, contested``: ``tied`` counts the detections that
        share their class's score with another, ``contested`` is explained above.

    Raises
    ------
    InputError
        When a metric is unknown.
    """
    import pandas as pd

    from boxscore.diagnostics.bootstrap import chosen_rows

    rows = [row for row in chosen_rows(evaluation, metrics) if row.metric == "AP"]
    results = {
        "value": evaluation,
        "lowest": _reordered(evaluation, "true_positives_last"),
        "highest": _reordered(evaluation, "true_positives_first"),
    }
    K, found = len(evaluation.labels), evaluation.matched
    labels = [*evaluation.labels, EVERY_CLASS]
    tied, contested = (
        np.append(counts, counts.sum())
        for counts in (
            np.bincount(found.category[places], minlength=K)
            for places in (_tied(evaluation), contested_detections(evaluation))
        )
    )
    columns = [K, *range(K)] if per_class else [K]
    return pd.DataFrame(
        {
            "class": [labels[k] for k in columns for _ in rows],
            "metric": [row.key for _ in columns for row in rows],
            **{
                name: [_value(result, row.key, k) for k in columns for row in rows]
                for name, result in results.items()
            },
            "tied": [tied[k] for k in columns for _ in rows],
            "contested": [contested[k] for k in columns for _ in rows],
        }
    )


def decided_by_ties(first: Evaluation, other: Evaluation, metric: str) -> bool:
    """Whether some order of ties in both results turns the sign of their difference in an AP."""
    bounds = [tie_bounds(result, metrics=[metric]).iloc[0] for result in (first, other)]
    lower, upper = sorted(bounds, key=lambda bound: float(bound["value"]))
    return bool(upper["lowest"] <= lower["highest"])


def _reordered(evaluation: Evaluation, order: TieOrder) -> Evaluation:
    rules = dataclasses.replace(evaluation.protocol.ap, tie_order=order)
    return dataclasses.replace(evaluation, protocol=dataclasses.replace(evaluation.protocol, ap=rules))


def _value(evaluation: Evaluation, metric: str, category: int) -> float:
    """Headline number of one class, or of all for the number after the last."""
    if category == len(evaluation.labels):
        return evaluation.metrics[metric]
    return float(evaluation.class_values[evaluation.protocol.class_keys[metric]][category])


def _tied(evaluation: Evaluation) -> NDArray[np.intp]:
    """Places, in class order, of the detections that share their class and score with another."""
    found = evaluation.matched
    starts = tie_starts(found)
    sizes = np.diff(np.append(starts, len(found)))
    return np.flatnonzero(np.repeat(sizes, sizes) > 1)


def contested_detections(evaluation: Evaluation) -> NDArray[np.intp]:
    """Places, in class order, of tied detections that have an overlapping ground truth in common.

    Returns
    -------
    ndarray of intp
        Places in the columns of ``evaluation.matched``.

    Notes
    -----
    Only pairs that the protocol's candidate rule kept are known: all that reach the lowest threshold, or
    the best of each detection.
    """
    found = evaluation.matched
    starts = tie_starts(found)
    tie = np.searchsorted(starts, found.pair_detection, side="right") - 1
    key = tie * max(len(found.truth_image), 1) + found.pair_truth  # a ground truth lies in one image
    _, place, counts = np.unique(key, return_inverse=True, return_counts=True)
    return np.unique(found.pair_detection[counts[place] > 1])
