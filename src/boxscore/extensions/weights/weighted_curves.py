"""Compute curves under batches of image weights, for the many sets of the bootstrap and of swaps.

Goal
----
The results equal those of :class:`~boxscore.extensions.weights.weighted.WeightedCounts` to the last bit, in a
few passes over small arrays: true positives are not repeated, and recall points need no search. Everything
independent of the weights is prepared once.

Conventions
-----------
- All counts are differences of cumulative weights (:mod:`boxscore.extensions.weights.weight_sums`) of two
  sets, packed into 64-bit integers.
- In a *run* of consecutive true positives, the last one has the best precision for any weights, and
  represents the run. Among runs that reach the same recall points, the first one has the best precision.
- A *segment* is a class at a threshold. Nonnegative floats are ordered like their bits; those of a quotient
  times :data:`SCALE` leave room above them for the number of the segment. So one cumulative maximum serves
  many segments: earlier ones have larger numbers, later ones smaller ones.
- The best precision at or after each run belongs to the recall points that this run reaches and the run
  before it does not. So precision is a list of values with the number of recall points of each, and nothing
  has the size of thresholds x recall points before it is summed
  (:class:`~boxscore.extensions.weights.point_values.RunValues`).
- After the last run of a segment there is an entry for the recall points that no run reaches.
- Classes are computed in blocks, whose arrays fit into a processor's cache.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import BoolArray, FloatArray, IntArray, Positions
from boxscore._utils.ordering import distinct_rows, group_starts, ragged_ranges
from boxscore.extensions.weights.point_values import PointValues, RunValues
from boxscore.extensions.weights.weight_sums import Pairs, Room, WeightSums, weight_table
from boxscore.extensions.weights.weighted import ImageWeights
from boxscore.matching.matches import Matches
from boxscore.protocols.protocol import Protocol
from boxscore.protocols.tables.ap import ApRules
from boxscore.scoring.blocks import Values
from boxscore.scoring.counts import images_of_classes
from boxscore.scoring.curves import NO_EFFECT, Curves
from boxscore.scoring.totals import Totals

SCALE = 2.0**-991
"""Scales quotients of whole numbers below 2**31 to the smallest floats, within 32 exponents; rounding is
unchanged."""

SEGMENT = 1 << 57
"""Exceeds the bits of the largest of them, 1."""

MOST_SEGMENTS = 126
"""Maximum segments whose numbers fit into 64 bits; a class has at most 64."""

MOST_TRUE_POSITIVES = 1 << 16
"""Maximum true positives of a block, over all thresholds and pairs of sets; a single class may have more."""


CELLS = 1 << 12
"""Cells of recall from 0 to 1, a power of two; few have several recall points."""


class _Runs(NamedTuple):
    """The U runs of a block and the ends of its segments, in descending order, for the cumulative maximum.

    The end of a segment is an entry without a true positive. The fields are indexes of the sums up to the end
    of each run.
    """

    lengths: Positions
    """Number of entries of each segment, [S], in descending order."""
    key: NDArray[np.int64]
    """Key of the segment, twice, [U, 2]."""
    true: Positions
    """Index of the true positives."""
    tie: Positions | None
    """Index of the true positives up to the end's place among equal scores; None: the same."""
    base: Positions
    """Index of the detections that count unmatched."""
    moves: Positions | None
    """Index of the corrections by matches; None without corrections."""

    def of_segments(self, values: Pairs) -> Pairs:
        """Repeat a value of each segment, in ascending order, [P, S], for its entries, [P, U]."""
        return np.repeat(values[:, ::-1], self.lengths, axis=1)


class _Block(NamedTuple):
    """Classes that are computed together, with S segments, and the indexes of their sums."""

    classes: Positions
    """The classes, k."""
    true: Positions
    """Index before each segment, and up to the last, [S + 1]."""
    base: Positions
    """Index before the class of each segment, [S]."""
    moves: Positions
    """Index before each segment, [S]."""
    runs: _Runs | None
    """None if precision is not needed."""
    entries: slice
    """Its entries among those of all blocks."""
    size: int
    """Number of true positives, at all thresholds."""


