"""Where the free-response ROC is read."""

from __future__ import annotations

from typing import Any, Literal

from boxscore._utils.records import record
from boxscore.protocols.acting import Scope, scores
from boxscore.protocols.fields import FPPI, Rules, Word, choice, fppi_text, rule, with_attributes

FrocInterpolation = Literal["linear", "step"]


def _froc(protocol: Any) -> str:
    """Write the points and how they are read; nothing for LUNA16's."""
    return fppi_text(protocol.froc, "interpolation")


@with_attributes
@record(frozen=True)
class FrocRules(Rules):
    """Where the free-response ROC is read."""

    PREFIX = "froc."

    false_positives_per_image: tuple[float, ...] = rule(
        (0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0),
        check=FPPI,
        doc="At which numbers of false positives per image, of the class, the sensitivity is read, "
        "ascending; FROC is their mean.",
        word=Word("froc", text=_froc, note="the points, and `step`; left out for LUNA16's"),
        scope=scores(Scope.CLASS),
    )
    interpolation: FrocInterpolation = rule(
        "linear",
        check=choice(FrocInterpolation),
        doc="Between the points of two score thresholds: a straight line (LUNA16), or the last point "
        "within the false positives allowed. They differ only where equal scores are right and wrong.",
        scope=scores(Scope.CLASS),
    )
