"""Kinds of summary metrics: how ``metric = "AP"`` in a protocol's summary is computed.

Conventions
-----------
- A kind is a module here, called as the metric is in small letters, with its :class:`Kind` as ``KIND``, and
  its words in ``protocols.summary.SUMMARY_KINDS``, which protocols are checked against.
- A kind *computes* some fields of the curves of one range of scores, arrays [T, K, ...]; says how each field
  *folds* over ranges; and makes its *values* of them, [T, ..., K], over which means are taken, NaN for a
  class without a value. With that it works in one process, under image weights, on parts and on a cluster.
- Without ``fold`` a class has one owner, which sees all of its rows.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterable

from boxscore.matching.matches import Matches
from boxscore.protocols.protocol import Protocol
from boxscore.scoring.folding import Fold
from boxscore.scoring.kinds.kind import Kind

__all__ = ["Kind", "counted_for", "folds_of", "kind_of", "kinds_of"]


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