class _Sums(NamedTuple):
    """Cumulative sums under P pairs of sets of weights, [P, ...]."""

    objects: Pairs
    true: Pairs
    base: Pairs
    moves: Pairs


class _Counts(NamedTuple):
    """Counts of a block under P pairs of sets of weights."""

    bounds: Pairs
    """True positives before each segment, and up to the last, [P, S + 1]."""
    reached: Pairs
    """True positives up to the end of each run, [P, U]."""
    counted: Pairs
    """Detections of the class up to the end of each run, [P, U]."""


def has_points(rules: ApRules) -> bool:
    """Return whether precision is read at recall points, and the best point of a run is always its last."""
    return rules.interpolation == "points" and rules.precision_epsilon <= NO_EFFECT


class _Precision(NamedTuple):
    """Where the precision of W sets of weights goes, E entries each."""

    reached: IntArray
    """Recall points that so many true positives reach; a list for each different number of objects of all
    classes, [F, sum of sizes]."""
    list_of: NDArray[np.int32]
    """Start of the list of each set, [W]."""
    start: NDArray[np.int32]
    """Start of each class in a list, [K]."""
    values: FloatArray
    """Precision, [W, E]."""
    repeats: IntArray
    """Recall points with this precision, [W, E]."""

    def of(self, some: slice, side: int, sides: int, entries: slice) -> tuple[FloatArray, IntArray]:
        """Return the part of a block under some pairs of sets, [P, 2, U] each."""
        by_pair = -1, 2, sides, self.values.shape[1]
        part = some, slice(None), side, entries
        return self.values.reshape(by_pair)[part], self.repeats.reshape(by_pair)[part]


