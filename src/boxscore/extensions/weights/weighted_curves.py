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
"""Maximum true positives of a block, over all thresholds and pairs of sets; a single class may have more."""

MOST_VALUES = 1 << 20
"""Maximum values [T, R, K] that are computed together, 8 bytes each; two sets, or swaps, may have more."""

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

    classes: Positions | slice
    """The classes, k."""
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
        self._room: FloatArray = np.zeros(0)

    def of(self, sets: Sequence[FloatArray]) -> Iterator[Curves]:
        """Yield the curves under each of some sets of weights, whole numbers, [images] each.

        Read each of them before the next one: its precision is overwritten.
        """
        sides = 1 + _are_exchanges(sets)
        sums = self._sums(weight_table(sets[::sides]))
        T, K = self._prepared.shape
        # Compute so many pairs together that their precision takes little memory, but one at least.
        values = 2 * sides * max(T * K * len(self._rules.recall_points), 1)
        together = max(1, MOST_VALUES // values)
        for low in range(0, len(sums.true), together):
            some = slice(low, low + together)
            few = sets[2 * sides * low : 2 * sides * (low + together)]
            yield from self._of_pairs(few, sides, _Sums(*(one[some] for one in sums)))

    def _of_pairs(self, sets: Sequence[FloatArray], sides: int, sums: _Sums) -> Iterator[Curves]:
        """Yield the curves under P pairs of sets, or of swaps, which have two sides."""
        # The other side of a swap counts the total minus the first side.
        (T, K), count = self._prepared.shape, 2 * len(sums.true)
        positive = np.empty((count, sides, K), dtype=np.int64)
        objects = np.diff(sums.objects.take(self._object_bounds, axis=1))
        positive[:, 0] = _by_set(objects)
        if sides == 2:
            every = np.diff(self._ones.objects.take(self._object_bounds, axis=1))
            positive[:, 1] = _by_set(every - objects)
        # Make the curves with these counts filled in, and look up how many true positives each recall point
        # needs, [sets, sides, K, R]. Sets with equal objects need equally many.
        recalled = np.zeros((count, sides, K, T), dtype=np.intp)
        curves: list[Curves] = []
        known: dict[bytes, NDArray[np.int64]] = {}
        needed = np.ones((count, sides, K, len(self._rules.recall_points)), dtype=np.int64)
        for number, one in enumerate(sets):
            at = divmod(number, sides)
            counts = self._prepared.counts(one, positive=positive[at], true_positives=recalled[at].T)
            curves.append(Curves(counts, self._rules, categories=self._categories))
            if self._best:
                objects_of = positive[at].tobytes()
                if objects_of not in known:
                    known[objects_of] = np.maximum(curves[-1].needed(), 1)
                needed[at] = known[objects_of]
        # Overwrite the precision of the sets before: fresh memory would be slow. It stays 0 for classes
        # without a true positive.
        shape = (count, sides, K, T, needed.shape[-1]) if self._best else (count, sides)
        if self._room.shape != shape:
            self._room = np.zeros(shape)
        best = self._room
        # Compute block by block, for so many pairs of sets that a block fits into the cache.
        for number, block in enumerate(self._blocks):
            together = max(1, MOST_TRUE_POSITIVES // max(block.size, 1))
            for low in range(0, count // 2, together):
                some = slice(low, low + together)
                these = slice(2 * low, 2 * (low + together))
                counted = self._counts(block, _Sums(*(one[some] for one in sums)))
                self._read(block, counted, needed[these, 0], recalled[these, 0], best[these, 0])
                if sides == 2:
                    pairs = zip(self._whole[number], counted, strict=True)
                    others = _Counts(*(every - of_one for every, of_one in pairs))
                    self._read(block, others, needed[these, 1], recalled[these, 1], best[these, 1])
        for number in range(len(sets)):
            if self._best:
                curves[0].take_state({"best": best[divmod(number, sides)].transpose(1, 0, 2)})
            # Keep no curves: once read, they hold large arrays.
            yield curves.pop(0)

    def _sums(self, table: NDArray[np.signedinteger]) -> _Sums:
        """Return the sums of all pairs of sets."""
        lists = (self._objects, self._true, self._base, self._moves)
        return _Sums(*(one.running(table) for one in lists))

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
        counted -= before.take(runs.segment, axis=1)
        if runs.tie is not None:
            counted += reached
            counted -= sums.true.take(runs.tie, axis=1)
        return _Counts(bounds, reached, counted)

    @functools.cached_property
    def _ones(self) -> _Sums:
        """Sums with all weights 1."""
        return self._sums(weight_table([np.ones(self._images)] * 2))

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

        ``needed`` is [2 P, K, R]; the results go into ``recalled``, [2 P, K, T], and ``best``,
        [2 P, K, T, R].
        """
        # Read the true positives of each segment from the cumulative sums, [2 P, S].
        T, runs, classes = self._prepared.shape[0], block.runs, block.classes
        ends = _by_set(counts.bounds).astype(np.intp)
        count = len(ends)
        recalled[:, classes] = np.diff(ends).reshape(count, (len(block.true) - 1) // T, T)
        if runs is None:
            return
        # Divide true positives by counted detections at the end of each run, [P, U, 2]. Scaling by a power of
        # two is exact.
        nth = counts.reached - counts.bounds.take(runs.segment, axis=1)
        quotients = _halves(nth) * SCALE
        # 0 / 0 where nothing is counted; these values are not read.
        with np.errstate(invalid="ignore"):
            quotients /= _halves(counts.counted) + self._rules.precision_epsilon
        # Add the number of the segment above the bits of the float, so that the integers are sorted by
        # segment first.
        keyed = quotients.view(np.int64)
        keyed += runs.key
        # Write each run to the slot of its number of true positives; each set has its own row of slots.
        # Runs are in descending order, so the first run of a slot, which has the best precision, remains.
        ends -= ends[:, :1].copy()
        width = int(ends[:, -1].max()) + 2
        slots = np.full((count, width), EMPTY)
        slot = counts.reached - counts.bounds[:, :1]
        slot += (np.arange(count, dtype=np.int32) * np.int32(width)).view(np.int64)[:, None]
        slots.ravel()[slot.view(np.int32).astype(np.intp).ravel()] = keyed.ravel()
        # For whole numbers fmax equals maximum, whose accumulation in NumPy is several times slower.
        np.fmax.accumulate(slots[:, ::-1], axis=1, out=slots[:, ::-1])
        # A recall point that is not reached reads behind the segment: a smaller key, or an empty slot.
        at = ends[:, :-1].reshape(count, len(block.key), T, 1) + needed[:, classes, None]
        found = np.empty(at.shape, dtype=np.int64)
        for of_set, points, values in zip(slots, at, found, strict=True):
            of_set.take(points, mode="clip", out=values)
        # Subtract the key: a result of another segment has a smaller key and becomes 0. Multiplying by the
        # power of two restores the quotient.
        np.maximum(found, block.key, out=found)
        found -= block.key
        precision = found.view(np.float64)
        if isinstance(classes, slice):
            np.multiply(precision, 1 / SCALE, out=best[:, classes])
        else:
            best[:, classes] = precision * (1 / SCALE)

    def _split_blocks(self) -> Iterator[_Block]:
        """Split the prepared data into blocks of classes, with segments sorted by class."""
        prepared, (T, K) = self._prepared, self._prepared.shape
        # Sort the true positives by class, then threshold, so that a block of classes is a slice.
        # Leave out classes without a true positive.
        present = np.flatnonzero(np.diff(prepared.starts).reshape(T, K).any(axis=0))
        segments = np.arange(T * K).reshape(T, K).T[present].ravel()
        counts = np.diff(prepared.starts)[segments]
        order = ragged_ranges(prepared.starts[:-1][segments], counts)
        bounds, images = _bounds(counts), self._images
        # Without precision no runs are needed: use one block of all classes.
        if not self._best:
            nothing = np.zeros(0, dtype=np.intp)
            self._true = WeightSums(prepared.true_image[order], bounds, images)
            self._base = self._moves = WeightSums(nothing, nothing, images)
            yield _Block(present, nothing, self._true.at(bounds), nothing, nothing, None, 0)
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
                _as_slice(present[low:high]),
                key.reshape(-1, T, 1),
                true_at[these.start : these.stop + 1],
                base_at[these],
                moves_at[these],
                runs,
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


def _as_slice(positions: Positions) -> Positions | slice:
    """Return ascending positions as a slice if none is left out."""
    low, high = int(positions[0]), int(positions[-1]) + 1
    return slice(low, high) if high - low == len(positions) else positions


def _are_exchanges(sets: Sequence[FloatArray]) -> bool:
    """Return whether the weights of every two sets add up to 1."""
    return len(sets) % 2 == 0 and all((sets[i] + sets[i + 1] == 1).all() for i in range(0, len(sets), 2))


def _bounds(counts: NDArray[np.signedinteger]) -> Positions:
    """Return the start of each range, and the end."""
    return np.concatenate([[0], np.cumsum(counts)])


def _halves(pairs: Pairs) -> NDArray[np.int32]:
    """Return the two numbers of each, [..., 2]."""
    return pairs.view(np.int32).reshape(*pairs.shape, 2)


def _by_set(pairs: Pairs) -> NDArray[np.int32]:
    """Return the numbers of each set, from [P, n] to [2 P, n]."""
    return _halves(pairs).transpose(0, 2, 1).reshape(-1, pairs.shape[1])
