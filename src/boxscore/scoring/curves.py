"""Compute recall, interpolated precision and AP from counts, for every class and threshold.

Compute the results of pycocotools' ``accumulate`` and the VOC devkit's ``VOCap`` to the last bit, in time
that grows only with the true positives. Every curve is computed here: for evaluations, score ranges, weighted
images, TIDE and the lists of the drop-in.

Conventions
-----------
- Precision rises only at a true positive, so the envelope of a curve and every look-up by recall need only
  those positions. The ``i``-th true positive of a class has precision ``i / (n + eps)``, where ``n`` is the
  number of counted detections up to it.
- The number of true positives that reach recall point ``r`` depends only on the class's positives. It is
  computed once, with the float comparison that pycocotools makes. The interpolated precision there is the
  best from that true positive on: a cumulative maximum from the right, over the true positives.
- In memory a class is one range of scores. In partitions it can be several. A range that has the counts
  before it (:class:`~boxscore.scoring.totals.Before`) divides the same whole numbers as one curve would, so
  the fields of ranges fold: the envelope of a curve is the maximum over its ranges.
- A *field* is an array of the curves of one range. A *fold* combines the fields of several ranges. In memory
  there is one range, and nothing folds. Ranges are split where scores differ. ``LARGEST`` and ``SMALLEST``
  fold ranges in any order and grouping, and tolerate duplicates. ``JOINED`` needs all ranges in one process,
  the highest scores first. Fields are [T, K, ...], optionally with a leading axis of sets of weights; a
  :class:`Lines` never has this axis.
- Very large sets of values (thresholds x recall points x classes) are never in memory together
  (:mod:`boxscore.scoring.blocks`).
- A class without a counted ground truth does not have a curve: NaN. With ground truth but without detections,
  its value is 0.
- *Closed* curves hold numbers without counts (:data:`NUMBERS`, and values of kinds of metrics).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import FloatArray, Positions
from boxscore._utils.ordering import group_starts
from boxscore._utils.records import NamedTuple
from boxscore.data.vocabulary import Categories
from boxscore.matching.matches import Matches
from boxscore.protocols.protocol import Protocol
from boxscore.protocols.tables.ap import ApRules, TieOrder
from boxscore.scoring.blocks import MOST_VALUES, CurveBlocks, HeldValues, Values, class_blocks
from boxscore.scoring.counts import (
    ClassNumbers,
    Counter,
    Line,
    Outcomes,
    ScoredCounter,
    TruePositiveCounts,
    tie_starts,
)
from boxscore.scoring.totals import Before, Totals, score_steps

State = Mapping[str, Any]
"""Arrays, or :class:`Lines`, by field."""

Fold = Callable[[Sequence[Any]], Any]


class Lines(NamedTuple):
    """Cumulative numbers at each true positive, for T thresholds and K classes."""

    values: NDArray[Any]
    """By threshold, class and descending score, [N]."""
    sizes: NDArray[np.integer[Any]]
    """[T, K]"""


def _joined(ranges: Sequence[Lines]) -> Lines:
    """Concatenate the lines of ranges within each threshold and class."""
    split = [np.split(one.values, np.cumsum(one.sizes.ravel())[:-1]) for one in ranges]
    segments = [segment for of_segment in zip(*split, strict=True) for segment in of_segment]
    sizes: NDArray[np.integer[Any]] = np.sum([one.sizes for one in ranges], axis=0)
    return Lines(np.concatenate(segments), sizes)


LARGEST: Fold = np.maximum.reduce
SMALLEST: Fold = np.minimum.reduce
JOINED: Fold = _joined


def folded(states: Sequence[State], folds: Mapping[str, Fold]) -> State:
    """Fold the states of ranges of scores, the highest first."""
    return {name: fold([state[name] for state in states]) for name, fold in folds.items()}


Known = TypeVar("Known")

NO_EFFECT = 2.0**-52
"""An epsilon up to this value does not change any denominator of precision above 1."""

MOST_NEEDED = 1 << 16
"""Largest size of a table of needed true positives, at most 1 MB."""

NUMBERS = ("interpolated", "scores", "average_precision")
"""The numbers in closed curves, in addition to their totals."""

EVERY = slice(None)
"""All thresholds, or all classes."""


class Curves:
    """The curves of one area range and max detections, T thresholds and K classes; or of a range of scores.

    Parameters
    ----------
    counts : Counter, optional
        Counts up to each of the N runs of true positives; None if ranges were computed and folded.
    rules : ApRules
    totals : ClassNumbers, optional
        Numbers of the whole classes; by default those of ``counts``.
    before : Before, optional
        Counts of the ranges with higher scores; zero by default.
    points : ndarray of float64, [R], optional
        Ascending recall points; by default the rules'.
    state : mapping, optional
        Folded fields of ranges, by name.
    known : mapping of str to ndarray, optional
        Known numbers: those of :data:`NUMBERS`, and values of kinds of summary metrics.
    categories : Categories, optional
        The classes, [K]; by default those of ``counts``.
    """

    def __init__(
        self,
        counts: Counter | None,
        rules: ApRules,
        *,
        totals: ClassNumbers | None = None,
        before: Before | None = None,
        points: FloatArray | None = None,
        state: State = MappingProxyType({}),
        known: Mapping[str, Any] = MappingProxyType({}),
        categories: Categories | None = None,
    ) -> None:
        if categories is None and counts is not None and counts.outcomes is not None:
            categories = counts.outcomes.categories
        self.rules, self.categories = rules, categories
        self.totals = cast(ClassNumbers, counts) if totals is None else totals
        self._counts, self._before = counts, before
        self._points = np.array(rules.recall_points) if points is None else points
        # Do not recompute numbers that are known, from a state or from other ranges.
        self._state, self._known = dict(state), dict(known)

    @classmethod
    def of(cls, matches: Matches, protocol: Protocol, area: int = 0, cap: int = -1) -> Curves:
        """Make the curves of matches, for positions on the axes A and M."""
        outcomes = functools.partial(Outcomes.of, matches, protocol, area, cap)
        return cls(TruePositiveCounts(outcomes(), protocol.ap.tie_order, again=outcomes), protocol.ap)

    def release(self) -> None:
        """Free large arrays that can be recomputed."""
        if isinstance(self._counts, TruePositiveCounts):
            self._counts.release()

    @property
    def counts(self) -> Counter:
        """Counts up to each run of true positives."""
        assert self._counts is not None, "what ranges came to is known alone"
        return self._counts

    @property
    def has_counts(self) -> bool:
        """Whether counts are available, in addition to folded fields or numbers."""
        return self._counts is not None

    @property
    def positive(self) -> NDArray[Any]:
        """Ground truths of each class in the denominator of recall, [K]."""
        return self.totals.positive

    @property
    def point_count(self) -> int:
        """R."""
        return len(self._points)

    # ------------------------------------------------------------ numbers

    @functools.cached_property
    def recall(self) -> FloatArray:
        """Recall reached at each threshold by each class, [T, K]."""
        recalled, positive = self.totals.recalled, self.positive
        undefined = np.full(recalled.shape, np.nan)
        reached: FloatArray = np.divide(recalled, positive, out=undefined, where=positive > 0)
        return reached

    @property
    def interpolated(self) -> FloatArray:
        """Precision at the protocol's recall points, [T, R, K]; 0 past the highest recall."""

        def compute() -> FloatArray:
            precision = self._interpolated(EVERY)
            vars(self).pop("precision", None)  # 8 bytes per true positive, rarely needed again
            vars(self).pop("_best_from", None)
            return precision

        return self.once("interpolated", compute)

    @property
    def scores(self) -> FloatArray:
        """Score of the detection that reaches each recall point, [T, R, K]; 0 past the highest recall."""
        return self.once("scores", lambda: self._scores(EVERY))

    @property
    def reached_scores(self) -> FloatArray:
        """:attr:`scores` [T, R, K], with NaN at recall points that are never reached."""
        return np.where(self._points[:, None] <= self.recall[:, None], self.scores, np.nan)

    def at(self, threshold: int) -> tuple[FloatArray, FloatArray]:
        """:attr:`interpolated` and :attr:`reached_scores` of one threshold (position on T), each [R, K]."""
        one = slice(threshold, threshold + 1)
        reached = self._points[:, None] <= self.recall[threshold]
        known = self._known
        precision = known["interpolated"][one] if "interpolated" in known else self._interpolated(one)
        scores = known["scores"][one] if "scores" in known else self._scores(one)
        return precision[0], np.where(reached, scores[0], np.nan)

    @property
    def average_precision(self) -> FloatArray:
        """AP of each threshold and class, [T, K].

        References
        ----------
        pycocotools ``cocoeval.py`` (points); the PASCAL VOC devkit, ``VOCap.m`` (area) and ``VOCevaldet.m``
        (11 points).
        """
        compute = self._means_at_points if self.rules.interpolation == "points" else self._areas
        return self.once("average_precision", compute)

    def _means_at_points(self) -> FloatArray:
        if "interpolated" in self._known:
            return means_at_points(self.interpolated.transpose(0, 2, 1), self.rules)
        T, K = self.recall.shape
        mean = np.empty((T, K))
        for classes in class_blocks(K, T * self.point_count):
            mean[:, classes] = means_at_points(self._envelope(classes=classes), self.rules)
        return mean

    @property
    def interpolated_values(self) -> Values:
        """:attr:`interpolated`, [T, R, K]; if large, a view that computes it block by block."""
        T, K = self.recall.shape
        if "interpolated" in self._known or T * self.point_count * K <= MOST_VALUES:
            # Under image weights, only classes without a curve are undefined.
            counts = self._counts if "best" in self._state else None
            alone = counts is not None and counts.weights_up_to is None
            return HeldValues(self.interpolated, self._undefined if alone else None)

        def envelope(threshold: int, classes: slice) -> FloatArray:
            values: FloatArray = self._envelope(slice(threshold, threshold + 1), classes)[0]
            return values

        return CurveBlocks(envelope, self._undefined, self.point_count, range(T))

    def with_undefined(self, values: FloatArray) -> FloatArray:
        """Set values [T, K] to NaN for classes without a curve."""
        return np.where(self._undefined, np.nan, values)

    def defined(self, values: FloatArray) -> FloatArray:
        """Copy values [T, ..., K]; NaN for a class without a ground truth in the denominator of recall."""
        return np.where(self.positive > 0, values, np.nan)

    def once(self, name: str, compute: Callable[[], Known]) -> Known:
        """Return a number, or the values of a kind of metric, by name; cached."""
        if name not in self._known:
            self._known[name] = compute()
        known: Known = self._known[name]
        return known

    def known_numbers(self) -> dict[str, FloatArray]:
        """Return those of :data:`NUMBERS` that are computed already."""
        return {name: self._known[name] for name in NUMBERS if name in self._known}

    # ------------------------------------------------------------ fields that fold, and closed curves

    def state(self, names: Iterable[str], compute: Callable[[], State]) -> State:
        """Return some fields, cached or folded from ranges; compute them if missing."""
        if not all(name in self._state for name in names):
            self._state |= compute()
        return {name: self._state[name] for name in names}

    def state_of_numbers(self) -> State:
        """Return the fields from which :data:`NUMBERS` are computed."""
        names = folds_of_numbers(self.rules)
        return self.state(names, lambda: self.computed(names))

    def computed(self, names: Iterable[str]) -> dict[str, Any]:
        """Return fields or numbers: attributes of this class, by name."""
        return {name: getattr(self, name) for name in names}

    def closed(self, protocol: Protocol, values: Mapping[str, Values]) -> Curves:
        """Return closed curves: the numbers and the values of some kinds, without counts."""
        totals = Totals.of_curves(self.totals, protocol)
        return self.of_numbers(self.rules, totals, {**self.computed(NUMBERS), **values}, self.categories)

    @classmethod
    def of_numbers(
        cls,
        rules: ApRules,
        totals: Totals,
        known: Mapping[str, Any],
        categories: Categories | None,
    ) -> Curves:
        """Make closed curves from known numbers."""
        return cls(None, rules, totals=totals, known=known, categories=categories)

    @classmethod
    def beside(cls, blocks: Sequence[Curves], categories: Categories | None) -> Curves:
        """Concatenate closed curves of blocks of classes along the axis of classes."""
        known: dict[str, Any] = {
            name: np.concatenate([block._known[name] for block in blocks], axis=-1)
            for name in NUMBERS
            if name in blocks[0]._known
        }
        for name in blocks[0]._known.keys() - known.keys():
            first, *others = (block._known[name] for block in blocks)
            known[name] = first.beside(others)
        totals = Totals.beside([block.totals for block in blocks])
        return cls.of_numbers(blocks[0].rules, totals, known, categories)

    # ------------------------------------------------------------ fields of a range of scores

    @property
    def best(self) -> FloatArray:
        """Best precision in this range at or after each recall point, [T, K, R]; 0 past the last run."""
        return self._best()

    @property
    def score(self) -> FloatArray:
        """Score at which each recall point is reached, [T, K, R]; -inf if not in this range."""
        return self._score(EVERY, -np.inf)

    def lines(self, tie_order: TieOrder | None = None) -> Iterator[Line]:
        """Yield, per threshold, the true positives and the counted detections up to each run.

        They are in-class, and include the ranges of higher scores. ``tie_order`` replaces that of the rules.
        """
        lines = self.counts.lines(tie_order)
        return lines if self._before is None else self._after_higher(lines, *self._before)

    def _after_higher(self, lines: Iterator[Line], true_before: Any, counted_before: Any) -> Iterator[Line]:
        """Add the counts of ranges with higher scores, [T, K]."""
        for runs, true_first, counted_first, (true, counted) in zip(
            self.counts.runs, true_before, counted_before, lines, strict=True
        ):
            yield true + np.repeat(true_first, runs), counted + np.repeat(counted_first, runs)

    def joined_lines(self, tie_order: TieOrder | None = None) -> Line:
        """Return :meth:`lines` of all thresholds concatenated, [N]."""
        true, counted = (np.concatenate(column) for column in zip(*self.lines(tie_order), strict=True))
        return true, counted

    def of_runs(self, values: NDArray[Any]) -> NDArray[Any]:
        """Repeat values of the classes, [K], for each run, [N]."""
        return np.repeat(np.tile(values, len(self.counts.runs)), self.counts.runs.ravel())

    def largest(self, values: FloatArray) -> FloatArray:
        """Return the largest of the runs' values [N] for each threshold and class; 0 without runs."""
        runs = self.counts.runs
        largest = np.zeros(runs.shape)
        if len(values):
            some = runs > 0
            largest[some] = np.maximum.reduceat(values, self._starts[some])
        return largest

    @property
    def counted_lines(self) -> Lines:
        """Counted detections up to each true positive."""
        if "counted_lines" in self._state:
            lines: Lines = self._state["counted_lines"]
            return lines
        return Lines(self.joined_lines()[1], self.counts.true_positives)

    @functools.cached_property
    def precision(self) -> FloatArray:
        """Precision at each run of true positives, [N]."""
        epsilon, counts = self.rules.precision_epsilon, self.counts
        # With weights, divide the weighted true positives by themselves plus the false positives, each
        # counted as 1.
        weights = counts.weights_up_to
        if weights is not None:
            nth, counted = self.joined_lines()
            weighted: FloatArray = weights / (weights + (counted - nth) + epsilon)
            return weighted
        # Divide threshold by threshold, in place in one array [N]: int by float64 is the quotient that the
        # reference computes, and no temporary is larger than one line.
        precision = np.empty(int(counts.runs.sum()))
        end = 0
        for nth, counted in self.lines():
            start, end = end, end + len(nth)
            line = np.add(counted, epsilon, out=precision[start:end])
            np.divide(nth, line, out=line)
        return precision

    @functools.cached_property
    def _best_from(self) -> tuple[FloatArray, NDArray[np.intp]]:
        """Best precision from each run on, with a 0 after the last run of each segment; starts, [T, K]."""
        # Each segment (a threshold and a class) has one more place than runs: recall points beyond its last
        # run read the 0 there.
        precision, runs = self.precision, self.counts.runs.ravel()
        segments = np.arange(len(runs), dtype=np.int32)
        starts = self._starts.ravel() + segments
        # Complex numbers are ordered by their real part, then by the imaginary one. The real part is the
        # number of the segment, so one running maximum from the right starts over in each segment.
        keyed = np.zeros(int(runs.sum()) + len(runs), dtype=np.complex128)
        keyed.real = np.repeat(-segments, runs + 1)
        inside = np.ones(len(keyed), dtype=bool)
        inside[starts + runs] = False
        keyed.imag[inside] = precision
        np.maximum.accumulate(keyed[::-1], out=keyed[::-1])
        return keyed.imag.copy(), starts.reshape(self.counts.runs.shape)

    def _best(
        self, thresholds: slice = EVERY, classes: slice = EVERY, axes: tuple[int, int, int] = (0, 1, 2)
    ) -> FloatArray:
        """:attr:`best` of some thresholds and classes, with its axes T, K and R in another order."""
        if "best" in self._state:
            known: FloatArray = self._state["best"][thresholds, classes]
            return known.transpose(axes).copy(order="K")
        best, starts = self._best_from
        nth = np.ascontiguousarray(self._nth(thresholds, classes).transpose(axes))
        if self._before is not None:
            nth = np.maximum(nth, 0)  # higher scores have reached the point: all runs here come after it
        # A point that no run reaches reads the 0 after the last run of its segment.
        at = np.minimum(nth, self.counts.runs[thresholds, classes, None].transpose(axes))
        at += starts[thresholds, classes, None].transpose(axes)
        envelope: FloatArray = best.take(at)
        return envelope

    def _envelope(self, thresholds: slice = EVERY, classes: slice = EVERY) -> FloatArray:
        """Precision at the recall points, [T, k, R], of some thresholds and classes; NaN without a curve."""
        envelope = self._best(thresholds, classes)
        envelope[:, self._undefined[classes]] = np.nan
        return envelope

    def _interpolated(self, thresholds: slice) -> FloatArray:
        """:attr:`interpolated` of some thresholds."""
        precision = self._best(thresholds, axes=(0, 2, 1))
        precision[..., self._undefined] = np.nan
        return precision

    def _score(self, thresholds: slice, missing: float) -> FloatArray:
        """:attr:`score` of some thresholds, with a number in place of -inf."""
        if "score" in self._state:
            known: FloatArray = self._state["score"][thresholds]
            return np.where(known == -np.inf, missing, known)
        # A point has a score if its true positive is in this range; one gather reads all scores.
        counts, nth = self.counts, self._nth(thresholds, EVERY)
        here = (nth >= 0) & (nth < counts.runs[thresholds, :, None])
        score = np.full(here.shape, missing)
        score[here] = counts.scores_of((nth + self._starts[thresholds, :, None])[here])
        # Recall point 0 is reached by the first detection of the class, true positive or not.
        first = np.where(counts.has_detections, counts.first_scores(), missing)
        return np.where(self.needed(EVERY) == 0, first[:, None], score)

    def _scores(self, thresholds: slice) -> FloatArray:
        """:attr:`scores` of some thresholds."""
        score = self._score(thresholds, 0.0)
        score[:, self.positive == 0] = np.nan
        return np.ascontiguousarray(score.transpose(0, 2, 1))

    @functools.cached_property
    def _undefined(self) -> NDArray[np.bool_]:
        """Classes without a curve, [K]: no counted ground truth, and no rule that makes it 0."""
        rule = self.rules.absent_classes
        absent: NDArray[np.bool_] = self.positive == 0
        if rule == "all_zero":
            return np.zeros_like(absent)
        if rule == "zero":
            absent &= ~self.totals.has_detections
        return absent

    @functools.cached_property
    def _starts(self) -> NDArray[np.intp]:
        """Where the segment of each threshold and class starts among all runs, [T, K]."""
        runs = self.counts.runs
        starts: NDArray[np.intp] = np.cumsum(runs).reshape(runs.shape) - runs
        return starts

    @functools.cached_property
    def _needed_by_count(self) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
        """:func:`needed_true_positives` of each number of positives [U, R]; the row of each class, [K]."""
        most, all_rows = int(self.positive.max(initial=0)), MOST_NEEDED // max(self.point_count, 1)
        whole = self.positive.dtype.kind in "iu"
        if whole and most < all_rows:  # resamples have the same few
            return _needed_up_to(tuple(self._points.tolist()), 1 << most.bit_length()), self.positive
        if len(self.positive) > all_rows:
            positive, row = np.unique(self.positive, return_inverse=True)
            return needed_true_positives(self._points, positive), row
        # Read what the table has, and compute the others.
        large = np.flatnonzero(self.positive >= all_rows) if whole else np.arange(len(self.positive))
        needed = np.empty((len(self.positive), self.point_count), dtype=np.int64)
        if len(large) < len(needed):
            _needed_up_to(tuple(self._points.tolist()), all_rows).take(
                self.positive, axis=0, mode="clip", out=needed
            )
        needed[large] = needed_true_positives(self._points, self.positive[large])
        return needed, np.arange(len(needed))

    def needed(self, classes: slice = EVERY) -> NDArray[np.int64]:
        """Fewest true positives ``n`` with ``n / positive >= point`` in floating point; [k, R]."""
        needed, row = self._needed_by_count
        return needed.take(row[classes], axis=0)

    def _nth(self, thresholds: slice, classes: slice) -> NDArray[np.int64]:
        """Return the number, in its class, of the run that reaches each recall point; [T or 1, k, R].

        It is negative if the run is in a range before, and at least the number of runs if it comes after this
        range or does not exist.
        """
        if self.counts.weights_up_to is not None:
            return self._nth_by_weight(thresholds, classes)
        nth = np.maximum(self.needed(classes)[None], 1) - 1
        if self._before is not None:
            nth = nth - self._before.true_positives[thresholds, classes, None]
        return self.counts.run_of(nth, thresholds, classes)

    def _nth_by_weight(self, thresholds: slice, classes: slice) -> NDArray[np.int64]:
        """:meth:`_nth` where true positives have weights."""
        weights = self.counts.weights_up_to
        assert weights is not None
        starts, runs = self._starts[thresholds, classes], self.counts.runs[thresholds, classes]
        nth = np.zeros((*starts.shape, self.point_count), dtype=np.int64)
        for t, k in np.ndindex(starts.shape):
            reached = weights[starts[t, k] : starts[t, k] + runs[t, k]]
            nth[t, k] = np.searchsorted(reached / np.maximum(self.positive[classes][k], 1e-300), self._points)
        return nth

    def _areas(self) -> FloatArray:
        """Compute the area under the curve by the protocol's rule, [T, K]."""
        from boxscore.scoring.areas import area_at_scores, area_through_points, curve_area

        # Compute one area per threshold and class with a counted ground truth; the others stay 0 or become
        # NaN at the end.
        rules, positive, epsilon = self.rules, self.positive, self.rules.precision_epsilon
        ap = np.zeros(self.recall.shape)
        segments = [(t, k) for t in range(len(ap)) for k in np.flatnonzero(positive).tolist()]
        # Rules at fixed scores, and at the ends of ties, count once for all classes and then read one class
        # at a time.
        if rules.score_steps:
            true, counted = self.totals.at_scores(score_steps(rules))
            for t, k in segments:
                ap[t, k] = area_at_scores(true[t, :, k], counted[t, :, k] + epsilon, positive[k])
        elif rules.interpolation == "ends_of_ties":
            true, counted, bounds = self._at_ends_of_ties()
            for t, k in segments:
                of_class = slice(int(bounds[k]), int(bounds[k + 1]))
                ap[t, k] = area_through_points(true[t, of_class], counted[t, of_class], positive[k], epsilon)
        else:
            # The other rules need the counted detections up to each true positive: a slice of one array for
            # each segment.
            up_to, sizes = self.counted_lines
            ends = np.cumsum(sizes).reshape(sizes.shape)
            weights = None if self._counts is None else self._counts.weights_up_to
            total = self.totals.counted if rules.interpolation != "area" else np.zeros_like(sizes)
            for t, k in segments:
                segment = slice(int(ends[t, k] - sizes[t, k]), int(ends[t, k]))
                sums = None if weights is None else weights[segment]
                ap[t, k] = curve_area(
                    up_to[segment], positive[k], rules, weights=sums, total=int(total[t, k])
                )
        return self.with_undefined(ap)

    def _at_ends_of_ties(self) -> tuple[NDArray[Any], NDArray[Any], Positions]:
        """Count true positives and counted detections up to the last of each distinct score, [T, S] each.

        Also where each class starts among the S scores, and the end, [K + 1].
        """
        counts = cast(ScoredCounter, self.counts)  # protocols with this rule refuse ranges of scores
        outcomes = cast(Outcomes, counts.outcomes)
        ends = np.append(tie_starts(outcomes.category, outcomes.score), len(outcomes.score))[1:]
        category = outcomes.category[ends - 1]
        true, counted = counts.up_to(ends, category)
        return true, counted, group_starts(category, len(self.positive))


