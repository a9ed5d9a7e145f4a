"""Drop-ins in the place of libraries; pycocotools is here because faster_coco_eval offers its swap too."""

from __future__ import annotations

import sys
from types import ModuleType

_replaced: dict[str, dict[str, ModuleType | None]] = {}
"""What stood in ``sys.modules`` before each swap, by library."""


def swap(library: str, package: ModuleType, **parts: ModuleType) -> None:
    """Put a drop-in in the place of a library, unless it is there already."""
    if library in _replaced:
        return
    modules = {library: package} | {f"{library}.{name}": module for name, module in parts.items()}
    _replaced[library] = {name: sys.modules.get(name) for name in modules}
    sys.modules.update(modules)


def restore(library: str) -> None:
    """Put back what stood there before."""
    for name, module in _replaced.pop(library, {}).items():
        if module is None:
            sys.modules.pop(name, None)
        else:
            sys.modules[name] = module


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

    swap("pycocotools", package, mask=package.mask, coco=package.coco, cocoeval=package.cocoeval)


def restore_pycocotools() -> None:
    """Undo :func:`init_as_pycocotools`; names imported in between keep what they were given."""
    restore("pycocotools")
