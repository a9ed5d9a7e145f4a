"""Compute boundary IoU, the overlap of the outlines of two masks, from runs of pixels.

Conventions
-----------
- The boundary of a mask is its pixels within ``d`` of a pixel outside it, along either axis or both
  (Chebyshev distance); pixels beyond the image count as outside.
- ``d`` is ``dilation_ratio`` times the image diagonal, rounded, at least 1 pixel.
- Boundary IoU alone is 1 for masks that differ only inside their outlines. So a match is decided by the
  smaller of mask IoU and boundary IoU, and against a crowd by the mask overlap alone, as in the authors'
  code.

References
----------
Cheng, Girshick, Dollár, Berg and Kirillov: Boundary IoU, CVPR 2021, arXiv 2103.16562;
https://github.com/bowenc0221/boundary-iou-api, ``boundary_utils.py`` and ``cocoeval.py``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boxscore._utils import checks
from boxscore._utils.array_types import FloatArray, Positions
from boxscore._utils.ordering import distinct_rows
from boxscore.errors import InputError
from boxscore.extensions.masks.column import Masks
from boxscore.extensions.masks.column_runs import ColumnRuns, column_runs, shared_pixels
from boxscore.extensions.masks.inner_runs import inner_runs
from boxscore.extensions.masks.mask import MaskSimilarity, MasksLike, all_pairs, as_masks
from boxscore.extensions.masks.mask_pairs import Batch, MaskBlock, pairs_of_runs
from boxscore.similarity.pairs import Comparison, PairValues

if TYPE_CHECKING:
    from boxscore.protocols.protocol import Protocol


def boundary_width(height: int, width: int, dilation_ratio: float) -> int:
    """Return the width of the boundary in pixels for an image of this size."""
    return max(1, round(dilation_ratio * math.sqrt(height**2 + width**2)))


def mask_boundary(mask: ArrayLike, *, dilation_ratio: float = 0.02) -> NDArray[np.bool_]:
    """Return the pixels of a mask near its outline.

    Parameters
    ----------
    mask : array_like of bool, [H, W]
    dilation_ratio : float, default 0.02
        Width of the boundary over the image diagonal.

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
    """Remove the pixels of a mask deeper than ``distance``."""
    inner = _eroded(_eroded(mask, distance).T, distance).T
    boundary = mask.copy()
    if inner.size:
        boundary[distance:-distance, distance:-distance] &= ~inner
    return boundary


def _eroded(mask: NDArray[np.bool_], distance: int) -> NDArray[np.bool_]:
    """Return which windows of ``2 * distance + 1`` rows are all true, [rows - 2 * distance, columns]."""
    window, span = 2 * distance + 1, 1
    if len(mask) < window:
        return mask[:0]
    # Double the window; the last step may count rows twice, which does not change an "and".
    while span < window:
        step = min(span, window - span)
        mask = mask[:-step] & mask[step:]
        span += step
    return mask


def boundary_iou(masks1: MasksLike, masks2: MasksLike, *, dilation_ratio: float = 0.02) -> FloatArray:
    """Return the boundary IoU of each mask with each mask.

    Parameters
    ----------
    masks1, masks2 : Masks, sequence of RLEs, or array_like of bool, [N, H, W] and [M, H, W]
    dilation_ratio : float, default 0.02
        Width of the boundary over the image diagonal.

    Returns
    -------
    ndarray of float64, [N, M]

    Raises
    ------
    InputError
        If the masks differ in size.

    Examples
    --------
    >>> disc, ring = np.ones((2, 9, 9), dtype=bool)
    >>> ring[3:6, 3:6] = False
    >>> boundary_iou([disc], [ring]).round(3).tolist()
    [[0.667]]
    """
    checks.number_between(dilation_ratio, 0, 1, name="dilation_ratio", open_low=True)
    return all_pairs(
        as_masks(masks1),
        as_masks(masks2),
        lambda block, i, j: _Boundaries(block, dilation_ratio).overlaps(i, j),
    )


