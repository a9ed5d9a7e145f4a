"""What became of every detection, at one IoU threshold and area range: the ground of the diagnostics.

Conventions
-----------
Arrays run over the detections in class order, as in ``Matches``. A detection that is
ignored (its ground truth is, or it matches nothing and lies outside the area range) is not *counted*.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore.diagnostics._result import EVERY_CLASS
from boxscore.errors import InputError
from boxscore.evaluation import Evaluation

__all__ = ["EVERY_CLASS", "Outcomes", "area_index", "ignored_truths", "outcomes", "threshold_index"]


class Outcomes(NamedTuple):
    """One row a detection that the largest cap lets through, in class order."""

    counted: NDArray[np.bool_]  # [D] a true or a false positive
    true: NDArray[np.bool_]  # [D]
    iou: NDArray[np.float64]  # [D] with the ground truth it hit; NaN unless a true positive
    truth: NDArray[np.intp]  # [D] that ground truth's place in Matches; meaningless unless a true positive
    positive: NDArray[np.int64]  # [K] counted ground truths
    threshold: float


def threshold_index(evaluation: Evaluation, iou: float | None) -> int:
    """Return the place of an IoU threshold on the axis T; None is the first.

    Raises
    ------
    InputError
        When the protocol does not evaluate this threshold.
    """
    thresholds = evaluation.protocol.matching.iou_thresholds
    if iou is None:
        return 0
    near = np.flatnonzero(np.isclose(thresholds, iou, rtol=0, atol=1e-9))
    if not len(near):
        known = ", ".join(f"{value:g}" for value in thresholds)
        raise InputError("iou", f"be a threshold of the protocol ({known})", got=repr(iou))
    return int(near[0])


def area_index(evaluation: Evaluation, area: str) -> int:
    """Return the place of an area range on the axis A.

    Raises
    ------
    InputError
        When the protocol has no range of this name.
    """
    names = list(evaluation.protocol.ignore.area_ranges)
    return names.index(checks.one_of(area, names, name="area"))


def outcomes(evaluation: Evaluation, *, iou: float | None = None, area: str = "all") -> Outcomes:
    """Read what became of every detection.

    Parameters
    ----------
    evaluation : Evaluation
    iou : float, optional
        A threshold of the protocol; the first when not given.
    area : str, default "all"
        The name of an area range of the protocol.

    Returns
    -------
    Outcomes

    Raises
    ------
    InputError
        When the protocol does not have the threshold or the range.
    """
    t, a = threshold_index(evaluation, iou), area_index(evaluation, area)
    matched = evaluation.matched
    made = matched.detection_outcomes(t, a)
    overlap = np.where(made.true, made.iou, np.nan)
    return Outcomes(
        made.counted,
        made.true,
        overlap,
        made.truth,
        matched.positives(a),
        evaluation.protocol.matching.iou_thresholds[t],
    )


def ignored_truths(evaluation: Evaluation) -> NDArray[np.bool_]:
    """Ground truths that the protocol does not count, whatever their area, [G]."""
    return evaluation.matcher.ignoring.ignored
