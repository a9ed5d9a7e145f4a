"""Kinds of summary metrics: how ``metric = "AP"`` in a protocol's summary is computed.

Conventions
-----------
- A kind is a module here, called as the metric is in small letters, with its :class:`Kind` as ``KIND``, and
  its words in ``protocols.protocol.SUMMARY_KINDS``, which protocols are checked against.
- A kind *draws* of the curves of one range of scores some fields, arrays [T, K, ...]; says how each field
  *folds* over ranges; and makes its *values* of them: cells [T, ..., K] that means are taken over, NaN for a
  class without a value. With that it works in one process, under image weights, on parts and on a cluster.
- Without ``fold`` a class has one owner, which sees all of its rows.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterable, Mapping

from boxscore._utils.records import record
from boxscore.matching.matches import Matches
from boxscore.protocols.protocol import Protocol
from boxscore.scoring.blocks import Cells
from boxscore.scoring.curves import Curves
from boxscore.scoring.folding import Fold, State

__all__ = ["Folds", "Kind", "counted_for", "folds_of", "kind_of", "kinds_of"]

Folds = Mapping[str, Fold]


@record(frozen=True, eq=False)
class Kind:
    """One kind of summary metric."""

    name: str
    draw: Callable[[Curves, Protocol], State]
    """What one range of scores says, by field."""
    values: Callable[[Curves, Protocol], Cells]
    """From curves, and the fields that :meth:`state` has of them, to cells."""
    fold: Callable[[Protocol], Folds] | None
    """How each field follows over ranges; None: one owner of a class."""
    bounded: bool = False
    """Whether a true positive that is moved up never makes it worse, so that cells bound it."""
    of_numbers: bool = False
    """Whether the numbers of closed curves are enough."""
    count: Callable[[Matches, Protocol], Matches] | None = None
    """Counts what it needs of overlaps, once, and keeps it with the matches."""

    def state(self, curves: Curves, protocol: Protocol) -> State:
        """Return the fields of curves that this kind draws."""
        assert self.fold is not None, "a kind of one owner keeps no fields"
        return curves.state(self.fold(protocol), lambda: self.draw(curves, protocol))

    def cells(self, curves: Curves, protocol: Protocol) -> Cells:
        """Return the values of curves; computed once."""
        return curves.once(self.name, lambda: self.values(curves, protocol))


@functools.cache
def kind_of(metric: str) -> Kind:
    """Return a kind of summary metric by its name."""
    kind: Kind = importlib.import_module(f"{__name__}.{metric.lower()}").KIND
    return kind


def kinds_of(protocol: Protocol) -> list[Kind]:
    """Return the kinds that the summary of a protocol asks for."""
    return [kind_of(metric) for metric in dict.fromkeys(row.metric for row in protocol.rows)]


def folds_of(kinds: Iterable[Kind], protocol: Protocol) -> dict[str, Fold]:
    """Return how the fields of kinds fold, none of which needs one owner."""
    folds: dict[str, Fold] = {}
    for kind in kinds:
        assert kind.fold is not None, f"{kind.name} has one owner of a class"
        folds |= kind.fold(protocol)
    return folds


def counted_for(matches: Matches, protocol: Protocol) -> Matches:
    """Count what the kinds of a summary need of overlaps, which parts and image weights do not have."""
    for kind in kinds_of(protocol):
        if kind.count is not None:
            matches = kind.count(matches, protocol)
    return matches
