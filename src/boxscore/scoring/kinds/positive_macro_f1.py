"""Sum of F1 of positive phrases over the number of those with a detection (SAM 3)."""

from __future__ import annotations

from boxscore.scoring.kinds.kind import Kind
from boxscore.scoring.phrase_counts import phrase_values

KIND = Kind(
    "positive_macro_F1", lambda curves, protocol: {}, phrase_values(lambda rates: rates.macro_f1), None
)
