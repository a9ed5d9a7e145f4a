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
    if codes is None:
        for ann in anns:
            ann["segmentation"] = getattr(coco, method)(ann)
    else:
        for ann, code in codes:
            ann["segmentation"] = code


def _batch(coco: Any, anns: Sequence[Record]) -> list[tuple[Record, Any]] | None:
    """Encode what is not a compressed code yet; None if the batch is rejected."""
    try:
        # Every annotation needs the size of its image, like in the reference.
        sizes = {
            number: [coco.imgs[number]["width"], coco.imgs[number]["height"]]
            for number in {ann["image_id"] for ann in anns}
        }
        left = [ann for ann in anns if not _is_code(ann["segmentation"])]
        given = (ann["segmentation"] for ann in left)
        codes = Masks(given, image_sizes=[sizes[ann["image_id"]] for ann in left]).codes() if left else []
    except (InputError, LookupError, TypeError, ValueError):
        return None
    return list(zip(left, codes, strict=True))


def _is_code(segmentation: Any) -> bool:
    return type(segmentation) is dict and type(segmentation.get("counts")) in (bytes, str)
