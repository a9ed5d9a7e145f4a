"""Compute the Jaccard index of crowds (JI): the agreement of detections and persons, image by image.

Conventions
-----------
- Detections above a confidence are matched with the counted ground truths to maximize the total overlap,
  regardless of their scores. Ties are broken arbitrarily.
- An unmatched detection in an ignored region does not count; neither does an unmatched object in one.
- The ratio of an image is ``k / (m + n - k + 1e-6)`` for ``k`` matches, ``m`` objects and ``n`` detections.
  JI is the mean over images with objects or detections, at the confidence that maximizes it. CrowdDet adds
  the ratios in the order in which its processes finish; here their sum is exact, and rounded once.
- Three integers per class and image suffice (:func:`with_crowd_counts`), and merge in any order. They cannot
  be computed from chunks by score, so one process handles a whole class.

References
----------
X. Chu et al., "Detection in Crowded Scenes: One Proposal, Multiple Predictions", CVPR 2020; CrowdDet,
``compute_JI.py``.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from boxscore._utils.array_types import BoolArray, FloatArray, IntArray, Positions
from boxscore._utils.ordering import group_starts, run_starts
from boxscore.errors import InputError
from boxscore.matching.matches import Matches
from boxscore.protocols.acting import ClassImageRows
from boxscore.protocols.protocol import Protocol
from boxscore.protocols.tables.crowds import CROWDS, TRUTH_SHARE, jaccard_areas
from boxscore.scoring.blocks import HeldValues, Values
from boxscore.scoring.curves import Curves
from boxscore.scoring.kinds import Kind

EPSILON = 1e-6


def with_crowd_counts(matches: Matches, protocol: Protocol) -> Matches:
    """Add the crowd counts of matches once, if the summary has JI."""
    areas = jaccard_areas(protocol)
    if not areas or CROWDS.of(matches.extra) is not None:
        return matches
    counted = zip(CROWDS.names, _crowd_counts(matches, protocol, areas), strict=True)
    return dataclasses.replace(matches, extra={**matches.extra, **dict(counted)})


def _values(curves: Curves, protocol: Protocol) -> Values:
    """Compute JI per threshold and class, [T, K]; NaN for a class without counted ground truths."""
    outcomes, weights = curves.counts.outcomes, curves.counts.image_weights
    assert outcomes is not None
    assert outcomes.matches is not None
    # Use the counts stored with the matches, or count now.
    matches, area = outcomes.matches, outcomes.area
    crowds, at = CROWDS.rows_of(matches.extra), jaccard_areas(protocol)
    if crowds is None:
        crowds, at = _crowd_counts(matches, protocol, [area]), [area]
    multiplicity = np.ones(len(matches.images)) if weights is None else weights
    # Classes ascend, so each is a slice, [images of the class, S].
    T, K = matches.threshold_count, len(matches.categories)
    bounds = group_starts(crowds.category, K).tolist()
    best = np.full((T, K), np.nan)
    for t, k in np.ndindex(T, K):
        if curves.positive[k]:
            rows = slice(bounds[k], bounds[k + 1])
            partners, objects, detections = (
                crowds.values[rows, :, at.index(area), t].astype(np.int64).swapaxes(0, 1)
            )
            best[t, k] = _best_index(partners, objects, detections, multiplicity[crowds.image[rows]])
    return HeldValues(best)


def _best_index(k: IntArray, m: IntArray, n: IntArray, multiplicity: FloatArray) -> float:
    """Return the best mean ratio over the images, for all confidences; arguments are [images, S].

    Sums are exact before rounding, so the order of images does not matter.
    """
    ratio = k / (m + n - k + EPSILON) * multiplicity[:, None]
    total = (((n != 0) | (m != 0)) * multiplicity[:, None]).sum(axis=0)
    return max(
        math.fsum(column) / there if there else math.nan
        for column, there in zip(ratio.T.tolist(), total.tolist(), strict=True)
    )


def _crowd_counts(matches: Matches, protocol: Protocol, areas: Sequence[int]) -> ClassImageRows:
    """Match every image by the largest total overlap, at some area ranges, and count.

    Raises
    ------
    InputError
        If some overlaps were dropped.
    """
    if not matches.every_pair or TRUTH_SHARE.of(matches.extra) is None:
        raise InputError(
            "overlapping pairs",
            "be all kept for the Jaccard index",
            got="only those that match",
            cause="very many overlap, so suppress first; or these are merged parts, of which detections were "
            "left out",
        )
    # Rows are the (class, image) pairs with a detection or an object, [N]: most pairs are empty.
    images, K, T = len(matches.images), len(matches.categories), matches.threshold_count
    scores = protocol.jaccard.score_thresholds
    there = np.union1d(
        matches.category.astype(np.int64) * images + matches.image,
        matches.truth_category.astype(np.int64) * images + matches.truth_image,
    )
    counts = np.zeros((len(there), 3, len(areas), T, len(scores)), dtype=np.int32)
    # Match each class at each threshold and confidence, and keep only the counts.
    for a, area in enumerate(areas):
        counted = matches.counted(area)
        for t, k in np.ndindex(T, K):
            # Keys ascend, so the rows of a class are a slice.
            rows = slice(*np.searchsorted(there, [k * images, (k + 1) * images]).tolist())
            if rows.start == rows.stop:
                continue
            name = str(matches.categories.names[k])
            floor = float(protocol.matching.effective_thresholds_of(name)[t])
            # Prepare the pairs of the class once for all confidences.
            crowd = _Crowd(matches, counted, k, floor, np.arange(len(matches.iou)))
            for s, score in enumerate(scores):
                counts[rows, :, a, t, s] = crowd.counts(score)[there[rows] % max(images, 1)]
    # Drop empty rows.
    some = counts.any(axis=(1, 2, 3, 4))
    there = there[some]
    return ClassImageRows(there // max(images, 1), there % max(images, 1), counts[some])


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
        share = TRUTH_SHARE.of(matches.extra)
        assert share is not None
        self._covered = share >= floor

    def counts(self, score: float) -> IntArray:
        """Count matches, objects and detections of each image, for detections above a score; [I, 3]."""
        # Match the detections above the confidence by the largest total overlap.
        matches = self._matches
        chosen = self._of_class & (matches.score > score)
        edges = self._edges[chosen[matches.pair_detection[self._edges]]]
        taken = edges[
            heaviest_matching(matches.pair_detection[edges], matches.pair_truth[edges], matches.iou[edges])
        ]
        # Count matches, then detections, without unmatched ones in a region.
        images = len(matches.images)
        k = np.bincount(matches.truth_image[matches.pair_truth[taken]], minlength=images)
        chosen &= ~self._in_region
        chosen[matches.pair_detection[taken]] = True
        n = np.bincount(matches.image[chosen], minlength=images)
        # Count objects in the same way, without unmatched ones in a region.
        left = np.ones(len(matches.truth_image), dtype=bool)
        left[self._covered] = False
        left[matches.pair_truth[taken]] = True
        objects = self._objects[left[self._objects]]
        m = np.bincount(matches.truth_image[objects], minlength=images)
        return np.stack([k, m, n], axis=1)


def heaviest_matching(first: Positions, second: Positions, weight: FloatArray) -> Positions:
    """Return the edges of a bipartite matching of maximum total weight, [k]; weights are positive."""
    if not len(weight):
        return np.empty(0, dtype=np.intp)
    # Sort the edges by component, heaviest first.
    component = _components(first, second)
    order = np.lexsort((-weight, component))
    starts = run_starts(component[order])
    bounds = np.append(starts, len(order))
    # If all edges of a component share a node, its heaviest edge is the matching. This covers nearly all
    # components with one array operation.
    single = np.ones(len(starts), dtype=bool)
    for side in (first, second):
        values = side[order]
        one = np.logical_and.reduceat(values == np.repeat(values[starts], np.diff(bounds)), starts)
        single = one if side is first else single | one
    taken = [order[starts[single]]]
    # Search the other components one by one.
    for part in np.flatnonzero(~single).tolist():
        edges = order[bounds[part] : bounds[part + 1]]
        chosen = _augmented(first[edges].tolist(), second[edges].tolist(), weight[edges].tolist())
        taken.append(edges[chosen])
    return np.concatenate(taken)


def _components(first: Positions, second: Positions) -> Positions:
    """Return the connected component of each edge, [E]."""
    _, a = np.unique(first, return_inverse=True)
    _, b = np.unique(second, return_inverse=True)
    # Propagate the smallest label along both ends of the edges until labels are stable.
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
    """Match a component by augmenting paths of maximum gain; return positions of edges."""
    mate: dict[int, int] = {}  # edge by node of the second side
    used: dict[int, int] = {}  # edge by node of the first side
    while True:
        # Compute the gain of the best alternating path from a free node of the first side to each second
        # node.
        gain = {node: 0.0 for node in first if node not in used}
        through: dict[int, int] = {}
        reached: dict[int, float] = {}
        changed = True
        # Relax the edges until no gain grows (Bellman-Ford).
        while changed:
            changed = False
            for edge, (a, b) in enumerate(zip(first, second, strict=True)):
                if a not in gain or used.get(a) == edge:
                    continue
                value = gain[a] + weight[edge]
                if value > reached.get(b, float("-inf")) + 1e-12:  # tolerate rounding, to avoid endless loops
                    reached[b], through[b], changed = value, edge, True
                    if b in mate:
                        back = first[mate[b]]
                        gain[back] = value - weight[mate[b]]
        # Take the best path to a free node; without a gain, the matching is complete.
        ends = [b for b in reached if b not in mate]
        if not ends:
            return sorted(used.values())
        end = max(ends, key=reached.__getitem__)
        if reached[end] <= 0:
            return sorted(used.values())
        # Walk back along the path and swap its edges.
        node: int | None = end
        while node is not None:
            edge = through[node]
            before = used.get(first[edge])
            used[first[edge]] = mate[node] = edge
            node = None if before is None else second[before]


KINDS = (Kind("JI", "Jaccard Index      (JI)", _values, needs_order=True, count=with_crowd_counts),)
