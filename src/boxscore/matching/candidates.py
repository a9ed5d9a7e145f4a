"""Find candidate pairs: detections and ground truths of one image and class that may match.

Avoid the full matrix of detections and ground truths, which is almost empty. Pairs are made only inside an
(image, category) group that has both; the similarity defines the comparison. A candidate is a pair that
reaches the lowest threshold. A detection without one is a false positive at every threshold.

If very many pairs overlap, detections are compared block by block, each with all its ground truths: memory is
bounded, and the pairs are the same.

Conventions
-----------
- A *source* finds candidate pairs and passes them to ``match``, in blocks in group order. Only the source
  knows whether it works in this process or in others, and whether it keeps its blocks. Rules of a protocol
  add their own sources (point ``pairs`` of :mod:`boxscore.matching.points`).
- ``match`` is a partial function. A source overrides by keyword the arguments that differ for some pairs:
  flags of the ground truths, thresholds.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any
from typing import Protocol as Interface

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import BoolArray
from boxscore._utils.ordering import ragged_ranges, run_starts, stable_order
from boxscore._utils.processes import Forked
from boxscore._utils.records import NamedTuple, record
from boxscore.data.tables import Detections, GroundTruth
from boxscore.errors import InputError
from boxscore.matching.ignoring import Ignoring, Ranges
from boxscore.matching.matches import Bits
from boxscore.matching.pairs import Outcome, Overlaps, Pairs
from boxscore.matching.ranking import Ranking, ranked_by
from boxscore.protocols.protocol import Protocol
from boxscore.similarity.pairs import Comparison, TooManyPairsError
from boxscore.similarity.registry import similarity_of

MOST_PAIRS = 1 << 21
"""Most pairs of a block. Each takes about 170 bytes until it is matched."""

MOST_HELD = 1 << 25
"""Most pairs that are kept for later calls; about 100 bytes each while they are sorted."""

SMALL_SHARE = 4
"""Questions about fewer than one in so many detections, all together, do not compare the others."""


def candidate_pairs(
    ground_truth: GroundTruth,
    detections: Detections,
    ranking: Ranking,
    protocol: Protocol,
    ignoring: Ignoring,
    *,
    most: int = sys.maxsize,
    workers: int = 1,
) -> Pairs:
    """Find every pair that reaches the lowest threshold; :exc:`TooManyPairsError` beyond ``most``."""
    return _Candidates(ground_truth, detections, ranking, protocol, ignoring).between(
        0, len(ranking.group), most, workers
    )


def candidate_blocks(
    ground_truth: GroundTruth,
    detections: Detections,
    ranking: Ranking,
    protocol: Protocol,
    ignoring: Ignoring,
    *,
    compared: int,
) -> Iterator[Pairs]:
    """Find the same pairs block by block, in group order; each block compares about ``compared`` pairs.

    A block with more than :data:`MOST_PAIRS` pairs is split again, down to single detections.
    """
    candidates = _Candidates(ground_truth, detections, ranking, protocol, ignoring)
    ends = np.cumsum(candidates.truths_of_each())
    # A stack of blocks: the lower half of a split block is pushed last, so that it is processed next.
    waiting = [(0, len(ends), compared)]
    while waiting:
        low, high, size = waiting.pop()
        before = int(ends[low - 1]) if low else 0
        if high - low > 1 and int(ends[high - 1]) - before > size:
            cut = low + max(1, int(np.searchsorted(ends[low : high - 1], before + size, side="right")))
            waiting += [(cut, high, size), (low, cut, size)]
            continue
        try:
            yield candidates.between(low, high, MOST_PAIRS if high - low > 1 else sys.maxsize)
        except TooManyPairsError:
            waiting.append((low, high, size // 2))


def candidate_shares(
    ground_truth: GroundTruth,
    detections: Detections,
    ranking: Ranking,
    protocol: Protocol,
    ignoring: Ignoring,
    *,
    shares: int,
    most: int,
) -> list[Callable[[], Pairs]]:
    """Return functions that each find the pairs of a run of groups; all compare about equally many pairs.

    They raise :exc:`TooManyPairsError` when there are more than ``most``.
    """
    candidates = _Candidates(ground_truth, detections, ranking, protocol, ignoring)
    group, compared = ranking.group, np.cumsum(candidates.truths_of_each())
    bounds = [0, len(group)]
    if len(group):
        middle = np.searchsorted(compared, compared[-1] / shares * np.arange(1, shares))
        bounds = sorted({0, *np.searchsorted(group, group[middle]).tolist(), len(group)})
    return [
        functools.partial(candidates.between, low, high, most) for low, high in itertools.pairwise(bounds)
    ]


class KnownOverlaps:
    """A cache of the overlaps of all rows of two tables, by the way they are measured."""

    def __init__(self) -> None:
        self._by_key: dict[Any, tuple[float, Overlaps]] = {}
        self._compared_alone = 0  # number of rows that were compared without the others

    def of(
        self, key: Any, truth: GroundTruth, detections: Detections, protocol: Protocol, flags: Ignoring
    ) -> Overlaps:
        """Return all overlaps that reach the protocol's floor; ``key`` names the order of the tables."""
        key, overlaps = self._found(key, protocol, flags)
        if overlaps is None:
            overlaps = _overlaps(truth, detections, protocol, flags)
            self._by_key[key] = protocol.matching.lowest_threshold, overlaps
        return overlaps

    def of_some(
        self,
        rows: NDArray[np.intp],
        key: Any,
        truth: GroundTruth,
        detections: Detections,
        protocol: Protocol,
        flags: Ignoring,
    ) -> tuple[Overlaps, NDArray[np.intp]]:
        """Return overlaps of at least these rows, and the number of each row in them.

        Most detections have low scores: questions about few rows do not compare the others, unless such
        questions are repeated.
        """
        compared = self._compared_alone + len(rows)
        if SMALL_SHARE * compared > len(detections) or self._found(key, protocol, flags)[1] is not None:
            return self.of(key, truth, detections, protocol, flags), rows
        self._compared_alone = compared
        return _overlaps(truth, detections.take(rows), protocol, flags), np.arange(len(rows))

    def _found(self, key: Any, protocol: Protocol, flags: Ignoring) -> tuple[Any, Overlaps | None]:
        """Return the whole key, and the overlaps under it if they reach the protocol's floor."""
        measured = (protocol.scope.measured_by, similarity_of(protocol).fitted_to)
        key = (key, measured, flags.deleted.tobytes(), flags.by_foreground.tobytes())
        known, overlaps = self._by_key.get(key, (np.inf, None))
        return key, overlaps if known <= protocol.matching.lowest_threshold else None


