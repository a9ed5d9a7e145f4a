"""Ignore detections by their summed overlap with all ignored objects of their class.

Conventions
-----------
- Counted objects are matched first. A detection that does not overlap any of them enough at a threshold is
  ignored there if the fraction of its pixels on ignored objects reaches the threshold.
- Its pair is with the ignored object that has most of these pixels, the first in file order among equals; the
  value of the pair is the fraction.
- Pixels are integers, summed before the division, so a fraction is rounded once.

References
----------
cityscapesScripts, ``evalInstanceLevelSemanticLabeling.py`` (``evaluateMatches``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import BoolArray, FloatArray, IntArray
from boxscore._utils.ordering import ragged_ranges, run_starts, stable_order
from boxscore._utils.records import record
from boxscore.data.tables import Detections, GroundTruth
from boxscore.extensions.masks.column import masks_of
from boxscore.extensions.masks.mask_pairs import MaskBlock, overlaps_of_pairs
from boxscore.matching.candidates import Asked, Blocks, Match, PairSource
from boxscore.matching.ignoring import Ignoring, Ranges
from boxscore.matching.matches import bit_type
from boxscore.matching.pairs import Outcome, Pairs
from boxscore.matching.ranking import Ranking
from boxscore.protocols.protocol import Protocol
from boxscore.protocols.tables.matching import MatchingRules


def summed_shares(asked: Asked, before: Callable[[], PairSource]) -> PairSource:
    """Return a source of the overlap of detections with all ignored objects together."""
    truth, flags = asked.ordered_truth, asked.ordered_ignoring
    return SummedShares(
        asked.find,
        flags,
        asked.ranges,
        lambda outside: times_ignored(truth, flags, outside, asked.protocol),
        lambda times: shares_on(truth, asked.ordered_detections, asked.ranking, times),
        asked.protocol.matching,
    )


@record(frozen=True, eq=False)
class SummedShares:
    """Pairs with counted objects, and the overlap of each detection with the others, range by range."""

    under: Callable[[Ignoring], Blocks]
    """Finds the pairs under flags of the ground truths."""
    flags: Ignoring
    ranges: Ranges
    times: Callable[[BoolArray], IntArray]
    """How often each ground truth counts as ignored, [G]; takes those outside a range, [G]."""
    shares: Callable[[IntArray], Pairs]
    """Fraction of each detection, given how often each ground truth counts, [G]."""
    rules: MatchingRules
    lasting: bool = False

    def matched(self, match: Match) -> Outcome:
        """Match range by range."""
        return Outcome.joined([self._of_range(area, match) for area in range(self.ranges.counted.shape[1])])

    def _of_range(self, area: int, match: Match) -> Outcome:
        """Match one range, and ignore detections by their overlap with its ignored objects."""
        # Compute the fraction of each detection on all ignored objects of this range.
        counted, near = self.ranges.counted[:, area], self.ranges.near
        shares = self.shares(np.where(counted, 0, self.times(~self.ranges.inside[:, area])))
        if near is not None:
            shares = shares.of_detections(near[:, area])
        # Match the counted objects alone. ``_record_best`` records the largest overlap of each detection
        # while the blocks stream through.
        best: dict[str, FloatArray] = {"iou": np.zeros(int(shares.detection.max(initial=-1)) + 1)}
        blocks: Iterable[Pairs] = self.under(
            self.flags._replace(deleted=self.flags.deleted | ~counted)
        ).blocks
        if near is not None:
            blocks = (block.of_detections(near[:, area]) for block in blocks)
        outcome = match(_record_best(blocks, best["iou"]), counted=counted[:, None])
        # Ignore a detection at the thresholds that its fraction reaches and its best overlap does not, by bit
        # masks.
        reached = self._up_to(shares.iou) & ~self._up_to(best["iou"][shares.detection])
        some = np.flatnonzero(reached)
        # Append the pairs, and set the bits in the column of this range, [P, A].
        every = Outcome.joined([outcome, Outcome(shares.take(some), reached[some, None], outcome.every_pair)])
        bits = np.zeros((len(every.bits), self.ranges.counted.shape[1]), dtype=every.bits.dtype)
        bits[:, area] = every.bits[:, 0]
        return every._replace(bits=bits)

    def _up_to(self, values: FloatArray) -> NDArray[np.unsignedinteger]:
        """Return bits of the thresholds that values reach, [N]."""
        level = np.searchsorted(self.rules.effective_thresholds, values, side="right")
        bits = (np.uint64(1) << level.astype(np.uint64)) - np.uint64(1)
        return bits.astype(bit_type(len(self.rules.iou_thresholds)))


def _record_best(blocks: Iterable[Pairs], best: FloatArray) -> Iterator[Pairs]:
    """Yield blocks, and record the largest overlap of each of the first detections, [D]."""
    for block in blocks:
        known = block.detection < len(best)
        np.maximum.at(best, block.detection[known], block.iou[known])
        yield block


def times_ignored(
    ground_truth: GroundTruth, ignored: Ignoring, outside: BoolArray, protocol: Protocol
) -> NDArray[np.int64]:
    """Return how often each ground truth counts as ignored, [G]; ``outside`` [G] marks those outside a range.

    A flagged object that is also outside counts once, a crowd twice.
    """
    crowd = ground_truth.crowd & (protocol.ignore.crowd in ("iof", "ignore"))
    times = (ignored.ignored & ~crowd).astype(np.int64)
    times |= outside & ~crowd
    times += crowd.astype(np.int64) * (1 + outside)
    times[ignored.deleted] = 0
    return times


def shares_on(ground_truth: GroundTruth, detections: Detections, ranking: Ranking, times: IntArray) -> Pairs:
    """Return the fraction of each detection on ground truths of its image and class.

    ``times`` [G] is how often the pixels of each ground truth count.
    """
    # Sort the ground truths by group, and find the detections of each group by bisection, to make only pairs
    # within a group, [P].
    group = ground_truth.image.astype(np.int64) * len(ground_truth.categories) + ground_truth.category
    truths = np.flatnonzero(times)
    truths = truths[stable_order(group[truths], int(group.max(initial=0)) + 1)]
    low, high = (np.searchsorted(ranking.group, group[truths], side=side) for side in ("left", "right"))
    detection = ranking.grouped[ragged_ranges(low, high - low)]
    truth = np.repeat(truths, high - low)
    # Count shared pixels per pair, exactly in integers.
    masks = masks_of(detections)
    first, second = masks[ranking.rows[detection]], masks_of(ground_truth)[truth]
    if not len(detection):
        return Pairs(detection, truth, np.empty(0))
    each = np.arange(len(detection))
    shared = overlaps_of_pairs(
        first, second, each, each, np.zeros(len(each), dtype=bool), MaskBlock.shared_pixels
    )
    shared = shared * times[truth]
    # Sort by detection, most pixels first, then file order: the first pair of each run has the ground truth.
    order = np.lexsort((truth, -shared, detection))
    detection, truth, shared = detection[order], truth[order], shared[order]
    starts = run_starts(detection)
    # Add up each run, and divide once by the area.
    total = np.add.reduceat(shared, starts)
    area = masks[ranking.rows[detection[starts]]].area
    some = np.flatnonzero(total > 0)
    at = starts[some]
    return Pairs(detection[at], truth[at], total[some] / area[some])
