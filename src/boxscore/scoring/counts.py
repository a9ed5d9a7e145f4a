"""Count true and false positives cumulatively, by class over descending scores.

Conventions
-----------
- Axes: D detections in class order, C of them with a candidate, T IoU thresholds, K classes.
- A detection is not *counted* if it is ignored: it matches an ignored ground truth, or it matches nothing and
  is outside the area range.
- Precision rises only at a true positive, so a curve needs cumulative counts only there.
- A counter counts up to each *run*. In :class:`TruePositiveCounts`, which counts every image one time, a run
  is a true positive. An extension adds another :class:`Counter` for image weights.
- *In-class* counts start at 0 in each class.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from typing import Any
from typing import Protocol as Protocol_

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import BoolArray, FloatArray, Positions
from boxscore._utils.ordering import group_starts
from boxscore._utils.records import NamedTuple
from boxscore.data.vocabulary import Categories
from boxscore.matching.matches import Matches
from boxscore.protocols.protocol import Protocol
from boxscore.protocols.tables.ap import TieOrder

Line = tuple[NDArray[np.integer[Any]], NDArray[np.integer[Any]]]


class Counter(Protocol_):
    """Counts up to each run of true positives; N runs of all thresholds, by threshold, class and score."""

    @property
    def outcomes(self) -> Outcomes | None:
        """The counted outcomes, if single detections are known."""

    @property
    def image_weights(self) -> FloatArray | None:
        """Multiplicity of each image, [I]; None: 1."""

    @property
    def true_positives(self) -> NDArray[np.integer[Any]]:
        """True positives, [T, K]."""

    @property
    def runs(self) -> NDArray[np.integer[Any]]:
        """Runs, [T, K]."""

    @property
    def weights_up_to(self) -> FloatArray | None:
        """Sum of the weights of the true positives up to each run, in-class, [N]; None: 1 each."""

    def run_of(self, nth: NDArray[np.int64], thresholds: slice, classes: slice) -> NDArray[np.int64]:
        """Return the run of its class that has the true positive with each number, from 0; [T or 1, k, R]."""

    def lines(self, tie_order: TieOrder | None = None) -> Iterator[Line]:
        """Yield, per threshold, the number of true positives and of counted detections up to each run.

        Both are in-class. ``tie_order`` replaces that of the counts.
        """

    @property
    def has_detections(self) -> BoolArray:
        """Whether there is a detection, counted or not, [K]."""

    def scores_of(self, runs: NDArray[np.int64]) -> FloatArray:
        """Scores of some of the N runs; NaN if they are not known."""

    def first_scores(self) -> FloatArray:
        """Score of the first detection of each class that has one, [K]; NaN if it is not known."""


class ScoredCounter(Counter, Protocol_):
    """A counter of single detections."""

    def up_to(
        self, end: Positions, categories: Positions
    ) -> tuple[NDArray[np.integer[Any]], NDArray[np.integer[Any]]]:
        """Count the true positives and the counted detections of classes before some positions.

        ``end`` and ``categories`` broadcast to a shape S; both are [T, *S].
        """


class ClassNumbers(Protocol_):
    """Numbers of whole classes: from a counter, or from ``Totals`` if the rows are in another process."""

    @property
    def positive(self) -> NDArray[Any]:
        """Ground truths in the denominator of recall, [K]."""

    @property
    def images(self) -> int:
        """Number of evaluated images."""

    @property
    def recalled(self) -> NDArray[Any]:
        """The numerator of recall: true positives, or the sum of their weights, [T, K]."""

    @property
    def counted(self) -> NDArray[np.int64]:
        """Counted detections, [T, K]."""

    @property
    def has_detections(self) -> BoolArray:
        """Whether there is a detection, counted or not, [K]."""

    @property
    def images_of_class(self) -> NDArray[np.int64]:
        """Images with an object in the denominator of recall, [K]."""

    def at_scores(self, scores: FloatArray) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Count the true positives and the counted detections with at least each score, [T, S, K] each."""


