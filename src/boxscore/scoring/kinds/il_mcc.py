"""Correlation of finding anything with the phrase being positive (SAM 3)."""

from __future__ import annotations

from boxscore.scoring.kinds.kind import Kind
from boxscore.scoring.phrase_counts import phrase_values

KIND = Kind("IL_MCC", lambda curves, protocol: {}, phrase_values(lambda rates: rates.image_correlation), None)
