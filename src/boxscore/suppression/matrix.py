"""Suppress by matrix NMS: lower all scores in one step, from the overlaps alone.

Conventions
-----------
For a box j, over all better boxes i of its group: ``s_j *= min_i f(iou_ij) / f(max_k iou_ki)`` with k better
than i. The divisor makes up for boxes i that are themselves covered. ``f(iou) = exp(-sigma * iou**2)``
(Gaussian) or ``1 - iou`` (linear). Better is by the scores given, ties by lowest index.

References
----------
Wang et al., SOLOv2, arXiv 2003.10152, equation 5.
"""

from __future__ import annotations

from typing import get_args

import numpy as np
from numpy.typing import ArrayLike

from boxscore._utils import checks
from boxscore._utils.array_types import FloatArray, IntArray
from boxscore.data.boxes import BoxFormat
from boxscore.suppression._pairs import PairStore
from boxscore.suppression._ranked import BoxOptions, Ranked, prepare
from boxscore.suppression.result import Survivors
from boxscore.suppression.soft import SoftMethod, by_new_score, check_floor, check_not_negative


def matrix_nms(
    boxes: ArrayLike,
    scores: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    method: SoftMethod = "gaussian",
    sigma: float = 2.0,
    score_threshold: float = 0.0,
    box_format: BoxFormat = "xyxy",
    pixel_offset: float = 0,
    pre_top_k: int | None = None,
    max_per_group: int | None = None,
) -> tuple[IntArray, FloatArray]:
    """Matrix NMS: lower all scores in one step.

    Parameters
    ----------
    sigma : float, default 2.0
        Gaussian only: larger is stricter, the other way round than in soft-NMS.
    score_threshold : float, default 0.0
        Boxes that end lower are left out.
    boxes, scores, groups, method, box_format, pixel_offset, pre_top_k, max_per_group
        As in :func:`boxscore.soft_nms`.

    Returns
    -------
    indices : ndarray of int64, [K]
        By descending lowered score, ties by lowest index.
    scores : ndarray of float64, [K]
        The lowered scores.

    Raises
    ------
    InputError
        As in :func:`boxscore.soft_nms`.

    Examples
    --------
    >>> boxes = [[6, 3, 8, 7], [3, 6, 9, 11], [3, 7, 10, 12], [1, 4, 13, 7]]
    >>> indices, lowered = matrix_nms(boxes, [0.6, 0.9, 0.7, 0.2])
    >>> indices.tolist(), lowered.round(4).tolist()
    ([1, 0, 2, 3], [0.9, 0.5963, 0.3528, 0.1915])
    """
    options = BoxOptions(box_format, pixel_offset, "iou", check_floor(score_threshold), pre_top_k)
    ranked = prepare(boxes, scores, groups, options)
    survivors = decay_all(
        ranked, method=method, sigma=sigma, score_threshold=score_threshold, max_per_group=max_per_group
    )
    return survivors.indices, survivors.scores


def decay_all(
    ranked: Ranked,
    *,
    method: SoftMethod,
    sigma: float = 2.0,
    score_threshold: float = 0.0,
    max_per_group: int | None = None,
) -> Survivors:
    """Lower the scores of ranked boxes: :func:`matrix_nms` after checking and sorting.

    Boxes below the threshold may be dropped early: scores only fall, and a worse box lowers no better one.
    """
    checks.one_of(method, get_args(SoftMethod), name="method")
    checks.number_between(sigma, 0, np.inf, name="sigma", open_low=True)
    floor = check_floor(score_threshold)
    check_not_negative(ranked.scores)

    def decay(iou: FloatArray) -> FloatArray:
        return 1 - np.minimum(iou, 1) if method == "linear" else np.exp(-sigma * iou**2)

    # Boxes of different groups never meet: lower the scores [n] block by block.
    lowered = np.empty(len(ranked.order))
    for block in ranked.blocks():
        # First pass over the pairs: how much the best-overlapping better box covers each box. A maximum is
        # the same in any order.
        pairs = PairStore(block, 0.0)
        covered = np.zeros(len(block))  # [n], by the better box that covers most
        for _, worse, iou in pairs:
            np.maximum.at(covered, worse, iou)
        # Second pass: the least ratio over all better boxes; 1 for a box without any. Pairs are cached
        # between the passes if they are few. No n x n matrix is built.
        compensation = decay(covered)
        smallest = np.ones(len(block))
        for better, worse, iou in pairs:
            divisor = compensation.take(better)
            # A better box that is itself covered completely has divisor 0 and no effect.
            share = np.divide(decay(iou), divisor, out=np.ones(len(iou)), where=divisor > 0)
            np.minimum.at(smallest, worse, share)
        lowered[block.start : block.start + len(block)] = block.scores * smallest
    return by_new_score(ranked, lowered, floor, max_per_group)
