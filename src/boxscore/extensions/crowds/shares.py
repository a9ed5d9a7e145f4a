"""Detections that lie on ignored objects of their class, all of these taken together.

Conventions
-----------
- Counted objects are matched first, as they are everywhere. A detection that overlaps none of them enough at
  a threshold is ignored there where the share of its pixels on ignored objects reaches it.
- Its pair is with the ignored object that has most of these pixels, of several the first in file order; the
  value of the pair is the share.
- Pixels are whole numbers, added up before they are divided: a share is one rounded quotient.

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
    """Return a source of the shares of detections on all ignored objects together."""
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
    """Pairs with counted objects, and what the others have of each detection, range by range."""

    under: Callable[[Ignoring], Blocks]
    """Finds the pairs with ground truths measured as flags say."""
    flags: Ignoring
    ranges: Ranges
    times: Callable[[BoolArray], IntArray]
    """How often each ground truth counts as ignored, [G]; of those outside a range, [G]."""
    shares: Callable[[IntArray], Pairs]
    """The share of each detection, by how often each ground truth counts, [G]."""
    rules: MatchingRules
    lasting: bool = False

    def matched(self, match: Match) -> Outcome:
        """Match range by range."""
        return Outcome.joined([self._of_range(area, match) for area in range(self.ranges.counted.shape[1])])

    def _of_range(self, area: int, match: Match) -> Outcome:
        """Match one range, and ignore what has a large enough share on its ignored objects."""
        # Compute the share of each detection on all ignored objects of this range.
        counted, near = self.ranges.counted[:, area], self.ranges.near
        shares = self.shares(np.where(counted, 0, self.times(~self.ranges.inside[:, area])))
        if near is not None:
            shares = shares.of_detections(near[:, area])
        # Match the counted objects alone. ``_noting`` records the largest overlap of each detection while the
        # blocks pass, so no block is kept for it.
        best: dict[str, FloatArray] = {"iou": np.zeros(int(shares.detection.max(initial=-1)) + 1)}
        blocks: Iterable[Pairs] = self.under(
            self.flags._replace(deleted=self.flags.deleted | ~counted)
        ).blocks
        if near is not None:
            blocks = (block.of_detections(near[:, area]) for block in blocks)
        outcome = match(_noting(blocks, best["iou"]), counted=counted[:, None])
        # A detection is ignored at the thresholds that its share reaches and its best overlap does not: two
        # masks of bits and one operation for all thresholds.
        reached = self._up_to(shares.iou) & ~self._up_to(best["iou"][shares.detection])
        some = np.flatnonzero(reached)
        # The pairs of shares go behind the others, and the bits go into the column of this range, [P, A].
        every = Outcome.joined([outcome, Outcome(shares.take(some), reached[some, None], outcome.every_pair)])
        bits = np.zeros((len(every.bits), self.ranges.counted.shape[1]), dtype=every.bits.dtype)
        bits[:, area] = every.bits[:, 0]
        return every._replace(bits=bits)

    def _up_to(self, values: FloatArray) -> NDArray[np.unsignedinteger]:
        """Bits of the thresholds that values reach, [N]."""
        level = np.searchsorted(self.rules.effective_thresholds, values, side="right")
        bits = (np.uint64(1) << level.astype(np.uint64)) - np.uint64(1)
        return bits.astype(bit_type(len(self.rules.iou_thresholds)))


def _noting(blocks: Iterable[Pairs], best: FloatArray) -> Iterator[Pairs]:
    """Yield blocks, and note the largest overlap of each of the first detections, [D]."""
    for block in blocks:
        known = block.detection < len(best)
        np.maximum.at(best, block.detection[known], block.iou[known])
        yield block


def times_ignored(
    ground_truth: GroundTruth, ignored: Ignoring, outside: BoolArray, protocol: Protocol
) -> NDArray[np.int64]:
    """How often what lies on a ground truth counts as ignored, [G]; those ``outside`` of a range, [G].

    What is ignored by its flag, and is also outside, counts once; a crowd twice.
    """
    crowd = ground_truth.crowd & (protocol.ignore.crowd in ("iof", "ignore"))
    times = (ignored.ignored & ~crowd).astype(np.int64)
    times |= outside & ~crowd
    times += crowd.astype(np.int64) * (1 + outside)
    times[ignored.deleted] = 0
    return times


def shares_on(ground_truth: GroundTruth, detections: Detections, ranking: Ranking, times: IntArray) -> Pairs:
    """Return the share of each detection on ground truths of its image and class.

    ``times`` [G] says how often the pixels of each ground truth count.
    """
    # Sort the ground truths that count by group; bisection gives the detections of each group. Only pairs
    # inside a group are made, [P].
    group = ground_truth.image.astype(np.int64) * len(ground_truth.categories) + ground_truth.category
    truths = np.flatnonzero(times)
    truths = truths[stable_order(group[truths], int(group.max(initial=0)) + 1)]
    low, high = (np.searchsorted(ranking.group, group[truths], side=side) for side in ("left", "right"))
    detection = ranking.grouped[ragged_ranges(low, high - low)]
    truth = np.repeat(truths, high - low)
    # Count shared pixels pair by pair: whole numbers, so sums and products are exact.
    masks = masks_of(detections)
    first, second = masks[ranking.rows[detection]], masks_of(ground_truth)[truth]
    if not len(detection):
        return Pairs(detection, truth, np.empty(0))
    each = np.arange(len(detection))
    shared = overlaps_of_pairs(
        first, second, each, each, np.zeros(len(each), dtype=bool), MaskBlock.shared_pixels
    )
    shared = shared * times[truth]
    # Sort by detection, most pixels first, then file order: the first pair of each run names the ground
    # truth.
    order = np.lexsort((truth, -shared, detection))
    detection, truth, shared = detection[order], truth[order], shared[order]
    starts = run_starts(detection)
    # Add up each run and divide once by the area: the share is one rounded quotient.
    total = np.add.reduceat(shared, starts)
    area = masks[ranking.rows[detection[starts]]].area
    some = np.flatnonzero(total > 0)
    at = starts[some]
    return Pairs(detection[at], truth[at], total[some] / area[some])
