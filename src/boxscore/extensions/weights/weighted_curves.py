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
  represents the run. Among runs with equally many true positives, the first one has the best precision.
- Precision goes to the slot of its number of true positives. The envelope is a cumulative maximum from the
  right over all slots, and the slot of a recall point is known.
- A *segment* is a class at a threshold. Nonnegative floats are ordered like their bits; those of a quotient
  times :data:`SCALE` leave room above them for the number of the segment. So one cumulative maximum serves
  many segments: earlier ones have larger numbers, later ones smaller ones.
- Classes are computed in blocks, whose arrays fit into a processor's cache.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import FloatArray, Positions
from boxscore._utils.ordering import ragged_ranges
from boxscore.data.vocabulary import Categories
from boxscore.extensions.weights.weight_sums import Pairs, WeightSums, weight_table
from boxscore.extensions.weights.weighted import ImageWeights
from boxscore.matching.matches import Matches
from boxscore.protocols.protocol import Protocol
from boxscore.scoring.curves import NO_EFFECT, Curves

SCALE = 2.0**-991
"""Scales quotients of whole numbers below 2**31 to the smallest floats, within 32 exponents; rounding is
unchanged."""

SEGMENT = 1 << 57
"""Exceeds the bits of the largest of them, 1."""

MOST_SEGMENTS = 126
"""Maximum segments whose numbers fit into 64 bits; a class has at most 64."""

MOST_TRUE_POSITIVES = 1 << 16
"""Maximum true positives of a block, over all thresholds; a single class may have more."""

EMPTY = np.iinfo(np.int64).min
"""A slot without a run."""


class _Runs(NamedTuple):
    """The U runs of a block, in descending order, so that the first run of a slot is written last.

    The fields are indexes of the sums up to the end of each run.
    """

    segment: Positions
    """Segment within the block."""
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


class _Block(NamedTuple):
    """Classes that are computed together, with S segments, and the indexes of their sums."""

    classes: slice
    key: NDArray[np.int64]
    """Number of each segment, times ``SEGMENT``, [k, T, 1]."""
    true: Positions
    """Index before each segment, and up to the last, [S + 1]."""
    base: Positions
    """Index before the class of each segment, [S]."""
    moves: Positions
    """Index before each segment, [S]."""
    runs: _Runs | None
    """None if precision is not needed."""


class _Sums(NamedTuple):
    """Cumulative sums under sets of weights, packed in pairs: of one pair, or of all pairs."""

    objects: Pairs
    true: Pairs
    base: Pairs
    moves: Pairs


class _Counts(NamedTuple):
    """Counts of a block under two sets of weights."""

    bounds: Pairs
    """True positives before each segment, and up to the last, [S + 1]."""
    reached: Pairs
    """True positives up to the end of each run, [U]."""
    counted: Pairs
    """Detections of the class up to the end of each run, [U]."""


