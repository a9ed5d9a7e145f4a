"""What a kind of summary metric is."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from boxscore._utils.records import record
from boxscore.matching.matches import Matches
from boxscore.protocols.protocol import Protocol
from boxscore.scoring.blocks import Values
from boxscore.scoring.curves import Curves
from boxscore.scoring.folding import Fold, State

Folds = Mapping[str, Fold]


@record(frozen=True, eq=False)
class Kind:
    """One kind of summary metric."""

    name: str
    compute: Callable[[Curves, Protocol], State]
    """The fields of one range of scores."""
    values: Callable[[Curves, Protocol], Values]
    """From curves, and the fields that :meth:`state` has of them, to what means are taken over."""
    fold: Callable[[Protocol], Folds] | None
    """How each field follows over ranges; None: one owner of a class."""
    of_numbers: bool = False
    """Whether the numbers of closed curves are enough."""
    of_classes_alone: bool = False
    """Whether a class has its value whatever images there are without it."""
    count: Callable[[Matches, Protocol], Matches] | None = None
    """Counts what it needs of overlaps, once, and stores it with the matches."""

    def state(self, curves: Curves, protocol: Protocol) -> State:
        """Return the fields of curves that this kind computes."""
        assert self.fold is not None, "a kind of one owner has no fields"
        return curves.state(self.fold(protocol), lambda: self.compute(curves, protocol))

    def values_of(self, curves: Curves, protocol: Protocol) -> Values:
        """Return the values of curves; computed once."""
        return curves.once(self.name, lambda: self.values(curves, protocol))