class Outcomes(NamedTuple):
    """Detections by class and descending score, and their outcomes; one area range and max detections."""

    category: NDArray[np.integer]
    """Ascending, [D]."""
    score: FloatArray
    """Descending in each class, [D]."""
    unmatched_counts: BoolArray
    """Whether each detection is a false positive if it matches nothing, [D]."""
    detection: Positions
    """Positions of the detections with a candidate, ascending, [C]."""
    true: BoolArray
    """Whether it is a true positive, [T, C]."""
    ignored: BoolArray
    """Whether its match is ignored, [T, C]."""
    positive: NDArray[Any]
    """Counted ground truths of each class, [K]; float64 if they have weights."""
    weight: FloatArray | None = None
    """Weight of each true positive, [T, C]; None: 1."""
    images: int = 0
    """Number of evaluated images, including those without objects; 0 if not needed."""
    categories: Categories | None = None
    """The classes; None if they do not belong to one matching, or share a curve."""
    matches: Matches | None = None
    """The matches that the outcomes were read from; None if they do not belong to one matching."""
    area: int = 0
    """Position of the area range."""

    def ends_at(self, scores: FloatArray) -> Positions:
        """Position after the last detection of each class with at least each score, [S, K]."""
        K = len(self.positive)
        bounds = group_starts(self.category, K).tolist()
        ends = np.empty((len(scores), K), dtype=np.intp)
        # Scores descend inside a class, so bisection finds each threshold; equal scores are all inside.
        for k, (low, high) in enumerate(itertools.pairwise(bounds)):
            ends[:, k] = low + np.searchsorted(-self.score[low:high], -scores, side="right")
        return ends

    @classmethod
    def of(cls, matches: Matches, protocol: Protocol, area: int = 0, cap: int = -1) -> Outcomes:
        """Read matches at an area range and max detections: positions on the axes A and M."""
        # Apply max detections. The ranking is already cut at the largest. A smaller limit drops higher ranks;
        # ranks within a whole image do not start at 0 in a class, so drop the rows instead.
        limit = protocol.caps[cap]
        if limit == protocol.caps[-1]:
            limit = None
        elif limit is not None and protocol.matching.cap_scope == "image_each":
            matches, limit = matches.take_ranks(limit), None
        inside = matches.inside(area)
        detection, true, ignored, weight = matches.pair_outcomes(area, max_detections=limit)
        return cls(
            matches.category,
            matches.score,
            inside if limit is None else inside & (matches.rank < limit),
            detection,
            true,
            ignored,
            matches.recall_total(area),
            weight,
            len(matches.images),
            matches.categories,
            matches,
            area,
        )

    @classmethod
    def all_counted(
        cls,
        category: NDArray[np.integer],
        score: FloatArray,
        true: BoolArray,
        positive: NDArray[np.int64],
        *,
        ignored: BoolArray | None = None,
    ) -> Outcomes:
        """Make outcomes of detections in class order; all count but ``ignored``. Both flags are [T, D]."""
        matched = np.flatnonzero((true if ignored is None else true | ignored).any(axis=0))
        true = true[:, matched]
        ignored = np.zeros_like(true) if ignored is None else ignored[:, matched]
        return cls(category, score, np.ones(len(score), dtype=bool), matched, true, ignored, positive)


class SingleRuns:
    """Methods shared by counters in which every true positive is a run."""

    def run_of(self, nth: NDArray[np.int64], thresholds: slice, classes: slice) -> NDArray[np.int64]:
        """Return the numbers unchanged: each true positive is a run."""
        return nth


