"""F1 of the boxes of positive phrases, times how well positive phrases are told from negative (SAM 3)."""

from __future__ import annotations

from boxscore.scoring.kinds.kind import Kind
from boxscore.scoring.phrase_counts import phrase_values

KIND = Kind(
    "cgF1",
    lambda curves, protocol: {},
    phrase_values(lambda rates: rates.positive.f1 * rates.image_correlation),
    None,
)
