"""Convert keypoints to arrays, and compute the box around them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from boxscore._utils import checks
from boxscore._utils.array_types import FloatArray
from boxscore.errors import InputError

BLOCK_NUMBERS = 1 << 16
"""Numbers transposed together, so that they fit the cache of a core."""


def keypoint_array(values: ArrayLike, *, name: str = "keypoints") -> FloatArray:
    """Return keypoints as float64 [N, J, 3], also from rows of ``x1, y1, v1, x2, ...`` [N, 3 * J]."""
    rule = "have shape [N, J, 3] or [N, 3 * J], every row alike"
    array = checks.numbers(values, name=name, rule=rule)
    if array.ndim == 2 and array.shape[1] % 3 == 0:
        array = array.reshape(len(array), array.shape[1] // 3, 3)
    if array.size == 0 and array.ndim < 3:
        return np.empty((len(array), 0, 3))
    if array.ndim != 3 or array.shape[2] != 3:
        raise InputError(name, rule, got=f"shape {list(array.shape)}")
    return array


def box_of_keypoints(keypoints: FloatArray) -> FloatArray:
    """Return boxes ``x1, y1, x2, y2`` [N, 4] around all keypoints [N, J, 3], as pycocotools does."""
    if not keypoints.shape[1]:
        return np.zeros((len(keypoints), 4))
    joints = keypoints.shape[1]
    flat, size = keypoints.reshape(len(keypoints), 3 * joints), max(1, BLOCK_NUMBERS // (3 * joints))
    box = np.empty((len(keypoints), 4))
    for start in range(0, len(keypoints), size):
        here = slice(start, start + size)
        by_joint = np.ascontiguousarray(flat[here].T).reshape(joints, 3, -1)
        by_joint[:, :2].min(axis=0, out=box[here, :2].T)
        by_joint[:, :2].max(axis=0, out=box[here, 2:].T)
    return box
