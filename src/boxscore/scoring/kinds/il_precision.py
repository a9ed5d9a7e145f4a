"""Share of the phrases with a detection that are positive (SAM 3)."""

from __future__ import annotations

from boxscore.scoring.kinds.kind import Kind
from boxscore.scoring.phrase_counts import phrase_values

KIND = Kind(
    "IL_precision", lambda curves, protocol: {}, phrase_values(lambda rates: rates.image_precision), None
)
