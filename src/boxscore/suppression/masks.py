"""Suppression by instance masks: overlap is counted in pixels, not in boxes.

Conventions
-----------
- Masks are what :class:`~boxscore.data.masks.Masks` takes; those of one group have one size, their image's.
- Overlaps are pycocotools', of its run-length codes; no mask is decoded to pixels.
- An empty mask is inert.

Method
------
Two masks share no more pixels than the boxes around them, and no more than the smaller has. Only pairs for
which that bound exceeds the threshold are compared pixel by pixel.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boxscore._utils import checks
from boxscore.similarity.mask import Masks, MasksLike, as_masks, overlaps_of_pairs, same_size
from boxscore.suppression._measures import MeasureOf, Overlap, shared_length
from boxscore.suppression._ranked import check_groups, check_scores, rank
from boxscore.suppression.hard import select

__all__ = ["mask_measure", "mask_nms"]

FloatArray = NDArray[np.float64]
IndexArray = NDArray[np.int64]


def mask_nms(
    masks: MasksLike,
    scores: ArrayLike,
    groups: ArrayLike | None = None,
    *,
    iou_threshold: float,
    overlap: Overlap = "iou",
    score_threshold: float | None = None,
    pre_top_k: int | None = None,
    max_per_group: int | None = None,
) -> IndexArray:
    """Hard non-maximum suppression of instance masks.

    Parameters
    ----------
    masks : Masks, sequence of run-length codes, or array_like of bool, [N, H, W]
    iou_threshold : float in [0, 1]
        A mask is dropped when its overlap with a better kept mask is greater.
    overlap : {"iou", "ios"}, default "iou"
        Intersection over union, or over the smaller of the two areas.
    scores, groups, score_threshold, pre_top_k, max_per_group
        As in :func:`boxscore.batched_nms`; ``groups=None`` is one group.

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
    >>> left, top = np.zeros((2, 4, 4), dtype=bool)
    >>> left[:, :3] = top[:3] = True
    >>> mask_nms([left, top], [0.8, 0.9], iou_threshold=0.5).tolist()
    [1]
    >>> mask_nms([left, top], [0.8, 0.9], iou_threshold=0.6).tolist()
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
    indices = select(ranked, threshold, max_per_group=max_per_group)
    assert isinstance(indices, np.ndarray)
    return indices


def mask_measure(
    masks: Masks, group: IndexArray | None, *, overlap: Overlap, lowest: float = 0.0
) -> MeasureOf:
    """Measure of some rows of a column of masks; overlaps of no more than ``lowest`` may read 0.

    Raises
    ------
    InputError
        When the masks of a group are not of one size.
    """
    of = np.zeros(len(masks), dtype=np.int64) if group is None else group
    first = np.unique(of, return_index=True, return_inverse=True)[1:] if len(of) else (of, of)
    same_size(masks.sizes, masks.sizes[first[0][first[1]]], place=masks.place)
    return lambda rows: _MaskMeasure(masks[rows], overlap, lowest)


class _MaskMeasure:
    """Overlap of masks."""

    offset = 0.0
    at_most_iou = False  # masks may agree where the boxes around them do not

    def __init__(self, masks: Masks, kind: Overlap, lowest: float) -> None:
        self._masks, self._kind, self._lowest = masks, kind, lowest
        self.x1, self.y1, self.x2, self.y2 = np.ascontiguousarray(masks.boxes.T)
        self._area = masks.area

    def take(self, positions: IndexArray) -> _MaskMeasure:
        """Keep only some masks, in this order."""
        return _MaskMeasure(self._masks[positions], self._kind, self._lowest)

    def between(self, first: IndexArray, second: IndexArray) -> FloatArray:
        """Overlap of each pair, [P]."""
        area1, area2 = self._area.take(first), self._area.take(second)
        smaller = np.minimum(area1, area2)
        shared = np.maximum(shared_length(self.x1, self.x2, first, second, 0), 0)
        shared *= np.maximum(shared_length(self.y1, self.y2, first, second, 0), 0)
        np.minimum(shared, smaller, out=shared)  # no pair shares more
        if self._kind == "iou":
            smaller = area1 + area2 - shared
        # Whole numbers divided, so the bound holds to the last bit.
        near = np.flatnonzero(shared > 0)
        near = near.take(np.flatnonzero(shared.take(near) / smaller.take(near) > self._lowest))
        first, second, swapped = first.take(near), second.take(near), area1.take(near) > area2.take(near)
        if self._kind == "ios":  # the C code divides by the area of the first
            first, second = np.where(swapped, second, first), np.where(swapped, first, second)
        everyone = np.arange(len(self._masks))
        over_first = np.full(len(everyone), self._kind == "ios")
        values = np.zeros(len(area1))
        values[near] = overlaps_of_pairs(self._masks, self._masks, first, second, everyone, over_first)
        return values
