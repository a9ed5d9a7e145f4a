"""Supply pairs to matching: from blocks that are held or made as they are read, or several processes.

Conventions
-----------
- A source finds candidate pairs and passes them to ``match``, in blocks in group order. Only the source knows
  whether it does so in this process or in others. Rules of a protocol add sources of their own (point
  ``pairs`` of :mod:`boxscore.matching.points`).
- ``match`` is a partial function. A source overrides by keyword the arguments that differ for some pairs:
  flags of the ground truths, thresholds.
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
from boxscore.matching.ranking import Ranking, ranked_by
from boxscore.protocols.protocol import Protocol
from boxscore.similarity.pairs import TooManyPairsError

Match = functools.partial[Outcome]
""":func:`~boxscore.matching.greedy.match_greedily` with every argument but the blocks."""


class PairSource(Interface):
    """Finds pairs, and passes them to a function that matches them."""

    @property
    def lasting(self) -> bool:
        """Whether it keeps its pairs, so that matching them again costs no search."""

    def matched(self, match: Match) -> Outcome:
        """Find the pairs and match them."""


@record(frozen=True, eq=False)
class Blocks:
    """Pairs in a list, or pairs that are made block by block and can be read once."""

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
    """Everything that one matching needs: the given tables, and their matched rows in matching order."""

    protocol: Protocol
    ground_truth: GroundTruth
    """As given, G rows."""
    detections: Detections
    """As given; the matched ones may be fewer, with other scores."""
    ignoring: Ignoring
    """Of the given ground truths."""
    ordered_truth: GroundTruth
    ordered_detections: Detections
    ordered_ignoring: Ignoring
    ranking: Ranking
    """Of ``ordered_detections``, D of them."""
    rows: NDArray[np.int64]
    """Row of each ranked detection in ``detections``, [D]."""
    ranges: Ranges
    find: Callable[[Ignoring], Blocks]
    """Find the candidate pairs; the flags say which ground truths are deleted or measured by foreground."""
    across: Callable[[float, BoolArray | None], Overlaps]
    """Overlaps from a floor on, across classes; flags [G] say which ground truths are by foreground."""
    absorbed: Bits | None = None
    """After matching: bits at which another detection has the group of a pair, [P, A]."""

    @property
    def score(self) -> NDArray[np.float64]:
        """The score by which each ranked detection is ranked, [D]; made anew, since pairs need the memory."""
        return np.take(ranked_by(self.ordered_detections), self.ranking.rows)
