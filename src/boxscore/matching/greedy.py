"""Match greedily: select the candidate pairs that become matches.

Goal
----
Compute the matches of pycocotools' ``evaluateImg`` and the VOC devkit's inner loop, for all IoU thresholds
and area ranges in one pass.

Conventions
-----------
- Greedy matching is sequential only inside an (image, category) group. Round ``r`` treats the ``r``-th
  detection *that has a candidate* of every group in the same NumPy operations.
- Thresholds and area ranges are bits of one unsigned integer, bit ``a * T + t``: one ``&`` tests all of them.
- Detections may come in blocks. A ground truth that an earlier block took stays taken.
- A detection takes the free counted ground truth that it overlaps most, or if no counted one is free, the
  ignored one that it overlaps most.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.ordering import ragged_ranges, rank_in_runs, run_starts, stable_order
from boxscore._utils.records import NamedTuple
from boxscore.matching.matches import Bits, bit_type
from boxscore.matching.pairs import Outcome, Pairs
from boxscore.protocols.tables.matching import MatchingRules

WIDE = 64
"""Detections with more candidates are matched one by one, each in operations over all its candidates."""


MOST_HELD = 1 << 24
"""Most pairs of all blocks to keep, about 32 bytes each; above it, only pairs that match are kept."""


def match_greedily(
    blocks: Iterable[Pairs],
    group: NDArray[np.int64],
    counted: NDArray[np.bool_],
    absorbs: NDArray[np.bool_],
    rules: MatchingRules,
    class_names: NDArray[Any] | None = None,
) -> Outcome:
    """Match detections to ground truths, block by block: runs of detections in group order.

    Returns the pairs that the candidate rule leaves, or if these are very many, only those that match.
    ``group`` [G], ``counted`` [G, A] and ``absorbs`` [G] are of the ground truths. ``class_names`` [K] are
    needed if some classes have other thresholds.
    """
    lanes = lanes_of(counted, absorbs, len(rules.iou_thresholds))
    parts: list[tuple[Pairs, Bits]] = []
    held, every_pair = 0, True
    for block in blocks:
        pairs, matched = _match_block(block, group, lanes, rules, class_names)
        held += len(matched)
        if held > MOST_HELD and every_pair:
            parts, every_pair = [_only_matches(*part) for part in parts], False
        parts.append((pairs, matched) if every_pair else _only_matches(pairs, matched))
    if len(parts) == 1:
        return Outcome(*parts[0], every_pair)
    every = Pairs.joined(pairs for pairs, _ in parts)
    return Outcome(every, np.concatenate([matched for _, matched in parts]), every_pair)


def _only_matches(pairs: Pairs, matched: Bits) -> tuple[Pairs, Bits]:
    some = np.flatnonzero(matched.any(axis=1))
    return pairs.take(some), matched[some]


def _match_block(
    pairs: Pairs,
    group: NDArray[np.int64],
    lanes: list[Lanes],
    rules: MatchingRules,
    class_names: NDArray[Any] | None,
) -> tuple[Pairs, Bits]:
    """Match the detections of a block; ``lanes`` record what they take."""
    if rules.candidate == "best_overall":
        starts = run_starts(pairs.detection)  # [C], one per detection with a candidate
        widths = np.diff(np.append(starts, len(pairs.detection)))  # [C]
        pairs = pairs.take(best_of_each(pairs.iou, starts, widths, last_wins=rules.equal_iou == "last"))
    of_pair = group.take(pairs.ground_truth)
    return pairs, match_in_rounds(
        pairs, levels_of(pairs.iou, of_pair, rules, class_names), of_pair, lanes, rules
    )


def levels_of(
    overlaps: NDArray[np.float64],
    group: NDArray[np.int64],
    rules: MatchingRules,
    class_names: NDArray[Any] | None,
) -> NDArray[np.intp]:
    """Count the thresholds of its class that each overlap reaches, [P]; ``group`` is per pair, [P]."""
    # Thresholds ascend, so the number of those at or below an overlap is its insertion position.
    level = np.searchsorted(rules.effective_thresholds, overlaps, side="right")
    if class_names is None or not rules.class_thresholds:
        return level
    # Groups go through all classes of an image before the next image: the remainder is the class.
    classes = group % len(class_names)
    # Look up again only the overlaps of the few classes with their own thresholds.
    for name in rules.class_thresholds:
        rows = np.isin(classes, np.flatnonzero(class_names == name))
        thresholds = rules.effective_thresholds_of(name)
        level[rows] = np.searchsorted(thresholds, overlaps[rows], side="right")
    return level


def match_in_rounds(
    pairs: Pairs,
    level: NDArray[np.intp],
    group: NDArray[np.int64],
    lanes: list[Lanes],
    rules: MatchingRules,
) -> Bits:
    """Match pairs, of which each reaches its ``level`` [P] lowest thresholds; return bits [P, A].

    Detections take ground truths, in group order; ``group`` is of each pair, [P].
    """
    position, truth, iou = pairs
    starts = run_starts(position)  # [C], one per detection with a candidate
    widths = np.diff(np.append(starts, len(position)))  # [C]
    preference = _by_preference(iou, widths, last_wins=rules.equal_iou == "last")
    rounds = _rounds_of(group.take(starts), starts, widths)
    in_order = _match_rounds(
        truth.take(preference), level.take(preference), rounds, lanes, len(rules.iou_thresholds)
    )
    matched = np.empty_like(in_order)
    matched[preference] = in_order
    return matched


def best_of_each(
    iou: NDArray[np.float64], starts: NDArray[np.intp], widths: NDArray[np.intp], *, last_wins: bool
) -> NDArray[np.intp]:
    """Position of each detection's largest overlap, [C]; the last or first in file order of equal ones."""
    best = starts.copy()
    # A detection with one pair needs no search. Concatenate the runs of the others.
    several = np.flatnonzero(widths > 1)
    if not len(several):
        return best
    widths = widths[several]
    pairs = ragged_ranges(starts[several], widths)
    ends = np.cumsum(widths)
    firsts = ends - widths
    iou = iou[pairs]
    # ``largest`` has the positions of every run's largest overlaps. Each run has one or more of them, so the
    # first at or after its start and the last before its end are in the run.
    largest = np.flatnonzero(iou == np.repeat(np.maximum.reduceat(iou, firsts), widths))
    chosen = np.searchsorted(largest, ends) - 1 if last_wins else np.searchsorted(largest, firsts)
    best[several] = pairs[largest[chosen]]
    return best


