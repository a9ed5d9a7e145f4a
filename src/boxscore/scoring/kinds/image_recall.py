"""Recall as the mean over the images, classes pooled (Rex-Omni)."""

from __future__ import annotations

from boxscore.scoring.image_counts import image_values
from boxscore.scoring.kinds.kind import Kind

KIND = Kind("image_recall", lambda curves, protocol: {}, image_values(lambda precision, recall: recall), None)
