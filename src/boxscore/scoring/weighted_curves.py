"""Curves under some sets of image weights at once, for the many sets of the bootstrap and of exchanges.

Goal
----
The bits of :class:`~boxscore.scoring.weighted.WeightedCounts`, in a few passes over small arrays: no true
positive is repeated, no recall point searched for. What does not depend on the weights is prepared once.

Conventions
-----------
- Two weights of an image are the halves of one 64-bit integer, and so are all sums of them. The difference of
  two running sums is exact in both halves, for neither is negative.
- Where only true positives follow one another, whatever the weights, the last of them has the best precision:
  it stands for such a *run*. Of runs with as many true positives up to them the first has the best.
- Precision goes to the slot of its number of true positives. The best from there on is a running maximum from
  the right over all slots, and the slot of a recall point is known.
- A *segment* is a class at a threshold. Floats that are not negative are ordered like their bits; those of a
  quotient times :data:`SCALE` leave room above them for the number of the segment. So one running maximum
  serves many segments: those before have larger numbers, those behind smaller ones.
- Classes are computed in blocks, whose arrays fit into a processor's cache.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import FloatArray, Positions
from boxscore._utils.ordering import distinct, ragged_ranges
from boxscore.data.vocabulary import Categories
from boxscore.matching.matches import Matches
from boxscore.protocols.protocol import Protocol
from boxscore.scoring.curves import NO_EFFECT, Curves
from boxscore.scoring.weighted import ImageWeights

SCALE = 2.0**-991
"""Makes quotients of whole numbers below 2**31 the smallest floats, of 32 exponents; they round as before."""

SEGMENT = 1 << 57
"""What the bits of the largest of them, 1, come to."""

MOST_SEGMENTS = 126
"""Segments whose numbers have room in 64 bits; a class has at most 64."""

MOST_TRUE_POSITIVES = 1 << 16
"""Of a block, at all thresholds; a class may have more."""

EMPTY = np.iinfo(np.int64).min
"""A slot to which no run went."""

ONE_EACH = (1 << 32) + 1

Pairs = NDArray[np.int64]
"""Two numbers of 32 bits each."""


class _Block(NamedTuple):
    """Classes that are computed together, of S segments; positions count from the start of the block.

    Its U runs are in descending order: of several that go to one slot the first is written last.
    """

    classes: slice
    base: slice
    """Detections that count unmatched."""
    candidates: slice
    """Detections that are a true positive at some threshold, C."""
    class_base: Positions
    """Base detections before the class of each candidate, [C]."""
    base_end: Positions
    """Base detections up to each candidate, [C]."""
    true_candidate: NDArray[np.int32]
    """Candidate of each true positive, [N]."""
    true_bounds: Positions
    """Where each segment starts among the true positives, and the end, [S + 1]."""
    moves: slice
    """What matches move in or out."""
    move_starts: Positions
    """Moves before each segment, [S]."""
    key: NDArray[np.int64]
    """Number of each segment, times ``SEGMENT``, [k, T, 1]."""
    run_segment: NDArray[np.int32]
    """[U]."""
    run_key: NDArray[np.int64]
    """``key`` of the segment, [U]."""
    run_candidate: NDArray[np.int32]
    """Candidate that a run ends with, [U]."""
    run_end: NDArray[np.int32]
    """True positives up to the end of a run, [U]."""
    run_tie_end: Positions | None
    """True positives up to where its end stands among equal scores, [U]; None: ``run_end``."""
    run_moves: NDArray[np.int32]
    """Moves up to the end of a run, [U]."""


class _Sums(NamedTuple):
    """Counts of a block under two sets of weights."""

    true: Pairs
    """Up to each true positive, with a leading 0, [N + 1]."""
    counted: Pairs
    """Detections up to the end of each run, in-class, [U]."""


class _Pair(NamedTuple):
    """Two sets of weights, or one."""

    weights: Pairs
    """[images]."""
    sets: Sequence[int]
    """Which sets they are."""
    others: Sequence[int]
    """Sets whose weights are 1 less these: whose sums are known."""


class CurvesUnderWeights:
    """The curves of one area range and max detections, prepared for sets of image weights.

    Parameters
    ----------
    matches : Matches
    protocol : Protocol
    area, cap : int
        Positions on the axes A and M.
    categories : Categories
        The classes, [K]; of one copy where ``matches`` has copies.
    best : bool
        Whether precision at recall points is asked for.
    """

    def __init__(
        self, matches: Matches, protocol: Protocol, area: int, cap: int, categories: Categories, *, best: bool
    ) -> None:
        self._rules, self._categories, self._image_count = protocol.ap, categories, len(matches.images)
        self._prepared = prepared = ImageWeights(matches, protocol, area, cap)
        self._best = best and protocol.ap.precision_epsilon <= NO_EFFECT  # else a run has no best
        order = np.argsort(prepared.truth_category, kind="stable")
        self._truth_image = prepared.truth_image[order]
        self._truth_bounds = np.searchsorted(prepared.truth_category[order], np.arange(prepared.shape[1] + 1))
        self._objects = np.diff(self._truth_bounds) * ONE_EACH
        self._blocks = list(self._made())

    def of(self, sets: Sequence[FloatArray]) -> list[Curves]:
        """Return the curves under each of some sets of weights, whole numbers, [images] each."""
        prepared, (T, K) = self._prepared, self._prepared.shape
        pairs = list(_in_pairs(sets))
        positive, recalled = (
            np.empty((len(sets), K), dtype=np.int64),
            np.empty((len(sets), K, T), dtype=np.intp),
        )
        for pair in pairs:
            objects = np.diff(_running(pair.weights.take(self._truth_image)).take(self._truth_bounds))
            for numbers, values in ((pair.sets, objects), (pair.others, self._objects - objects)):
                for side, number in enumerate(numbers):
                    positive[number] = _half(values, side)
        curves = []
        for one, of_set, true in zip(sets, positive, recalled, strict=True):
            counts = prepared.counts(one, positive=of_set, true_positives=true.T)
            curves.append(Curves(counts, self._rules, categories=self._categories))
        best = [np.empty((K, T, one.point_count)) for one in curves if self._best]
        needed = [np.maximum(one.needed(), 1) for one in curves if self._best]
        for pair in pairs:
            for number, block in enumerate(self._blocks):
                sums = self._sums(block, pair.weights)
                self._read(block, sums, pair.sets, recalled, needed, best)
                if pair.others:
                    whole = self._whole[number]
                    others = _Sums(whole.true - sums.true, whole.counted - sums.counted)
                    self._read(block, others, pair.others, recalled, needed, best)
        for number, precision in enumerate(best):
            curves[number].take_state({"best": precision.transpose(1, 0, 2)})
        return curves

    def _sums(self, block: _Block, weights: Pairs) -> _Sums:
        """Count under two sets of weights."""
        true = _running(weights.take(self._image[block.candidates]).take(block.true_candidate))
        if not self._best:
            return _Sums(true, true[:0])
        base = _running(weights.take(self._prepared.base_image[block.base]))
        up_to = base.take(block.base_end)
        up_to -= base.take(block.class_base)
        counted = up_to.take(block.run_candidate)
        if block.moves.start < block.moves.stop:
            moved = _running(weights.take(self._move_image[block.moves]) * self._move_sign[block.moves])
            counted += moved.take(block.run_moves)
            counted -= moved.take(block.move_starts).take(block.run_segment)
        if block.run_tie_end is not None:
            counted += true.take(block.run_end)
            counted -= true.take(block.run_tie_end)
        return _Sums(true, counted)

    @functools.cached_property
    def _whole(self) -> list[_Sums]:
        """Sums of each block where all weights are 1."""
        ones = np.full(self._image_count, ONE_EACH)
        return [self._sums(block, ones) for block in self._blocks]

    def _read(
        self,
        block: _Block,
        sums: _Sums,
        numbers: Sequence[int],
        recalled: NDArray[np.intp],
        needed: Sequence[NDArray[np.int64]],
        best: Sequence[FloatArray],
    ) -> None:
        """Take the true positives, and the best precision at or after each recall point, of a block."""
        T = self._prepared.shape[0]
        bounds = sums.true.take(block.true_bounds)
        if self._best:
            reached = sums.true.take(block.run_end)
            nth = reached - bounds.take(block.run_segment)
            quotients = nth.view(np.int32) * SCALE
            with np.errstate(invalid="ignore"):  # 0 / 0 where nothing is counted, and nothing is read
                quotients /= sums.counted.view(np.int32) + self._rules.precision_epsilon
        for side, number in enumerate(numbers):
            ends = _half(bounds, side).astype(np.intp)
            recalled[number, block.classes] = (ends[1:] - ends[:-1]).reshape(-1, T)
            if not self._best:
                continue
            slots = np.empty(ends[-1] + 2, dtype=np.int64)
            slots.fill(EMPTY)
            slots[_half(reached, side).astype(np.intp)] = quotients.view(np.int64)[side::2] + block.run_key
            np.maximum.accumulate(slots[::-1], out=slots[::-1])
            # A point that is not reached reads what is behind the segment: of a smaller key, or empty.
            at = needed[number][block.classes, None] + ends[:-1].reshape(-1, T, 1)
            found = slots.take(at, mode="clip")
            np.maximum(found, block.key, out=found)
            found -= block.key
            np.multiply(found.view(np.float64), 1 / SCALE, out=best[number][block.classes])

    def _made(self) -> Iterator[_Block]:
        """Put what was prepared into blocks of classes, segments in the order of classes."""
        prepared, (T, K) = self._prepared, self._prepared.shape
        outcomes, ends = prepared.outcomes, prepared.ends_under(prepared.tie_order)
        segments = np.arange(T * K).reshape(T, K).T.ravel()
        counts = np.diff(prepared.starts)[segments]
        order = ragged_ranges(prepared.starts[:-1][segments], counts)
        bounds = _bounds(counts)
        segment = np.repeat(np.arange(K * T), counts)
        move_counts = np.bincount(prepared.move_segment, minlength=T * K)
        move_starts = _bounds(move_counts)[:-1][segments]
        move_order = ragged_ranges(move_starts, move_counts[segments])
        move_bounds = _bounds(move_counts[segments])
        self._move_image = prepared.move_image[move_order]
        self._move_sign = prepared.move_sign[move_order].astype(np.int8)

        # False positives up to each true positive where all weights are 1: where they are as many, they are
        # the same ones.
        moved = _bounds(prepared.move_sign)
        false = (ends.base - ends.true_positives + moved[ends.moves])[order]
        last = np.ones(len(order), dtype=bool)
        last[:-1] = (segment[1:] != segment[:-1]) | (false[1:] != false[:-1])
        run = np.flatnonzero(last)
        run_segment = segment[run]
        of_run = order[run]
        run_moves = ends.moves[of_run] + (move_bounds[:-1] - move_starts)[run_segment]
        run_tie_end = None
        if prepared.tie_order != "as_ranked":
            run_tie_end = ends.true_positives[of_run] + (bounds[:-1] - prepared.starts[segments])[run_segment]
        run_bounds = np.searchsorted(run_segment, np.arange(K * T + 1))

        detection = prepared.true_detection[order]
        candidates = distinct(detection)
        candidate = np.searchsorted(candidates, detection)
        base_end = np.empty(len(candidates), dtype=np.intp)
        base_end[candidate] = ends.base[order]
        classes = np.arange(K + 1)
        category = outcomes.category[candidates]
        candidate_bounds = np.searchsorted(category, classes)
        class_base = np.append(prepared.base_start[:K], len(prepared.base_image))
        self._image = prepared.image[candidates]
        for low, high in _class_blocks(bounds[::T], T) if self._best else [(0, K)]:
            these = slice(low * T, high * T)
            trues, moves = bounds[these.start : these.stop + 1], move_bounds[these.start : these.stop + 1]
            runs = np.arange(run_bounds[these.start], run_bounds[these.stop])[::-1]
            found = slice(candidate_bounds[low], candidate_bounds[high])
            base = slice(class_base[low], class_base[high])
            key = (np.arange(high * T - low * T)[::-1] - MOST_SEGMENTS // 2) * SEGMENT
            of_segment = (run_segment[runs] - these.start).astype(np.int32)
            yield _Block(
                slice(low, high),
                base,
                found,
                class_base[category[found]] - base.start,
                base_end[found] - base.start,
                (candidate[trues[0] : trues[-1]] - found.start).astype(np.int32),
                trues - trues[0],
                slice(moves[0], moves[-1]),
                moves[:-1] - moves[0],
                key.reshape(-1, T, 1),
                of_segment,
                key[of_segment],
                (candidate[run[runs]] - found.start).astype(np.int32),
                (run[runs] + 1 - trues[0]).astype(np.int32),
                None if run_tie_end is None else run_tie_end[runs] - trues[0],
                (run_moves[runs] - moves[0]).astype(np.int32),
            )


def _class_blocks(starts: Positions, threshold_count: int) -> Iterator[tuple[int, int]]:
    """Cut the classes into blocks, by where the true positives of each start, and the end, [K + 1]."""
    low, most = 0, MOST_SEGMENTS // threshold_count
    ends = starts.tolist()
    for k in range(1, len(ends)):
        if k == len(ends) - 1 or k - low == most or ends[k + 1] - ends[low] > MOST_TRUE_POSITIVES:
            yield low, k
            low = k


def _in_pairs(sets: Sequence[FloatArray]) -> Iterator[_Pair]:
    """Put two sets of weights each into one array; of exchanges every other one."""
    count = len(sets)
    exchanged = count % 2 == 0 and all((sets[i] + sets[i + 1] == 1).all() for i in range(0, count, 2))
    chosen = range(0, count, 1 + exchanged)
    for low in range(0, len(chosen), 2):
        numbers = chosen[low : low + 2]
        halves = np.zeros((len(sets[0]), 2), dtype=np.int32)
        for side, number in enumerate(numbers):
            halves[:, side] = sets[number]
        yield _Pair(halves.view(np.int64).ravel(), numbers, [one + 1 for one in numbers] if exchanged else ())


def _running(numbers: Pairs) -> Pairs:
    """Cumulative sum with a leading 0."""
    total = np.empty(len(numbers) + 1, dtype=np.int64)
    total[0] = 0
    np.cumsum(numbers, out=total[1:])
    return total


def _bounds(counts: NDArray[np.signedinteger]) -> Positions:
    """Where each of some stretches starts, and the end."""
    return np.concatenate([[0], np.cumsum(counts)])


def _half(pairs: Pairs, side: int) -> NDArray[np.int32]:
    """One of the two numbers of each; of several axes flat."""
    return pairs.ravel().view(np.int32)[side::2]
