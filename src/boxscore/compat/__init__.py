"""Drop-in faces: other libraries' interfaces on boxscore's core.

Goal
----
Code that imports ``pycocotools`` runs unchanged, with equal numbers and in a fraction of the time.

Conventions
-----------
Everything under ``compat`` keeps the names, signatures, printed text, exceptions and oddities of the library
it replaces, -1 for undefined included. Nothing outside ``compat`` does.
"""

from __future__ import annotations

import sys
from types import ModuleType

__all__ = [
    "init_as_faster_coco_eval",
    "init_as_lvis",
    "init_as_pycocotools",
    "restore_faster_coco_eval",
    "restore_lvis",
    "restore_pycocotools",
]

_replaced: dict[str, dict[str, ModuleType | None]] = {}
"""What stood in ``sys.modules`` before each swap, by library."""


def init_as_pycocotools() -> None:
    """Make ``import pycocotools`` give boxscore's drop-in for the rest of the process.

    Call it before the libraries that use pycocotools are imported: names they have imported already stay
    theirs. The compiled ``pycocotools._mask`` stays in place; a second call does nothing.

    See Also
    --------
    restore_pycocotools : the way back.
    init_as_faster_coco_eval : the same for libraries that import faster_coco_eval, such as ultralytics.

    Examples
    --------
    >>> import boxscore
    >>> boxscore.init_as_pycocotools()
    >>> from pycocotools.cocoeval import COCOeval
    >>> COCOeval.__module__
    'boxscore.compat.pycocotools.cocoeval'
    >>> boxscore.compat.restore_pycocotools()
    """
    import boxscore.compat.pycocotools as package

    _swap("pycocotools", package, mask=package.mask, coco=package.coco, cocoeval=package.cocoeval)


def restore_pycocotools() -> None:
    """Undo :func:`init_as_pycocotools`; names imported in between keep what they were given."""
    _restore("pycocotools")


def init_as_faster_coco_eval() -> None:
    """Make ``import faster_coco_eval`` give boxscore's drop-in for the rest of the process.

    Its numbers are those of pycocotools. Call it before the first evaluation of the libraries that use
    faster_coco_eval; a second call does nothing. LVIS style, boundaries and extra calculations are not here:
    asked for, they raise ``NotImplementedError``.

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

    core = package.core
    parts = {
        "core": core,
        "core.coco": core.coco,
        "core.cocoeval": core.faster_eval_api,
        "core.faster_eval_api": core.faster_eval_api,
        "core.mask": core.mask,
    }
    _swap("faster_coco_eval", package, **parts)


def restore_faster_coco_eval() -> None:
    """Undo :func:`init_as_faster_coco_eval`; names imported in between keep what they were given."""
    _restore("faster_coco_eval")


def init_as_lvis() -> None:
    """Make ``import lvis`` give boxscore's drop-in for the rest of the process.

    Its numbers are those of lvis-api's main branch. Call it before the first evaluation of the libraries that
    use lvis, such as detectron2 and MMDetection; a second call does nothing. ``LVISVis``, which draws, is not
    here.

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

    _swap("lvis", package, eval=package.eval, lvis=package.lvis, results=package.results)


def restore_lvis() -> None:
    """Undo :func:`init_as_lvis`; names imported in between keep what they were given."""
    _restore("lvis")


def _swap(library: str, package: ModuleType, **parts: ModuleType) -> None:
    if library in _replaced:
        return
    modules = {library: package} | {f"{library}.{name}": module for name, module in parts.items()}
    _replaced[library] = {name: sys.modules.get(name) for name in modules}
    sys.modules.update(modules)


def _restore(library: str) -> None:
    for name, module in _replaced.pop(library, {}).items():
        if module is None:
            sys.modules.pop(name, None)
        else:
            sys.modules[name] = module
