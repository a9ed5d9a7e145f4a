"""Suppression by instance masks: overlap is counted in pixels, not in boxes.

Conventions
-----------
- Masks are what :class:`~boxscore.Masks` takes; those of one group have one size, their image's.
- Overlaps are pycocotools', bit for bit; no mask is decoded to pixels.
- An empty mask is inert.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike

from boxscore._utils import checks
from boxscore._utils.array_types import IntArray
from boxscore.errors import InputError
from boxscore.extensions.masks.column import masks_of
from boxscore.extensions.masks.mask import MasksLike, as_masks, mask_measure
from boxscore.similarity.measures import MeasureOf
from boxscore.similarity.pairs import Overlap
from boxscore.suppression._ranked import check_groups, check_scores, rank
from boxscore.suppression.hard import select

if TYPE_CHECKING:
    from boxscore.data.tables import Detections


def mask_nms(
    masks: MasksLike,
    scores: ArrayLike,
    iou_threshold: float,
    *,
    groups: ArrayLike | None = None,
    overlap: Literal["iou", "ios"] = "iou",
    score_threshold: float | None = None,
    pre_top_k: int | None = None,
    max_per_group: int | None = None,
) -> IntArray:
    """Hard non-maximum suppression of instance masks.

    Parameters
    ----------
    masks : Masks, sequence of RLEs, or array_like of bool, [N, H, W]
    iou_threshold : float in [0, 1]
        A mask is dropped when its overlap with a better kept mask is greater.
    overlap : {"iou", "ios"}, default "iou"
        Intersection over union, or over the smaller of the two areas.
    scores, groups, score_threshold, pre_top_k, max_per_group
        As in :func:`boxscore.batched_nms`; ``groups`` are its ``idxs``, None is one group.

    Returns
    -------
    ndarray of int64, [K]
        Rows of the masks kept, by descending score, ties by lowest index.

    Raises
    ------
    InputError
        As in :func:`boxscore.batched_nms`; when a mask is missing or damaged, or the masks of a group are
        not of one size.

    Examples
    --------
    >>> import numpy as np
    >>> left, top = np.zeros((2, 4, 4), dtype=bool)
    >>> left[:, :3] = top[:3] = True
    >>> mask_nms([left, top], [0.8, 0.9], 0.5).tolist()
    [1]
    >>> mask_nms([left, top], [0.8, 0.9], 0.6).tolist()
    [1, 0]
    """
    checks.one_of(overlap, ("iou", "ios"), name="overlap")
    threshold = checks.number_between(iou_threshold, 0, 1, name="iou_threshold")
    column = as_masks(masks)
    group = None if groups is None else check_groups(groups, length=len(column), of="masks")
    ranked = rank(
        check_scores(scores, length=len(column), of="masks"),
        group,
        mask_measure(column, group, overlap=overlap, lowest=threshold),
        score_threshold=score_threshold,
        pre_top_k=pre_top_k,
    )
    return select(ranked, threshold, max_per_group=max_per_group).indices


def table_measure(
    detections: Detections, group: IntArray, similarity: str, *, overlap: Overlap, lowest: float
) -> MeasureOf:
    """Measure the masks of a table; overlaps of no more than ``lowest`` may read 0."""
    masks = masks_of(detections)
    if len(masks) < len(detections) or masks.missing.any():
        row = int(np.argmax(masks.missing)) if len(masks) else 0
        raise InputError(
            "a detection",
            "have a mask where masks are compared",
            got="none",
            place=f"row {row} of {detections.source}" if not len(masks) else masks.place(row),
        )
    return mask_measure(masks, group, overlap=overlap, lowest=lowest)
