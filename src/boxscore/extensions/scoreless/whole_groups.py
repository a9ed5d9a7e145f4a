"""Match each image and class as a whole, independent of the order of detections.

Conventions
-----------
- Each detection and each ground truth is in at most one pair. Counted ground truths are matched first. The
  remaining detections may match ignored ground truths, and finally any number of them may match those that
  absorb.
- A candidate rule is a function of pairs and of the number of thresholds that each reaches. It returns bits:
  bit ``t`` of a pair is a match at threshold ``t``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import BoolArray, Positions
from boxscore._utils.ordering import run_starts
from boxscore.extensions.scoreless.assignment import BoxesOf, most_pairs, ranks, up_to
from boxscore.matching.candidates import Asked, Match
from boxscore.matching.greedy import lanes_of, levels_of, match_in_rounds
from boxscore.matching.matches import bit_type
from boxscore.matching.pairs import Outcome, Pairs
from boxscore.protocols.tables.matching import MatchingRules

Choose = Callable[[Pairs, Positions], NDArray[np.uint64]]
"""Function that selects among pairs, given the number of thresholds that each reaches, [P]; returns bits,
[P]."""


def matching_whole_groups(asked: Asked, match: Match) -> Match:
    """Return the matcher of whole groups with the candidate rule of the protocol."""
    boxes = (
        lambda rows: asked.ordered_detections.boxes[asked.ranking.rows[rows]],
        lambda rows: asked.ordered_truth.boxes[rows],
    )
    return functools.partial(match_whole_groups, **match.keywords, boxes=boxes)


def match_whole_groups(
    blocks: Iterable[Pairs],
    group: NDArray[np.int64],
    counted: BoolArray,
    absorbs: BoolArray,
    rules: MatchingRules,
    class_names: NDArray[Any] | None = None,
    *,
    boxes: tuple[BoxesOf, BoxesOf],
) -> Outcome:
    """Match detections to ground truths; the arguments are those of greedy matching.

    ``boxes`` of detections, by position in class order, and of ground truths break ties if the candidate rule
    says so.
    """
    choose = _chooser(rules, group, boxes)
    parts = []
    # A group is matched as a whole, so split blocks between groups; each area range is matched separately.
    for pairs in _whole_groups(blocks, group):
        level = levels_of(pairs.iou, group[pairs.ground_truth], rules, class_names)
        bits = np.zeros((len(level), counted.shape[1]), dtype=bit_type(len(rules.iou_thresholds)))
        for area in range(counted.shape[1]):
            bits[:, area] = _match(pairs, level, counted[:, area], absorbs, boxes[1], choose).astype(
                bits.dtype
            )
        parts.append(Outcome(pairs, bits, every_pair=True))
    return Outcome.joined(parts)


def _whole_groups(blocks: Iterable[Pairs], group: NDArray[np.int64]) -> Iterator[Pairs]:
    """Yield the pairs of blocks, split only between groups; at least one part."""
    waiting: list[Pairs] = []
    for block in blocks:
        if len(block.iou):
            of_pair = group[block.ground_truth]
            # Groups ascend.
            last = int(np.searchsorted(of_pair, of_pair[-1]))
            if last:
                yield Pairs.joined([*waiting, block.take(np.arange(last))])
                waiting, block = [], block.take(np.arange(last, len(of_pair)))
            elif waiting and group[waiting[0].ground_truth[0]] != of_pair[0]:
                yield Pairs.joined(waiting)
                waiting = []
        waiting.append(block)
    yield Pairs.joined(waiting)


def _match(
    pairs: Pairs,
    level: Positions,
    counted: BoolArray,
    absorbs: BoolArray,
    boxes: BoxesOf,
    choose: Choose,
) -> NDArray[np.uint64]:
    """Match for one area range and return bits, [P]; bit ``t`` is a match at threshold ``t``."""
    # Match counted ground truths first; usually all are counted, and one call suffices.
    is_counted = counted[pairs.ground_truth]
    if is_counted.all():
        return choose(pairs, level)
    bits = np.zeros(len(level), dtype=np.uint64)
    some = np.flatnonzero(is_counted)
    bits[some] = choose(pairs.take(some), level[some])
    # Next match ignored ground truths that match once, with detections unmatched at the threshold.
    absorbing = ~is_counted & absorbs[pairs.ground_truth]
    some = np.flatnonzero(~is_counted & ~absorbing)
    # A detection may be unmatched at a threshold, and matched at the next.
    if len(some):
        reached = up_to(level[some]) & ~_taken(pairs.detection, bits)[some]
        for t in range(int(level[some].max())):
            free = some[(reached >> np.uint64(t)) & np.uint64(1) == 1]
            at_one = choose(pairs.take(free), np.ones(len(free), dtype=np.intp))
            bits[free] |= at_one << np.uint64(t)
    some = np.flatnonzero(absorbing)
    if len(some):
        # Among several that absorb it, a detection matches the one with the largest overlap, at all
        # thresholds it reaches.
        by_box = ranks(pairs.ground_truth[some], boxes)
        order = some[np.lexsort((by_box, -pairs.iou[some], pairs.detection[some]))]
        best = order[run_starts(pairs.detection[order])]
        bits[best] |= up_to(level[best]) & ~_taken(pairs.detection, bits)[best]
    return bits


def _taken(detection: Positions, bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the bits at which the detection of each pair is matched, [P]."""
    starts = run_starts(detection)
    return np.repeat(np.bitwise_or.reduceat(bits, starts), np.diff(np.append(starts, len(bits))))


