"""The Jaccard index of crowds (JI): how well one set of detections and one of persons agree, image by image.

Conventions
-----------
- Detections above a confidence are matched with the counted ground truths so that the sum of overlaps is
  largest: a maximum-weight matching, whatever their scores. Of equal sums any is taken.
- A detection without a partner that lies in an ignored region leaves the set; so does an object without one.
- An image's ratio is ``k / (m + n - k + 1e-6)`` for ``k`` partners, ``m`` objects and ``n`` detections. JI is
  the mean over the images that have either, at the confidence where it is largest. CrowdDet adds up the
  ratios in whatever order its processes give them; here their sum is exact, and rounded once.
- Three whole numbers a class and image are all that it needs (:func:`with_crowd_counts`): they merge, in any
  order. What lies above a confidence is not the sum of what its ranges of scores have: one owner of a class.

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
from boxscore._utils.ordering import run_starts
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
    """Count the crowds of matches once, where the summary has JI."""
    areas = jaccard_areas(protocol)
    if not areas or CROWDS.of(matches.extra) is not None:
        return matches
    counted = zip(CROWDS.names, _crowd_counts(matches, protocol, areas), strict=True)
    return dataclasses.replace(matches, extra={**matches.extra, **dict(counted)})


def _values(curves: Curves, protocol: Protocol) -> Values:
    """Compute JI of each threshold and class, [T, K]; NaN for a class without a counted ground truth."""
    outcomes, weights = curves.counts.outcomes, curves.counts.image_weights
    assert outcomes is not None
    assert outcomes.matches is not None
    # Use the counts that the matches carry, or count now.
    matches, area = outcomes.matches, outcomes.area
    crowds, at = CROWDS.rows_of(matches.extra), jaccard_areas(protocol)
    if crowds is None:
        crowds, at = _crowd_counts(matches, protocol, [area]), [area]
    multiplicity = np.ones(len(matches.images)) if weights is None else weights
    # Counts ascend by class, so each class is a slice, [images of the class, S].
    T, K = matches.threshold_count, len(matches.categories)
    bounds = np.searchsorted(crowds.category, np.arange(K + 1)).tolist()
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
    """Best over the confidences of the mean ratio over the images, [images, S] each.

    The sum is exact before it is rounded: no order of images decides its last bit.
    """
    ratio = k / (m + n - k + EPSILON) * multiplicity[:, None]
    total = (((n != 0) | (m != 0)) * multiplicity[:, None]).sum(axis=0)
    return max(
        math.fsum(column) / there if there else math.nan
        for column, there in zip(ratio.T.tolist(), total.tolist(), strict=True)
    )


def _crowd_counts(matches: Matches, protocol: Protocol, areas: Sequence[int]) -> ClassImageRows:
    """Match every image by the largest sum of overlaps, at some area ranges, and count.

    Raises
    ------
    InputError
        When some overlaps were left out.
    """
    if not matches.every_pair or TRUTH_SHARE.of(matches.extra) is None:
        raise InputError(
            "overlapping pairs",
            "be all kept for the Jaccard index",
            got="only those that match",
            cause="very many overlap, so suppress first; or these are merged parts, of which detections were "
            "left out",
        )
    # Rows are the (class, image) pairs that have a detection or an object, [N]: most pairs are empty.
    images, K, T = len(matches.images), len(matches.categories), matches.threshold_count
    scores = protocol.jaccard.score_thresholds
    there = np.union1d(  # of a class and an image that have a detection or an object
        matches.category.astype(np.int64) * images + matches.image,
        matches.truth_category.astype(np.int64) * images + matches.truth_image,
    )
    counts = np.zeros((len(there), 3, len(areas), T, len(scores)), dtype=np.int32)
    # Match each class at each threshold and confidence; only the counts stay, as whole numbers.
    for a, area in enumerate(areas):
        counted = matches.counted(area)
        for t, k in np.ndindex(T, K):
            # The rows of a class are together, as their keys ascend.
            rows = slice(*np.searchsorted(there, [k * images, (k + 1) * images]).tolist())
            if rows.start == rows.stop:
                continue
            name = str(matches.categories.names[k])
            floor = float(protocol.matching.effective_thresholds_of(name)[t])
            # The pairs of the class are prepared once for all confidences.
            crowd = _Crowd(matches, counted, k, floor, np.arange(len(matches.iou)))
            for s, score in enumerate(scores):
                counts[rows, :, a, t, s] = crowd.counts(score)[there[rows] % max(images, 1)]
    # Drop the rows without a count.
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
        """Count partners, objects and detections of each image, for detections above a score; [I, 3]."""
        # Take the detections above the confidence and match them by the largest sum of overlaps.
        matches = self._matches
        chosen = self._of_class & (matches.score > score)
        edges = self._edges[chosen[matches.pair_detection[self._edges]]]
        taken = edges[
            heaviest_matching(matches.pair_detection[edges], matches.pair_truth[edges], matches.iou[edges])
        ]
        # Count partners, then detections: one in a region leaves the set, unless it has a partner.
        images = len(matches.images)
        k = np.bincount(matches.truth_image[matches.pair_truth[taken]], minlength=images)
        chosen &= ~self._in_region
        chosen[matches.pair_detection[taken]] = True
        n = np.bincount(matches.image[chosen], minlength=images)
        # Count objects in the same way: a covered one without a partner leaves the set.
        left = np.ones(len(matches.truth_image), dtype=bool)
        left[self._covered] = False
        left[matches.pair_truth[taken]] = True
        objects = self._objects[left[self._objects]]
        m = np.bincount(matches.truth_image[objects], minlength=images)
        return np.stack([k, m, n], axis=1)


def heaviest_matching(first: Positions, second: Positions, weight: FloatArray) -> Positions:
    """Return the edges of a bipartite matching of largest total weight, [k]; weights are positive."""
    if not len(weight):
        return np.empty(0, dtype=np.intp)
    # Sort the edges by component, the heaviest first in each.
    component = _components(first, second)
    order = np.lexsort((-weight, component))
    starts = run_starts(component[order])
    bounds = np.append(starts, len(order))
    # A component whose edges all share a row on one side needs no search: its heaviest edge is the matching.
    # Nearly all components are of this form, and one array operation decides them.
    single = np.ones(len(starts), dtype=bool)
    for side in (first, second):
        values = side[order]
        one = np.logical_and.reduceat(values == np.repeat(values[starts], np.diff(bounds)), starts)
        single = one if side is first else single | one
    taken = [order[starts[single]]]  # all edges meet in one object: the heaviest
    # Search the others one by one.
    for part in np.flatnonzero(~single).tolist():
        edges = order[bounds[part] : bounds[part + 1]]
        chosen = _augmented(first[edges].tolist(), second[edges].tolist(), weight[edges].tolist())
        taken.append(edges[chosen])
    return np.concatenate(taken)


def _components(first: Positions, second: Positions) -> Positions:
    """Return the number of the connected component of each edge, [E]."""
    _, a = np.unique(first, return_inverse=True)
    _, b = np.unique(second, return_inverse=True)
    # The least label spreads over either end of the edges in turn, until no edge has another label than its
    # neighbors.
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
        # Relax the edges until no gain grows, as Bellman and Ford do.
        while changed:
            changed = False
            for edge, (a, b) in enumerate(zip(first, second, strict=True)):
                if a not in gain or used.get(a) == edge:
                    continue
                value = gain[a] + weight[edge]
                if value > reached.get(b, float("-inf")) + 1e-12:  # else rounding could go round for ever
                    reached[b], through[b], changed = value, edge, True
                    if b in mate:
                        back = first[mate[b]]
                        gain[back] = value - weight[mate[b]]
        # Take the best path to a free node; without a gain the matching is complete.
        ends = [b for b in reached if b not in mate]
        if not ends:
            return sorted(used.values())
        end = max(ends, key=reached.__getitem__)
        if reached[end] <= 0:
            return sorted(used.values())
        # Walk back along the path and exchange its edges.
        node: int | None = end
        while node is not None:
            edge = through[node]
            before = used.get(first[edge])
            used[first[edge]] = mate[node] = edge
            node = None if before is None else second[before]


KINDS = (Kind("JI", "Jaccard Index      (JI)", _values, needs_order=True, count=with_crowd_counts),)