class _Boundaries:
    """The boundaries of two batches of masks: each mask without its inner pixels.

    Inclusion-exclusion gives the pixels that two boundaries share: those shared by the masks, minus those
    of each mask in the interior of the other, plus those in both interiors. Each term counts pixels shared by
    masks.
    """

    def __init__(self, block: MaskBlock, dilation_ratio: float) -> None:
        self.one, self.other = block.one, block.other
        self._inner = [_inner(batch, dilation_ratio) for batch in (self.one, self.other)]

    def overlaps(self, i: Positions, j: Positions) -> FloatArray:
        """Return the boundary IoU of rows of the two batches, [P]."""
        a, b = self.one.position[i], self.other.position[j]
        (inner, inner_area), (other_inner, other_area) = self._inner
        # Count the pixels shared by both boundaries by inclusion and exclusion: integers, exact.
        shared = shared_pixels(self.one.runs, self.other.runs, a, b)
        shared -= shared_pixels(self.one.runs, other_inner, a, b)
        shared -= shared_pixels(inner, self.other.runs, a, b)
        shared += shared_pixels(inner, other_inner, a, b)
        either = (self.one.area - inner_area)[a] + (self.other.area - other_area)[b] - shared
        either[shared == 0] = 1
        overlaps: FloatArray = shared / either
        return overlaps


def _inner(batch: Batch, dilation_ratio: float) -> tuple[ColumnRuns, NDArray[np.int64]]:
    """Return the inner pixels of a batch, cached for comparisons with other batches."""
    if dilation_ratio not in batch.cache:
        # Compute the width of the boundary once per size.
        firsts, of_mask = distinct_rows(batch.spans.sizes)
        sizes = batch.spans.sizes[firsts].tolist()
        distance = np.array(
            [boundary_width(height, width, dilation_ratio) for height, width in sizes], dtype=np.int64
        )
        runs = batch.runs
        if runs.touch():  # join runs that touch: their common edge is not a boundary
            runs = column_runs(batch.spans.merged())
        batch.cache[dilation_ratio] = inner_runs(batch.spans, runs, distance[of_mask])
    inner: tuple[ColumnRuns, NDArray[np.int64]] = batch.cache[dilation_ratio]
    return inner


class BoundarySimilarity(MaskSimilarity):
    """The smaller of mask IoU and boundary IoU; against a crowd, the mask overlap."""

    def __init__(self, protocol: Protocol) -> None:
        super().__init__(protocol)
        self.dilation_ratio = protocol.masks.boundary_dilation

    def reference_evaluator(self, evaluator: type[Any]) -> type[Any]:
        """Add the boundary IoU of the authors' fork to pycocotools' evaluator."""
        return _with_boundaries(evaluator, self.dilation_ratio)

    def measured(self, masks: Masks, truths: Masks, comparison: Comparison) -> PairValues:
        """Measure mask IoU first: it bounds the smaller of the two."""

        def smaller(
            block: MaskBlock, i: Positions, j: Positions, by_foreground: NDArray[np.bool_]
        ) -> FloatArray:
            value = self.compare(block, i, j, by_foreground)
            plain = np.flatnonzero(~by_foreground[j] & (value >= comparison.lowest))
            if len(plain):
                outline = _Boundaries(block, self.dilation_ratio).overlaps(i[plain], j[plain])
                value[plain] = np.minimum(value[plain], outline)
            return value

        return pairs_of_runs(masks, truths, comparison, smaller)


def _with_boundaries(evaluator: Any, dilation_ratio: float) -> type[Any]:
    """Add the boundary IoU of the authors' fork to pycocotools' evaluator, on whole images."""
    from pycocotools import mask as coco_mask

    # Decode to pixels instead of runs, so that a check against this evaluator tests the runs.
    def outline(annotation: dict[str, Any]) -> Any:
        pixels = np.array(coco_mask.decode(annotation["segmentation"]), dtype=bool)
        boundary = mask_boundary(pixels, dilation_ratio=dilation_ratio)
        return coco_mask.encode(np.asfortranarray(boundary, dtype=np.uint8))

    class Boundaries(evaluator):  # type: ignore[misc]
        def computeIoU(self, imgId: int, catId: int) -> Any:  # noqa: N802 - their names
            overlaps = super().computeIoU(imgId, catId)
            classes = [catId] if self.params.useCats else self.params.catIds
            truths = [truth for k in classes for truth in self._gts[imgId, k]]
            detections = [detection for k in classes for detection in self._dts[imgId, k]]
            if not truths or not detections:
                return overlaps
            # Compare the top detections, as many as pycocotools does; its sort by score is stable too.
            order = np.argsort([-detection["score"] for detection in detections], kind="stable")[
                : self.params.maxDets[-1]
            ]
            boundaries = coco_mask.iou(
                [outline(detections[row]) for row in order], list(map(outline, truths)), [0] * len(truths)
            )
            # Take the smaller of mask IoU and boundary IoU; against a crowd, the mask overlap.
            crowd = np.array([truth["iscrowd"] for truth in truths], dtype=bool)
            return np.where(crowd, overlaps, np.minimum(overlaps, boundaries))

    return Boundaries