def _chooser(rules: MatchingRules, group: NDArray[np.int64], boxes: tuple[BoxesOf, BoxesOf]) -> Choose:
    """Return the selection function of the candidate rule; ``group`` [G] is that of the ground truths."""
    choosers: dict[str, Choose] = {
        "most_pairs": lambda pairs, level: most_pairs(pairs, level, boxes),
        "best_pair_first": lambda pairs, level: best_pair_first(pairs, level, boxes),
        "assigned_before_threshold": lambda pairs, level: assigned(pairs, level, boxes),
        "objects_choose": lambda pairs, level: objects_choose(pairs, level, group, rules),
    }
    return choosers[rules.candidate]


def objects_choose(
    pairs: Pairs, level: Positions, group: NDArray[np.int64], rules: MatchingRules
) -> NDArray[np.uint64]:
    """Match greedily with swapped sides: objects, in file order, take detections; return bits, [P]."""
    if not len(level):
        return np.zeros(0, dtype=np.uint64)
    of_pair = group[pairs.ground_truth]
    # Stable, so that detections stay in rank order.
    order = np.lexsort((pairs.ground_truth, of_pair))
    exchanged = Pairs(pairs.ground_truth[order], pairs.detection[order], pairs.iou[order])
    free = np.ones((int(pairs.detection.max()) + 1, 1), dtype=bool)
    lanes = lanes_of(free, ~free[:, 0], len(rules.iou_thresholds))
    bits = np.empty(len(order), dtype=np.uint64)
    bits[order] = match_in_rounds(exchanged, level[order], of_pair[order], lanes, rules)[:, 0]
    return bits


def assigned(pairs: Pairs, level: Positions, boxes: tuple[BoxesOf, BoxesOf]) -> NDArray[np.uint64]:
    """Return bits of the assignment with the greatest total, at the thresholds its pairs reach, [P]."""
    chosen = most_pairs(pairs, np.ones(len(level), dtype=np.intp), boxes, sum_alone=True)
    return np.where(chosen > 0, up_to(level), np.uint64(0))


def best_pair_first(pairs: Pairs, level: Positions, boxes: tuple[BoxesOf, BoxesOf]) -> NDArray[np.uint64]:
    """Match greedily by pairs, the best first, and return bits, [P]; higher thresholds keep a subset."""
    bits = np.zeros(len(level), dtype=np.uint64)
    if not len(level):
        return bits
    by_box = ranks(pairs.detection, boxes[0]), ranks(pairs.ground_truth, boxes[1])
    taken: tuple[set[int], set[int]] = set(), set()
    detections, truths, reached = pairs.detection.tolist(), pairs.ground_truth.tolist(), up_to(level)
    for at in np.lexsort((by_box[1], by_box[0], -pairs.iou)).tolist():
        if detections[at] not in taken[0] and truths[at] not in taken[1]:
            taken[0].add(detections[at])
            taken[1].add(truths[at])
            bits[at] = reached[at]
    return bits
