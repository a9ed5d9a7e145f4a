"""F1 of finding anything for a phrase (SAM 3)."""

from __future__ import annotations

from boxscore.scoring.kinds.kind import Kind
from boxscore.scoring.phrase_counts import phrase_values

KIND = Kind("IL_F1", lambda curves, protocol: {}, phrase_values(lambda rates: rates.image_f1), None)