class TruePositiveCounts(SingleRuns):
    """Counts up to each true positive, every image counted one time.

    The N true positives of all thresholds are ordered by threshold, then class, then score. ``tie_order``
    places the true positives among equal scores of their class. ``again`` computes outcomes that are released
    or not given.
    """

    image_weights = None

    def __init__(
        self,
        outcomes: Outcomes | None,
        tie_order: TieOrder = "as_ranked",
        again: Callable[[], Outcomes] | None = None,
    ) -> None:
        self._outcomes = outcomes
        self._tie_order, self._again = tie_order, again

    @property
    def outcomes(self) -> Outcomes:
        """The counted outcomes; recomputed if they were released."""
        if self._outcomes is None:
            assert self._again is not None
            self._outcomes = self._again()
        return self._outcomes

    def release(self) -> None:
        """Free the outcomes, 2T bytes or more per detection with a candidate, if they can be recomputed."""
        if self._again is not None:
            self._outcomes = None
            vars(self).pop("candidates", None)

    @property
    def positive(self) -> NDArray[Any]:
        """Counted ground truths of each class, [K]."""
        return self.outcomes.positive

    @property
    def images(self) -> int:
        """Number of evaluated images."""
        return self.outcomes.images

    @functools.cached_property
    def true_positives(self) -> Positions:
        """True positives of each threshold and class, [T, K]."""
        return np.diff(self.line_starts, axis=1)

    @property
    def runs(self) -> Positions:
        """Number of runs, [T, K]: the true positives."""
        return self.true_positives

    @functools.cached_property
    def weights_up_to(self) -> FloatArray | None:
        """Cumulative weights of the true positives, in-class, [N]; None without weights."""
        if self.outcomes.weight is None:
            return None
        sums = [
            np.cumsum(line[candidate][low:high])
            for line, candidate, starts in zip(
                self.outcomes.weight, self.candidates, self.line_starts.tolist(), strict=True
            )
            for low, high in itertools.pairwise(starts)
        ]
        return np.concatenate(sums) if sums else np.empty(0)

    @property
    def recalled(self) -> NDArray[Any]:
        """True positives, or the sums of their weights, [T, K]."""
        if self.weights_up_to is None:
            return self.true_positives
        ends = np.cumsum(self.true_positives).reshape(self.true_positives.shape) - 1
        return np.where(self.true_positives > 0, np.append(self.weights_up_to, 0.0)[ends], 0.0)

    def lines(self, tie_order: TieOrder | None = None) -> Iterator[Line]:
        """Yield, per threshold, the number of true positives and of counted detections up to each; in-class.

        The second is a cumulative count of the detections that count if unmatched, corrected at the few that
        a match moves in or out. Cumulative counts run through all classes; subtracting that at the start of
        the class makes them in-class.
        """
        # Count once for all thresholds: detections that count if unmatched, before each position [D + 1],
        # before each class [K] and up to each candidate [C].
        outcomes, order = self.outcomes, tie_order or self._tie_order
        detection, base = outcomes.detection, outcomes.unmatched_counts
        before = np.zeros(len(base) + 1, dtype=np.int32)  # counted detections before each position
        np.cumsum(base, out=before[1:])
        before_class = before[self._first_detections[:-1]]  # [K]
        if order == "as_ranked":
            up_to_candidate = before[1:][detection]  # [C]
        else:
            end = tie_ends(outcomes, order)[detection]  # [C]
            up_to_candidate, up_to_change = before[end], np.searchsorted(detection, end)  # [C]
        del before
        # Then, per threshold, count what matches move in or out, over the C candidates only. These are whole
        # numbers, so a difference of two cumulative counts is exact.
        changes = np.zeros(len(detection) + 1, dtype=np.int32)
        for moved, candidate, starts in zip(self._moved(), self.candidates, self.line_starts, strict=True):
            np.cumsum(moved, out=changes[1:])
            nth = np.arange(1, len(candidate) + 1, dtype=np.int32)
            counted = np.take(up_to_candidate, candidate)
            if order == "as_ranked":
                counted += np.take(changes[1:], candidate)
            else:
                # True positives move to one end of their tie. Up to that end, the ranked order has counted
                # all true positives of the tie or none of them. Correct by those between the end and this
                # one.
                counted += np.take(changes, np.take(up_to_change, candidate))
                counted += nth - true_positives_up_to(np.take(end, candidate), order)
            # Subtract what comes before the class: the counts become in-class, for all classes in one
            # operation.
            counts = np.diff(starts)
            counted -= np.repeat(before_class + changes[self.class_bounds[:-1]], counts)
            nth -= np.repeat(starts[:-1].astype(np.int32), counts)
            yield nth, counted
        vars(self).pop("candidates", None)  # 8 bytes per true positive, and fast to compute again

    @property
    def images_of_class(self) -> NDArray[np.int64]:
        """Images with an object of each class in the denominator of recall, [K]."""
        return images_of_classes(self.outcomes)

    def at_scores(self, scores: FloatArray) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Count the true positives and the counted detections with at least each score, [T, S, K] each."""
        return self.up_to(self.outcomes.ends_at(scores), np.arange(len(self.positive)))

    def up_to(self, end: Positions, categories: Positions) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Count the true positives and the counted detections of classes before some positions."""
        outcomes = self.outcomes
        detection, base = outcomes.detection, outcomes.unmatched_counts
        # Cumulative counts over all classes [D + 1]; bisection finds each position among the candidates.
        before = np.concatenate([[0], np.cumsum(base)])
        start = self._first_detections[categories]
        candidates_before = np.searchsorted(detection, end)
        true_positives, counted = (
            np.empty((len(outcomes.true), *end.shape), dtype=np.int64) for _ in range(2)
        )
        for t, (true, moved) in enumerate(zip(outcomes.true, self._moved(), strict=True)):
            # As in ``lines``: detections that count if unmatched, corrected by those that matches move.
            changes = np.zeros(len(detection) + 1, dtype=np.int64)
            np.cumsum(moved, out=changes[1:])
            true_before = np.concatenate([[0], np.cumsum(true)])
            class_start = self.class_bounds[categories]
            true_positives[t] = true_before[candidates_before] - true_before[class_start]
            counted[t] = before[end] - before[start] + changes[candidates_before] - changes[class_start]
        return true_positives, counted

    @functools.cached_property
    def counted(self) -> NDArray[np.int64]:
        """Counted detections of each threshold and class, [T, K]."""
        outcomes, K = self.outcomes, len(self.positive)
        # Count once the detections that count if unmatched, then correct by the few that matches move at each
        # threshold. ``bincount`` adds 1 and -1 in float64, which is exact.
        category = outcomes.category[outcomes.detection]
        unmatched = np.bincount(outcomes.category[outcomes.unmatched_counts], minlength=K)
        total = np.empty(self.true_positives.shape, dtype=np.int64)
        for t, moved in enumerate(self._moved()):
            change = np.bincount(category, weights=moved, minlength=K)
            total[t] = unmatched + change.astype(np.int64)
        return total

    def _moved(self) -> Iterator[NDArray[np.int8]]:
        """Yield, per threshold, 1 or -1 if a match makes a detection count or not count, else 0; [C]."""
        outcomes = self.outcomes
        base = outcomes.unmatched_counts[outcomes.detection]
        for true, ignored in zip(outcomes.true, outcomes.ignored, strict=True):
            yield (true & ~base).view(np.int8) - (ignored & base).view(np.int8)

    def scores_of(self, runs: NDArray[np.int64]) -> FloatArray:
        """Scores of some of the N true positives."""
        return self.outcomes.score[self.outcomes.detection[np.concatenate(self.candidates)[runs]]]

    @functools.cached_property
    def has_detections(self) -> BoolArray:
        """Whether each class has a detection, [K]."""
        return np.diff(self._first_detections) > 0

    def first_scores(self) -> FloatArray:
        """Score of the first detection of each class that has one, [K]."""
        score, first = np.full(len(self.positive), np.nan), self._first_detections[:-1]
        here = first < len(self.outcomes.score)
        score[here] = self.outcomes.score[first[here]]
        return score

    @functools.cached_property
    def _first_detections(self) -> Positions:
        """Position of the first detection of each class, and the end, [K + 1]."""
        return group_starts(self.outcomes.category, len(self.positive))

    @functools.cached_property
    def candidates(self) -> list[Positions]:
        """Which of the C detections are true positives, threshold by threshold."""
        return [np.flatnonzero(true) for true in self.outcomes.true]

    @functools.cached_property
    def class_bounds(self) -> Positions:
        """Where each class starts among the C detections, and the end; [K + 1]."""
        category = self.outcomes.category[self.outcomes.detection]
        return group_starts(category, len(self.positive))

    @functools.cached_property
    def line_starts(self) -> Positions:
        """Where each class starts among the true positives of a threshold, and the end; [T, K + 1]."""
        return np.stack([np.searchsorted(line, self.class_bounds) for line in self.candidates])


