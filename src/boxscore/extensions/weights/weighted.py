"""Count under image weights: the same matches, with each image repeated a whole number of times.

Goal
----
This serves the bootstrap and slices by image. Weight 2 counts an image twice, weight 0 leaves it out.
Everything independent of the weights is prepared once; each set of weights then takes a few passes over the
true positives.

Conventions
-----------
- The copies of a detection are adjacent. Placing them image by image would give another number only if an
  image has detections of one class with equal scores.
- A true positive of weight ``w`` is repeated ``w`` times. The same code then computes the curves, and weights
  of one give exactly the unweighted result.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import BoolArray, FloatArray, Positions
from boxscore._utils.ordering import group_starts
from boxscore.errors import InputError
from boxscore.matching.matches import Matches
from boxscore.protocols.protocol import Protocol
from boxscore.protocols.tables.ap import TieOrder
from boxscore.scoring.counts import (
    Line,
    Outcomes,
    SingleRuns,
    TruePositiveCounts,
    images_of_classes,
    tie_ends,
    true_positives_up_to,
)

Counts = NDArray[np.int32]


class _Ends(NamedTuple):
    """Cumulative counts up to each true positive, [N]: true positives, base detections and moves."""

    true_positives: Positions
    base: Positions
    moves: Positions


class ImageWeights:
    """The outcomes of one area range and max detections, prepared for counting under many weights."""

    def __init__(self, matches: Matches, protocol: Protocol, area: int = 0, cap: int = -1) -> None:
        self.outcomes = outcomes = Outcomes.of(matches, protocol, area, cap)
        if outcomes.weight is not None:
            raise InputError("group.weight", "be 0 or 1 to weigh images", got=protocol.group.weight)
        assert outcomes.matches is not None
        matches = outcomes.matches
        self.tie_order = protocol.ap.tie_order
        self._ends: dict[TieOrder, _Ends] = {}
        # Keep the image of everything that a weight multiplies: objects, detections, true positives [N].
        truths = np.flatnonzero(matches.taking_part(area))
        self.truth_image = matches.truth_image[truths]
        self.truth_category = matches.truth_category[truths]
        self.image = matches.image
        plain = TruePositiveCounts(outcomes)
        # T, K.
        self.shape = plain.true_positives.shape
        T, K = self.shape
        self.true_detection = outcomes.detection[np.concatenate(plain.candidates)]
        self.true_image = self.image[self.true_detection]
        # Start of each of T * K segments, and the end.
        self.starts = np.concatenate([[0], np.cumsum(plain.true_positives)])

        # Counted detections up to a position: those that count unmatched, and corrections by matches.
        base = outcomes.unmatched_counts
        self.base_image = self.image[base]
        before = np.concatenate([[0], np.cumsum(base)])
        base_candidate = base[outcomes.detection]
        moved_in, moved_out = outcomes.true & ~base_candidate, outcomes.ignored & base_candidate
        # List the detections whose count a match changes, threshold by threshold, each with its sign and
        # segment.
        threshold, candidate = np.nonzero(moved_in | moved_out)
        moved = outcomes.detection[candidate]
        self.move_image = self.image[moved]
        self.move_sign = np.where(moved_in[threshold, candidate], 1, -1).astype(np.int32)
        self.move_segment = threshold * K + outcomes.category[moved]
        # Put all thresholds on one ascending axis with a row of positions each, so that one search serves all
        # of them.
        row = np.arange(T) * (len(base) + 1)
        # Ascending.
        self._moves = row[threshold] + moved
        class_start = np.searchsorted(outcomes.category, np.arange(K))
        self.base_start = np.tile(before[class_start], T)  # [T*K]
        self.move_start = np.searchsorted(self._moves, (row[:, None] + class_start).ravel(), side="left")

    def ends(self, tie_order: TieOrder) -> _Ends:
        """Return the cumulative counts up to each true positive, by its place among equal scores."""
        if tie_order not in self._ends:
            self._ends[tie_order] = self.ends_under(tie_order)
        return self._ends[tie_order]

    def ends_under(self, tie_order: TieOrder) -> _Ends:
        """Compute :meth:`ends`."""
        base = self.outcomes.unmatched_counts
        before = np.concatenate([[0], np.cumsum(base)])
        T, K = self.shape
        sizes = np.diff(self.starts[::K]) if K else np.zeros(T, dtype=np.intp)
        end, true_end = self.true_detection + 1, np.arange(1, len(self.true_detection) + 1)
        if tie_order != "as_ranked":
            end = tie_ends(self.outcomes, tie_order)[self.true_detection]
            lines = np.split(end, np.cumsum(sizes)[:-1])
            true_end = np.concatenate([true_positives_up_to(line, tie_order) for line in lines])
            true_end += np.repeat(np.cumsum(sizes) - sizes, sizes)
        row_of_true = np.repeat(np.arange(T) * (len(base) + 1), sizes)
        return _Ends(true_end, before[end], np.searchsorted(self._moves, row_of_true + end, side="left"))

    def counts(self, weights: FloatArray) -> WeightedCounts:
        """Count each image by its weight: whole numbers, [images]."""
        return WeightedCounts(self, weights)


class WeightedCounts(SingleRuns):
    """Cumulative counts up to each true positive under image weights."""

    weights_up_to = None

    def __init__(self, prepared: ImageWeights, weights: FloatArray) -> None:
        self._prepared = prepared
        self._weights: Counts = weights.astype(np.int32)

    @property
    def outcomes(self) -> Outcomes:
        """The outcomes that are counted."""
        return self._prepared.outcomes

    @functools.cached_property
    def images(self) -> int:
        """Number of images, weighted."""
        return int(self._weights.sum(dtype=np.int64))

    @functools.cached_property
    def positive(self) -> NDArray[np.int64]:
        """Counted ground truths of each class, [K]."""
        weight = np.take(self._weights, self._prepared.truth_image)
        positive = np.bincount(
            self._prepared.truth_category, weights=weight, minlength=self._prepared.shape[1]
        )
        return positive.astype(np.int64)

    @functools.cached_property
    def true_positives(self) -> Positions:
        """True positives of each threshold and class, [T, K]."""
        counts: Positions = np.diff(self._running_true[self._prepared.starts]).astype(np.intp)
        return counts.reshape(self._prepared.shape)

    @property
    def runs(self) -> Positions:
        """Number of runs, [T, K]: every true positive is one."""
        return self.true_positives

    @property
    def recalled(self) -> Positions:
        """True positives, [T, K]."""
        return self.true_positives

    def lines(self, tie_order: TieOrder | None = None) -> Iterator[Line]:
        """Yield the true positives and counted detections up to each of them, per threshold and class."""
        prepared, counts = self._prepared, self.true_positives.ravel()
        # Weight the cumulative counts: false positives before each true positive are weighted base detections
        # minus weighted true positives. They are whole numbers, so differences of cumulative sums are exact.
        ends = prepared.ends(tie_order or prepared.tie_order)
        base = _running(np.take(self._weights, prepared.base_image))
        false = np.take(base, ends.base)
        false -= np.take(self._running_true, ends.true_positives)
        offset = base[prepared.base_start] - self._running_true[prepared.starts[:-1]]
        # Add the corrections by matches, and subtract the counts before the segment.
        if len(prepared.move_image):
            moved = _running(prepared.move_sign * np.take(self._weights, prepared.move_image))
            false += np.take(moved, ends.moves)
            offset += moved[prepared.move_start]
        false -= np.repeat(offset, np.diff(prepared.starts))
        # The copies of a true positive are adjacent and have the same false positives before them.
        nth = np.arange(1, int(counts.sum()) + 1, dtype=np.int32)
        nth -= np.repeat(np.cumsum(counts, dtype=np.int32) - counts.astype(np.int32), counts)
        counted = np.repeat(false, self._true_weights) + nth
        bounds = np.cumsum([0, *self.true_positives.sum(axis=1)]).tolist()
        for low, high in itertools.pairwise(bounds):
            yield nth[low:high], counted[low:high]

    @property
    def image_weights(self) -> FloatArray:
        """Multiplicity of each image, [I]."""
        return self._weights.astype(np.float64)

    @property
    def images_of_class(self) -> NDArray[np.int64]:
        """Images with an object of each class in the denominator of recall, weighted, [K]."""
        return images_of_classes(self.outcomes, self._weights)

    def at_scores(self, scores: FloatArray) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Count the true positives and the counted detections at or above each score, [T, S, K] each."""
        return self.up_to(self.outcomes.ends_at(scores), np.arange(self._prepared.shape[1]))

    def up_to(self, end: Positions, categories: Positions) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Count the true positives and the counted detections of classes before some positions."""
        prepared, (T, K) = self._prepared, self._prepared.shape
        end, categories = np.broadcast_arrays(end, categories)
        unmatched = self.outcomes.unmatched_counts
        # Cumulative weights of base detections and of corrections serve all thresholds and classes.
        before = np.concatenate([[0], np.cumsum(unmatched)])
        base = _running(np.take(self._weights, prepared.base_image))
        moved = _running(prepared.move_sign * np.take(self._weights, prepared.move_image))
        true, counted = (np.empty((T, *end.shape), dtype=np.int64) for _ in range(2))
        # Per threshold, bisect the positions among the true positives and the corrections of all classes,
        # which are sorted by position.
        for t in range(T):
            segment = t * K + categories
            first, last = prepared.starts[[t * K, (t + 1) * K]]
            nth = first + np.searchsorted(prepared.true_detection[first:last], end)
            # Differences of cumulative sums give each count without visiting the detections.
            true[t] = self._running_true[nth] - self._running_true[prepared.starts[segment]]
            move = np.searchsorted(prepared._moves, t * (len(unmatched) + 1) + end)
            of_class = base[before[end]] - base[prepared.base_start[segment]]
            counted[t] = of_class + moved[move] - moved[prepared.move_start[segment]]
        return true, counted

    @functools.cached_property
    def counted(self) -> NDArray[np.int64]:
        """Counted detections of each threshold and class, [T, K]."""
        prepared, (T, K) = self._prepared, self._prepared.shape
        outcomes = self.outcomes
        unmatched = np.bincount(
            outcomes.category[outcomes.unmatched_counts],
            weights=np.take(self._weights, prepared.base_image),
            minlength=K,
        )
        moved = prepared.move_sign * np.take(self._weights, prepared.move_image)
        change = np.bincount(prepared.move_segment, weights=moved, minlength=T * K)
        return (unmatched + change.reshape(T, K)).astype(np.int64)

    def scores_of(self, runs: NDArray[np.int64]) -> FloatArray:
        """Return the scores of some of the N true positives."""
        return self.outcomes.score[np.repeat(self._prepared.true_detection, self._true_weights)[runs]]

    @property
    def has_detections(self) -> BoolArray:
        """Return whether each class has a detection in an image that counts, [K]."""
        return np.diff(self._first_detections[1]) > 0

    def first_scores(self) -> FloatArray:
        """Return the score of the first detection of each class that has one, [K]."""
        present, first = self._first_detections
        return np.append(self.outcomes.score[present], np.nan)[first[:-1]]

    @functools.cached_property
    def _first_detections(self) -> tuple[Positions, Positions]:
        """Return detections in images that count, and the start of each class, with the end, [K + 1]."""
        present = np.flatnonzero(np.take(self._weights, self._prepared.image))
        first = group_starts(self.outcomes.category[present], self._prepared.shape[1])
        return present, first

    @functools.cached_property
    def _true_weights(self) -> Counts:
        return np.take(self._weights, self._prepared.true_image)

    @functools.cached_property
    def _running_true(self) -> Counts:
        return _running(self._true_weights)


def _running(counts: Counts) -> Counts:
    """Return the cumulative sum with a leading 0."""
    total = np.zeros(len(counts) + 1, dtype=np.int32)
    np.cumsum(counts, out=total[1:])
    return total
