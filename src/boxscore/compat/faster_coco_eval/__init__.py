"""The drop-in for ``faster_coco_eval`` 1.8.0: its classes, on the drop-in for pycocotools.

Goal
----
Covers the uses of ultralytics, torchmetrics, D-FINE, RT-DETR and other training code: ``COCO`` on files,
paths and dictionaries, ``COCOeval_faster`` with ``stats``, ``all_stats`` and ``stats_as_dict``, ``mask``, and
``FasterCocoEvaluator``. The numbers are those of pycocotools.

Conventions
-----------
Unsupported features raise ``NotImplementedError`` with a message: LVIS style, boundaries, crowded keypoints,
extra calculations.

References
----------
faster_coco_eval 1.8.0, https://github.com/MiXaiLL76/faster_coco_eval.
"""

from __future__ import annotations

from boxscore.compat.faster_coco_eval import core, utils
from boxscore.compat.faster_coco_eval.core import COCO, COCOeval_faster, coco, mask
from boxscore.compat.faster_coco_eval.core import faster_eval_api as cocoeval
from boxscore.compat.swapping import init_as_pycocotools

__all__ = ["COCO", "COCOeval_faster", "coco", "cocoeval", "core", "init_as_pycocotools", "mask", "utils"]

__version__ = "1.8.0"
