"""Boxes whose corners are pixels, both inside."""

from __future__ import annotations

from typing import Any

from boxscore._utils.records import part
from boxscore.protocols.acting import Refusal, Scope, prepares
from boxscore.protocols.fields import Rules, Step, Word, number, rule
from boxscore.protocols.grids import number_text


def _longer(protocol: Any) -> str:
    """Write by how much."""
    longer = protocol.boxes.longer_sides
    return f"{number_text(longer)} pixel longer" if longer else "as given"


@part(frozen=True)
class LongerSidesField(Rules):
    """How much longer sides are than their corners say."""

    longer_sides: float = rule(
        0.0,
        check=number(0, 1e6),
        doc="Pixels added to the width and height of all boxes before anything else, so that areas change "
        "too (BDD100K: 1). `pixel_offset` is added where boxes are compared.",
        word=Word("longer", silent=0.0),
        step=Step("sides of boxes", "tables", _longer),
        scope=prepares(Scope.ROW),
        refuses=(Refusal("plain_tables", lambda protocol: protocol.boxes.longer_sides > 0),),
    )
