"""Boundary IoU: overlap of the outlines of two masks.

Goal
----
What the authors' code computes, on the pixels of the masks' boxes alone and only for pairs that can match.

Conventions
-----------
- The boundary of a mask is its pixels within ``d`` of a pixel outside it, along either axis or both
  (Chebyshev distance); beyond the image's edge is outside.
- ``d`` is ``dilation_ratio`` times the image's diagonal, rounded, at least 1 pixel.
- Boundary IoU alone is 1 for masks that differ only inside their outlines. So what decides a match is the
  smaller of mask IoU and boundary IoU, and against a crowd the mask overlap alone, as in the authors' code.

References
----------
Cheng, Girshick, Dollár, Berg and Kirillov: Boundary IoU, CVPR 2021, arXiv 2103.16562;
https://github.com/bowenc0221/boundary-iou-api, ``boundary_utils.py`` and ``cocoeval.py``.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boxscore._utils import checks
from boxscore._utils.ordering import run_starts, stable_order
from boxscore.data.masks import Masks, decoded
from boxscore.errors import InputError
from boxscore.protocols.protocol import Protocol
from boxscore.similarity.mask import MaskSimilarity, MasksLike, as_masks, one_size
from boxscore.similarity.pairs import PairValues, at_least

__all__ = [
    "BoundarySimilarity",
    "boundary_iou",
    "boundary_overlaps_of_pairs",
    "boundary_width",
    "mask_boundary",
]

FloatArray = NDArray[np.float64]


class _Outline(NamedTuple):
    """The boundary of a mask inside the mask's box; axes are x, y."""

    left: int
    top: int
    pixels: NDArray[np.bool_]
    area: int


def boundary_width(height: int, width: int, dilation_ratio: float) -> int:
    """Width of the boundary in pixels for an image of this size."""
    return max(1, round(dilation_ratio * math.sqrt(height**2 + width**2)))


def mask_boundary(mask: ArrayLike, *, dilation_ratio: float = 0.02) -> NDArray[np.bool_]:
    """Pixels of a mask that lie near its outline.

    Parameters
    ----------
    mask : array_like of bool, [H, W]
    dilation_ratio : float, default 0.02
        The boundary's width over the image's diagonal.

    Returns
    -------
    ndarray of bool, [H, W]

    Examples
    --------
    >>> int(mask_boundary(np.ones((5, 5), dtype=bool)).sum())
    16
    """
    array = checks.flags(mask, name="a mask")
    if array.ndim != 2:
        raise InputError("a mask", "have shape [H, W]", got=f"shape {list(array.shape)}")
    checks.number_between(dilation_ratio, 0, 1, name="dilation_ratio", open_low=True)
    return _boundary(array, boundary_width(array.shape[0], array.shape[1], dilation_ratio))


def _boundary(mask: NDArray[np.bool_], distance: int) -> NDArray[np.bool_]:
    """Remove from a mask what lies deeper than ``distance``."""
    inner = _eroded(_eroded(mask, distance).T, distance).T
    boundary = mask.copy()
    if inner.size:
        boundary[distance:-distance, distance:-distance] &= ~inner
    return boundary


def _eroded(mask: NDArray[np.bool_], distance: int) -> NDArray[np.bool_]:
    """Whether each window of ``2 * distance + 1`` rows is all true, [rows - 2 * distance, columns]."""
    window, span = 2 * distance + 1, 1
    if len(mask) < window:
        return mask[:0]
    while span < window:
        step = min(span, window - span)
        mask = mask[:-step] & mask[step:]
        span += step
    return mask