def _overlaps(
    ground_truth: GroundTruth, detections: Detections, protocol: Protocol, flags: Ignoring
) -> Overlaps:
    """Compute the overlapping pairs of all rows."""
    group = detections.image.astype(np.int64) * len(detections.categories) + detections.category
    rows = stable_order(group, len(detections.images) * len(detections.categories))
    everyone = np.arange(len(rows))
    ranking = Ranking(rows, np.zeros(len(rows), dtype=np.int32), everyone, group[rows])
    try:
        pairs = candidate_pairs(ground_truth, detections, ranking, protocol, flags, most=MOST_HELD)
    except TooManyPairsError:
        raise InputError(
            "overlapping pairs",
            f"be at most {MOST_HELD:,} where all are held together",
            got="more",
            cause="if nearly all detections of an image overlap, suppress them first, or raise the score "
            "threshold of the detector",
        ) from None
    return Overlaps.of(pairs, rows)


class _Candidates:
    """The ground truths that share an image and class with the detections of a ranking."""

    def __init__(
        self,
        ground_truth: GroundTruth,
        detections: Detections,
        ranking: Ranking,
        protocol: Protocol,
        ignoring: Ignoring,
    ) -> None:
        self._tables, self._ranking, self._protocol = (ground_truth, detections), ranking, protocol
        category_count = len(ground_truth.categories)
        truth_group = ground_truth.image.astype(np.int64) * category_count + ground_truth.category
        truth_rows = stable_order(truth_group, len(ground_truth.images) * category_count)
        self._truth_rows = truth_rows = truth_rows[~ignoring.deleted[truth_rows]]
        truth_group = truth_group[truth_rows]
        starts = run_starts(truth_group)
        self._groups = truth_group[starts]  # the (image, category) groups that have a ground truth
        self._truth_bounds = np.append(starts, len(truth_rows))
        self._by_foreground = ignoring.by_foreground[truth_rows] if ignoring.by_foreground.any() else None

    def truths_of_each(self) -> NDArray[np.int64]:
        """Count the ground truths in the group of each detection, in group order, [D]."""
        group = self._ranking.group
        # Groups ascend in both tables, so bisection gives the detections of each group with a ground truth.
        # Detections of the other groups keep 0.
        starts, ends = (np.searchsorted(group, self._groups, side=side) for side in ("left", "right"))
        truths = np.zeros(len(group), dtype=np.int64)
        truths[ragged_ranges(starts, ends - starts)] = np.repeat(np.diff(self._truth_bounds), ends - starts)
        return truths

    def between(self, low: int, high: int, most: int, workers: int = 1) -> Pairs:
        """Find the pairs of the detections from ``low`` to ``high`` in group order."""
        ranking = self._ranking
        groups, bounds, truth_rows = self._groups, self._truth_bounds, self._truth_rows
        by_foreground, group = self._by_foreground, ranking.group
        # Restrict the groups and their ground truths to those of the block. Groups ascend, so each
        # restriction is a slice and copies nothing.
        if high - low < len(group):
            group = group[low:high]
            first, end = np.searchsorted(groups, group[0]), np.searchsorted(groups, group[-1], side="right")
            groups, bounds = groups[first:end], bounds[first : end + 1]
            block = slice(bounds[0], bounds[-1])
            truth_rows = truth_rows[block]
            by_foreground = None if by_foreground is None else by_foreground[block]
        # Find the detections of each group, ``starts`` and ``counts`` [groups], by bisection.
        starts = np.searchsorted(group, groups, side="left")
        counts = np.searchsorted(group, groups, side="right") - starts

        # Keep only detections in a group with a ground truth, still in group order: compact positions.
        positions = ragged_ranges(starts + low, counts)
        grouped = np.take(ranking.grouped, positions)
        # Each ground truth is compared with the run of detections of its group. The similarity keeps the
        # pairs that reach the lowest threshold; the matrix of all pairs never exists.
        compact_starts = np.cumsum(counts) - counts
        truths_in_group = np.diff(bounds)
        pairs = similarity_of(self._protocol).of_pairs(
            *self._tables,
            Comparison(
                truth_rows,
                np.take(ranking.rows, grouped),
                np.repeat(compact_starts, truths_in_group),
                np.repeat(counts, truths_in_group),
                by_foreground,
                self._protocol.matching.lowest_threshold,
                most,
                workers,
            ),
        )
        # The pairs of a detection come in the order of ``truth_rows``, which inside a group is file order. A
        # stable sort keeps it, because it decides between equal overlaps.
        order = stable_order(pairs.detection, len(positions))
        detection = np.take(grouped, pairs.detection.take(order))
        return Pairs(detection, np.take(truth_rows, pairs.truth.take(order)), pairs.value.take(order))


