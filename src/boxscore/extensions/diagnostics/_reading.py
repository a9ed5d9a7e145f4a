"""Read an evaluation for diagnostics: at one threshold and area range, or as pairs across classes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore._utils.user_warnings import warn_user
from boxscore.errors import InputError
from boxscore.evaluation import Evaluation


def threshold_index(evaluation: Evaluation, iou_threshold: float | None) -> int:
    """Return the position of an IoU threshold on the axis T; None is the first threshold."""
    thresholds = evaluation.protocol.matching.iou_thresholds
    if iou_threshold is None:
        return 0
    near = np.flatnonzero(np.isclose(thresholds, iou_threshold, rtol=0, atol=1e-9))
    if not len(near):
        known = ", ".join(f"{value:g}" for value in thresholds)
        cause = f"--iou-thresholds {iou_threshold:g} evaluates at that one"
        rule = f"be a threshold of the protocol ({known})"
        raise InputError("iou_threshold", rule, got=repr(iou_threshold), cause=cause)
    return int(near[0])


def area_index(evaluation: Evaluation, area: str) -> int:
    """Return the position of an area range on the axis A."""
    names = list(evaluation.protocol.ignore.area_ranges)
    if area == "all" and "all" not in names:
        return 0
    return names.index(checks.one_of(area, names, name="area"))


def least_score(evaluation: Evaluation, score_threshold: float) -> float:
    """Check a score threshold and return it.

    Without scores no threshold above 0 is allowed, and every detection counts.
    """
    least = float(checks.number_between(score_threshold, -np.inf, np.inf, name="score_threshold"))
    if least > 0 and not evaluation.has_scores:
        rule = "be 0 or less if detections lack scores"
        raise InputError("score_threshold", rule, got=f"{least:g}", cause="every detection counts then")
    return least


def warn_of_subsets(evaluation: Evaluation, what: str) -> None:
    """Warn that a diagnostic covers all objects although the protocol scores subsets of them."""
    if evaluation.protocol.ignore.column_ranges:
        name = evaluation.protocol.name
        message = f"{what} computed over all objects; the subsets of protocol {name} are ignored."
        warn_user(message)


def check_overlaps(iou_threshold: float, background_iou: float) -> None:
    """Reject thresholds outside (0, 1], and a background threshold above the IoU threshold."""
    checks.number_between(iou_threshold, 0, 1, name="iou_threshold", open_low=True)
    checks.number_between(background_iou, 0, 1, name="background_iou", open_low=True)
    if background_iou > iou_threshold:
        raise InputError("background_iou", f"be <= iou_threshold ({iou_threshold:g})", got=background_iou)


def greedy_one_to_one(first: NDArray[np.intp], second: NDArray[np.intp]) -> NDArray[np.intp]:
    """Take pairs in the given order if both sides are still free; return their ascending positions."""
    left, taken = np.arange(len(first)), []
    sides = [(rows, np.empty(int(rows.max(initial=-1)) + 1, dtype=np.intp)) for rows in (first, second)]
    while len(left):
        # A pair that comes first for both of its sides is always taken. Each round takes all such pairs,
        # drops the pairs that they block, and leaves the rest to the next round.
        chosen = np.ones(len(left), dtype=bool)
        for rows, first_pair in sides:
            # Assign in reverse, so that the first pair of each row wins.
            first_pair[rows[left[::-1]]] = left[::-1]
            chosen &= first_pair[rows[left]] == left
        taken.append(left[chosen])
        for rows, first_pair in sides:
            first_pair[rows[taken[-1]]] = -1
        for rows, first_pair in sides:
            left = left[first_pair[rows[left]] >= 0]
    return np.sort(np.concatenate(taken)) if taken else left
