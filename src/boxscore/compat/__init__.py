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

__all__ = ["init_as_pycocotools", "restore_pycocotools"]

_NAMES = ("pycocotools", "pycocotools.mask", "pycocotools.coco", "pycocotools.cocoeval")
_replaced: dict[str, ModuleType | None] = {}
"""What stood in ``sys.modules`` before the swap; empty when there was none."""


def init_as_pycocotools() -> None:
    """Make ``import pycocotools`` give boxscore's drop-in for the rest of the process.

    Call it before the libraries that use pycocotools are imported: names they have imported already stay
    theirs. The compiled ``pycocotools._mask`` stays in place; a second call does nothing.

    See Also
    --------
    restore_pycocotools : the way back.

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

    if _replaced:
        return
    modules = (package, package.mask, package.coco, package.cocoeval)
    for name, module in zip(_NAMES, modules, strict=True):
        _replaced[name] = sys.modules.get(name)
        sys.modules[name] = module


def restore_pycocotools() -> None:
    """Undo :func:`init_as_pycocotools`; names imported in between keep what they were given."""
    for name, module in _replaced.items():
        if module is None:
            sys.modules.pop(name, None)
        else:
            sys.modules[name] = module
    _replaced.clear()