def folds_of_ap(rules: ApRules) -> Mapping[str, Fold]:
    """Return how the fields fold that AP needs in addition to totals."""
    if rules.interpolation == "points":
        return {"best": LARGEST}
    by_scores = rules.score_steps or rules.interpolation == "ends_of_ties"
    return {} if by_scores else {"counted_lines": JOINED}


def folds_of_numbers(rules: ApRules) -> Mapping[str, Fold]:
    """Return how the fields fold that recall, precision, scores and AP need in addition to totals."""
    return {"best": LARGEST, "score": LARGEST, **folds_of_ap(rules)}


def means_at_points(envelope: FloatArray, rules: ApRules) -> FloatArray:
    """AP by the mean at the recall points; from [T, K, R] to [T, K]."""
    if rules.sequential_mean:
        summed: FloatArray = np.cumsum(envelope / envelope.shape[-1], axis=-1)[..., -1]
        return summed
    mean: FloatArray = np.ascontiguousarray(envelope).mean(axis=-1)
    return mean


@functools.lru_cache(maxsize=8)
def _needed_up_to(points: tuple[float, ...], end: int) -> NDArray[np.int64]:
    """:func:`needed_true_positives` of 0, 1, ... and ``end - 1`` positives, [end, R]."""
    return needed_true_positives(np.array(points), np.arange(end))


def needed_true_positives(points: FloatArray, positive: NDArray[Any]) -> NDArray[np.int64]:
    """Fewest true positives ``n`` with ``n / positive >= point`` in floating point; [K, R]."""
    total = np.maximum(positive, 1.0)[:, None]
    # The product is rounded, and so is the quotient that is compared. The ceiling is at most one off, so try
    # its neighbors with the comparison itself.
    needed: FloatArray = np.ceil(points * total)
    needed -= (needed - 1) / total >= points
    needed += needed / total < points
    return needed.astype(np.int64)
