"""The optional columns of both tables, masks and keypoints, and what a protocol asks of them.

Conventions
-----------
- Where no boxes are given they are those around the masks, else around the keypoints, as in pycocotools.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from boxscore._utils import checks
from boxscore._utils.checks import Place
from boxscore.data.keypoints import box_of_keypoints, keypoint_array
from boxscore.data.masks import MaskLike, Masks
from boxscore.errors import InputError

__all__ = ["instance_columns"]


def instance_columns(
    base: Mapping[str, Any],
    masks: Iterable[MaskLike] | None,
    keypoints: ArrayLike | None,
    *,
    boxes_given: bool,
    place: Place,
) -> dict[str, Any]:
    """Check and build the columns ``masks`` and ``keypoints``, and boxes from them where none are given.

    Parameters
    ----------
    base : mapping
        The columns that every table has.
    masks, keypoints : optional
        One a row, as in ``from_arrays``.
    boxes_given : bool
    place : callable
        Names row ``i`` in messages.

    Returns
    -------
    dict
        Columns by name; none when there is nothing to add.
    """
    columns: dict[str, Any] = {}
    count = len(base["image"])
    if masks is not None:
        sizes = base["images"].sizes[base["image"]]
        columns["masks"] = masks if isinstance(masks, Masks) else Masks(masks, image_sizes=sizes, place=place)
        checks.same_length(count, of="boxes", masks=columns["masks"])
    if keypoints is not None:
        columns["keypoints"] = np.array(keypoint_array(keypoints))
        checks.same_length(count, of="boxes", keypoints=columns["keypoints"])
        checks.finite(
            columns["keypoints"].reshape(count, math.prod(columns["keypoints"].shape[1:])),
            name="keypoints",
            place=place,
        )
    if boxes_given:
        return columns
    if masks is not None:
        boxes = columns["masks"].boxes
    elif keypoints is not None:
        boxes = box_of_keypoints(columns["keypoints"])
    else:
        cause = "only masks or keypoints can stand for them"
        raise InputError("boxes", "be given", got="None", cause=cause)
    return {**columns, "boxes": boxes, "sizes": boxes[:, 2:] - boxes[:, :2]}
