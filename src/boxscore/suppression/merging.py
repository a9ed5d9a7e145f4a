"""Merge overlapping boxes into one that covers them, instead of dropping them.

Goal
----
Detections of one object cut by the border of two tiles should become one box around both halves.

Conventions
-----------
- A merged box is the smallest box around its members, with the score of the best.
- *Greedy*: the members are the best box and all it would drop in hard NMS.
- *Transitive* (``nmm``): a box joins the best box it overlaps, and goes where that one goes; so members need
  not overlap the box they end in, only form a chain.
- Overlap is by more than ``iou_threshold``, of the boxes as given, and every member is covered.
- SAHI, whose names these are, makes the same groups but other boxes: a member that does not overlap the box
  as merged so far is dropped and not covered. SAHI also compares with ``>=`` and defaults to IoS.

References
----------
Akyon et al., SAHI, arXiv 2202.06934.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from boxscore._utils import checks
from boxscore._utils.array_types import FloatArray, IntArray
from boxscore.data.boxes import BoxFormat, box_convert
from boxscore.suppression._plans import best_overlapping, greedy
from boxscore.suppression._ranked import Block, BoxOptions, Ranked, prepare
from boxscore.suppression.result import Suppression, Survivors


def greedy_nmm(
    boxes: ArrayLike,
    scores: ArrayLike,
    iou_threshold: float,
    *,
    groups: ArrayLike | None = None,
    overlap: Literal["iou", "ios"] = "iou",
    box_format: BoxFormat = "xyxy",
    pixel_offset: float = 0,
    score_threshold: float | None = None,
    pre_top_k: int | None = None,
) -> Suppression:
    """Merge into each kept box those it would drop in hard NMS.

    The groups are those of SAHI's ``GREEDYNMM``; the boxes can be larger, because SAHI drops some members.

    Parameters and errors as in :func:`boxscore.batched_nms`; ``groups`` are its ``idxs``, None is one group.

    Returns
    -------
    Suppression
        ``indices`` and ``scores`` of the best member of each merged box, ``boxes`` around all its members;
        ``suppressed_by`` names for each other member the best one.

    Examples
    --------
    >>> boxes = [[0, 0, 10, 10], [3, 0, 13, 10], [6, 0, 16, 10]]
    >>> merged = greedy_nmm(boxes, [0.9, 0.8, 0.7], 0.5)
    >>> merged.indices.tolist(), merged.boxes.tolist()
    ([0, 2], [[0.0, 0.0, 13.0, 10.0], [6.0, 0.0, 16.0, 10.0]])
    """
    options = BoxOptions(box_format, pixel_offset, overlap, score_threshold, pre_top_k)
    return _merge(boxes, scores, groups, options, iou_threshold, transitive=False)


def nmm(
    boxes: ArrayLike,
    scores: ArrayLike,
    iou_threshold: float,
    *,
    groups: ArrayLike | None = None,
    overlap: Literal["iou", "ios"] = "iou",
    box_format: BoxFormat = "xyxy",
    pixel_offset: float = 0,
    score_threshold: float | None = None,
    pre_top_k: int | None = None,
) -> Suppression:
    """Merge chains of overlapping boxes.

    The groups are those of SAHI's ``NMM``; the boxes can be larger, because SAHI drops some members.

    Parameters, results and errors as in :func:`greedy_nmm`.

    Examples
    --------
    >>> boxes = [[0, 0, 10, 10], [3, 0, 13, 10], [6, 0, 16, 10]]
    >>> merged = nmm(boxes, [0.9, 0.8, 0.7], 0.5)
    >>> merged.boxes.tolist(), merged.suppressed_by.tolist()
    ([[0.0, 0.0, 16.0, 10.0]], [-1, 0, 0])
    """
    options = BoxOptions(box_format, pixel_offset, overlap, score_threshold, pre_top_k)
    return _merge(boxes, scores, groups, options, iou_threshold, transitive=True)


def _merge(
    boxes: ArrayLike,
    scores: ArrayLike,
    groups: ArrayLike | None,
    options: BoxOptions,
    iou_threshold: float,
    *,
    transitive: bool,
) -> Suppression:
    checks.one_of(options.overlap, ("iou", "ios"), name="overlap")
    ranked = prepare(boxes, scores, groups, options)
    survivors = merge(ranked, iou_threshold, transitive=transitive)
    assert survivors.boxes is not None
    merged = box_convert(survivors.boxes, "xyxy", options.box_format)
    return Suppression(
        survivors.indices, survivors.scores, merged, survivors.suppressed_by, "boxes", len(ranked.scores)
    )


def merge(ranked: Ranked, iou_threshold: float, *, transitive: bool) -> Survivors:
    """Merge ranked boxes, after checking and sorting; the boxes returned are corners."""
    threshold = checks.number_between(iou_threshold, 0, 1, name="iou_threshold")
    # Arrays over the input [N] and over the ranked boxes [n]; ``around`` is valid at owners alone.
    suppressed_by = np.full(len(ranked.scores), -1)
    around = np.empty((len(ranked.order), 4))  # corners, only valid at the owners' positions
    keep = np.empty(len(ranked.order), dtype=bool)
    # Every box belongs to an owner, in positions of the block; an owner belongs to itself and is kept.
    for block in ranked.blocks():
        owner = _chained(block, threshold) if transitive else _dropped_by(block, threshold)
        span = slice(block.start, block.start + len(block))
        keep[span] = owner == np.arange(len(block))
        suppressed_by[block.rows] = np.where(keep[span], -1, block.rows.take(owner))
        around[span] = _hulls(block, owner)
    # Bring the merged boxes into the order of the result: from rows of the input back to positions.
    indices = ranked.by_score(keep)
    position = np.empty(len(ranked.scores), dtype=np.int64)
    position[ranked.order] = np.arange(len(ranked.order))
    hulls = around.take(position.take(indices), axis=0)
    return Survivors(indices, ranked.scores.take(indices), hulls, suppressed_by)


def _dropped_by(block: Block, threshold: float) -> IntArray:
    suppressor = greedy(block, threshold, owners=True)
    return np.where(suppressor < 0, np.arange(len(block)), suppressor)


def _chained(block: Block, threshold: float) -> IntArray:
    """Owner of each position: where the best box it overlaps goes."""
    owner = best_overlapping(block, threshold)
    while True:  # every box points to a better one: jump to the end of the chain, doubling
        further = owner.take(owner)
        if (further == owner).all():
            return owner
        owner = further


def _hulls(block: Block, owner: IntArray) -> FloatArray:
    """Corners [n, 4] of the box around each owner's members."""
    # Minimum and maximum do not round, so the hull holds corners of its members to the last bit, in any
    # order.
    measure = block.measure
    corners = [column.copy() for column in (measure.x1, measure.y1, measure.x2, measure.y2)]
    for column, source in zip(corners[:2], (measure.x1, measure.y1), strict=True):
        np.minimum.at(column, owner, source)
    for column, source in zip(corners[2:], (measure.x2, measure.y2), strict=True):
        np.maximum.at(column, owner, source)
    return np.stack(corners, axis=1)
