"""Find the kinds of summary metrics, which compute ``metric = "AP"`` in the summary of a protocol.

Conventions
-----------
- A family of kinds is one module, with a tuple of its :class:`Kind` as ``KINDS``. Its line in the table
  ``protocols.summary.FAMILIES`` lists their names; the module is imported lazily.
- A kind *computes* fields of the curves of one range of scores, arrays [T, K, ...]; defines how each field
  *folds* over ranges; and makes *values* of the folded fields, [T, ..., K], NaN for a class without a value.
  Summary metrics are means of values. A kind with these three works in memory, under image weights, in
  partitions and on a cluster.
- A kind without ``fold`` needs a single owner per class: a process that sees all of its rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from boxscore._utils.records import record
from boxscore.matching.matches import Matches
from boxscore.protocols.protocol import Protocol
from boxscore.protocols.summary import named_kind
from boxscore.scoring.blocks import Values
from boxscore.scoring.curves import Curves, Fold, State

Folds = Mapping[str, Fold]


@record(frozen=True, eq=False)
class Kind:
    """One kind of summary metric."""

    name: str
    title: str
    """Its title, in the form that pycocotools prints."""
    values: Callable[[Curves, Protocol], Values]
    """Takes curves with the fields of :meth:`state`, and returns the values to average."""
    fold: Callable[[Protocol], Folds] | None = None
    """Returns the fold of each field over ranges; None if a class needs a single owner."""
    compute: Callable[[Curves, Protocol], State] | None = None
    """Computes the fields of one range of scores; None if totals are enough, or a class needs a single
    owner."""
    needs_order: bool = False
    """Whether it ranks detections."""
    lower_is_better: bool = False
    """Whether lower values are better."""
    of_numbers: bool = False
    """Whether the numbers of closed curves are enough to compute the values."""
    of_classes_alone: bool = False
    """Whether images without a class leave its value unchanged."""
    count: Callable[[Matches, Protocol], Matches] | None = None
    """Computes the counts that the kind needs from overlaps, and stores them with the matches."""
    check: Callable[[Any], None] | None = None
    """Warns if the ``Evaluation`` makes its number wrong."""

    def state(self, curves: Curves, protocol: Protocol) -> State:
        """Return the fields of curves that this kind computes."""
        assert self.fold is not None, "a kind of one owner has no fields"
        compute = self.compute
        return curves.state(self.fold(protocol), lambda: {} if compute is None else compute(curves, protocol))

    def values_of(self, curves: Curves, protocol: Protocol) -> Values:
        """Return the values of curves; cached."""
        return curves.once(self.name, lambda: self.values(curves, protocol))


def no_fields(protocol: Protocol) -> Folds:
    """Return no folds: the kind needs only totals, which add up over ranges."""
    return {}


def kind_of(metric: str) -> Kind:
    """Return a kind of summary metric by its name."""
    return cast("Kind", named_kind(metric))


def kinds_of(protocol: Protocol) -> list[Kind]:
    """Return the kinds that the summary of a protocol asks for."""
    return [kind_of(metric) for metric in dict.fromkeys(row.metric for row in protocol.rows)]


def folds_of(kinds: Iterable[Kind], protocol: Protocol) -> dict[str, Fold]:
    """Return the folds of the fields of kinds that do not need a single owner."""
    folds: dict[str, Fold] = {}
    for kind in kinds:
        assert kind.fold is not None, f"{kind.name} has one owner of a class"
        folds |= kind.fold(protocol)
    return folds


def counted_for(matches: Matches, protocol: Protocol) -> Matches:
    """Add the counts that the kinds of a summary need from overlaps, which parts and image weights lack."""
    for kind in kinds_of(protocol):
        if kind.count is not None:
            matches = kind.count(matches, protocol)
    return matches
