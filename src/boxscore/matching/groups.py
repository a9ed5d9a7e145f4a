"""Boxes around groups of objects, as Open Images has them: what lies in one is absorbed, and is one hit.

Conventions
-----------
- A group is matched after all other ground truths, by intersection over the detection's area. A detection
  that is no match yet, a duplicate too, is absorbed by the group that holds most of it, of equal ones the
  first in file order.
- The absorbed detection of highest score, if that is above 0, stands for the group and is its true positive;
  the others neither count nor harm. A group without one is missed.
- Groups of weight 0 count nowhere: whatever they absorb is ignored.

References
----------
The TensorFlow Object Detection API, ``per_image_evaluation.py`` (``group_of``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.ordering import run_starts
from boxscore.matching.candidates import Pairs
from boxscore.matching.greedy import best_of_each
from boxscore.matching.matches import Bits
from boxscore.protocols.protocol import MatchingRules

__all__ = ["absorb", "without_groups"]


def without_groups(
    blocks: Iterable[Pairs], is_group: NDArray[np.bool_], apart: list[Pairs]
) -> Iterator[Pairs]:
    """Yield the pairs with other ground truths than groups; put those with groups [G] into ``apart``."""
    for block in blocks:
        with_group = is_group[block.ground_truth]
        yield _some(block, ~with_group)
        apart.append(_some(block, with_group))


def _some(pairs: Pairs, chosen: NDArray[np.bool_]) -> Pairs:
    return Pairs(pairs.detection[chosen], pairs.ground_truth[chosen], pairs.iou[chosen])


def absorb(
    pairs: Pairs,
    matched: Bits,
    apart: list[Pairs],
    score: NDArray[np.float64],
    rules: MatchingRules,
) -> tuple[Pairs, Bits, Bits]:
    """Let groups absorb what has no match, ``score`` [D] by position in class order.

    Returns the pairs, those with groups last, their bits [P, A], and the bits at which a pair is absorbed
    though another detection stands for the group.
    """
    area_count = matched.shape[1]
    taken = np.zeros((len(score), area_count), dtype=matched.dtype)
    starts = run_starts(pairs.detection)
    if len(starts):
        taken[pairs.detection[starts]] = np.bitwise_or.reduceat(matched, starts, axis=0)
    position, truth, share = (np.concatenate(column) for column in zip(*apart, strict=True))
    starts = run_starts(position)
    best = best_of_each(share, starts, np.diff(np.append(starts, len(position))), last_wins=False)
    position, truth, share = position[best], truth[best], share[best]
    level = np.searchsorted(rules.effective_thresholds, share, side="right")
    reached = ((np.uint64(1) << level.astype(np.uint64)) - np.uint64(1)).astype(matched.dtype)
    bits = reached[:, None] & ~taken[position]
    standing = _standing(bits, truth, score[position] > 0, len(rules.iou_thresholds))
    every = Pairs(
        np.concatenate([pairs.detection, position]),
        np.concatenate([pairs.ground_truth, truth]),
        np.concatenate([pairs.iou, share]),
    )
    absorbed = np.concatenate([np.zeros_like(matched), bits & ~standing])
    return every, np.concatenate([matched, bits]), absorbed


def _standing(bits: Bits, truth: NDArray[np.intp], eligible: NDArray[np.bool_], threshold_count: int) -> Bits:
    """Return the bits at which each pair is the first eligible one of its group, [P, A]."""
    standing = np.zeros_like(bits)
    for area in range(bits.shape[1]):
        for threshold in range(threshold_count):
            bit = bits.dtype.type(1 << threshold)
            there = np.flatnonzero((bits[:, area] & bit).astype(bool) & eligible)
            _, first = np.unique(truth[there], return_index=True)
            standing[there[first], area] |= bit
    return standing
