"""Classes that are in the data and not evaluated."""

from __future__ import annotations

from typing import Any

from boxscore._utils.records import part
from boxscore.protocols.acting import Scope, ranks
from boxscore.protocols.fields import Rules, Step, Word, list_of, rule, text

__all__ = ["NotEvaluatedField"]


def _not_evaluated(protocol: Any) -> str:
    """Write the classes that are not evaluated."""
    return ",".join(protocol.labels.not_evaluated)


@part(frozen=True)
class NotEvaluatedField(Rules):
    """Which classes are left out."""

    not_evaluated: tuple[str, ...] = rule(
        (),
        check=list_of(text, "a list"),
        doc="Names of classes that are not evaluated. A cap over an image counts their detections.",
        word=Word("without", silent=(), text=_not_evaluated, note="the classes not evaluated"),
        step=Step("classes not evaluated", "tables", _not_evaluated),
        scope=ranks(Scope.ROW),
    )
