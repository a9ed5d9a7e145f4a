"""``pycocotools.mask``: run-length encoded masks.

Goal
----
The reference's functions, on the reference's own compiled code, which is fast enough.

Conventions
-----------
Functions that take a mask or a list of masks return one value or an array accordingly. ``_mask`` is the
compiled module of pycocotools, loaded before any swap of modules.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

_mask: Any = importlib.import_module("pycocotools._mask")

iou = _mask.iou
merge = _mask.merge
frPyObjects = _mask.frPyObjects


def encode(bimask: NDArray[np.uint8]) -> Any:
    """Encode a mask [h, w] to an RLE, or masks [h, w, n] in Fortran order to a list of them."""
    if bimask.ndim == 3:
        return _mask.encode(bimask)
    if bimask.ndim == 2:
        return _mask.encode(bimask.reshape((*bimask.shape, 1), order="F"))[0]
    return None


def decode(rleObjs: Any) -> NDArray[np.uint8]:
    """Decode an RLE to a mask [h, w], or a list of them to [h, w, n]."""
    several = type(rleObjs) is list
    masks: NDArray[np.uint8] = _mask.decode(rleObjs if several else [rleObjs])
    return masks if several else masks[:, :, 0]


def area(rleObjs: Any) -> Any:
    """Count the pixels of an RLE, or of each in a list."""
    return _mask.area(rleObjs) if type(rleObjs) is list else _mask.area([rleObjs])[0]


def toBbox(rleObjs: Any) -> Any:
    """Return the box x, y, w, h around an RLE, or around each in a list."""
    return _mask.toBbox(rleObjs) if type(rleObjs) is list else _mask.toBbox([rleObjs])[0]