def _by_preference(
    iou: NDArray[np.float64], widths: NDArray[np.intp], *, last_wins: bool
) -> NDArray[np.intp]:
    """Order the pairs of each detection by descending overlap, equal ones last or first in file order."""
    preference = np.arange(len(iou))
    candidate = np.repeat(np.arange(len(widths)), widths)
    # Most detections have one pair; sort only the others. ``tie`` puts equal overlaps in the order in which
    # the reference's loop leaves them.
    several = np.flatnonzero(np.repeat(widths, widths) > 1)
    tie = -several if last_wins else several
    preference[several] = several[np.lexsort((tie, -iou[several], candidate[several]))]
    return preference


class _Rounds(NamedTuple):
    """Detections with a candidate, in the order in which rounds take them, most candidates first."""

    first: NDArray[np.intp]  # [C], position of the first pair of each
    width: NDArray[np.intp]  # [C], number of pairs of each
    bounds: list[int]  # where each round starts, and the end


def _rounds_of(group: NDArray[np.int64], starts: NDArray[np.intp], widths: NDArray[np.intp]) -> _Rounds:
    """Put the ``r``-th detection of every group into round ``r``."""
    round_of = rank_in_runs(group)
    round_count, most = int(round_of.max(initial=-1)) + 1, int(widths.max(initial=0))
    # By round, then by descending width: those that have an s-th candidate are the first of their round.
    order = stable_order(round_of * (most + 1) + (most - widths), round_count * (most + 1))
    bounds = np.cumsum(np.bincount(round_of, minlength=round_count)).tolist()
    return _Rounds(starts.take(order), widths.take(order), [0, *bounds])


class Lanes(NamedTuple):
    """Area ranges whose thresholds fit into 64 bits: bit ``lane * T + t`` of each column."""

    area_count: int
    if_counted: NDArray[np.uint64]  # [G], the bits of the lanes in which a ground truth is counted
    not_used_up: NDArray[np.uint64]  # [G], all bits if it absorbs, since a match does not use it up; else 0
    free: NDArray[np.uint64]  # [G], the bits at which it is not taken yet; matching changes it in place


