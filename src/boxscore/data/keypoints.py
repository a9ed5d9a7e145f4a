"""Keypoints as arrays, and the box around them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from boxscore._utils import checks
from boxscore._utils.array_types import FloatArray
from boxscore.errors import InputError


def keypoint_array(values: ArrayLike, *, name: str = "keypoints") -> FloatArray:
    """Return keypoints as float64 [N, J, 3]; rows of ``x1, y1, v1, x2, ...`` [N, 3 * J] are taken too."""
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
    """Box ``x1, y1, x2, y2`` [N, 4] around all keypoints [N, J, 3], labelled or not, as in pycocotools."""
    if not keypoints.shape[1]:
        return np.zeros((len(keypoints), 4))
    box = np.hstack([keypoints[:, 0, :2], keypoints[:, 0, :2]])
    for joint in range(1, keypoints.shape[1]):
        np.minimum(box[:, :2], keypoints[:, joint, :2], out=box[:, :2])
        np.maximum(box[:, 2:], keypoints[:, joint, :2], out=box[:, 2:])
    return box
