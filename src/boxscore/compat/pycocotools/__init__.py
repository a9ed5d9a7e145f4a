"""The drop-in for ``pycocotools`` 2.0.11: the same classes, numbers and printed text on boxscore's core.

Goal
----
``from boxscore.compat.pycocotools import COCO, COCOeval, mask``, or :func:`boxscore.init_as_pycocotools`
once, and nothing else in a program changes but the time it takes.

Conventions
-----------
- Strict: a match with annotation id 0 reads as no match, ``ignore`` is overwritten by ``iscrowd``, the first
  number asks for the cap 100, undefined is -1.
- ``COCOeval`` runs boxscore's core where it computes the same, and image by image where it does not:
  overridden methods, NaN, odd parameters. The numbers do not depend on which.
- ``evalImgs``, ``ious``, ``_gts`` and ``_dts`` are made when first read, and are plain lists and
  dictionaries from then on. The caller may have changed them, so from then on they are what counts.

References
----------
T.-Y. Lin et al., "Microsoft COCO: Common Objects in Context", ECCV 2014; pycocotools 2.0.11.
"""

from __future__ import annotations

from boxscore.compat.pycocotools import coco, cocoeval, mask
from boxscore.compat.pycocotools.coco import COCO
from boxscore.compat.pycocotools.cocoeval import COCOeval, Params

__all__ = ["COCO", "COCOeval", "Params", "coco", "cocoeval", "mask"]
