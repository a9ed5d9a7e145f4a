"""``faster_coco_eval.core``."""

from __future__ import annotations

from boxscore.compat.faster_coco_eval.core import coco, faster_eval_api, mask
from boxscore.compat.faster_coco_eval.core.coco import COCO
from boxscore.compat.faster_coco_eval.core.faster_eval_api import COCOeval_faster

__all__ = ["COCO", "COCOeval_faster", "coco", "faster_eval_api", "mask"]
