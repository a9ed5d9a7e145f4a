"""From matches to recall, interpolated precision and AP, for every class and threshold at once.

Goal
----
pycocotools' ``accumulate`` and the VOC kit's ``VOCap`` to the last bit, at the cost of the true positives.

Conventions
-----------
- Precision rises only at a true positive, so the envelope of a curve and every look-up by recall need only
  those positions. The ``i``-th true positive of a class has precision ``i / (n + eps)``, where ``n`` is the
  number of counted detections up to it: one running count of detections inside the area range, corrected
  at the few that a match moved in or out.
- How many true positives recall point ``r`` needs depends only on the class's positives; it is found once,
  by comparing the floats that pycocotools compares. The interpolated precision is then the largest
  precision of each stretch between two needs (``maximum.reduceat``), and a running maximum from the right.
- Detections whose match is ignored, or that match nothing and lie outside the area range, do not count.
- A class without a counted ground truth has no curve: NaN. With ground truth and no detection it is 0.
"""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
from numpy.typing import NDArray

from boxscore.matching.matches import Matches, PairOutcomes
from boxscore.protocols.protocol import Protocol
from boxscore.scoring.interpolation import curve_area

__all__ = ["TruePositives", "needed_hits", "tie_starts"]

FloatArray = NDArray[np.float64]


