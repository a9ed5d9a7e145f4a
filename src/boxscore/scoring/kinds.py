"""Find the kinds of summary metrics: how ``metric = "AP"`` in the summary of a protocol is computed.

Conventions
-----------
- A family of kinds is one module, with a tuple of its :class:`Kind` as ``KINDS``. Its line in the table
  ``protocols.summary.FAMILIES`` gives their names; the module is imported with the first that is asked for.
- A kind *computes* some fields of the curves of one range of scores, arrays [T, K, ...]; says how each field
  *folds* over ranges; and makes its *values* of them, [T, ..., K], over which means are taken, NaN for a
  class without a value. With that it works in one process, under image weights, on parts and on a cluster.
- Without ``fold`` a class has one owner, which sees all of its rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from boxscore._utils.records import record
from boxscore.matching.matches import Matches
from boxscore.protocols.protocol import Protocol
from boxscore.protocols.summary import named_kind
from boxscore.scoring.blocks import Values
from boxscore.scoring.curves import Curves
from boxscore.scoring.folding import Fold, State

Folds = Mapping[str, Fold]


@record(frozen=True, eq=False)
class Kind:
    """One kind of summary metric."""

    name: str
    title: str
    """What it is, as pycocotools prints it or would."""
    values: Callable[[Curves, Protocol], Values]
    """From curves, and the fields that :meth:`state` has of them, to what means are taken over."""
    fold: Callable[[Protocol], Folds] | None = None
    """How each field follows over ranges; None: one owner of a class."""
    compute: Callable[[Curves, Protocol], State] | None = None
    """The fields of one range of scores; None where totals are enough, or one owner sees all."""
    needs_order: bool = False
    """Whether it ranks detections."""
    lower_is_better: bool = False
    """Whether it falls when a detector gets better."""
    of_numbers: bool = False
    """Whether the numbers of closed curves are enough."""
    of_classes_alone: bool = False
    """Whether a class has its value whatever images there are without it."""
    count: Callable[[Matches, Protocol], Matches] | None = None
    """Counts what it needs of overlaps, once, and stores it with the matches."""
    check: Callable[[Any], None] | None = None
    """Warns of what makes its number wrong, given the ``Evaluation``."""

    def state(self, curves: Curves, protocol: Protocol) -> State:
        """Return the fields of curves that this kind computes."""
        assert self.fold is not None, "a kind of one owner has no fields"
        compute = self.compute
        return curves.state(self.fold(protocol), lambda: {} if compute is None else compute(curves, protocol))

    def values_of(self, curves: Curves, protocol: Protocol) -> Values:
        """Return the values of curves; computed once."""
        return curves.once(self.name, lambda: self.values(curves, protocol))


def no_fields(protocol: Protocol) -> Folds:
    """Fold nothing: totals add over ranges by themselves."""
    return {}


def kind_of(metric: str) -> Kind:
    """Return a kind of summary metric by its name."""
    return cast("Kind", named_kind(metric))


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
