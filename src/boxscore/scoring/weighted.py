"""AP under whole-number image weights: the same matches, each image counted as often as its weight says.

Goal
----
What the bootstrap and slices by image need: weight 2 is the image twice in the data set, weight 0 is the data
set without it. Everything that does not depend on the weights is prepared once; a set of weights then costs
a few passes over the true positives.

Conventions
-----------
- All weights 1 gives the numbers of :mod:`boxscore.scoring.curves`.
- The copies of an image stand beside each other: first all copies of its first detection, then of the next.
  Only where one image has equally scored detections of one class could copies that come image by
  image give another number.
- A true positive of weight ``w`` is ``w`` true positives; precision is highest after the last of them,
  and only the highest matters, so it is computed there alone.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from boxscore.errors import InputError
from boxscore.matching.matches import Matches
from boxscore.protocols.protocol import Protocol
from boxscore.scoring.curves import needed_hits

__all__ = ["WeightedCurves"]

FloatArray = NDArray[np.float64]
Counts = NDArray[np.int32]


class WeightedCurves:
    """AP and recall of one area range and detection cap, as functions of the images' weights.

    Parameters
    ----------
    matches : Matches
    protocol : Protocol
    category_count : int
        K.
    area, cap : int
        Positions on the axes A and M.

    Raises
    ------
    InputError
        When the protocol draws curves in a way that has no weighted form: straight lines, moved ties,
        absent classes as 0.
    """

    def __init__(
        self, matches: Matches, protocol: Protocol, *, category_count: int, area: int = 0, cap: int = -1
    ) -> None:
        rules = protocol.ap
        whole = rules.interpolation in ("points", "area") and rules.tie_order == "as_ranked"
        if not whole or rules.absent_classes != "skip":
            raise InputError(
                "a protocol with weighted images",
                "read curves at points or by area, leave ties and skip absent classes",
                got=repr(protocol.name),
            )
        self._rules = rules
        T, K = len(protocol.matching.iou_thresholds), category_count
        self._shape = (T, K)
        limit = protocol.caps[cap]
        through = np.ones(len(matches), dtype=bool) if limit is None else matches.rank < limit
        inside = matches.inside(area)

        counted = np.flatnonzero(matches.counted(area))
        self._truth_image = matches.truth_image[counted]
        self._truth_category = matches.truth_category[counted]

        some = matches.pair_outcomes(area, max_detections=limit)
        true, ignored = some.true, some.ignored  # [T,C]
        threshold, pair = np.nonzero(true)
        place = some.detection[pair]  # ascending in each threshold
        category = matches.category[place]
        self._image = matches.image[place]
        segment = threshold * K + category
        self._starts = np.concatenate([[0], np.cumsum(np.bincount(segment, minlength=T * K))])

        # Counted detections up to a place: those inside the range, and what matches move in or out.
        base = inside & through
        self._base_image = matches.image[base]
        before = np.concatenate([[0], np.cumsum(base)])
        class_start = np.searchsorted(matches.category, np.arange(K))
        self._base_end, self._base_start = before[place + 1], before[class_start[category]]
        pair_inside = inside[some.detection]
        move = true & ~pair_inside
        drop = ignored & pair_inside
        move_threshold, move_pair = np.nonzero(move | drop)
        move_place = some.detection[move_pair]
        self._move_image = matches.image[move_place]
        self._move_sign = np.where(move[move_threshold, move_pair], 1, -1).astype(np.int32)
        key = move_threshold * (len(matches) + 1) + move_place  # ascending
        row = threshold * (len(matches) + 1)
        self._move_end = np.searchsorted(key, row + place, side="right")
        self._move_start = np.searchsorted(key, row + class_start[category], side="left")

    def positives(self, weights: FloatArray) -> FloatArray:
        """Weighted counted ground truths of each class, [K]."""
        weight, K = weights[self._truth_image], self._shape[1]
        return np.bincount(self._truth_category, weights=weight, minlength=K).astype(np.float64)

    def recall(self, weights: FloatArray) -> FloatArray:
        """Recall reached at each threshold by each class, [T, K]; NaN without positives.

        Parameters
        ----------
        weights : ndarray of float64, [images]
            Whole numbers.
        """
        hits = np.concatenate([[0.0], np.cumsum(weights[self._image])])[self._starts]
        reached: FloatArray = np.diff(hits).reshape(self._shape)
        positive = self.positives(weights)
        share: FloatArray = np.divide(reached, positive, out=np.full(self._shape, np.nan), where=positive > 0)
        return share

    def average_precision(self, weights: FloatArray) -> FloatArray:
        """AP of each threshold and class, [T, K]; NaN without positives.

        Parameters
        ----------
        weights : ndarray of float64, [images]
            Whole numbers.
        """
        positive = self.positives(weights)
        whole = weights.astype(np.int32)
        hits = np.take(whole, self._image)
        cumulative = _running(hits)
        at_start = cumulative[self._starts]  # [T*K+1]
        true = cumulative[1:] - np.repeat(at_start[:-1], np.diff(self._starts))
        base = _running(np.take(whole, self._base_image))
        counted = np.take(base, self._base_end) - np.take(base, self._base_start)
        if len(self._move_image):
            moved = _running(self._move_sign * np.take(whole, self._move_image))
            counted += moved[self._move_end] - moved[self._move_start]
        some = np.maximum(counted, 1)  # 0 only before the first that counts: 0/1
        precision: FloatArray = true / (some + self._rules.precision_epsilon)
        if self._rules.interpolation == "area":
            ap = self._under_steps(precision, true, positive)
        else:
            ap = self._at_points(precision, hits, at_start, positive)
        ap[:, positive == 0] = np.nan
        return ap

    def _at_points(
        self, precision: FloatArray, hits: Counts, at_start: Counts, positive: FloatArray
    ) -> FloatArray:
        needed = np.maximum(needed_hits(np.array(self._rules.recall_points), positive.astype(np.int64)), 1)
        found = np.diff(at_start).reshape(*self._shape, 1)
        reached = needed.T[None] <= found  # [T,K,R]
        nth = np.minimum(needed.T[None], found) - 1 + at_start[:-1].reshape(*self._shape, 1)
        # Which true positive is the n-th when each counts as often as its weight says; the last is none.
        which = np.append(np.repeat(np.arange(len(hits)), hits), len(hits))
        entry = np.where(reached, np.take(which, nth), self._starts[1:].reshape(*self._shape, 1))
        stretch = np.maximum.reduceat(np.append(precision, 0.0), entry.ravel()).reshape(reached.shape)
        stretch[~reached] = 0.0
        envelope = np.maximum.accumulate(stretch[..., ::-1], axis=-1)
        mean: FloatArray = envelope.mean(axis=-1)
        return mean

    def _under_steps(self, precision: FloatArray, true: Counts, positive: FloatArray) -> FloatArray:
        ap = np.zeros(self._shape)
        for t, k in np.ndindex(*self._shape):
            part = slice(*self._starts[t * self._shape[1] + k :][:2].tolist())
            if positive[k] and part.stop > part.start:
                envelope = np.maximum.accumulate(precision[part][::-1])[::-1]
                ap[t, k] = np.sum(np.diff(true[part] / positive[k], prepend=0.0) * envelope)
        return ap


def _running(counts: Counts) -> Counts:
    """Cumulative sum with a leading 0."""
    total = np.zeros(len(counts) + 1, dtype=np.int32)
    np.cumsum(counts, out=total[1:])
    return total
