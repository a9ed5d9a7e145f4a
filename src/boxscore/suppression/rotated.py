"""Hard non-maximum suppression of rotated boxes; see :mod:`boxscore.similarity.rotated`."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boxscore.similarity.rotated import AngleUnit, RotatedMeasure, rotated_boxes
from boxscore.suppression._ranked import check_groups, check_scores, rank
from boxscore.suppression.hard import select

__all__ = ["rotated_nms"]

IndexArray = NDArray[np.int64]


def rotated_nms(
    boxes: ArrayLike,
    scores: ArrayLike,
    iou_threshold: float,
    *,
    groups: ArrayLike | None = None,
    angle_unit: AngleUnit = "radians",
    score_threshold: float | None = None,
    pre_top_k: int | None = None,
    max_per_group: int | None = None,
) -> IndexArray:
    """Hard non-maximum suppression of rotated boxes.

    Parameters
    ----------
    boxes : array_like, [N, 5]
        ``cx, cy, w, h, angle``.
    angle_unit : {"radians", "degrees"}, default "radians"
    scores, groups, iou_threshold, score_threshold, pre_top_k, max_per_group
        As in :func:`boxscore.batched_nms`; ``groups`` are its ``idxs``, None is one group.

    Returns
    -------
    ndarray of int64, [K]
        Rows of the boxes kept, by descending score, ties by lowest index.

    Raises
    ------
    InputError
        As in :func:`rotated_box_iou` and :func:`boxscore.batched_nms`.

    Examples
    --------
    >>> boxes = [[6, 3, 8, 7, 0.5], [3, 6, 9, 11, 0.6], [3, 7, 10, 12, 0.3], [1, 4, 13, 7, 0.6]]
    >>> rotated_nms(boxes, [0.7, 0.8, 0.5, 0.9], 0.5).tolist()
    [3, 1, 0]
    """
    array = rotated_boxes(boxes, angle_unit, name="boxes")
    ranked = rank(
        check_scores(scores, length=len(array)),
        None if groups is None else check_groups(groups, length=len(array)),
        lambda rows: RotatedMeasure(array.take(rows, axis=0)),
        score_threshold=score_threshold,
        pre_top_k=pre_top_k,
    )
    return select(ranked, iou_threshold, max_per_group=max_per_group).indices
