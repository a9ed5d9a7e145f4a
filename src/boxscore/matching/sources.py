"""Supply pairs to matching: from blocks that are held or made as they are read, or several processes.

Conventions
-----------
- A source finds candidate pairs and hands them to ``match``, in blocks in group order. Nothing
  else knows where it does so, in this process or in others. Rules of a protocol add sources of their own
  (point ``pairs`` of :mod:`boxscore.matching.points`).
- ``match`` takes by keyword what is other than for all: flags of the ground truths, thresholds.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple
from typing import Protocol as Interface

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import BoolArray
from boxscore._utils.processes import Forked
from boxscore._utils.records import record
from boxscore.data.tables import Detections, GroundTruth
from boxscore.matching.ignoring import Ignoring, Ranges
from boxscore.matching.matches import Bits
from boxscore.matching.pairs import Outcome, Overlaps, Pairs
from boxscore.matching.ranking import Ranking
from boxscore.protocols.protocol import Protocol
from boxscore.similarity.pairs import TooManyPairsError

Match = functools.partial[Outcome]
""":func:`~boxscore.matching.greedy.match_greedily` with all but the blocks given, which keywords replace."""


class PairSource(Interface):
    """Finds pairs, and has them matched."""

    @property
    def lasting(self) -> bool:
        """Whether it holds its pairs: asked again, it finds them at no cost."""

    def matched(self, match: Match) -> Outcome:
        """Find the pairs and match them."""


@record(frozen=True, eq=False)
class Blocks:
    """Pairs that are held in a list, or are made block by block as they are read, once."""

    blocks: Iterable[Pairs]
    lasting: bool = False

    @classmethod
    def held(cls, blocks: Iterable[Pairs]) -> Blocks:
        """Hold pairs, to be read again."""
        return cls(list(blocks), lasting=True)

    def matched(self, match: Match) -> Outcome:
        """Match the pairs here."""
        return match(self.blocks)


@record(frozen=True, eq=False)
class SharedOut:
    """Functions that find the pairs of runs of groups, one for each process, which matches them as well."""

    shares: Sequence[Callable[[], Pairs]]
    otherwise: Callable[[], PairSource]
    """What finds the pairs where there are too many for a share."""
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
    """One matching: the given tables, and what is matched of them in the order in which it is matched."""

    protocol: Protocol
    ground_truth: GroundTruth
    """As given, G rows."""
    detections: Detections
    """As given; those that are matched may be some of them, with other scores."""
    ignoring: Ignoring
    """Of the given ground truths."""
    ordered_truth: GroundTruth
    ordered_detections: Detections
    ordered_ignoring: Ignoring
    ranking: Ranking
    """Of ``ordered_detections``, D of them."""
    rows: NDArray[np.int64]
    """Row of each ranked detection in ``detections``, [D]."""
    score: NDArray[np.float64]
    """By which each ranked detection is ranked, [D]."""
    ranges: Ranges
    find: Callable[[Ignoring], Blocks]
    """Find the candidate pairs with ground truths measured as flags say."""
    across: Callable[[float, BoolArray | None], Overlaps]
    """Overlaps from a floor on, across classes; flags [G] say which ground truths are by foreground."""
    absorbed: Bits | None = None
    """After matching: bits at which another detection stands for the group of a pair, [P, A]."""
