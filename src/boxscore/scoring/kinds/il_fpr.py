"""Share of the negative phrases that have a detection (SAM 3)."""

from __future__ import annotations

from boxscore.scoring.kinds.kind import Kind
from boxscore.scoring.phrase_counts import phrase_values

KIND = Kind(
    "IL_FPR", lambda curves, protocol: {}, phrase_values(lambda rates: rates.image_false_positive_rate), None
)
