"""Where the curve of miss rate against false positives per image is read."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from boxscore._utils.records import record
from boxscore.protocols.acting import Scope, scores
from boxscore.protocols.fields import FPPI, Rules, Word, choice, fppi_text, rule, with_attributes

MissReading = Literal["first_at_least", "last_at_most", "last_at_most_or_end"]


def _miss_rate(protocol: Any) -> str:
    """Write the anchors and how they are read; nothing for Caltech's."""
    return fppi_text(protocol.miss_rate, "reading")


@with_attributes
@record(frozen=True)
class MissRateRules(Rules):
    """Where the curve of miss rate against false positives per image is read for MR^-2."""

    PREFIX = "miss_rate."

    false_positives_per_image: tuple[float, ...] = rule(
        tuple((10.0 ** np.linspace(-2, 0, 9)).tolist()),
        check=FPPI,
        doc="The anchors, ascending: the log-average miss rate is the geometric mean of the miss rates "
        "there.",
        word=Word("mr", text=_miss_rate, note="the anchors and the reading; left out for Caltech's"),
        scope=scores(Scope.CLASS),
    )
    reading: MissReading = rule(
        "last_at_most",
        check=choice(MissReading),
        doc="Which detection an anchor is read at: the last with no more false positives per image, and a "
        "miss rate of 1 before the first (Caltech); the same, but the last of all before the first "
        "(CityPersons); or the first with as many, and the last of all where none has (CrowdHuman).",
        scope=scores(Scope.CLASS),
    )
