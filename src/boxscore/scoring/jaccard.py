"""The Jaccard index of crowds (JI): how well one set of detections and one of persons agree, image by image.

Conventions
-----------
- Detections above a confidence are matched with the counted ground truths so that the sum of overlaps is
  largest: a maximum-weight matching, whatever their scores. Of equal sums any is taken.
- A detection without a partner that lies in an ignored region leaves the set; so does an object without one.
- An image's ratio is ``k / (m + n - k + 1e-6)`` for ``k`` partners, ``m`` objects and ``n`` detections. JI is
  the mean over the images that have either, at the confidence where it is largest.

References
----------
X. Chu et al., "Detection in Crowded Scenes: One Proposal, Multiple Predictions", CVPR 2020; CrowdDet,
``compute_JI.py``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.ordering import run_starts
from boxscore.errors import InputError
from boxscore.matching.matches import Matches
from boxscore.protocols.protocol import Protocol
from boxscore.scoring.counts import HitCounts
from boxscore.scoring.weighted import WeightedCounts

__all__ = ["heaviest_matching", "jaccard_indices"]

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
Positions = NDArray[np.intp]

EPSILON = 1e-6


def jaccard_indices(counts: HitCounts | WeightedCounts, protocol: Protocol) -> FloatArray:
    """JI of each threshold and class, [T, K]; NaN for a class without a counted ground truth."""
    matches, area = counts.outcomes.matches, counts.outcomes.area
    assert matches is not None
    assert matches.truth_share is not None
    if not matches.every_pair:
        raise InputError(
            "overlapping pairs", "be all kept for the Jaccard index", got="too many", cause="suppress first"
        )
    weights = counts.image_weights()
    often = np.ones(len(matches.images)) if weights is None else weights
    K = len(matches.categories)
    best = np.full((matches.threshold_count, K), np.nan)
    counted = matches.counted(area)
    for t, k in np.ndindex(best.shape):
        if not counts.positive[k]:
            continue
        name = str(matches.categories.names[k])
        floor = float(protocol.matching.effective_thresholds_of(name)[t])
        crowd = _Crowd(matches, counted, k, floor, np.arange(len(matches.iou)))
        best[t, k] = max(crowd.index(score, often) for score in protocol.jaccard.score_thresholds)
    return best


class _Crowd:
    """The detections and objects of one class at one IoU threshold."""

    def __init__(self, matches: Matches, counted: BoolArray, k: int, floor: float, pairs: Positions) -> None:
        self._matches = matches
        detection, truth = matches.pair_detection[pairs], matches.pair_truth[pairs]
        enough = (matches.category[detection] == k) & (matches.iou[pairs] >= floor)
        pairs, detection, truth = pairs[enough], detection[enough], truth[enough]
        with_object = counted[truth]
        self._edges = pairs[with_object]
        self._in_region = np.zeros(len(matches), dtype=bool)
        self._in_region[detection[~with_object]] = True
        self._of_class = matches.category == k
        self._objects = np.flatnonzero(counted & (matches.truth_category == k))
        assert matches.truth_share is not None
        self._covered = matches.truth_share >= floor

    def index(self, score: float, often: FloatArray) -> float:
        """Mean ratio over the images for the detections above a score; images count as often as told."""
        matches = self._matches
        chosen = self._of_class & (matches.score > score)
        edges = self._edges[chosen[matches.pair_detection[self._edges]]]
        taken = edges[
            heaviest_matching(matches.pair_detection[edges], matches.pair_truth[edges], matches.iou[edges])
        ]
        images = len(matches.images)
        k = np.bincount(matches.truth_image[matches.pair_truth[taken]], minlength=images)
        chosen &= ~self._in_region
        chosen[matches.pair_detection[taken]] = True
        n = np.bincount(matches.image[chosen], minlength=images)
        left = np.ones(len(matches.truth_image), dtype=bool)
        left[self._covered] = False
        left[matches.pair_truth[taken]] = True
        objects = self._objects[left[self._objects]]
        m = np.bincount(matches.truth_image[objects], minlength=images)
        ratio = k / (m + n - k + EPSILON)
        there = (n != 0) | (m != 0)
        total = float(often[there].sum())
        return float(np.sum(ratio * often)) / total if total else float("nan")


def heaviest_matching(first: Positions, second: Positions, weight: FloatArray) -> Positions:
    """Positions of the edges of a bipartite matching of largest total weight, [k]; weights are positive."""
    if not len(weight):
        return np.empty(0, dtype=np.intp)
    component = _components(first, second)
    order = np.lexsort((-weight, component))
    starts = run_starts(component[order])
    bounds = np.append(starts, len(order))
    single = np.ones(len(starts), dtype=bool)
    for side in (first, second):
        values = side[order]
        one = np.logical_and.reduceat(values == np.repeat(values[starts], np.diff(bounds)), starts)
        single = one if side is first else single | one
    taken = [order[starts[single]]]  # all edges meet in one object: the heaviest
    for part in np.flatnonzero(~single).tolist():
        edges = order[bounds[part] : bounds[part + 1]]
        chosen = _augmented(first[edges].tolist(), second[edges].tolist(), weight[edges].tolist())
        taken.append(edges[chosen])
    return np.concatenate(taken)


def _components(first: Positions, second: Positions) -> Positions:
    """Return the number of the connected component of each edge, [E]."""
    _, a = np.unique(first, return_inverse=True)
    _, b = np.unique(second, return_inverse=True)
    label = np.arange(len(first))
    while True:
        of_a = np.full(int(a.max()) + 1, len(label))
        np.minimum.at(of_a, a, label)
        spread = of_a[a]
        of_b = np.full(int(b.max()) + 1, len(label))
        np.minimum.at(of_b, b, spread)
        spread = of_b[b]
        if (spread == label).all():
            return label
        label = spread


def _augmented(first: list[int], second: list[int], weight: list[float]) -> list[int]:
    """Match a component by the path that gains most, until none gains; returns positions of edges."""
    mate: dict[int, int] = {}  # of the second side: the edge
    used: dict[int, int] = {}  # of the first side: the edge
    while True:
        # Gain of the best alternating path from a free node of the first side to each node of the second.
        gain = {node: 0.0 for node in first if node not in used}
        through: dict[int, int] = {}
        reached: dict[int, float] = {}
        changed = True
        while changed:
            changed = False
            for edge, (a, b) in enumerate(zip(first, second, strict=True)):
                if a not in gain or used.get(a) == edge:
                    continue
                value = gain[a] + weight[edge]
                if value > reached.get(b, float("-inf")) + 1e-12:
                    reached[b], through[b], changed = value, edge, True
                    if b in mate:
                        back = first[mate[b]]
                        gain[back] = value - weight[mate[b]]
        ends = [b for b in reached if b not in mate]
        if not ends:
            return sorted(used.values())
        end = max(ends, key=reached.__getitem__)
        if reached[end] <= 0:
            return sorted(used.values())
        node: int | None = end
        while node is not None:
            edge = through[node]
            before = used.get(first[edge])
            used[first[edge]] = mate[node] = edge
            node = None if before is None else second[before]
