"""From counts to recall, interpolated precision and AP, for every class and threshold at once.

Goal
----
pycocotools' ``accumulate`` and the VOC devkit's ``VOCap`` to the last bit, at the cost of the true positives.
All curves are drawn here: of an evaluation, of weighted images, of TIDE and of the drop-in's lists.

Conventions
-----------
- Precision rises only at a true positive, so the envelope of a curve and every look-up by recall need only
  those positions. The ``i``-th true positive of a class has precision ``i / (n + eps)``, where ``n`` is the
  number of counted detections up to it.
- How many true positives recall point ``r`` needs depends only on the class's positives. It is computed
  once, with the float comparison that pycocotools makes. The interpolated precision is then the largest
  precision of each stretch between two needs (``maximum.reduceat``), and a running maximum from the right.
- A class without a counted ground truth has no curve: NaN. With ground truth and no detection it is 0.
"""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
from numpy.typing import NDArray

from boxscore.matching.matches import Matches
from boxscore.protocols.protocol import ApRules, Protocol
from boxscore.scoring.counts import HitCounts, Outcomes
from boxscore.scoring.interpolation import curve_area
from boxscore.scoring.weighted import WeightedCounts

__all__ = ["Curves", "needed_hits"]

FloatArray = NDArray[np.float64]


