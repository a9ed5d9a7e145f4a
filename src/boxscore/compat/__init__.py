"""Drop-ins: other libraries' interfaces on boxscore's core.

Goal
----
Code that imports ``pycocotools`` runs unchanged, with equal numbers and in a fraction of the time.

Conventions
-----------
Everything under ``compat`` keeps the names, signatures, printed text, exceptions and quirks of the library
that it replaces, including -1 for undefined. Code outside ``compat`` does not.
"""

from __future__ import annotations

from boxscore.compat.swapping import init_as_pycocotools, restore, restore_pycocotools, swap

__all__ = [
    "init_as_faster_coco_eval",
    "init_as_lvis",
    "init_as_pycocotools",
    "restore_faster_coco_eval",
    "restore_lvis",
    "restore_pycocotools",
]


def init_as_faster_coco_eval() -> None:
    """Make ``import faster_coco_eval`` give boxscore's drop-in for the rest of the process.

    Its numbers are those of pycocotools. Call it before the first evaluation of the libraries that use
    faster_coco_eval; a second call does nothing. LVIS style, boundaries and extra calculations are not
    supported and raise ``NotImplementedError``.

    See Also
    --------
    restore_faster_coco_eval : the way back.
    init_as_pycocotools : the same for libraries that import pycocotools.

    Examples
    --------
    >>> import boxscore
    >>> boxscore.init_as_faster_coco_eval()
    >>> from faster_coco_eval import COCOeval_faster
    >>> COCOeval_faster.__module__
    'boxscore.compat.faster_coco_eval.core.faster_eval_api'
    >>> boxscore.compat.restore_faster_coco_eval()
    """
    import boxscore.compat.faster_coco_eval as package

    core, pytorch = package.core, package.utils.pytorch
    parts = {
        "core": core,
        "core.coco": core.coco,
        "core.cocoeval": core.faster_eval_api,
        "core.faster_eval_api": core.faster_eval_api,
        "core.mask": core.mask,
        "utils": package.utils,
        "utils.pytorch": pytorch,
        "utils.pytorch.coco_dataset": pytorch.coco_dataset,
        "utils.pytorch.coco_eval": pytorch.coco_eval,
    }
    swap("faster_coco_eval", package, **parts)


def restore_faster_coco_eval() -> None:
    """Undo :func:`init_as_faster_coco_eval`; names imported in between keep their objects."""
    restore("faster_coco_eval")


def init_as_lvis() -> None:
    """Make ``import lvis`` give boxscore's drop-in for the rest of the process.

    Its numbers are those of lvis-api's main branch. Call it before the first evaluation of the libraries that
    use lvis, such as detectron2 and MMDetection; a second call does nothing. ``LVISVis``, which draws, is not
    supported.

    See Also
    --------
    restore_lvis : the way back.
    init_as_pycocotools : the same for libraries that import pycocotools.

    Examples
    --------
    >>> import boxscore
    >>> boxscore.init_as_lvis()
    >>> from lvis import LVISEval
    >>> LVISEval.__module__
    'boxscore.compat.lvis.eval'
    >>> boxscore.compat.restore_lvis()
    """
    import boxscore.compat.lvis as package

    swap("lvis", package, eval=package.eval, lvis=package.lvis, results=package.results)


def restore_lvis() -> None:
    """Undo :func:`init_as_lvis`; names imported in between keep their objects."""
    restore("lvis")
