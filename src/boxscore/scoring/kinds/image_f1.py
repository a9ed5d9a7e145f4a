"""F1 of the means over the images of precision and recall, classes pooled (Rex-Omni)."""

from __future__ import annotations

from boxscore.scoring.image_counts import f1_of, image_values
from boxscore.scoring.kinds.kind import Kind

KIND = Kind("image_F1", lambda curves, protocol: {}, image_values(f1_of), None)
