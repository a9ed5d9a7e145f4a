"""One shape for all boxes, as in Caltech's toolkit."""

from __future__ import annotations

from typing import Any

from boxscore._utils import checks
from boxscore._utils.records import part
from boxscore.protocols.acting import Scope, measures
from boxscore.protocols.fields import Check, Rules, Step, Word, rule

__all__ = ["AspectRatioField"]


def _ratio(value: Any, name: str) -> float | None:
    return None if value in (None, "none") else checks.number_between(value, 0, 1e6, name=name, open_low=True)


@part(frozen=True)
class AspectRatioField(Rules):
    """The ratio that boxes are compared with."""

    aspect_ratio: float | None = rule(
        None,
        check=Check('number > 0, "none"', _ratio),
        doc="The ratio of width to height that boxes are compared with: height and centre stay. Regions "
        "that are "
        "measured by intersection over the detection keep theirs (Caltech: 0.41).",
        word=Word("aspect", silent=None, note="left out where boxes are compared as they are"),
        step=Step("aspect ratio", "overlaps", {None: "as given"}),
        scope=measures(Scope.ROW),
    )
