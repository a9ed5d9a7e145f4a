"""Encode annotations' masks as RLEs in place, the first step of ``COCOeval`` for ``segm``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from boxscore.compat.pycocotools.coco import COCO
from boxscore.errors import InputError
from boxscore.extensions.masks.column import Masks

Record = dict[str, Any]


def encode_annotations(
    coco: Any, anns: Sequence[Record], *, base: type = COCO, method: str = "annToRLE"
) -> None:
    """Replace each annotation's ``segmentation`` by its compressed code.

    Polygons of one image size are rasterized together. A ``method`` that differs from that of ``base`` is
    called for every annotation, and so is ours if the batch is rejected: its exceptions are the reference's.
    """
    inherited = getattr(type(coco), method, None) is getattr(base, method)
    codes = _batch(coco, anns) if inherited else None
    for row, ann in enumerate(anns):
        ann["segmentation"] = getattr(coco, method)(ann) if codes is None else codes[row]


def _batch(coco: Any, anns: Sequence[Record]) -> list[Any] | None:
    images = [coco.imgs[ann["image_id"]] for ann in anns]
    sizes = [[image["width"], image["height"]] for image in images]
    try:
        return Masks((ann["segmentation"] for ann in anns), image_sizes=sizes).codes() if anns else []
    except (InputError, LookupError, TypeError, ValueError):
        return None
