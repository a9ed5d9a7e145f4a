"""The drop-in for ``pycocotools`` 2.0.11: the same classes, numbers and printed text on boxscore's core.

Goal
----
Import ``from boxscore.compat.pycocotools import COCO, COCOeval, mask``, or call
:func:`boxscore.init_as_pycocotools`; the rest of a program stays unchanged, but runs faster.

Conventions
-----------
- Strict: a match with annotation id 0 does not count as a match, ``ignore`` is overwritten by ``iscrowd``,
  the first number asks for the cap 100, undefined is -1.
- ``COCOeval`` runs boxscore's core if the results are equal, and image by image otherwise: overridden
  methods, NaN, unusual parameters. The numbers do not depend on the path.
- ``evalImgs``, ``ious``, ``_gts`` and ``_dts`` are made lazily, as plain lists and dictionaries. After the
  first access they replace the matches, because the caller may have changed them.

References
----------
T.-Y. Lin et al., "Microsoft COCO: Common Objects in Context", ECCV 2014; pycocotools 2.0.11.
"""

from __future__ import annotations

from boxscore.compat.pycocotools import coco, cocoeval, mask
from boxscore.compat.pycocotools.coco import COCO
from boxscore.compat.pycocotools.cocoeval import COCOeval, Params

__all__ = ["COCO", "COCOeval", "Params", "coco", "cocoeval", "mask"]
