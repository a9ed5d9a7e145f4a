"""``faster_coco_eval.utils.pytorch``: the evaluator of DETR's descendants, and torchvision's data set.

The evaluator does not need torch; ``FasterCocoDetection`` needs torchvision, and is created lazily.
"""

from __future__ import annotations

from typing import Any

from boxscore.compat.faster_coco_eval.utils.pytorch import coco_dataset, coco_eval
from boxscore.compat.faster_coco_eval.utils.pytorch.coco_eval import FasterCocoEvaluator

__all__ = ["FasterCocoEvaluator", "coco_dataset", "coco_eval"]


def __getattr__(name: str) -> Any:
    if name != "FasterCocoDetection":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return coco_dataset.FasterCocoDetection