@dataclasses.dataclass(frozen=True, eq=False)
class Curves:
    """The curves of one area range and detection cap, and what follows from them.

    Attributes
    ----------
    counts : HitCounts or WeightedCounts
        Counts up to each of the N true positives.
    rules : ApRules
    points : ndarray of float64, [R], optional
        Ascending recall points, instead of the rules'.
    """

    counts: HitCounts | WeightedCounts
    rules: ApRules
    points: FloatArray | None = None

    @classmethod
    def of(cls, matches: Matches, protocol: Protocol, area: int = 0, cap: int = -1) -> Curves:
        """Draw the curves of matches, for positions on the axes A and M."""
        outcomes = Outcomes.of(matches, protocol, area, cap)
        return cls(HitCounts(outcomes, protocol.ap.tie_order), protocol.ap)

    @property
    def positive(self) -> NDArray[np.int64]:
        """Counted ground truths of each class, [K]."""
        return self.counts.positive

    @functools.cached_property
    def recall(self) -> FloatArray:
        """Recall reached at each threshold by each class, [T, K]."""
        undefined = np.full(self._counts.shape, np.nan)
        reached: FloatArray = np.divide(self._counts, self.positive, out=undefined, where=self.positive > 0)
        return reached

    @functools.cached_property
    def interpolated(self) -> FloatArray:
        """Precision at the protocol's recall points, [T, R, K]; 0 past the highest recall."""
        return np.ascontiguousarray(self._envelope().transpose(0, 2, 1))

    @functools.cached_property
    def scores(self) -> FloatArray:
        """Score of the detection that reaches each recall point, [T, R, K]; 0 past the highest recall."""
        entry, reached = self._entries
        first, has_first = self.counts.first_detections()
        # Recall point 0 is reached by the first detection of the class, true positive or not.
        at_once = (self._needed.T == 0)[None]  # [1,K,R]
        position = np.where(at_once, first[None, :, None], np.append(self.counts.hit_detections(), 0)[entry])
        reached = np.where(at_once, has_first[None, :, None], reached)
        score = np.where(reached, np.append(self.counts.outcomes.score, 0.0)[position], 0.0)
        score[:, self.positive == 0] = np.nan
        return np.ascontiguousarray(score.transpose(0, 2, 1))

    @property
    def reached_scores(self) -> FloatArray:
        """:attr:`scores`, NaN at the recall points that are not reached, [T, R, K]."""
        points = np.array(self.rules.recall_points) if self.points is None else self.points
        return np.where(points[:, None] <= self.recall[:, None], self.scores, np.nan)

    @functools.cached_property
    def average_precision(self) -> FloatArray:
        """AP of each threshold and class, [T, K].

        References
        ----------
        pycocotools ``cocoeval.py`` (points); the PASCAL VOC devkit, ``VOCap.m`` (area) and ``VOCevaldet.m``
        (11 points).
        """
        if self.rules.interpolation != "points":
            return self._areas()
        if self.rules.sequential_mean:
            summed: FloatArray = np.cumsum(self.interpolated / self.interpolated.shape[1], axis=1)[:, -1]
            return summed
        # Read off what is kept, or made for this alone: two such arrays would be kept for very many classes.
        kept = "interpolated" in vars(self)
        envelope = self.interpolated.transpose(0, 2, 1) if kept else self._envelope()
        mean: FloatArray = np.ascontiguousarray(envelope).mean(axis=-1)
        return mean

    @functools.cached_property
    def precision(self) -> FloatArray:
        """Precision at each true positive, [N]."""
        epsilon = self.rules.precision_epsilon
        return np.concatenate([nth / (counted + epsilon) for nth, counted in self.counts.lines()])

    def _envelope(self) -> FloatArray:
        """Precision at the recall points, [T, K, R]."""
        entry, reached = self._entries
        ends = (self._starts + self._counts)[..., None]  # or the last stretch would run into the next segment
        bounds = np.concatenate([entry, ends], axis=-1)  # [T,K,R+1]
        stretch = np.maximum.reduceat(np.append(self.precision, 0.0), bounds.ravel())
        stretch = stretch.reshape(bounds.shape)[..., :-1]
        stretch[~reached] = 0.0
        envelope = np.maximum.accumulate(stretch[..., ::-1], axis=-1)[..., ::-1]
        envelope[:, self._undefined] = np.nan
        return envelope

    @functools.cached_property
    def _undefined(self) -> NDArray[np.bool_]:
        """Classes without a curve, [K]: no counted ground truth, and no rule that makes it 0."""
        rule = self.rules.absent_classes
        absent: NDArray[np.bool_] = self.positive == 0
        if rule == "all_zero":
            return np.zeros_like(absent)
        if rule == "zero":
            absent &= ~self.counts.first_detections()[1]
        return absent

    @property
    def _counts(self) -> NDArray[np.intp]:
        """Count the true positives of each threshold and class, [T, K]."""
        return self.counts.hits

    @functools.cached_property
    def _starts(self) -> NDArray[np.intp]:
        """Where the segment of each threshold and class starts among all true positives, [T, K]."""
        ends = np.cumsum(self._counts).reshape(self._counts.shape)
        starts: NDArray[np.intp] = ends - self._counts
        return starts

    @functools.cached_property
    def _needed(self) -> NDArray[np.int64]:
        """Fewest true positives ``n`` with ``n / positive >= point`` in floating point; [R, K]."""
        points = np.array(self.rules.recall_points) if self.points is None else self.points
        return needed_hits(points, self.positive)

    @functools.cached_property
    def _entries(self) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The true positive that reaches each recall point, and whether there is one; [T, K, R]."""
        counts = self._counts[..., None]  # [T,K,1]
        needed = np.maximum(self._needed.T[None], 1)  # [1,K,R]
        entry = np.minimum(needed - 1, counts) + self._starts[..., None]
        return entry, needed <= counts

    def _areas(self) -> FloatArray:
        """Area under the curve by the protocol's rule, [T, K]."""
        lines = self.rules.interpolation != "area"
        total = self.counts.totals() if lines else np.zeros_like(self._counts)
        ap = np.zeros(self.recall.shape)
        for t in range(len(ap)):
            for k in np.flatnonzero(self.positive).tolist():
                start = int(self._starts[t, k])
                precision = self.precision[start : start + int(self._counts[t, k])]
                counted = np.rint(np.arange(1, len(precision) + 1) / precision) if lines else None
                ap[t, k] = curve_area(
                    precision, int(self.positive[k]), self.rules, counted=counted, total=int(total[t, k])
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