def boundary_iou(masks1: MasksLike, masks2: MasksLike, *, dilation_ratio: float = 0.02) -> FloatArray:
    """Boundary IoU of each mask with each mask.

    Parameters
    ----------
    masks1, masks2 : Masks, sequence of RLEs, or array_like of bool, [N, H, W] and [M, H, W]
    dilation_ratio : float, default 0.02
        The boundary's width over the image's diagonal.

    Returns
    -------
    ndarray of float64, [N, M]

    Raises
    ------
    InputError
        When the masks are not all of one size.

    Examples
    --------
    >>> disc, ring = np.ones((2, 9, 9), dtype=bool)
    >>> ring[3:6, 3:6] = False
    >>> boundary_iou([disc], [ring]).round(3).tolist()
    [[0.667]]
    """
    checks.number_between(dilation_ratio, 0, 1, name="dilation_ratio", open_low=True)
    first, second = as_masks(masks1), as_masks(masks2)
    shape = len(first), len(second)
    if not all(shape):
        return np.zeros(shape)
    one_size(first, second)
    pairs = np.indices(shape).reshape(2, -1)
    one_group = np.zeros(len(second), dtype=np.intp)
    overlaps = boundary_overlaps_of_pairs(first, second, pairs[0], pairs[1], one_group, dilation_ratio)
    return overlaps.reshape(shape)


def boundary_overlaps_of_pairs(
    first: Masks,
    second: Masks,
    pair_first: NDArray[np.intp],
    pair_second: NDArray[np.intp],
    group: NDArray[Any],
    dilation_ratio: float,
) -> FloatArray:
    """Boundary IoU of pairs of equally large masks [P]; ``group`` [M] ascends with ``second``."""
    order = stable_order(pair_second, len(second))
    starts = run_starts(group[pair_second[order]])
    overlaps = np.zeros(len(order))
    for pairs in np.split(order, starts[1:]):
        outlines = [
            dict(zip(rows.tolist(), _outlines(masks[rows], dilation_ratio), strict=True))
            for masks, rows in (
                (first, np.unique(pair_first[pairs])),
                (second, np.unique(pair_second[pairs])),
            )
        ]
        for pair, one, other in zip(
            pairs.tolist(), pair_first[pairs].tolist(), pair_second[pairs].tolist(), strict=True
        ):
            overlaps[pair] = _overlap(outlines[0][one], outlines[1][other])
    return overlaps


def _outlines(masks: Masks, dilation_ratio: float) -> list[_Outline]:
    """Outlines of masks of one size."""
    if not len(masks):
        return []
    whole = decoded(masks.codes())  # [H,W,N]
    distance = boundary_width(whole.shape[0], whole.shape[1], dilation_ratio)
    outlines = []
    for number, (left, top, right, bottom) in enumerate(masks.boxes.astype(int).tolist()):
        pixels = _boundary(whole[top:bottom, left:right, number].T, distance)
        outlines.append(_Outline(left, top, pixels, int(np.count_nonzero(pixels))))
    return outlines


def _overlap(one: _Outline, other: _Outline) -> float:
    left, top = max(one.left, other.left), max(one.top, other.top)
    right = min(one.left + one.pixels.shape[0], other.left + other.pixels.shape[0])
    bottom = min(one.top + one.pixels.shape[1], other.top + other.pixels.shape[1])
    if right <= left or bottom <= top:
        return 0.0
    views = [
        line.pixels[left - line.left : right - line.left, top - line.top : bottom - line.top]
        for line in (one, other)
    ]
    intersection = int(np.count_nonzero(views[0] & views[1]))
    return intersection / (one.area + other.area - intersection) if intersection else 0.0


class BoundarySimilarity(MaskSimilarity):
    """The smaller of mask IoU and boundary IoU; against a crowd the mask overlap alone."""

    def __init__(self, protocol: Protocol) -> None:
        super().__init__(protocol)
        self.dilation_ratio = protocol.masks.boundary_dilation

    def measured(
        self,
        masks: Masks,
        truths: Masks,
        pairs: PairValues,
        group: NDArray[np.intp],
        by_foreground: NDArray[np.bool_],
        lowest: float,
    ) -> PairValues:
        """Measure pairs by their masks first, which bound the smaller of the two."""
        truth, detection, value = super().measured(masks, truths, pairs, group, by_foreground, lowest)
        plain = np.flatnonzero(~by_foreground[truth])
        outline = boundary_overlaps_of_pairs(
            masks, truths, detection[plain], truth[plain], group, self.dilation_ratio
        )
        value[plain] = np.minimum(value[plain], outline)
        return at_least(PairValues(truth, detection, value), lowest)