def lanes_of(counted: NDArray[np.bool_], absorbs: NDArray[np.bool_], threshold_count: int) -> list[Lanes]:
    """Divide the area ranges of ``counted`` [G, A] into lanes; all ground truths are free."""
    lanes = []
    most, whole_lane = max(1, 64 // threshold_count), (1 << threshold_count) - 1
    # As many area ranges as fit into 64 bits share one integer: each takes T bits, its lane.
    for low in range(0, counted.shape[1], most):
        columns = counted[:, low : low + most].T
        everything = np.uint64(sum(whole_lane << (lane * threshold_count) for lane in range(len(columns))))
        if_counted = np.zeros(len(counted), dtype=np.uint64)
        for lane, column in enumerate(columns):
            if_counted |= column * np.uint64(whole_lane << (lane * threshold_count))
        not_used_up = np.where(absorbs, everything, np.uint64(0))
        lanes.append(Lanes(len(columns), if_counted, not_used_up, np.full(len(counted), everything)))
    return lanes


def _match_rounds(
    truth: NDArray[np.intp],
    level: NDArray[np.intp],
    rounds: _Rounds,
    lanes: list[Lanes],
    threshold_count: int,
) -> Bits:
    """Match in rounds, each detection's pairs in order of preference; bits [P, A]."""
    matched = np.empty((len(truth), sum(some.area_count for some in lanes)), dtype=bit_type(threshold_count))
    area = 0
    for some in lanes:
        packed = _match_lanes(truth, level, rounds, some, threshold_count)
        for lane in range(some.area_count):
            matched[:, area] = (packed >> np.uint64(lane * threshold_count)) & np.uint64(
                (1 << threshold_count) - 1
            )
            area += 1
    return matched


def _match_lanes(
    truth: NDArray[np.intp],
    level: NDArray[np.intp],
    rounds: _Rounds,
    lanes: Lanes,
    threshold_count: int,
) -> NDArray[np.uint64]:
    """Match for as many area ranges as fit into 64 bits; [P], bit ``lane * T + t``."""
    # A lane is the bits of one area range. An overlap that reaches a threshold reaches all lower ones, in
    # every lane: a pair of level n has the n lowest bits of each.
    every_lane = sum(1 << (lane * threshold_count) for lane in range(lanes.area_count))
    up_to = np.array([((1 << n) - 1) * every_lane for n in range(threshold_count + 1)], dtype=np.uint64)
    reached = up_to.take(level)  # [P]
    everything = up_to[-1]
    _, if_counted, not_used_up, free = lanes
    matched = np.zeros(len(truth), dtype=np.uint64)  # [P]

    # When a round begins, ``free`` is what the better detections of each group left, at every bit: the state
    # of the sequential loop for that threshold and range. A match at one bit neither reads nor writes others.
    for low, high in itertools.pairwise(rounds.bounds):
        # Groups have disjoint ground truths, so the detections of a round cannot compete for one. Slot s of
        # all narrow ones is decided together; a wide one would need too many slots and is decided alone.
        wide = low + int(np.count_nonzero(rounds.width[low:high] > WIDE))  # the widest come first
        for start, count in zip(
            rounds.first[low:wide].tolist(), rounds.width[low:wide].tolist(), strict=True
        ):
            # Decide one wide detection over its W candidates, with all thresholds and ranges in one
            # operation.
            pairs = slice(start, start + count)
            target = truth[pairs]
            match = _first_of_each_bit(reached[pairs] & free[target], if_counted[target])
            matched[pairs] = match
            free[target] &= ~match | not_used_up[target]
        if wide == high:
            continue
        # Decide the narrow detections of the round slot by slot, [n] each.
        first, width = rounds.first[wide:high], rounds.width[wide:high]
        # Widths descend, so the detections with an s-th candidate are the first so many of the round.
        slots = np.searchsorted(-width, -np.arange(width[0]), side="left").tolist()
        undecided = np.full(high - wide, everything)
        # A lone candidate is taken whether counted or not; among several, counted ones come first.
        for counted_first in (True, False) if len(slots) > 1 else (None,):
            # Slots are in the order of preference, so at every bit the first free candidate is the one
            # overlapped most.
            for slot, count in enumerate(slots):
                pair = first[:count] + slot
                target = truth.take(pair)
                left = free.take(target)
                match = reached.take(pair)
                match &= left
                if counted_first is not None:
                    # A bit is a match if the candidate reaches the threshold, is free, is counted or not as
                    # this pass requires, and the detection is still unmatched at that bit.
                    match &= undecided[:count]
                    eligible = if_counted.take(target)
                    match &= eligible if counted_first else ~eligible
                    undecided[:count] ^= match  # a subset: the match is among the undecided
                    matched[pair] |= match
                else:
                    matched[pair] = match
                # A match uses up its ground truth only at that bit, unless the ground truth absorbs.
                left &= ~match | not_used_up.take(target)
                free[target] = left  # no index repeats: a round has one detection of each group
    return matched


def _first_of_each_bit(free: NDArray[np.uint64], counted: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the first of one detection's candidates [W] for each bit; counted ones come first."""
    taken = np.zeros_like(free)
    for eligible in (free & counted, free & ~counted):
        eligible &= ~np.bitwise_or.reduce(taken)
        up_to_here = np.bitwise_or.accumulate(eligible)  # the bits of earlier candidates
        eligible[1:] &= ~up_to_here[:-1]
        taken |= eligible
    return taken
