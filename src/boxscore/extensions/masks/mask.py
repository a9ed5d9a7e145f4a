"""Compute overlaps, areas and boxes of instance masks.

Conventions
-----------
- Values are those of pycocotools, bit for bit: see :mod:`~boxscore.extensions.masks.mask_pairs`.
- A mask may be polygons, an RLE or a binary array: see :mod:`boxscore.extensions.masks.column`.
- Overlaps are IoU, or against a crowd, intersection over the area of the first mask. Empty masks have overlap
  0, never NaN.
- Only masks of equal size are compared. pycocotools returns -1 for others and counts a miss; here it is an
  error.

References
----------
pycocotools 2.0.11, ``maskApi.c``: ``rleArea``, ``rleToBbox``, ``rleIou``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils.array_types import FloatArray, Positions
from boxscore._utils.checks import Place
from boxscore._utils.ordering import ragged_ranges, run_starts
from boxscore._utils.text import counted
from boxscore.data.tables import Detections, GroundTruth
from boxscore.errors import InputError
from boxscore.extensions.masks.column import MaskLike, Masks, box_only, masks_of, with_masks
from boxscore.extensions.masks.mask_pairs import (
    MaskBlock,
    blocks,
    overlaps_of_pairs,
    pairs_of_runs,
    shared_out,
)
from boxscore.similarity.box import BoxSimilarity
from boxscore.similarity.measures import MeasureOf, shared_between
from boxscore.similarity.pairs import Comparison, Overlap, PairValues, over
from boxscore.similarity.registry import Similarity

if TYPE_CHECKING:
    from boxscore.protocols.protocol import Protocol

MasksLike = Masks | Sequence[MaskLike] | NDArray[Any]
"""A column of masks, a sequence of masks, or a binary array [N, H, W]."""


def as_masks(masks: MasksLike) -> Masks:
    """Convert masks to a column."""
    return masks if isinstance(masks, Masks) else Masks(masks)


def mask_area(masks: MasksLike) -> FloatArray:
    """Return the area of each mask in pixels.

    Parameters
    ----------
    masks : Masks, sequence of RLEs, or array_like of bool, [N, H, W]

    Returns
    -------
    ndarray of float64, [N]
    """
    return as_masks(masks).area


def mask_to_box(masks: MasksLike) -> FloatArray:
    """Return the box ``x1, y1, x2, y2`` around each mask; ``x2`` and ``y2`` are one past the last pixel.

    Parameters as in :func:`mask_area`.

    Returns
    -------
    ndarray of float64, [N, 4]
    """
    return as_masks(masks).boxes


def mask_iou(
    masks1: MasksLike,
    masks2: MasksLike,
) -> FloatArray:
    """Return the intersection over union of each mask with each mask.

    Parameters
    ----------
    masks1, masks2 : Masks, sequence of RLEs, or array_like of bool, [N, H, W] and [M, H, W]

    Returns
    -------
    ndarray of float64, [N, M]

    Raises
    ------
    InputError
        If the masks differ in size.

    Examples
    --------
    >>> left, top = np.zeros((2, 4, 4), dtype=bool)
    >>> left[:, :2] = top[:2] = True
    >>> mask_iou([left], [left, top]).round(3).tolist()
    [[1.0, 0.333]]
    """
    return _overlaps(masks1, masks2, crowd=False)


def mask_iof(
    masks1: MasksLike,
    masks2: MasksLike,
) -> FloatArray:
    """Return the intersection over the area of the first mask (foreground), for crowd regions in ``masks2``.

    Parameters, result and errors as in :func:`mask_iou`.
    """
    return _overlaps(masks1, masks2, crowd=True)


def all_pairs(
    first: Masks, second: Masks, overlaps: Callable[[MaskBlock, Positions, Positions], FloatArray]
) -> FloatArray:
    """Measure each mask with each mask, [N, M], block by block; ``overlaps`` takes positions of pairs."""
    shape = len(first), len(second)
    values = np.zeros(shape)
    if not all(shape):
        return values
    one_size(first, second)
    # Decode one batch of each side per block, to bound memory.
    for block in blocks(first, second):
        i, j = np.indices((len(block.first), len(block.second))).reshape(2, -1)
        values[np.ix_(block.first, block.second)] = overlaps(block, i, j).reshape(len(block.first), -1)
    return values


def _overlaps(masks1: MasksLike, masks2: MasksLike, *, crowd: bool) -> FloatArray:
    return all_pairs(
        as_masks(masks1),
        as_masks(masks2),
        lambda block, i, j: block.overlaps(i, j, np.full(len(block.second), crowd)),
    )


def one_size(first: Masks, second: Masks) -> None:
    """Check that two non-empty columns of masks all have one size."""
    same_size(first.sizes, second.sizes[:1])
    same_size(second.sizes, first.sizes[:1])


def same_size(sizes: NDArray[np.int64], others: NDArray[np.int64], *, place: Place = "row {}".format) -> None:
    """Check that masks have the size of the others: height and width, [P, 2], or [1, 2] for all."""
    different = np.flatnonzero((sizes != others).any(axis=1))
    if len(different):
        # Name the first mask of another size, and the likely cause.
        row = int(different[0])
        height, width = np.broadcast_to(others, sizes.shape)[row].tolist()
        swapped = sizes[row].tolist() == [width, height]
        raise InputError(
            "a mask",
            f"have the size of the mask it is compared with, {height} high and {width} wide",
            got=sizes[row].tolist(),
            place=place(row),
            cause="are height and width swapped?" if swapped else "is it of the resized image?",
        )


class MaskSimilarity(Similarity):
    """IoU of instance masks.

    A detection without a mask is compared by its box, as in pycocotools. Masks are compared only if they
    reach a common column and their areas allow the lowest threshold: with ``a1 <= a2``, IoU is at most ``a1 /
    a2``, which holds in floating point too, since areas are integers.
    """

    column = "masks"
    forks_from = 0
    shares_pairs = True

    def __init__(self, protocol: Protocol) -> None:
        super().__init__(protocol)
        self.compare = (
            MaskBlock.overlaps if protocol.masks.precision == "double" else MaskBlock.single_overlaps
        )
        self._by_box = BoxSimilarity(protocol) if protocol.masks_may_lack else None

    def check_units(self, ground_truth: GroundTruth) -> None:
        """Reject fractions of unknown image sizes, unless objects may lack masks: other masks are RLEs."""
        if self._by_box is None:
            super().check_units(ground_truth)

    def complete(self, ground_truth: GroundTruth, detections: Detections) -> Detections:
        """Check that every ground truth has a mask, and replace missing masks of detections by boxes."""
        # If objects may lack masks, boxes are compared; without the image size, a box cannot become a mask.
        masks = masks_of(ground_truth)
        if self._by_box is not None:
            lacking = detections.masks is None or bool(detections.masks.missing.any())
            if ground_truth.units == "fractions" and lacking and len(detections):
                raise InputError(
                    "detections",
                    "have a mask in every row where the sizes of images are unknown",
                    got="none",
                    place=detections.source,
                    cause="are these boxes? Use a protocol that compares boxes",
                )
        # Otherwise every ground truth needs a mask.
        elif len(masks) < len(ground_truth) or masks.missing.any():
            row = int(np.argmax(masks.missing)) if len(masks) else 0
            raise InputError(
                "ground truth",
                "have a mask in every row",
                got="none",
                place=f"row {row} of {ground_truth.source}" if not len(masks) else masks.place(row),
                cause="is it annotated with masks?",
            )
        # Use the box of a detection without a mask, as pycocotools does.
        return with_masks(detections)

    def fallbacks(self, ground_truth: GroundTruth, detections: Detections) -> str:
        """Describe whether boxes replace masks, in comparisons or in area ranges."""
        source, masks = detections.source, detections.masks
        missing = len(detections) if masks is None else int(masks.missing.sum())
        # detectron2 and others drop the boxes first, which changes small, medium and large.
        by_boxes = self.area_rule == "box_or_mask" and detections.boxes_given
        if missing:
            return (
                f"{source}: {counted(missing, 'detection')} without a mask; using the boxes as masks, as "
                "in pycocotools."
            )
        if by_boxes and len(detections) and self.has_area_ranges:
            return (
                f"{source}: the results contain boxes as well as masks, so the box area decides which "
                "detections are small, medium or large, as in pycocotools. To use mask areas, set "
                '--detection-area mask (ignore.detection_area = "mask" in the protocol), or remove the '
                "boxes from the results."
            )
        return ""

    def of_pairs(
        self, ground_truth: GroundTruth, detections: Detections, comparison: Comparison
    ) -> PairValues:
        """Find pairs whose masks overlap enough, or boxes if the ground truth has no mask."""
        if self._by_box is None:
            return self._of_masks(ground_truth, detections, comparison)
        # Compare ground truths with masks by mask, and the others by box.
        lacking = box_only(ground_truth)[comparison.truth_rows]
        parts = []
        for of_pairs, chosen in ((self._of_masks, ~lacking), (self._by_box.of_pairs, lacking)):
            truths = np.flatnonzero(chosen & (comparison.counts > 0))
            some, rows = _compared_with(comparison, truths)
            pairs = of_pairs(ground_truth, detections, some)
            parts.append(PairValues(truths[pairs.truth], rows[pairs.detection], pairs.value))
        # Merge both results in the order of the ground truths; the sort is stable and keeps the order of
        # pairs.
        order = np.argsort(np.concatenate([part.truth for part in parts]), kind="stable")
        return PairValues(*(np.concatenate(column)[order] for column in zip(*parts, strict=True)))

    def _of_masks(
        self, ground_truth: GroundTruth, detections: Detections, comparison: Comparison
    ) -> PairValues:
        # Drop ground truths without detections, so that their masks are not decoded.
        near = np.flatnonzero(comparison.counts)
        if not len(near):
            return PairValues(near, near, np.empty(0))
        flags = comparison.by_foreground
        by_foreground = np.zeros(len(near), bool) if flags is None else flags[near]
        some = comparison._replace(
            truth_rows=comparison.truth_rows[near],
            starts=comparison.starts[near],
            counts=comparison.counts[near],
            by_foreground=by_foreground,
        )
        # Select the masks [g] and [d] without copying their contents.
        truths = masks_of(ground_truth)[some.truth_rows]
        masks = masks_of(detections)[some.rows]
        # Ground truths with the same detections form a group: one image and class. Compare each size with
        # that of the first mask of the group, which avoids a check per pair.
        group = np.cumsum(np.diff(some.starts, prepend=-1) != 0) - 1  # [g]
        first = np.flatnonzero(np.diff(group, prepend=-1))
        same_size(truths.sizes, truths.sizes[first][group], place=truths.place)
        same_size(masks.sizes, truths.sizes[np.repeat(first, some.counts[first])], place=masks.place)
        # Let the workers also measure detections that are not compared: area ranges need their areas.
        rest = None
        if some.workers > 1 and self.measures_masks(detections) and detections.masks is not None:
            apart = np.ones(len(detections), dtype=bool)
            apart[some.rows] = False
            rest = masks_of(detections)[np.flatnonzero(apart)]
        pairs = shared_out(masks, truths, some, rest, self.measured)
        return pairs._replace(truth=near[pairs.truth])

    def measured(self, masks: Masks, truths: Masks, comparison: Comparison) -> PairValues:
        """Measure every pair that may overlap enough, and return those that do."""
        return pairs_of_runs(masks, truths, comparison, self.compare)


def _compared_with(comparison: Comparison, truths: NDArray[np.intp]) -> tuple[Comparison, NDArray[np.intp]]:
    """Restrict a comparison to some ground truths; also return the detections that remain."""
    # The ground truths keep their runs of detections. Copy each run once for all ground truths that share it.
    starts, counts = comparison.starts[truths], comparison.counts[truths]
    first = run_starts(starts)
    rows = ragged_ranges(starts[first], counts[first])
    moved = np.cumsum(counts[first]) - counts[first]
    flags = comparison.by_foreground
    some = comparison._replace(
        truth_rows=comparison.truth_rows[truths],
        rows=comparison.rows[rows],
        starts=np.repeat(moved, np.diff(np.append(first, len(truths)))),
        counts=counts,
        by_foreground=None if flags is None else flags[truths],
    )
    return some, rows


def mask_measure(
    masks: Masks, group: NDArray[np.int64] | None, *, overlap: Overlap, lowest: float = 0.0
) -> MeasureOf:
    """Return the measure of some masks of a column; overlaps up to ``lowest`` may read 0."""
    of = np.zeros(len(masks), dtype=np.int64) if group is None else group
    first = np.unique(of, return_index=True, return_inverse=True)[1:] if len(of) else (of, of)
    same_size(masks.sizes, masks.sizes[first[0][first[1]]], place=masks.place)
    return lambda rows: _MaskMeasure(masks[rows], overlap, lowest)


class _MaskMeasure:
    """Overlap of masks; only pairs that may exceed ``lowest`` are compared pixel by pixel."""

    offset = 0.0
    at_most_iou = False  # masks may overlap more than their boxes do
    identity: tuple[FloatArray, ...] = ()

    def __init__(self, masks: Masks, kind: Overlap, lowest: float) -> None:
        self._masks, self._kind, self._lowest = masks, kind, lowest
        self.x1, self.y1, self.x2, self.y2 = np.ascontiguousarray(masks.boxes.T)
        self._area = masks.area

    def between(self, first: NDArray[np.int64], second: NDArray[np.int64]) -> FloatArray:
        """Return the overlap of each pair, [P]."""
        area1, area2 = self._area.take(first), self._area.take(second)
        # Bound the shared pixels by the shared area of the boxes and by the smaller mask, [P]. Integer
        # division rounds monotonically, so the bound of the quotient is exact.
        shared = np.minimum(shared_between(self, first, second), np.minimum(area1, area2))
        swapped = area1 > area2
        denominator = over(shared, area1, area2, self._kind)
        # Decode only the pairs whose bound exceeds the threshold.
        near = np.flatnonzero(shared > 0)
        near = near.take(np.flatnonzero(shared.take(near) / denominator.take(near) > self._lowest))
        first, second, swapped = first.take(near), second.take(near), swapped.take(near)
        if self._kind == "ios":  # ``overlaps_of_pairs`` divides by the area of the first mask
            first, second = np.where(swapped, second, first), np.where(swapped, first, second)
        over_first = np.full(len(self._masks), self._kind == "ios")
        values = np.zeros(len(area1))
        values[near] = overlaps_of_pairs(self._masks, self._masks, first, second, over_first)
        return values
