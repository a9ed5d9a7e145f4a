"""Match groups, and objects without a mask, after all other ground truths.

Conventions
-----------
- A group is matched after all other ground truths, by intersection over the detection's area. An unmatched
  detection, even a duplicate, is absorbed by the group that contains most of it; ties go to the first group
  in file order.
- The absorbed detection with the highest score, if above 0, is the true positive of the group; the others are
  ignored. Without such a detection, the group is missed.
- Groups of weight 0 do not count, and detections that they absorb are ignored.
- If masks are compared, objects that only have a box are matched by box after the groups: the first detection
  of each is ignored, further ones stay false positives. Groups that only have a box come last, and detections
  that they absorb are ignored.

References
----------
The TensorFlow Object Detection API, ``per_image_evaluation.py`` (``group_of``, ``box_only``).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.ordering import run_starts, stable_order
from boxscore.data.tables import GroundTruth
from boxscore.extensions.masks.column import box_only
from boxscore.matching.candidates import Asked, Match, PairSource
from boxscore.matching.greedy import best_of_each
from boxscore.matching.ignoring import Ignoring
from boxscore.matching.matches import Bits, Matches
from boxscore.matching.pairs import Outcome, Pairs
from boxscore.protocols.protocol import Protocol
from boxscore.protocols.tables.labels import ABSORBED_BITS, GROUP_TRUE_POSITIVES, TRUTH_WEIGHT
from boxscore.protocols.tables.matching import MatchingRules

LATER_PASSES = 3
"""Passes after the first; see :func:`_matching_passes`."""


def ignoring_groups(
    ground_truth: GroundTruth, protocol: Protocol, ignoring: Ignoring, matched: Any
) -> Ignoring:
    """Measure groups by intersection over the detection; ignore those of weight 0."""
    ignored, group = ignoring.ignored, ground_truth.group
    if protocol.group.weight == 0:
        ignored = ignored | group
    return ignoring._replace(ignored=ignored, by_foreground=ignoring.by_foreground | group)


def ignoring_box_only(
    ground_truth: GroundTruth, protocol: Protocol, ignoring: Ignoring, matched: Any
) -> Ignoring:
    """Ignore objects that only have a box if masks are compared."""
    return ignoring._replace(ignored=ignoring.ignored | box_only(ground_truth))


def in_passes(asked: Asked, before: Callable[[], PairSource]) -> PairSource:
    """Return a source that matches groups, and objects without a mask, after the others."""
    of_pass = _matching_passes(asked.ordered_truth, asked.protocol)
    return InPasses(before(), of_pass, asked.score, asked.protocol.matching)


def with_group_columns(asked: Asked, matches: Matches) -> Matches:
    """Add the columns that count groups."""
    protocol, group = asked.protocol, asked.ground_truth.group
    columns: dict[str, NDArray[Any]] = {}
    if TRUTH_WEIGHT.asked_for(protocol):
        columns[TRUTH_WEIGHT.name] = np.where(group, protocol.group.weight, 1.0)
    if asked.absorbed is not None:
        columns[ABSORBED_BITS.name] = asked.absorbed
    matches = matches.with_extra(columns)
    if GROUP_TRUE_POSITIVES.asked_for(protocol):
        matches = matches.with_extra({GROUP_TRUE_POSITIVES.name: matches.detections_ever_true(group)})
    return matches


def _matching_passes(ground_truth: GroundTruth, protocol: Protocol) -> NDArray[np.int8]:
    """Return the pass in which each ground truth is matched, [G].

    Passes: 0 objects, 1 groups, 2 objects that only have a box, 3 groups that only have a box.
    """
    of_pass = np.zeros(len(ground_truth), dtype=np.int8)
    if protocol.group.treatment == "merge":
        of_pass += ground_truth.group
    if protocol.masks_may_lack:
        of_pass[box_only(ground_truth)] += 2
    return of_pass


class InPasses(NamedTuple):
    """A source of pairs, with later passes matched to the detections left by the first pass."""

    source: PairSource
    of_pass: NDArray[np.int8]
    """The pass of each ground truth, [G]."""
    score: NDArray[np.float64]
    """Scores by position in class order, [D]."""
    rules: MatchingRules

    @property
    def lasting(self) -> bool:
        """Whether the source is lasting."""
        return self.source.lasting

    def matched(self, match: Match) -> Outcome:
        """Match the first pass with ``match``, then the later ones."""
        first = self.source.matched(functools.partial(_first_pass, match, self.of_pass))
        return self._match_later_passes(first, match)

    def _match_later_passes(self, first: Outcome, match: Match) -> Outcome:
        """Match the detections left by the first pass; pairs of later passes follow those of the first."""
        score, rules = self.score, self.rules
        pairs, matched = first.pairs, first.bits
        every = [first._replace(left=(), absorbed=np.zeros_like(matched))]
        # Collect, per detection and area range, the thresholds at which the first pass matched it as bits,
        # [D, A]. Pairs are sorted by detection, so one reduction over runs suffices.
        taken = np.zeros((len(score), matched.shape[1]), dtype=matched.dtype)
        starts = run_starts(pairs.detection)
        if len(starts):
            taken[pairs.detection[starts]] = np.bitwise_or.reduceat(matched, starts, axis=0)
        # Process the passes in order: each matches only detections left by earlier ones.
        for number, blocks in enumerate(first.left, start=1):
            if not blocks:
                continue
            some = Pairs.joined(blocks)
            # Objects without a mask: a match is ignored at its threshold, and nothing is absorbed.
            if number == 2:
                some, bits = _match_ignored_objects(some, taken, len(self.of_pass), rules, match)
                absorbed = np.zeros_like(bits)
            else:
                # Groups: each absorbs all remaining detections that reach its threshold. The first eligible
                # one is its true positive; the others are marked as absorbed.
                some, bits = _absorb(some, taken, rules)
                first_bits = _first_of_groups(
                    bits, some.ground_truth, score[some.detection] > 0, len(rules.iou_thresholds)
                )
                absorbed = bits & ~first_bits
            # A detection may occur in several pairs, so combine its bits unbuffered.
            np.bitwise_or.at(taken, some.detection, bits)
            every.append(Outcome(some, bits, first.every_pair, absorbed=absorbed))
        return Outcome.joined(every)


def _first_pass(match: Match, of_pass: NDArray[np.int8], blocks: Iterable[Pairs], **changed: Any) -> Outcome:
    """Match the pairs of the first pass; keep those of later passes in ``left``."""
    left: list[list[Pairs]] = [[] for _ in range(LATER_PASSES)]
    return match(_of_first_pass(blocks, of_pass, left), **changed)._replace(left=left)


def _of_first_pass(
    blocks: Iterable[Pairs], of_pass: NDArray[np.int8], later: Sequence[list[Pairs]]
) -> Iterator[Pairs]:
    """Yield the pairs of the first pass; append the others to the list of their pass."""
    there = np.bincount(of_pass, minlength=LATER_PASSES + 1)
    for block in blocks:
        pass_of_pair = of_pass[block.ground_truth]
        for number, parts in enumerate(later, start=1):
            if there[number]:
                parts.append(block.take(pass_of_pair == number))
        yield block.take(pass_of_pair == 0)


def _absorb(pairs: Pairs, taken: Bits, rules: MatchingRules) -> tuple[Pairs, Bits]:
    """Let groups absorb free detections; return the best pair of each detection, and its bits."""
    starts = run_starts(pairs.detection)
    widths = np.diff(np.append(starts, len(pairs.detection)))
    best = pairs.take(best_of_each(pairs.iou, starts, widths, last_wins=False))
    level = np.searchsorted(rules.effective_thresholds, best.iou, side="right")
    reached = ((np.uint64(1) << level.astype(np.uint64)) - np.uint64(1)).astype(taken.dtype)
    return best, reached[:, None] & ~taken[best.detection]


def _match_ignored_objects(
    pairs: Pairs,
    taken: Bits,
    truths: int,
    rules: MatchingRules,
    match: Match,
) -> tuple[Pairs, Bits]:
    """Match free detections to objects, each once; return the matched pairs and their bits.

    The free detections differ by area range and threshold, so each combination is matched separately.
    """
    bits = np.zeros((len(pairs.detection), taken.shape[1]), dtype=taken.dtype)
    order = stable_order(pairs.ground_truth, truths)  # for lookups: sorted by truth, then detection
    key = pairs.ground_truth[order] * len(taken) + pairs.detection[order]
    none = np.zeros(truths, dtype=bool)
    for area in range(bits.shape[1]):
        for threshold, value in enumerate(rules.iou_thresholds):
            bit = taken.dtype.type(1 << threshold)
            there = pairs.take(np.flatnonzero((taken[pairs.detection, area] & bit) == 0))
            alone = rules.replaced(iou_thresholds=(value,))
            outcome = match([there], counted=none[:, None], absorbs=none, rules=alone, class_names=None)
            chosen = outcome.pairs.take(np.flatnonzero(outcome.bits[:, 0]))
            at = np.searchsorted(key, chosen.ground_truth * len(taken) + chosen.detection)
            bits[order[at], area] |= bit
    some = np.flatnonzero(bits.any(axis=1))
    return pairs.take(some), bits[some]


def _first_of_groups(
    bits: Bits, truth: NDArray[np.intp], eligible: NDArray[np.bool_], threshold_count: int
) -> Bits:
    """Return the bits at which each pair is the first eligible one of its group, [P, A]."""
    first_bits = np.zeros_like(bits)
    for area in range(bits.shape[1]):
        for threshold in range(threshold_count):
            bit = bits.dtype.type(1 << threshold)
            there = np.flatnonzero((bits[:, area] & bit).astype(bool) & eligible)
            _, first = np.unique(truth[there], return_index=True)
            first_bits[there[first], area] |= bit
    return first_bits
