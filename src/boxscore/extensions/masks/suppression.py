"""Suppress instance masks by their overlap in pixels.

Conventions
-----------
- Masks are in any form that :class:`~boxscore.Masks` takes; those of a group have one size, that of their
  image.
- Overlaps are those of pycocotools, bit for bit; masks are not decoded to pixels.
- An empty mask does not suppress others, and is not suppressed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike

from boxscore._utils import checks
from boxscore._utils.array_types import IntArray
from boxscore.errors import InputError
from boxscore.extensions.masks.column import Masks, masks_of
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
    """Apply hard non-maximum suppression to instance masks.

    Parameters
    ----------
    masks : Masks, sequence of RLEs, or array_like of bool, [N, H, W]
    iou_threshold : float in [0, 1]
        Drop a mask if its overlap with a better kept mask is greater.
    overlap : {"iou", "ios"}, default "iou"
        Intersection over union, or over the smaller area.
    scores, groups, score_threshold, pre_top_k, max_per_group
        As in :func:`boxscore.batched_nms`; ``groups`` are its ``idxs``, None for one group.

    Returns
    -------
    ndarray of int64, [K]
        Rows of the kept masks by descending score, ties by lowest index.

    Raises
    ------
    InputError
        As in :func:`boxscore.batched_nms`; if a mask is missing or damaged, or masks of a group differ in
        size.

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
    """Return the measure of the masks of a table; overlaps up to ``lowest`` may read 0."""
    return mask_measure(masks_of_all(detections), group, overlap=overlap, lowest=lowest)


def masks_of_all(detections: Detections) -> Masks:
    """Return the masks of a table; raise an error if a row has none."""
    masks = masks_of(detections)
    if len(masks) < len(detections) or masks.missing.any():
        row = int(np.argmax(masks.missing)) if len(masks) else 0
        raise InputError(
            "a detection",
            "have a mask where masks are compared",
            got="none",
            place=f"row {row} of {detections.source}" if not len(masks) else masks.place(row),
        )
    return masks