def tie_ends(outcomes: Outcomes, tie_order: TieOrder) -> Positions:
    """Return the end of its tie to which each detection moves if it is a true positive, [D]."""
    bounds = np.append(tie_starts(outcomes.category, outcomes.score), len(outcomes.score))
    return np.repeat(bounds[:-1] if tie_order == "true_positives_first" else bounds[1:], np.diff(bounds))


def true_positives_up_to(end: Positions, tie_order: TieOrder) -> Positions:
    """Count, for each true positive of a threshold, those before the end that it moves to, [n]."""
    starts = np.flatnonzero(np.concatenate([[len(end) > 0], end[1:] != end[:-1]]))
    bounds = np.append(starts, len(end))
    return np.repeat(bounds[:-1] if tie_order == "true_positives_first" else bounds[1:], np.diff(bounds))


def tie_starts(category: NDArray[np.integer], score: FloatArray) -> Positions:
    """Positions in class order at which a new class or score starts."""
    new = (score[1:] != score[:-1]) | (category[1:] != category[:-1])
    return np.flatnonzero(np.concatenate([[len(score) > 0], new]))


def images_of_classes(outcomes: Outcomes, weights: NDArray[Any] | None = None) -> NDArray[np.int64]:
    """Count the images with an object of each class in the denominator of recall, [K], by their weights."""
    matches, K = outcomes.matches, len(outcomes.positive)
    assert matches is not None
    there = matches.taking_part(outcomes.area)
    pairs = np.unique(matches.truth_image[there].astype(np.int64) * K + matches.truth_category[there])
    multiplicity = np.bincount(
        pairs % K, weights=None if weights is None else weights[pairs // K], minlength=K
    )
    return multiplicity.astype(np.int64)
