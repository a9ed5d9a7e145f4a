"""Pairs across classes: what a detection overlaps, whatever the class of either.

The same overlaps as everywhere, with all classes pooled. Ignored ground truths are left in and marked.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from boxscore.data.tables import BoxTable
from boxscore.data.vocabulary import Categories
from boxscore.evaluation import Evaluation
from boxscore.matching.candidates import candidate_pairs
from boxscore.matching.ranking import rank_detections
from boxscore.protocols.protocol import MatchingRules

Table = TypeVar("Table", bound=BoxTable)

__all__ = ["CrossPairs", "cross_class_pairs", "greedy_one_to_one"]


class CrossPairs(NamedTuple):
    """Pairs that overlap enough, by detection in score order, each one's ground truths in file order."""

    rows: NDArray[np.intp]  # [D] rows of the detections that took part, by image and descending score
    detection: NDArray[np.intp]  # [P] rows of the detections table
    truth: NDArray[np.intp]  # [P] rows of the ground-truth table
    iou: NDArray[np.float64]  # [P]
    place: NDArray[np.intp]  # [P] place of the detection by descending score over all images


def cross_class_pairs(
    evaluation: Evaluation,
    *,
    lowest: float,
    minimum_score: float = float("-inf"),
    most_per_image: int | None = None,
    crowd: NDArray[np.bool_] | None = None,
) -> CrossPairs:
    """Find the pairs of one image that overlap by ``lowest`` or more, across classes.

    Parameters
    ----------
    evaluation : Evaluation
        Its protocol says what is compared, and how boxes and crowds are measured.
    lowest : float
    minimum_score : float
        Detections below are left out.
    most_per_image : int, optional
        Cap on the detections of an image over all classes.
    crowd : ndarray of bool, [G], optional
        Ground truths measured by intersection over the detection, in place of the protocol's.

    Returns
    -------
    CrossPairs
    """
    rules = evaluation.protocol
    protocol = dataclasses.replace(
        rules,
        matching=MatchingRules(
            iou_thresholds=(lowest,),
            max_detections=() if most_per_image is None else (most_per_image,),
            score_threshold=minimum_score,
        ),
        ignore=rules.ignore if crowd is None else dataclasses.replace(rules.ignore, crowd="iof"),
    )
    truth, detections = _one_class(evaluation.ground_truth), _one_class(evaluation.detections)
    if crowd is not None:
        truth = dataclasses.replace(truth, crowd=crowd)
    ranking = rank_detections(detections, protocol)
    pairs = candidate_pairs(truth, detections, ranking, protocol)
    return CrossPairs(
        ranking.rows[ranking.grouped],
        ranking.rows[pairs.detection],
        pairs.ground_truth,
        pairs.iou,
        pairs.detection,
    )


def _one_class(table: Table) -> Table:
    return dataclasses.replace(
        table, categories=Categories.build(["all"]), category=np.zeros(len(table), dtype=np.int32)
    )


def greedy_one_to_one(first: NDArray[np.intp], second: NDArray[np.intp]) -> NDArray[np.intp]:
    """Take pairs in the given order, each whose two sides are both still free.

    Returns
    -------
    ndarray of intp
        Positions of the pairs taken, ascending.

    Notes
    -----
    A pair that comes first for both of its sides is taken whatever the others do; so all such pairs are
    taken at once, what they use up is dropped, and the rest goes round again.
    """
    left = np.arange(len(first))
    taken = []
    while len(left):
        mine, yours = first[left], second[left]
        is_first = np.zeros(len(left), dtype=bool)
        is_first[np.unique(mine, return_index=True)[1]] = True
        also = np.zeros(len(left), dtype=bool)
        also[np.unique(yours, return_index=True)[1]] = True
        chosen = is_first & also
        taken.append(left[chosen])
        left = left[~(np.isin(mine, mine[chosen]) | np.isin(yours, yours[chosen]))]
    return np.sort(np.concatenate(taken)) if taken else left
