"""The drop-in for ``lvis`` (lvis-api): the same classes, numbers and printed text on boxscore's core.

Goal
----
``from boxscore.compat.lvis import LVIS, LVISEval, LVISResults``, or :func:`boxscore.init_as_lvis` once, and
nothing else in a program changes but the time it takes, and that it runs with today's NumPy.

Conventions
-----------
- The rules are those of lvis-api's main branch. Undefined is -1; results are changed in place, as there.
- ``LVISEval`` runs boxscore's core where it computes the same, and image by image where it does not:
  overridden methods, NaN, odd parameters. The numbers do not depend on which.
- ``eval_imgs``, ``ious`` and ``eval["dt_pointers"]`` are made when first read.
- Logging is not configured, and ``LVISVis`` is not here.

References
----------
A. Gupta et al., "LVIS: A Dataset for Large Vocabulary Instance Segmentation", CVPR 2019;
https://github.com/lvis-dataset/lvis-api.
"""

from __future__ import annotations

from boxscore.compat.lvis import eval, lvis, results  # noqa: A004 - the reference's module names
from boxscore.compat.lvis.eval import LVISEval
from boxscore.compat.lvis.lvis import LVIS
from boxscore.compat.lvis.results import LVISResults

__all__ = ["LVIS", "LVISEval", "LVISResults", "eval", "lvis", "results"]
