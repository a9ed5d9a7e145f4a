"""Decimals that numbers are rounded to."""

from __future__ import annotations

from typing import Any

from boxscore._utils import checks
from boxscore._utils.records import part
from boxscore._utils.text import counted
from boxscore.protocols.acting import Refusal, Scope, prepares
from boxscore.protocols.fields import Check, Rules, Step, Word, rule


def _decimals(value: Any, name: str) -> int | None:
    return None if value in (None, "none") else checks.whole_number(value, 0, name=name)


_DECIMALS = Check('whole number, "none"', _decimals)


def _decimals_text(protocol: Any) -> str:
    """Write the decimals of scores and boxes, ``all`` for what is not rounded; nothing where neither is."""
    decimals = (protocol.rounding.scores, protocol.rounding.boxes)
    return (
        "" if decimals == (None, None) else ",".join("all" if one is None else str(one) for one in decimals)
    )


def _rounding(protocol: Any) -> str:
    """Write which numbers are rounded, and to how many decimals."""
    decimals = {"scores": protocol.rounding.scores, "boxes": protocol.rounding.boxes}
    rounded = [
        f"{counted(count, 'decimal')} of {name}" for name, count in decimals.items() if count is not None
    ]
    return ", ".join(rounded) or "as given"


@part(frozen=True)
class RoundingFields(Rules):
    """What tools lose that write detections to text and read them again."""

    scores: int | None = rule(
        None,
        check=_DECIMALS,
        doc="Decimals that scores are rounded to.",
        word=Word(
            "decimals", text=_decimals_text, note="of scores and boxes; left out where neither is rounded"
        ),
        step=Step("rounding", "tables", _rounding),
        scope=prepares(Scope.ROW),
        refuses=(Refusal("cuts", lambda protocol: protocol.rounding.scores is not None),),
    )
    boxes: int | None = rule(
        None,
        check=_DECIMALS,
        doc="Decimals that the corners of boxes are rounded to.",
        step="rounding.scores",
        scope=prepares(Scope.ROW),
    )
