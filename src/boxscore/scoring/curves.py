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
- Very many cells (thresholds x recall points x classes) are not held together: sums and means take them block
  by block, in the order in which NumPy adds them up, so that no bit changes.
- A class without a counted ground truth has no curve: NaN. With ground truth and no detection it is 0.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.records import record
from boxscore.matching.matches import Matches
from boxscore.protocols.protocol import ApRules, FrocRules, MissRateRules, Protocol
from boxscore.scoring.counts import HitCounts, Outcomes
from boxscore.scoring.froc import sensitivity
from boxscore.scoring.interpolation import area_at_scores, curve_area
from boxscore.scoring.jaccard import jaccard_indices
from boxscore.scoring.miss_rate import miss_rates
from boxscore.scoring.weighted import WeightedCounts

__all__ = ["MOST_CELLS", "Cells", "Curves", "means_at_points", "needed_hits"]

FloatArray = NDArray[np.float64]

MOST_CELLS = 1 << 22
"""Cells [T, R, K] that are held to be summed up, 8 bytes each and some 50 while they are made."""

SUMMED_TOGETHER = 1 << 16
"""Numbers that NumPy adds up at once; above 128, or its blocks would be cut."""

EVERY = slice(None)


@record(frozen=True, eq=False)
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
    def positive(self) -> NDArray[Any]:
        """Counted ground truths of each class, [K]."""
        return self.counts.positive

    @property
    def class_columns(self) -> Mapping[str, NDArray[Any]]:
        """What else is known of the classes, [K] each."""
        return self.counts.outcomes.class_columns

    def sensitivity(self, rules: FrocRules) -> FloatArray:
        """Sensitivity at the rules' false positives per image, [T, F, K]."""
        return sensitivity(self.counts, np.array(rules.false_positives_per_image), rules.interpolation)

    def miss_rates(self, rules: MissRateRules) -> FloatArray:
        """Miss rate at the rules' false positives per image, [T, F, K]."""
        return miss_rates(self.counts, rules)

    def jaccard_indices(self, protocol: Protocol) -> FloatArray:
        """Jaccard index of crowds, [T, K]."""
        return jaccard_indices(self.counts, protocol)

    @property
    def images_of_class(self) -> NDArray[np.int64]:
        """Images with an object of each class that recall is over, each as often as it counts, [K]."""
        matches, area = self.counts.outcomes.matches, self.counts.outcomes.area
        assert matches is not None
        there = matches.taking_part(area)
        K = len(self.positive)
        own = np.unique(matches.truth_image[there].astype(np.int64) * K + matches.truth_category[there])
        weights = self.counts.image_weights()
        often = np.bincount(own % K, weights=None if weights is None else weights[own // K], minlength=K)
        return often.astype(np.int64)

    @functools.cached_property
    def recall(self) -> FloatArray:
        """Recall reached at each threshold by each class, [T, K]."""
        undefined = np.full(self._counts.shape, np.nan)
        hits: NDArray[Any] = self._counts
        if self._weighed is not None:
            ends = (self._starts + self._counts).ravel() - 1
            hits = np.where(self._counts > 0, np.append(self._weighed, 0.0)[ends].reshape(hits.shape), 0.0)
        reached: FloatArray = np.divide(hits, self.positive, out=undefined, where=self.positive > 0)
        return reached

    @functools.cached_property
    def interpolated(self) -> FloatArray:
        """Precision at the protocol's recall points, [T, R, K]; 0 past the highest recall."""
        interpolated = np.ascontiguousarray(self._envelope().transpose(0, 2, 1))
        vars(self).pop("_padded_precision", None)  # 8 bytes per true positive, seldom asked for again
        return interpolated

    @property
    def cells(self) -> FloatArray | Cells:
        """:attr:`interpolated`, [T, R, K]; where it is large, a view that makes it block by block."""
        T, K = self._counts.shape
        held = "interpolated" in vars(self) or T * self.point_count * K <= MOST_CELLS
        return self.interpolated if held else Cells(self, list(range(T)))

    @functools.cached_property
    def scores(self) -> FloatArray:
        """Score of the detection that reaches each recall point, [T, R, K]; 0 past the highest recall."""
        return self._scores()

    @property
    def reached_scores(self) -> FloatArray:
        """:attr:`scores`, NaN at the recall points that are not reached, [T, R, K]."""
        return np.where(self._points[:, None] <= self.recall[:, None], self.scores, np.nan)

    def at(self, threshold: int) -> tuple[FloatArray, FloatArray]:
        """:attr:`interpolated` and :attr:`reached_scores` of one threshold (position on T), each [R, K]."""
        one = slice(threshold, threshold + 1)
        reached = self._points[:, None] <= self.recall[threshold]
        return self._envelope(one)[0].T, np.where(reached, self._scores(one)[0], np.nan)

    def _scores(self, thresholds: slice = EVERY) -> FloatArray:
        entry, reached = self._entries(thresholds)
        first, has_first = self.counts.first_detections()
        # Recall point 0 is reached by the first detection of the class, true positive or not.
        at_once = (self._needed() == 0)[None]  # [1,K,R]
        position = np.where(at_once, first[None, :, None], np.append(self.counts.hit_detections(), 0)[entry])
        reached = np.where(at_once, has_first[None, :, None], reached)
        score = np.where(reached, np.append(self.counts.outcomes.score, 0.0)[position], 0.0)
        score[:, self.positive == 0] = np.nan
        return np.ascontiguousarray(score.transpose(0, 2, 1))

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
        if "interpolated" in vars(self):
            return means_at_points(self.interpolated.transpose(0, 2, 1), self.rules)
        mean = np.empty(self._counts.shape)
        for classes in self._class_blocks(len(mean)):
            mean[:, classes] = means_at_points(self._envelope(classes=classes), self.rules)
        return mean

    def _class_blocks(self, threshold_count: int) -> Iterator[slice]:
        """Cut the classes into runs of at most :data:`MOST_CELLS` cells."""
        K = len(self.positive)
        size = max(1, MOST_CELLS // (threshold_count * self.point_count))
        yield from (slice(low, low + size) for low in range(0, K, size))

    @property
    def precision(self) -> FloatArray:
        """Precision at each true positive, [N]."""
        return self._padded_precision[:-1]

    @functools.cached_property
    def _padded_precision(self) -> FloatArray:
        """:attr:`precision` and a 0, so that every bound of a stretch is a position; [N + 1]."""
        epsilon = self.rules.precision_epsilon
        if self._weighed is not None:
            nth, counted = (np.concatenate(column) for column in zip(*self.counts.lines(), strict=True))
            return np.append(self._weighed / (self._weighed + (counted - nth) + epsilon), 0.0)
        precision = np.empty(int(self._counts.sum()) + 1)
        precision[-1] = end = 0
        for nth, counted in self.counts.lines():
            start, end = end, end + len(nth)
            line = np.add(counted, epsilon, out=precision[start:end])
            np.divide(nth, line, out=line)
        return precision

    @functools.cached_property
    def _weighed(self) -> FloatArray | None:
        """Sum of the weights up to each true positive, in-class, [N]; None where each counts as one."""
        weights = self.counts.hit_weights()
        if weights is None:
            return None
        bounds = np.append(self._starts.ravel(), self._counts.sum()).tolist()
        joined = np.concatenate(weights)
        return np.concatenate([np.cumsum(joined[low:high]) for low, high in itertools.pairwise(bounds)])

    def _envelope(self, thresholds: slice = EVERY, classes: slice = EVERY) -> FloatArray:
        """Precision at the recall points, [T, K, R]; of all thresholds and classes, or of some."""
        entry, reached = self._entries(thresholds, classes)
        # The last bound, or the last stretch would run into the next segment.
        ends = (self._starts[thresholds, classes] + self._counts[thresholds, classes])[..., None]
        bounds = np.concatenate([entry, ends], axis=-1)  # [T,K,R+1]
        stretch = np.maximum.reduceat(self._padded_precision, bounds.ravel())
        stretch = stretch.reshape(bounds.shape)[..., :-1]
        stretch[~reached] = 0.0
        envelope = np.maximum.accumulate(stretch[..., ::-1], axis=-1)[..., ::-1]
        envelope[:, self._undefined[classes]] = np.nan
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
    def _points(self) -> FloatArray:
        return np.array(self.rules.recall_points) if self.points is None else self.points

    @property
    def point_count(self) -> int:
        """R."""
        return len(self._points)

    @functools.cached_property
    def _needed_by_count(self) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
        """:func:`needed_hits` of each number of positives [U, R]; the row of each class, [K]."""
        positive, row = np.unique(self.positive, return_inverse=True)
        return np.ascontiguousarray(needed_hits(self._points, positive).T), row

    def _needed(self, classes: slice = EVERY) -> NDArray[np.int64]:
        """Fewest true positives ``n`` with ``n / positive >= point`` in floating point; [K, R]."""
        needed, row = self._needed_by_count
        return needed.take(row[classes], axis=0)

    def _entries(
        self, thresholds: slice = EVERY, classes: slice = EVERY
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Find the true positive that reaches each recall point, and whether there is one; [T, K, R]."""
        if self._weighed is not None:
            return self._weighed_entries(thresholds, classes)
        counts = self._counts[thresholds, classes, None]  # [T,K,1]
        needed = np.maximum(self._needed(classes)[None], 1)  # [1,K,R]
        entry = np.minimum(needed - 1, counts) + self._starts[thresholds, classes, None]
        return entry, needed <= counts

    def _weighed_entries(
        self, thresholds: slice, classes: slice
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """:meth:`_entries` where true positives have weights."""
        assert self._weighed is not None
        starts, counts = self._starts[thresholds, classes], self._counts[thresholds, classes]
        nth = np.zeros((*starts.shape, self.point_count), dtype=np.int64)
        for t, k in np.ndindex(starts.shape):
            own = self._weighed[starts[t, k] : starts[t, k] + counts[t, k]]
            nth[t, k] = np.searchsorted(own / np.maximum(self.positive[classes][k], 1e-300), self._points)
        return nth + starts[..., None], nth < counts[..., None]

    def _areas(self) -> FloatArray:
        """Area under the curve by the protocol's rule, [T, K]."""
        if self.rules.score_steps:
            return self._areas_at_scores()
        lines = self.rules.interpolation not in ("area", "every_point")
        total = self.counts.totals() if lines else np.zeros_like(self._counts)
        ap = np.zeros(self.recall.shape)
        for t in range(len(ap)):
            for k in np.flatnonzero(self.positive).tolist():
                start = int(self._starts[t, k])
                precision = self.precision[start : start + int(self._counts[t, k])]
                nth = np.arange(1, len(precision) + 1)
                counted = None
                if self.rules.interpolation != "area":
                    counted = np.rint(nth / precision - self.rules.precision_epsilon)
                hits = None if self._weighed is None else self._weighed[start : start + len(nth)]
                ap[t, k] = curve_area(
                    precision,
                    self.positive[k],
                    self.rules,
                    hits=hits,
                    counted=counted,
                    total=int(total[t, k]),
                )
        ap[:, self._undefined] = np.nan
        return ap

    def _areas_at_scores(self) -> FloatArray:
        """Area under the envelope of the points at the protocol's score thresholds, [T, K]."""
        steps = self.rules.score_steps
        hits, counted = self.counts.at_scores(1 - (np.arange(steps) + 1) / steps)
        ap = np.zeros((len(hits), len(self.positive)))
        for t in range(len(ap)):
            for k in np.flatnonzero(self.positive).tolist():
                ap[t, k] = area_at_scores(
                    hits[t, :, k], counted[t, :, k] + self.rules.precision_epsilon, self.positive[k]
                )
        ap[:, self._undefined] = np.nan
        return ap


class Cells:
    """:attr:`Curves.interpolated` of some thresholds, made block by block; never whole.

    Parameters
    ----------
    curves : Curves
    thresholds : list of int
        Positions on the axis T.
    classes : ndarray of intp, optional
        Positions of the classes that means take in, in their order, some of them repeatedly; all, each once,
        when not given.
    """

    def __init__(
        self, curves: Curves, thresholds: list[int], classes: NDArray[np.intp] | None = None
    ) -> None:
        self._curves, self._thresholds = curves, thresholds
        self._classes = np.arange(len(curves.positive)) if classes is None else classes

    def __getitem__(self, thresholds: list[int]) -> Cells:
        """Choose among the thresholds."""
        return Cells(self._curves, [self._thresholds[one] for one in thresholds], self._classes)

    def of_classes(self, chosen: NDArray[np.bool_]) -> Cells:
        """Choose among the classes, [K], for means over all of them."""
        return Cells(self._curves, self._thresholds, self._classes[chosen[self._classes]])

    def repeated(self, often: NDArray[np.int64]) -> Cells:
        """Take each class as often as told, [K], in means over all of them."""
        return Cells(self._curves, self._thresholds, np.repeat(self._classes, often[self._classes]))

    def mean_of_defined(self) -> float:
        """Mean of the cells that are not NaN, with the bits of ``numpy.mean``; NaN when there are none."""
        return self._mean(self._classes[self._defined])

    def mean_of_slots(self) -> float:
        """Mean of the cells that are not NaN, with the bits of ``numpy.nanmean``; NaN when there are none."""
        return self._mean(self._classes)

    @property
    def _defined(self) -> NDArray[np.bool_]:
        defined: NDArray[np.bool_] = ~self._curves._undefined[self._classes]
        return defined

    def _mean(self, classes: NDArray[np.intp]) -> float:
        """Add up the cells of some classes, undefined ones as 0, over the number of those defined."""
        cells_of_class = len(self._thresholds) * self._curves.point_count
        defined = cells_of_class * int(self._defined.sum())
        if not defined:
            return float("nan")
        return _sum(_Stream(self._planes(classes)), cells_of_class * len(classes)) / defined

    def mean_per_class(self) -> FloatArray:
        """Mean of each class's cells, [K]; NaN for a class without a curve."""
        curves = self._curves
        mean = np.empty(len(curves.positive))
        for classes in curves._class_blocks(len(self._thresholds)):
            cells = np.concatenate(
                [curves._envelope(slice(t, t + 1), classes) for t in self._thresholds]
            )  # [T,k,R]
            own = np.ascontiguousarray(cells.transpose(1, 0, 2)).reshape(cells.shape[1], -1)
            mean[classes] = own.mean(axis=1)
        return mean

    def _planes(self, classes: NDArray[np.intp]) -> Iterator[FloatArray]:
        """Yield the cells of some classes, undefined ones as 0, threshold by threshold, [R * K]."""
        curves = self._curves
        once, at = np.unique(classes, return_inverse=True)
        asked = np.zeros(len(curves.positive), dtype=bool)
        asked[once] = True
        for t in self._thresholds:
            plane = np.empty((curves.point_count, len(once)))
            done = 0
            for block in curves._class_blocks(1):
                envelope = curves._envelope(slice(t, t + 1), block)[0, asked[block]]
                plane[:, done : done + len(envelope)] = envelope.T
                done += len(envelope)
            plane[:, curves._undefined[once]] = 0.0
            yield (plane if len(at) == len(once) else plane[:, at]).ravel()


class _Stream:
    """Numbers that come in arrays, read in other portions."""

    def __init__(self, arrays: Iterator[FloatArray]) -> None:
        self._arrays, self._left = arrays, np.empty(0)

    def read(self, count: int) -> FloatArray:
        parts = []
        while count:
            if not len(self._left):
                self._left = next(self._arrays)
            parts.append(self._left[:count])
            self._left = self._left[count:]
            count -= len(parts[-1])
        return np.concatenate(parts)


def _sum(numbers: _Stream, count: int) -> float:
    """Add up the next ``count`` numbers as ``numpy.sum`` does, to the bit.

    References
    ----------
    NumPy's ``pairwise_sum`` in ``loops_utils.h.src``: halves whose lengths are multiples of 8.
    """
    if count <= SUMMED_TOGETHER:
        return float(np.add.reduce(numbers.read(count)))
    half = count // 2
    half -= half % 8
    first = _sum(numbers, half)
    return first + _sum(numbers, count - half)


def means_at_points(envelope: FloatArray, rules: ApRules) -> FloatArray:
    """AP by the mean at the recall points; from [T, K, R] to [T, K]."""
    if rules.sequential_mean:
        summed: FloatArray = np.cumsum(envelope / envelope.shape[-1], axis=-1)[..., -1]
        return summed
    mean: FloatArray = np.ascontiguousarray(envelope).mean(axis=-1)
    return mean


def needed_hits(points: FloatArray, positive: NDArray[np.int64]) -> NDArray[np.int64]:
    """Fewest true positives ``n`` with ``n / positive >= point`` in floating point; [R, K]."""
    total = np.maximum(positive, 1)
    needed: NDArray[np.int64] = np.ceil(points[:, None] * total).astype(np.int64)  # at most one off
    needed -= (needed > 0) & ((needed - 1) / total >= points[:, None])
    needed += needed / total < points[:, None]
    return needed
