"""Combine what a protocol's rules need: what can be matched apart, and which ways are open."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any, Literal, get_args

from boxscore.errors import ProtocolError
from boxscore.protocols.acting import Act, Refusal, Scope, Way
from boxscore.protocols.fields import Field, all_fields


class ProtocolScope:
    """Answers for one protocol; every rule is asked, and none is listed here.

    Parameters
    ----------
    protocol : Protocol

    Examples
    --------
    >>> from boxscore.protocols import load_protocol
    >>> load_protocol("coco").scope.is_matched_alone
    True
    >>> load_protocol("widerface").scope.allows("batches")
    False
    """

    def __init__(self, protocol: Any) -> None:
        self._protocol = protocol
        self._kind: Any = type(protocol)
        self._fields = all_fields(self._kind)

    def of(self, path: str) -> Scope:
        """Return the scope of one field, named as in TOML: ``matching.cap_scope``."""
        return next(field.rule.scope for field in self._fields if field.path == path).scope_in(self._protocol)

    def widest(self, *acts: Act) -> Scope:
        """Return the widest scope of the rules that do any of these."""
        scopes = [field.rule.scope for field in self._fields]
        return max(one.scope_in(self._protocol) for one in scopes if one.act in acts)

    @property
    def prepared_by(self) -> tuple[Any, ...]:
        """The values by which tables are prepared; protocols that share them share the tables."""
        return self._values("prepares")

    @property
    def measured_by(self) -> tuple[Any, ...]:
        """The values by which pairs are measured; protocols that share them share the overlaps."""
        return self._values("measures")

    def _values(self, act: Act) -> tuple[Any, ...]:
        return tuple(field.of(self._protocol) for field in self._fields if field.rule.scope.act == act)

    @property
    def is_prepared_by_row(self) -> bool:
        """Whether every row is prepared without any other, and none is dropped."""
        return self.widest("prepares") <= Scope.ROW

    @property
    def is_matched_alone(self) -> bool:
        """Whether the matches of an image follow from the image."""
        return self.widest("prepares", "measures", "ranks", "matches") <= Scope.IMAGE

    def keys_read(self, of: Literal["rows", "images"]) -> tuple[str, ...]:
        """Return the keys of rows or images that files are read for, each once."""
        asked = [field.rule.reads for field in self._fields if field.rule.reads is not None]
        names = [name for reads in asked if reads.of == of for name in reads.names(self._protocol)]
        return tuple(dict.fromkeys(names))

    def allows(self, way: Way) -> bool:
        """Whether no rule refuses a way of computing."""
        return not any(refusal.when(self._protocol) for _, refusal in _refusals(self._kind, way))

    def refusals(self, way: Way) -> Sequence[ProtocolError]:
        """Return what the rules have against a way of computing, those that act last first."""
        return [
            ProtocolError(name, refusal.rule, got=self._shown(name, refusal.got), cause=refusal.cause)
            for field, refusal in _refusals(self._kind, way)
            if refusal.when(self._protocol)
            for name in [refusal.field or field.path]
        ]

    def check(self, way: Way) -> None:
        """Refuse a way of computing by the first rule that does."""
        for refusal in self.refusals(way):
            raise refusal

    def _shown(self, name: str, got: str | None) -> str:
        return repr(operator.attrgetter(name)(self._protocol)) if got is None else got


@functools.cache
def _refusals(kind: Any, way: Way) -> tuple[tuple[Field, Refusal], ...]:
    """Return the refusals of a way that the fields of a kind of protocol declare, the last acts first."""
    acts = get_args(Act)
    fields = sorted(all_fields(kind), key=lambda field: -acts.index(field.rule.scope.act))
    return tuple((field, one) for field in fields for one in field.rule.refuses if one.way == way)


def describing_fields(protocol: Any) -> tuple[str, ...]:
    """Return the names of the fields of a protocol, not of its tables, that change no number."""
    return tuple(
        field.name
        for field in all_fields(protocol)
        if not field.table and field.rule.scope.act == "describes"
    )