class CurvesUnderWeights:
    """The curves of one area range and max detections, prepared for sets of image weights.

    Parameters
    ----------
    matches : Matches
    protocol : Protocol
        A protocol of :func:`has_points`.
    area, cap : int
        Positions on the axes A and M.
    best : bool
        Whether precision at recall points is needed.
    single : sequence of int
        Thresholds at which precision is also needed alone.
    rooms : sequence of Room, [5]
        Memory of the results and sums, which several of these share.
    """

    def __init__(
        self,
        matches: Matches,
        protocol: Protocol,
        area: int,
        cap: int,
        *,
        best: bool,
        single: Sequence[int],
        rooms: Sequence[Room],
    ) -> None:
        self._protocol, self._rules, self._categories = protocol, protocol.ap, matches.categories
        self._best, self._single, self._images = best, single, len(matches.images)
        self._prepared = prepared = ImageWeights(matches, protocol, area, cap)
        order = np.argsort(prepared.truth_category, kind="stable")
        bounds = group_starts(prepared.truth_category[order], prepared.shape[1])
        self._objects = WeightSums(prepared.truth_image[order], bounds, self._images)
        self._object_bounds = self._objects.at(bounds)
        self._blocks = list(self._split_blocks())
        self._room, *self._rooms = rooms

    @property
    def size(self) -> int:
        """Number of values of precision under a set of weights."""
        return int(self._blocks[-1].entries.stop) if self._blocks else 0

    def of(self, sets: Sequence[FloatArray]) -> Curves:
        """Return closed curves under W sets of weights, whole numbers, [images] each; W is a multiple of 4.

        The axis of classes has the classes of all sets, [W x K]. Read the curves before others are made in
        the same rooms.
        """
        # The other side of a swap counts the total minus the first side.
        sides = 1 + _are_exchanges(sets)
        sums = self._sums(weight_table(sets[::sides]), self._rooms)
        (T, K), W = self._prepared.shape, len(sets)
        # Count objects and true positives.
        positive = np.empty((W, K), dtype=np.int64)
        recalled = np.zeros((W, K, T), dtype=np.intp)
        for side, (objects, true) in enumerate(self._both_sides(sums, sides)):
            positive[side::sides] = _by_set(np.diff(objects))
            for block, of_block in zip(self._blocks, true, strict=True):
                counts = np.diff(_by_set(of_block))
                recalled[side::sides, block.classes] = counts.reshape(W // sides, len(block.classes), T)
        # Recall has a column for each class with objects, and is 0 in the last one.
        has_objects = positive > 0
        recall = np.zeros((T, int(has_objects.sum()) + 1))
        np.divide(recalled[has_objects].T, positive[has_objects], out=recall[:, :-1])
        known: dict[str, Values] = {"AR": PointValues(recall, has_objects)}
        if self._best:
            precision = self._precision(positive, recalled)
            for block, whole in zip(self._blocks, self._whole if sides == 2 else self._blocks, strict=True):
                # Compute so many pairs of sets together that a block fits into the cache.
                together = max(1, MOST_TRUE_POSITIVES // max(block.size, 1))
                for low in range(0, W // (2 * sides), together):
                    some = slice(low, low + together)
                    counted = self._counts(block, _Sums(*(one[some] for one in sums)))
                    self._write(block, counted, precision, some, 0, sides)
                    if isinstance(whole, _Counts):
                        others = _Counts(
                            *(all_of - of_one for all_of, of_one in zip(whole, counted, strict=True))
                        )
                        self._write(block, others, precision, some, 1, sides)
            known["AP"] = self._values(precision, self._defined(sets, positive))
        totals = Totals.of_objects(positive.ravel(), 0, self._images_of_classes(sets).ravel())
        return Curves.of_numbers(self._rules, totals, known, self._categories)

    def _both_sides(self, sums: _Sums, sides: int) -> Iterator[tuple[Pairs, list[Pairs]]]:
        """Yield the objects up to each class, and the true positives up to each segment of each block."""
        made = (
            sums.objects.take(self._object_bounds, axis=1),
            [sums.true.take(block.true, axis=1) for block in self._blocks],
        )
        yield made
        if sides == 2:
            (objects, true), every = made, self._ones
            yield (
                every.objects.take(self._object_bounds, axis=1) - objects,
                [
                    every.true.take(block.true, axis=1) - of_block
                    for block, of_block in zip(self._blocks, true, strict=True)
                ],
            )

    def _images_of_classes(self, sets: Sequence[FloatArray]) -> NDArray[np.int64]:
        """Count the images with an object of each class, if means are weighted by them, [W, K]."""
        if self._rules.class_mean != "by_images":
            return np.zeros((len(sets), self._prepared.shape[1]), dtype=np.int64)
        return np.array([images_of_classes(self._prepared.outcomes, one) for one in sets])

    def _defined(self, sets: Sequence[FloatArray], positive: NDArray[np.int64]) -> BoolArray:
        """Find the classes that have a curve under each set, [W, K]."""
        rule, defined = self._rules.absent_classes, positive > 0
        if rule == "all_zero":
            return np.ones_like(defined)
        if rule == "zero":
            defined |= np.array([self._prepared.counts(one).has_detections for one in sets])
        return defined

    def _precision(self, positive: NDArray[np.int64], recalled: NDArray[np.intp]) -> _Precision:
        """Make room for the precision, and count the recall points that true positives reach."""
        points = np.array(self._rules.recall_points)
        # Each class has a place for each number of true positives up to its largest.
        sizes = np.maximum(positive, recalled.max(axis=2, initial=0)).max(axis=0) + 1
        bounds = _bounds(sizes)
        number = np.arange(bounds[-1]) - np.repeat(bounds[:-1], sizes)
        # Count the recall points that it reaches. Sets with equal objects, such as swaps, share a list.
        firsts, list_of = distinct_rows(positive)
        recall = number / np.repeat(np.maximum(positive[firsts], 1), sizes, axis=1)
        reached = points_up_to(points, recall)
        # No true positive has no precision at a recall of 0 either, nor has a class without a curve.
        reached[:, bounds[:-1]] = 0
        if self._rules.absent_classes not in ("zero", "all_zero"):
            reached *= np.repeat(positive[firsts] > 0, sizes, axis=1)
        lists = (list_of * bounds[-1]).astype(np.int32)
        values, repeats = self._room.array((2, len(positive), self.size))
        return _Precision(reached, lists, bounds[:-1].astype(np.int32), values, repeats.view(np.int64))

    def _sums(self, table: NDArray[np.signedinteger], rooms: Sequence[Room]) -> _Sums:
        """Return the sums of all pairs of sets, in some rooms."""
        lists = (self._objects, self._true, self._base, self._moves)
        return _Sums(*(one.running(table, room) for one, room in zip(lists, rooms, strict=True)))

    def _counts(self, block: _Block, sums: _Sums) -> _Counts:
        """Count under some pairs of sets of weights."""
        bounds, runs = sums.true.take(block.true, axis=1), block.runs
        if runs is None:
            return _Counts(bounds, bounds[:, :0], bounds[:, :0])
        reached, counted = sums.true.take(runs.true, axis=1), sums.base.take(runs.base, axis=1)
        before = sums.base.take(block.base, axis=1)
        if runs.moves is not None:
            counted += sums.moves.take(runs.moves, axis=1)
            before += sums.moves.take(block.moves, axis=1)
        counted -= runs.of_segments(before)
        if runs.tie is not None:
            counted += reached
            counted -= sums.true.take(runs.tie, axis=1)
        return _Counts(bounds, reached, counted)

    @functools.cached_property
    def _ones(self) -> _Sums:
        """Sums with all weights 1."""
        fresh = [Room() for _ in self._rooms]
        return self._sums(weight_table([np.ones(self._images)] * 2), fresh)

    @functools.cached_property
    def _whole(self) -> list[_Counts]:
        """Counts of each block with all weights 1."""
        return [self._counts(block, self._ones) for block in self._blocks]

    def _write(
        self, block: _Block, counts: _Counts, precision: _Precision, some: slice, side: int, sides: int
    ) -> None:
        """Write the best precision at or after each run of a block under P pairs of sets."""
        runs = block.runs
        assert runs is not None
        # Divide true positives by counted detections at the end of each run, [P, U, 2]. Scaling by a power of
        # two is exact.
        nth = counts.reached - runs.of_segments(counts.bounds[:, :-1])
        quotients = _halves(nth) * SCALE
        below = _halves(counts.counted) + self._rules.precision_epsilon
        # Where nothing is counted there is no true positive either.
        if not self._rules.precision_epsilon:
            np.maximum(below, 1, out=below)
        quotients /= below
        # Add the number of the segment above the bits of the float, so that one cumulative maximum, from the
        # last run to the first, serves all segments. For whole numbers fmax equals maximum, whose
        # accumulation in NumPy is several times slower.
        keyed = quotients.view(np.int64)
        keyed += runs.key
        np.fmax.accumulate(keyed, axis=1, out=keyed)
        keyed -= runs.key
        values, repeats = precision.of(some, side, sides, block.entries)
        np.multiply(quotients[:, ::-1].transpose(0, 2, 1), 1 / SCALE, out=values)
        # Look up the recall points that each run reaches by its number of true positives, in the list of its
        # set and class.
        lists = precision.list_of.reshape(-1, 2, sides)[some, :, side]
        starts = np.repeat(precision.start[block.classes], self._prepared.shape[0])[:, None] + lists[:, None]
        at = _halves(nth + runs.of_segments(_pairs(starts))).astype(np.intp)
        reached = precision.reached.reshape(-1).take(at)[:, ::-1].transpose(0, 2, 1)
        # Those that the run before it reaches have that run's precision. An end has reached none.
        np.subtract(reached[..., 1:], reached[..., :-1], out=repeats[..., 1:])
        repeats[..., 0] = reached[..., 0]

    def _values(self, precision: _Precision, defined: BoolArray) -> Values:
        """Return the values of AP."""
        T, R = self._prepared.shape[0], len(self._rules.recall_points)
        # The end of a segment has the recall points that no run reaches, if the class has a curve.
        precision.repeats[:, self._ends] += R * np.repeat(defined, T, axis=1)
        precise = RunValues(precision.values, precision.repeats, (T, R), defined, self._single)
        return precise.means_in_turn() if self._rules.sequential_mean else precise

    def _split_blocks(self) -> Iterator[_Block]:
        """Split the prepared data into blocks of classes, with segments sorted by class."""
        prepared, (T, K) = self._prepared, self._prepared.shape
        # Sort the true positives by class, then threshold, so that a block of classes is a slice.
        segments = np.arange(T * K).reshape(T, K).T.ravel()
        counts = np.diff(prepared.starts)[segments]
        order = ragged_ranges(prepared.starts[:-1][segments], counts)
        bounds, images = _bounds(counts), self._images
        # Without precision no runs are needed: use one block of all classes.
        if not self._best:
            nothing = np.zeros(0, dtype=np.intp)
            self._true = WeightSums(prepared.true_image[order], bounds, images)
            self._base = self._moves = WeightSums(nothing, nothing, images)
            yield _Block(np.arange(K), self._true.at(bounds), nothing, nothing, None, slice(0), 0)
            return
        # Find the start of each segment's corrections, in the old order and in the new.
        segment = np.repeat(np.arange(len(segments)), counts)
        move_counts = np.bincount(prepared.move_segment, minlength=T * K)
        move_starts = _bounds(move_counts)[:-1][segments]
        move_bounds = _bounds(move_counts[segments])

        # Count false positives up to each true positive with all weights 1: equal counts mean the same false
        # positives.
        ends = prepared.ends_under(prepared.tie_order)
        moved = _bounds(prepared.move_sign)
        false = (ends.base - ends.true_positives + moved[ends.moves])[order]
        last = np.ones(len(order), dtype=bool)
        last[:-1] = (segment[1:] != segment[:-1]) | (false[1:] != false[:-1])
        # Keep the last true positive of each run, and map its ends into the new order.
        run = np.flatnonzero(last)
        run_segment = segment[run]
        of_run = order[run]
        run_moves = ends.moves[of_run] + (move_bounds[:-1] - move_starts)[run_segment]
        run_tie = run + 1
        if prepared.tie_order != "as_ranked":
            run_tie = ends.true_positives[of_run] + (bounds[:-1] - prepared.starts[segments])[run_segment]
        run_bounds = np.searchsorted(run_segment, np.arange(len(segments) + 1))

        # Collect every position at which a sum is read, so that each list of images is summed once. A
        # correction by -1 is an image with a shifted number, whose weight is negative.
        class_base = prepared.base_start[segments]
        move_order = ragged_ranges(move_starts, move_counts[segments])
        moves = prepared.move_image[move_order] + images * (prepared.move_sign[move_order] < 0)
        # Each kind of sum has its own list of images and of positions.
        true_ends = np.concatenate([bounds, run + 1, run_tie])
        self._true = WeightSums(prepared.true_image[order], true_ends, images)
        base_ends = np.concatenate([class_base, ends.base[of_run]])
        self._base = WeightSums(prepared.base_image, base_ends, images)
        self._moves = WeightSums(moves, np.concatenate([move_bounds, run_moves]), images)
        true_at, base_at = self._true.at(bounds), self._base.at(class_base)
        moves_at = self._moves.at(move_bounds)
        # Append an end to the runs of each segment, which counts nothing: its sums are those before the
        # segment.
        after = run_bounds[1:]
        entry_segment = np.insert(run_segment, after, np.arange(len(segments)))
        entry_true = np.insert(self._true.at(run + 1), after, true_at[:-1])
        entry_tie = np.insert(self._true.at(run_tie), after, true_at[:-1])
        entry_base = np.insert(self._base.at(ends.base[of_run]), after, base_at)
        entry_moves = np.insert(self._moves.at(run_moves), after, moves_at[:-1])
        self._ends = after + np.arange(len(segments))
        # Split into blocks that fit a processor's cache. Keys number the segments of a block downward, half
        # of them negative, to use all 64 bits.
        for low, high in _class_blocks(bounds[::T], T):
            these = slice(low * T, high * T)
            key = (np.arange(high * T - low * T)[::-1] - MOST_SEGMENTS // 2) * SEGMENT
            entries = slice(run_bounds[low * T] + low * T, run_bounds[high * T] + high * T)
            of_segment = entry_segment[entries][::-1] - low * T
            runs = _Runs(
                np.bincount(of_segment, minlength=(high - low) * T)[::-1],
                np.column_stack([key[of_segment]] * 2),
                entry_true[entries][::-1],
                None if prepared.tie_order == "as_ranked" else entry_tie[entries][::-1],
                entry_base[entries][::-1],
                entry_moves[entries][::-1] if len(moves) else None,
            )
            yield _Block(
                np.arange(low, high),
                true_at[these.start : these.stop + 1],
                base_at[these],
                moves_at[these],
                runs,
                entries,
                int(bounds[these.stop] - bounds[these.start]),
            )


def _class_blocks(starts: Positions, threshold_count: int) -> Iterator[tuple[int, int]]:
    """Split the classes into blocks, by the start of each one's true positives, and the end, [K + 1]."""
    low, most = 0, MOST_SEGMENTS // threshold_count
    ends = starts.tolist()
    for k in range(1, len(ends)):
        if k == len(ends) - 1 or k - low == most or ends[k + 1] - ends[low] > MOST_TRUE_POSITIVES:
            yield low, k
            low = k


def points_up_to(points: FloatArray, recall: FloatArray) -> Positions:
    """Count the ascending points, from 0 to 1, up to each recall: ``searchsorted``, but in a few passes."""
    # Look up the points up to the start of the cell of each recall, whose product with a power of two is
    # exact, and add those within the cell.
    starts = np.searchsorted(points, np.arange(CELLS + 1) / CELLS, side="right")
    count = starts.take((recall * CELLS).astype(np.intp), mode="clip")
    following = np.append(points, np.inf)
    for _ in range(int(np.diff(starts).max())):
        count += following.take(count) <= recall
    return count


def _are_exchanges(sets: Sequence[FloatArray]) -> bool:
    """Return whether the weights of every two sets add up to 1."""
    return len(sets) % 2 == 0 and all((sets[i] + sets[i + 1] == 1).all() for i in range(0, len(sets), 2))


def _bounds(counts: NDArray[np.signedinteger]) -> Positions:
    """Return the start of each range, and the end."""
    return np.concatenate([[0], np.cumsum(counts)])


def _halves(pairs: Pairs) -> NDArray[np.int32]:
    """Return the two numbers of each, [..., 2]."""
    return pairs.view(np.int32).reshape(*pairs.shape, 2)


def _pairs(halves: NDArray[np.int32]) -> Pairs:
    """Pack two nonnegative numbers each, [..., 2]."""
    return np.ascontiguousarray(halves).view(np.int64)[..., 0]


def _by_set(pairs: Pairs) -> NDArray[np.int32]:
    """Return the numbers of each set, from [P, n] to [2 P, n]."""
    return _halves(pairs).transpose(0, 2, 1).reshape(2 * len(pairs), pairs.shape[1])
