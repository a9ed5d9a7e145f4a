"""Suppress by repeated matrix steps: fast NMS and cluster NMS.

Conventions
-----------
Fast NMS drops a box that *any* better box of its group overlaps by more than the threshold, even one that is
dropped itself: it drops more than hard NMS. Cluster NMS repeats the step, each time letting only the boxes
that survived the last one drop others; when nothing changes any more the result is that of hard NMS.

References
----------
Fast NMS: Bolya et al., YOLACT, arXiv 1904.02689. Cluster NMS: Zheng et al., arXiv 2005.03572.
Reported there: box AP 32.5 fast, 32.9 hard and cluster.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from boxscore._utils import checks
from boxscore._utils.array_types import BoolArray, IntArray
from boxscore.data.boxes import BoxFormat
from boxscore.suppression._pairs import PairStore
from boxscore.suppression._plans import best_overlapping
from boxscore.suppression._ranked import Block, BoxOptions, Ranked, prepare
from boxscore.suppression.hard import cap_groups, select
from boxscore.suppression.result import Survivors


def fast_nms(
    boxes: ArrayLike,
    scores: ArrayLike,
    iou_threshold: float,
    *,
    groups: ArrayLike | None = None,
    box_format: BoxFormat = "xyxy",
    pixel_offset: float = 0,
    score_threshold: float | None = None,
    pre_top_k: int | None = None,
    max_per_group: int | None = None,
) -> IntArray:
    """Fast NMS: drop a box that any better box overlaps, dropped itself or not.

    Parameters, results and errors as in :func:`boxscore.batched_nms`; ``groups=None`` is one group.
    It reproduces YOLACT's results; it is no faster than hard NMS here.

    Examples
    --------
    >>> boxes = [[0, 0, 10, 10], [3, 0, 13, 10], [6, 0, 16, 10]]
    >>> fast_nms(boxes, [0.9, 0.8, 0.7], 0.5).tolist()
    [0]
    """
    options = BoxOptions(box_format, pixel_offset, "iou", score_threshold, pre_top_k)
    ranked = prepare(boxes, scores, groups, options)
    return select_in_rounds(ranked, iou_threshold, max_rounds=1, max_per_group=max_per_group).indices


def cluster_nms(
    boxes: ArrayLike,
    scores: ArrayLike,
    iou_threshold: float,
    *,
    groups: ArrayLike | None = None,
    max_rounds: int | None = None,
    box_format: BoxFormat = "xyxy",
    pixel_offset: float = 0,
    score_threshold: float | None = None,
    pre_top_k: int | None = None,
    max_per_group: int | None = None,
) -> IntArray:
    """Cluster NMS: fast NMS repeated until nothing changes, or for some rounds.

    Parameters
    ----------
    max_rounds : int, optional
        1 is fast NMS. None repeats to the end; the result is that of hard NMS, and computed so.
    boxes, scores, groups, iou_threshold, box_format, pixel_offset, score_threshold, pre_top_k, max_per_group
        As in :func:`boxscore.batched_nms`; ``groups=None`` is one group.

    Returns
    -------
    ndarray of int64, [K]
        Rows of the boxes kept, by descending score, ties by lowest index.

    Raises
    ------
    InputError
        As in :func:`boxscore.batched_nms`.

    Examples
    --------
    >>> boxes = [[0, 0, 10, 10], [3, 0, 13, 10], [6, 0, 16, 10]]
    >>> cluster_nms(boxes, [0.9, 0.8, 0.7], 0.5).tolist()
    [0, 2]
    """
    options = BoxOptions(box_format, pixel_offset, "iou", score_threshold, pre_top_k)
    ranked = prepare(boxes, scores, groups, options)
    return select_in_rounds(ranked, iou_threshold, max_rounds=max_rounds, max_per_group=max_per_group).indices


def select_in_rounds(
    ranked: Ranked,
    iou_threshold: float,
    *,
    max_rounds: int | None = None,
    max_per_group: int | None = None,
    owners: bool = False,
) -> Survivors:
    """Suppress ranked boxes: :func:`cluster_nms` after checking; ``owners`` only without ``max_rounds``."""
    if max_rounds is None:
        return select(ranked, iou_threshold, max_per_group=max_per_group, owners=owners)
    threshold = checks.number_between(iou_threshold, 0, 1, name="iou_threshold")
    rounds = checks.whole_number(max_rounds, 1, name="max_rounds")
    keep = np.empty(len(ranked.order), dtype=bool)
    for block in ranked.blocks():
        keep[block.start : block.start + len(block)] = _repeat(block, threshold, rounds)
    if max_per_group is not None:
        cap_groups(keep, ranked.starts, checks.whole_number(max_per_group, 1, name="max_per_group"))
    indices = ranked.by_score(keep)
    return Survivors(indices, ranked.scores.take(indices))


def _repeat(block: Block, threshold: float, rounds: int) -> BoolArray:
    """Drop, in each round, all boxes that a survivor of the last round overlaps."""
    # One round drops each box that any better box overlaps, so a survivor is its own best overlapping box.
    if rounds == 1:
        keep: BoolArray = best_overlapping(block, threshold) == np.arange(len(block))
        return keep
    alive = np.ones(len(block), dtype=bool)
    if threshold >= 1:
        return alive
    # Later rounds start from all boxes again and let only the survivors of the round before drop others.
    pairs = PairStore(block, threshold)
    for _ in range(rounds):
        survives = np.ones(len(block), dtype=bool)
        for better, worse, _ in pairs:
            survives[worse.compress(alive.take(better))] = False
        if (survives == alive).all():
            break
        alive = survives
    return alive
