"""The drop-in for ``lvis`` (lvis-api): the same classes, numbers and printed text on boxscore's core.

Goal
----
Import ``from boxscore.compat.lvis import LVIS, LVISEval, LVISResults``, or call
:func:`boxscore.init_as_lvis`; the rest of a program stays unchanged. It runs faster, and with current NumPy
versions.

Conventions
-----------
- The rules are those of lvis-api's main branch. Undefined is -1; results are changed in place, as there.
- ``LVISEval`` runs boxscore's core if the results are equal, and image by image otherwise: overridden
  methods, NaN, unusual parameters. The numbers do not depend on the path.
- ``eval_imgs``, ``ious`` and ``eval["dt_pointers"]`` are made lazily.
- Logging is not configured, and ``LVISVis`` is not supported.

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
