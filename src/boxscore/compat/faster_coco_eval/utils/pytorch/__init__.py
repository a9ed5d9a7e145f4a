"""``faster_coco_eval.utils.pytorch``: the evaluator of DETR's descendants, and torchvision's data set.

The evaluator needs no torch; the data set needs torchvision, and loads when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from boxscore._utils.lazy import lazy_names
from boxscore.compat.faster_coco_eval.utils.pytorch import coco_eval
from boxscore.compat.faster_coco_eval.utils.pytorch.coco_eval import FasterCocoEvaluator

if TYPE_CHECKING:
    from boxscore.compat.faster_coco_eval.utils.pytorch.coco_dataset import FasterCocoDetection

_NAMES = {"boxscore.compat.faster_coco_eval.utils.pytorch.coco_dataset": ("FasterCocoDetection",)}

__getattr__, __dir__ = lazy_names(__name__, _NAMES)

__all__ = ["FasterCocoDetection", "FasterCocoEvaluator", "coco_eval"]
