"""Suppress by soft NMS: lower the scores of overlapping boxes instead of dropping them.

Conventions
-----------
- The best box left is final; every other box of its group that it overlaps has its score multiplied by
  ``1 - iou`` (linear, where ``iou > iou_threshold``) or ``exp(-iou**2 / sigma)`` (Gaussian, everywhere).
  Then the next best, by the current scores; ties by lowest index.
- TensorFlow writes the Gaussian ``exp(-0.5 * iou**2 / sigma)``: its sigma is half of the one here.
- Results are indices and the lowered scores, best first; boxes that end below ``score_threshold`` are left
  out.

Method
------
Scores only fall. So a box whose current score beats every undecided box it overlaps is final, regardless of
rank: one round decides all such boxes of all groups. A box lowered by several in one round is multiplied in
the order of their original scores, not in the loop's, so a score may differ from the loop's in its last bit.
The order depends on nothing else: the scores are the same to the last bit, no matter which plan computed the
pairs. If a block has too many pairs to hold, its boxes are taken one by one, in the order of the loop.

References
----------
Bodla et al., arXiv 1704.04503.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from boxscore._utils import checks
from boxscore._utils.array_types import FloatArray, IntArray
from boxscore._utils.ordering import descending_order, rank_in_runs
from boxscore.data.boxes import BoxFormat
from boxscore.errors import InputError
from boxscore.suppression._pairs import PairStore
from boxscore.suppression._ranked import Block, BoxOptions, Ranked, ValuedPairs, prepare
from boxscore.suppression.result import Survivors

SoftMethod = Literal["gaussian", "linear"]


def soft_nms(
    boxes: ArrayLike,
    scores: ArrayLike,
    iou_threshold: float = 0.3,
    *,
    groups: ArrayLike | None = None,
    method: SoftMethod = "gaussian",
    sigma: float = 0.5,
    score_threshold: float = 0.001,
    box_format: BoxFormat = "xyxy",
    pixel_offset: float = 0,
    pre_top_k: int | None = None,
    max_per_group: int | None = None,
) -> tuple[IntArray, FloatArray]:
    """Soft-NMS: lower scores by how much better boxes overlap.

    Parameters
    ----------
    boxes : array_like, [N, 4]
    scores : array_like, [N]
        Not negative: a factor below 1 would raise a negative score.
    iou_threshold : float in [0, 1], default 0.3
        Linear only: overlaps up to this leave a score as it is.
    groups : array_like of int or str, [N], optional
        Boxes of different groups never meet; None is one group.
    method : {"gaussian", "linear"}, default "gaussian"
    sigma : float, default 0.5
        Gaussian only: larger is milder.
    score_threshold : float, default 0.001
        Boxes that end lower are left out.
    box_format, pixel_offset, pre_top_k, max_per_group
        As in :func:`boxscore.batched_nms`.

    Returns
    -------
    indices : ndarray of int64, [K]
        By descending lowered score, ties by lowest index.
    scores : ndarray of float64, [K]
        The lowered scores.

    Raises
    ------
    InputError
        As in :func:`boxscore.nms`; for a negative score, an unknown method or a sigma that is not
        positive.

    Examples
    --------
    >>> boxes = [[6, 3, 8, 7], [3, 6, 9, 11], [3, 7, 10, 12], [1, 4, 13, 7]]
    >>> indices, lowered = soft_nms(boxes, [0.6, 0.9, 0.7, 0.2], method="linear")
    >>> indices.tolist(), lowered.round(4).tolist()
    ([1, 0, 2, 3], [0.9, 0.6, 0.2902, 0.2])
    """
    options = BoxOptions(box_format, pixel_offset, "iou", check_floor(score_threshold), pre_top_k)
    ranked = prepare(boxes, scores, groups, options)
    survivors = soften(
        ranked,
        method=method,
        iou_threshold=iou_threshold,
        sigma=sigma,
        score_threshold=score_threshold,
        max_per_group=max_per_group,
    )
    return survivors.indices, survivors.scores


def soften(
    ranked: Ranked,
    *,
    method: SoftMethod,
    iou_threshold: float = 0.3,
    sigma: float = 0.5,
    score_threshold: float = 0.001,
    max_per_group: int | None = None,
) -> Survivors:
    """Lower the scores of ranked boxes: :func:`soft_nms` after checking and sorting."""
    checks.one_of(method, get_args(SoftMethod), name="method")
    ignored = checks.number_between(iou_threshold, 0, 1, name="iou_threshold")
    checks.number_between(sigma, 0, np.inf, name="sigma", open_low=True)
    floor = check_floor(score_threshold)
    check_not_negative(ranked.scores)
    # The Gaussian decay lowers every box that overlaps at all: a threshold does not apply.
    if method == "gaussian":
        ignored = 0.0

    def factor(iou: FloatArray) -> FloatArray:
        return 1 - iou if method == "linear" else np.exp(-(iou**2) / sigma)

    # Lower the scores [n] block by block. Pairs that fit in memory are measured once and decided in rounds;
    # otherwise take the boxes one by one, each measured with the boxes left.
    lowered = np.empty(len(ranked.order))
    for block in ranked.blocks():
        pairs = PairStore(block, ignored).join()
        final = lowered[block.start : block.start + len(block)]
        if pairs is None:
            _one_by_one(block, ignored, factor, floor, final)
        else:
            _rounds(block, pairs, factor, floor, final)
    return by_new_score(ranked, lowered, floor, max_per_group)


def check_floor(score_threshold: float) -> float:
    """Check the score below which lowered boxes are left out."""
    return checks.number_between(score_threshold, 0, np.inf, name="score_threshold")


def check_not_negative(scores: FloatArray) -> None:
    """Refuse negative scores, which a factor below 1 would raise."""
    if len(scores) and scores.min() < 0:
        row = int(np.argmax(scores < 0))
        raise InputError("scores", "be >= 0", got=scores[row], place=f"row {row}", cause="are these logits?")


def by_new_score(ranked: Ranked, lowered: FloatArray, floor: float, max_per_group: int | None) -> Survivors:
    """Rows of the input and new scores, best first; ``lowered`` [n] is in positions."""
    # ``left`` holds the positions that reach the floor. Lowering changes the ranks: cap each group by the new
    # scores, ties by lowest row.
    left = np.flatnonzero(lowered >= floor)
    if max_per_group is not None:
        most = checks.whole_number(max_per_group, 1, name="max_per_group")
        group = np.searchsorted(ranked.starts, left, side="right")
        best_first = np.lexsort((ranked.order.take(left), -lowered.take(left), group))
        left, group = left.take(best_first), group.take(best_first)
        left = left.compress(rank_in_runs(group) < most)
    # Order by row first: the stable sort by score then puts equal scores in the order of the input.
    left = left.take(np.argsort(ranked.order.take(left), kind="stable"))
    order = left.take(descending_order(lowered.take(left)))
    return Survivors(ranked.order.take(order), lowered.take(order))


def _rounds(
    block: Block,
    pairs: ValuedPairs,
    factor: Callable[[FloatArray], FloatArray],
    floor: float,
    final: FloatArray,
) -> None:
    """In every round, decide each box that beats all undecided boxes it overlaps."""
    # The factor of a pair depends on its overlap alone: compute all of them once, [P].
    final[:] = block.scores
    first, second, iou = pairs
    factors = factor(iou)
    # Among equal scores the lower row wins, even if the scores differed at the start.
    earlier = block.rows.take(first) < block.rows.take(second)
    while len(first):
        # Compare the current scores of every undecided pair. A box that loses no pair has its final score: no
        # box that could lower it is left.
        score1, score2 = final.take(first), final.take(second)
        wins = (score1 > score2) | ((score1 == score2) & earlier)
        beaten = np.zeros(len(final), dtype=bool)
        beaten[np.where(wins, second, first)] = True
        # A pair with an unbeaten box is decided: that box lowers the other one. Several winners lower a box
        # in the order of the pairs.
        beaten1, beaten2 = beaten.take(first), beaten.take(second)
        undecided = beaten1 & beaten2
        decided = ~undecided
        loser = np.where(beaten1, first, second).compress(decided)
        np.multiply.at(final, loser, factors.compress(decided))
        # A box below the floor is out and lowers no other. Keep the pairs of two beaten boxes that are both
        # still in.
        undecided &= (final.take(first) >= floor) & (final.take(second) >= floor)
        first, second = first.compress(undecided), second.compress(undecided)
        factors, earlier = factors.compress(undecided), earlier.compress(undecided)


def _one_by_one(
    block: Block, ignored: float, factor: Callable[[FloatArray], FloatArray], floor: float, final: FloatArray
) -> None:
    """Take the best remaining box one at a time: slower, for pairs that are too many to hold."""
    final[:] = block.scores
    for start, end in zip(block.starts[:-1], block.starts[1:], strict=True):
        left = np.arange(start, end)
        left = left.take(np.argsort(block.rows.take(left)))  # so that the first highest is the tie's winner
        # Take the best box, then lower what it overlaps by more than the threshold, and drop what falls below
        # the floor.
        while len(left) > 1:
            best = int(np.argmax(final.take(left)))
            head = left[best]
            left = np.delete(left, best)
            iou = np.minimum(block.measure.between(np.full(len(left), head), left), 1)
            above = np.flatnonzero(iou > ignored)
            final[left.take(above)] *= factor(iou.take(above))
            left = left.compress(final.take(left) >= floor)