# ---------------------------------------------------------------- sources of pairs


Match = functools.partial[Outcome]
""":func:`~boxscore.matching.greedy.match_greedily` with every argument but the blocks."""


class PairSource(Interface):
    """Finds pairs and passes them to a function that matches them."""

    @property
    def lasting(self) -> bool:
        """Whether it keeps its pairs, so that matching them again needs no search."""

    def matched(self, match: Match) -> Outcome:
        """Find the pairs and match them."""


@record(frozen=True, eq=False)
class Blocks:
    """Pairs in a list, or pairs that are generated block by block and can be read one time."""

    blocks: Iterable[Pairs]
    lasting: bool = False

    @classmethod
    def held(cls, blocks: Iterable[Pairs]) -> Blocks:
        """Keep pairs in a list, so that they can be read again."""
        return cls(list(blocks), lasting=True)

    def matched(self, match: Match) -> Outcome:
        """Match the pairs in this process."""
        return match(self.blocks)


@record(frozen=True, eq=False)
class SharedOut:
    """Functions that find the pairs of runs of groups; each process runs one and matches its pairs."""

    shares: Sequence[Callable[[], Pairs]]
    otherwise: Callable[[], PairSource]
    """Makes the source to use instead if a run has too many pairs."""
    lasting: bool = False

    def matched(self, match: Match) -> Outcome:
        """Find and match the pairs, each share but the first in another process."""
        tasks = [functools.partial(_matched_share, pairs, match) for pairs in self.shares]
        with contextlib.suppress(TooManyPairsError), contextlib.closing(Forked(tasks[1:])) as forked:
            return Outcome.joined([tasks[0](), *forked.results()])
        return self.otherwise().matched(match)


def _matched_share(pairs: Callable[[], Pairs], match: Match) -> Outcome:
    return match([pairs()])


class Asked(NamedTuple):
    """The inputs of one matching: the given tables, and their matched rows in matching order."""

    protocol: Protocol
    ground_truth: GroundTruth
    """The given table, G rows."""
    detections: Detections
    """The given table; the matched ones may be fewer, with other scores."""
    ignoring: Ignoring
    """Treatment of the given ground truths."""
    ordered_truth: GroundTruth
    ordered_detections: Detections
    ordered_ignoring: Ignoring
    ranking: Ranking
    """Ranking of ``ordered_detections``, D of them."""
    rows: NDArray[np.int64]
    """Row of each ranked detection in ``detections``, [D]."""
    ranges: Ranges
    find: Callable[[Ignoring], Blocks]
    """Finds the candidate pairs; the flags mark deleted ground truths and those measured by foreground."""
    across: Callable[[float, BoolArray | None], Overlaps]
    """Returns overlaps that reach a floor, across classes; flags [G] mark ground truths by foreground."""
    absorbed: Bits | None = None
    """After matching: bits at which another detection has the group of a pair, [P, A]."""

    @property
    def score(self) -> NDArray[np.float64]:
        """The score that ranks each detection, [D]; not cached, since pairs need the memory."""
        return np.take(ranked_by(self.ordered_detections), self.ranking.rows)
