"""F1 without the false positives of negative phrases (SAM 3)."""

from __future__ import annotations

from boxscore.scoring.kinds.kind import Kind
from boxscore.scoring.phrase_counts import phrase_values

KIND = Kind(
    "positive_micro_F1", lambda curves, protocol: {}, phrase_values(lambda rates: rates.positive.f1), None
)