@dataclasses.dataclass(frozen=True, eq=False)
class TruePositives:
    """The true positives of one area range and detection cap, and what follows from them.

    Attributes
    ----------
    matches : Matches
    protocol : Protocol
    category_count : int
        K.
    area, cap : int
        Positions on the axes A and M.

    Notes
    -----
    The N true positives of all thresholds come segment by segment: by threshold, then class, then score.
    """

    matches: Matches
    protocol: Protocol
    category_count: int
    area: int = 0
    cap: int = -1

    @functools.cached_property
    def positive(self) -> NDArray[np.int64]:
        """Counted ground truths of each class, [K]."""
        return self.matches.positives(self.area)

    @functools.cached_property
    def recall(self) -> FloatArray:
        """Recall reached at each threshold by each class, [T, K]."""
        undefined = np.full(self._counts.shape, np.nan)
        reached: FloatArray = np.divide(self._counts, self.positive, out=undefined, where=self.positive > 0)
        return reached

    @functools.cached_property
    def interpolated(self) -> FloatArray:
        """Precision at the protocol's recall points, [T, R, K]; 0 past the highest recall."""
        entry, reached = self._entries
        ends = (self._starts + self._counts)[..., None]  # or the last stretch would run into the next segment
        bounds = np.concatenate([entry, ends], axis=-1)  # [T,K,R+1]
        stretch = np.maximum.reduceat(np.append(self.precision, 0.0), bounds.ravel())
        stretch = stretch.reshape(bounds.shape)[..., :-1]
        stretch[~reached] = 0.0
        envelope = np.maximum.accumulate(stretch[..., ::-1], axis=-1)[..., ::-1]
        envelope[:, self._undefined] = np.nan
        return np.ascontiguousarray(envelope.transpose(0, 2, 1))

    @functools.cached_property
    def scores(self) -> FloatArray:
        """Score of the detection that reaches each recall point, [T, R, K]; 0 past the highest recall."""
        entry, reached = self._entries
        first = np.searchsorted(self.matches.category, np.arange(self.category_count + 1))
        # Recall point 0 is reached by the first detection of the class, whatever it is.
        at_once = (self._needed.T == 0)[None]  # [1,K,R]
        position = np.where(
            at_once,
            first[None, :-1, None],
            np.append(self._detection[np.concatenate(self._candidates)], 0)[entry],
        )
        reached = np.where(at_once, (np.diff(first) > 0)[None, :, None], reached)
        score = np.where(reached, np.append(self.matches.score, 0.0)[position], 0.0)
        score[:, self.positive == 0] = np.nan
        return np.ascontiguousarray(score.transpose(0, 2, 1))

    @functools.cached_property
    def average_precision(self) -> FloatArray:
        """AP of each threshold and class, [T, K].

        References
        ----------
        pycocotools ``cocoeval.py`` (points); the PASCAL VOC kit, ``VOCap.m`` (area) and ``VOCevaldet.m``
        (11 points).
        """
        if self.protocol.ap.interpolation != "points":
            return self._areas()
        if self.protocol.ap.sequential_mean:
            summed: FloatArray = np.cumsum(self.interpolated / self.interpolated.shape[1], axis=1)[:, -1]
            return summed
        mean: FloatArray = np.ascontiguousarray(self.interpolated.transpose(0, 2, 1)).mean(axis=-1)
        return mean

    @functools.cached_property
    def precision(self) -> FloatArray:
        """Precision at each true positive, [N]."""
        matches, detection, inside = self.matches, self._detection, self._inside
        before = np.zeros(len(inside) + 1, dtype=np.int64)  # counted detections before each place
        np.cumsum(self._base, out=before[1:])
        before_class = before[np.searchsorted(matches.category, np.arange(self.category_count))]  # [K]
        up_to_candidate = before[1:][detection]  # [C]
        inside_candidate = inside[detection]  # [C]

        lines = []
        changes = np.zeros(len(detection) + 1, dtype=np.int64)
        for true, ignored, candidate, starts in zip(
            *self._outcomes, self._candidates, self._line_starts, strict=True
        ):
            moved_in, moved_out = true & ~inside_candidate, ignored & inside_candidate
            np.cumsum(moved_in.view(np.int8) - moved_out.view(np.int8), out=changes[1:])
            counted = np.take(up_to_candidate, candidate)
            counted += np.take(changes[1:], candidate)
            if self.protocol.ap.tie_order != "as_ranked":
                counted = self._with_ties_moved(detection[candidate], before, changes)
            nth = np.arange(1, len(candidate) + 1)
            # Both counts ran on through all classes: take off what came before the class.
            counts = np.diff(starts)
            counted -= np.repeat(before_class + changes[self._class_bounds[:-1]], counts)
            nth -= np.repeat(starts[:-1], counts)
            lines.append(nth / (counted + self.protocol.ap.precision_epsilon))
        return np.concatenate(lines)

    @functools.cached_property
    def _inside(self) -> NDArray[np.bool_]:
        """Whether each detection's own area lies in the area range, [D]."""
        return self.matches.inside(self.area)

    @functools.cached_property
    def _base(self) -> NDArray[np.bool_]:
        """Whether each detection counts when it matches nothing, [D]."""
        limit = self.protocol.caps[self.cap]
        if limit is None or self._is_largest_cap:
            return self._inside
        return self._inside & (self.matches.rank < limit)

    @functools.cached_property
    def _undefined(self) -> NDArray[np.bool_]:
        """Classes without a curve, [K]: no counted ground truth, and no rule that makes it 0."""
        rule = self.protocol.ap.absent_classes
        absent: NDArray[np.bool_] = self.positive == 0
        if rule == "all_zero":
            return np.zeros_like(absent)
        if rule == "zero":
            absent &= np.bincount(self.matches.category, minlength=self.category_count) == 0
        return absent

    def _with_ties_moved(
        self, place: NDArray[np.intp], before: NDArray[np.int64], changes: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Count up to each true positive as if they stood first, or last, among equal scores."""
        starts = tie_starts(self.matches)
        bounds = np.append(starts, len(self.matches))
        tie = np.searchsorted(starts, place, side="right") - 1  # ascending
        first = self.protocol.ap.tie_order == "true_positives_first"
        edge = bounds[tie] if first else bounds[tie + 1]
        side = np.searchsorted(tie, tie, side="left" if first else "right")
        beyond = np.arange(1, len(tie) + 1) - side  # from the edge to the true positive
        at_edge = before[edge] + changes[np.searchsorted(self._detection, edge)]
        counted: NDArray[np.int64] = at_edge + beyond
        return counted

    @property
    def _is_largest_cap(self) -> bool:
        return self.protocol.caps[self.cap] == self.protocol.caps[-1]

    @functools.cached_property
    def _pair_outcomes(self) -> PairOutcomes:
        limit = None if self._is_largest_cap else self.protocol.caps[self.cap]
        return self.matches.pair_outcomes(self.area, max_detections=limit)

    @property
    def _detection(self) -> NDArray[np.intp]:
        """Positions in class order of the C detections that have a candidate."""
        return self._pair_outcomes.detection

    @property
    def _outcomes(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Whether each detection with a candidate is a true positive, and whether it is ignored; [T, C]."""
        return self._pair_outcomes.true, self._pair_outcomes.ignored

    @functools.cached_property
    def _candidates(self) -> list[NDArray[np.intp]]:
        """Which of the C detections are true positives, threshold by threshold."""
        return [np.flatnonzero(true) for true in self._outcomes[0]]

    @functools.cached_property
    def _class_bounds(self) -> NDArray[np.intp]:
        """Where each class starts among the C detections, and the end; [K + 1]."""
        category = self.matches.category[self._detection]
        return np.searchsorted(category, np.arange(self.category_count + 1))

    @functools.cached_property
    def _line_starts(self) -> NDArray[np.intp]:
        """Where each class starts among the true positives of a threshold, and the end; [T, K + 1]."""
        return np.stack([np.searchsorted(line, self._class_bounds) for line in self._candidates])

    @functools.cached_property
    def _counts(self) -> NDArray[np.intp]:
        """Count the true positives of each threshold and class, [T, K]."""
        return np.diff(self._line_starts, axis=1)

    @functools.cached_property
    def _starts(self) -> NDArray[np.intp]:
        """Where the segment of each threshold and class starts among all true positives, [T, K]."""
        ends = np.cumsum(self._counts).reshape(self._counts.shape)
        starts: NDArray[np.intp] = ends - self._counts
        return starts

    @functools.cached_property
    def _needed(self) -> NDArray[np.int64]:
        """Fewest true positives ``n`` with ``n / positive >= point`` in floating point; [R, K]."""
        return needed_hits(np.array(self.protocol.ap.recall_points), self.positive)

    @functools.cached_property
    def _entries(self) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The true positive that reaches each recall point, and whether there is one; [T, K, R]."""
        counts = self._counts[..., None]  # [T,K,1]
        needed = np.maximum(self._needed.T[None], 1)  # [1,K,R]
        entry = np.minimum(needed - 1, counts) + self._starts[..., None]
        return entry, needed <= counts

    def _areas(self) -> FloatArray:
        """Area under the curve by the protocol's rule, [T, K]."""
        category = self.matches.category
        unmatched = np.bincount(category[self._base], minlength=self.category_count)
        inside = self._inside[self._detection]
        ap = np.zeros(self.recall.shape)
        for t, (true, ignored) in enumerate(zip(*self._outcomes, strict=True)):
            moved = (true & ~inside).astype(np.int64) - (ignored & inside)
            change = np.bincount(category[self._detection], weights=moved, minlength=self.category_count)
            total = unmatched + change.astype(np.int64)
            for k in np.flatnonzero(self.positive).tolist():
                start = int(self._starts[t, k])
                precision = self.precision[start : start + int(self._counts[t, k])]
                counted = np.rint(np.arange(1, len(precision) + 1) / precision).astype(np.int64)
                ap[t, k] = curve_area(
                    precision, counted, int(total[k]), int(self.positive[k]), self.protocol.ap
                )
        ap[:, self._undefined] = np.nan
        return ap


def needed_hits(points: FloatArray, positive: NDArray[np.int64]) -> NDArray[np.int64]:
    """Fewest true positives ``n`` with ``n / positive >= point`` in floating point; [R, K]."""
    total = np.maximum(positive, 1)
    needed: NDArray[np.int64] = np.ceil(points[:, None] * total).astype(np.int64)  # at most one off
    needed -= (needed > 0) & ((needed - 1) / total >= points[:, None])
    needed += needed / total < points[:, None]
    return needed


def tie_starts(matches: Matches) -> NDArray[np.intp]:
    """Places in class order at which a new class or score starts."""
    score, category = matches.score, matches.category
    new = (score[1:] != score[:-1]) | (category[1:] != category[:-1])
    return np.flatnonzero(np.concatenate([[len(score) > 0], new]))
