"""Running counts of true and false positives, by class over descending scores.

Conventions
-----------
- Axes: D detections in class order, C of them with an outcome of their own, T IoU thresholds, K classes.
- A detection that is ignored (its ground truth is, or it matches nothing and lies outside the area range)
  is not *counted*.
- :class:`HitCounts` counts up to each true positive, at all thresholds: curves need nothing between them.
  :class:`ScoreCounts` counts up to each distinct score, at one threshold: what a confidence threshold keeps.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.ordering import descending_order
from boxscore._utils.records import record
from boxscore.matching.matches import Matches
from boxscore.protocols.protocol import Protocol, TieOrder

__all__ = [
    "CountedDetections",
    "HitCounts",
    "Outcomes",
    "ScoreCounts",
    "counted_detections",
    "hits_up_to",
    "tie_ends",
    "tie_starts",
]

BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]
Positions = NDArray[np.intp]


class Outcomes(NamedTuple):
    """Detections by class and descending score, and their outcomes; one area range and cap."""

    category: NDArray[np.integer]
    """Ascending, [D]."""
    score: FloatArray
    """Descending in each class, [D]."""
    unmatched_counts: BoolArray
    """Whether each detection is a false positive where it matches nothing, [D]."""
    detection: Positions
    """Positions of those that may match, ascending, [C]."""
    true: BoolArray
    """Whether it is a true positive, [T, C]."""
    ignored: BoolArray
    """Whether its match is ignored, [T, C]."""
    positive: NDArray[Any]
    """Counted ground truths of each class, [K]; float64 where they have weights."""
    weight: FloatArray | None = None
    """How much each counts where it is a true positive, [T, C]; None: 1."""
    images: int = 0
    """Images that were evaluated, those without any objects too; 0 where nobody asks."""
    class_columns: Mapping[str, NDArray[Any]] = MappingProxyType({})
    """What else is known of the classes, [K] each."""

    @classmethod
    def of(cls, matches: Matches, protocol: Protocol, area: int = 0, cap: int = -1) -> Outcomes:
        """Read matches at an area range and detection cap: positions on the axes A and M."""
        limit = protocol.caps[cap]
        if limit == protocol.caps[-1]:  # the ranking is cut at it
            limit = None
        inside = matches.inside(area)
        detection, true, ignored, weight = matches.pair_outcomes(area, max_detections=limit)
        return cls(
            matches.category,
            matches.score,
            inside if limit is None else inside & (matches.rank < limit),
            detection,
            true,
            ignored,
            matches.positives(area),
            weight,
            len(matches.images),
            matches.categories.columns,
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
        """Take detections in class order, all counted except ``ignored``; that and ``true`` are [T, D]."""
        nothing = np.zeros(true.shape, dtype=bool)
        return cls(
            category,
            score,
            np.ones(len(score), dtype=bool),
            np.arange(len(score)),
            true,
            nothing if ignored is None else ignored,
            positive,
        )


class HitCounts:
    """Counts up to each true positive, every image counted once.

    The N true positives of all thresholds are ordered by threshold, then class, then score. ``tie_order``
    says where the true positives stand among equal scores of their class.
    """

    def __init__(self, outcomes: Outcomes, tie_order: TieOrder = "as_ranked") -> None:
        self.outcomes = outcomes
        self._tie_order = tie_order

    @property
    def positive(self) -> NDArray[Any]:
        """Counted ground truths of each class, [K]."""
        return self.outcomes.positive

    @property
    def images(self) -> int:
        """Images that were evaluated."""
        return self.outcomes.images

    @functools.cached_property
    def hits(self) -> Positions:
        """True positives of each threshold and class, [T, K]."""
        return np.diff(self.line_starts, axis=1)

    def hit_weights(self) -> list[FloatArray] | None:
        """How much each true positive counts, threshold by threshold; None: 1 each."""
        weight = self.outcomes.weight
        if weight is None:
            return None
        return [line[candidate] for line, candidate in zip(weight, self.candidates, strict=True)]

    def lines(
        self, tie_order: TieOrder | None = None
    ) -> Iterator[tuple[NDArray[np.integer], NDArray[np.integer]]]:
        """Yield, per threshold, the number of true positives and of counted detections up to each; in-class.

        A running count of the detections that count when unmatched, corrected at the few that a match moves
        in or out. ``tie_order`` takes the place of the counts' own.
        """
        outcomes, order = self.outcomes, tie_order or self._tie_order
        detection, base = outcomes.detection, outcomes.unmatched_counts
        before = np.zeros(len(base) + 1, dtype=np.int64)  # counted detections before each position
        np.cumsum(base, out=before[1:])
        before_class = before[np.searchsorted(outcomes.category, np.arange(len(self.positive)))]  # [K]
        end = detection + 1 if order == "as_ranked" else tie_ends(outcomes, order)[detection]  # [C]
        up_to_candidate = before[end]  # [C]
        up_to_change = None if order == "as_ranked" else np.searchsorted(detection, end)  # [C]
        base_candidate = base[detection]  # [C]
        changes = np.zeros(len(detection) + 1, dtype=np.int64)
        for true, ignored, candidate, starts in zip(
            outcomes.true, outcomes.ignored, self.candidates, self.line_starts, strict=True
        ):
            moved_in, moved_out = true & ~base_candidate, ignored & base_candidate
            np.cumsum(moved_in.view(np.int8) - moved_out.view(np.int8), out=changes[1:])
            nth = np.arange(1, len(candidate) + 1)
            counted = np.take(up_to_candidate, candidate)
            if up_to_change is None:
                counted += np.take(changes[1:], candidate)
            else:
                counted += np.take(changes, np.take(up_to_change, candidate))
                counted += nth - hits_up_to(np.take(end, candidate), order)
            # Both counts run through all classes: subtract what came before the class.
            counts = np.diff(starts)
            counted -= np.repeat(before_class + changes[self.class_bounds[:-1]], counts)
            nth -= np.repeat(starts[:-1], counts)
            yield nth, counted
        vars(self).pop("candidates", None)  # found again in no time, and 8 bytes per true positive

    def totals(self) -> NDArray[np.int64]:
        """Count the counted detections of each threshold and class, [T, K]."""
        outcomes, K = self.outcomes, len(self.positive)
        category = outcomes.category[outcomes.detection]
        base = outcomes.unmatched_counts[outcomes.detection]
        unmatched = np.bincount(outcomes.category[outcomes.unmatched_counts], minlength=K)
        total = np.empty(self.hits.shape, dtype=np.int64)
        for t, (true, ignored) in enumerate(zip(outcomes.true, outcomes.ignored, strict=True)):
            moved = (true & ~base).astype(np.int64) - (ignored & base)
            change = np.bincount(category, weights=moved, minlength=K)
            total[t] = unmatched + change.astype(np.int64)
        return total

    def hit_detections(self) -> Positions:
        """Position of the detection of each true positive, [N]."""
        return self.outcomes.detection[np.concatenate(self.candidates)]

    def first_detections(self) -> tuple[Positions, BoolArray]:
        """Position of the first detection of each class, and whether there is one; [K]."""
        first = np.searchsorted(self.outcomes.category, np.arange(len(self.positive) + 1))
        return first[:-1], np.diff(first) > 0

    @functools.cached_property
    def candidates(self) -> list[Positions]:
        """Which of the C detections are true positives, threshold by threshold."""
        return [np.flatnonzero(true) for true in self.outcomes.true]

    @functools.cached_property
    def class_bounds(self) -> Positions:
        """Where each class starts among the C detections, and the end; [K + 1]."""
        category = self.outcomes.category[self.outcomes.detection]
        return np.searchsorted(category, np.arange(len(self.positive) + 1))

    @functools.cached_property
    def line_starts(self) -> Positions:
        """Where each class starts among the true positives of a threshold, and the end; [T, K + 1]."""
        return np.stack([np.searchsorted(line, self.class_bounds) for line in self.candidates])


def tie_ends(outcomes: Outcomes, tie_order: TieOrder) -> Positions:
    """To which end of its equal scores each detection moves where it is a true positive, [D].

    Up to that position is counted as if nothing were moved. What a true positive's own number has more or
    less than :func:`hits_up_to` there is then added.
    """
    bounds = np.append(tie_starts(outcomes.category, outcomes.score), len(outcomes.score))
    return np.repeat(bounds[:-1] if tie_order == "true_positives_first" else bounds[1:], np.diff(bounds))


def hits_up_to(end: Positions, tie_order: TieOrder) -> Positions:
    """Count the true positives of a threshold before the end that each moves to (ascending), [n]."""
    starts = np.flatnonzero(np.concatenate([[len(end) > 0], end[1:] != end[:-1]]))
    bounds = np.append(starts, len(end))
    return np.repeat(bounds[:-1] if tie_order == "true_positives_first" else bounds[1:], np.diff(bounds))


def tie_starts(category: NDArray[np.integer], score: FloatArray) -> Positions:
    """Positions in class order at which a new class or score starts."""
    new = (score[1:] != score[:-1]) | (category[1:] != category[:-1])
    return np.flatnonzero(np.concatenate([[len(score) > 0], new]))


# ---------------------------------------------------------------- one threshold, every score


class CountedDetections(NamedTuple):
    """The N counted detections at one threshold and area range, in class order."""

    category: NDArray[np.int32]
    score: FloatArray
    true: BoolArray
    iou: FloatArray
    """With the ground truth it hit; NaN unless a true positive."""
    positive: NDArray[np.int64]
    """Counted ground truths of each class, [K]."""


def counted_detections(matches: Matches, threshold: int, area: int) -> CountedDetections:
    """Select the counted detections at a threshold and area range: positions on the axes T and A."""
    outcomes = matches.detection_outcomes(threshold, area)
    kept = np.flatnonzero(outcomes.counted)
    true = outcomes.true[kept]
    return CountedDetections(
        matches.category[kept],
        matches.score[kept],
        true,
        np.where(true, outcomes.iou[kept], np.nan),
        matches.positives(area),
    )


@record(frozen=True, eq=False)
class ScoreCounts:
    """Counts at every distinct score, per class and over all classes: what each confidence threshold keeps.

    Attributes
    ----------
    score : ndarray of float64, [N]
        Class by class, all classes together last; descending in each.
    true, false : ndarray of int64, [N]
        Detections of this score or a higher one.
    distance : ndarray of float64, [N]
        Sum of 1 - IoU over the true ones.
    bounds : ndarray of intp, [K + 2]
        Where each class starts, where all classes together start, and the end.
    positive : ndarray of int64, [K + 1]
        Counted ground truths of each class, and of all.
    """

    score: FloatArray
    true: NDArray[np.int64]
    false: NDArray[np.int64]
    distance: FloatArray
    bounds: Positions
    positive: NDArray[np.int64]

    @classmethod
    def of(cls, counted: CountedDetections) -> ScoreCounts:
        """Count detections."""
        K = len(counted.positive)
        bounds = np.searchsorted(counted.category, np.arange(K + 1)).tolist()
        parts: list[Positions | slice] = [slice(low, high) for low, high in itertools.pairwise(bounds)]
        columns = [_up_to_scores(counted, part) for part in [*parts, descending_order(counted.score)]]
        score, true, false, distance = (np.concatenate(column) for column in zip(*columns, strict=True))
        ends = np.cumsum([0, *(len(column[0]) for column in columns)])
        positive = np.append(counted.positive, counted.positive.sum())
        return cls(score, true, false, distance, ends, positive)

    @property
    def precision(self) -> FloatArray:
        """Precision of what each threshold keeps, [N]."""
        return self.true / (self.true + self.false)

    def part(self, k: int) -> slice:
        """Return the positions of a class, or of all classes together (K)."""
        return slice(int(self.bounds[k]), int(self.bounds[k + 1]))


def _up_to_scores(
    counted: CountedDetections, part: Positions | slice
) -> tuple[FloatArray, NDArray[np.int64], NDArray[np.int64], FloatArray]:
    """Count up to the last detection of each distinct score; scores descend."""
    score, true, iou = counted.score[part], counted.true[part], counted.iou[part]
    last = np.flatnonzero(np.append(score[1:] != score[:-1], True)) if len(score) else np.empty(0, np.intp)
    up_to = np.cumsum(true, dtype=np.int64)[last]
    distance = np.cumsum(np.where(true, 1 - iou, 0.0))[last]
    return score[last], up_to, last + 1 - up_to, distance
