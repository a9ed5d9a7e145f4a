"""Which threshold, area range and ground truths of a protocol a diagnostic is about."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore.diagnostics._result import EVERY_CLASS
from boxscore.errors import InputError
from boxscore.evaluation import Evaluation

__all__ = ["EVERY_CLASS", "area_index", "ignored_truths", "threshold_index"]


def threshold_index(evaluation: Evaluation, iou_threshold: float | None) -> int:
    """Return the position of an IoU threshold on the axis T; None is the first.

    Raises
    ------
    InputError
        When the protocol does not evaluate this threshold.
    """
    thresholds = evaluation.protocol.matching.iou_thresholds
    if iou_threshold is None:
        return 0
    near = np.flatnonzero(np.isclose(thresholds, iou_threshold, rtol=0, atol=1e-9))
    if not len(near):
        known = ", ".join(f"{value:g}" for value in thresholds)
        raise InputError(
            "iou_threshold", f"be a threshold of the protocol ({known})", got=repr(iou_threshold)
        )
    return int(near[0])


def area_index(evaluation: Evaluation, area: str) -> int:
    """Return the position of an area range on the axis A.

    Raises
    ------
    InputError
        When the protocol has no range of this name.
    """
    names = list(evaluation.protocol.ignore.area_ranges)
    return names.index(checks.one_of(area, names, name="area"))


def ignored_truths(evaluation: Evaluation) -> NDArray[np.bool_]:
    """Ground truths that the protocol does not count, whatever their area, [G]."""
    return evaluation.matcher.ignoring.ignored