class CurvesUnderWeights:
    """The curves of one area range and max detections, prepared for sets of image weights.

    Parameters
    ----------
    matches : Matches
    protocol : Protocol
    area, cap : int
        Positions on the axes A and M.
    categories : Categories
        The classes, [K]; those of one copy if ``matches`` has copies.
    best : bool
        Whether precision at recall points is needed.
    """

    def __init__(
        self, matches: Matches, protocol: Protocol, area: int, cap: int, categories: Categories, *, best: bool
    ) -> None:
        self._rules, self._categories, self._images = protocol.ap, categories, len(matches.images)
        self._prepared = prepared = ImageWeights(matches, protocol, area, cap)
        # Otherwise the best point of a run is not unique.
        self._best = best and protocol.ap.precision_epsilon <= NO_EFFECT
        order = np.argsort(prepared.truth_category, kind="stable")
        bounds = np.searchsorted(prepared.truth_category[order], np.arange(prepared.shape[1] + 1))
        self._objects = WeightSums(prepared.truth_image[order], bounds, self._images)
        self._object_bounds = self._objects.at(bounds)
        self._blocks = list(self._split_blocks())

    def of(self, sets: Sequence[FloatArray]) -> Iterator[Curves]:
        """Yield the curves under each of some sets of weights, whole numbers, [images] each."""
        exchanged = _are_exchanges(sets)
        sums = self._sums(weight_table(sets[:: 1 + exchanged]))
        together = 2 * (1 + exchanged)
        for pair, low in enumerate(range(0, len(sets), together)):
            few = list(sets[low : low + together])
            missing = together - len(few)
            yield from self._of_pair(few + few[:missing], _pair(sums, pair), exchanged)[: len(few)]

    def _of_pair(self, sets: Sequence[FloatArray], sums: _Sums, exchanged: bool) -> list[Curves]:
        """Return the curves of two sets of weights, or of two swaps, which have four sets."""
        # Allocate for two sets, or four: a swap is a set and its complement.
        T, K = self._prepared.shape
        positive = np.empty((len(sets), K), dtype=np.int64)
        recalled = np.empty((len(sets), K, T), dtype=np.intp)
        # The other side of a swap counts the total minus the first side.
        sides = [slice(side, None, 1 + exchanged) for side in range(1 + exchanged)]
        objects = np.diff(sums.objects.take(self._object_bounds))
        positive[sides[0]] = _halves(objects).T
        if exchanged:
            positive[sides[1]] = _halves(np.diff(self._ones.objects.take(self._object_bounds)) - objects).T
        # Make the curves with these counts filled in, and look up how many true positives each recall point
        # needs, [sets, K, R].
        curves = []
        for one, of_set, true in zip(sets, positive, recalled, strict=True):
            counts = self._prepared.counts(one, positive=of_set, true_positives=true.T)
            curves.append(Curves(counts, self._rules, categories=self._categories))
        needed = np.stack([one.needed() for one in curves])
        np.maximum(needed, 1, out=needed)
        best = np.empty((len(sets), K, T, needed.shape[-1]) if self._best else 0)
        # Compute block by block, both sets of a pair in one 64-bit operation.
        for number, block in enumerate(self._blocks):
            counted = self._counts(block, sums)
            self._read(block, counted, needed[sides[0]], recalled[sides[0]], best[sides[0]])
            if exchanged:
                # The other side of the pair has the rest of the total.
                pairs = zip(self._whole[number], counted, strict=True)
                others = _Counts(*(every - of_one for every, of_one in pairs))
                self._read(block, others, needed[sides[1]], recalled[sides[1]], best[sides[1]])
        for of_one, precision in zip(curves, best, strict=False):
            of_one.take_state({"best": precision.transpose(1, 0, 2)})
        return curves

    def _sums(self, table: NDArray[np.signedinteger]) -> _Sums:
        """Return the sums of all pairs of sets."""
        lists = (self._objects, self._true, self._base, self._moves)
        return _Sums(*(one.running(table) for one in lists))

    def _counts(self, block: _Block, sums: _Sums) -> _Counts:
        """Count under two sets of weights."""
        bounds, runs = sums.true.take(block.true), block.runs
        if runs is None:
            return _Counts(bounds, bounds[:0], bounds[:0])
        reached, counted = sums.true.take(runs.true), sums.base.take(runs.base)
        before = sums.base.take(block.base)
        if runs.moves is not None:
            counted += sums.moves.take(runs.moves)
            before += sums.moves.take(block.moves)
        counted -= before.take(runs.segment)
        if runs.tie is not None:
            counted += reached
            counted -= sums.true.take(runs.tie)
        return _Counts(bounds, reached, counted)

    @functools.cached_property
    def _ones(self) -> _Sums:
        """Sums with all weights 1."""
        return _pair(self._sums(weight_table([np.ones(self._images)] * 2)), 0)

    @functools.cached_property
    def _whole(self) -> list[_Counts]:
        """Counts of each block with all weights 1."""
        return [self._counts(block, self._ones) for block in self._blocks]

    def _read(
        self,
        block: _Block,
        counts: _Counts,
        needed: NDArray[np.int64],
        recalled: NDArray[np.intp],
        best: FloatArray,
    ) -> None:
        """Read the true positives, and the best precision at or after each recall point, of a block.

        ``needed`` is [2, K, R]; the results go into ``recalled``, [2, K, T], and ``best``, [2, K, T, R].
        """
        # Read the true positives of each segment from the cumulative sums, both halves of the pair as int32.
        T, runs, classes = self._prepared.shape[0], block.runs, block.classes
        ends = _halves(counts.bounds).astype(np.intp)
        recalled[:, classes] = np.diff(ends, axis=0).T.reshape(2, -1, T)
        if runs is None:
            return
        # Divide true positives by counted detections at the end of each run, [U, 2]. Scaling by a power of
        # two is exact.
        nth = counts.reached - counts.bounds.take(runs.segment)
        quotients = _halves(nth) * SCALE
        # 0 / 0 where nothing is counted; these values are not read.
        with np.errstate(invalid="ignore"):
            quotients /= _halves(counts.counted) + self._rules.precision_epsilon
        # Add the number of the segment above the bits of the float, so that the integers are sorted by
        # segment first.
        keyed = quotients.view(np.int64)
        keyed += runs.key
        # Write each run to the slot of its number of true positives; both sets have their own range of slots.
        # Runs are in descending order, so the first run of a slot, which has the best precision, remains.
        ends -= ends[0].copy()
        middle, end = np.cumsum(ends[-1] + 2).tolist()
        slots = np.full(end, EMPTY)
        slot = counts.reached - counts.bounds[0]
        slot += np.array([0, middle], dtype=np.int32).view(np.int64)
        slots[slot.view(np.int32).astype(np.intp)] = keyed.ravel()
        # A recall point that is not reached reads behind the segment: a smaller key, or an empty slot.
        at = ends[:-1].T.reshape(2, -1, T, 1) + needed[:, classes, None]
        found = np.empty(at.shape, dtype=np.int64)
        for side, of_side in enumerate((slots[:middle], slots[middle:])):
            # For whole numbers fmax equals maximum, whose accumulation in NumPy is several times slower.
            np.fmax.accumulate(of_side[::-1], out=of_side[::-1])
            of_side.take(at[side], mode="clip", out=found[side])
        # Subtract the key: a result of another segment has a smaller key and becomes 0. Multiplying by the
        # power of two restores the quotient.
        np.maximum(found, block.key, out=found)
        found -= block.key
        np.multiply(found.view(np.float64), 1 / SCALE, out=best[:, classes])

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
            yield _Block(slice(0, K), nothing, self._true.at(bounds), nothing, nothing, None)
            return
        # Find the start of each segment's corrections, in the old order and in the new.
        segment = np.repeat(np.arange(K * T), counts)
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
        run_bounds = np.searchsorted(run_segment, np.arange(K * T + 1))

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
        # Split into blocks that fit a processor's cache. Keys number the segments of a block downward, half
        # of them negative, to use all 64 bits.
        for low, high in _class_blocks(bounds[::T], T):
            these = slice(low * T, high * T)
            key = (np.arange(high * T - low * T)[::-1] - MOST_SEGMENTS // 2) * SEGMENT
            some = slice(run_bounds[these.start], run_bounds[these.stop])
            of_segment = run_segment[some][::-1] - these.start
            # Order runs from the last to the first, so that an earlier run overwrites a later one in its
            # slot.
            runs = _Runs(
                of_segment,
                np.column_stack([key[of_segment]] * 2),
                self._true.at(run[some][::-1] + 1),
                None if prepared.tie_order == "as_ranked" else self._true.at(run_tie[some][::-1]),
                self._base.at(ends.base[of_run[some][::-1]]),
                self._moves.at(run_moves[some][::-1]) if len(moves) else None,
            )
            yield _Block(
                slice(low, high),
                key.reshape(-1, T, 1),
                true_at[these.start : these.stop + 1],
                base_at[these],
                moves_at[these],
                runs,
            )


def _pair(sums: _Sums, number: int) -> _Sums:
    """Take the sums of one pair."""
    return _Sums(*(one[number] for one in sums))


def _class_blocks(starts: Positions, threshold_count: int) -> Iterator[tuple[int, int]]:
    """Split the classes into blocks, by the start of each one's true positives, and the end, [K + 1]."""
    low, most = 0, MOST_SEGMENTS // threshold_count
    ends = starts.tolist()
    for k in range(1, len(ends)):
        if k == len(ends) - 1 or k - low == most or ends[k + 1] - ends[low] > MOST_TRUE_POSITIVES:
            yield low, k
            low = k


def _are_exchanges(sets: Sequence[FloatArray]) -> bool:
    """Return whether the weights of every two sets add up to 1."""
    return len(sets) % 2 == 0 and all((sets[i] + sets[i + 1] == 1).all() for i in range(0, len(sets), 2))


def _bounds(counts: NDArray[np.signedinteger]) -> Positions:
    """Return the start of each range, and the end."""
    return np.concatenate([[0], np.cumsum(counts)])


def _halves(pairs: Pairs) -> NDArray[np.int32]:
    """Return the two numbers of each, [n, 2]."""
    return pairs.view(np.int32).reshape(-1, 2)
