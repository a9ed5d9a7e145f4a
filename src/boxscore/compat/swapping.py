"""Replace libraries by drop-ins in ``sys.modules``.

The swap of pycocotools is here because the drop-in for faster_coco_eval offers it too.
"""

from __future__ import annotations

import sys
from types import ModuleType

_replaced: dict[str, dict[str, ModuleType | None]] = {}
"""The entries of ``sys.modules`` before each swap, by library."""


def swap(library: str, package: ModuleType, **parts: ModuleType) -> None:
    """Replace a library by a drop-in, unless it is replaced already."""
    if library in _replaced:
        return
    modules = {library: package} | {f"{library}.{name}": module for name, module in parts.items()}
    _replaced[library] = {name: sys.modules.get(name) for name in modules}
    sys.modules.update(modules)


def restore(library: str) -> None:
    """Restore the entries of ``sys.modules`` from before the swap."""
    for name, module in _replaced.pop(library, {}).items():
        if module is None:
            sys.modules.pop(name, None)
        else:
            sys.modules[name] = module


def init_as_pycocotools() -> None:
    """Make ``import pycocotools`` give boxscore's drop-in for the rest of the process.

    Call it before importing libraries that use pycocotools: names that they imported earlier stay unchanged.
    The compiled ``pycocotools._mask`` stays in place; a second call does nothing.

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

    swap("pycocotools", package, mask=package.mask, coco=package.coco, cocoeval=package.cocoeval)


def restore_pycocotools() -> None:
    """Undo :func:`init_as_pycocotools`; names imported in between keep their objects."""
    restore("pycocotools")
