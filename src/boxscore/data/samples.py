"""One image's prediction and target, as a training loop has them, checked and turned into columns.

Conventions
-----------
- A prediction has ``boxes`` [D, 4], ``labels`` [D], ``scores`` [D]; a target ``boxes``, ``labels`` and, where
  the data set has them, ``image_id``, ``area``, ``iscrowd``, ``difficult``, ``ignore``. Both may have
  ``masks`` [D, H, W] or [D, 1, H, W], ``keypoints`` [D, J, 3] and ``rotated`` [D, 5]; then ``boxes`` may be
  missing. Other keys are not read.
- Arrays may be lists, NumPy arrays, or tensors on any device; torch is never imported for them.
- Masks are kept as RLEs. Masks of numbers are probabilities: a pixel belongs to the mask
  above 0.5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore.data.boxes import BoxFormat, corners_and_sizes
from boxscore.data.masks import Masks
from boxscore.data.schema import DETECTIONS
from boxscore.data.vocabulary import Id, Images, as_ids
from boxscore.errors import InputError

__all__ = [
    "SHAPES",
    "Columns",
    "image_id",
    "joined",
    "labels_of",
    "prediction_columns",
    "table_columns",
    "target_columns",
]

Columns = dict[str, Any]
"""What is kept of one image's prediction or target: checked arrays by key."""

SHAPES = ("boxes", "masks", "keypoints", "rotated")
"""Keys that say where objects are; one of them is needed."""

MASK_THRESHOLD = 0.5
"""A pixel belongs to a mask of probabilities above this, as in torchvision's evaluation."""

FLAGS = ("iscrowd", "difficult", "ignore")


def image_id(target: Mapping[str, Any], *, place: str) -> Id | None:
    """Return a target's image id, or None where it has none."""
    _check_mapping(target, "target", place)
    value = target.get("image_id")
    if value is None:
        return None
    array = _array(value, "image_id")
    if array.size != 1:
        raise InputError("image_id", "be one id", got=repr(value), place=place)
    identifier: Id = as_ids([array.item()], name="image_id").tolist()[0]
    return identifier


def prediction_columns(prediction: Mapping[str, Any], *, box_format: BoxFormat, place: str) -> Columns:
    """Check the prediction for one image; messages name ``place``."""
    _check_mapping(prediction, "prediction", place)
    return _columns(prediction, ("scores",), "prediction", box_format, place, needed=("labels", "scores"))


def target_columns(target: Mapping[str, Any], *, box_format: BoxFormat, place: str) -> Columns:
    """Check one image's target, as :func:`prediction_columns` does."""
    return _columns(target, ("area", *FLAGS), "target", box_format, place, needed=("labels",))


def _columns(
    side: Mapping[str, Any],
    optional: Sequence[str],
    kind: str,
    box_format: BoxFormat,
    place: str,
    *,
    needed: Sequence[str],
) -> Columns:
    given = {key for key, value in side.items() if value is not None}
    if not given >= set(needed) or not given & {*SHAPES}:
        rule = f"have boxes, {', '.join(needed)}"
        raise InputError(f"a {kind}", rule, got=f"keys {list(side)}", place=place)
    labels = as_ids(_array(side["labels"], f"{kind} labels").reshape(-1), name="labels").copy()
    columns: Columns = {"labels": labels}
    for key in (*SHAPES, *optional):
        if key not in given:
            continue
        if key == "masks":
            columns[key] = _codes(side[key])
        elif key == "boxes":
            boxes = checks.float_array(_array(side[key], f"{kind} {key}"), name=f"{kind} boxes", columns=4)
            columns[key] = np.array(boxes)
        elif key == "keypoints":
            columns[key] = np.array(checks.numbers(_array(side[key], f"{kind} {key}"), name=f"{kind} {key}"))
        elif key == "rotated":
            column = DETECTIONS.column(key)
            columns[key] = column.made_of(_array(side[key], f"{kind} {key}"))
            column.check(columns[key], lambda number: f"row {number} of the {kind} of {place}")
        else:
            convert = checks.flags if key in FLAGS else checks.numbers
            columns[key] = np.array(
                convert(_array(side[key], f"{kind} {key}").reshape(-1), name=f"{kind} {key}")
            )
        checks.same_length(len(labels), of=f"labels of {place}", **{key: columns[key]})

    def row(number: int) -> str:
        return f"row {number} of the {kind} of {place}"

    if "boxes" in columns:
        checks.finite(columns["boxes"], name="box", place=row)
        _, sizes = corners_and_sizes(columns["boxes"], box_format)
        checks.sizes_not_negative(sizes, place=row, cause="another box_format?")
    for key in {"scores", "area"} & set(columns):
        checks.finite(columns[key], name=key, place=row, limit=np.finfo(np.float64).max)
    return columns


def joined(sides: Sequence[Columns], key: str) -> NDArray[np.bool_]:
    """Concatenate a column of flags over images; false where an image does not have it."""
    return np.concatenate([side.get(key, np.zeros(len(side["labels"]), dtype=bool)) for side in sides])


def labels_of(sides: Sequence[Columns]) -> list[Id]:
    """Return every label, image by image."""
    return [label for side in sides for label in side["labels"].tolist()]


def table_columns(sides: Sequence[Columns], images: Images) -> dict[str, Any]:
    """Concatenate images, in their order, into arguments of ``from_arrays``."""
    counts = [len(side["labels"]) for side in sides]
    filled = [side for side in sides if len(side["labels"])]
    table: dict[str, Any] = {
        "image_ids": images.ids[np.repeat(np.arange(len(sides)), counts)],
        "category_ids": as_ids(labels_of(sides), name="labels"),
        "images": images,
        "boxes": None if filled else np.empty((0, 4)),
    }
    for key in (*SHAPES, "area", "scores"):
        parts = [side[key] for side in filled if key in side]
        if len(parts) not in (0, len(filled)):
            got = f"{len(parts)} of {len(filled)} images with it"
            raise InputError(key, "be given for every image or for none", got=got)
        if parts:
            table[key] = (
                [mask for part in parts for mask in part] if key == "masks" else np.concatenate(parts)
            )
    return table


def _check_mapping(side: Any, kind: str, place: str) -> None:
    if not isinstance(side, Mapping):
        got = f"a {type(side).__name__}"
        raise InputError(f"a {kind}", "be a mapping", got=got, place=place)


def _array(value: Any, name: str) -> NDArray[Any]:
    """Return an array of anything array-like, tensors included, wherever they live."""
    if not hasattr(value, "detach"):
        return checks.any_array(value, name=name)
    value = value.detach().cpu()
    try:
        return np.asarray(value.numpy())
    except TypeError:  # bfloat16 has no NumPy type
        return np.asarray(value.float().numpy())


def _codes(masks: Any) -> list[Any]:
    """Encode masks: arrays [N, H, W] or [N, 1, H, W]; polygons and RLEs stay."""
    if isinstance(masks, (list, tuple)) and all(isinstance(mask, (dict, list)) for mask in masks):
        return list(masks)
    array = _array(masks, "masks")
    if array.ndim == 4 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 3:
        rule = "have shape [N, H, W] or [N, 1, H, W]"
        raise InputError("masks", rule, got=f"shape {list(array.shape)}")
    return list(Masks(array if array.dtype == bool else array > MASK_THRESHOLD).codes())
