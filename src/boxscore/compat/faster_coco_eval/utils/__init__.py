"""``faster_coco_eval.utils``."""

from __future__ import annotations

from boxscore.compat.faster_coco_eval.utils import pytorch

__all__ = ["pytorch"]
