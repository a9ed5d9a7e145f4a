"""Correct AP of few images: read each precision without the image of the true positive that reaches it.

Goal
----
The precision at a true positive counts that positive itself, so AP of few images is too high on average. The
correction takes each precision that AP reads without the image, or group of images, of the true positive that
reaches the recall point. It is computed for all images, and for all images but those of one group, under
which :mod:`boxscore.extensions.diagnostics.bootstrap` computes AP itself.

Conventions
-----------
- At a true positive, ``T`` of the ``N`` counted detections so far are true positives, ``t`` and ``n`` of them
  in the image of the true positive that reaches the recall point. Precision ``T / N`` becomes
  ``(T - t + q) / (N - n + 1)``: one detection takes the place of the image.
- That detection is right with probability ``q``, the mean precision of the other classes at the same score
  over all images; 1 without other classes.
- This is read twice, and the mean is taken. On the envelope, as AP reads its curve, the best of several
  precisions is too high by chance. At the true positive that reaches the point, the precision is too low.
- Where AP is not a mean at recall points, each true positive is a point of its own.
- Images have weight 0 or 1: all counts are whole numbers, and those without a group are the counts of all
  images minus those of the group.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import BoolArray, FloatArray, Positions
from boxscore._utils.ordering import group_starts
from boxscore._utils.processes import Forked, Workers, worker_count
from boxscore._utils.records import NamedTuple
from boxscore.errors import InputError
from boxscore.matching.matches import Matches
from boxscore.protocols.protocol import Protocol
from boxscore.scoring.blocks import HeldValues
from boxscore.scoring.counts import Outcomes, tie_ends
from boxscore.scoring.curves import Curves, needed_true_positives
from boxscore.scoring.totals import Totals

Groups = NDArray[np.integer]
"""Number of the group of each image, [I]."""

WORTH_FORKING = 1 << 21
"""Minimum of candidates and recall points over all thresholds and sets of images, a tenth of a second."""


class _Line(NamedTuple):
    """The detections of one threshold, [D], and its true positives, [n]; by class and descending score."""

    true: BoolArray
    """Whether each detection is a true positive, [D]."""
    false: BoolArray
    """Whether each detection is a false positive, [D]."""
    detection: Positions
    """Position of each true positive, [n]."""
    end: Positions
    """Position up to which detections count at each true positive, [n]."""
    start: Positions
    """First true positive of each class, and the end, [K + 1]."""
    prior: FloatArray
    """``q`` at each true positive, [n]."""
    true_of_run: NDArray[np.int64]
    """True positives before each place of the run order, [D + 1]."""
    false_of_run: NDArray[np.int64]
    """False positives before each place of the run order, [D + 1]."""


class _Counts(NamedTuple):
    """Counts of one set of images up to each true positive, [n], in its class."""

    true: NDArray[np.int64]
    false: NDArray[np.int64]
    there: BoolArray
    """Whether the image of each true positive is in the set."""


class HeldOutPrecision:
    """The outcomes of one area range and max detections, prepared for leaving out groups of images.

    Parameters
    ----------
    matches : Matches
    protocol : Protocol
    area, cap : int
        Positions on the axes A and M.
    units : ndarray of int, [I], optional
        What is held out at each true positive: a group of images by its number; by default its image.
    """

    def __init__(
        self, matches: Matches, protocol: Protocol, area: int, cap: int, units: Groups | None = None
    ) -> None:
        self._outcomes = outcomes = Outcomes.of(matches, protocol, area, cap)
        if outcomes.weight is not None:
            raise InputError("group.weight", "be 0 or 1 to weigh images", got=protocol.group.weight)
        assert outcomes.matches is not None
        self._rules, matches = protocol.ap, outcomes.matches
        self._class_count = K = len(outcomes.positive)
        # Keep the image of every object that recall is over, and of every detection.
        truths = np.flatnonzero(matches.taking_part(area))
        self._truth_image, self._truth_class = matches.truth_image[truths], matches.truth_category[truths]
        self._image = matches.image
        self._class_start = group_starts(outcomes.category, K)
        # Order the detections by unit and class: those of the same unit and class are a run. Inside a run
        # positions ascend, and so do the keys of all positions.
        D = len(self._image)
        unit = np.asarray(self._image if units is None else units[self._image], dtype=np.int64)
        self._run = unit * max(K, 1) + outcomes.category
        self._run_order = np.argsort(self._run, kind="stable")
        run = self._run[self._run_order]
        self._run_keys = run * (D + 1) + self._run_order
        is_first = np.append(True, np.diff(run) != 0)[:D]
        # Give each detection the start of its run, its own place, and the position of the next one in the
        # run, [D] each.
        self._run_start, self._place, self._next = np.empty((3, D), dtype=np.int64)
        self._run_start[self._run_order] = np.maximum.accumulate(np.where(is_first, np.arange(D), 0))
        self._place[self._run_order] = np.arange(D)
        following = np.append(self._run_order[1:], D)[:D]
        self._next[self._run_order] = np.where(np.append(is_first[1:], True)[:D], D, following)
        # Order the detections of all classes by descending score, for the mean precision of other classes.
        self._by_score = np.argsort(-outcomes.score, kind="stable")
        self._score_end = np.searchsorted(-outcomes.score[self._by_score], -outcomes.score, side="right")

    def curves(self, groups: Groups, group_count: int, workers: Workers = 1) -> list[Curves]:
        """Return closed curves whose AP is its correction: for all images, then without each group.

        Parameters and values are those of :meth:`corrections`; NaN for a class without a curve.
        """
        K, sets = self._class_count, range(1 + group_count)
        # Share the thresholds among processes if that is faster.
        T = len(self._outcomes.true)
        size = self._outcomes.true.size + T * K * len(self._rules.recall_points)
        shares = worker_count(workers) if len(sets) * size >= WORTH_FORKING else 1
        parts = [range(first, T, shares) for first in range(min(shares, max(T, 1)))]
        tasks = [functools.partial(self.corrections, groups, group_count, part) for part in parts[1:]]
        corrections = np.empty((1 + group_count, T, K))
        with contextlib.closing(Forked(tasks)) as forked:
            made_here = self.corrections(groups, group_count, parts[0])
            for part, of_part in zip(parts, [made_here, *forked.results()], strict=True):
                corrections[:, part] = of_part
        # Count the objects of each class, and the images and detections with it, in each set of images.
        positive = self._left_out(groups[self._truth_image], self._truth_class, group_count)
        pairs = np.unique(self._truth_image.astype(np.int64) * max(K, 1) + self._truth_class)
        image, category = np.divmod(pairs, max(K, 1))
        images = self._left_out(groups[image], category, group_count)
        detections = self._left_out(groups[self._image], self._outcomes.category, group_count)
        whole = len(groups) - np.append(0, np.bincount(groups, minlength=group_count))
        made = []
        for w in sets:
            absent = self._is_absent(positive[w], detections[w])
            values = {"AP": HeldValues(np.where(absent, np.nan, corrections[w]))}
            totals = Totals.of_objects(positive[w], int(whole[w]), images[w])
            made.append(Curves.of_numbers(self._rules, totals, values, self._outcomes.categories))
        return made

    def _is_absent(self, positive: NDArray[np.int64], detections: NDArray[np.int64]) -> BoolArray:
        """Find the classes without a curve, [K]."""
        absent: BoolArray = positive == 0
        if self._rules.absent_classes == "all_zero":
            return np.zeros_like(absent)
        return absent & (detections == 0) if self._rules.absent_classes == "zero" else absent

    def _left_out(self, group: Groups, category: NDArray[np.integer], count: int) -> NDArray[np.int64]:
        """Count rows by class, [1 + groups, K]: all of them, and those without each group."""
        K = self._class_count
        of_group = np.bincount(group.astype(np.int64) * K + category, minlength=count * K).reshape(count, K)
        every: NDArray[np.int64] = of_group.sum(axis=0)
        return np.concatenate([every[None], every - of_group])

    def corrections(
        self, groups: Groups, group_count: int, thresholds: Sequence[int] | None = None
    ) -> FloatArray:
        """Return the correction of AP for all images and, after that, without each group.

        Parameters
        ----------
        groups : ndarray of int, [I]
            Group of each image, from 0 to ``group_count`` - 1; images of one unit are in one group.
        group_count : int
        thresholds : sequence of int, optional
            Positions on the axis T; all by default.

        Returns
        -------
        ndarray of float64, [1 + group_count, thresholds, K]
            0 for a class without objects or true positives.
        """
        if thresholds is None:
            thresholds = range(len(self._outcomes.true))
        positive = self._left_out(groups[self._truth_image], self._truth_class, group_count)
        needed = [self._needed(one) for one in positive]
        group = groups[self._image]
        made = np.zeros((1 + group_count, len(thresholds), self._class_count))
        for at, t in enumerate(thresholds):
            line = self._line(t)
            if len(line.detection):
                for w, counts in enumerate(self._counts(line, group, group_count)):
                    made[w, at] = self._correction(line, counts, positive[w], needed[w])
        return made

    def _needed(self, positive: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """Return how many true positives each recall point needs, [K, R]; None: each is a point."""
        if self._rules.interpolation != "points":
            return None
        return np.maximum(needed_true_positives(np.array(self._rules.recall_points), positive), 1)

    def _line(self, threshold: int) -> _Line:
        """Read the outcomes of one threshold."""
        outcomes = self._outcomes
        true = np.zeros(len(outcomes.score), dtype=bool)
        true[outcomes.detection] = outcomes.true[threshold]
        false = outcomes.unmatched_counts & ~true
        false[outcomes.detection[outcomes.ignored[threshold]]] = False
        detection, order = np.flatnonzero(true), self._rules.tie_order
        return _Line(
            true,
            false,
            detection,
            detection + 1 if order == "as_ranked" else tie_ends(outcomes, order)[detection],
            np.searchsorted(detection, self._class_start),
            self._prior(true, false, detection),
            np.append(0, np.cumsum(true[self._run_order])),
            np.append(0, np.cumsum(false[self._run_order])),
        )

    def _prior(self, true: BoolArray, false: BoolArray, detection: Positions) -> FloatArray:
        """Return the mean precision of the other classes down to the score of each true positive, [n]."""
        # Compute the precision of its class after each detection: cumulative counts, minus those before the
        # class.
        category, D = self._outcomes.category, len(true)
        before = self._class_start[category]
        hits, counted = (np.append(0, np.cumsum(flags)) for flags in (true, true | false))
        hits, counted = hits[1:] - hits[before], counted[1:] - counted[before]
        precision = np.divide(hits, counted, out=np.zeros(D), where=counted > 0)
        # Each detection changes the sum of the precisions of all classes, and the first that counts adds a
        # class to it.
        is_first = np.arange(D) == before
        change = np.where(is_first, precision, np.diff(precision, prepend=0.0))
        joins = (counted == 1) & (true | false)
        # Sum the changes by score; equal scores count together.
        end = self._score_end[detection] - 1
        total, classes = (np.cumsum(each[self._by_score])[end] for each in (change, joins))
        # Take out the class of the true positive: its precision after its last detection of that score.
        own = precision[tie_ends(self._outcomes, "true_positives_last")[detection] - 1]
        mean = np.divide(total - own, classes - 1, out=np.ones(len(detection)), where=classes > 1)
        # Rounding errors of the sum may leave the range.
        prior: FloatArray = np.clip(mean, 0.0, 1.0)
        return prior

    def _counts(self, line: _Line, group: Groups, group_count: int) -> Iterator[_Counts]:
        """Yield the counts of all images, then those without each group."""
        n, sizes = len(line.detection), np.diff(line.start)
        wrong = np.flatnonzero(line.false)
        true = np.arange(1, n + 1) - np.repeat(line.start[:-1], sizes)
        before = np.searchsorted(wrong, self._class_start[:-1])
        false = np.searchsorted(wrong, line.end) - np.repeat(before, sizes)
        yield _Counts(true, false, np.ones(n, dtype=bool))
        # List the true positives, and the false positives, of each group.
        true_order, true_bounds = _by_group(group[line.detection], group_count)
        wrong_order, wrong_bounds = _by_group(group[wrong], group_count)
        # A false positive is missing at every true positive of its class from this one on.
        from_true = np.searchsorted(line.end, wrong, side="right")
        for g in range(group_count):
            there = np.ones(n, dtype=bool)
            there[true_order[true_bounds[g] : true_bounds[g + 1]]] = False
            those = wrong_order[wrong_bounds[g] : wrong_bounds[g + 1]]
            running = np.cumsum(there)
            running_missing = np.cumsum(np.bincount(from_true[those], minlength=n)[:n])
            # Make them in-class by subtracting the counts before the class.
            true_before = np.append(0, running)[line.start[:-1]]
            missing_before = np.searchsorted(wrong[those], self._class_start[:-1])
            yield _Counts(
                running - np.repeat(true_before, sizes),
                false - (running_missing - np.repeat(missing_before, sizes)),
                there,
            )

    def _correction(
        self,
        line: _Line,
        counts: _Counts,
        positive: NDArray[np.int64],
        needed: NDArray[np.int64] | None,
    ) -> FloatArray:
        """Return the correction of AP at one threshold, under one set of images, [K]."""
        K, n, sizes = self._class_count, len(line.detection), np.diff(line.start)
        counted = counts.true + counts.false
        precision = np.divide(counts.true, counted, out=np.zeros(n), where=counted > 0)
        # Find the best precision at or behind each true positive: a running maximum from the right of complex
        # numbers, which are ordered by their real part, the class, first.
        keyed = np.empty(n, dtype=np.complex128)
        keyed.real, keyed.imag = np.repeat(-np.arange(K, dtype=np.float64), sizes), precision
        best = np.maximum.accumulate(keyed[::-1])[::-1].imag
        # The nearest true positive that has it is the nearest whose own precision is the best behind it. One
        # whose image is missing has at most the precision of the one before it, so it is never the nearest.
        record = np.where(precision >= best, np.arange(n), n)
        nearest = np.minimum.accumulate(record[::-1])[::-1]
        # Read both curves where recall points are reached.
        reached, category, share = self._points(line, counts, positive, needed)
        at = nearest[reached]
        on_envelope = self._held_out(line, counts, reached, at)
        at_itself = self._held_out(line, counts, reached, reached)
        change = share * ((on_envelope + at_itself) / 2 - precision[at])
        correction: FloatArray = np.bincount(category, weights=change, minlength=K).astype(np.float64)
        return correction

    def _points(
        self,
        line: _Line,
        counts: _Counts,
        positive: NDArray[np.int64],
        needed: NDArray[np.int64] | None,
    ) -> tuple[Positions, Positions, FloatArray | float]:
        """Return the true positive that reaches each recall point, its class, and the weight of the point."""
        if needed is None:
            reached = np.flatnonzero(counts.there)
            category = np.searchsorted(line.start, reached, side="right") - 1
            return reached, category, 1 / positive[category]
        # Count true positives through all classes, so that one search finds the points of all of them.
        running = np.cumsum(counts.there)
        before = np.append(0, running)[line.start]
        category, point = np.nonzero(needed <= np.diff(before)[:, None])
        reached = np.searchsorted(running, before[category] + needed[category, point])
        return reached, category, 1 / needed.shape[1]

    def _held_out(self, line: _Line, counts: _Counts, reached: Positions, at: Positions) -> FloatArray:
        """Return precision at true positives ``at`` without the units of true positives ``reached``."""
        detection = line.detection[reached]
        start = self._run_start[detection]
        # Count the detections of the unit and class before two positions: the true positive, and the place
        # among equal scores up to which false positives count.
        end = line.end[at]
        false_place = self._places(detection, end)
        if self._rules.tie_order == "as_ranked":
            true_place = false_place
        else:
            true_place = self._places(detection, line.detection[at] + 1)
        true = counts.true[at] - (line.true_of_run[true_place] - line.true_of_run[start])
        false = counts.false[at] - (line.false_of_run[false_place] - line.false_of_run[start])
        held: FloatArray = (true + line.prior[at]) / (true + false + 1)
        return held

    def _places(self, detection: Positions, end: Positions) -> Positions:
        """Return the place in the run order behind the last detection of a run before a position."""
        # Mostly it is the place behind the detection itself: no other one follows before the position.
        place = self._place[detection] + 1
        others = np.flatnonzero((self._next[detection] < end) | (end <= detection))
        keys = self._run[detection[others]] * (len(self._run) + 1) + end[others]
        place[others] = np.searchsorted(self._run_keys, keys)
        return place


def _by_group(group: Groups, group_count: int) -> tuple[Positions, Positions]:
    """Return an order by group, and where each group starts in it, with the end."""
    order = np.argsort(group, kind="stable")
    return order, np.searchsorted(group[order], np.arange(group_count + 1))
