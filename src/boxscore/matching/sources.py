"""Where pairs come from: from blocks, from processes, or anew for each range. Each is asked in one way.

Conventions
-----------
- A source finds candidate pairs and hands them to ``match``, in blocks in group order. Nothing
  else knows where it does so, in this process or in others, and whether once or range by range.
- ``match`` takes by keyword what is other than for all: flags of the ground truths, thresholds.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import numpy as np

from boxscore._utils.processes import Forked
from boxscore._utils.records import record
from boxscore.matching.ignoring import Ignoring, Ranges
from boxscore.matching.pairs import Outcome, Pairs
from boxscore.similarity.pairs import TooManyPairsError

Match = Callable[..., Outcome]
""":func:`~boxscore.matching.greedy.match_greedily` with all but the blocks given, which keywords replace."""


class PairSource(Protocol):
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


@record(frozen=True, eq=False)
class RangeByRange:
    """Pairs that are matched range by range: a range decides how they are measured, or who takes part."""

    under: Callable[[Ignoring], Blocks]
    """Finds the pairs with ground truths measured as flags say."""
    flags: Ignoring
    ranges: Ranges
    outside: str
    """``ignore.outside`` of the protocol."""
    lasting: bool = False

    def matched(self, match: Match) -> Outcome:
        """Match range by range."""
        same = None if self.outside == "iof" else Blocks.held(self.under(self.flags).blocks)
        areas = range(self.ranges.inside.shape[1])
        return Outcome.joined([self._of_range(area, same, match) for area in areas])

    def _of_range(self, area: int, same: Blocks | None, match: Match) -> Outcome:
        """Match one range, by ``same`` pairs or, without them, by those measured for it."""
        flags, beyond = self.flags, ~self.ranges.inside[:, area]
        if self.outside != "ignore":
            flags = flags._replace(absorbs=flags.absorbs | beyond)
        if self.outside == "iof":
            flags = flags._replace(by_foreground=flags.by_foreground | beyond)
        blocks = self.under(flags).blocks if same is None else same.blocks
        near = self.ranges.near
        if near is not None:
            blocks = (block.of_detections(near[:, area]) for block in blocks)
        outcome = match(blocks, counted=self.ranges.counted[:, area : area + 1], absorbs=flags.absorbs)
        bits = np.zeros((len(outcome.bits), self.ranges.inside.shape[1]), dtype=outcome.bits.dtype)
        bits[:, area] = outcome.bits[:, 0]
        return outcome._replace(bits=bits)
