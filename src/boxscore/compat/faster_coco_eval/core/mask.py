"""``faster_coco_eval.core.mask``: the functions of ``pycocotools.mask``, and one more."""

from __future__ import annotations

from typing import Any

from boxscore.compat.pycocotools.mask import area, decode, encode, frPyObjects, iou, merge, toBbox

__all__ = ["area", "decode", "encode", "frPyObjects", "iou", "merge", "segmToRle", "toBbox"]


def segmToRle(segm: Any, w: int, h: int) -> Any:
    """Return a segmentation, polygons or RLE of any form, as compressed RLE."""
    if isinstance(segm, list):
        return merge(frPyObjects(segm, h, w))
    return frPyObjects(segm, h, w) if isinstance(segm["counts"], list) else segm
